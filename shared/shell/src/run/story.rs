//! What happened in a simulation, told to a person: under each cause what it changed.
//!
//! ```text
//!   0.010s  resolution of namespace garden
//!             created InstallPlan install-qq9ck
//!             Subscription rose: UpgradePending rose.v1.0.0
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::resource::GROUP;
use olm_core::plan::{Controller, Key};
use olm_core::sim::{Actor, Happening, WatchEvent};
use serde_json::Value;

/// Longer lines are continued on the next one, so that they fit into most terminals. The same in a pipe: what is compared with
/// an earlier story must not depend on the window.
const WIDTH: usize = 100;

/// Gathers happenings; `Display` tells them.
pub(super) struct Story {
    began: Timestamp,
    last: BTreeMap<ObjectRef, Arc<Value>>,
    scenes: Vec<Scene>,
}

/// What one cause changed without a break.
struct Scene {
    at: Timestamp,
    cause: Cause,
    changes: Vec<(ObjectRef, Change)>,
}

#[derive(PartialEq)]
enum Cause {
    /// What the user wrote, in a step of a script.
    Step(String),
    Actor(Actor),
}

enum Change {
    Created,
    Deleted,
    /// It is now as these words say.
    Is(String),
}

impl Story {
    pub(super) fn from(began: Timestamp) -> Self {
        Self { began, last: BTreeMap::new(), scenes: Vec::new() }
    }

    /// A step of a script begins.
    pub(super) fn step(&mut self, at: Timestamp, name: &str) {
        self.scenes.push(Scene { at, cause: Cause::Step(name.to_owned()), changes: Vec::new() });
    }

    /// Adds what is worth telling.
    pub(super) fn tell(&mut self, happenings: Vec<Happening>) {
        for Happening { at, actor, change } in happenings {
            let target = ObjectRef::of(change.object());
            if is_furniture(&target) {
                continue;
            }
            let (changes, new) = match change {
                WatchEvent::Added(new) => {
                    let state = state(&new).map(Change::Is);
                    ([Some(Change::Created), state], Some(new))
                }
                WatchEvent::Modified(new) => {
                    let old = self.last.get(&target).map_or(&Value::Null, Arc::as_ref);
                    ([changed(old, &new).map(Change::Is), None], Some(new))
                }
                WatchEvent::Deleted(_) => ([Some(Change::Deleted), None], None),
            };
            for change in changes.into_iter().flatten() {
                self.add(at, &actor, (target.clone(), change));
            }
            match new {
                Some(new) => self.last.insert(target, new),
                None => self.last.remove(&target),
            };
        }
    }

    fn add(&mut self, at: Timestamp, actor: &Actor, change: (ObjectRef, Change)) {
        match self.scenes.last_mut() {
            Some(scene) if scene.cause.is(actor) => scene.changes.push(change),
            _ => self.scenes.push(Scene { at, cause: Cause::Actor(actor.clone()), changes: vec![change] }),
        }
    }

    /// The namespace that everything is in which is in one.
    fn only_namespace(&self) -> Option<&str> {
        let targets = self.scenes.iter().flat_map(|scene| &scene.changes).map(|(target, _)| target);
        let namespaces: BTreeSet<&str> = targets.map(|t| t.namespace.as_str()).filter(|n| !n.is_empty()).collect();
        if namespaces.len() == 1 { namespaces.first().copied() } else { None }
    }
}

impl Cause {
    /// Does what that actor does belong here?
    fn is(&self, actor: &Actor) -> bool {
        match self {
            Self::Step(_) => *actor == Actor::User,
            Self::Actor(known) => known == actor,
        }
    }

    /// Is it for that object that something was done?
    fn is_for(&self, target: &ObjectRef) -> bool {
        let Self::Actor(Actor::Controller(Key { controller, namespace, name })) = self else { return false };
        own_kind(*controller) == Some(target.gvk.kind.as_str())
            && target.gvk.group == GROUP
            && (&target.namespace, &target.name) == (namespace, name)
    }

