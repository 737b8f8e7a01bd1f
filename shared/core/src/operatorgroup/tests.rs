use jiff::Timestamp;
use serde_json::{Value, json};

use super::{plan, plan_namespace, roles};
use crate::membership::Group;
use crate::plan::{Action, Controller, Key, Plan, Reason};
use crate::testing;
use crate::testing::world;
use crate::world::{Reader, World};

const NOW: &str = "2026-11-21T13:00:00Z";

fn planned(world: &World) -> Plan {
    let now: Timestamp = NOW.parse().unwrap();
    plan(&Reader::new(world), &Key::new(Controller::OperatorGroup, "garden", "og"), now)
}

/// Executes plans, with what Kubernetes would add, until a plan is empty.
fn settle(world: &mut World) {
    for round in 0..10 {
        let plan = planned(world);
        if plan.actions.is_empty() {
            return;
        }
        for action in plan.actions {
            match action {
                Action::Create(o) | Action::Update(o) | Action::UpdateStatus(o) => {
                    world.apply(o);
                }
                other => panic!("round {round}: {other:?}"),
            }
        }
    }
    panic!("no fixed point");
}

fn group(spec: &Value, annotations: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "garden", "uid": "og-uid", "annotations": annotations},
        "spec": spec, "status": status,
    })
}

fn csv(name: &str, phase: &str, crd: &str) -> Value {
    let spec = json!({
        "installModes": testing::install_modes(&["AllNamespaces"]),
        "customresourcedefinitions": {"owned": [testing::owned_crd(crd)]},
    });
    testing::with_status(testing::csv("garden", name, &spec), &json!({"phase": phase}))
}

fn status_written(plan: &Plan) -> Option<&Value> {
    plan.actions.iter().find_map(|a| match a {
        Action::UpdateStatus(o) => Some(&o["status"]),
        _ => None,
    })
}

#[test]
fn targets_are_recorded_once() {
    let own = json!({"targetNamespaces": ["garden"]});
    let cases = [
        (json!({}), json!({}), Some(json!({"lastUpdated": NOW, "namespaces": [""]}))),
        (own.clone(), json!(null), Some(json!({"lastUpdated": NOW, "namespaces": ["garden"]}))),
        (own.clone(), json!({"lastUpdated": "then", "namespaces": ["garden"]}), None),
        (json!({"targetNamespaces": ["b", "a"]}), json!({"namespaces": ["b", "a"]}), None),
        (
            own,
            json!({"lastUpdated": "then", "namespaces": [""]}),
            Some(json!({"lastUpdated": NOW, "namespaces": ["garden"]})),
        ),
        (
            json!({"selector": {"matchLabels": {"team": "none"}}}),
            json!({"lastUpdated": "then", "namespaces": ["x"]}),
            Some(json!({"lastUpdated": NOW})),
        ),
        (json!({"selector": {"matchLabels": {"team": "none"}}}), json!(null), None),
    ];
    for (spec, status, expected) in cases {
        let plan = planned(&world(&[group(&spec, &json!({}), &status)]));
        assert_eq!(status_written(&plan), expected.as_ref(), "{spec} {status}");
        assert_eq!(plan.reasons, []);
    }
}

#[test]
fn an_invalid_spec_is_reported_and_changes_nothing() {
    let spec = json!({"targetNamespaces": [""]});
    let plan = planned(&world(&[group(&spec, &json!({}), &json!({"namespaces": ["a"]}))]));
    assert_eq!(plan.actions, []);
    assert!(matches!(&plan.reasons[..], [Reason::Invalid { object, .. }] if object == "OperatorGroup garden/og"));
}

#[test]
fn several_groups_in_a_namespace_are_reported_on_each() {
    let condition = json!({
        "type": "MultipleOperatorGroup", "status": "True", "reason": "MultipleOperatorGroupsFound",
        "message": "Multiple OperatorGroup found in the same namespace", "lastTransitionTime": NOW,
    });
    let settled = json!({"namespaces": [""], "lastUpdated": "then"});
    let mut reported = settled.clone();
    reported["conditions"] = json!([condition]);
    let mut other = group(&json!({}), &json!({}), &settled);
    other["metadata"]["name"] = "other".into();

    let two = world(&[group(&json!({}), &json!({}), &settled), other.clone()]);
    let expected = json!({"namespaces": [""], "lastUpdated": NOW, "conditions": [condition]});
    assert_eq!(status_written(&planned(&two)), Some(&expected));
    let two = world(&[group(&json!({}), &json!({}), &reported), other]);
    assert_eq!(status_written(&planned(&two)), None);
    let one = world(&[group(&json!({}), &json!({}), &reported)]);
    assert_eq!(status_written(&planned(&one)), Some(&json!({"namespaces": [""], "lastUpdated": NOW})));
}

