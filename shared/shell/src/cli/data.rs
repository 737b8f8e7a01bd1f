//! Values as JSON and YAML documents, in kubectl's format.

use serde::Serialize;

use super::error::{CliError, ErrorKind};
use crate::visible;

/// Returns a value as JSON, indented by four spaces as in kubectl, without a final newline.
pub fn json(value: &impl Serialize) -> Result<String, CliError> {
    let mut text = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, format)).map_err(internal)?;
    Ok(visible::json(String::from_utf8(text).map_err(internal)?))
}

/// Returns a value as a YAML document.
pub fn yaml(value: &impl Serialize) -> Result<String, CliError> {
    let text = olm_core::yaml::to_string(value).map_err(internal)?;
    if visible::is_plain(&text) {
        return Ok(text);
    }
    let value = serde_json::to_value(value).map_err(internal)?;
    visible::yaml(&value, olm_core::yaml::to_string).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> CliError {
    CliError::new(ErrorKind::Internal, format!("cannot print the result: {error}"))
}
