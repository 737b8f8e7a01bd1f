//! OLM's own kinds: pruned, defaulted and validated by their definitions.

use olm_core::api::crd;
use olm_core::sim::Patch;
use serde_json::{Value, json};

use super::kinds::is_established;
use super::with;
use crate::transcript::Transcript;

pub(super) fn kinds(t: &mut Transcript<'_>) {
    for definition in crd::all() {
        t.silently(|t| {
            let made = t.create(definition.clone());
            t.wait(&made, is_established);
        });
    }
    let object = |t: &Transcript<'_>, version: &str, kind: &str, name: &str, rest: Value| {
        let metadata = json!({"name": name, "namespace": t.namespace});
        let api_version = format!("operators.coreos.com/{version}");
        with(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata}), rest)
    };
    let group = object(t, "v1", "OperatorGroup", "probe", json!({"spec": {}}));
    t.until_served(&group);
    let group =
        t.create(object(t, "v1", "OperatorGroup", "g", json!({"spec": {"targetNamespaces": ["a"], "other": 1}})));
    t.patch(&group, Patch::Merge(json!({"status": {"lastUpdated": "2026-01-01T00:00:00Z"}})));
    t.update(
        with(group, json!({"status": {"lastUpdated": "2026-01-01T00:00:00Z", "namespaces": ["a"]}})),
        Some("status"),
    );
    t.create(object(t, "v1", "OperatorGroup", "empty", json!({})));
    t.create(object(t, "v1", "OperatorGroup", "bad", json!({"spec": {"upgradeStrategy": "No"}})));
    t.create(object(
        t,
        "v1alpha1",
        "Subscription",
        "s",
        json!({"spec": {"name": "n", "source": "s", "sourceNamespace": "x", "config": {"env": [{"name": "A"}]}}}),
    ));
    t.create(object(t, "v1alpha1", "Subscription", "bad", json!({"spec": {"channel": "c"}})));
    t.create(object(
        t,
        "v1alpha1",
        "CatalogSource",
        "c",
        json!({"spec": {"sourceType": "grpc", "address": "127.0.0.1:50061", "grpcPodConfig": {}}}),
    ));
    t.create(object(
        t,
        "v1alpha1",
        "CatalogSource",
        "bad",
        json!({"spec": {"grpcPodConfig": {"securityContextConfig": "odd"}}}),
    ));
    t.create(object(
        t,
        "v1alpha1",
        "InstallPlan",
        "i",
        json!({"spec": {"approval": "Manual", "approved": false, "clusterServiceVersionNames": ["a"]}}),
    ));
    t.create(object(t, "v1alpha1", "InstallPlan", "bad", json!({"spec": {"approved": "no"}})));
    let csv = json!({"spec": {
        "displayName": "Rose", "version": "1.0.0",
        "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "d", "spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "c"}]}}}}]}},
        "webhookdefinitions": [{"type": "ValidatingAdmissionWebhook", "generateName": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"]}],
    }});
    t.create(object(t, "v1alpha1", "ClusterServiceVersion", "csv", csv));
    t.create(object(
        t,
        "v1alpha1",
        "ClusterServiceVersion",
        "bad-1",
        json!({"spec": {"displayName": "x", "install": {"strategy": "s", "spec": {"deployments": [{}]}}}}),
    ));
    t.create(object(t, "v1alpha1", "ClusterServiceVersion", "bad-2", json!({"spec": {"version": "one"}})));
    t.create(object(t, "v1alpha1", "ClusterServiceVersion", "bad-3", json!({"spec": {
        "displayName": "x", "install": {"strategy": "s"},
        "webhookdefinitions": [{"type": "Odd", "generateName": "a", "sideEffects": "None", "admissionReviewVersions": [], "containerPort": 0}],
        "customresourcedefinitions": {"owned": [{"name": "a", "kind": "b"}]},
    }})));
    t.create(object(
        t,
        "v2",
        "OperatorCondition",
        "o",
        json!({"spec": {"conditions": [{"type": "Upgradeable", "status": "False"}]}}),
    ));
    let condition = json!({"type": "Upgradeable", "status": "False", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    t.create(object(
        t,
        "v2",
        "OperatorCondition",
        "o",
        json!({"spec": {"conditions": [condition], "overrides": [{"type": "Upgradeable", "status": "True"}]}}),
    ));
}
