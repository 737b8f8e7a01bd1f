//! The rules of this repository, as functions that return violations. `tests/house.rs` runs them.
//!
//! ```text
//!   sources     the files of the repository, and Rust files parsed
//!    ├ layers     who may import whom, by `use` and by Cargo.toml
//!    ├ purity     what the core must not touch
//!    ├ manifests  Cargo.toml: versions and lints live in the root, and nothing is unused
//!    ├ words      what text must not say, and what documentation must not promise
//!    ├ citations  what comments and documents cite exists
//!    └ generated  files that a program writes are as it would write them today
//!   descriptions  what `kubectl explain` prints about OLM's kinds says something
//! ```

pub mod citations;
pub mod descriptions;
pub mod generated;
pub mod krew;
pub mod layers;
pub mod manifests;
pub mod purity;
pub mod sources;
#[cfg(test)]
mod tests;
pub mod words;

use std::fmt;
use std::path::PathBuf;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root of the repository.
    pub file: PathBuf,
    /// The line, from 1; 0 refers to the whole file.
    pub line: usize,
    /// What is wrong, and how to fix it.
    pub what: String,
}

impl Finding {
    /// Creates a finding for a line of a file.
    pub fn new(file: impl Into<PathBuf>, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.into(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, what } = self;
        write!(f, "{}:{line}: {what}", file.display())
    }
}
