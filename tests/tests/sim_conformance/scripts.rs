//! The requests.

use olm_core::api::object::{owner_reference, uid};
use olm_core::sim::{Patch, Preconditions, Propagation};
use serde_json::{Value, json};

use crate::transcript::{Script, Transcript};

/// Every script and the namespace that it gets.
pub(crate) const ALL: &[(&str, Script)] = &[
    ("names", names),
    ("conflicts", conflicts),
    ("deletions", deletions),
    ("owners", owners),
    ("services", services),
    ("access", access),
    ("small_kinds", small_kinds),
    ("workload_defaults", workload_defaults),
    ("rollouts", rollouts),
    ("unschedulable", unschedulable),
    ("budgets", budgets),
    ("jobs", jobs),
    ("definitions", definitions),
    ("custom_resources", custom_resources),
    ("extensions", extensions),
    ("namespace_end", namespace_end),
    ("patches", patches),
    ("applying", applying),
    ("decoding", decoding),
];

fn config_map(t: &Transcript<'_>, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": t.namespace}})
}

fn with(mut object: Value, patch: Value) -> Value {
    json_patch::merge(&mut object, &patch);
    object
}

fn is_absent(object: &Value) -> bool {
    object.is_null()
}

fn has_condition(object: &Value, kind: &str, status: &str, reason: &str) -> bool {
    object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|c| c["type"] == kind && c["status"] == status && (reason.is_empty() || c["reason"] == reason))
}

fn names(t: &mut Transcript<'_>) {
    t.create(config_map(t, "a"));
    t.create(config_map(t, "a"));
    t.create(config_map(t, "Not_A_Name"));
    t.create(config_map(t, ""));
    t.create(with(config_map(t, "a"), json!({"metadata": {"name": null, "generateName": "install-"}})));
    t.create(with(config_map(t, "b"), json!({"metadata": {"namespace": "nowhere"}})));
    t.create(with(config_map(t, "b"), json!({"metadata": {"resourceVersion": "5"}})));
    t.create(with(config_map(t, "b"), json!({"metadata": {"labels": {"a b": "x", "ok": "not ok"}}})));
    t.create(with(config_map(t, "b"), json!({"metadata": {"annotations": {"UPPER/x": "y"}}})));
    t.create(with(config_map(t, "b"), json!({"metadata": {"finalizers": ["plain"]}})));
    t.create(with(
        config_map(t, "b"),
        json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": ""}]}}),
    ));
    t.create(with(
        config_map(t, "full"),
        json!({"metadata": {
            "labels": {}, "annotations": {"a": ""}, "uid": "11111111-1111-4111-8111-111111111111", "generation": 7,
            "creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z", "unknown": 1,
        }, "data": {}, "unknown": {}}),
    ));
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": t.namespace}, "spec": {"ports": [{"port": 1}]},
        })
    };
    let (digit, dotted) = (service("1a"), service("a.b"));
    t.create(digit);
    t.create(dotted);
    t.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}));
    t.create(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a/b", "namespace": t.namespace}}));
    t.create(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "Any:Thing", "namespace": t.namespace}}));
}

fn conflicts(t: &mut Transcript<'_>) {
    let made = t.create(config_map(t, "a"));
    let newer = t.update(with(made.clone(), json!({"data": {"k": "1"}})), None);
    t.update(with(made.clone(), json!({"data": {"k": "2"}})), None);
    t.update(with(newer.clone(), json!({"metadata": {"uid": "11111111-1111-4111-8111-111111111111"}})), None);
    t.update(with(made.clone(), json!({"data": {"k": "3"}, "metadata": {"resourceVersion": null, "uid": null}})), None);
    t.update(with(made.clone(), json!({"metadata": {"name": "absent", "resourceVersion": null, "uid": null}})), None);
    t.update(newer.clone(), Some("status"));
    t.patch(&made, Patch::Merge(json!({"metadata": {"resourceVersion": "1"}, "data": {"k": "4"}})));
    t.patch(&config_map(t, "absent"), Patch::Merge(json!({})));
    let again = t.get(&made);
    t.update(again.clone(), None);
    let unchanged = t.get(&made);
    assert_eq!(again["metadata"]["resourceVersion"], unchanged["metadata"]["resourceVersion"]);
    t.create(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r", "namespace": t.namespace}, "rules": []}));
    t.update(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "put", "namespace": t.namespace}}), None);
    t.update(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "put", "namespace": t.namespace}}), None);
}

