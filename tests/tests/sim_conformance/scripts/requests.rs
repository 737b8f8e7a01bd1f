//! Requests of all types: names, conflicts, deletions, owners, patches, applies.

use olm_core::api::object::{owner_reference, uid};
use olm_core::sim::{Patch, Preconditions, Propagation};
use serde_json::{Value, json};

use super::workloads::deployment;
use super::{config_map, has_condition, is_absent, with};
use crate::transcript::Transcript;

pub(super) fn names(t: &mut Transcript<'_>) {
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

pub(super) fn conflicts(t: &mut Transcript<'_>) {
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

pub(super) fn deletions(t: &mut Transcript<'_>) {
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

pub(super) fn owners(t: &mut Transcript<'_>) {
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

    let other_parent = with(parent.clone(), json!({"metadata": {"uid": "11111111-1111-4111-8111-111111111111"}}));
    let child = t.create(owned(t, "child", &[&other_parent]));
    t.wait(&child, is_absent);
}

pub(super) fn namespace_end(t: &mut Transcript<'_>) {
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

pub(super) fn patches(t: &mut Transcript<'_>) {
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

pub(super) fn applying(t: &mut Transcript<'_>) {
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

pub(super) fn decoding(t: &mut Transcript<'_>) {
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
