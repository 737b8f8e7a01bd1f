use serde_json::json;

use super::*;

/// Knows a Rose's uid and two generated names, one of which is a prefix of the other.
fn normaliser() -> Normaliser {
    let uid = "11111111-2222-3333-4444-555555555555";
    let uids = [(uid.to_owned(), "Rose/garden/red-abc12".to_owned())].into();
    let names = vec!["red-abc".to_owned(), "red-abc12".to_owned()];
    let generated = [(("Rose".to_owned(), "garden".to_owned(), "red-".to_owned()), names)].into();
    let addresses = [("127.0.0.1:40001".to_owned(), "127.0.0.1:50061".to_owned())].into();
    Normaliser::new(&uids, &generated, &addresses).unwrap()
}

#[test]
fn random_parts_of_texts_are_replaced() {
    let n = normaliser();
    for (text, expected) in [
        ("red-abc12 and red-abc", "red-<2> and red-<1>"),
        ("uid 11111111-2222-3333-4444-555555555555", "uid <uid of Rose/garden/red-<2>>"),
        ("uid 99999999-2222-3333-4444-555555555555!", "uid <uid>!"),
        ("at 2026-01-02T03:04:05Z", "at <time>"),
        ("at 2026-01-02 03:04:05.678 +0000 UTC m=+1.5 sharp", "at <time> sharp"),
        ("dial 10.0.3.4:443 or 110.1.2.3", "dial <ip> or 110.1.2.3"),
        ("ReplicaSet \"rose-5d8f7c9b4\" waits", "ReplicaSet \"rose-<hash>\" waits"),
        ("catalog at 127.0.0.1:40001", "catalog at 127.0.0.1:50061"),
    ] {
        assert_eq!(n.text(text), expected);
    }
}

#[test]
fn long_texts_are_counted_in_characters() {
    let n = normaliser();
    let umlauts = "ü".repeat(2000);
    assert_eq!(n.text(&umlauts), umlauts);
    // sha256 of 2001 times ü, computed by Python's hashlib.
    let expected = "<text of 2001 characters, sha256 af8f0f34763742d842342dc63874e8c4a385912c664b8be9d330884ee1831171>";
    assert_eq!(n.text(&"ü".repeat(2001)), expected);
}

#[test]
fn fields_of_the_server_are_removed() {
    let object = json!({
        "kind": "Rose",
        "metadata": {
            "name": "red-abc12", "uid": "11111111-2222-3333-4444-555555555555", "creationTimestamp": "2026-01-02T03:04:05Z",
            "resourceVersion": "7", "generation": 2, "managedFields": [{}],
            "ownerReferences": [{"name": "b"}, {"name": "a"}],
        },
        "webhook": {"caBundle": "abc"},
        "status": {"observedGeneration": 2, "red-abc": ["red-abc"]},
    });
    let expected = json!({
        "kind": "Rose",
        "metadata": {"name": "red-<2>", "ownerReferences": [{"name": "a"}, {"name": "b"}]},
        "webhook": {"caBundle": "<cert>"},
        "status": {"red-<1>": ["red-<1>"]},
    });
    assert_eq!(normaliser().object(&object), expected);
}

#[test]
fn kinds_have_specific_rules() {
    let n = normaliser();
    let normal = |kind: &str, mut object: Value| {
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": "x"});
        let mut object = n.object(&object);
        remove(&mut object, "", &["kind", "metadata"]);
        object
    };
    assert_eq!(
        normal("Secret", json!({"data": {"b": "", "a": ""}, "type": "Opaque"})),
        json!({"keys": ["a", "b"], "type": "Opaque"})
    );
    assert_eq!(
        normal(
            "Service",
            json!({"spec": {"clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"], "ports": [{"port": 1, "nodePort": 2}]}})
        ),
        json!({"spec": {"clusterIP": "<ip>", "clusterIPs": "<ip>", "ports": [{"port": 1}]}})
    );
    assert_eq!(normal("Service", json!({"spec": {"clusterIP": "None"}})), json!({"spec": {"clusterIP": "None"}}));
    assert_eq!(
        normal(
            "CustomResourceDefinition",
            json!({"spec": {"versions": [{"name": "v1", "served": true, "schema": {}}]}})
        ),
        json!({"spec": {"versions": [{"name": "v1", "served": true}]}, "status": {"storedVersions": null}})
    );
    assert_eq!(
        normal(
            "Deployment",
            json!({"spec": {"template": {"metadata": {}}}, "status": {"replicas": 1, "x": 2, "conditions": [
            {"type": "B", "status": "True", "reason": "R"}, {"type": "A", "status": "False"}]}})
        ),
        json!({"spec": {"template": {"metadata": {}}}, "status": {"replicas": 1, "conditions": ["A=False ", "B=True R"]}})
    );
    assert_eq!(
        normal(
            "ClusterServiceVersion",
            json!({"spec": {}, "status": {
            "conditions": [{"phase": "Installing", "reason": "InstallWaiting"}, {"phase": "Succeeded"}],
            "requirementStatus": [{"kind": "ServiceAccount", "name": "b"}, {"kind": "ServiceAccount", "name": "a", "dependents": ["y", "x"]}, {"kind": "Z"}]}})
        ),
        json!({"spec": {}, "status": {"conditions": [{"phase": "Succeeded"}], "requirementStatus": [
            {"kind": "Z"}, {"kind": "ServiceAccount", "name": "a", "dependents": ["x", "y"]}, {"kind": "ServiceAccount", "name": "b"}]}})
    );
    let step = |resolving: &str, kind: &str, name: &str| json!({"resolving": resolving, "resource": {"kind": kind, "name": name}});
    assert_eq!(
        normal(
            "InstallPlan",
            json!({"spec": {}, "status": {"plan": [
            step("b", "CSV", "b"), step("a", "Role", "2"), step("a", "Role", "1"), step("a", "Service", "s"), step("a", "CSV", "a")]}})
        ),
        json!({"spec": {}, "status": {"plan": [
            step("a", "Service", "s"), step("a", "CSV", "a"), step("a", "Role", "1"), step("a", "Role", "2"), step("b", "CSV", "b")]}})
    );
}

#[test]
fn manifests_are_shown_as_objects_and_long_ones_hashed() {
    let n = normaliser();
    let walk = |manifest: &str| n.walk(&json!({"manifest": manifest}))["manifest"].clone();
    assert_eq!(
        walk(r#"{"kind":"Rose","metadata":{"uid":"99999999-2222-3333-4444-555555555555"}}"#),
        json!({"kind": "Rose", "metadata": {"uid": "<uid>"}})
    );
    assert_eq!(walk("not json"), json!("not json"));
    let long = walk(&json!({"list": vec!["ü"; 500]}).to_string());
    assert_eq!(
        long,
        json!(
            "<4510 characters of JSON with sorted keys, sha256 8fb06a403eba980d873ce24bf85f16b7f18d492a7bed24609bf9a41ef17af330>"
        )
    );
}

#[test]
fn events_have_source_message_and_object() {
    let event = json!({
        "kind": "Event", "type": "Normal", "reason": "Bloomed", "message": "red-abc blooms", "count": 3,
        "involvedObject": {"kind": "Rose", "namespace": "garden", "name": "red-abc"}, "source": {}, "reportingComponent": "gardener",
    });
    let expected = json!({
        "object": "Rose/garden/red-<1>", "type": "Normal", "reason": "Bloomed", "message": "red-<1> blooms", "from": "gardener",
    });
    assert_eq!(normaliser().event(&event), expected);
}
