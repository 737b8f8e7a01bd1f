use super::*;
use crate::sim::Patch;

fn apply(server: &mut ApiServer, manager: &str, force: bool, object: Value) -> Result<Value, Status> {
    let target = ObjectRef::from_object(&object);
    server.patch(&target, Patch::Apply { object, manager: manager.into(), force }, None, now())
}

fn labelled(labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "garden", "labels": labels}})
}

#[test]
fn an_apply_creates_absent_fields_and_removes_released_ones() {
    let mut server = server();
    let made = apply(&mut server, "me", false, labelled(json!({"a": "1", "b": "2"}))).expect("created");
    let patch = Patch::Merge(json!({"metadata": {"labels": {"c": "3"}}}));
    server.patch(&ObjectRef::from_object(&made), patch, None, now()).expect("patched");
    let applied = apply(&mut server, "me", false, labelled(json!({"a": "1"}))).expect("applied");
    assert_eq!(applied["metadata"]["labels"], json!({"a": "1", "c": "3"}));
    server.drain();
    let again = apply(&mut server, "me", false, labelled(json!({"a": "1"}))).expect("applied");
    assert_eq!(again, applied);
    assert!(server.drain().is_empty());
}

#[test]
fn conflicts_are_refused_unless_forced() {
    let mut server = server();
    apply(&mut server, "me", false, labelled(json!({"a": "1"}))).expect("created");
    let refused = apply(&mut server, "you", false, labelled(json!({"a": "2"}))).expect_err("mine");
    assert_eq!(
        told(&refused),
        (409, "Conflict", "Apply failed with 1 conflict: conflict with \"me\": .metadata.labels.a")
    );
    let shared = apply(&mut server, "you", false, labelled(json!({"a": "1"}))).expect("same value");
    assert_eq!(shared["metadata"]["labels"], json!({"a": "1"}));
    let taken = apply(&mut server, "you", true, labelled(json!({"a": "2"}))).expect("forced");
    assert_eq!(taken["metadata"]["labels"], json!({"a": "2"}));
    let mine = apply(&mut server, "me", false, labelled(json!({}))).expect("an apply of no fields");
    assert_eq!(mine["metadata"]["labels"], json!({"a": "2"}), "the other manager owns it");
}

#[test]
fn lists_with_keys_are_merged_entry_by_entry() {
    let mut server = server();
    let deployment = |containers: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "rose", "namespace": "garden"},
            "spec": {"selector": {"matchLabels": {"app": "rose"}}, "template": {
                "metadata": {"labels": {"app": "rose"}}, "spec": {"containers": containers},
            }},
        })
    };
    let names = |object: &Value| -> Vec<String> {
        let containers = object["spec"]["template"]["spec"]["containers"].as_array().expect("containers");
        containers.iter().map(|c| format!("{}:{}", c["name"].as_str().unwrap(), c["image"].as_str().unwrap())).collect()
    };
    let both = json!([{"name": "a", "image": "i:1"}, {"name": "b", "image": "j:1"}]);
    apply(&mut server, "me", false, deployment(both)).expect("created");
    let sidecar = apply(&mut server, "you", false, deployment(json!([{"name": "s", "image": "k:1"}]))).expect("added");
    assert_eq!(names(&sidecar), ["a:i:1", "b:j:1", "s:k:1"]);
    let fewer = apply(&mut server, "me", false, deployment(json!([{"name": "a", "image": "i:2"}]))).expect("applied");
    assert_eq!(names(&fewer), ["a:i:2", "s:k:1"]);
}
