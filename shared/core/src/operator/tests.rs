use serde_json::{Value, json};

use super::adoption::component;
use super::{plan, plan_adoption};
use crate::plan::{Action, Controller, Key, Plan};
use crate::testing::world;
use crate::world::{Reader, World};

const LABEL: &str = "operators.coreos.com/rose.garden";

fn operator_plan(world: &World) -> Plan {
    plan(&Reader::new(world), &Key::new(Controller::Operator, "", "rose.garden"))
}

fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "uid": format!("{kind}/{name}"), "labels": {}},
    })
}

fn labelled(mut object: Value) -> Value {
    object["metadata"]["labels"][LABEL] = "".into();
    object
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    crate::api::object::map_mut(&mut object, &["status"]);
    match pointer.split_once('/') {
        Some((parent, field)) => object[parent][field] = value,
        None => object[pointer] = value,
    }
    object
}

fn csv(name: &str) -> Value {
    object("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "garden", name)
}

fn install_plan(name: &str) -> Value {
    object("operators.coreos.com/v1alpha1", "InstallPlan", "garden", name)
}

fn subscription(name: &str, package: &str, csv: &str, plan: &str) -> Value {
    let mut subscription = object("operators.coreos.com/v1alpha1", "Subscription", "garden", name);
    subscription["spec"] = json!({"name": package});
    subscription["status"] = json!({"installedCSV": csv, "installPlanRef": {"name": plan}});
    subscription
}

fn config_map(name: &str) -> Value {
    object("v1", "ConfigMap", "garden", name)
}

#[test]
fn an_operator_is_created_for_its_first_component() {
    let create = Action::Create(json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "Operator", "metadata": {"name": "rose.garden"}, "spec": {},
    }));
    assert_eq!(operator_plan(&world(&[labelled(config_map("a"))])), Plan::act(vec![create]));
    assert_eq!(operator_plan(&world(&[config_map("a")])), Plan::nothing());
    let webhook = object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "w");
    assert_eq!(operator_plan(&world(&[labelled(webhook)])), Plan::nothing(), "not a kind of component");
    let key = Key::new(Controller::Operator, "", "Rose_garden");
    let odd = with(config_map("a"), "metadata/labels", json!({"operators.coreos.com/Rose_garden": ""}));
    assert_eq!(plan(&Reader::new(&world(&[odd])), &key), Plan::nothing(), "no object can have that name");
}

#[test]
fn components_are_listed_in_order_with_their_conditions() {
    let operator = with(object("operators.coreos.com/v1", "Operator", "", "rose.garden"), "spec", json!({}));
    let deployment = with(
        object("apps/v1", "Deployment", "garden", "rose"),
        "status/conditions",
        json!([{"type": "Available", "status": "True", "reason": "Up", "message": "", "lastUpdateTime": "then", "observedGeneration": 2}]),
    );
    let csv = with(
        csv("rose.v1"),
        "status",
        json!({
            "phase": "Succeeded", "reason": "InstallSucceeded", "message": "done", "lastUpdateTime": "t1", "lastTransitionTime": "t2",
            "conditions": [{"phase": "Pending"}],
        }),
    );
    let copy = with(
        object("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "field", "rose.v1"),
        "metadata/labels",
        json!({"olm.copiedFrom": "garden", LABEL: ""}),
    );
    let components = [
        config_map("b"),
        deployment,
        config_map("a"),
        csv,
        object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "rose"),
    ];
    let mut all: Vec<Value> = components.into_iter().map(labelled).collect();
    all.extend([copy, operator.clone(), config_map("unlabelled")]);
    let mut expected = operator.clone();
    expected["status"] = json!({"components": {
        "labelSelector": {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]},
        "refs": [
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "rose"},
            {
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": "rose.v1", "namespace": "garden",
                "conditions": [{
                    "type": "Succeeded", "status": "True", "reason": "InstallSucceeded", "message": "done",
                    "lastUpdateTime": "t1", "lastTransitionTime": "t2",
                }],
            },
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "garden"},
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "namespace": "garden"},
            {
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "rose", "namespace": "garden",
                "conditions": [{"type": "Available", "status": "True", "reason": "Up", "lastUpdateTime": "then"}],
            },
        ],
    }});
    let mut world = world(&all);
    assert_eq!(operator_plan(&world), Plan::act(vec![Action::UpdateStatus(expected.clone())]));
    world.apply(expected);
    assert_eq!(operator_plan(&world), Plan::nothing());
}

