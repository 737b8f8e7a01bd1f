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
use serde_json::value::RawValue;

use super::kinds::{self, Kind};

const TEXT: &str = include_str!("crds.json");

static ALL: LazyLock<Vec<Value>> = LazyLock::new(|| serde_json::from_str(TEXT).unwrap_or_default());

/// Returns all eight, by kind. They are parsed at the first call, within a few milliseconds.
pub fn all() -> Vec<Value> {
    ALL.clone()
}

/// Returns the names of all, in the order of [`all`]. Nothing is parsed.
pub fn names() -> Vec<String> {
    let kinds = kinds::ALL.iter().filter(|kind| kind.group == kinds::OLM_GROUP);
    let mut names: Vec<String> = kinds.map(Kind::resource).collect();
    names.sort();
    names
}

/// Returns the definition of one of OLM's kinds; null for another kind. Only this definition is parsed.
pub fn of(kind: &Kind) -> Value {
    let all: Vec<&RawValue> = serde_json::from_str(TEXT).unwrap_or_default();
    let name = kind.resource();
    let position = names().iter().position(|known| *known == name);
    let found = position.and_then(|position| all.get(position));
    found.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