fn deletions(t: &mut Transcript<'_>) {
    let made = t.create(with(config_map(t, "a"), json!({"metadata": {"finalizers": ["example.com/hold"]}})));
    t.delete_if(&made, Preconditions { uid: Some("x".into()), resource_version: None }, Propagation::Background);
    t.delete_if(&made, Preconditions { uid: None, resource_version: Some("1".into()) }, Propagation::Background);
    t.delete(&made, Propagation::Background);
    t.delete(&made, Propagation::Background);
    t.patch(&made, Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})));
    t.patch(&made, Patch::Merge(json!({"metadata": {"labels": {"still": "here"}}})));
    t.patch(&made, Patch::Merge(json!({"metadata": {"finalizers": null}})));
    t.get(&made);
    t.delete(&made, Propagation::Background);
    let role = t.create(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r", "namespace": t.namespace}}));
    t.delete_if(&role, Preconditions { uid: Some("x".into()), resource_version: None }, Propagation::Background);
    t.delete_if(&role, Preconditions { uid: Some(uid(&role).into()), resource_version: None }, Propagation::Background);
    t.delete(
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}),
        Propagation::Background,
    );
    let deployment = t.create(with(
        deployment(t, "kept", json!({})),
        json!({"metadata": {"finalizers": ["example.com/hold"]}, "spec": {"replicas": 0}}),
    ));
    t.wait(&deployment, |o| has_condition(o, "Progressing", "True", "NewReplicaSetAvailable"));
    t.delete(&deployment, Propagation::Background);
}

