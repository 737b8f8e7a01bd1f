use super::*;
use crate::api::object::is_deleting;

fn namespace(server: &ApiServer) -> Value {
    server.get(&reference("v1", "Namespace", "garden")).cloned().unwrap_or_default()
}

#[test]
fn a_namespace_is_made_as_kubernetes_makes_it() {
    let server = server();
    let made = namespace(&server);
    assert_eq!(made["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "garden"}));
    assert_eq!((&made["spec"], &made["status"]), (&json!({"finalizers": ["kubernetes"]}), &json!({"phase": "Active"})));
    assert!(server.get(&reference("v1", "ServiceAccount", "default")).is_some());
    assert!(server.get(&reference("v1", "ConfigMap", "kube-root-ca.crt")).is_some());
}

#[test]
fn deleting_a_namespace_deletes_its_content() {
    let mut server = server();
    create(&mut server, config_map("a", &[]));
    let mut held = config_map("held", &[]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let held = create(&mut server, held);
    let garden = namespace(&server);
    let terminating = delete(&mut server, &garden, Propagation::Background).expect("takes time");
    assert_eq!(terminating["status"]["phase"], "Terminating");
    let refused = server.create(config_map("late", &[]), now()).expect_err("terminating");
    assert_eq!(
        told(&refused),
        (
            403,
            "Forbidden",
            "configmaps \"late\" is forbidden: unable to create new content in namespace garden because it is being terminated"
        )
    );
    settle(&mut server, now());
    assert!(server.get(&reference("v1", "ConfigMap", "a")).is_none());
    assert!(is_deleting(&current(&server, &held)));
    let told = namespace(&server);
    let remaining = told["status"]["conditions"]
        .as_array()
        .expect("conditions")
        .iter()
        .find(|c| c["type"] == "NamespaceContentRemaining");
    assert_eq!(
        remaining.expect("told")["message"],
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    let patch = super::super::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    server.patch(&ObjectRef::from_object(&held), patch, None, now()).expect("released");
    settle(&mut server, now());
    assert_eq!(namespace(&server), Value::Null);
}

#[test]
fn stock_namespaces_cannot_be_deleted() {
    let mut server = ApiServer::with_stock_objects(1, now());
    let target = reference("v1", "Namespace", "kube-system");
    let refused = server.delete(&target, &Preconditions::default(), Propagation::Background, now()).expect_err("stays");
    assert_eq!(
        told(&refused),
        (403, "Forbidden", "namespaces \"kube-system\" is forbidden: this namespace may not be deleted")
    );
}