    fn words(&self, only: Option<&str>) -> String {
        let Key { controller, namespace, name } = match self {
            Self::Step(name) => return format!("step: {name}"),
            Self::Actor(Actor::User) => return "given".to_owned(),
            Self::Actor(Actor::Kubernetes) => return "Kubernetes".to_owned(),
            Self::Actor(Actor::Controller(key)) => key,
        };
        let subject = path(namespace, name, only);
        match controller {
            Controller::Resolution => format!("resolution of namespace {subject}"),
            Controller::Namespace => format!("labels of namespace {subject}"),
            Controller::CopiedCsv => format!("copies of ClusterServiceVersion {subject}"),
            Controller::Adoption => format!("component labels of {subject}"),
            Controller::ProvidedApiRoles => format!("roles for the APIs of ClusterServiceVersion {subject}"),
            other => format!("{} {subject}", own_kind(*other).unwrap_or_default()),
        }
    }
}

/// The kind that a controller is called after.
fn own_kind(controller: Controller) -> Option<&'static str> {
    Some(match controller {
        Controller::CatalogSource => "CatalogSource",
        Controller::ClusterServiceVersion => "ClusterServiceVersion",
        Controller::InstallPlan => "InstallPlan",
        Controller::OlmConfig => "OLMConfig",
        Controller::Operator => "Operator",
        Controller::OperatorCondition => "OperatorCondition",
        Controller::OperatorGroup => "OperatorGroup",
        Controller::Adoption
        | Controller::CopiedCsv
        | Controller::Namespace
        | Controller::ProvidedApiRoles
        | Controller::Resolution => return None,
    })
}

/// Every namespace has it, and nobody asks about it.
fn is_furniture(target: &ObjectRef) -> bool {
    match target.gvk.kind.as_str() {
        "Event" | "ReplicaSet" => true,
        "ServiceAccount" => target.name == "default",
        "ConfigMap" => target.name == "kube-root-ca.crt",
        _ => false,
    }
}

/// `namespace/name`; the name alone when it is cluster-scoped, or in the only namespace.
fn path(namespace: &str, name: &str, only: Option<&str>) -> String {
    if namespace.is_empty() || only == Some(namespace) { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let only = self.only_namespace();
        if let Some(namespace) = only {
            writeln!(f, "Namespace {namespace}:")?;
        }
        for Scene { at, cause, changes } in &self.scenes {
            let time = seconds(at.duration_since(self.began));
            let indent = " ".repeat(time.len() + 4);
            let line = |(target, change): &(ObjectRef, Change)| match change {
                Change::Is(words) if cause.is_for(target) => words.clone(),
                change => {
                    let object = format!("{} {}", target.gvk.kind, path(&target.namespace, &target.name, only));
                    match change {
                        Change::Created => format!("created {object}"),
                        Change::Deleted => format!("deleted {object}"),
                        Change::Is(words) => format!("{object}: {words}"),
                    }
                }
            };
            let words = cause.words(only);
            match changes.as_slice() {
                // The cause and what became of it, in one sentence.
                [one @ (target, Change::Is(_))] if cause.is_for(target) => {
                    write_wrapped(f, &format!("{time}  "), &indent, &format!("{words}: {}", line(one)))?;
                }
                changes => {
                    write_wrapped(f, &format!("{time}  "), &indent, &words)?;
                    for change in changes {
                        write_wrapped(f, &indent, &format!("{indent}  "), &line(change))?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn seconds(time: SignedDuration) -> String {
    format!("{}.{:03}s", time.as_secs(), time.subsec_millis())
}

/// Writes words after a lead, continued after an indent where the line is full. Words are not broken.
fn write_wrapped(f: &mut fmt::Formatter<'_>, lead: &str, indent: &str, words: &str) -> fmt::Result {
    let mut line = lead.to_owned();
    let mut is_empty = true;
    for word in words.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(f, "{line}")?;
            indent.clone_into(&mut line);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    writeln!(f, "{line}")
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

#[cfg(test)]
mod tests;
