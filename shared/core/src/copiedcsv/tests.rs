mod many;
mod target_rbac;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::target_rbac::{give_rights, rbac};
use super::{plan, plan_config};
use crate::api::object::ObjectRef;
use crate::api::status::Status;
use crate::plan::{Action, Controller, Key, Plan, Verb};
use crate::settings::Settings;
use crate::testing;
use crate::world::{Fact, FactKey, Reader, Refusal, World, kind, trimmed};

const NOW: &str = "2026-11-21T13:00:00Z";

fn planned(world: &World) -> Plan {
    planned_with(&Settings::default(), world)
}

fn planned_with(settings: &Settings, world: &World) -> Plan {
    plan_at(settings, world, NOW)
}

fn plan_at(settings: &Settings, world: &World, now: &str) -> Plan {
    plan(settings, &Reader::new(world), &Key::new(Controller::CopiedCsv, "garden", "rose.v1"), now.parse().unwrap())
}

/// Executes plans, with what Kubernetes would add, until a plan is empty.
fn settle(world: &mut World) {
    for _ in 0..40 {
        let plan = planned(world);
        if plan.actions.is_empty() {
            return;
        }
        for action in plan.actions {
            match action {
                Action::Create(mut o) => {
                    let (namespace, kind) = (o["metadata"]["namespace"].clone(), o["kind"].clone());
                    o["metadata"]["uid"] = format!("{kind} in {namespace}").into();
                    world.apply(o);
                }
                Action::Update(o) | Action::UpdateStatus(o) => {
                    world.apply(o);
                }
                Action::Delete { target, uid, .. } => {
                    let gk = crate::world::GroupKind::new(&target.gvk.group, &target.gvk.kind);
                    let gk = if gk == kind::CLUSTER_SERVICE_VERSION { kind::COPIED_CSV } else { gk };
                    world.delete(&gk, &(target.namespace, target.name), &uid, 0);
                }
                _ => {}
            }
        }
    }
    panic!("no fixed point");
}

fn namespace(name: &str) -> Value {
    testing::namespace(name)
}

fn group(targets: &Value) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "garden", "uid": "og"},
        "spec": if *targets == json!([""]) { json!({}) } else { json!({"targetNamespaces": targets}) },
        "status": {"namespaces": targets},
    })
}

