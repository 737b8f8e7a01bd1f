//! Refuses unknown fields in files.
//!
//! kubectl requests strict validation from the API server (`fieldValidation=Strict`): a misspelt field is refused, not dropped. The same
//! applies to manifests in files. An object with a UID comes from an API server, which may be newer than this program: its unknown fields
//! are accepted with a warning. The same applies to kinds of other groups than OLM's in files that were found in a gathered directory,
//! which may contain unrelated files such as templates.

use std::collections::BTreeMap;

use olm_core::api::object::{self, ObjectRef};
use olm_core::sim::Strict;
use olm_core::yaml::Step;

use super::Warn;
use super::error::Error;
use super::files::InputObject;

/// Checks the fields of objects that belong together, with the CustomResourceDefinitions among them.
///
/// # Errors
/// Manifests have unknown fields. The error contains all of them.
pub(crate) fn check(given: &[InputObject], strict: &mut Strict, warn: Warn<'_>) -> Result<(), Error> {
    for given in given {
        strict.define(&given.object);
    }
    let mut errors = Vec::new();
    let mut excused: BTreeMap<String, String> = BTreeMap::new();
    for given in given {
        let what = ObjectRef::from_object(&given.object);
        let is_beside = given.is_found && !what.gvk.group.ends_with("operators.coreos.com");
        let is_excused = is_beside || !object::uid(&given.object).is_empty();
        for field in strict.unknown_fields(&given.object) {
            // Users do not write a status.
            if is_excused || field.path.first() == Some(&Step::Field("status".to_owned())) {
                let first = || format!("{}: {field} of {what}", given.place_of(&field.path));
                excused.entry(format!("{} {field}", what.gvk.kind)).or_insert_with(first);
                continue;
            }
            errors.push(Error::UnknownField {
                field: field.to_string(),
                object: Box::new(what.clone()),
                instead: field.similar.as_ref().map(|other| field.beside(other)),
                place: given.place_of(&field.path),
            });
        }
    }
    let n = excused.len();
    if let Some(first) = excused.into_values().next() {
        let more = if n == 1 { String::new() } else { format!(", and {} more", n - 1) };
        warn(format!("unknown fields are ignored: {first}{more}"));
    }
    Error::all(errors)
}