fn owners(t: &mut Transcript<'_>) {
    let owned = |t: &Transcript<'_>, name: &str, owners: &[&Value]| {
        let owners: Vec<Value> = owners.iter().map(|owner| owner_reference(owner, false)).collect();
        with(config_map(t, name), json!({"metadata": {"ownerReferences": owners}}))
    };
    let first = t.create(config_map(t, "first"));
    let second = t.create(config_map(t, "second"));
    let both = t.create(owned(t, "both", &[&first, &second]));
    let grandchild = t.create(owned(t, "grandchild", &[&both]));
    t.delete(&first, Propagation::Background);
    t.wait(&both, |o| o["metadata"]["ownerReferences"].as_array().is_some_and(|owners| owners.len() == 1));
    t.delete(&second, Propagation::Background);
    t.wait(&both, is_absent);
    t.wait(&grandchild, is_absent);

    let owner = t.create(config_map(t, "owner"));
    let mut blocking = owned(t, "blocking", &[&owner]);
    blocking["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = true.into();
    blocking["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let blocking = t.create(blocking);
    t.delete(&owner, Propagation::Foreground);
    t.wait(&blocking, |o| !o["metadata"]["deletionTimestamp"].is_null());
    t.get(&owner);
    t.patch(&blocking, Patch::Merge(json!({"metadata": {"finalizers": null}})));
    t.wait(&owner, is_absent);

    let parent = t.create(config_map(t, "parent"));
    let orphan = t.create(owned(t, "orphan", &[&parent]));
    t.delete(&parent, Propagation::Orphan);
    t.wait(&parent, is_absent);
    t.get(&orphan);

    let stranger = with(parent.clone(), json!({"metadata": {"uid": "11111111-1111-4111-8111-111111111111"}}));
    let child = t.create(owned(t, "child", &[&stranger]));
    t.wait(&child, is_absent);
}

fn services(t: &mut Transcript<'_>) {
    let service = |t: &Transcript<'_>, name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": t.namespace}, "spec": spec});
    let made = t.create(service(t, "plain", json!({"ports": [{"port": 80}], "selector": {"app": "rose"}})));
    t.update(
        with(
            made.clone(),
            json!({"spec": {"ports": [{"port": 81, "targetPort": "http"}], "clusterIP": null, "clusterIPs": null}}),
        ),
        None,
    );
    t.patch(&made, Patch::Merge(json!({"spec": {"clusterIP": "10.0.0.77"}})));
    t.create(service(
        t,
        "headless",
        json!({"clusterIP": "None", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}),
    ));
    t.create(service(t, "external", json!({"type": "ExternalName", "externalName": "example.com"})));
    t.create(service(t, "sticky", json!({"sessionAffinity": "ClientIP", "ports": [{"port": 80}]})));
    t.create(service(t, "none", json!({})));
    t.create(service(t, "unnamed", json!({"ports": [{"port": 80}, {"port": 81}]})));
    t.create(service(t, "zero", json!({"ports": [{"port": 0}]})));
}

fn access(t: &mut Transcript<'_>) {
    let rbac = |t: &Transcript<'_>, kind: &str, name: &str, rest: Value| {
        let object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
        let object = if kind.starts_with("Cluster") {
            object
        } else {
            with(object, json!({"metadata": {"namespace": t.namespace}}))
        };
        with(object, rest)
    };
    let rule = |verb: &str| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]});
    t.create(rbac(t, "Role", "empty", json!({})));
    t.create(rbac(t, "Role", "none", json!({"rules": []})));
    t.create(rbac(
        t,
        "Role",
        "full",
        json!({"rules": [rule("get"), {"apiGroups": ["a"], "resources": ["b"], "resourceNames": [], "verbs": ["*"]}]}),
    ));
    t.create(rbac(t, "Role", "no-verbs", json!({"rules": [{"apiGroups": [""], "resources": ["pods"]}]})));
    t.create(rbac(t, "Role", "no-groups", json!({"rules": [{"resources": ["pods"], "verbs": ["get"]}]})));
    t.create(rbac(t, "Role", "no-resources", json!({"rules": [{"apiGroups": [""], "verbs": ["get"]}]})));
    t.create(rbac(t, "Role", "urls", json!({"rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}]})));
    t.create(rbac(
        t,
        "ClusterRole",
        "mixed-urls",
        json!({"rules": [{"apiGroups": [""], "nonResourceURLs": ["/x"], "verbs": ["get"]}]}),
    ));
    let binding = t.create(rbac(t, "RoleBinding", "b", json!({
        "roleRef": {"kind": "Role", "name": "full"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "name": "s", "namespace": "x"}],
    })));
    t.patch(&binding, Patch::Merge(json!({"roleRef": {"name": "other"}})));
    t.create(rbac(
        t,
        "RoleBinding",
        "bad",
        json!({"roleRef": {"kind": "Thing", "name": ""}, "subjects": [{"kind": "User", "name": ""}]}),
    ));
    t.create(rbac(
        t,
        "ClusterRoleBinding",
        "access-b",
        json!({"roleRef": {"kind": "ClusterRole", "name": "x"}, "subjects": [{"kind": "ServiceAccount", "name": "s"}]}),
    ));
    let aggregate = t.create(rbac(
        t,
        "ClusterRole",
        "access-all",
        json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "access"}}]}}),
    ));
    t.create(rbac(
        t,
        "ClusterRole",
        "access-2",
        json!({"metadata": {"labels": {"to": "access"}}, "rules": [rule("get"), rule("list")]}),
    ));
    t.wait(&aggregate, |o| o["rules"].as_array().is_some_and(|rules| rules.len() == 2));
    t.create(rbac(
        t,
        "ClusterRole",
        "access-1",
        json!({"metadata": {"labels": {"to": "access"}}, "rules": [rule("watch"), rule("get")]}),
    ));
    t.wait(&aggregate, |o| o["rules"].as_array().is_some_and(|rules| rules.len() == 3));
    t.delete(
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "access-1"}}),
        Propagation::Background,
    );
    t.delete(
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "access-2"}}),
        Propagation::Background,
    );
    t.wait(&aggregate, |o| o["rules"].as_array().is_none_or(Vec::is_empty));
}