fn original(targets: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {
            "name": "rose.v1", "namespace": "garden", "uid": "csv", "resourceVersion": "5",
            "finalizers": ["operators.coreos.com/csv-cleanup"],
            "annotations": {
                "olm.operatorGroup": "og", "olm.operatorNamespace": "garden", "olm.targetNamespaces": targets, "note": "new",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
            "labels": {"operators.coreos.com/rose.garden": "", "olm.managed": "true"},
        },
        "spec": {"version": "1.0.0", "installModes": [
            {"type": "MultiNamespace", "supported": true}, {"type": "AllNamespaces", "supported": true},
        ], "install": {"spec": {"permissions": [{
            "serviceAccountName": "rose-sa", "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        }]}}},
        "status": {"phase": "Succeeded", "reason": "InstallSucceeded", "message": "done", "cleanup": {}},
    })
}

/// Original, group for the targets, and the namespaces garden, field and meadow.
fn world(targets: &[&str]) -> World {
    let mut world = World::new();
    for name in ["garden", "field", "meadow"] {
        world.apply(namespace(name));
    }
    world.apply(group(&json!(targets)));
    world.apply(original(&targets.join(",")));
    world
}

fn copies(world: &World) -> Vec<String> {
    let reader = Reader::new(world);
    let csvs = reader.all(&kind::COPIED_CSV).map(|o| o.json());
    csvs.map(|c| c["metadata"]["namespace"].as_str().unwrap().to_owned()).collect()
}

fn copy_in(world: &World, namespace: &str) -> Value {
    Reader::new(world).json(&kind::CLUSTER_SERVICE_VERSION, namespace, "rose.v1").unwrap().clone()
}

fn with_status(mut csv: Value, field: &str, value: &str) -> Value {
    csv["status"][field] = value.into();
    csv
}

#[test]
fn a_copy_equals_its_original_except_for_its_metadata() {
    let mut world = world(&["field"]);
    settle(&mut world);
    assert_eq!(
        copy_in(&world, "field"),
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {
                "name": "rose.v1", "namespace": "field", "uid": "\"ClusterServiceVersion\" in \"field\"",
                "annotations": {"olm.operatorGroup": "og", "olm.operatorNamespace": "garden", "note": "new"},
                "labels": {"olm.managed": "true", "olm.copiedFrom": "garden"},
            },
            "spec": original("")["spec"],
            "status": {
                "phase": "Succeeded", "reason": "Copied", "cleanup": {},
                "message": "The operator is running in garden but is managing this namespace",
            },
        })
    );
}

#[test]
fn copies_are_in_the_groups_targets() {
    for (targets, expected) in [
        (&["field"][..], &["field"][..]),
        (&["field", "garden"], &["field"]),
        (&["field", "nowhere"], &["field"]),
        (&["garden"], &[]),
        (&[""], &["field", "meadow"]),
    ] {
        let mut world = world(targets);
        settle(&mut world);
        assert_eq!(copies(&world), expected, "{targets:?}");
    }
}

#[test]
fn only_relevant_states_are_copied() {
    let mut unprocessed = original("field");
    unprocessed["status"] = json!(null);
    let mut deleting = original("field");
    deleting["metadata"]["deletionTimestamp"] = NOW.into();
    let cases = [
        (with_status(original("field"), "phase", "Pending"), true),
        (with_status(original("field"), "phase", "Failed"), true),
        (with_status(original("field"), "reason", "NoOperatorGroup"), false),
        (with_status(original("field"), "reason", "UnsupportedOperatorGroup"), false),
        (original("meadow"), false),
        (unprocessed, false),
        (deleting, false),
    ];
    let mut unsupported = original("field");
    unsupported["spec"]["installModes"] = testing::install_modes(&["OwnNamespace"]);
    for (original, expected) in cases.into_iter().chain([(unsupported, false)]) {
        let mut world = world(&["field"]);
        world.apply(original.clone());
        settle(&mut world);
        assert_eq!(!copies(&world).is_empty(), expected, "{original}");
    }
}

#[test]
fn a_csv_that_the_group_is_about_to_stop_is_not_copied() {
    let mut second = group(&json!(["field"]));
    second["metadata"]["name"] = "second".into();
    let mut unprocessed = group(&json!(["field"]));
    unprocessed["spec"]["targetNamespaces"] = json!(["field", "meadow"]);
    let mut other = group(&json!(["field"]));
    other["metadata"] = json!({
        "name": "other", "namespace": "away", "annotations": {"olm.providedAPIs": "Rose.v1.x.io"},
    });
    for object in [second, unprocessed, other] {
        let mut world = world(&["field"]);
        let mut owner = original("field");
        owner["spec"]["customresourcedefinitions"] =
            json!({"owned": [{"name": "roses.x.io", "kind": "Rose", "version": "v1"}]});
        world.apply(owner);
        assert_eq!(planned(&world).actions.len(), 1);
        world.apply(object.clone());
        assert_eq!(planned(&world).actions, [], "{object}");
    }
}

#[test]
fn edits_of_a_copy_are_reverted_and_changes_of_the_original_copied() {
    let mut world = world(&["field"]);
    settle(&mut world);
    let good = copy_in(&world, "field");
    let mut edited = good.clone();
    edited["spec"]["version"] = "edited".into();
    edited["metadata"]["labels"]["mine"] = "yes".into();
    edited["status"] = json!(null);
    world.apply(edited);
    settle(&mut world);
    assert_eq!(copy_in(&world, "field"), good);

    world.apply(with_status(original("field"), "phase", "Failed"));
    let plan = planned(&world);
    assert!(matches!(&plan.actions[..], [Action::UpdateStatus(o)] if o["status"]["phase"] == "Failed"));
    assert_eq!(plan.order, crate::plan::Order::Any);
}

#[test]
fn transient_phases_are_not_copied() {
    let mut settled = world(&["field"]);
    settle(&mut settled);
    let at = |phase: &str| {
        let mut original = with_status(original("field"), "phase", phase);
        original["status"]["lastTransitionTime"] = NOW.into();
        original
    };
    for mut world in [settled, world(&["field"])] {
        world.apply(at("Installing"));
        let plan = plan_at(&Settings::default(), &world, "2026-11-21T13:00:09Z");
        assert_eq!((plan.actions, plan.again), (vec![], "2026-11-21T13:00:10Z".parse().ok()));
        let plan = plan_at(&Settings::default(), &world, "2026-11-21T13:00:10Z");
        assert_eq!(plan.actions.len(), 1, "it lasts");
        for told_at_once in ["Succeeded", "Failed"] {
            let mut changed = at(told_at_once);
            changed["status"]["conditions"] = json!([]);
            world.apply(changed);
            assert_eq!(plan_at(&Settings::default(), &world, NOW).actions.len(), 1, "{told_at_once}");
        }
    }
}

#[test]
fn many_copies_are_written_a_few_at_a_time() {
    let mut world = world(&[""]);
    for n in 0..100 {
        world.apply(namespace(&format!("field-{n}")));
    }
    let plan = planned(&world);
    assert_eq!(plan.actions.len(), super::AT_A_TIME);
    assert_eq!(plan.order, crate::plan::Order::Any);
    settle(&mut world);
    assert_eq!(copies(&world).len(), 102);
    world.apply(namespace("one-more"));
    assert!(matches!(&planned(&world).actions[..], [Action::Create(o)] if o["metadata"]["namespace"] == "one-more"));
}

#[test]
fn copies_that_are_no_longer_needed_are_deleted() {
    let settled = || {
        let mut world = world(&["field", "meadow"]);
        settle(&mut world);
        world
    };
    let gone: &[&str] = &[];
    let both = &["field", "meadow"][..];

    let mut world = settled();
    world.delete(&kind::CLUSTER_SERVICE_VERSION, &("garden".into(), "rose.v1".into()), "csv", 9);
    settle(&mut world);
    assert_eq!(copies(&world), gone, "the original is deleted");

    let mut world = settled();
    world.apply(group(&json!(["meadow"])));
    settle(&mut world);
    assert_eq!(copies(&world), both, "the original's annotation is unchanged");
    world.apply(original("meadow"));
    settle(&mut world);
    assert_eq!(copies(&world), ["meadow"], "a target is removed");

    let mut world = settled();
    world.apply(with_status(original("field,meadow"), "reason", "InterOperatorGroupOwnerConflict"));
    settle(&mut world);
    assert_eq!(copies(&world), gone, "another group provides its APIs");

    let mut world = settled();
    world.apply(with_status(original("field,meadow"), "reason", "NoOperatorGroup"));
    settle(&mut world);
    assert_eq!(copies(&world), both, "copies stay in namespaces that are no longer offered");
}

#[test]
fn copies_and_permissions_are_deleted_when_the_group_targets_nothing() {
    for targets in [&["field", "meadow"][..], &[""]] {
        let mut world = world(targets);
        give_rights(&mut world);
        settle(&mut world);
        assert_eq!((copies(&world), rbac(&world).len()), (vec!["field".to_owned(), "meadow".to_owned()], 2));
        let mut none = group(&json!([]));
        none["spec"] = json!({"selector": {"matchLabels": {"team": "none"}}});
        let mut unprocessed = none.clone();
        unprocessed["status"] = json!({"namespaces": targets});
        world.apply(unprocessed);
        assert_eq!(planned(&world).actions, [], "its status is unchanged");
        world.apply(none);
        let mut failed = with_status(original(&targets.join(",")), "phase", "Failed");
        failed["status"]["reason"] = "NoTargetNamespaces".into();
        world.apply(failed);
        settle(&mut world);
        let none: &[&str] = &[];
        assert_eq!(copies(&world), none, "although its annotation is unchanged");
        assert!(!rbac(&world).contains_key("ClusterRole") && !rbac(&world).contains_key("ClusterRoleBinding"));
    }
}

#[test]
fn a_stale_copy_of_another_csv_is_replaced() {
    let elsewhere = |object: Value, status: &str| {
        let mut object = with_status(object, "reason", status);
        object["metadata"]["namespace"] = "away".into();
        object["metadata"]["uid"] = "another".into();
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.insert("olm.operatorNamespace".to_owned(), "away".into());
        }
        object
    };
    let mut copy = original("field");
    copy["metadata"] =
        json!({"name": "rose.v1", "namespace": "field", "uid": "theirs", "labels": {"olm.copiedFrom": "away"}});
    for (other_group, reason, expected) in
        [(true, "InstallSucceeded", 0), (true, "UnsupportedOperatorGroup", 1), (false, "NoOperatorGroup", 1)]
    {
        let mut world = world(&["field"]);
        world.apply(elsewhere(original("field"), reason));
        if other_group {
            world.apply(elsewhere(group(&json!(["field"])), ""));
        }
        world.apply(copy.clone());
        let actions = planned(&world).actions;
        assert_eq!(actions.len(), expected, "{reason}");
        assert!(actions.iter().all(|a| matches!(a, Action::Delete { uid, .. } if uid == "theirs")), "{reason}");
    }
}

#[test]
fn an_original_with_the_label_of_a_copy_loses_it() {
    for source in ["garden", "field", "nowhere"] {
        let mut world = world(&["field"]);
        let mut labelled = original("");
        labelled["metadata"]["namespace"] = "field".into();
        labelled["metadata"]["labels"]["olm.copiedFrom"] = source.into();
        for deleting in [json!(null), json!(NOW)] {
            labelled["metadata"]["deletionTimestamp"] = deleting;
            world.apply(trimmed(&labelled));
            let planned = |namespace: &str| {
                let key = Key::new(Controller::CopiedCsv, namespace, "rose.v1");
                plan(&Settings::default(), &Reader::new(&world), &key, NOW.parse().unwrap()).actions
            };
            assert_eq!(planned("field"), [Action::label(&labelled, json!({"olm.copiedFrom": null}))]);
            assert_eq!(planned("garden"), [], "it is neither deleted nor overwritten");
        }
    }
}

#[test]
fn a_copy_without_its_label_gets_it_again_or_is_deleted() {
    let mut world = world(&["field"]);
    settle(&mut world);
    let mut stripped = with_status(original(""), "reason", "Copied");
    stripped["metadata"] = json!({
        "name": "rose.v1", "namespace": "field", "uid": "stripped", "resourceVersion": "9",
        "finalizers": ["operators.coreos.com/csv-cleanup", "mine/too"], "annotations": {"olm.operatorNamespace": "garden"},
    });
    world.turned(&stripped);
    world.apply(stripped.clone());
    let plan = planned(&world);
    let [Action::Update(restored)] = &plan.actions[..] else { panic!("{plan:?}") };
    assert_eq!(restored["metadata"]["labels"]["olm.copiedFrom"], "garden");
    assert_eq!(restored["metadata"]["finalizers"], json!(["mine/too"]), "otherwise it would be treated as an original");

    world.delete(&kind::CLUSTER_SERVICE_VERSION, &("garden".into(), "rose.v1".into()), "csv", 9);
    assert!(matches!(&planned(&world).actions[..], [Action::Delete { uid, .. }] if uid == "stripped"));
}

#[test]
fn nothing_is_created_where_creation_would_fail() {
    let mut world = world(&["field", "meadow"]);
    let mut going = namespace("field");
    going["metadata"]["deletionTimestamp"] = NOW.into();
    world.apply(going.clone());
    world.apply(testing::csv("meadow", "rose.v1", &Value::Null));
    assert_eq!(planned(&world).actions, [], "a terminating namespace, and a user's own CSV of that name");

    let mut world = self::world(&["field"]);
    settle(&mut world);
    give_rights(&mut world);
    world.apply(going);
    world.apply(with_status(original("field"), "phase", "Failed"));
    assert_eq!(
        planned(&world).actions,
        [],
        "a copy that is deleted with its namespace, and the permissions of that copy"
    );
}

#[test]
fn olm_config_switches_copies_of_global_operators_off() {
    let mut world = world(&[""]);
    settle(&mut world);
    let config = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": {"name": "cluster"},
        "spec": {"features": {"disableCopiedCSVs": true}},
    });
    world.apply(config);
    let settings = Settings {
        protected_copied_csv_namespaces: ["meadow".to_owned(), "garden".to_owned()].into(),
        ..Settings::default()
    };
    let plan = planned_with(&settings, &world);
    assert!(
        matches!(&plan.actions[..], [Action::Delete { target, .. }, Action::Emit(emit)]
            if target.namespace == "field" && emit.message == "CSV copying disabled for garden/rose.v1"),
        "{plan:?}"
    );
    settle(&mut world);
    assert!(copies(&world).is_empty());
}

