//! What the API server refuses as invalid, in its own words: one `field: problem` each.

mod builtin;
mod crd;
mod metadata;
pub(super) mod structural;

use serde_json::Value;

use super::kinds::{KindSchema, KindVersion, ResourceKind};
use crate::api::object::name;
use crate::api::status::Status;

/// Refuses a new object that is invalid.
pub(super) fn on_create(kind: &ResourceKind, version: &KindVersion, object: &Value) -> Result<(), Status> {
    let mut found = metadata::problems(kind, object);
    found.extend(content(kind, version, object));
    refusal(kind, object, found)
}

/// Refuses an object that is invalid in itself or may not replace the stored one.
pub(super) fn on_update(
    kind: &ResourceKind,
    version: &KindVersion,
    object: &Value,
    stored: &Value,
) -> Result<(), Status> {
    let mut found = metadata::update_problems(object, stored);
    found.extend(metadata::problems(kind, object));
    found.extend(content(kind, version, object));
    if kind.is_built_in() {
        found.extend(builtin::update_problems(kind, object, stored));
    }
    refusal(kind, object, found)
}

fn content(kind: &ResourceKind, version: &KindVersion, object: &Value) -> Vec<String> {
    match &version.schema {
        KindSchema::BuiltIn(_) => builtin::problems(kind, object),
        KindSchema::Structural(schema) => structural::problems(schema, object),
        KindSchema::Anything => Vec::new(),
    }
}

fn refusal(kind: &ResourceKind, object: &Value, mut found: Vec<String>) -> Result<(), Status> {
    let problems = match found.len() {
        0 => return Ok(()),
        1 => found.remove(0),
        _ => {
            let mut seen = std::collections::BTreeSet::new();
            found.retain(|problem| seen.insert(problem.clone()));
            if found.len() == 1 { found.remove(0) } else { format!("[{}]", found.join(", ")) }
        }
    };
    let message = format!("{} {:?} is invalid: {problems}", kind.qualified_kind(), name(object));
    Err(Status::new(422, "Invalid", message))
}
