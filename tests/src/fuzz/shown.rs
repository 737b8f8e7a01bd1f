//! The output of commands: without terminal control characters, and with data that can be parsed.

use olm_core::visible::is_harmful;
use olm_core::yaml;
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Printer};
use serde_json::Value;

/// The output of a command.
pub(super) struct Shown {
    /// Standard output: data.
    pub(super) out: String,
    /// Standard error: messages.
    pub(super) err: String,
}

/// Captures the output, which must not contain terminal control characters.
///
/// # Panics
/// It does.
pub(super) fn shown<T>(print: impl FnOnce(&mut Printer) -> T) -> (T, Shown) {
    let (out, err) = (Buffer::default(), Buffer::default());
    let mut printer = Printer::to(out.clone(), err.clone());
    let result = print(&mut printer);
    drop(printer);
    let shown = Shown { out: out.text(), err: err.text() };
    harmless(&shown.out);
    harmless(&shown.err);
    (result, shown)
}

/// Checks the message of an error, which must not contain terminal control characters.
///
/// # Panics
/// It does, or it is empty.
pub(super) fn render_error(error: impl Into<CliError>) {
    let error = error.into();
    let ((), shown) = shown(|printer| printer.error(&error));
    assert!(!shown.err.is_empty() || error.kind == olm_shell::cli::ErrorKind::Closed, "{error:?}");
}

/// Checks that a text of several lines contains only harmless characters.
///
/// # Panics
/// It contains others.
pub(super) fn harmless(text: &str) {
    let found = text.char_indices().find(|(_, c)| is_harmful(*c) && !matches!(c, '\n' | '\t'));
    assert!(found.is_none(), "{found:?} in {text:?}");
}

/// A data format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    Json,
    Yaml,
}

/// Parses the value of a data format; null if there is none.
///
/// # Panics
/// It cannot be parsed.
pub(super) fn value(shown: &Shown, data: Data) -> Value {
    if shown.out.is_empty() {
        return Value::Null;
    }
    match data {
        Data::Json => {
            let read = serde_json::from_str(&shown.out);
            assert!(read.is_ok(), "{read:?}: {}", shown.out);
            read.unwrap_or_default()
        }
        Data::Yaml => {
            let read = yaml::first(shown.out.as_bytes());
            assert!(read.is_ok(), "{read:?}: {}", shown.out);
            read.unwrap_or_default()
        }
    }
}
