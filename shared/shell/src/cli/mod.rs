//! What every plugin shares on its command line: kubectl's flags and habits, streams, tables, prompts, logging.
//!
//! ```text
//!   name       how the user spells this program: `kubectl olm run`
//!   flags      kubectl's flags as clap arguments      ─ connect    flags -> kube's configuration; selector: -l
//!   source     flags -> the state of a cluster, or of files
//!   streams    stdout is data, stderr is talk         ─ confirm, progress: talk on a terminal only; paint: colours
//!   output     -o json|yaml|name|wide|jsonpath=…      ─ data, table, jsonpath, columns
//!   list       the flags of list commands, and what they do
//!   errors     errors of the library modules -> kind, place, hints and causes
//!   findings   what is wrong with files, in the forms that tools read
//!   logging    log lines on stderr
//!   outcome    how a command ends, and its exit code
//!   signal     the end of what runs until told to stop
//! ```

pub mod columns;
pub mod confirm;
pub mod connect;
pub mod data;
pub(crate) mod errors;
pub mod findings;
pub mod flags;
pub mod jsonpath;
pub mod list;
pub mod logging;
pub mod name;
pub mod outcome;
pub mod output;
pub mod paint;
pub mod progress;
pub mod selector;
pub mod signal;
pub mod source;
pub mod streams;
pub mod table;

pub use outcome::Outcome;
pub use streams::Printer;

pub use crate::error::{CliError, ErrorKind};
