//! Which lists are merged entry by entry, and which fields identify an entry.

use serde_json::Value;

use super::kinds::{KindSchema, ResourceKind};
use crate::structural::list_map_keys;

/// How two versions of a list are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// The new list replaces the old one.
    Atomic,
    /// A set of values.
    Set,
    /// A list of maps whose entries are identified by these fields. Strategic merge uses only the first.
    Map(Vec<String>),
}

/// Returns how the list at this field path (`spec`, `template`, …, without indices) is merged.
pub(super) fn merge_of(kind: &ResourceKind, version: &str, path: &[String]) -> Merge {
    let fields: Vec<&str> = path.iter().map(String::as_str).collect();
    match fields.as_slice() {
        ["metadata", "finalizers"] => return Merge::Set,
        ["metadata", "ownerReferences"] => return keys(&["uid"]),
        _ => {}
    }
    match kind.version(version).map(|v| &v.schema) {
        Some(KindSchema::BuiltIn(_)) => built_in(kind, &fields),
        Some(KindSchema::Structural(schema)) => structural(schema, &fields),
        _ => Merge::Atomic,
    }
}

fn keys(keys: &[&str]) -> Merge {
    Merge::Map(keys.iter().map(|key| (*key).to_owned()).collect())
}

fn built_in(kind: &ResourceKind, path: &[&str]) -> Merge {
    let in_container = path.iter().any(|field| field.ends_with("ontainers"));
    match path.last().copied().unwrap_or_default() {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "imagePullSecrets"
        | "webhooks"
        | "matchConditions" => keys(&["name"]),
        "env" if in_container => keys(&["name"]),
        "secrets" if kind.kind == "ServiceAccount" => keys(&["name"]),
        "ports" if in_container => keys(&["containerPort", "protocol"]),
        "ports" if kind.kind == "Service" => keys(&["port", "protocol"]),
        "volumeMounts" => keys(&["mountPath"]),
        "volumeDevices" => keys(&["devicePath"]),
        "hostAliases" => keys(&["ip"]),
        "topologySpreadConstraints" => keys(&["topologyKey", "whenUnsatisfiable"]),
        "conditions" if path.first() == Some(&"status") => keys(&["type"]),
        _ => Merge::Atomic,
    }
}

fn structural(schema: &Value, path: &[&str]) -> Merge {
    let mut schema = schema;
    for field in path {
        // A list on the path represents its entries.
        if schema["items"].is_object() {
            schema = &schema["items"];
        }
        let property = &schema["properties"][*field];
        schema = if property.is_object() { property } else { &schema["additionalProperties"] };
    }
    if schema["x-kubernetes-list-type"] == "set" {
        return Merge::Set;
    }
    match list_map_keys(schema) {
        keys if keys.is_empty() => Merge::Atomic,
        keys => Merge::Map(keys),
    }
}

/// Returns whether the two entries have the same keys. A port without a protocol is a TCP port.
pub(super) fn same_entry(keys: &[String], a: &Value, b: &Value) -> bool {
    let value = |entry: &Value, key: &str| match entry.get(key) {
        None if key == "protocol" => Value::from("TCP"),
        None => Value::Null,
        Some(value) => value.clone(),
    };
    keys.iter().all(|key| value(a, key) == value(b, key))
}