#[test]
fn a_missing_service_account_is_reported_and_a_created_one_recorded() {
    let spec = json!({"serviceAccountName": "gardener", "targetNamespaces": ["garden"]});
    let mut world = world(&[group(&spec, &json!({}), &json!(null))]);
    let plan = planned(&world);
    let missing = json!({
        "lastUpdated": NOW,
        "conditions": [{
            "type": "OperatorGroupServiceAccount", "status": "True", "reason": "ServiceAccountNotFound",
            "message": "ServiceAccount gardener not found", "lastTransitionTime": NOW,
        }],
    });
    assert_eq!(plan.actions.len(), 1, "neither targets nor roles before the account exists");
    assert_eq!(status_written(&plan), Some(&missing));
    assert!(matches!(&plan.reasons[..], [Reason::Missing { needs, .. }] if needs == "ServiceAccount garden/gardener"));

    world.apply(group(&spec, &json!({}), &missing));
    world.apply(json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "gardener", "namespace": "garden", "uid": "sa", "resourceVersion": "7"},
    }));
    let plan = planned(&world);
    let found = json!({
        "lastUpdated": NOW, "namespaces": ["garden"],
        "serviceAccountRef": {
            "apiVersion": "v1", "kind": "ServiceAccount", "namespace": "garden", "name": "gardener", "uid": "sa", "resourceVersion": "7",
        },
    });
    assert_eq!(status_written(&plan), Some(&found));
    let labels = plan.actions.iter().filter(|a| matches!(a, Action::Patch { .. })).count();
    assert_eq!(labels, 1, "the account is labelled olm.managed");

    world.apply(group(&spec, &json!({}), &found));
    world.apply(json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "gardener", "namespace": "garden", "uid": "sa", "resourceVersion": "8", "labels": {"olm.managed": "true"}},
    }));
    settle(&mut world);
    assert_eq!(planned(&world), Plan::nothing(), "a new resourceVersion alone is not written");

    // Another account of the same name.
    world.apply(json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "gardener", "namespace": "garden", "uid": "other", "resourceVersion": "9"},
    }));
    let reference = status_written(&planned(&world)).unwrap()["serviceAccountRef"].clone();
    assert_eq!((&reference["uid"], &reference["resourceVersion"]), (&json!("other"), &json!("9")));
    world.delete(&crate::world::kind::SERVICE_ACCOUNT, &("garden".into(), "gardener".into()), "other", 10);
    let mut lost = missing;
    lost["namespaces"] = json!(["garden"]);
    assert_eq!(status_written(&planned(&world)), Some(&lost), "it is deleted, and the targets stay");

    world.apply(group(&json!({"targetNamespaces": ["garden"]}), &json!({}), &found));
    let targets = json!({"lastUpdated": NOW, "namespaces": ["garden"]});
    assert_eq!(status_written(&planned(&world)), Some(&targets), "the spec no longer names an account");
}

#[test]
fn roles_are_named_as_olm_names_them() {
    let mut group = group(&json!({}), &json!({}), &json!(null));
    group["metadata"]["namespace"] = "operators".into();
    group["metadata"]["name"] = "global-operators".into();
    for (suffix, expected) in [
        ("admin", "olm.og.global-operators.admin-5UD4U2IfBGbw51Qy2Jaefk1uawvkj2OJILlc3w"),
        ("edit", "olm.og.global-operators.edit-9ZbzBIwu1SlHO7KbWinNtOfyGaVjTWIYhNkNP"),
        ("view", "olm.og.global-operators.view-6lzJtrbG08ne4wrZHGxP3h1MBUjq5e7nOF4gax"),
    ] {
        assert_eq!(roles::name(Group::new(&group), suffix), expected);
    }
    group["metadata"]["name"] = "x".repeat(253).into();
    assert_eq!(roles::name(Group::new(&group), "admin").len(), 253);
}

#[test]
fn roles_aggregate_provided_apis_and_leave_rules_alone() {
    let processed = json!({"namespaces": [""], "lastUpdated": "then"});
    let mut world = world(&[group(&json!({}), &json!({}), &processed)]);
    settle(&mut world);
    let name = roles::name(Group::new(&group(&json!({}), &json!({}), &json!(null))), "view");
    let gk = crate::world::kind::CLUSTER_ROLE;
    let role = Reader::new(&world).json(&gk, "", &name).unwrap().clone();
    assert_eq!(
        role,
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {
                "olm.managed": "true", "olm.owner": "og", "olm.owner.namespace": "garden", "olm.owner.kind": "OperatorGroup",
            }},
            "rules": null,
        })
    );

    // Kubernetes fills the rules, and another client adds a label.
    let mut filled = role;
    filled["rules"] = json!([{"verbs": ["get"]}]);
    filled["metadata"]["labels"]["mine"] = "yes".into();
    world.apply(filled.clone());
    world.apply(csv("rose.v1", "Pending", "Rose"));
    settle(&mut world);
    filled["aggregationRule"] = json!({"clusterRoleSelectors": [
        {"matchLabels": {"olm.opgroup.permissions/aggregate-to-".to_owned() + &crate::api::hash::fnv64a("Rose.v1.x.io") + "-view": "true"}},
    ]});
    assert_eq!(Reader::new(&world).json(&gk, "", &name), Some(&filled));

    let mut edited = filled.clone();
    edited["metadata"]["labels"]["olm.owner"] = "other".into();
    edited["aggregationRule"] = json!(null);
    world.apply(edited);
    assert_eq!(planned(&world).actions, [Action::Update(filled)], "edits are reverted");
}

