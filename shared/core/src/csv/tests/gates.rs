//! Membership in an OperatorGroup, members that may not run, and their recovery.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::plan::{Action, Controller, Key, Plan};
use crate::testing;
use crate::testing::world;
use crate::world::Reader;

const FINALIZER: &str = "operators.coreos.com/csv-cleanup";

fn planned(objects: &[Value]) -> Plan {
    let key = Key::new(Controller::ClusterServiceVersion, "garden", "rose.v1");
    super::super::plan(&Reader::new(&world(objects)), &key, Timestamp::UNIX_EPOCH)
}

fn group(name: &str, targets: &[&str]) -> Value {
    testing::with_status(
        testing::operator_group("garden", name, &json!({"targetNamespaces": targets})),
        &json!({"namespaces": targets}),
    )
}

/// A member of the group `og`, which targets `field`.
fn csv(phase: &str, reason: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {
            "name": "rose.v1", "namespace": "garden", "uid": "rose", "finalizers": [FINALIZER],
            "annotations": {"olm.operatorGroup": "og", "olm.operatorNamespace": "garden", "olm.targetNamespaces": "field"},
        },
        "spec": {
            "installModes": testing::install_modes(&["SingleNamespace"]),
            "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "rose"}]}},
        },
        "status": {"phase": phase, "reason": reason, "message": "as it was"},
    })
}

/// Phase, reason and message that are written.
fn written(plan: &Plan) -> Option<(&str, &str, &str)> {
    plan.actions.iter().find_map(|action| match action {
        Action::UpdateStatus(o) => {
            let text = |field: &str| o["status"][field].as_str().unwrap_or_default();
            Some((text("phase"), text("reason"), text("message")))
        }
        _ => None,
    })
}

#[test]
fn a_csv_that_may_run_again_starts_over() {
    const SUPPORTED: &str = "InstallModes now support target namespaces";
    for (reason, message) in [
        ("NoOperatorGroup", SUPPORTED),
        ("TooManyOperatorGroups", SUPPORTED),
        ("NoTargetNamespaces", SUPPORTED),
        ("UnsupportedOperatorGroup", SUPPORTED),
        ("InterOperatorGroupOwnerConflict", "OperatorGroup no longer intersecting with conflicting owner"),
        (
            "CannotModifyStaticOperatorGroupProvidedAPIs",
            "static OperatorGroup and intersecting groups now support providedAPIs",
        ),
    ] {
        let plan = planned(&[csv("Failed", reason), group("og", &["field"])]);
        assert_eq!(written(&plan), Some(("Pending", "RequirementsUnknown", message)), "{reason}");
    }
}

#[test]
fn each_phase_fails_when_the_groups_do_not_allow_it() {
    let selector = json!({"matchLabels": {"team": "none"}});
    let mut none = group("og", &[]);
    none["spec"] = json!({ "selector": selector });
    let two = [group("og", &["field"]), group("second", &["field"])];
    for phase in ["", "Pending", "InstallReady", "Installing", "Succeeded", "Failed", "Replacing", "Deleting"] {
        let told = |groups: &[Value], targets: &str| {
            let mut csv = csv(phase, "before");
            csv["metadata"]["annotations"]["olm.targetNamespaces"] = targets.into();
            let objects: Vec<Value> = groups.iter().cloned().chain([csv]).collect();
            let plan = planned(&objects);
            assert_eq!(plan.actions.len(), 2, "status and event: {plan:?}");
            let (phase, reason, _) = written(&plan).expect("a status");
            assert_eq!(phase, "Failed");
            reason.to_owned()
        };
        assert_eq!(told(&[], "field"), "NoOperatorGroup", "{phase}");
        assert_eq!(told(&two, "field"), "TooManyOperatorGroups", "{phase}");
        assert_eq!(told(&[none.clone()], "field"), "NoTargetNamespaces", "{phase}");
        assert_eq!(told(&[group("og", &["field", "meadow"])], "field,meadow"), "UnsupportedOperatorGroup", "{phase}");
    }
}

/// A group whose selector the API server accepts, but which cannot be evaluated.
fn invalid(targets: &[&str]) -> Value {
    let mut group = group("og", targets);
    group["spec"] = json!({"selector": {"matchExpressions": [{"key": "team", "operator": "In", "values": []}]}});
    group
}

/// A group whose ServiceAccount does not exist.
fn without_account(targets: &[&str]) -> Value {
    let mut group = group("og", &["field"]);
    group["spec"]["serviceAccountName"] = "gardener".into();
    group["status"] = json!({"namespaces": targets});
    group
}

#[test]
fn members_of_an_invalid_group_are_still_checked() {
    for group in [invalid(&["field"]), without_account(&["field"])] {
        let mut running = csv("Succeeded", "InstallSucceeded");
        running["spec"]["install"]["spec"]["deployments"] = json!([{"name": "rose", "spec": {"template": {}}}]);
        let plan = planned(&[running, group.clone()]);
        let lost = "installing: missing deployment with name=rose";
        assert_eq!(written(&plan), Some(("Failed", "ComponentUnhealthy", lost)), "{group}");
        let plan = planned(&[csv("Pending", "RequirementsUnknown"), group.clone()]);
        assert_eq!(written(&plan).map(|(phase, ..)| phase), Some("InstallReady"), "{group}");
    }
}

#[test]
fn there_are_no_targets_under_a_group_that_was_never_processed() {
    for group in [invalid(&[]), without_account(&[])] {
        let mut new = csv("", "");
        new["metadata"]["annotations"]["olm.targetNamespaces"] = json!(null);
        let plan = planned(&[new, group.clone()]);
        let message = "csv missing olm.targetNamespaces annotation";
        assert_eq!(written(&plan), Some(("Failed", "NoTargetNamespaces", message)), "{group}");
    }
}