/// Returns the written `status.conditions[0]`, without its time.
fn condition_written(world: &World) -> Option<(String, String, String)> {
    let now: Timestamp = NOW.parse().unwrap();
    let key = Key::new(Controller::OlmConfig, "", "cluster");
    let plan = plan_config(&Settings::default(), &Reader::new(world), &key, now);
    plan.actions.first().map(|action| match action {
        Action::UpdateStatus(o) => {
            let c = &o["status"]["conditions"][0];
            assert_eq!((&c["type"], &c["lastTransitionTime"]), (&json!("DisabledCopiedCSVs"), &json!(NOW)));
            let text = |field: &str| c[field].as_str().unwrap().to_owned();
            (text("status"), text("reason"), text("message"))
        }
        other => panic!("{other:?}"),
    })
}

#[test]
fn olm_config_reports_when_copies_are_as_desired() {
    let config = |disabled: bool, conditions: &Value| {
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": {"name": "cluster"},
            "spec": {"features": {"disableCopiedCSVs": disabled}}, "status": {"conditions": conditions},
        })
    };
    let mut world = world(&[""]);
    world.apply(config(false, &json!([])));
    assert_eq!(condition_written(&world), None, "copies are being created");
    settle(&mut world);
    let say =
        |status: &str, reason: &str, message: &str| Some((status.to_owned(), reason.to_owned(), message.to_owned()));
    let enabled = "Copied CSVs are enabled and present across the cluster";
    assert_eq!(condition_written(&world), say("False", "CopiedCSVsEnabled", enabled));
    let reported =
        json!([{"type": "DisabledCopiedCSVs", "status": "False", "reason": "CopiedCSVsEnabled", "message": enabled}]);
    world.apply(config(false, &reported));
    assert_eq!(condition_written(&world), None, "already reported");

    world.apply(config(true, &reported));
    assert_eq!(condition_written(&world), None, "copies are being deleted");
    settle(&mut world);
    let disabled = "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode";
    assert_eq!(condition_written(&world), say("True", "CopiedCSVsDisabled", disabled));
}

