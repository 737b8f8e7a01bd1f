//! Deployments: a ReplicaSet for each template, the rollout by the strategy, and the conditions.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::api_server::{ApiServer, time};
use super::super::ids;
use super::super::writes::Propagation;
use super::{counts, number, seconds_after};
use crate::api::conditions::{self, Conditions};
use crate::api::object::{
    annotation, at, generation, is_deleting, list, map_mut, name, namespace, set_annotation, text, uid,
};

/// The label that distinguishes the ReplicaSets of a Deployment.
const HASH_LABEL: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
/// Annotations of a Deployment that its ReplicaSets do not inherit.
const OWN_ANNOTATIONS: &[&str] = &[
    REVISION,
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
];
/// `progressDeadlineSeconds` that means no deadline.
const NO_DEADLINE: i64 = i32::MAX as i64;

pub(super) fn step(server: &mut ApiServer, now: Timestamp) {
    for deployment in server.pick("apps", "Deployment", |deployment| !is_deleting(deployment)) {
        Rollout::new(server, deployment).step(server, now);
    }
}

/// A Deployment and its ReplicaSets.
struct Rollout {
    deployment: Value,
    /// The ReplicaSet of the current template.
    new: Option<Value>,
    old: Vec<Value>,
}

impl Rollout {
    fn new(server: &ApiServer, deployment: Value) -> Self {
        let owned = |set: &&Value| {
            list(set, &["metadata", "ownerReferences"])
                .iter()
                .any(|owner| owner["controller"] == json!(true) && text(owner, &["uid"]) == uid(&deployment))
        };
        let sets: Vec<Value> =
            server.store.list("apps", "ReplicaSet", Some(namespace(&deployment))).filter(owned).cloned().collect();
        let wanted = at(&deployment, &["spec", "template"]);
        let (new, old): (Vec<Value>, Vec<Value>) = sets.into_iter().partition(|set| &template_of(set) == wanted);
        Self { new: new.into_iter().next(), old, deployment }
    }

    fn step(mut self, server: &mut ApiServer, now: Timestamp) {
        if at(&self.deployment, &["spec", "paused"]) == &json!(true) {
            self.write_status(server, Vec::new(), now);
            return;
        }
        let mut conditions = list(&self.deployment, &["status", "conditions"]).to_vec();
        let revision = self.old.iter().map(revision_of).max().unwrap_or_default() + 1;
        let recreate = text(&self.deployment, &["spec", "strategy", "type"]) == "Recreate";
        let old_run = self.old.iter().any(|set| number(set, &["status", "replicas"]) > 0);
        if self.new.is_none() && !(recreate && old_run) {
            self.make_new(server, revision, &mut conditions, now);
        } else if let Some(new) = self.new.clone().filter(|new| revision_of(new) < revision) {
            // The current template is that of an earlier revision.
            let mut renewed = new;
            set_annotation(&mut renewed, REVISION, &revision.to_string());
            self.new = server.update(renewed, None, now).ok();
        }
        if let Some(new) = &self.new {
            let current = revision_of(new).to_string();
            set_annotation(&mut self.deployment, REVISION, &current);
        }
        let scaled = if recreate { self.recreate(server, now) } else { self.roll(server, now) };
        self.write_status(server, conditions, now);
        if !scaled {
            self.clean_up(server, now);
        }
    }

    fn desired(&self) -> i64 {
        number(&self.deployment, &["spec", "replicas"])
    }