#[test]
fn nothing_is_done_before_the_group_is_processed() {
    let mut group = group("og", &["field"]);
    group["spec"]["targetNamespaces"] = json!(["field", "meadow"]);
    assert_eq!(planned(&[csv("Pending", "RequirementsUnknown"), group]).actions, []);
}

#[test]
fn edited_annotations_of_a_member_are_restored() {
    let good = csv("Succeeded", "InstallSucceeded");
    for (key, value) in [
        ("olm.operatorGroup", json!("other")),
        ("olm.operatorGroup", json!(null)),
        ("olm.operatorNamespace", json!("other")),
        ("olm.operatorNamespace", json!(null)),
        ("olm.targetNamespaces", json!("")),
        ("olm.targetNamespaces", json!("meadow")),
        ("olm.targetNamespaces", json!(null)),
    ] {
        let mut edited = good.clone();
        edited["metadata"]["annotations"][key] = value.clone();
        let plan = planned(&[edited, group("og", &["field"])]);
        let [Action::Update(restored)] = &plan.actions[..] else { panic!("{key} {value}: {plan:?}") };
        assert_eq!(restored["metadata"]["annotations"], good["metadata"]["annotations"], "{key} {value}");
    }
}

#[test]
fn only_deployments_of_csvs_that_may_not_run_are_deleted() {
    let deployment = |name: &str, owner: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "garden", "uid": name, "labels": {
                "olm.owner": owner, "olm.owner.namespace": "garden", "olm.owner.kind": "ClusterServiceVersion",
            }},
        })
    };
    let mut csv = csv("Succeeded", "InstallSucceeded");
    csv["spec"]["install"]["spec"]["deployments"] = json!([{"name": "rose"}, {"name": "theirs"}, {"name": "missing"}]);
    csv["spec"]["customresourcedefinitions"] =
        json!({"owned": [{"name": "roses.x.io", "kind": "Rose", "version": "v1"}]});
    let mut fixed = group("og", &["field"]);
    fixed["spec"]["staticProvidedAPIs"] = true.into();
    let mut other = group("other", &["field"]);
    other["metadata"] =
        json!({"name": "other", "namespace": "away", "annotations": {"olm.providedAPIs": "Rose.v1.x.io"}});
    for (reason, groups) in [
        ("CannotModifyStaticOperatorGroupProvidedAPIs", vec![fixed]),
        ("InterOperatorGroupOwnerConflict", vec![group("og", &["field"]), other]),
    ] {
        let mut objects = vec![csv.clone(), deployment("rose", "rose.v1"), deployment("theirs", "tulip.v1")];
        objects.extend(groups);
        let plan = planned(&objects);
        assert_eq!(written(&plan).map(|(phase, reason, _)| (phase, reason)), Some(("Failed", reason)));
        let deleted: Vec<String> = plan
            .actions
            .iter()
            .filter(|action| matches!(action, Action::Delete { .. }))
            .map(|action| action.target().to_string())
            .collect();
        assert_eq!(deleted, ["Deployment/garden/rose"], "{reason}");
        objects.retain(|o| o["kind"] != "Deployment");
        objects[0]["status"] = match &plan.actions[plan.actions.len() - 2] {
            Action::UpdateStatus(o) => o["status"].clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(planned(&objects).actions, [], "it is reported once");
    }
}

#[test]
fn of_copies_only_the_finalizer_is_removed() {
    let mut labelled = csv("Succeeded", "Copied");
    labelled["metadata"]["labels"] = json!({"olm.copiedFrom": "field"});
    let mut stripped = csv("Succeeded", "Copied");
    stripped["metadata"]["annotations"]["olm.operatorNamespace"] = "field".into();
    let og = group("og", &["field"]);
    for copy in [&mut labelled, &mut stripped] {
        assert_eq!(planned(&[copy.clone(), og.clone()]).actions, []);
        copy["metadata"]["deletionTimestamp"] = "2026-11-21T13:00:00Z".into();
    }
    assert_eq!(planned(&[labelled, og.clone()]).actions, [], "the trimmed object cannot be written");
    let plan = planned(&[stripped, og]);
    assert!(matches!(&plan.actions[..], [Action::Update(o)] if o["metadata"]["finalizers"].is_null()), "{plan:?}");
}

#[test]
fn members_are_installed_with_the_permissions_of_the_groups_account() {
    let mut csv = csv("InstallReady", "AllRequirementsMet");
    csv["spec"]["install"]["spec"]["deployments"] = json!([{"name": "rose", "spec": {"template": {}}}]);
    let mut group = group("og", &["field"]);
    group["spec"]["serviceAccountName"] = "gardener".into();
    let plan = planned(&[csv.clone(), group.clone()]);
    assert_eq!((plan.actions.len(), plan.reasons.len()), (0, 1), "the account is unknown yet: {plan:?}");
    for other in ["other", "gardener"] {
        group["status"]["serviceAccountRef"] = json!({"namespace": "garden", "name": other});
        let plan = planned(&[csv.clone(), group.clone()]);
        let as_account = |action: &Action| match action {
            Action::As(account, _) => Some(account.user()),
            _ => None,
        };
        let accounts: Vec<Option<String>> = plan.actions.iter().map(as_account).collect();
        let gardener = Some("system:serviceaccount:garden:gardener".to_owned());
        // The Deployment; status and Event are written with OLM's own permissions.
        let expected = if other == "gardener" { vec![gardener, None, None] } else { vec![] };
        assert_eq!(accounts, expected, "{other}");
    }
}