#[test]
fn olm_config_reports_when_copies_cannot_be_created() {
    let mut world = world(&[""]);
    world.apply(json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": {"name": "cluster"},
    }));
    let [Action::Create(copy), ..] = &planned(&world).actions[..] else { panic!("no copy") };
    let refusal = Refusal {
        verb: Verb::Create,
        target: ObjectRef::from_object(copy),
        status: Status::new(403, "Forbidden", "quota"),
        attempts: 1,
        since: NOW.parse().unwrap(),
        retry_at: NOW.parse().unwrap(),
    };
    let key = FactKey::Refusals(Key::new(Controller::CopiedCsv, "garden", "rose.v1"));
    world.learn(key.clone(), Some(Fact::Refusals(vec![refusal])));
    let missing = "Copied CSVs are enabled and at least one copied CSVs is missing";
    let reported = condition_written(&world).unwrap();
    assert_eq!(
        (reported.0.as_str(), reported.1.as_str(), reported.2.as_str()),
        ("False", "CopiedCSVsEnabled", missing)
    );
    world.learn(key, None);
    assert_eq!(condition_written(&world), None, "being created");
}

#[test]
fn lookups_in_order_are_found() {
    let found = super::in_order([("b", 1), ("d", 2), ("f", 3)].into_iter());
    let asked = ["a", "b", "c", "e", "f", "g"].map(found);
    assert_eq!(asked, [None, Some(1), None, None, Some(3), None]);
}
