//! Validation errors of the API server, in its own words: one `field: problem` each.

mod builtin;
mod crd;
mod metadata;

use serde_json::Value;

use super::kinds::{KindSchema, KindVersion, ResourceKind};
use crate::api::object::name;
use crate::api::status::Status;
use crate::structural::{blocks_rules, has_rules, problems};

/// Returns the problems of a CustomResourceDefinition in `v1`: `FIELD: PROBLEM` each.
pub fn definition_problems(crd: &Value) -> Vec<String> {
    let mut found = Vec::new();
    crd::problems(crd, &mut found);
    found
}

/// Refuses an invalid new object.
pub(super) fn on_create(kind: &ResourceKind, version: &KindVersion, object: &Value) -> Result<(), Status> {
    refusal(kind, object, problems_on_create(kind, version, object))
}

/// Returns the problems of a new object.
pub(super) fn problems_on_create(kind: &ResourceKind, version: &KindVersion, object: &Value) -> Vec<String> {
    let mut found = metadata::problems(kind, object);
    found.extend(content(kind, version, object));
    found
}

/// Refuses an object that is invalid or may not replace the stored one.
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
        KindSchema::Structural(schema) => of_custom_resource(schema, object),
        KindSchema::Anything => Vec::new(),
    }
}

fn of_custom_resource(schema: &Value, object: &Value) -> Vec<String> {
    let mut found = problems(schema, object);
    if found.iter().any(|problem| blocks_rules(problem)) && has_rules(schema) {
        found.push("<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation".into());
    }
    found
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
