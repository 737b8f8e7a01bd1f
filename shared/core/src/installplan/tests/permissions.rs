//! Tests of plans that are executed with the permissions of a ServiceAccount.

use super::*;
use crate::plan::Account;
use crate::testing;

fn group(account: &str, found: &str) -> Value {
    let reference =
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "namespace": "garden", "name": found, "uid": "u-sa" });
    testing::with_status(
        testing::operator_group("garden", "garden", &json!({ "serviceAccountName": account })),
        &json!({ "namespaces": ["garden"], "lastUpdated": CREATED, "serviceAccountRef": reference }),
    )
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
fn steps_use_the_rights_of_the_account_and_definitions_own_rights() {
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
fn all_missing_rights_are_reported_at_once() {
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
            Reason::PermissionsMissing { ref permissions, .. } => {
                let hint = r.hint().unwrap();
                assert!(
                    hint.starts_with("bind the ServiceAccount to a Role or ClusterRole with these permissions"),
                    "{hint}"
                );
                let command = "kubectl auth can-i --list --as system:serviceaccount:garden:gardener";
                assert!(hint.ends_with(command), "{hint}");
                Some(permissions.clone())
            }
            _ => None,
        })
    };
    let (csv, class) = (
        "create clusterserviceversions.operators.coreos.com in namespace garden",
        "create priorityclasses.scheduling.k8s.io in the cluster",
    );
    let role = "create roles.rbac.authorization.k8s.io in namespace garden";
    assert_eq!(missing(&world).unwrap(), [csv, class, role]);
    // Permissions in the namespace do not apply to cluster-scoped objects.
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
fn a_missing_account_blocks_the_plan() {
    for (named, found) in [("gardener", ""), ("gardener", "another")] {
        let world = with_account(group(named, found), &[install_plan("Installing", &steps())]);
        let plan = plan(&world, at(0));
        let [Action::UpdateStatus(written)] = &plan.actions[..] else { panic!("{plan:?}") };
        assert_eq!(written["status"]["conditions"][0]["reason"], "InstallCheckFailed");
        assert!(matches!(plan.reasons[..], [Reason::Missing { .. }]));
    }
}

/// Adds `Role all` with these rules, and a binding of it to the account of the plan.
fn grant(world: &mut World, rules: &Value) {
    let metadata = json!({ "name": "all", "namespace": "garden" });
    world.apply(json!({ "apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": rules }));
    world.apply(json!({
        "apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata, "roleRef": { "kind": "Role", "name": "all" },
        "subjects": [{ "kind": "ServiceAccount", "name": "gardener", "namespace": "garden" }],
    }));
}

#[test]
fn missing_rights_include_those_that_would_be_granted() {
    let rules = json!([{ "apiGroups": ["", "apps"], "resources": ["secrets"], "verbs": ["get", "list"] }]);
    let binding = json!({ "roleRef": { "kind": "Role", "name": "reader" }, "subjects": [] });
    let steps =
        [simple(RBAC, "Role", "reader", &json!({ "rules": rules })), simple(RBAC, "RoleBinding", "reader", &binding)];
    let mut done = csv_step();
    done["status"] = "Created".into();
    let mut installing = install_plan("Installing", &[&[done][..], &steps].concat());
    let group = group("gardener", "gardener");
    installing["status"]["attenuatedServiceAccountRef"] = group["status"]["serviceAccountRef"].clone();
    let mut world = with_account(group, &[installing, csv()]);
    let write =
        json!({ "apiGroups": [RBAC.split('/').next()], "resources": ["roles", "rolebindings"], "verbs": ["create"] });
    let create = plan(&world, at(0)).actions[0].clone();
    refuse(&mut world, &create, 403, "Forbidden", "no");
    let missing = |world: &World| {
        plan(world, at(0)).reasons.into_iter().find_map(|r| match r {
            Reason::PermissionsMissing { permissions, .. } => Some(permissions),
            _ => None,
        })
    };
    grant(&mut world, &json!([write, { "apiGroups": [""], "resources": ["*"], "verbs": ["get"] }]));
    let lacks = ["grant get, list secrets.apps in namespace garden", "grant list secrets in namespace garden"];
    assert_eq!(missing(&world).unwrap(), lacks);
    let may = |verbs: &[&str]| json!({ "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "resourceNames": ["reader"], "verbs": verbs });
    grant(&mut world, &json!([write, may(&["escalate"]), { "apiGroups": [""], "resources": ["*"], "verbs": ["get"] }]));
    assert_eq!(missing(&world).unwrap(), lacks, "it may write the Role, but not bind it");
    grant(&mut world, &json!([write, may(&["escalate", "bind"])]));
    assert_eq!(missing(&world), None);
}

#[test]
fn a_failed_plan_is_retried_when_rbac_of_its_namespace_changes() {
    let mut failed = install_plan("Failed", &steps());
    failed["metadata"]["resourceVersion"] = "10".into();
    let role = |version: &str, namespace: &str| {
        let metadata = json!({ "name": "reader", "namespace": namespace, "resourceVersion": version });
        json!({ "apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": [] })
    };
    let planned = |failed: &Value, role: Value| told(&plan(&world(&[failed.clone(), role]), at(0)));
    assert_eq!(planned(&failed, role("11", "garden")), [] as [&str; 0], "it was executed with own rights");
    failed["status"]["attenuatedServiceAccountRef"] = json!({ "namespace": "garden", "name": "gardener" });
    assert_eq!(planned(&failed, role("9", "garden")), [] as [&str; 0]);
    assert_eq!(planned(&failed, role("11", "meadow")), [] as [&str; 0]);
    assert_eq!(planned(&failed, role("11", "garden")), ["Installing  [Unknown Unknown Unknown Unknown]"]);
}

#[test]
fn the_token_that_kubernetes_adds_to_a_secret_is_preserved() {
    let token = json!({ "type": "kubernetes.io/service-account-token", "metadata": { "name": "token" } });
    let secret = simple("v1", "Secret", "token", &token);
    let mut live = old("v1", "Secret", "token", &json!({ "data": { "token": "eA==" } }));
    live["type"] = "kubernetes.io/service-account-token".into();
    let mut done = csv_step();
    done["status"] = "Created".into();
    let world = world(&[install_plan("Installing", &[done, secret]), csv(), live]);
    let written = object_of(&plan(&world, at(0)), Verb::Update, "Secret");
    assert_eq!(written["data"], json!({ "token": "eA==" }));
}
