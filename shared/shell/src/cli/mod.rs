//! What every plugin shares on its command line: kubectl's flags and habits, streams, tables, prompts, errors, logging.
//!
//! ```text
//!   main     parses the arguments, calls the plugin's body, turns its answer into text and an exit code
//!    ├ name       how the user spells this program: `kubectl olm run`
//!    ├ flags      kubectl's flags as clap arguments      ─ connect    flags -> kube's configuration; selector: -l
//!    ├ streams    stdout is data, stderr is talk         ─ confirm, progress: talk on a terminal only; paint: colours
//!    ├ output     -o json|yaml|name|wide|jsonpath=…      ─ table, jsonpath, columns
//!    ├ list       the flags of list commands, and what they do
//!    ├ findings   what is wrong with files, in the forms that tools read
//!    ├ error      what was refused, where, why, what next
//!    ├ logging    log lines on stderr
//!    └ signal     the end of what runs until told to stop
//! ```

pub mod columns;
pub mod confirm;
pub mod connect;
pub mod error;
pub mod findings;
pub mod flags;
pub mod jsonpath;
pub mod list;
pub mod logging;
pub mod main;
pub mod name;
pub mod output;
pub mod paint;
pub mod progress;
pub mod selector;
pub mod signal;
pub mod streams;
pub mod table;
pub mod visible;
pub(crate) mod wait;

pub use error::{CliError, ErrorKind};
pub use main::{Outcome, main};
pub use streams::Printer;
