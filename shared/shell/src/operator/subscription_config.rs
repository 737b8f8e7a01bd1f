//! Reads the `spec.config` of a Subscription from a file.

use std::path::Path;

use olm_core::listing::listed;
use serde_json::Value;

use crate::cli::CliError;

/// The maximum size of the file: the API server accepts no larger object.
const LARGEST: u64 = 1 << 20;

/// The fields of `spec.config` of a Subscription.
const FIELDS: [&str; 10] = [
    "affinity",
    "annotations",
    "env",
    "envFrom",
    "nodeSelector",
    "resources",
    "selector",
    "tolerations",
    "volumeMounts",
    "volumes",
];

/// Reads the file.
///
/// # Errors
/// The file cannot be read, or is not a Subscription configuration.
pub(super) fn read(file: &Path) -> Result<Value, CliError> {
    let at = |error: CliError| error.at(file.display());
    let size = std::fs::metadata(file).map_err(|error| at(error.into()))?.len();
    if size > LARGEST {
        return Err(at(CliError::input(format!("the file has {size} bytes; at most {LARGEST} are accepted"))));
    }
    let bytes = std::fs::read(file).map_err(|error| at(error.into()))?;
    let config: Value = olm_core::yaml::first(&bytes).map_err(|error| at(CliError::input(error.to_string())))?;
    let Some(fields) = config.as_object() else {
        return Err(at(CliError::input(
            "expected the fields of spec.config of a Subscription, such as env or resources",
        )));
    };
    let unknown: Vec<&String> = fields.keys().filter(|field| !FIELDS.contains(&field.as_str())).collect();
    if unknown.is_empty() {
        return Ok(config);
    }
    Err(at(CliError::input(format!("unknown fields: {}", listed(&unknown)))
        .hint(format!("the fields of spec.config of a Subscription are {}", listed(&FIELDS)))))
}
