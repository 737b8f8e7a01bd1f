//! The CustomResourceDefinitions of OLM's kinds.
//!
//! ```text
//!   types --------+
//!   kubernetes ---+--> generate --(a repository rule)--> crds.json --> all
//! ```
//! They are data at runtime, so that neither the generator nor its type information is part of the plugins.

pub mod generate;
pub mod kubernetes;
pub mod types;

use std::sync::LazyLock;

use serde_json::Value;

static ALL: LazyLock<Vec<Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("crds.json")).unwrap_or_default());

/// Returns all eight, by kind. They are parsed at the first call, within a few milliseconds.
pub fn all() -> Vec<Value> {
    ALL.clone()
}

#[cfg(test)]
mod tests;
