//! What a plan does with the rights of a ServiceAccount.

use super::*;
use crate::plan::Account;

fn group(account: &str, found: &str) -> Value {
    let reference =
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "namespace": "garden", "name": found, "uid": "u-sa" });
    json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": "garden", "namespace": "garden" },
        "spec": { "serviceAccountName": account },
        "status": { "namespaces": ["garden"], "lastUpdated": CREATED, "serviceAccountRef": reference },
    })
}

fn with_account(group: Value, objects: &[Value]) -> World {
    let mut world = world(objects);
    world.apply(group);
    world
}

fn steps() -> Vec<Value> {
    let role = simple(RBAC, "Role", "reader", &json!({ "rules": [] }));
    let class = simple("scheduling.k8s.io/v1", "PriorityClass", "first", &json!({}));
    let crd = simple(CRD, "CustomResourceDefinition", "roses.garden.example.com", &crd_spec(&["v1"]));
    vec![csv_step(), crd, role, class]
}

#[test]
fn steps_use_the_rights_of_the_account_and_definitions_our_own() {
    let mut world = with_account(group("gardener", "gardener"), &[install_plan("Installing", &steps())]);
    let first = plan(&world, at(0));
    let [Action::UpdateStatus(written)] = &first.actions[..] else { panic!("{first:?}") };
    assert_eq!(written["status"]["attenuatedServiceAccountRef"]["name"], "gardener");
    world.apply(written.clone());
    let second = plan(&world, at(0));
    assert_eq!(
        told(&second),
        [
            "create ClusterServiceVersion/rose.v2.0.0",
            "create CustomResourceDefinition/roses.garden.example.com",
            "create Role/reader",
            "create PriorityClass/first",
        ]
    );
    let gardener = Account { namespace: "garden".into(), name: "gardener".into() };
    let with_rights: Vec<bool> =
        second.actions.iter().map(|a| matches!(a, Action::As(account, _) if *account == gardener)).collect();
    assert_eq!(with_rights, [true, false, true, true]);
    assert!(second.actions[0].writes());
}

#[test]
fn all_missing_rights_are_told_at_once() {
    let mut installing = install_plan("Installing", &steps());
    let group = group("gardener", "gardener");
    installing["status"]["attenuatedServiceAccountRef"] = group["status"]["serviceAccountRef"].clone();
    let mut world = with_account(group, &[installing]);
    let create = plan(&world, at(0)).actions[0].clone();
    refuse(&mut world, &create, 403, "Forbidden", "no");
    let missing = |world: &World| {
        let plan = plan(world, at(0));
        assert!(matches!(plan.reasons[0], Reason::InstallPlanRetries { fails_at: None, .. }), "{plan:?}");
        plan.reasons.into_iter().find_map(|r| match r {
            Reason::RightsMissing { rights, .. } => Some(rights),
            _ => None,
        })
    };
    let (csv, class) = (
        "create clusterserviceversions.operators.coreos.com in namespace garden",
        "create priorityclasses.scheduling.k8s.io in the cluster",
    );
    let role = "create roles.rbac.authorization.k8s.io in namespace garden";
    assert_eq!(missing(&world).unwrap(), [csv, class, role]);
    // Rights within the namespace say nothing about the cluster.
    for (kind, namespace) in [("Role", "garden"), ("ClusterRole", "")] {
        let rules = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["create"] }]);
        let metadata = json!({ "name": "all", "namespace": namespace });
        world.apply(json!({ "apiVersion": RBAC, "kind": kind, "metadata": metadata, "rules": rules }));
        let subjects = json!([{ "kind": "ServiceAccount", "name": "gardener", "namespace": "garden" }]);
        let binding = json!({
            "apiVersion": RBAC, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": { "kind": kind, "name": "all" }, "subjects": subjects,
        });
        world.apply(binding);
        let left = missing(&world);
        if kind == "Role" {
            assert_eq!(left.unwrap(), [class]);
        } else {
            assert_eq!(left, None);
        }
    }
}

#[test]
fn an_account_that_is_not_found_stops_the_plan() {
    for (named, found) in [("gardener", ""), ("gardener", "another")] {
        let world = with_account(group(named, found), &[install_plan("Installing", &steps())]);
        let plan = plan(&world, at(0));
        let [Action::UpdateStatus(written)] = &plan.actions[..] else { panic!("{plan:?}") };
        assert_eq!(written["status"]["conditions"][0]["reason"], "InstallCheckFailed");
        assert!(matches!(plan.reasons[..], [Reason::Missing { .. }]));
    }
}
