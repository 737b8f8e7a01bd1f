//! The CustomResourceDefinitions of OLM's kinds.
//!
//! ```text
//!   types --------+
//!   kubernetes ---+--> generate --(a house test)--> crds.json --> all
//! ```
//! They are data when the program runs, so that neither the generator nor what it is told about the types is in the plugins.

pub mod generate;
pub mod kubernetes;
pub mod types;

use std::sync::LazyLock;

use serde_json::Value;

static ALL: LazyLock<Vec<Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("crds.json")).unwrap_or_default());

/// All eight, by kind. Read once, at the first call, in a few milliseconds.
pub fn all() -> Vec<Value> {
    ALL.clone()
}

#[cfg(test)]
mod tests;