fn small_kinds(t: &mut Transcript<'_>) {
    let object = |t: &Transcript<'_>, api_version: &str, kind: &str, name: &str, rest: Value| {
        with(
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": t.namespace}}),
            rest,
        )
    };
    t.create(object(t, "v1", "Secret", "s", json!({"stringData": {"password": "x"}, "data": {"a": "Yg=="}})));
    let secret = t.create(object(t, "v1", "Secret", "typed", json!({"type": "example.com/t"})));
    t.patch(&secret, Patch::Merge(json!({"type": "Opaque"})));
    t.create(object(
        t,
        "v1",
        "Secret",
        "tls",
        json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}),
    ));
    t.create(object(t, "v1", "ConfigMap", "c", json!({"data": {"a": ""}, "binaryData": {"b": "AA=="}})));
    t.create(object(t, "v1", "ServiceAccount", "sa", json!({"imagePullSecrets": [{"name": "pull"}]})));
    t.create(object(t, "networking.k8s.io/v1", "NetworkPolicy", "in", json!({"spec": {}})));
    t.create(object(
        t,
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "out",
        json!({"spec": {"egress": [{"ports": [{"port": 53}]}]}}),
    ));
    t.create(object(
        t,
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "none",
        json!({"spec": {"ingress": [], "policyTypes": ["Egress"]}}),
    ));
    t.create(object(
        t,
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "small-kinds-a",
        json!({"metadata": {"namespace": null}, "value": 1000, "description": "d"}),
    ));
    let class = t.create(object(
        t,
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "small-kinds-b",
        json!({"metadata": {"namespace": null}, "value": 5}),
    ));
    t.patch(&class, Patch::Merge(json!({"value": 6})));
    t.create(object(
        t,
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "system-x",
        json!({"metadata": {"namespace": null}, "value": 5}),
    ));
    t.create(object(
        t,
        "v1",
        "Event",
        "e",
        json!({
            "involvedObject": {"kind": "ConfigMap", "namespace": t.namespace, "name": "c", "apiVersion": "v1"},
            "reason": "Because", "message": "of this", "type": "Normal", "count": 1, "source": {"component": "me"},
            "firstTimestamp": "2026-11-21T12:00:00Z", "lastTimestamp": "2026-11-21T12:00:00Z",
        }),
    ));
}

fn deployment(t: &Transcript<'_>, name: &str, pod: Value) -> Value {
    let pod = with(json!({"containers": [{"name": "manager", "image": "registry.example.com/operator:1"}]}), pod);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": t.namespace},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}, "spec": pod}},
    })
}