    fn make_new(&mut self, server: &mut ApiServer, revision: i64, conditions: &mut Vec<Value>, now: Timestamp) {
        let deployment = &self.deployment;
        let template = at(deployment, &["spec", "template"]);
        let collisions = number(deployment, &["status", "collisionCount"]);
        let hash = ids::hash(&format!("{template}{collisions}"));
        let mut set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": format!("{}-{hash}", name(deployment)),
                "namespace": namespace(deployment),
                "labels": at(template, &["metadata", "labels"]),
                "annotations": inherited_annotations(deployment),
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "Deployment", "name": name(deployment), "uid": uid(deployment),
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "replicas": self.first_scale(),
                "selector": at(deployment, &["spec", "selector"]),
                "template": template,
                "minReadySeconds": at(deployment, &["spec", "minReadySeconds"]),
            },
        });
        for labels in [
            &["metadata", "labels"][..],
            &["spec", "selector", "matchLabels"],
            &["spec", "template", "metadata", "labels"],
        ] {
            map_mut(&mut set, labels).insert(HASH_LABEL.into(), hash.clone().into());
        }
        set_annotation(&mut set, REVISION, &revision.to_string());
        set_annotation(&mut set, "deployment.kubernetes.io/desired-replicas", &self.desired().to_string());
        let most = self.desired() + self.surge();
        set_annotation(&mut set, "deployment.kubernetes.io/max-replicas", &most.to_string());
        let (status, reason, message) = match server.create(set, now) {
            Ok(created) => {
                let message = format!("Created new replica set {:?}", name(&created));
                self.new = Some(created);
                ("True", "NewReplicaSetCreated", message)
            }
            Err(refusal) => ("False", "ReplicaSetCreateError", refusal.message),
        };
        if self.has_deadline() {
            set_condition(conditions, "Progressing", status, reason, &message, now);
        }
    }

    /// Returns how many pods of a Deployment may exceed the desired number, and how many may be unavailable.
    fn bounds(&self) -> (i64, i64) {
        let rolling = at(&self.deployment, &["spec", "strategy", "rollingUpdate"]);
        let surge = share(&rolling["maxSurge"], self.desired(), true);
        let missing = share(&rolling["maxUnavailable"], self.desired(), false);
        // A rollout with both at zero would never proceed.
        (surge, if surge == 0 { missing.max(1) } else { missing })
    }

    fn surge(&self) -> i64 {
        if text(&self.deployment, &["spec", "strategy", "type"]) == "RollingUpdate" { self.bounds().0 } else { 0 }
    }

    fn old_scale(&self) -> i64 {
        self.old.iter().map(|set| number(set, &["spec", "replicas"])).sum()
    }

    /// Returns how many pods the new ReplicaSet may have beside the old ones.
    fn first_scale(&self) -> i64 {
        (self.desired() + self.surge() - self.old_scale()).clamp(0, self.desired())
    }

    fn recreate(&mut self, server: &mut ApiServer, now: Timestamp) -> bool {
        let mut scaled = false;
        for set in &mut self.old {
            scaled |= scale(server, set, 0, now);
        }
        let old_run = self.old.iter().any(|set| number(set, &["status", "replicas"]) > 0);
        let desired = self.desired();
        if let Some(new) = self.new.as_mut().filter(|_| !old_run) {
            scaled |= scale(server, new, desired, now);
        }
        scaled
    }

    fn roll(&mut self, server: &mut ApiServer, now: Timestamp) -> bool {
        let (desired, allowed) = (self.desired(), self.first_scale());
        let Some(new) = &mut self.new else { return false };
        let present = number(new, &["spec", "replicas"]);
        let wanted = if present > desired { desired } else { present.max(allowed) };
        if scale(server, new, wanted, now) {
            return true;
        }
        // Old pods may be removed as long as enough pods are available.
        let new_missing = wanted - number(new, &["status", "availableReplicas"]);
        let least = desired - self.bounds().1;
        let mut spare = self.old_scale() + wanted - least - new_missing;
        let mut scaled = false;
        for unhealthy_first in [true, false] {
            for set in &mut self.old {
                let present = number(set, &["spec", "replicas"]);
                let healthy = number(set, &["status", "availableReplicas"]);
                let removable = if unhealthy_first { present - healthy } else { present };
                let going = removable.min(spare).max(0);
                if going > 0 {
                    spare -= going;
                    scaled |= scale(server, set, present - going, now);
                }
            }
        }
        scaled
    }

    fn has_deadline(&self) -> bool {
        let deadline = at(&self.deployment, &["spec", "progressDeadlineSeconds"]).as_i64();
        deadline.is_some_and(|deadline| deadline != NO_DEADLINE)
    }

    fn write_status(&self, server: &mut ApiServer, conditions: Vec<Value>, now: Timestamp) {
        let mut updated = self.deployment.clone();
        let status = self.status(conditions, server, now);
        map_mut(&mut updated, &[]).insert("status".into(), status);
        server.write_back(updated, Some("status"), now);
    }

    fn sum(&self, count: &str) -> i64 {
        self.old.iter().chain(&self.new).map(|set| number(set, &["status", count])).sum()
    }

    fn status(&self, mut conditions: Vec<Value>, server: &mut ApiServer, now: Timestamp) -> Value {
        let desired = self.desired();
        let available = self.sum("availableReplicas");
        let total_spec = self.old_scale() + self.new.as_ref().map_or(0, |set| number(set, &["spec", "replicas"]));
        let updated = self.new.as_ref().map_or(0, |set| number(set, &["status", "replicas"]));
        let replicas = self.sum("replicas");
        let mut status = counts(&[
            ("observedGeneration", generation(&self.deployment)),
            ("replicas", replicas),
            ("updatedReplicas", updated),
            ("readyReplicas", self.sum("readyReplicas")),
            ("availableReplicas", available),
            ("unavailableReplicas", (total_spec - available).max(0)),
        ]);
        if let Some(collisions) = self.deployment["status"].get("collisionCount") {
            status.insert("collisionCount".into(), collisions.clone());
        }
        // Pods terminate immediately.
        if self.old.iter().chain(&self.new).all(|set| set["status"].get("terminatingReplicas").is_some()) {
            status.insert("terminatingReplicas".into(), 0.into());
        }
        if conditions.is_empty() {
            conditions = list(&self.deployment, &["status", "conditions"]).to_vec();
        }
        let least = if self.surge() == 0 && text(&self.deployment, &["spec", "strategy", "type"]) == "Recreate" {
            desired
        } else {
            desired - self.bounds().1
        };
        if available >= least {
            let message = "Deployment has minimum availability.";
            set_condition(&mut conditions, "Available", "True", "MinimumReplicasAvailable", message, now);
        } else {
            let message = "Deployment does not have minimum availability.";
            set_condition(&mut conditions, "Available", "False", "MinimumReplicasUnavailable", message, now);
        }
        let failure = self.old.iter().chain(&self.new).find_map(|set| Conditions::new(set).find("ReplicaFailure"));
        conditions::remove(&mut conditions, &["ReplicaFailure"]);
        if let Some(failure) = failure {
            set_condition(&mut conditions, "ReplicaFailure", "True", failure.reason(), failure.message(), now);
        }
        if self.has_deadline() {
            self.set_progressing(&mut conditions, &status, server, now);
        } else {
            conditions::remove(&mut conditions, &["Progressing"]);
        }
        status.insert("conditions".into(), conditions.into());
        Value::Object(status)
    }

    fn set_progressing(
        &self,
        conditions: &mut Vec<Value>,
        status: &Map<String, Value>,
        server: &mut ApiServer,
        now: Timestamp,
    ) {
        let count = |field: &str| status.get(field).and_then(Value::as_i64).unwrap_or_default();
        let before = |field: &str| number(&self.deployment, &["status", field]);
        let current = conditions.iter().find(|c| c["type"] == "Progressing").cloned();
        let reason = current.as_ref().map(|c| text(c, &["reason"]).to_owned()).unwrap_or_default();
        let desired = self.desired();
        if count("replicas") == count("updatedReplicas") && reason == "NewReplicaSetAvailable" {
            return;
        }
        let subject = match &self.new {
            Some(new) => format!("ReplicaSet {:?}", name(new)),
            None => format!("Deployment {:?}", name(&self.deployment)),
        };
        let complete = count("updatedReplicas") == desired
            && count("replicas") == desired
            && count("availableReplicas") == desired
            && self.new.is_some();
        let old = count("replicas") - count("updatedReplicas");
        let progress = count("updatedReplicas") > before("updatedReplicas")
            || old < before("replicas") - before("updatedReplicas")
            || count("readyReplicas") > before("readyReplicas")
            || count("availableReplicas") > before("availableReplicas");
        if complete {
            let message = format!("{subject} has successfully progressed.");
            set_condition(conditions, "Progressing", "True", "NewReplicaSetAvailable", &message, now);
        } else if progress {
            // Progress updates `lastUpdateTime` even if the condition is otherwise unchanged.
            let since = current.filter(|c| c["status"] == "True").map(|c| c["lastTransitionTime"].clone());
            conditions::remove(conditions, &["Progressing"]);
            let message = format!("{subject} is progressing.");
            set_condition(conditions, "Progressing", "True", "ReplicaSetUpdated", &message, now);
            if let (Some(since), Some(last)) = (since, conditions.last_mut()) {
                map_mut(last, &[]).insert("lastTransitionTime".into(), since);
            }
        } else if let Some(current) = current.filter(|_| reason != "ProgressDeadlineExceeded") {
            let deadline = number(&self.deployment, &["spec", "progressDeadlineSeconds"]);
            match seconds_after(&current, &["lastUpdateTime"], deadline) {
                Some(at) if at <= now => {
                    let message = format!("{subject} has timed out progressing.");
                    set_condition(conditions, "Progressing", "False", "ProgressDeadlineExceeded", &message, now);
                }
                Some(at) => server.wake_at(at),
                None => {}
            }
        }
    }

    /// Deletes old ReplicaSets beyond the history limit.
    fn clean_up(&mut self, server: &mut ApiServer, now: Timestamp) {
        let Some(limit) = at(&self.deployment, &["spec", "revisionHistoryLimit"]).as_i64() else { return };
        let idle = |set: &&Value| number(set, &["spec", "replicas"]) == 0 && number(set, &["status", "replicas"]) == 0;
        let mut idle: Vec<&Value> = self.old.iter().filter(idle).collect();
        idle.sort_by_key(|set| revision_of(set));
        let excess = idle.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        for set in &idle[..excess] {
            server.delete_exactly(set, Propagation::Background, now);
        }
    }
}

