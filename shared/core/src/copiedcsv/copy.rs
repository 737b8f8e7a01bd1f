//! What a copy of a ClusterServiceVersion looks like (reference/olm-operator.md §5.2).

use serde_json::{Map, Value, json};

use crate::api::{labels, object};
use crate::membership::TARGET_NAMESPACES;
use crate::plan::Action;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A copy of the original for a namespace. Its status follows when it is there.
pub(super) fn make(original: &Value, namespace: &str) -> Value {
    json!({
        "apiVersion": object::at(original, &["apiVersion"]),
        "kind": object::at(original, &["kind"]),
        "metadata": {
            "name": object::name(original),
            "namespace": namespace,
            "labels": labels_of(original),
            "annotations": annotations_of(original),
        },
        "spec": object::at(original, &["spec"]),
    })
}

/// The next write that makes a copy equal its original again.
pub(super) fn mend(original: &Value, copy: &Value) -> Option<Action> {
    if object::is_deleting(copy) {
        return None;
    }
    let (labels, annotations) = (labels_of(original), annotations_of(original));
    let (spec, status) = (object::at(original, &["spec"]), status_of(original));
    let same_map = |path: &str, map: &Map<String, Value>| {
        let actual = object::at(copy, &["metadata", path]).as_object();
        actual.map_or_else(|| map.is_empty(), |actual| actual == map)
    };
    let mut new = copy.clone();
    if object::at(copy, &["spec"]) != spec || !same_map("labels", &labels) || !same_map("annotations", &annotations) {
        let metadata = object::map_mut(&mut new, &["metadata"]);
        metadata.insert("labels".to_owned(), labels.into());
        metadata.insert("annotations".to_owned(), annotations.into());
        object::map_mut(&mut new, &[]).insert("spec".to_owned(), spec.clone());
        return Some(Action::Update(new));
    }
    if *object::at(copy, &["status"]) != status {
        object::map_mut(&mut new, &[]).insert("status".to_owned(), status);
        return Some(Action::UpdateStatus(new));
    }
    None
}

fn labels_of(original: &Value) -> Map<String, Value> {
    let mut copied = filtered(original, "labels", |key| !key.starts_with(labels::COMPONENT));
    copied.insert(labels::COPIED_FROM.to_owned(), object::namespace(original).into());
    copied
}

fn annotations_of(original: &Value) -> Map<String, Value> {
    filtered(original, "annotations", |key| key != TARGET_NAMESPACES && key != LAST_APPLIED)
}

fn filtered(original: &Value, part: &str, keep: impl Fn(&str) -> bool) -> Map<String, Value> {
    object::entries(original, &["metadata", part])
        .filter(|(key, _)| keep(key))
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}

fn status_of(original: &Value) -> Value {
    let mut status = object::at(original, &["status"]).clone();
    let namespace = object::namespace(original);
    let fields = object::map_mut(&mut status, &[]);
    fields.insert("reason".to_owned(), "Copied".into());
    let message = format!("The operator is running in {namespace} but is managing this namespace");
    fields.insert("message".to_owned(), message.into());
    status
}
