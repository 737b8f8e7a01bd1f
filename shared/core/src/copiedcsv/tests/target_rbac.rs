//! Permissions in the target namespaces and in the whole cluster.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{group, original, planned, settle, with_status, world};
use crate::plan::{Action, Reason};
use crate::world::World;

/// Creates Role and RoleBinding as the InstallPlan does.
pub(super) fn give_rights(world: &mut World) {
    let metadata = json!({
        "name": "rose.v1-hash", "namespace": "garden",
        "labels": {
            "olm.owner": "rose.v1", "olm.owner.namespace": "garden", "olm.owner.kind": "ClusterServiceVersion",
            "olm.permissions.hash": "hash", "olm.managed": "true", "operators.coreos.com/rose.garden": "",
        },
        "ownerReferences": [{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": "rose.v1", "uid": "csv"}],
    });
    world.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
    }));
    world.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "subjects": [{"kind": "ServiceAccount", "name": "rose-sa", "namespace": "garden"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "rose.v1-hash"},
    }));
}

pub(super) fn rbac(world: &World) -> BTreeMap<String, Value> {
    let is_rbac =
        |o: &Value| o["apiVersion"] == "rbac.authorization.k8s.io/v1" && o["metadata"]["namespace"] != "garden";
    let objects = world.objects().map(|o| o.json()).filter(|o| is_rbac(o));
    objects.map(|o| (o["kind"].as_str().unwrap().to_owned(), o.clone())).collect()
}

#[test]
fn a_global_groups_rights_are_promoted() {
    let mut world = world(&[""]);
    give_rights(&mut world);
    world.apply(with_status(original(""), "phase", "Pending"));
    settle(&mut world);
    assert!(rbac(&world).is_empty(), "its InstallPlan may still be creating them");
    world.apply(original(""));
    settle(&mut world);
    let found = rbac(&world);
    let labels = json!({
        "olm.owner": "rose.v1", "olm.owner.namespace": "garden", "olm.owner.kind": "ClusterServiceVersion",
        "olm.permissions.hash": "hash", "olm.managed": "true", "operators.coreos.com/rose.garden": "",
    });
    assert_eq!(found.len(), 2);
    let role = &found["ClusterRole"];
    assert_eq!((&role["metadata"]["name"], &role["metadata"]["labels"]), (&json!("rose.v1-hash"), &labels));
    assert_eq!(
        role["rules"],
        json!([
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["namespaces"]},
        ])
    );
    let binding = &found["ClusterRoleBinding"];
    assert_eq!(binding["metadata"]["labels"], labels);
    assert_eq!(
        binding["roleRef"],
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "rose.v1-hash"})
    );
    assert_eq!(binding["subjects"], json!([{"kind": "ServiceAccount", "name": "rose-sa", "namespace": "garden"}]));
}

/// A client that may write an OperatorGroup must not get permissions that the group's ServiceAccount lacks.
#[test]
fn a_service_account_grants_only_its_own_permissions() {
    for targets in ["", "field"] {
        let mut world = world(&[targets]);
        give_rights(&mut world);
        settle(&mut world);
        for object in rbac(&world).into_values() {
            let (gk, at) =
                (crate::world::GroupKind::from_object(&object), crate::api::object::ObjectRef::from_object(&object));
            world.delete(&gk, &(at.namespace, at.name), object["metadata"]["uid"].as_str().unwrap(), 0);
        }
        let mut scoped = group(&json!([targets]));
        scoped["spec"]["serviceAccountName"] = "gardener".into();
        world.apply(scoped.clone());
        assert_eq!(planned(&world).actions, [], "{targets:?}: the account does not exist yet");
        scoped["status"]["serviceAccountRef"] = json!({ "name": "gardener", "namespace": "park" });
        world.apply(scoped);
        let actions = planned(&world).actions;
        assert_eq!(actions.len(), 2, "{targets:?}: {actions:?}");
        for action in actions {
            let Action::As(account, grant) = action else { panic!("{targets:?}: {action:?}") };
            assert_eq!((account.namespace.as_str(), account.name.as_str()), ("garden", "gardener"));
            assert!(matches!(&*grant, Action::Create(o) if o["kind"].as_str().unwrap().contains("Role")), "{grant:?}");
        }
    }
}

