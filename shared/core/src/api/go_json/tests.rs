use super::*;

#[test]
fn every_referenced_type_is_in_the_table() {
    fn check(kind: &Kind) {
        match kind {
            Kind::Pointer(inner) | Kind::Slice(inner) | Kind::Map(inner) => check(inner),
            Kind::Struct(name) | Kind::Some(name) => assert!(table::structure(name).is_some(), "no type {name:?}"),
            _ => {}
        }
    }
    table::all().values().flatten().for_each(|field| check(&field.kind));
    for GoType(name) in [
        GoType::DEPLOYMENT_SPEC,
        GoType::POD_SPEC,
        GoType::SERVICE_SPEC,
        GoType::POLICY_RULES,
        GoType::POLICY_RULE,
        GoType::CLUSTER_SERVICE_VERSION,
        GoType::WEBHOOK_DESCRIPTION,
        GoType::ROLE_NAME,
        GoType::CLUSTER_ROLE_NAME,
        GoType::BINDING_HASH,
    ] {
        check(&table::kind(name));
    }
}

#[test]
fn go_s_order_zero_values_and_escapes() {
    let spec = json!({
        "template": {
            "spec": {"containers": [{"image": "<i>&", "name": "c", "args": [], "tty": false, "future": {"b": 1, "a": null}}]},
            "metadata": {"creationTimestamp": null},
        },
        "selector": {"matchLabels": {"b": "1", "a": "2"}},
        "replicas": 0,
    });
    assert_eq!(
        GoType::DEPLOYMENT_SPEC.encode(&spec),
        "{\"replicas\":0,\"selector\":{\"matchLabels\":{\"a\":\"2\",\"b\":\"1\"}},\"template\":{\"metadata\":{},\"spec\":\
         {\"containers\":[{\"name\":\"c\",\"image\":\"\\u003ci\\u003e\\u0026\",\"resources\":{},\"future\":{\"a\":null,\"b\":1}}]}},\
         \"strategy\":{}}"
    );
}

#[test]
fn missing_mandatory_fields_are_written() {
    assert_eq!(
        GoType::DEPLOYMENT_SPEC.encode(&json!({})),
        r#"{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}}"#
    );
    assert_eq!(GoType::POLICY_RULE.encode(&json!({"apiGroups": []})), r#"{"verbs":null}"#);
}

#[test]
fn wrong_types_are_preserved() {
    let spec = json!({"replicas": "many", "selector": null, "template": 7, "strategy": {}});
    assert_eq!(GoType::DEPLOYMENT_SPEC.normalise(&spec), spec);
}
