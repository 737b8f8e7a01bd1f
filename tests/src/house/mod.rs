//! The rules of this repository, as functions that return violations. `tests/tests/house` runs them.
//!
//! ```text
//!   sources     the files of the repository, and parsed Rust files
//!    ├ layers     permitted imports, by `use` and by Cargo.toml
//!    ├ purity     no side effects in the core
//!    ├ manifests  Cargo.toml: versions and lints are defined in the root, and nothing is unused
//!    ├ words      forbidden text, and documentation of commands that do not exist
//!    ├ vocabulary plain English in comments, messages and Markdown
//!    ├ citations  cited documents, headings and files exist
//!    ├ changelog  each version has a section in CHANGELOG.md
//!    ├ workflows  workflows are valid, and call files that exist
//!    └ generated  generated files are up to date
//!   descriptions  useful descriptions for `kubectl explain` of OLM's kinds, and in the schemas of output
//! ```

pub mod changelog;
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
pub mod vocabulary;
pub mod words;
pub mod workflows;

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
