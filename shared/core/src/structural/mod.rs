//! Structural schemas of CustomResourceDefinitions: pruning of unknown fields, defaulting, and validation.

mod problems;
mod schema_check;
mod unknown;

pub(crate) use problems::has_rules;
pub use problems::{blocks_rules, problems};
pub use schema_check::{SchemaCheck, SchemaCheckResult, SchemaChecker, Violation};
pub(crate) use unknown::Walk;
pub use unknown::{Unknown, similar, unknown_fields};

use serde_json::{Map, Value, json};

/// Returns whether the schema contains `key: true`.
pub(crate) fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&json!(true))
}

/// Drops the fields that the schema does not contain. The root's `apiVersion`, `kind` and `metadata` are always known.
pub(crate) fn prune(schema: &Value, object: &mut Value) {
    let Value::Object(map) = object else { return };
    let kept: Vec<(String, Value)> =
        ["apiVersion", "kind", "metadata"].iter().filter_map(|key| map.remove_entry(*key)).collect();
    prune_value(schema, object);
    if let Value::Object(map) = object {
        map.extend(kept);
    }
}

fn prune_value(schema: &Value, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| prune_value(&schema["items"], item)),
        Value::Object(map) => {
            let properties = schema["properties"].as_object();
            let additional = schema.get("additionalProperties");
            let keep_unknown = flag(schema, "x-kubernetes-preserve-unknown-fields");
            let embedded = flag(schema, "x-kubernetes-embedded-resource");
            map.retain(|key, value| {
                if embedded && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                    return true;
                }
                if let Some(property) = properties.and_then(|p| p.get(key)) {
                    prune_value(property, value);
                    return true;
                }
                match additional {
                    Some(Value::Object(_)) => {
                        prune_value(&schema["additionalProperties"], value);
                        true
                    }
                    Some(Value::Bool(true)) => true,
                    _ => keep_unknown,
                }
            });
        }
        _ => {}
    }
}

/// Sets the defaults of the schema where the object has no value. A null where the schema does not allow it is treated as
/// no value.
pub(crate) fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| default(&schema["items"], item)),
        Value::Object(map) => {
            if let Some(properties) = schema["properties"].as_object() {
                default_properties(properties, map);
            }
            map.retain(|key, value| !value.is_null() || may_be_null(schema, key));
            let known = schema["properties"].as_object();
            if schema["additionalProperties"].is_object() {
                let unknown = map.iter_mut().filter(|(key, _)| known.is_none_or(|k| !k.contains_key(*key)));
                unknown.for_each(|(_, value)| default(&schema["additionalProperties"], value));
            }
        }
        _ => {}
    }
}

/// Returns whether the field may be null. A field without a schema may.
fn may_be_null(schema: &Value, field: &str) -> bool {
    let property = &schema["properties"][field];
    let property = if property.is_object() { property } else { &schema["additionalProperties"] };
    !property.is_object() || flag(property, "nullable")
}

fn default_properties(properties: &Map<String, Value>, map: &mut Map<String, Value>) {
    for (key, property) in properties {
        if let Some(default) = property.get("default") {
            let absent = match map.get(key) {
                None => true,
                Some(value) => value.is_null() && !flag(property, "nullable"),
            };
            if absent {
                map.insert(key.clone(), default.clone());
            }
        }
        if let Some(value) = map.get_mut(key) {
            default(property, value);
        }
    }
}

/// Returns the fields that identify an entry of this list; empty when the list is replaced as a whole.
pub(crate) fn list_map_keys(schema: &Value) -> Vec<String> {
    if schema["x-kubernetes-list-type"] != "map" {
        return Vec::new();
    }
    let keys = schema["x-kubernetes-list-map-keys"].as_array();
    keys.into_iter().flatten().filter_map(|key| key.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "mode": {"type": "string", "default": "Default"},
                "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "maybe": {"type": "string", "nullable": true, "default": "x"},
            }},
        }})
    }

    #[test]
    fn unknown_fields_are_dropped_and_known_ones_preserved() {
        let mut object = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "other": 1, "spec": {
            "mode": "M", "unknown": true, "items": [{"n": 2, "m": 3}], "free": {"any": {"thing": 1}}, "map": {"k": {"a": "b", "c": 1}}}});
        prune(&schema(), &mut object);
        assert_eq!(
            object,
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {
                "mode": "M", "items": [{"n": 2}], "free": {"any": {"thing": 1}}, "map": {"k": {"a": "b"}}}})
        );
    }

    #[test]
    fn defaults_fill_what_is_absent_or_wrongly_null() {
        let mut object = json!({"spec": {"mode": null, "items": [{"m": null}], "maybe": null, "map": {"k": null}, "free": {"x": null}}});
        default(&schema(), &mut object);
        assert_eq!(
            object,
            json!({"spec": {"mode": "Default", "items": [{"m": null, "n": 1}], "maybe": null, "map": {}, "free": {"x": null}}})
        );
        let mut without_spec = json!({});
        default(&schema(), &mut without_spec);
        assert_eq!(without_spec, json!({}));
    }
}