fn workload_defaults(t: &mut Transcript<'_>) {
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

fn is_available(o: &Value) -> bool {
    has_condition(o, "Available", "True", "")
        && has_condition(o, "Progressing", "True", "NewReplicaSetAvailable")
        && o["status"]["observedGeneration"] == o["metadata"]["generation"]
        && o["status"]["replicas"] == o["status"]["updatedReplicas"]
        && o["status"]["unavailableReplicas"].is_null()
        && o["status"]["terminatingReplicas"] == 0
}

fn rollouts(t: &mut Transcript<'_>) {
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

fn unschedulable(t: &mut Transcript<'_>) {
    let made = t.create(with(
        deployment(t, "rose", json!({"nodeSelector": {"no-such": "node"}})),
        json!({"spec": {"progressDeadlineSeconds": 3}}),
    ));
    t.wait(&made, |o| has_condition(o, "Progressing", "False", "ProgressDeadlineExceeded"));
    t.delete(&made, Propagation::Background);
    let accountless = t.create(deployment(t, "accountless", json!({"serviceAccountName": "nobody"})));
    t.wait(&accountless, |o| has_condition(o, "ReplicaFailure", "True", "FailedCreate"));
}

fn budgets(t: &mut Transcript<'_>) {
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

fn jobs(t: &mut Transcript<'_>) {
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

fn definition(group: &str) -> Value {
    let spec = json!({"type": "object", "required": ["colour"], "properties": {
        "colour": {"type": "string", "enum": ["red", "white"]},
        "petals": {"type": "integer", "default": 5, "minimum": 1, "maximum": 9},
        "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
        "maybe": {"type": "string", "nullable": true},
        "port": {"x-kubernetes-int-or-string": true},
        "since": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "leaves": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}},
        },
    }});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("roses.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": "Rose", "plural": "roses"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

fn is_established(o: &Value) -> bool {
    has_condition(o, "Established", "True", "") && has_condition(o, "NamesAccepted", "True", "")
}

fn definitions(t: &mut Transcript<'_>) {
    let made = t.create(definition("one.example.com"));
    t.wait(&made, is_established);
    t.create(with(definition("two.example.com"), json!({"metadata": {"name": "rose.two.example.com"}})));
    t.create(with(
        definition("two.example.com"),
        json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true}]}}),
    ));
    t.create(with(definition("two.example.com"), json!({"spec": {"scope": null}})));
    t.create(with(definition("two.example.com"), json!({"spec": {"preserveUnknownFields": true}})));
    t.create(definition("x.k8s.io"));
    let mut unstored = definition("two.example.com");
    unstored["spec"]["versions"][0]["storage"] = false.into();
    t.create(unstored);
    let mut shapeless = definition("two.example.com");
    shapeless["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"properties": {"a": {"type": "array"}}});
    t.create(shapeless);
    t.patch(&made, Patch::Merge(json!({"spec": {"scope": "Cluster"}})));
    t.patch(&made, Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}})));
    let version = made["spec"]["versions"][0].clone();
    let two = json!([with(version.clone(), json!({"storage": false})), with(version.clone(), json!({"name": "v2"}))]);
    t.patch(&made, Patch::Merge(json!({"spec": {"versions": two}})));
    t.patch(&made, Patch::Merge(json!({"spec": {"versions": [with(version, json!({"name": "v2"}))]}})));
    t.delete(&made, Propagation::Background);
    t.wait(&made, is_absent);
}

fn custom_resources(t: &mut Transcript<'_>) {
    let defined = t.create(definition("garden.example.com"));
    t.wait(&defined, is_established);
    let rose = |t: &Transcript<'_>, name: &str, spec: Value| json!({"apiVersion": "garden.example.com/v1", "kind": "Rose", "metadata": {"name": name, "namespace": t.namespace}, "spec": spec});
    // Served a moment after the condition says so.
    let probe = rose(t, "probe", json!({"colour": "red"}));
    t.until_served(&probe);
    let made =
        t.create(with(rose(t, "a", json!({"colour": "red", "thorns": 3})), json!({"status": {"x": 1}, "other": 1})));
    t.create(rose(t, "bad-1", json!({"petals": "many"})));
    t.create(rose(t, "bad-2", json!({"colour": "blue", "petals": 10, "name": "A"})));
    t.create(rose(t, "bad-3", json!({"colour": "red", "petals": 0, "name": "abcdefg", "maybe": null, "port": true})));
    t.create(rose(t, "bad-4", json!({"colour": "red", "tags": ["a", "a", "b"]})));
    t.create(rose(t, "bad-5", json!({"colour": "red", "leaves": [{"name": "x"}, {"name": "x"}, {}]})));
    t.create(rose(t, "bad-6", json!({"colour": null, "since": "yesterday"})));
    t.create(rose(t, "bad-7", json!("text")));
    t.create(rose(t, "bad-8", json!({"colour": "red", "name": null, "tags": [null]})));
    t.create(with(rose(t, "a", json!({})), json!({"metadata": {"labels": {"a": 1}}})));
    t.create(rose(t, "fine", json!({"colour": "red", "maybe": null, "petals": null, "port": "50%", "tags": [], "since": "2026-01-01T00:00:00Z"})));
    t.update(
        with(
            made.clone(),
            json!({"spec": {"colour": "white"}, "status": {"bloom": true}, "metadata": {"labels": {"a": "b"}}}),
        ),
        Some("status"),
    );
    let current = t.get(&made);
    t.update(
        with(
            current.clone(),
            json!({"spec": {"colour": "white"}, "status": {"bloom": false}, "metadata": {"labels": {"a": "b"}}}),
        ),
        None,
    );
    t.update(with(made.clone(), json!({"metadata": {"resourceVersion": null}})), None);
    t.update(made.clone(), None);
    t.patch(&made, Patch::Strategic(json!({"spec": {"colour": "red"}})));
    t.patch(&made, Patch::Merge(json!({"spec": {"petals": null}})));
    t.patch(&made, Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}})));
    t.delete(&made, Propagation::Background);
    t.apply(
        rose(t, "applied", json!({"colour": "red", "tags": ["a"], "leaves": [{"name": "x", "size": 1}]})),
        "me",
        false,
    );
    t.apply(
        rose(t, "applied", json!({"colour": "red", "tags": ["b"], "leaves": [{"name": "y", "size": 2}]})),
        "you",
        false,
    );
    t.apply(rose(t, "applied", json!({"colour": "white", "leaves": [{"name": "x", "size": 3}]})), "you", false);
    t.apply(rose(t, "applied", json!({"colour": "white", "leaves": [{"name": "x", "size": 3}]})), "you", true);
    t.apply(rose(t, "applied", json!({})), "me", false);
    t.delete(&defined, Propagation::Background);
    t.patch(&made, Patch::Merge(json!({"metadata": {"finalizers": null}})));
    t.wait(&defined, is_absent);
}

