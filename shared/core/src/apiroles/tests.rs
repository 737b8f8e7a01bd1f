use serde_json::{Value, json};

use super::plan;
use crate::plan::{Action, Controller, Key, Plan};
use crate::testing;
use crate::world::{Reader, World};

fn planned(world: &World) -> Plan {
    plan(&Reader::new(world), &Key::new(Controller::ProvidedApiRoles, "garden", "rose.v1"))
}

fn csv(phase: &str) -> Value {
    let spec = json!({
        "customresourcedefinitions": {"owned": [
            {"name": "roses.garden.example.com", "kind": "Rose", "version": "v1"},
            {"name": "absent.garden.example.com", "kind": "Absent", "version": "v1"},
        ]},
        "apiservicedefinitions": {"owned": [{"name": "soils", "kind": "Soil", "group": "soil.example.com", "version": "v2"}]},
    });
    testing::with_status(testing::csv("garden", "rose.v1", &spec), &json!({"phase": phase}))
}

fn world(phase: &str) -> World {
    let mut world = World::new();
    world.apply(csv(phase));
    world.apply(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "roses.garden.example.com", "uid": "crd"},
    }));
    world.apply(json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v2.soil.example.com", "uid": "service"},
    }));
    world
}

fn created(plan: Plan) -> Vec<Value> {
    plan.actions
        .into_iter()
        .map(|a| match a {
            Action::Create(o) => o,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn each_existing_api_gets_its_roles() {
    let roles = created(planned(&world("Succeeded")));
    let summary: Vec<(&str, String, &str)> = roles
        .iter()
        .map(|r| {
            let owner = r["metadata"]["ownerReferences"][0]["kind"].as_str().unwrap();
            (r["metadata"]["name"].as_str().unwrap(), r["rules"][0]["verbs"].to_string(), owner)
        })
        .collect();
    let edit = r#"["create","update","patch","delete"]"#.to_owned();
    let view = r#"["get","list","watch"]"#.to_owned();
    let all = r#"["*"]"#.to_owned();
    let get = r#"["get"]"#.to_owned();
    assert_eq!(
        summary,
        [
            ("roses.garden.example.com-v1-admin", all.clone(), "customresourcedefinition"),
            ("roses.garden.example.com-v1-edit", edit.clone(), "customresourcedefinition"),
            ("roses.garden.example.com-v1-view", view.clone(), "customresourcedefinition"),
            ("roses.garden.example.com-v1-crdview", get, "customresourcedefinition"),
            ("soils-v2-admin", all, "APIService"),
            ("soils-v2-edit", edit, "APIService"),
            ("soils-v2-view", view, "APIService"),
        ]
    );
    assert_eq!(
        roles[3],
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {
                "name": "roses.garden.example.com-v1-crdview",
                "labels": {
                    "olm.managed": "true",
                    "rbac.authorization.k8s.io/aggregate-to-view": "true",
                    "olm.opgroup.permissions/aggregate-to-521902042ec4d59b-view": "true",
                },
                "ownerReferences": [{
                    "apiVersion": "apiextensions.k8s.io/v1", "kind": "customresourcedefinition", "name": "roses.garden.example.com",
                    "uid": "crd", "controller": false, "blockOwnerDeletion": false,
                }],
            },
            "rules": [{
                "verbs": ["get"], "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
                "resourceNames": ["roses.garden.example.com"],
            }],
        })
    );
}

#[test]
fn they_are_restored_without_changing_other_fields() {
    let mut world = world("Succeeded");
    for role in created(planned(&world)) {
        world.apply(role);
    }
    assert_eq!(planned(&world).actions, []);
    let name = "roses.garden.example.com-v1-view";
    let good = Reader::new(&world).json(&crate::world::kind::CLUSTER_ROLE, "", name).unwrap().clone();
    let mut labelled = good.clone();
    labelled["metadata"]["labels"]["mine"] = "yes".into();
    world.apply(labelled.clone());
    assert_eq!(planned(&world).actions, []);
    let mut edited = labelled.clone();
    edited["rules"] = json!([]);
    edited["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] = json!(null);
    world.apply(edited);
    assert_eq!(planned(&world).actions, [Action::Update(labelled)]);
}

#[test]
fn nothing_is_created_before_success_or_for_copies() {
    assert_eq!(planned(&world("Installing")), Plan::nothing());
    let mut world = world("Succeeded");
    let mut copy = csv("Succeeded");
    copy["metadata"]["labels"] = json!({"olm.copiedFrom": "field"});
    world.apply(copy);
    assert_eq!(planned(&world), Plan::nothing());
}
