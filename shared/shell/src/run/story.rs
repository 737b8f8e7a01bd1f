//! What happened in a simulation, told in lines: time, object, what, why.

use std::collections::BTreeMap;

use jiff::Timestamp;
use olm_core::api::object::{self, ObjectRef};
use olm_core::plan::{Controller, Key};
use olm_core::sim::{Actor, Happening, WatchEvent};
use serde_json::Value;

use crate::cli::table::Table;

/// Tells happenings one after the other.
pub(super) struct Story {
    began: Timestamp,
    last: BTreeMap<ObjectRef, Value>,
    pub(super) table: Table,
}

impl Story {
    pub(super) fn from(began: Timestamp) -> Self {
        Self { began, last: BTreeMap::new(), table: Table::new(["TIME", "OBJECT", "WHAT", "WHY"]) }
    }

    /// A step of a script begins.
    pub(super) fn step(&mut self, at: Timestamp, name: &str) {
        self.table.row([self.time(at), "-".to_owned(), format!("step: {name}"), "given".to_owned()]);
    }

    fn time(&self, at: Timestamp) -> String {
        let after = at.duration_since(self.began);
        format!("{}.{:03}s", after.as_secs(), after.subsec_millis())
    }

    /// Adds what is worth telling.
    pub(super) fn tell(&mut self, happenings: Vec<Happening>) {
        for Happening { at, actor, change } in happenings {
            let target = ObjectRef::of(change.object());
            if ["Event", "ReplicaSet"].contains(&target.gvk.kind.as_str()) {
                continue;
            }
            let (what, new) = match change {
                WatchEvent::Added(new) => (Some(created(&new)), Some(new)),
                WatchEvent::Modified(new) => {
                    let nothing = Value::Null;
                    (changed(self.last.get(&target).unwrap_or(&nothing), &new), Some(new))
                }
                WatchEvent::Deleted(_) => (Some("deleted".to_owned()), None),
            };
            if let Some(what) = what {
                self.table.row([self.time(at), target.to_string(), what, why(&actor)]);
            }
            match new {
                Some(new) => self.last.insert(target, new),
                None => self.last.remove(&target),
            };
        }
    }
}

fn created(new: &Value) -> String {
    match state(new) {
        Some(state) => format!("created, {state}"),
        None => "created".to_owned(),
    }
}

/// The state of an object in few words, for kinds that have one.
fn state(object: &Value) -> Option<String> {
    let status = |field| object::text(object, &["status", field]);
    let condition =
        |t: &str| object::list(object, &["status", "conditions"]).iter().find(|c| object::text(c, &["type"]) == t);
    let is_true = |t: &str| condition(t).is_some_and(|c| object::text(c, &["status"]) == "True");
    let text = match object::text(object, &["kind"]) {
        "ClusterServiceVersion" => match (status("phase"), status("reason"), status("message")) {
            ("", ..) => return None,
            (phase, reason, message) => format!("{phase} ({reason}): {message}"),
        },
        "InstallPlan" => match (status("phase"), status("message")) {
            ("", _) => return None,
            (phase, "") => phase.to_owned(),
            (phase, message) => format!("{phase}: {message}"),
        },
        "Subscription" => {
            let failed = condition("ResolutionFailed").filter(|c| object::text(c, &["status"]) == "True");
            match (status("state"), failed) {
                (_, Some(failed)) => format!("resolution failed: {}", object::text(failed, &["message"])),
                ("", None) => return None,
                (state, None) => format!("{state} {}", status("currentCSV")),
            }
        }
        "CatalogSource" => match object::text(object, &["status", "connectionState", "lastObservedState"]) {
            "" => return None,
            state => format!("connection {state}"),
        },
        "CustomResourceDefinition" if is_true("Established") => "established".to_owned(),
        "Deployment" if is_true("Available") => "available".to_owned(),
        "Deployment" => match condition("Progressing") {
            Some(c) if object::text(c, &["status"]) == "False" => object::text(c, &["message"]).to_owned(),
            _ => return None,
        },
        _ => return None,
    };
    Some(text)
}

/// What changed, if it is worth a line.
fn changed(old: &Value, new: &Value) -> Option<String> {
    if object::is_deleting(new) && !object::is_deleting(old) {
        return Some("is being deleted".to_owned());
    }
    if let Some(state) = state(new)
        && self::state(old).as_ref() != Some(&state)
    {
        return Some(state);
    }
    if ["InstallPlan", "Subscription", "CatalogSource"].contains(&object::text(new, &["kind"]))
        && object::at(old, &["spec"]) != object::at(new, &["spec"])
    {
        return Some("spec changed".to_owned());
    }
    None
}

fn why(actor: &Actor) -> String {
    match actor {
        Actor::User => "given".to_owned(),
        Actor::Kubernetes => "Kubernetes".to_owned(),
        Actor::Controller(Key { controller, namespace, name }) => {
            let what = match controller {
                Controller::Resolution => return format!("resolution of namespace {name}"),
                Controller::CopiedCsv => "copies of ClusterServiceVersion",
                Controller::Adoption => "component labels of",
                Controller::ClusterServiceVersion => "ClusterServiceVersion",
                Controller::CatalogSource => "CatalogSource",
                Controller::InstallPlan => "InstallPlan",
                Controller::OperatorGroup => "OperatorGroup",
                Controller::Namespace => "labels of namespace",
                Controller::ProvidedApiRoles => "roles for the APIs of ClusterServiceVersion",
                Controller::OperatorCondition => "OperatorCondition",
                Controller::Operator => "Operator",
                Controller::OlmConfig => "OLMConfig",
            };
            if namespace.is_empty() { format!("{what} {name}") } else { format!("{what} {namespace}/{name}") }
        }
    }
}