fn extensions(t: &mut Transcript<'_>) {
    let webhook = |kind: &str, name: &str, webhook: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
            "webhooks": [with(json!({
                "name": "a.b.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"service": {"name": "s", "namespace": "n"}},
                "rules": [{"apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "resources": ["nothing"], "operations": ["CREATE"]}],
            }), webhook)],
        })
    };
    let made = t.create(webhook("ValidatingWebhookConfiguration", "extensions-v", json!({})));
    t.patch(&made, Patch::Json(json!([{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 5}])));
    t.create(webhook(
        "MutatingWebhookConfiguration",
        "extensions-m",
        json!({"timeoutSeconds": 3, "failurePolicy": "Ignore"}),
    ));
    t.create(webhook(
        "ValidatingWebhookConfiguration",
        "bad",
        json!({"name": "short", "sideEffects": null, "admissionReviewVersions": []}),
    ));
    t.create(webhook("ValidatingWebhookConfiguration", "bad", json!({"timeoutSeconds": 31})));
    let service = |name: &str, spec: Value| {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name},
            "spec": with(json!({
                "group": "metrics.example.com", "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 15,
                "insecureSkipTLSVerify": true, "service": {"name": "nothing", "namespace": "default"},
            }), spec),
        })
    };
    let made = t.create(service("v1.metrics.example.com", json!({})));
    t.wait(&made, |o| has_condition(o, "Available", "False", ""));
    t.create(service("wrong", json!({})));
    t.delete(&made, Propagation::Background);
}

fn namespace_end(t: &mut Transcript<'_>) {
    let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": t.namespace}});
    let made = t.get(&own);
    t.update(
        with(
            made.clone(),
            json!({"spec": {"finalizers": ["x"]}, "status": {"phase": "Other"}, "metadata": {"labels": null}}),
        ),
        None,
    );
    t.create(config_map(t, "a"));
    let held = t.create(with(config_map(t, "held"), json!({"metadata": {"finalizers": ["example.com/hold"]}})));
    t.delete(&own, Propagation::Background);
    t.create(config_map(t, "late"));
    t.wait(&own, |o| has_condition(o, "NamespaceFinalizersRemaining", "True", ""));
    t.patch(&held, Patch::Merge(json!({"metadata": {"finalizers": null}})));
    t.wait(&own, is_absent);
    t.create(with(own, json!({"metadata": {"labels": {"a": "b", "kubernetes.io/metadata.name": "no"}}, "spec": {"finalizers": ["example.com/x"]}, "status": {"phase": "Other"}})));
}