#[test]
fn roles_of_a_deleted_group_are_deleted() {
    let processed = json!({"namespaces": [""], "lastUpdated": "then"});
    let og = group(&json!({}), &json!({}), &processed);
    let mut world = world(std::slice::from_ref(&og));
    settle(&mut world);
    world.delete(&crate::world::kind::OPERATOR_GROUP, &("garden".into(), "og".into()), "og-uid", 0);
    let plan = planned(&world);
    assert_eq!(plan.actions.len(), 3);
    assert!(
        plan.actions.iter().all(|a| matches!(a, Action::Delete { target, .. } if target.gvk.kind == "ClusterRole"))
    );
}

#[test]
fn unprovided_apis_are_pruned_from_the_annotation() {
    let processed = json!({"namespaces": [""], "lastUpdated": "then"});
    let rose = "Rose.v1.x.io";
    let both = "Pot.v1.x.io,Rose.v1.x.io";
    let mut unsupported = csv("pot.v1", "Failed", "Pot");
    unsupported["spec"]["installModes"][0]["supported"] = false.into();
    let cases = [
        (
            both,
            false,
            vec![csv("rose.v1", "Succeeded", "Rose"), unsupported],
            Some(rose),
            "Pot's provider is not a member",
        ),
        (both, false, vec![csv("rose.v1", "Succeeded", "Rose")], Some(rose), "Pot's provider is deleted"),
        (both, true, vec![csv("rose.v1", "Succeeded", "Rose")], None, "static"),
        (rose, false, vec![], Some(""), "the last one is deleted"),
        (rose, false, vec![csv("rose.v1", "Failed", "Rose")], None, "everything is provided"),
        (
            both,
            false,
            vec![csv("rose.v1", "Succeeded", "Rose"), csv("lily.v1", "Pending", "Lily")],
            None,
            "another one is being installed",
        ),
        (both, false, vec![csv("rose.v1", "Pending", "Rose")], Some(rose), "the APIs of the new one are annotated"),
    ];
    for (annotation, fixed, csvs, expected, why) in cases {
        let og = group(&json!({"staticProvidedAPIs": fixed}), &json!({"olm.providedAPIs": annotation}), &processed);
        let mut objects = csvs;
        objects.push(og);
        let plan = planned(&world(&objects));
        let written = plan.actions.iter().find_map(|a| match a {
            Action::Update(o) => o["metadata"]["annotations"]["olm.providedAPIs"].as_str(),
            _ => None,
        });
        assert_eq!(written, expected, "{why}");
    }
}

#[test]
fn namespaces_carry_the_uids_of_the_groups_that_name_them() {
    let target = |uid: &str, name: &str, namespaces: &Value| {
        let mut group = group(&json!({}), &json!({}), &json!({"namespaces": namespaces}));
        group["metadata"]["uid"] = uid.into();
        group["metadata"]["name"] = name.into();
        group
    };
    let field = |labels: &Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "field", "uid": "f", "labels": labels}});
    let groups = [
        target("a", "one", &json!(["field", "garden"])),
        target("b", "two", &json!(["garden"])),
        target("c", "three", &json!([""])),
    ];
    let cases = [
        (json!({"x": "y"}), Some(json!({"olm.operatorgroup.uid/a": ""}))),
        (json!({"olm.operatorgroup.uid/a": ""}), None),
        (
            json!({"olm.operatorgroup.uid/a": "", "olm.operatorgroup.uid/b": ""}),
            Some(json!({"olm.operatorgroup.uid/b": null})),
        ),
    ];
    for (labels, expected) in cases {
        let mut world = world(&groups);
        world.apply(field(&labels));
        let plan = plan_namespace(&Reader::new(&world), &Key::new(Controller::Namespace, "", "field"));
        let expected: Vec<Action> = expected.into_iter().map(|l| Action::label(&field(&labels), l)).collect();
        assert_eq!(plan, Plan::act(expected), "{labels}");
        let mut going = field(&labels);
        going["metadata"]["deletionTimestamp"] = NOW.into();
        world.apply(going);
        let plan = plan_namespace(&Reader::new(&world), &Key::new(Controller::Namespace, "", "field"));
        assert_eq!(plan, Plan::nothing(), "it is being deleted");
    }
}
