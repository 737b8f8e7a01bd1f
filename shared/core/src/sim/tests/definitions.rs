use super::*;
use crate::api::object::generation;
use crate::sim::Patch;

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "roses.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Rose", "plural": "roses"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["colour"], "properties": {
                        "colour": {"type": "string", "enum": ["red", "white"]},
                        "petals": {"type": "integer", "default": 5},
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

fn rose(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Rose", "metadata": {"name": "r", "namespace": "garden"}, "spec": spec})
}

fn with_definition() -> ApiServer {
    let mut server = server();
    create(&mut server, definition());
    settle(&mut server, now());
    server
}

#[test]
fn a_definition_is_established_by_its_controller() {
    let mut server = server();
    let made = create(&mut server, definition());
    assert_eq!(
        made["spec"]["names"],
        json!({"kind": "Rose", "plural": "roses", "singular": "rose", "listKind": "RoseList"})
    );
    assert_eq!(made["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    let refused = server.create(rose(json!({"colour": "red"})), now()).expect_err("not established");
    assert_eq!(told(&refused), (404, "NotFound", "the server could not find the requested resource"));
    settle(&mut server, now());
    let established = current(&server, &made);
    let conditions: Vec<String> = established["status"]["conditions"]
        .as_array()
        .expect("conditions")
        .iter()
        .map(|c| {
            format!(
                "{}={} {}: {}",
                c["type"].as_str().unwrap(),
                c["status"].as_str().unwrap(),
                c["reason"].as_str().unwrap(),
                c["message"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        conditions,
        [
            "NamesAccepted=True NoConflicts: no conflicts found",
            "Established=True InitialNamesAccepted: the initial names have been accepted",
        ]
    );
    create(&mut server, rose(json!({"colour": "red"})));
}

#[test]
fn custom_resources_are_pruned_defaulted_and_validated() {
    let mut server = with_definition();
    let made = create(&mut server, rose(json!({"colour": "red", "thorns": 3})));
    assert_eq!(made["spec"], json!({"colour": "red", "petals": 5}));
    let mut bad = rose(json!({"petals": "many"}));
    bad["metadata"]["name"] = "bad".into();
    let refused = server.create(bad, now()).expect_err("invalid");
    assert_eq!(
        told(&refused),
        (
            422,
            "Invalid",
            "Rose.example.com \"bad\" is invalid: [spec.colour: Required value, spec.petals: Invalid value: \"string\": spec.petals in body must be of type integer: \"string\"]"
        )
    );
}

#[test]
fn spec_and_status_are_written_apart() {
    let mut server = with_definition();
    let mut object = rose(json!({"colour": "red"}));
    object["status"] = json!({"bloom": true});
    let made = create(&mut server, object);
    assert!(made.get("status").is_none(), "a create writes no status");
    let mut both = made.clone();
    both["spec"]["colour"] = "white".into();
    both["status"] = json!({"bloom": true});
    both["metadata"]["labels"] = json!({"a": "b"});
    let status = server.update(both.clone(), Some("status"), now()).expect("status");
    assert_eq!((&status["spec"]["colour"], &status["status"]), (&json!("red"), &json!({"bloom": true})));
    assert!(status["metadata"].get("labels").is_none());
    assert_eq!(generation(&status), 1);
    let mut spec = both;
    spec["status"] = json!({"bloom": false});
    spec["metadata"]["resourceVersion"] = status["metadata"]["resourceVersion"].clone();
    let spec = server.update(spec, None, now()).expect("spec");
    assert_eq!((&spec["spec"]["colour"], &spec["status"]), (&json!("white"), &json!({"bloom": true})));
    assert_eq!(generation(&spec), 2);
}

#[test]
fn custom_resources_are_replaced_only_with_a_resource_version() {
    let mut server = with_definition();
    let mut made = create(&mut server, rose(json!({"colour": "red"})));
    made["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    let refused = server.update(made.clone(), None, now()).expect_err("unconditional");
    assert_eq!(
        told(&refused),
        (
            422,
            "Invalid",
            "roses.example.com \"r\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        )
    );
    let refused =
        server.patch(&ObjectRef::from_object(&made), Patch::Strategic(json!({})), None, now()).expect_err("strategic");
    assert_eq!(refused.reason, "UnsupportedMediaType");
}

#[test]
fn several_versions_are_one_object() {
    let mut server = server();
    let mut two = definition();
    let mut second = two["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    two["spec"]["versions"].as_array_mut().expect("versions").push(second);
    create(&mut server, two);
    settle(&mut server, now());
    let mut object = rose(json!({"colour": "red"}));
    object["apiVersion"] = "example.com/v2".into();
    let made = create(&mut server, object);
    assert_eq!(made["apiVersion"], "example.com/v1", "read in the version that is stored");
    assert!(server.get(&reference("example.com/v2", "Rose", "r")).is_some());
    // The storage version changes: the same objects are read in the new one.
    let target = reference("apiextensions.k8s.io/v1", "CustomResourceDefinition", "roses.example.com");
    let patch = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    let moved = server.patch(&target, Patch::Json(patch), None, now()).expect("moved");
    assert_eq!(moved["status"]["storedVersions"], json!(["v1", "v2"]));
    settle(&mut server, now());
    let read = server.get(&reference("example.com/v1", "Rose", "r")).expect("still there");
    assert_eq!(read["apiVersion"], "example.com/v2");
    let refused = server
        .patch(&target, Patch::Json(json!([{"op": "remove", "path": "/spec/versions/0"}])), None, now())
        .expect_err("v1 is stored");
    assert_eq!(
        refused.message,
        "CustomResourceDefinition.apiextensions.k8s.io \"roses.example.com\" is invalid: status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"
    );
}

#[test]
fn a_deleted_definition_deletes_its_objects() {
    let mut server = with_definition();
    let made = create(&mut server, rose(json!({"colour": "red"})));
    let target = reference("apiextensions.k8s.io/v1", "CustomResourceDefinition", "roses.example.com");
    let going = server.delete(&target, &Preconditions::default(), Propagation::Background, now()).expect("deleted");
    assert!(going.is_some(), "it waits for its objects");
    settle(&mut server, now());
    assert!(server.get(&target).is_none() && server.get(&ObjectRef::from_object(&made)).is_none());
    assert!(server.create(rose(json!({"colour": "red"})), now()).expect_err("not served").is_not_found());
}

#[test]
fn definitions_must_be_consistent() {
    let mut server = server();
    let mut wrong = definition();
    wrong["metadata"]["name"] = "rose.example.com".into();
    let refused = server.create(wrong, now()).expect_err("wrong name");
    assert!(refused.message.contains("must be spec.names.plural+\".\"+spec.group"), "{refused}");
    let mut shapeless = definition();
    shapeless["spec"]["versions"][0].as_object_mut().expect("version").remove("schema");
    let refused = server.create(shapeless, now()).expect_err("no schema");
    assert!(refused.message.contains("spec.versions[0].schema.openAPIV3Schema: Required value"), "{refused}");
}
