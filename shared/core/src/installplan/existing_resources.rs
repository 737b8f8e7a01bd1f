//! Do the custom resources that exist fit the schemas that their CustomResourceDefinition is to have (olm-behaviour/installplan.md#crds)?
//! Nobody watches them, so it is asked, and what was found is believed for a while.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::api::install_plan::InstallPlan;
use crate::api::object;
use crate::api::status::Status;
use crate::structural::{SchemaCheck, SchemaCheckResult, Violation};
use crate::world::Reader;

/// How long it is believed that they fit: other steps may come first.
const BELIEVED: SignedDuration = SignedDuration::from_secs(30);
/// How soon they are looked at again when they do not, if nobody sees one of them change: then it is at once.
const AGAIN: SignedDuration = SignedDuration::from_secs(30);
/// How soon they are read again when they could not be. The pause grows with the time that has passed since the plan was started.
const READ_AGAIN: SignedDuration = SignedDuration::from_secs(5);
/// The longest pause.
const READ_LATEST: SignedDuration = SignedDuration::from_mins(5);

/// The answer.
pub(super) enum Existing {
    /// They do, or there is no version to compare.
    Valid,
    /// This has to be asked.
    Unknown(SchemaCheck),
    /// They do not, in a sentence. They are looked at again at that time.
    Invalid(String, Timestamp),
    /// They could not be read. That is tried again at that time.
    Unreadable(Status, Timestamp),
}

/// Looks at what is known of the custom resources of a definition that is to be replaced.
pub(super) fn existing(world: &Reader<'_>, plan: &Value, live: &Value, desired: &Value, now: Timestamp) -> Existing {
    let Some(question) = question(live, desired) else { return Existing::Valid };
    let Some(found) = world.schema_check(&question) else { return Existing::Unknown(question) };
    let started = InstallPlan::of(plan).started().unwrap_or(found.at);
    let lasts = match &found.refusal {
        _ if found.misfits > 0 => AGAIN,
        Some(_) => ((found.at.duration_since(started)) / 2).clamp(READ_AGAIN, READ_LATEST),
        None => BELIEVED,
    };
    let until = found.at + lasts;
    if now >= until {
        return Existing::Unknown(question);
    }
    match &found.refusal {
        // What was found before that is certain all the same.
        _ if found.misfits > 0 => Existing::Invalid(told(&question, found), until),
        Some(refusal) => Existing::Unreadable(refusal.clone(), until),
        None => Existing::Valid,
    }
}

/// What is to be asked: about every version that is served now, and will be. None: there is no such version, or no schema.
pub(super) fn question(live: &Value, desired: &Value) -> Option<SchemaCheck> {
    let served = |crd: &Value| -> Vec<(String, Value)> {
        let versions = object::list(crd, &["spec", "versions"]).iter();
        let versions = versions.filter(|v| object::at(v, &["served"]) == &Value::Bool(true));
        // A v1beta1 definition may have one schema for all its versions.
        let of_all = object::at(crd, &["spec", "validation", "openAPIV3Schema"]);
        let schema = |v: &Value| match object::at(v, &["schema", "openAPIV3Schema"]) {
            Value::Null => of_all.clone(),
            schema => schema.clone(),
        };
        versions.map(|v| (object::text(v, &["name"]).to_owned(), schema(v))).collect()
    };
    let new = served(desired);
    let mut schemas = Vec::new();
    for (version, _) in served(live) {
        let schema = new.iter().find(|(name, schema)| *name == version && schema.is_object());
        schemas.extend(schema.cloned());
    }
    let of = |path: &[&str]| object::text(live, path).to_owned();
    (!schemas.is_empty()).then(|| SchemaCheck {
        crd: object::name(live).to_owned(),
        group: of(&["spec", "group"]),
        kind: of(&["spec", "names", "kind"]),
        plural: of(&["spec", "names", "plural"]),
        namespaced: of(&["spec", "scope"]) != "Cluster",
        schemas,
    })
}

/// The first in OLM's words, then others by name and field, then how many there are.
fn told(question: &SchemaCheck, found: &SchemaCheckResult) -> String {
    let [first, others @ ..] = &found.first[..] else { return String::new() };
    let Violation { version, name, problem } = first;
    let SchemaCheck { group, kind, .. } = question;
    let mut told = format!(
        "error validating {group}/{version}, Kind={kind} {name:?}: updated validation is too restrictive: {problem}"
    );
    for Violation { version, name, problem } in others {
        told += &format!("; {version} {name:?}: {problem}");
    }
    let named = found.first.len() as u64;
    if found.misfits > named {
        told += &format!("; and {} more of {}", found.misfits - named, found.looked_at);
    }
    told
}

/// OLM's words before whatever is wrong.
pub(super) fn prefixed(crd: &str, problem: &str) -> String {
    format!("error validating existing CRs against new CRD's schema for {crd:?}: {problem}")
}
