//! The command line interface shared by all plugins: kubectl's flags and conventions, streams, tables, prompts,
//! logging.
//!
//! ```text
//!   name       the program name as called: `kubectl olm run`
//!   flags      kubectl's flags as clap arguments      ─ connect    flags -> kube's configuration; selector: -l
//!   source     flags -> the state of a cluster, or of files
//!   registries flags -> credentials for registries
//!   streams    data on stdout, messages on stderr     ─ prompt, progress: only on a terminal; paint: colours
//!   output     -o json|yaml|name|wide|jsonpath=…      ─ data, table, jsonpath, columns
//!   page       -o html: one file without scripts, of limited size
//!   list       the flags and the printing of list commands
//!   errors     errors of the library modules -> error: kind, location, hints and causes
//!   findings   findings about files, in formats for tools ─ baseline   known findings to omit
//!   problems   problems of objects, with their fixes  ─ findings
//!   logging    log lines on stderr
//!   replace    replaces several files, or none
//!   outcome    the outcome of a command, and its exit code
//!   signal     termination signals
//! ```

pub(crate) mod baseline;
pub mod columns;
pub mod connect;
pub mod data;
mod error;
pub mod errors;
pub mod findings;
pub mod flags;
pub mod jsonpath;
pub mod list;
pub mod logging;
pub mod name;
pub mod outcome;
pub mod output;
pub(crate) mod page;
pub mod paint;
pub(crate) mod problems;
pub mod progress;
pub mod prompt;
pub(crate) mod registries;
pub(crate) mod replace;
pub mod selector;
pub mod signal;
pub mod source;
pub mod streams;
pub mod table;

pub use error::{CliError, ErrorKind};
pub use outcome::Outcome;
pub use streams::Printer;
