use super::*;
use crate::api::object::{is_deleting, list, owner_reference};
use crate::testing;

fn is_there(server: &ApiServer, object: &Value) -> bool {
    server.get(&ObjectRef::from_object(object)).is_some()
}

#[test]
fn deleting_the_last_owner_deletes_the_dependents() {
    let mut server = server();
    let first = create(&mut server, config_map("first", &[]));
    let second = create(&mut server, config_map("second", &[]));
    let child = create(&mut server, config_map("child", &[&first, &second]));
    let grandchild = create(&mut server, config_map("grandchild", &[&child]));
    assert_eq!(delete(&mut server, &first, Propagation::Background), None);
    settle(&mut server, now());
    let left = current(&server, &child);
    assert_eq!(list(&left, &["metadata", "ownerReferences"]), [owner_reference(&second, false)]);
    delete(&mut server, &second, Propagation::Background);
    settle(&mut server, now());
    assert!(!is_there(&server, &child) && !is_there(&server, &grandchild));
}

#[test]
fn an_owner_with_another_uid_is_ignored() {
    let mut server = server();
    let owner = create(&mut server, config_map("owner", &[]));
    let mut other = owner.clone();
    other["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111".into();
    let child = create(&mut server, config_map("child", &[&other]));
    settle(&mut server, now());
    assert!(!is_there(&server, &child) && is_there(&server, &owner));
}

#[test]
fn an_owner_in_another_namespace_is_ignored() {
    let mut server = server();
    create(&mut server, testing::namespace("field"));
    let mut owner = config_map("owner", &[]);
    owner["metadata"]["namespace"] = "field".into();
    let owner = create(&mut server, owner);
    let child = create(&mut server, config_map("child", &[&owner]));
    let mut role =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "role"}});
    role["metadata"]["ownerReferences"] = json!([owner_reference(&owner, false)]);
    let role = create(&mut server, role);
    settle(&mut server, now());
    assert!(!is_there(&server, &child));
    assert!(is_there(&server, &role), "a namespaced owner of a cluster-scoped object cannot be determined");
}

#[test]
fn foreground_deletion_waits_for_the_dependents_that_block_it() {
    let mut server = server();
    let owner = create(&mut server, config_map("owner", &[]));
    let mut child = config_map("child", &[&owner]);
    child["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = true.into();
    child["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let child = create(&mut server, child);
    delete(&mut server, &owner, Propagation::Foreground).expect("waits");
    settle(&mut server, now());
    assert!(is_deleting(&current(&server, &child)) && is_there(&server, &owner));
    let patch = super::super::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    server.patch(&ObjectRef::from_object(&child), patch, None, now()).expect("released");
    settle(&mut server, now());
    assert!(!is_there(&server, &child) && !is_there(&server, &owner));
}

#[test]
fn orphans_are_preserved_without_their_owner() {
    let mut server = server();
    let owner = create(&mut server, config_map("owner", &[]));
    let child = create(&mut server, config_map("child", &[&owner]));
    delete(&mut server, &owner, Propagation::Orphan).expect("releases its dependents first");
    settle(&mut server, now());
    assert!(!is_there(&server, &owner));
    assert!(list(&current(&server, &child), &["metadata", "ownerReferences"]).is_empty());
}

#[test]
fn aggregated_roles_gather_rules_in_the_order_of_names() {
    let mut server = server();
    let role = |name: &str, rules: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {"to": "all"}}, "rules": rules,
        })
    };
    let rule = |verb: &str| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]});
    let all = create(
        &mut server,
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "all"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]},
        }),
    );
    settle(&mut server, now());
    assert_eq!(current(&server, &all).get("rules"), Some(&Value::Null));
    create(&mut server, role("b", json!([rule("get"), rule("list")])));
    create(&mut server, role("a", json!([rule("watch"), rule("get")])));
    settle(&mut server, now());
    assert_eq!(current(&server, &all)["rules"], json!([rule("watch"), rule("get"), rule("list")]));
}
