//! Deployments and other kinds that create or protect pods.

use olm_core::sim::{Patch, Propagation};
use serde_json::{Value, json};

use super::{has_condition, is_absent, with};
use crate::transcript::Transcript;

pub(super) fn deployment(t: &Transcript<'_>, name: &str, pod: Value) -> Value {
    let pod = with(json!({"containers": [{"name": "manager", "image": "registry.example.com/operator:1"}]}), pod);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": t.namespace},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": pod}},
    })
}

pub(super) fn workload_defaults(t: &mut Transcript<'_>) {
    let still = |object: Value| with(object, json!({"spec": {"replicas": 0}}));
    t.create(still(deployment(t, "plain", json!({}))));
    t.create(still(deployment(t, "rich", json!({
        "serviceAccountName": "sa", "hostNetwork": true, "nodeSelector": {}, "priorityClassName": "",
        "containers": [{
            "name": "a", "image": "registry.example.com/operator", "command": ["x"], "args": [],
            "env": [
                {"name": "EMPTY", "value": ""},
                {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            ],
            "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "b", "protocol": "UDP"}],
            "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5, "memory": "0.5Gi"}},
            "livenessProbe": {"httpGet": {"port": 80}, "initialDelaySeconds": 0, "timeoutSeconds": 0},
            "readinessProbe": {"tcpSocket": {"port": "b"}, "periodSeconds": 3},
            "startupProbe": {"grpc": {"port": 9}},
            "lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "/bye"}}},
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "secret", "mountPath": "/s", "readOnly": false}],
            "stdin": false, "tty": true,
        }],
        "initContainers": [{"name": "i", "image": "i@sha256:0000000000000000000000000000000000000000000000000000000000000000"}],
        "volumes": [
            {"name": "secret", "secret": {"secretName": "s"}},
            {"name": "config", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
            {"name": "empty"},
            {"name": "host", "hostPath": {"path": "/x"}},
            {"name": "down", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"name": "all", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}},
        ],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "affinity": {},
    }))));
    t.create(still(with(
        deployment(t, "recreate", json!({})),
        json!({"spec": {"strategy": {"type": "Recreate"}, "minReadySeconds": 0, "paused": false}}),
    )));
    t.create(still(with(
        deployment(t, "rolling", json!({})),
        json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1}}}}),
    )));
    t.create(with(
        deployment(t, "mismatch", json!({})),
        json!({"spec": {"selector": {"matchLabels": {"app": "other"}}}}),
    ));
    t.create(with(deployment(t, "unselected", json!({})), json!({"spec": {"selector": null}})));
    t.create(with(deployment(t, "negative", json!({})), json!({"spec": {"replicas": -1}})));
    t.create(deployment(t, "empty", json!({"containers": []})));
    t.create(deployment(t, "imageless", json!({"containers": [{"name": "a"}, {"name": "a", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]})));
    t.create(with(
        deployment(t, "stateful", json!({})),
        json!({"kind": "StatefulSet", "spec": {"serviceName": "x", "replicas": 0}}),
    ));
}

pub(super) fn is_available(o: &Value) -> bool {
    has_condition(o, "Available", "True", "")
        && has_condition(o, "Progressing", "True", "NewReplicaSetAvailable")
        && o["status"]["observedGeneration"] == o["metadata"]["generation"]
        && o["status"]["replicas"] == o["status"]["updatedReplicas"]
        && o["status"]["unavailableReplicas"].is_null()
        && o["status"]["terminatingReplicas"] == 0
}

