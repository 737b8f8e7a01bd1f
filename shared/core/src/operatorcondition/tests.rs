use jiff::Timestamp;
use serde_json::{Value, json};

use super::{plan, report};
use crate::plan::{Action, Controller, Key, Plan};
use crate::world::{Reader, World};

const NOW: &str = "2026-11-21T13:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn planned(world: &World) -> Plan {
    plan(&Reader::new(world), &Key::new(Controller::OperatorCondition, "garden", "rose.v1"), now())
}

fn csv(install: &Value) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "rose.v1", "namespace": "garden", "uid": "csv"},
        "spec": {"install": {"spec": install}},
    })
}

fn condition(spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v2", "kind": "OperatorCondition",
        "metadata": {"name": "rose.v1", "namespace": "garden", "uid": "oc", "generation": 3, "ownerReferences": [{
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": "rose.v1", "uid": "csv",
            "controller": true, "blockOwnerDeletion": false,
        }]},
        "spec": spec, "status": status,
    })
}

#[test]
fn every_original_csv_gets_one() {
    let cases = [
        (json!({}), json!({"serviceAccounts": ["default"]})),
        (
            json!({
                "deployments": [{"name": "rose-operator"}],
                "permissions": [{"serviceAccountName": "a"}, {"serviceAccountName": ""}],
                "clusterPermissions": [{"serviceAccountName": "b"}, {"serviceAccountName": "a"}],
            }),
            json!({"deployments": ["rose-operator"], "serviceAccounts": ["b", "a", "a"]}),
        ),
    ];
    for (install, spec) in cases {
        let mut world = World::new();
        world.apply(csv(&install));
        let mut expected = condition(&spec, &json!(null));
        expected.as_object_mut().unwrap().remove("status");
        expected["metadata"].as_object_mut().unwrap().retain(|k, _| k != "uid" && k != "generation");
        assert_eq!(planned(&world), Plan::act(vec![Action::Create(expected)]), "{install}");
    }
}

#[test]
fn copies_and_terminating_csvs_get_none() {
    for (path, value) in [("labels", json!({"olm.copiedFrom": "field"})), ("deletionTimestamp", json!(NOW))] {
        let mut world = World::new();
        let mut csv = csv(&json!({}));
        csv["metadata"][path] = value;
        world.apply(csv);
        assert_eq!(planned(&world), Plan::nothing(), "{path}");
    }
}

#[test]
fn only_derived_fields_are_updated() {
    let mut world = World::new();
    world.apply(csv(&json!({"deployments": [{"name": "new"}]})));
    let mut old = condition(
        &json!({"deployments": ["old"], "serviceAccounts": ["old"], "overrides": [{"type": "Upgradeable"}]}),
        &json!({}),
    );
    old["metadata"]["labels"] = json!({"mine": "yes"});
    old["metadata"]["ownerReferences"][0]["uid"] = "previous".into();
    world.apply(old.clone());
    old["metadata"]["ownerReferences"][0]["uid"] = "csv".into();
    old["spec"]["deployments"] = json!(["new"]);
    old["spec"]["serviceAccounts"] = json!(["default"]);
    assert_eq!(planned(&world), Plan::act(vec![Action::Update(old)]));
}

#[test]
fn role_and_binding_are_created_and_restored() {
    let mut world = World::new();
    world.apply(condition(&json!({"serviceAccounts": ["rose", "rose"]}), &json!({})));
    let metadata = json!({
        "name": "rose.v1", "namespace": "garden", "labels": {"olm.managed": "true"},
        "ownerReferences": [{
            "apiVersion": "operators.coreos.com/v2", "kind": "OperatorCondition", "name": "rose.v1", "uid": "oc",
            "controller": true, "blockOwnerDeletion": false,
        }],
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
        "rules": [{
            "verbs": ["get", "update", "patch"], "apiGroups": ["operators.coreos.com"],
            "resources": ["operatorconditions"], "resourceNames": ["rose.v1"],
        }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "subjects": [{"kind": "ServiceAccount", "name": "rose"}, {"kind": "ServiceAccount", "name": "rose"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "rose.v1"},
    });
    assert_eq!(planned(&world), Plan::act(vec![Action::Create(role.clone()), Action::Create(binding.clone())]));

    let mut edited = role.clone();
    edited["rules"] = json!([]);
    edited["metadata"]["labels"]["mine"] = "yes".into();
    world.apply(edited);
    world.apply(binding);
    let mut restored = role;
    restored["metadata"]["labels"]["mine"] = "yes".into();
    assert_eq!(planned(&world), Plan::act(vec![Action::Update(restored.clone())]));
    world.apply(restored);
    assert_eq!(planned(&world), Plan::nothing());
}

#[test]
fn conditions_are_copied_with_their_generation() {
    let said = |status: &str| json!({"type": "Upgradeable", "status": status, "reason": "Migrating", "message": "moving", "lastTransitionTime": "said"});
    let told = |status: &str, generation: i64, since: &str| {
        let mut condition = said(status);
        condition["observedGeneration"] = generation.into();
        condition["lastTransitionTime"] = since.into();
        condition
    };
    let other = json!({"type": "Other", "status": "True"});
    let cases = [
        (json!([]), json!([]), None),
        (json!([said("False")]), json!([]), Some(json!([told("False", 3, "said")]))),
        (json!([said("False")]), json!([told("False", 3, "then")]), None),
        (json!([said("False")]), json!([told("False", 2, "then")]), Some(json!([told("False", 3, "then")]))),
        (
            json!([said("True")]),
            json!([other, told("False", 3, "then")]),
            Some(json!([other, told("True", 3, "said")])),
        ),
        (json!([]), json!([told("False", 3, "then")]), None),
    ];
    for (spec, status, expected) in cases {
        let condition = condition(&json!({"conditions": spec}), &json!({"conditions": status}));
        let written = report(&condition, now()).map(|action| match action {
            Action::UpdateStatus(new) => new["status"]["conditions"].clone(),
            other => panic!("{other:?}"),
        });
        assert_eq!(written, expected, "{spec} {status}");
    }
}