#[test]
fn an_operator_without_components_is_not_deleted() {
    let operator = object("operators.coreos.com/v1", "Operator", "", "rose.garden");
    let mut expected = operator.clone();
    expected["status"] =
        json!({"components": {"labelSelector": {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]}}});
    assert_eq!(operator_plan(&world(&[operator])), Plan::act(vec![Action::UpdateStatus(expected)]));
}

#[test]
fn component_names_fit_into_a_label() {
    for (package, namespace, expected) in [
        ("rose", "garden", "rose.garden".to_owned()),
        (&"x".repeat(60), "garden", format!("{}.ga", "x".repeat(60))),
        (&"x".repeat(62), "garden", "x".repeat(62)),
        ("rose-.", "", "rose".to_owned()),
    ] {
        assert_eq!(component(package, namespace), expected);
    }
}

/// Returns kind, name and labels of each patch.
fn adopted(objects: &[Value], name: &str) -> Vec<(String, String, Value)> {
    let world = world(objects);
    let plan = plan_adoption(&Reader::new(&world), &Key::new(Controller::Adoption, "garden", name));
    let patches = plan.actions.into_iter().map(|action| match action {
        Action::Patch { target, patch, .. } => (target.gvk.kind, target.name, patch["metadata"]["labels"].clone()),
        other => panic!("{other:?}"),
    });
    patches.collect()
}

fn label(kind: &str, name: &str) -> (String, String, Value) {
    (kind.to_owned(), name.to_owned(), json!({LABEL: ""}))
}

fn unlabel(kind: &str, name: &str) -> (String, String, Value) {
    (kind.to_owned(), name.to_owned(), json!({LABEL: null}))
}

#[test]
fn a_subscription_adopts_what_it_installed_and_releases_old_plans() {
    let mut objects = vec![
        subscription("rose", "rose", "rose.v2", "install-2"),
        csv("rose.v1"),
        csv("rose.v2"),
        labelled(install_plan("install-1")),
        install_plan("install-2"),
        install_plan("other"),
    ];
    assert_eq!(
        adopted(&objects, "rose"),
        [
            label("Subscription", "rose"),
            label("ClusterServiceVersion", "rose.v2"),
            label("InstallPlan", "install-2"),
            unlabel("InstallPlan", "install-1"),
        ]
    );
    objects.push(subscription("rose-again", "rose", "", "install-1"));
    let again = adopted(&objects, "rose");
    assert!(!again.contains(&unlabel("InstallPlan", "install-1")), "another Subscription refers to it");
    assert_eq!(adopted(&[labelled(subscription("rose", "rose", "gone", "gone"))], "rose"), []);
}

#[test]
fn a_csv_passes_its_labels_to_what_it_owns() {
    let owner_labels =
        json!({"olm.owner": "rose.v1", "olm.owner.namespace": "garden", "olm.owner.kind": "ClusterServiceVersion"});
    let reference = json!([{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": "rose.v1", "uid": "ClusterServiceVersion/rose.v1"}]);
    let mut csv = labelled(csv("rose.v1"));
    csv["spec"] = json!({"customresourcedefinitions": {"owned": [{"name": "roses.x.io"}, {"name": "absent.x.io"}]}});
    let both = with(
        with(config_map("both"), "metadata/labels", owner_labels.clone()),
        "metadata/ownerReferences",
        reference.clone(),
    );
    let objects = [
        csv.clone(),
        with(config_map("by-reference"), "metadata/ownerReferences", reference.clone()),
        with(
            object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "by-labels"),
            "metadata/labels",
            owner_labels.clone(),
        ),
        both,
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "roses.x.io"),
        with(labelled(config_map("labelled")), "metadata/ownerReferences", reference.clone()),
        with(object("batch/v1", "Job", "garden", "no-component"), "metadata/ownerReferences", reference),
        config_map("somebody-elses"),
    ];
    let mut labels = adopted(&objects, "rose.v1");
    labels.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    assert_eq!(
        labels,
        [
            label("ClusterRole", "by-labels"),
            label("ConfigMap", "both"),
            label("ConfigMap", "by-reference"),
            label("CustomResourceDefinition", "roses.x.io"),
        ]
    );
    csv["metadata"]["labels"]["olm.copiedFrom"] = "field".into();
    assert_eq!(adopted(&[csv, objects[1].clone()], "rose.v1"), [], "copies own nothing");
}
