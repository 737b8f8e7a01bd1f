//! What commands print: harmless for a terminal, and data that can be read again.

use olm_core::visible::is_harmful;
use olm_core::yaml;
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Printer};
use serde_json::Value;

/// What a command prints.
pub(super) struct Shown {
    /// Data.
    pub(super) out: String,
    /// Talk.
    pub(super) err: String,
}

/// What is printed, which steers no terminal.
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

/// What an error says, which steers no terminal.
///
/// # Panics
/// It does, or it says nothing.
pub(super) fn told(error: &CliError) {
    let ((), shown) = shown(|printer| printer.error(error));
    assert!(!shown.err.is_empty() || error.kind == olm_shell::cli::ErrorKind::Closed, "{error:?}");
}

/// Has a text of several lines harmless characters only?
///
/// # Panics
/// It has others.
pub(super) fn harmless(text: &str) {
    let found = text.char_indices().find(|(_, c)| is_harmful(*c) && !matches!(c, '\n' | '\t'));
    assert!(found.is_none(), "{found:?} in {text:?}");
}

/// How data is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    Json,
    Yaml,
}

/// The value that a data format shows; null for none.
///
/// # Panics
/// It cannot be read again.
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
