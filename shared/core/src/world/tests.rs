use serde_json::{Value, json};

use super::*;

fn role(name: &str, rv: u64, extra: Value) -> Value {
    let mut object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": name, "namespace": "tea", "uid": format!("uid-{name}"), "resourceVersion": rv.to_string() },
    });
    for (key, value) in extra.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    object
}

fn names(world: &World) -> Vec<String> {
    Reader::new(world).in_namespace(&kind::ROLE, "tea").map(|o| object::name(o.json()).to_owned()).collect()
}

#[test]
fn an_older_observation_never_replaces_a_newer_one() {
    let mut world = World::new();
    assert!(world.apply(role("pot", 5, json!({}))).unwrap().membership);
    assert!(!world.apply(role("pot", 6, json!({ "labels": { "a": "b" } }))).unwrap().membership);
    assert_eq!(world.apply(role("pot", 5, json!({}))), None);
    assert_eq!(
        world.apply(role("pot", 6, json!({ "labels": { "a": "b" } }))),
        None,
        "an equal observation is no change"
    );
    let reader = Reader::new(&world);
    assert_eq!(object::label(reader.json(&kind::ROLE, "tea", "pot").unwrap(), "a"), Some("b"));
}

#[test]
fn a_late_observation_does_not_restore_a_deleted_object() {
    let mut world = World::new();
    let name = ("tea".to_owned(), "pot".to_owned());
    let _ = world.apply(role("pot", 5, json!({})));
    assert!(world.delete(&kind::ROLE, &name, "uid-pot", 7).is_some());
    assert_eq!(world.apply(role("pot", 6, json!({}))), None);
    assert_eq!(names(&world), [""; 0]);
    assert!(world.apply(role("pot", 8, json!({}))).is_some(), "recreated");
}

#[test]
fn a_deletion_of_an_earlier_object_leaves_the_new_one() {
    let mut world = World::new();
    let name = ("tea".to_owned(), "pot".to_owned());
    let _ = world.apply(role("pot", 9, json!({ "uid": "second" })));
    assert_eq!(world.delete(&kind::ROLE, &name, "first", 7), None);
    assert_eq!(names(&world), ["pot"]);
}

#[test]
fn a_list_removes_what_it_lacks_but_nothing_newer_than_itself() {
    let mut world = World::new();
    let _ = world.apply(role("old", 3, json!({})));
    let _ = world.apply(role("kept", 4, json!({})));
    let _ = world.apply(role("made-meanwhile", 12, json!({})));
    let changes = world.reset(&kind::ROLE, vec![role("kept", 4, json!({})), role("new", 9, json!({}))], Vec::new(), 10);
    assert_eq!(names(&world), ["kept", "made-meanwhile", "new"]);
    assert_eq!(changes.iter().map(|c| c.name.1.as_str()).collect::<Vec<_>>(), ["old", "new"]);
}

#[test]
fn a_change_names_the_index_entries_it_left_and_entered() {
    let mut world = World::new();
    let owned = |uid: &str| json!({ "ownerReferences": [{ "kind": "Pot", "uid": uid }] });
    let _ = world.apply(role("pot", 1, owned("a")));
    let change = world.apply(role("pot", 2, owned("b"))).unwrap();
    assert_eq!(change.index, [IndexKey::Owner("a".into()), IndexKey::Owner("b".into())].into());
    let reader = Reader::new(&world);
    assert!(reader.indexed(IndexKey::Owner("a".into())).is_empty());
    assert_eq!(reader.indexed(IndexKey::Owner("b".into())).len(), 1);
}

#[test]
fn reads_of_missing_objects_are_recorded() {
    let world = World::new();
    let reader = Reader::new(&world);
    assert!(reader.json(&kind::ROLE, "tea", "pot").is_none());
    assert_eq!(reader.in_namespace(&kind::ROLE, "tea").count(), 0);
    assert!(reader.server_version().is_none());
    let expected = [
        Read::Object(kind::ROLE, ("tea".into(), "pot".into())),
        Read::Namespace(kind::ROLE, "tea".into()),
        Read::Fact(FactKey::ServerVersion),
    ];
    assert_eq!(reader.into_reads(), expected.into());
}

#[test]
fn objects_without_names_or_labels_or_with_wrong_types_are_stored() {
    let mut world = World::new();
    for broken in
        [json!(null), json!([]), json!({ "kind": 7, "metadata": [] }), json!({ "metadata": { "labels": "x" } })]
    {
        let _ = world.apply(broken);
    }
    assert!(world.objects().count() >= 1);
}

#[test]
fn a_failed_discovery_removes_nothing() {
    let mut world = World::new();
    let key = || FactKey::Discovery("apps".into(), "v1".into());
    let kinds = std::collections::BTreeMap::from([("Deployment".to_owned(), Some(true))]);
    let known = |world: &World| Reader::new(world).discovery("apps", "v1").cloned();
    let mut learn = |discovery: Discovery| world.learn(key(), Some(Fact::Discovery(discovery)));
    assert!(learn(Discovery::new(kinds.clone())));
    assert!(learn(Discovery::failed("away")) && !learn(Discovery::failed("away")));
    let now = known(&world).unwrap();
    assert_eq!((now.serves("Deployment"), now.serves("Rose")), (Ok(true), Err("away")));
    assert_eq!(world.discovered().collect::<Vec<_>>(), [("apps", "v1")]);
    assert!(world.learn(key(), Some(Fact::Discovery(Discovery::new(std::collections::BTreeMap::new())))));
    assert_eq!(known(&world).unwrap().serves("Deployment"), Ok(false));
}
