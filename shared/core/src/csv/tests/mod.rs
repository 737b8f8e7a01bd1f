mod config;
mod deployments;
mod gates;
mod native_apis;
mod serving;
mod webhooks;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Step, transition};
use crate::api::cluster_service_version::Csv;
use crate::api::object::{self, Gvk, ObjectRef};
use crate::api::status::Status;
use crate::plan::{Action, Controller, Key, Plan, Verb};
use crate::testing;
use crate::world::{Fact, FactKey, Reader, Refusal, World};

fn csv(name: &str, replaces: &str, phase: &str, reason: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "namespace": "garden", "uid": name},
        "spec": {"replaces": replaces, "install": {"strategy": "deployment", "spec": {}}},
        "status": {"phase": phase, "reason": reason},
    })
}

/// Returns the next step of `rose.v2`, which replaces `rose.v1`.
fn next(old: &Value, new: &Value) -> Step {
    let mut world = World::new();
    world.apply(old.clone());
    world.apply(new.clone());
    let key = Key::new(Controller::ClusterServiceVersion, "garden", "rose.v2");
    transition::next(&Reader::new(&world), Csv::new(new), &key, Timestamp::UNIX_EPOCH)
}

#[test]
fn a_previously_missing_requirement_is_not_reported_while_waiting_for_the_older_csv() {
    let failed = csv("rose.v1", "", "Failed", "InstallCheckFailed");
    let waits = next(&failed, &csv("rose.v2", "rose.v1", "Pending", "RequirementsNotMet"));
    let text = waits.transition.as_ref().map(|t| (t.phase.as_str(), t.reason, t.message.as_str()));
    assert_eq!(text, Some(("Pending", "RequirementsUnknown", "requirements not yet checked")));
    let stays = next(&failed, &csv("rose.v2", "rose.v1", "Pending", "RequirementsUnknown"));
    assert_eq!((stays.transition, &stays.reasons), (None, &waits.reasons));
    let replacing = csv("rose.v1", "", "Replacing", "BeingReplaced");
    let goes_on = next(&replacing, &csv("rose.v2", "rose.v1", "Pending", "RequirementsNotMet"));
    assert_eq!(goes_on.transition.map(|t| t.phase.as_str()), Some("InstallReady"));
}

/// Returns the plan for a ClusterServiceVersion whose Deployment may not be created, and the objects of its namespace.
fn plan_without_rights(csv: &Value, others: &[Value], attempts: u32) -> Plan {
    let mut world = World::new();
    for object in [csv].into_iter().chain(others) {
        world.apply(object.clone());
    }
    let key = Key::new(Controller::ClusterServiceVersion, "garden", "rose.v2");
    let refusal = Refusal {
        verb: Verb::Create,
        target: ObjectRef {
            gvk: Gvk::new("apps", "v1", "Deployment"),
            namespace: "garden".into(),
            name: "rose".into(),
        },
        status: Status::new(403, "Forbidden", "deployments.apps is forbidden"),
        attempts,
        since: Timestamp::UNIX_EPOCH,
        retry_at: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1),
    };
    world.learn(FactKey::Refusals(key.clone()), Some(Fact::Refusals(vec![refusal])));
    super::plan(&Reader::new(&world), &key, Timestamp::UNIX_EPOCH)
}

#[test]
fn an_install_without_permissions_fails_until_permissions_change() {
    let versioned = |mut object: Value, version: &str| {
        object["metadata"]["resourceVersion"] = version.into();
        object
    };
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "garden", "namespace": "garden", "uid": "g", "resourceVersion": "3"},
        "spec": {"targetNamespaces": ["garden"]}, "status": {"namespaces": ["garden"]},
    });
    let member = |phase: &str, reason: &str| {
        let mut csv = versioned(csv("rose.v2", "", phase, reason), "9");
        csv["metadata"]["finalizers"] = json!(["operators.coreos.com/csv-cleanup"]);
        csv["metadata"]["annotations"] = json!({
            "olm.operatorGroup": "garden", "olm.operatorNamespace": "garden", "olm.targetNamespaces": "garden",
        });
        csv["spec"]["installModes"] = testing::install_modes(&["OwnNamespace"]);
        csv
    };
    let role = |version: &str| {
        let metadata = json!({"name": "installer", "namespace": "garden", "uid": "r", "resourceVersion": version});
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": []})
    };
    let plan = plan_without_rights(&member("InstallReady", "AllRequirementsMet"), &[group.clone(), role("4")], 3);
    let [Action::UpdateStatus(failed), Action::Emit(_)] = &plan.actions[..] else { panic!("{plan:?}") };
    let status = |field: &str| object::text(failed, &["status", field]);
    assert_eq!((status("phase"), status("reason")), ("Failed", "InstallComponentFailedNoRetry"));
    assert_eq!(status("message"), "install strategy failed: install strategy failed: deployments.apps is forbidden");
    assert_eq!(plan.again, None, "time alone does not help");

    let soon = plan_without_rights(&member("InstallReady", "AllRequirementsMet"), &[group.clone(), role("4")], 1);
    let fails = |action: &Action| matches!(action, Action::UpdateStatus(o) if o["status"]["phase"] == "Failed");
    assert!(!soon.actions.iter().any(fails), "the API server may not apply new permissions yet: {soon:?}");

    let failed = member("Failed", "InstallComponentFailedNoRetry");
    let stays = plan_without_rights(&failed, &[group.clone(), role("4")], 3);
    assert_eq!((&stays.actions[..], stays.reasons.len()), (&[][..], 1));
    assert!(stays.reasons[0].hint().unwrap().starts_with("grant the permissions"));
    for changed in [[group.clone(), role("10")], [versioned(group, "10"), role("4")]] {
        let again = plan_without_rights(&failed, &changed, 3);
        let [Action::UpdateStatus(pending)] = &again.actions[..] else { panic!("{again:?}") };
        assert_eq!(object::text(pending, &["status", "reason"]), "DetectedClusterChange");
        assert!(again.forgets, "the old refusal does not affect the next attempt");
    }
}
