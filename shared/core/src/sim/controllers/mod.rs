//! Kubernetes' own controllers, as far as OLM sees what they do. Each looks at the objects and takes its next step through
//! the API server's own requests; none keeps a state of its own.

mod api_services;
mod cluster_roles;
mod definitions;
mod deployments;
mod disruption;
mod garbage;
mod jobs;
mod namespaces;
mod replica_sets;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::api_server::{ApiServer, time};
use super::writes::{Preconditions, Propagation};
use crate::api::object::{ObjectRef, at, list, map_mut, text, uid};

impl ApiServer {
    /// Lets every controller take one step at time `now`; true when something changed. What takes several writes in a real
    /// cluster (a rollout, the end of a namespace) takes several steps here, so that what is between can be seen.
    pub fn step(&mut self, now: Timestamp) -> bool {
        let due = self.next_wakeup.is_some_and(|due| due <= now);
        let before = self.store.resource_version();
        if self.quiet_at == Some(before) && !due {
            return false;
        }
        self.next_wakeup = None;
        definitions::step(self, now);
        namespaces::step(self, now);
        cluster_roles::step(self, now);
        replica_sets::step(self, now);
        deployments::step(self, now);
        jobs::step(self, now);
        disruption::step(self, now);
        api_services::step(self, now);
        garbage::step(self, now);
        let after = self.store.resource_version();
        self.quiet_at = (after == before).then_some(after);
        after != before
    }

    /// When a controller will act by itself next: a Deployment's deadline, a finished Job's time to live.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        self.next_wakeup
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.next_wakeup = Some(self.next_wakeup.map_or(at, |next| next.min(at)));
    }

    /// The objects of a kind that need a look, so that the store can change while they get it.
    fn pick(&self, group: &str, kind: &str, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        self.store.list(group, kind, None).filter(|object| wanted(object)).cloned().collect()
    }

    /// Writes the object or its status back. A refusal means that somebody else was faster or forbids it: the next step looks
    /// again.
    fn write_back(&mut self, object: Value, subresource: Option<&str>, now: Timestamp) {
        let _ = self.update(object, subresource, now);
    }

    /// Deletes this very object.
    fn delete_exactly(&mut self, object: &Value, propagation: Propagation, now: Timestamp) {
        let preconditions = Preconditions { uid: Some(uid(object).to_owned()), resource_version: None };
        let _ = self.delete(&ObjectRef::of(object), &preconditions, propagation, now);
    }
}

/// Serves the kinds of all CustomResourceDefinitions that can be served; nothing else happens.
pub(super) fn establish_definitions(server: &mut ApiServer, now: Timestamp) {
    definitions::step(server, now);
}

/// Seconds after a time that an object carries; none when it carries none there.
fn seconds_after(object: &Value, path: &[&str], seconds: i64) -> Option<Timestamp> {
    let from: Timestamp = text(object, path).parse().ok()?;
    from.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// A condition to be set.
struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

/// The condition of that type.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, &["status", "conditions"]).iter().find(|c| c["type"] == kind)
}

/// Sets a condition in place; the transition time moves when the status does.
fn set_condition(object: &mut Value, new: &Condition<'_>, now: Timestamp) {
    let mut conditions = list(object, &["status", "conditions"]).to_vec();
    let found = conditions.iter_mut().find(|c| c["type"] == new.kind);
    let since = found.as_ref().filter(|c| c["status"] == new.status).map(|c| c["lastTransitionTime"].clone());
    let entry = json!({
        "type": new.kind, "status": new.status, "reason": new.reason, "message": new.message,
        "lastTransitionTime": since.unwrap_or_else(|| time(now)),
    });
    match found {
        Some(old) => *old = entry,
        None => conditions.push(entry),
    }
    map_mut(object, &["status"]).insert("conditions".into(), conditions.into());
}

/// The whole number at a path; 0 when absent.
fn number(object: &Value, path: &[&str]) -> i64 {
    at(object, path).as_i64().unwrap_or_default()
}

/// A map of the counts that are not zero, as Go writes them with `omitempty`.
fn counts(entries: &[(&str, i64)]) -> Map<String, Value> {
    entries
        .iter()
        .filter(|(_, count)| *count != 0)
        .map(|(field, count)| ((*field).to_owned(), (*count).into()))
        .collect()
}
