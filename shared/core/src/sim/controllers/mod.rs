//! Kubernetes' own controllers, limited to the effects that OLM observes. Each reads the objects and takes its next step
//! through requests to the API server; none has state of its own.

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

use super::api_server::ApiServer;
use super::writes::{Preconditions, Propagation};
use crate::api::conditions;
use crate::api::object::{ObjectRef, at, list, map_mut, text, uid};

impl ApiServer {
    /// Lets every controller take one step at time `now`, and returns whether anything changed. Operations that take several
    /// writes in a real cluster (a rollout, the deletion of a namespace) take several steps, so that intermediate states are
    /// observed.
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

    /// Returns when a controller next acts by itself: at a Deployment's deadline, or at the end of a finished Job's time to
    /// live.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        self.next_wakeup
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.next_wakeup = Some(self.next_wakeup.map_or(at, |next| next.min(at)));
    }

    /// Returns copies of the objects of a kind that need work, so that the store can change meanwhile.
    fn pick(&self, group: &str, kind: &str, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        self.store.list(group, kind, None).filter(|object| wanted(object)).cloned().collect()
    }

    /// Writes the object or its status back. An error means a conflict or a refused request, and the next step tries again.
    fn write_back(&mut self, object: Value, subresource: Option<&str>, now: Timestamp) {
        let _ = self.update(object, subresource, now);
    }

    /// Deletes the object with this uid and resource version.
    fn delete_exactly(&mut self, object: &Value, propagation: Propagation, now: Timestamp) {
        let preconditions = Preconditions { uid: Some(uid(object).to_owned()), resource_version: None };
        let _ = self.delete(&ObjectRef::from_object(object), &preconditions, propagation, now);
    }
}

/// Serves the kinds of all CustomResourceDefinitions that can be established, without any other effect.
pub(super) fn establish_definitions(server: &mut ApiServer, now: Timestamp) {
    definitions::step(server, now);
}

/// Returns the time in the object plus these seconds, or `None` if the object has no such time.
fn seconds_after(object: &Value, path: &[&str], seconds: i64) -> Option<Timestamp> {
    let from: Timestamp = text(object, path).parse().ok()?;
    from.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// A condition to set.
struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

/// Sets a condition in place; the transition time changes with the status.
fn set_condition(object: &mut Value, new: &Condition<'_>, now: Timestamp) {
    let mut conditions = list(object, &["status", "conditions"]).to_vec();
    let entry = json!({
        "type": new.kind, "status": new.status, "reason": new.reason, "message": new.message,
        "lastTransitionTime": conditions::transition_time(&conditions, new.kind, new.status, now),
    });
    conditions::set(&mut conditions, entry);
    map_mut(object, &["status"]).insert("conditions".into(), conditions.into());
}

/// Returns the integer at a path, 0 if absent.
fn number(object: &Value, path: &[&str]) -> i64 {
    at(object, path).as_i64().unwrap_or_default()
}

/// Returns a map of the counts that are not zero, as Go encodes them with `omitempty`.
fn counts(entries: &[(&str, i64)]) -> Map<String, Value> {
    entries
        .iter()
        .filter(|(_, count)| *count != 0)
        .map(|(field, count)| ((*field).to_owned(), (*count).into()))
        .collect()
}
