use super::*;
use crate::api::object::{at as field, generation, resource_version, uid};
use crate::sim::{Patch, WatchEvent};

fn merge(server: &mut ApiServer, object: &Value, patch: Value) -> Result<Value, Status> {
    server.patch(&ObjectRef::from_object(object), Patch::Merge(patch), None, now())
}

#[test]
fn a_created_object_gets_the_fields_of_the_server() {
    let mut server = server();
    let made = create(&mut server, config_map("a", &[]));
    assert_eq!(uid(&made).len(), 36);
    assert_eq!(field(&made, &["metadata", "creationTimestamp"]), "2026-11-21T12:00:00Z");
    assert!(!resource_version(&made).is_empty());
    assert_eq!(server.get(&ObjectRef::from_object(&made)), Some(&made));
    assert_eq!(server.drain(), [WatchEvent::Added(made.into())]);
}

#[test]
fn a_name_is_taken_once() {
    let mut server = server();
    create(&mut server, config_map("a", &[]));
    let refused = server.create(config_map("a", &[]), now()).expect_err("taken");
    assert_eq!(told(&refused), (409, "AlreadyExists", "configmaps \"a\" already exists"));
}

#[test]
fn a_namespace_must_exist() {
    let mut server = server();
    let mut lost = config_map("a", &[]);
    lost["metadata"]["namespace"] = "nowhere".into();
    let refused = server.create(lost, now()).expect_err("no namespace");
    assert_eq!(told(&refused), (404, "NotFound", "namespaces \"nowhere\" not found"));
}