/// Resolves a number, or a percentage of the desired pods.
fn share(value: &Value, desired: i64, round_up: bool) -> i64 {
    match value {
        Value::Number(number) => number.as_i64().unwrap_or_default(),
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
            (percent * desired + if round_up { 99 } else { 0 }) / 100
        }
        _ => 0,
    }
}

fn scale(server: &mut ApiServer, set: &mut Value, replicas: i64, now: Timestamp) -> bool {
    if number(set, &["spec", "replicas"]) == replicas {
        return false;
    }
    let mut scaled = set.clone();
    map_mut(&mut scaled, &["spec"]).insert("replicas".into(), replicas.into());
    if let Ok(written) = server.update(scaled, None, now) {
        *set = written;
    }
    true
}

fn revision_of(set: &Value) -> i64 {
    annotation(set, REVISION).and_then(|revision| revision.parse().ok()).unwrap_or_default()
}

/// Returns the template that the ReplicaSet was made from.
fn template_of(set: &Value) -> Value {
    let mut template = at(set, &["spec", "template"]).clone();
    map_mut(&mut template, &["metadata", "labels"]).remove(HASH_LABEL);
    template
}

fn inherited_annotations(deployment: &Value) -> Map<String, Value> {
    let mut annotations = at(deployment, &["metadata", "annotations"]).as_object().cloned().unwrap_or_default();
    annotations.retain(|key, _| !OWN_ANNOTATIONS.contains(&key.as_str()));
    annotations
}

/// Sets a Deployment's condition. If status and reason are unchanged the condition is left as it is, otherwise it is moved to
/// the end of the list.
fn set_condition(conditions: &mut Vec<Value>, kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
    let found = conditions.iter().find(|c| c["type"] == kind);
    if found.is_some_and(|c| c["status"] == status && c["reason"] == reason) {
        return;
    }
    let since = conditions::transition_time(conditions, kind, status, now);
    conditions::remove(conditions, &[kind]);
    conditions.push(json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": time(now), "lastTransitionTime": since,
    }));
}