#[test]
fn removed_permissions_are_restored() {
    for (targets, kind, field) in [
        ("", "ClusterRole", "rules"),
        ("", "ClusterRoleBinding", "subjects"),
        ("field", "Role", "rules"),
        ("field", "RoleBinding", "subjects"),
    ] {
        let mut world = world(&[targets]);
        give_rights(&mut world);
        settle(&mut world);
        let good = rbac(&world);
        let mut edited = good[kind].clone();
        edited[field] = json!([]);
        world.apply(edited.clone());
        settle(&mut world);
        assert_eq!(rbac(&world), good, "{kind}");
        edited["metadata"]["labels"] = json!({"mine": "yes"});
        world.apply(edited.clone());
        settle(&mut world);
        assert_eq!(rbac(&world)[kind], edited, "objects of other owners are not changed");
    }
}

#[test]
fn cluster_wide_permissions_are_deleted_when_the_group_is_no_longer_global() {
    for targets in ["garden", "field"] {
        let mut world = world(&[""]);
        give_rights(&mut world);
        settle(&mut world);
        let own = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "rose.v1-other", "labels": rbac(&world)["ClusterRole"]["metadata"]["labels"]},
        });
        world.apply(own);
        world.apply(group(&json!([targets])));
        assert_eq!(rbac(&world).len(), 2, "as long as it has the old targets");
        world.apply(original(targets));
        let plan = planned(&world);
        let deleted: Vec<String> = plan
            .actions
            .iter()
            .filter(|a| matches!(a, Action::Delete { target, .. } if target.gvk.kind.starts_with("ClusterRole")))
            .map(|a| a.target().to_string())
            .collect();
        assert_eq!(deleted, ["ClusterRole/rose.v1-hash", "ClusterRoleBinding/rose.v1-hash"], "{targets}");
        settle(&mut world);
        assert_eq!(rbac(&world)["ClusterRole"]["metadata"]["name"], "rose.v1-other", "it needs that in any case");
        assert!(!rbac(&world).contains_key("ClusterRoleBinding"));
    }
}

#[test]
fn permissions_are_copied_to_targets_and_updated() {
    let mut world = world(&["field"]);
    give_rights(&mut world);
    settle(&mut world);
    let found = rbac(&world);
    assert_eq!(found.len(), 2);
    let metadata = json!({
        "name": "rose.v1-hash", "namespace": "field",
        "labels": {
            "olm.owner": "rose.v1", "olm.owner.namespace": "field", "olm.owner.kind": "ClusterServiceVersion",
            "olm.permissions.hash": "hash", "olm.managed": "true", "olm.copiedFrom": "garden",
        },
        "ownerReferences": [{
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": "rose.v1",
            "uid": "\"ClusterServiceVersion\" in \"field\"", "controller": false, "blockOwnerDeletion": false,
        }],
    });
    for (kind, object) in &found {
        let mut actual = object["metadata"].clone();
        actual.as_object_mut().unwrap().remove("uid");
        assert_eq!(actual, metadata, "{kind}");
    }
    assert_eq!(found["RoleBinding"]["subjects"][0]["namespace"], "garden");

    let mut edited = found["Role"].clone();
    edited["rules"] = json!([]);
    world.apply(edited);
    settle(&mut world);
    assert_eq!(rbac(&world)["Role"], found["Role"]);
}

#[test]
fn existing_permissions_are_not_copied() {
    let mut world = world(&["field"]);
    give_rights(&mut world);
    world.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "all"},
        "subjects": [{"kind": "ServiceAccount", "name": "rose-sa", "namespace": "garden"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"},
    }));
    world.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "all"},
        "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    }));
    settle(&mut world);
    assert!(!rbac(&world).contains_key("Role"));
}

#[test]
fn permissions_that_cannot_be_copied_are_reported() {
    for targets in [&[""][..], &["field"]] {
        let mut world = world(targets);
        settle(&mut world);
        let plan = planned(&world);
        assert!(
            matches!(&plan.reasons[..], [Reason::Missing { object, .. }] if object == "ClusterServiceVersion garden/rose.v1")
        );
    }
}