#[test]
fn a_kind_must_be_served() {
    let mut server = server();
    let old = json!({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b"}});
    let refused = server.create(old, now()).expect_err("not served");
    assert_eq!(told(&refused), (404, "NotFound", "the server could not find the requested resource"));
}

#[test]
fn generated_names_end_in_five_letters() {
    let mut server = server();
    let mut object = config_map("", &[]);
    object["metadata"] = json!({"generateName": "install-", "namespace": "garden"});
    let first = create(&mut server, object.clone());
    let second = create(&mut server, object);
    for made in [&first, &second] {
        let name = crate::api::object::name(made);
        assert!(name.starts_with("install-") && name.len() == "install-".len() + 5, "{name}");
    }
    assert_ne!(crate::api::object::name(&first), crate::api::object::name(&second));
}

#[test]
fn the_same_calls_give_the_same_objects() {
    let (mut a, mut b) = (server(), server());
    assert_eq!(create(&mut a, config_map("a", &[])), create(&mut b, config_map("a", &[])));
}

#[test]
fn names_and_labels_are_checked() {
    let mut server = server();
    let refused = server.create(config_map("Not_A_Name", &[]), now()).expect_err("bad name");
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
    assert!(
        refused.message.starts_with("ConfigMap \"Not_A_Name\" is invalid: metadata.name: Invalid value"),
        "{refused}"
    );
    let mut labelled = config_map("a", &[]);
    labelled["metadata"]["labels"] = json!({"a b": "x"});
    let refused = server.create(labelled, now()).expect_err("bad label");
    assert!(refused.message.contains("metadata.labels: Invalid value: \"a b\""), "{refused}");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:Any_thing"}});
    create(&mut server, role);
}

#[test]
fn an_update_needs_the_current_resource_version() {
    let mut server = server();
    let made = create(&mut server, config_map("a", &[]));
    let mut mine = made.clone();
    mine["data"] = json!({"k": "1"});
    let mine = server.update(mine, None, now()).expect("first");
    let mut stale = made;
    stale["data"] = json!({"k": "2"});
    let refused = server.update(stale.clone(), None, now()).expect_err("stale");
    assert_eq!(
        told(&refused),
        (
            409,
            "Conflict",
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
        )
    );
    // Without a resource version the write is unconditional.
    stale["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    let unconditional = server.update(stale, None, now()).expect("unconditional");
    assert_ne!(resource_version(&unconditional), resource_version(&mine));
    let refused =
        merge(&mut server, &unconditional, json!({"metadata": {"resourceVersion": "1"}})).expect_err("stale patch");
    assert!(refused.is_conflict());
}

#[test]
fn an_update_addresses_one_object() {
    let mut server = server();
    let made = create(&mut server, config_map("a", &[]));
    let mut other = made.clone();
    other["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111".into();
    let refused = server.update(other, None, now()).expect_err("another uid");
    assert!(refused.is_conflict() && refused.message.contains("Precondition failed: UID in precondition"), "{refused}");
    let mut absent = made;
    absent["metadata"]["name"] = "b".into();
    assert_eq!(
        told(&server.update(absent, None, now()).expect_err("absent")),
        (404, "NotFound", "configmaps \"b\" not found")
    );
}

#[test]
fn a_write_that_changes_nothing_has_no_effect() {
    let mut server = server();
    let made = create(&mut server, config_map("a", &[]));
    server.drain();
    assert_eq!(server.update(made.clone(), None, now()).expect("same"), made);
    assert_eq!(merge(&mut server, &made, json!({"metadata": {"labels": null}})).expect("same"), made);
    assert!(server.drain().is_empty());
}

#[test]
fn unknown_fields_of_built_in_kinds_are_dropped() {
    let mut server = server();
    let mut object = config_map("a", &[]);
    object["unknown"] = 1.into();
    object["data"] = json!({"k": "v"});
    object["metadata"]["labels"] = json!({});
    let made = create(&mut server, object);
    assert!(made.get("unknown").is_none() && made["metadata"].get("labels").is_none());
    assert_eq!(made["data"], json!({"k": "v"}));
    let mut wrong = config_map("b", &[]);
    wrong["data"] = json!({"k": 1});
    let refused = server.create(wrong, now()).expect_err("wrong type");
    assert_eq!((refused.code, refused.reason.as_str()), (400, "BadRequest"));
}

#[test]
fn finalizers_block_a_deletion_until_they_are_removed() {
    let mut server = server();
    let mut object = config_map("a", &[]);
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let made = create(&mut server, object);
    let held = delete(&mut server, &made, Propagation::Background).expect("held");
    assert_eq!(field(&held, &["metadata", "deletionTimestamp"]), "2026-11-21T12:00:00Z");
    assert_eq!(field(&held, &["metadata", "deletionGracePeriodSeconds"]), 0);
    assert_eq!(delete(&mut server, &made, Propagation::Background), Some(held.clone()));
    let refused =
        merge(&mut server, &made, json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}))
            .expect_err("no new finalizers");
    assert!(refused.message.contains("no new finalizers can be added if the object is being deleted"), "{refused}");
    server.drain();
    merge(&mut server, &made, json!({"metadata": {"finalizers": null}})).expect("released");
    assert_eq!(server.get(&ObjectRef::from_object(&made)), None);
    let events = server.drain();
    let [WatchEvent::Deleted(last)] = events.as_slice() else { panic!("{events:?}") };
    assert_ne!(resource_version(last), resource_version(&held));
}

#[test]
fn preconditions_guard_a_deletion() {
    let mut server = server();
    let made = create(&mut server, config_map("a", &[]));
    let target = ObjectRef::from_object(&made);
    for preconditions in [
        Preconditions { uid: Some("x".into()), resource_version: None },
        Preconditions { uid: None, resource_version: Some("1".into()) },
    ] {
        let refused = server.delete(&target, &preconditions, Propagation::Background, now()).expect_err("guarded");
        assert!(refused.is_conflict());
    }
    let right = Preconditions { uid: Some(uid(&made).into()), resource_version: Some(resource_version(&made).into()) };
    assert_eq!(server.delete(&target, &right, Propagation::Background, now()), Ok(None));
    let refused = server.delete(&target, &right, Propagation::Background, now()).expect_err("gone");
    assert_eq!(told(&refused), (404, "NotFound", "configmaps \"a\" not found"));
}

#[test]
fn kinds_get_the_defaults_of_kubernetes() {
    let mut server = server();
    let service = create(
        &mut server,
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "rose", "namespace": "garden"},
            "spec": {"ports": [{"port": 80}], "selector": {"app": "rose"}},
        }),
    );
    let ip = service["spec"]["clusterIP"].as_str().expect("an address").to_owned();
    assert!(ip.starts_with("10.0."), "{ip}");
    assert_eq!(
        service["spec"],
        json!({
            "clusterIP": ip, "clusterIPs": [ip], "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            "selector": {"app": "rose"}, "sessionAffinity": "None", "type": "ClusterIP",
        })
    );
    assert_eq!(service["status"], json!({"loadBalancer": {}}));
    let mut replaced = service.clone();
    replaced["spec"] = json!({"ports": [{"port": 81}]});
    let mut replaced = server.update(replaced, None, now()).expect("updated");
    assert_eq!(replaced["spec"]["clusterIP"], service["spec"]["clusterIP"]);
    // As in assisted-service-operator.v0.0.1.
    for unset in [json!(0), json!("")] {
        replaced["spec"]["ports"] = json!([{"port": 5432, "targetPort": unset}]);
        replaced = server.update(replaced, None, now()).expect("updated");
        assert_eq!(replaced["spec"]["ports"], json!([{"port": 5432, "protocol": "TCP", "targetPort": 5432}]));
    }

    let secret = create(
        &mut server,
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "garden"}, "stringData": {"password": "x"},
        }),
    );
    assert_eq!((&secret["type"], &secret["data"]), (&json!("Opaque"), &json!({"password": "eA=="})));
    assert!(secret.get("stringData").is_none());

    let binding = create(
        &mut server,
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "b", "namespace": "garden"},
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "a"}],
        }),
    );
    assert_eq!(binding["roleRef"]["apiGroup"], "rbac.authorization.k8s.io");
    assert_eq!(
        binding["subjects"],
        json!([
            {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "ServiceAccount", "name": "a"},
        ])
    );
    let mut moved = binding;
    moved["roleRef"]["name"] = "other".into();
    let refused = server.update(moved, None, now()).expect_err("immutable");
    assert!(refused.message.ends_with(": cannot change roleRef"), "{refused}");

    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r", "namespace": "garden"}});
    assert_eq!(create(&mut server, role).get("rules"), Some(&Value::Null));
    let policy = create(
        &mut server,
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p", "namespace": "garden"}, "spec": {},
        }),
    );
    assert_eq!(policy["spec"], json!({"podSelector": {}, "policyTypes": ["Ingress"]}));
}

#[test]
fn invalid_rules_are_refused() {
    let mut server = server();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r", "namespace": "garden"},
        "rules": [{"apiGroups": [""], "resources": ["pods"]}],
    });
    let refused = server.create(role, now()).expect_err("no verbs");
    assert_eq!(
        told(&refused),
        (
            422,
            "Invalid",
            "Role.rbac.authorization.k8s.io \"r\" is invalid: rules[0].verbs: Required value: verbs must contain at least one value"
        )
    );
}

#[test]
fn generation_moves_with_the_spec_only() {
    let mut server = server();
    let budget = create(
        &mut server,
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p", "namespace": "garden"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "rose"}}},
        }),
    );
    assert_eq!(generation(&budget), 1);
    let labelled = merge(&mut server, &budget, json!({"metadata": {"labels": {"a": "b"}}})).expect("labelled");
    assert_eq!(generation(&labelled), 1);
    let changed = merge(&mut server, &budget, json!({"spec": {"minAvailable": 2}})).expect("changed");
    assert_eq!(generation(&changed), 2);
}