pub(super) fn rollouts(t: &mut Transcript<'_>) {
    let made = t.create(with(deployment(t, "rose", json!({})), json!({"spec": {"revisionHistoryLimit": 1}})));
    t.wait(&made, is_available);
    t.patch(&made, Patch::Merge(json!({"metadata": {"annotations": {"note": "x"}}})));
    t.wait(&made, is_available);
    t.patch(&made, Patch::Merge(json!({"spec": {"template": {"metadata": {"annotations": {"turn": "2"}}}}})));
    t.wait(&made, |o| is_available(o) && o["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2");
    t.patch(&made, Patch::Merge(json!({"spec": {"template": {"metadata": {"annotations": null}}}})));
    t.wait(&made, |o| is_available(o) && o["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3");
    t.patch(&made, Patch::Merge(json!({"spec": {"replicas": 3}})));
    t.wait(&made, |o| is_available(o) && o["status"]["availableReplicas"] == 3);
    t.patch(&made, Patch::Merge(json!({"spec": {"selector": {"matchLabels": {"other": "x"}}}})));
    let status = t.get(&made);
    t.update(
        with(status, json!({"spec": {"replicas": 9}, "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})),
        Some("status"),
    );
    t.delete(&made, Propagation::Foreground);
    t.wait(&made, is_absent);
    let still = t.create(with(deployment(t, "still", json!({})), json!({"spec": {"replicas": 0}})));
    t.wait(&still, |o| has_condition(o, "Progressing", "True", "NewReplicaSetAvailable"));
}

pub(super) fn unschedulable(t: &mut Transcript<'_>) {
    let made = t.create(with(
        deployment(t, "rose", json!({"nodeSelector": {"no-such": "node"}})),
        json!({"spec": {"progressDeadlineSeconds": 3}}),
    ));
    t.wait(&made, |o| has_condition(o, "Progressing", "False", "ProgressDeadlineExceeded"));
    t.delete(&made, Propagation::Background);
    let accountless = t.create(deployment(t, "accountless", json!({"serviceAccountName": "nobody"})));
    t.wait(&accountless, |o| has_condition(o, "ReplicaFailure", "True", "FailedCreate"));
}

pub(super) fn budgets(t: &mut Transcript<'_>) {
    let budget = |t: &Transcript<'_>, name: &str, spec: Value| {
        with(
            json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": t.namespace},
                "spec": {"selector": {"matchLabels": {"app": "rose"}}},
            }),
            json!({"spec": spec}),
        )
    };
    let made = t.create(deployment(t, "rose", json!({})));
    t.wait(&made, is_available);
    let least = t.create(budget(t, "least", json!({"minAvailable": 1})));
    t.wait(&least, |o| o["status"]["expectedPods"] == 1 && o["status"]["currentHealthy"] == 1);
    let most = t.create(budget(t, "most", json!({"maxUnavailable": "50%"})));
    t.wait(&most, |o| has_condition(o, "DisruptionAllowed", "True", ""));
    t.create(budget(t, "both", json!({"minAvailable": 1, "maxUnavailable": 1})));
    let idle = t.create(budget(t, "idle", json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "none"}}})));
    t.wait(&idle, |o| has_condition(o, "DisruptionAllowed", "False", ""));
}

pub(super) fn jobs(t: &mut Transcript<'_>) {
    let job = |t: &Transcript<'_>, name: &str, spec: Value| {
        with(
            json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": t.namespace},
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}},
            }),
            json!({"spec": spec}),
        )
    };
    let made = t.create(job(t, "unpack", json!({"backoffLimit": 3})));
    t.wait(&made, |o| has_condition(o, "Complete", "True", ""));
    t.patch(&made, Patch::Merge(json!({"spec": {"template": {"spec": {"containers": null}}}})));
}

pub(super) fn pods(t: &mut Transcript<'_>) {
    let pod = |t: &Transcript<'_>, name: &str, spec: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": name, "namespace": t.namespace},
            "spec": with(json!({"containers": [{"name": "c", "image": "i:1"}]}), spec),
        })
    };
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": t.namespace}});
    t.wait(&account, |o| !o.is_null());
    t.create(pod(t, "plain-", json!({})));
    t.create(pod(t, "rich-", json!({
        "hostNetwork": true, "priorityClassName": "system-cluster-critical", "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
        "containers": [{
            "name": "c", "image": "i:1", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}, "readinessProbe": {"grpc": {"port": 1}},
        }],
    })));
    t.create(pod(
        t,
        "some-",
        json!({
            "automountServiceAccountToken": false,
            "containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "10m"}}}],
        }),
    ));
    t.create(pod(t, "lost-", json!({"serviceAccountName": "nobody"})));
    t.create(pod(t, "low-", json!({"priorityClassName": "none"})));
}
