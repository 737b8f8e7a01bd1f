//! Validates existing custom resources against the new schemas of their CustomResourceDefinition (olm-behaviour/installplan.md#crds).
//! Custom resources are not watched, so the check is requested from the shell, and its result is used for a limited time.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::install_plan::InstallPlan;
use crate::api::object;
use crate::api::status::Status;
use crate::structural::{SchemaCheck, SchemaCheckResult, Violation};
use crate::world::Reader;

/// How long a successful check is valid: other steps may come first.
const BELIEVED: SignedDuration = SignedDuration::from_secs(30);
/// Time until a failed check is repeated, if no change of a custom resource is observed before.
const AGAIN: SignedDuration = SignedDuration::from_secs(30);
/// Shortest time until custom resources that could not be read are read again. The pause grows with the time since the start of the plan.
const READ_AGAIN: SignedDuration = SignedDuration::from_secs(5);
/// Longest time until they are read again.
const READ_LATEST: SignedDuration = SignedDuration::from_mins(5);

/// The result of a check.
pub(super) enum Existing {
    /// The custom resources are valid, or there is no version to compare.
    Valid,
    /// The check has to be requested.
    Unknown(SchemaCheck),
    /// Custom resources are invalid: the message, and when they are checked again.
    Invalid(String, Timestamp),
    /// They could not be read: the refusal, and when they are read again.
    Unreadable(Status, Timestamp),
}

/// Returns the result of the check of the custom resources whose definition is to be replaced.
pub(super) fn existing(world: &Reader<'_>, plan: &Value, live: &Value, desired: &Value, now: Timestamp) -> Existing {
    let Some(question) = question(live, desired) else { return Existing::Valid };
    let Some(found) = world.schema_check(&question) else { return Existing::Unknown(question) };
    let started = InstallPlan::new(plan).started().unwrap_or(found.at);
    let lasts = match &found.refusal {
        _ if found.invalid > 0 => AGAIN,
        Some(_) => ((found.at.duration_since(started)) / 2).clamp(READ_AGAIN, READ_LATEST),
        None => BELIEVED,
    };
    let until = found.at + lasts;
    if now >= until {
        return Existing::Unknown(question);
    }
    match &found.refusal {
        // Invalid objects that were found before the refusal count nevertheless.
        _ if found.invalid > 0 => Existing::Invalid(message(&question, found), until),
        Some(refusal) => Existing::Unreadable(refusal.clone(), until),
        None => Existing::Valid,
    }
}

/// Returns the check to request, for every version that is served before and after. `None` if there is no such version, or no schema.
pub(super) fn question(live: &Value, desired: &Value) -> Option<SchemaCheck> {
    let served = |crd: &Value| -> Vec<(String, Value)> {
        // A v1beta1 definition may have one schema for all its versions.
        let of_all = object::at(crd, &["spec", "validation", "openAPIV3Schema"]);
        let schema = |v: &Value| match object::at(v, &["schema", "openAPIV3Schema"]) {
            Value::Null => of_all.clone(),
            schema => schema.clone(),
        };
        let versions = CustomResourceDefinition::new(crd).served();
        versions.map(|version| (version.name().to_owned(), schema(version.json))).collect()
    };
    let new = served(desired);
    let mut schemas = Vec::new();
    for (version, _) in served(live) {
        let schema = new.iter().find(|(name, schema)| *name == version && schema.is_object());
        schemas.extend(schema.cloned());
    }
    let live = CustomResourceDefinition::new(live);
    (!schemas.is_empty()).then(|| SchemaCheck {
        crd: live.name().to_owned(),
        group: live.group().to_owned(),
        kind: live.kind().to_owned(),
        plural: live.plural().to_owned(),
        namespaced: live.is_namespaced(),
        schemas,
    })
}

/// Formats the first violation with OLM's message, then others by name and field, then their number.
fn message(question: &SchemaCheck, found: &SchemaCheckResult) -> String {
    let [first, others @ ..] = &found.first[..] else { return String::new() };
    let Violation { version, name, problem } = first;
    let SchemaCheck { group, kind, .. } = question;
    let mut message = format!(
        "error validating {group}/{version}, Kind={kind} {name:?}: updated validation is too restrictive: {problem}"
    );
    for Violation { version, name, problem } in others {
        message += &format!("; {version} {name:?}: {problem}");
    }
    let named = found.first.len() as u64;
    if found.invalid > named {
        message += &format!("; and {} more of {}", found.invalid - named, found.looked_at);
    }
    message
}

/// Adds OLM's prefix to a message.
pub(super) fn prefixed(crd: &str, problem: &str) -> String {
    format!("error validating existing CRs against new CRD's schema for {crd:?}: {problem}")
}
