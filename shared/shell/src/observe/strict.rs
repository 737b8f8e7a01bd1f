//! Fields that no API server knows, in files.
//!
//! kubectl asks the API server to be strict (`fieldValidation=Strict`): a field that is misspelt is refused, not dropped. So are objects
//! that people wrote. An object with a uid comes from a server, which may be newer than what is known here: its fields are taken as they
//! are, with a warning. So are those of kinds that are not OLM's in files that were found in a folder that was gathered: there is more in
//! such folders than what is asked about, templates and the like.

use std::collections::BTreeMap;

use olm_core::api::object::{self, ObjectRef};
use olm_core::sim::Strict;
use olm_core::yaml::Step;

use super::Warn;
use super::error::Error;
use super::files::Given;

/// Checks the fields of objects that are given together. CustomResourceDefinitions among them count.
///
/// # Errors
/// Objects that people wrote have unknown fields: all of them are told.
pub(crate) fn check(given: &[Given], strict: &mut Strict, warn: Warn<'_>) -> Result<(), Error> {
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
            // Nobody writes a status.
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