fn patches(t: &mut Transcript<'_>) {
    t.only_spec = true;
    let made = t.create(with(deployment(t, "rose", json!({})), json!({"spec": {"replicas": 0}})));
    t.wait(&made, |o| has_condition(o, "Progressing", "True", "NewReplicaSetAvailable"));
    t.patch(&made, Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [
        {"name": "manager", "env": [{"name": "E", "value": "1"}], "ports": [{"containerPort": 80}]}, {"name": "side", "image": "s:1"},
    ]}}}})));
    t.patch(
        &made,
        Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [
            {"name": "manager", "$patch": "delete"}, {"name": "side", "env": [{"name": "F", "value": "2"}]},
        ]}}}})),
    );
    t.patch(&made, Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [{"$patch": "replace"}, {"name": "only", "image": "o:1"}]}}}})));
    t.patch(&made, Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [{"image": "nameless"}]}}}})));
    t.patch(&made, Patch::Strategic(json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})));
    t.patch(&made, Patch::Json(json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}])));
    t.patch(&made, Patch::Json(json!([{"op": "test", "path": "/metadata/labels/a", "value": "c"}])));
    t.patch(&made, Patch::Json(json!([{"op": "remove", "path": "/metadata/annotations/none"}])));
    t.patch(&made, Patch::Merge(json!({"metadata": {"name": "other"}})));
    t.patch(&made, Patch::Merge(json!({"spec": {"unknown": 1}})));
}

fn applying(t: &mut Transcript<'_>) {
    let labelled =
        |t: &Transcript<'_>, labels: Value| with(config_map(t, "a"), json!({"metadata": {"labels": labels}}));
    let made = t.apply(labelled(t, json!({"a": "1", "b": "2"})), "me", false);
    t.patch(&made, Patch::Merge(json!({"metadata": {"labels": {"c": "3"}}})));
    t.apply(labelled(t, json!({"a": "1"})), "me", false);
    t.apply(labelled(t, json!({"a": "2"})), "you", false);
    t.apply(labelled(t, json!({"a": "1"})), "you", false);
    t.apply(labelled(t, json!({"a": "2"})), "you", true);
    t.apply(labelled(t, json!({})), "me", false);
    t.apply(labelled(t, json!({"z": null})), "me", false);
    let pods = |t: &Transcript<'_>, containers: Value| {
        with(deployment(t, "rose", json!({"containers": containers})), json!({"spec": {"replicas": 0}}))
    };
    let made = t.apply(
        pods(
            t,
            json!([{"name": "a", "image": "i:1", "ports": [{"containerPort": 80}]}, {"name": "b", "image": "j:1"}]),
        ),
        "me",
        false,
    );
    t.wait(&made, |o| has_condition(o, "Progressing", "True", "NewReplicaSetAvailable"));
    t.only_spec = true;
    t.apply(pods(t, json!([{"name": "s", "image": "k:1"}])), "you", false);
    t.apply(pods(t, json!([{"name": "a", "image": "i:2", "ports": [{"containerPort": 81}]}])), "me", false);
    t.apply(pods(t, json!([{"name": "a", "image": "i:3"}])), "you", false);
}

fn decoding(t: &mut Transcript<'_>) {
    t.create(with(config_map(t, "a"), json!({"data": {"k": 1}})));
    t.create(with(config_map(t, "a"), json!({"data": []})));
    t.create(with(config_map(t, "a"), json!({"metadata": {"labels": {"a": true}}})));
    t.create(with(deployment(t, "a", json!({})), json!({"spec": {"replicas": "three"}})));
    t.create(with(deployment(t, "a", json!({})), json!({"spec": {"replicas": 1.5}})));
    t.create(deployment(t, "a", json!({"containers": {}})));
    t.create(deployment(t, "a", json!({"containers": [{"name": "a", "image": 1}]})));
    t.create(deployment(
        t,
        "a",
        json!({"containers": [{"name": "a", "image": "i", "resources": {"limits": {"cpu": "lots"}}}]}),
    ));
    t.create(deployment(t, "a", json!({"hostNetwork": "yes"})));
    t.create(with(config_map(t, "null"), json!({"metadata": {"annotations": {"a": "b"}}, "data": {"k": "v"}})));
}
