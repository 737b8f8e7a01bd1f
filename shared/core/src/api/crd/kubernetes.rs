//! The schemas of Kubernetes' own types, as OLM's CRDs embed them: those of `kubernetes.json`, which tests/go-types makes.
//!
//! Kubernetes' published OpenAPI (and so k8s-openapi) lacks what a CRD's schema says: list and map types, defaults, patterns.

use std::sync::LazyLock;

use schemars::Schema;
use serde_json::{Map, Value};

static SCHEMAS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("kubernetes.json")).unwrap_or_default());

/// The schema of a type by its name in Kubernetes (`io.k8s.api.core.v1.Affinity`), complete in itself. Defaults are `x-default`.
pub(crate) fn schema(name: &str) -> Option<Schema> {
    expand(SCHEMAS.get(name)?).try_into().ok()
}

/// Replaces references by what they refer to.
fn expand(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let mut out = Map::new();
            let inherited = map.get("allOf").and_then(Value::as_array).into_iter().flatten();
            let referred = map.get("$ref").and_then(Value::as_str).and_then(|name| SCHEMAS.get(name));
            for parent in inherited.map(expand).chain(referred.map(expand)) {
                merge(&mut out, parent);
            }
            let own = map.iter().filter(|(key, _)| !matches!(key.as_str(), "$ref" | "allOf"));
            merge(&mut out, own.map(|(key, value)| (key.clone(), expand(value))).collect());
            if out.get("type").is_some_and(Value::is_string)
                && let Some(default) = out.remove("default")
            {
                out.insert("x-default".to_owned(), default);
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(expand).collect(),
        other => other.clone(),
    }
}

/// Adds a schema to one: properties and required names are joined, all else is overwritten.
fn merge(out: &mut Map<String, Value>, schema: Value) {
    let Value::Object(map) = schema else { return };
    for (key, value) in map {
        match (out.get_mut(&key), value) {
            (Some(Value::Object(there)), Value::Object(more)) if key == "properties" => there.extend(more),
            (Some(Value::Array(there)), Value::Array(more)) if key == "required" => there.extend(more),
            (_, value) => {
                out.insert(key, value);
            }
        }
    }
}
