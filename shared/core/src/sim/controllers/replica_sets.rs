//! ReplicaSets: their pods are counted, not created. A pod is running and ready as soon as a node accepts it.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::api_server::ApiServer;
use super::super::store::Key;
use super::{Condition, counts, number, set_condition};
use crate::api::conditions::Conditions;
use crate::api::object::{at, generation, is_deleting, list, map_mut, name, namespace, text};

pub(super) fn step(server: &mut ApiServer, now: Timestamp) {
    for set in server.pick("apps", "ReplicaSet", |set| !is_deleting(set)) {
        let wanted = number(&set, &["spec", "replicas"]);
        let running = number(&set, &["status", "replicas"]);
        let ready = number(&set, &["status", "readyReplicas"]);
        let template = at(&set, &["spec", "template", "spec"]);
        let refused = (wanted > running).then(|| refusal(server, &set, template)).flatten();
        let running = if refused.is_some() { running } else { wanted };
        // A running pod continues to run when the node's labels change.
        let ready = if schedulable(server, template) { running } else { ready.min(running) };
        let mut updated = set.clone();
        let mut status = counts(&[
            ("fullyLabeledReplicas", running),
            ("readyReplicas", ready),
            ("availableReplicas", ready),
            ("observedGeneration", generation(&set)),
        ]);
        status.insert("replicas".into(), running.into());
        status.insert("terminatingReplicas".into(), 0.into());
        if let Some(failure) = Conditions::new(&set).find("ReplicaFailure").filter(|_| refused.is_some()) {
            status.insert("conditions".into(), json!([failure.json]));
        }
        map_mut(&mut updated, &[]).insert("status".into(), status.into());
        if let Some(why) = &refused {
            let failure = Condition { kind: "ReplicaFailure", status: "True", reason: "FailedCreate", message: why };
            set_condition(&mut updated, &failure, now);
        }
        if updated != set {
            server.write_back(updated, Some("status"), now);
        }
    }
}

/// Returns why admission would refuse the pods of this template.
fn refusal(server: &ApiServer, set: &Value, pod: &Value) -> Option<String> {
    let namespace = namespace(set);
    let pods = format!("pods \"{}-\" is forbidden", name(set));
    let account = text(pod, &["serviceAccountName"]);
    if !matches!(account, "" | "default") && !server.store.contains(&Key::new("", "ServiceAccount", namespace, account))
    {
        let missing = format!("serviceaccount {account:?} not found");
        return Some(format!("{pods}: error looking up service account {namespace}/{account}: {missing}"));
    }
    let class = text(pod, &["priorityClassName"]);
    let known = class.is_empty() || server.store.contains(&Key::new("scheduling.k8s.io", "PriorityClass", "", class));
    (!known).then(|| format!("{pods}: no PriorityClass with name {class} was found"))
}

/// Returns whether a node accepts pods of this template. A cluster without Node objects is assumed to have one ordinary node.
pub(super) fn schedulable(server: &ApiServer, pod: &Value) -> bool {
    let selector = at(pod, &["nodeSelector"]).as_object();
    let terms =
        list(pod, &["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"]);
    let takes = |node: &Value| {
        let labels = at(node, &["metadata", "labels"]);
        let selected = selector.is_none_or(|selector| selector.iter().all(|(key, value)| &labels[key] == value));
        let affine = terms.is_empty()
            || terms.iter().any(|term| {
                let expressions = json!({"matchExpressions": term["matchExpressions"]});
                super::super::selector::matches(&expressions, labels)
            });
        selected && affine && at(node, &["spec", "unschedulable"]) != &json!(true)
    };
    let mut nodes = server.store.list("", "Node", None).peekable();
    if nodes.peek().is_none() {
        return takes(
            &json!({ "metadata": { "labels": { "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" } } }),
        );
    }
    nodes.any(takes)
}
