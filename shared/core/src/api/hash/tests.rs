use serde_json::json;

use super::*;

#[test]
fn base_62_of_known_digests() {
    assert_eq!(base62(&[0]), "0");
    assert_eq!(base62(&[61]), "Z");
    assert_eq!(base62(&[62]), "10");
    assert_eq!(text_hash("[\"something\"]\n"), "5L9sNXi3Y6mcOevFzYY3WOLIukKOeZwz1pfUlT");
}

#[test]
fn hash_of_a_provided_api() {
    assert_eq!(gvk_hash(&Gvk::new("ghouls", "v1alpha1", "Ghost")), "6435ab0d7c6bda64");
}

#[test]
fn names_of_roles() {
    let rules = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]);
    assert_eq!(plain_hash(GoType::POLICY_RULES, &rules), "3Y9YdhK7d3Fe0rjjaFPWtPIIUI2QxhrMcQX5Z1");
    let hashed = json!({"name": "csv.v1", "permission": {"rules": rules, "serviceAccountName": "sa1"}});
    assert_eq!(
        generate_name("csv.v1-sa1", &deep_hash(GoType::ROLE_NAME, &hashed)),
        "csv.v1-sa1-6oFgt2jx7bjWGpMiBZ0Th5Es8MiAu0jvLKjkz1"
    );
}

#[test]
fn names_of_an_operator_group_s_roles() {
    assert_eq!(text_hash("operators/global-operators/edit"), "9ZbzBIwu1SlHO7KbWinNtOfyGaVjTWIYhNkNP");
}

#[test]
fn a_long_base_is_cut() {
    let hash = "h".repeat(38);
    assert_eq!(generate_name(&"b".repeat(30), &hash).len(), 63);
    assert_eq!(generate_name(&"b".repeat(25), &hash).len(), 64, "OLM's sum of exactly 63");
    assert_eq!(generate_name("b", &hash).len(), 40);
}

#[test]
fn the_smallest_deployment() {
    let spec = json!({
        "replicas": 1,
        "revisionHistoryLimit": 1,
        "selector": {"matchLabels": {"app": "rose-operator"}},
        "template": {
            "metadata": {
                "labels": {"app": "rose-operator"},
                "annotations": {"olm.operatorGroup": "garden", "olm.operatorNamespace": "garden", "olm.targetNamespaces": "garden"},
            },
            "spec": {"containers": [{
                "name": "manager",
                "image": "registry.example.com/operator:1",
                "env": [{"name": "OPERATOR_CONDITION_NAME", "value": "rose.v1.0.0"}],
            }]},
        },
    });
    assert_eq!(deep_hash(GoType::DEPLOYMENT_SPEC, &spec), "10sBvzFajrnWEFUliAOMo6WuOjixjN4jycmc2m");
}
