//! Decodes an object of one of Kubernetes' own types as Go does: unknown fields and nulls are dropped, wrong types are refused,
//! and fields that Go omits when it encodes the object again (`omitempty`) are omitted.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::api::quantity::canonical;
use crate::structural::{Unknown, Walk};

/// JSON schemas by type name: those of the built-in kinds and of the types they refer to. A repository rule generates them.
static TYPES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("kubernetes.json")).unwrap_or_default());

/// The type of `metadata`, which is common to all kinds.
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// String fields that are pointers in Go: an empty string is a value.
const TEXT_POINTERS: &[&str] = &[
    "appProtocol",
    "hostnameOverride",
    "ingressClassName",
    "loadBalancerClass",
    "runtimeClassName",
    "service",
    "storageClassName",
    "volumeAttributesClassName",
];

/// Booleans and numbers that are not pointers in Go and are omitted if they are zero, as `Struct.field` or as a field of any
/// struct.
const OMITTED_ZEROS: &[&str] = &[
    "collisionCount",
    "CustomResourceColumnDefinition.priority",
    "CustomResourceDefinitionSpec.preserveUnknownFields",
    "CustomResourceDefinitionVersion.deprecated",
    "active",
    "availableReplicas",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "failed",
    "failureThreshold",
    "fullyLabeledReplicas",
    "globalDefault",
    "healthCheckNodePort",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "initialDelaySeconds",
    "insecureSkipTLSVerify",
    "minReadySeconds",
    "nodePort",
    "nullable",
    "ObjectMeta.generation",
    "observedGeneration",
    "paused",
    "periodSeconds",
    "publishNotReadyAddresses",
    "readOnly",
    "ready",
    "readyReplicas",
    "DeploymentStatus.replicas",
    "stdin",
    "stdinOnce",
    "succeeded",
    "successThreshold",
    "timeoutSeconds",
    "tty",
    "unavailableReplicas",
    "uniqueItems",
    "unschedulable",
    "updatedReplicas",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
];

/// Types that accept any JSON.
const ANYTHING: &[&str] = &[
    "FieldsV1",
    "JSON",
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
    "RawExtension",
];

/// The location of a value: the Go struct that contains it and the path from the root, as Go's decoder names them.
#[derive(Clone, Copy)]
struct Place<'a> {
    holder: &'a str,
    field: &'a str,
    path: &'a str,
}

/// Decodes the object as this type, or returns the message of Go's decoder.
pub(super) fn decode(type_: &str, object: &Value) -> Result<Value, String> {
    let place = Place { holder: go_name(type_), field: "", path: "" };
    Ok(value_of(&TYPES[type_], object, place)?.unwrap_or(Value::Null))
}

/// Returns the fields that this type does not have.
pub(super) fn unknown_fields(type_: &str, object: &Value) -> Vec<Unknown> {
    let mut walk = Walk::default();
    visit(&TYPES[type_], object, &mut walk);
    walk.end()
}

/// Finds fields that `metadata` does not have.
pub(super) fn visit_meta(metadata: &Value, walk: &mut Walk) {
    visit(&TYPES[OBJECT_META], metadata, walk);
}

fn visit(schema: &Value, value: &Value, walk: &mut Walk) {
    if let Some(reference) = schema["$ref"].as_str() {
        let type_ = reference.rsplit('/').next().unwrap_or_default();
        if !ANYTHING.contains(&go_name(type_)) {
            visit(&TYPES[type_], value, walk);
        }
        return;
    }
    match value {
        Value::Array(items) => walk.items(items, |walk, item| visit(&schema["items"], item, walk)),
        Value::Object(map) => {
            let properties = schema["properties"].as_object();
            for (field, value) in map {
                match properties {
                    Some(known) => match known.get(field) {
                        Some(property) => walk.field(field, |walk| visit(property, value, walk)),
                        None => walk.unknown(field, known.keys()),
                    },
                    None => walk.field(field, |walk| visit(&schema["additionalProperties"], value, walk)),
                }
            }
        }
        _ => {}
    }
}

/// Returns whether the value is an integer of 64 bits, or of 32 if `is_short`.
fn is_integer(value: &Value, is_short: bool) -> bool {
    value.as_i64().is_some_and(|n| !is_short || i32::try_from(n).is_ok())
}

/// Returns the name of a type without its package, for example `Pod`.
fn go_name(type_: &str) -> &str {
    type_.rsplit('.').next().unwrap_or_default()
}

/// Decodes the value, `None` if it is null.
fn value_of(schema: &Value, value: &Value, place: Place<'_>) -> Result<Option<Value>, String> {
    if value.is_null() {
        return Ok(None);
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let type_ = reference.rsplit('/').next().unwrap_or_default();
        return match go_name(type_) {
            "Quantity" => quantity(value).map(Some),
            holder if ANYTHING.contains(&holder) => Ok(Some(value.clone())),
            "IntOrString" if value.is_string() || value.is_i64() => Ok(Some(value.clone())),
            "IntOrString" => Err(mismatch(value, place, "int32")),
            holder => value_of(&TYPES[type_], value, Place { holder, ..place }),
        };
    }
    if let Some(properties) = schema["properties"].as_object() {
        let Value::Object(map) = value else { return Err(mismatch(value, place, place.holder)) };
        return struct_of(schema, properties, map, place).map(Some);
    }
    match schema["type"].as_str() {
        Some("object") => {
            let Value::Object(map) = value else { return Err(mismatch(value, place, "map[string]string")) };
            let entries = &schema["additionalProperties"];
            if !entries.is_object() {
                return Ok(Some(value.clone()));
            }
            let mut out = Map::new();
            for (key, entry) in map {
                let entry = match value_of(entries, entry, place)? {
                    Some(entry) => entry,
                    None if entries["type"] == "string" => "".into(),
                    None => continue,
                };
                out.insert(key.clone(), entry);
            }
            Ok(Some(Value::Object(out)))
        }
        Some("array") => {
            let Value::Array(items) = value else {
                return Err(mismatch(value, place, &format!("[]{}", go_type(&schema["items"]))));
            };
            let read = items.iter().filter_map(|item| value_of(&schema["items"], item, place).transpose());
            Ok(Some(Value::Array(read.collect::<Result<_, _>>()?)))
        }
        Some("string") if !value.is_string() => Err(mismatch(value, place, "string")),
        Some("boolean") if !value.is_boolean() => Err(mismatch(value, place, "bool")),
        Some("integer") if !is_integer(value, schema["format"] == "int32") => {
            Err(mismatch(value, place, schema["format"].as_str().unwrap_or("int64")))
        }
        Some("number") if !value.is_number() => Err(mismatch(value, place, "float64")),
        _ => Ok(Some(value.clone())),
    }
}

/// Returns a quantity in canonical form. A number is converted to text.
fn quantity(value: &Value) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let refusal =
        || "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned();
    canonical(&text).map(Value::String).ok_or_else(refusal)
}

fn struct_of(
    schema: &Value,
    properties: &Map<String, Value>,
    map: &Map<String, Value>,
    place: Place<'_>,
) -> Result<Value, String> {
    let required = |field: &str| schema["required"].as_array().is_some_and(|r| r.iter().any(|f| f == field));
    let mut out = Map::new();
    for (field, property) in properties {
        let Some(value) = map.get(field) else { continue };
        let path = if place.path.is_empty() { field.clone() } else { format!("{}.{field}", place.path) };
        let inner = Place { holder: place.holder, field, path: &path };
        let Some(value) = value_of(property, value, inner)? else { continue };
        if required(field) || !omitted(property, &value, inner) {
            out.insert(field.clone(), value);
        }
    }
    Ok(Value::Object(out))
}

/// Returns whether Go omits this value of an optional field.
fn omitted(property: &Value, value: &Value, place: Place<'_>) -> bool {
    match value {
        Value::Array(items) => items.is_empty() && property["type"] == "array",
        Value::Object(map) => map.is_empty() && property["additionalProperties"].is_object(),
        Value::String(text) => text.is_empty() && property["type"] == "string" && !TEXT_POINTERS.contains(&place.field),
        Value::Bool(false) => is_omitted_zero(place),
        Value::Number(number) => number.as_i64() == Some(0) && is_omitted_zero(place),
        _ => false,
    }
}

fn is_omitted_zero(place: Place<'_>) -> bool {
    OMITTED_ZEROS.iter().any(|entry| match entry.split_once('.') {
        Some((holder, field)) => holder == place.holder && field == place.field,
        None => *entry == place.field,
    })
}

/// Returns the Go type of a schema, for example `v1.Container` or `string`.
fn go_type(schema: &Value) -> String {
    let reference = schema["$ref"].as_str().or_else(|| schema["type"].as_str()).unwrap_or_default();
    match reference.rsplit_once('.').and_then(|(path, name)| Some((path.rsplit_once('.')?.1, name))) {
        Some((version, name)) => format!("{version}.{name}"),
        None => reference.to_owned(),
    }
}

fn mismatch(value: &Value, place: Place<'_>, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let Place { holder, path, .. } = place;
    let found = match value.as_f64() {
        Some(number) if number.fract() != 0.0 => format!("number {number}"),
        Some(_) if wanted.starts_with("int") => format!("number {value}"),
        _ => found.to_owned(),
    };
    format!("json: cannot unmarshal {found} into Go struct field {holder}.{path} of type {wanted}")
}

#[cfg(test)]
mod tests {
    use super::super::kinds::{KindSchema, Kinds};
    use super::*;

    #[test]
    fn every_built_in_kind_has_a_type() {
        for kind in Kinds::built_in().iter() {
            for version in &kind.versions {
                let KindSchema::BuiltIn(type_) = version.schema else { panic!("{}", kind.kind) };
                assert!(TYPES[type_]["properties"]["metadata"].is_object(), "{type_}");
            }
        }
        assert!(TYPES[OBJECT_META]["properties"]["name"].is_object());
    }

    #[test]
    fn integers_of_32_bits_have_a_range() {
        let read = |replicas: i64| {
            decode("io.k8s.api.apps.v1.Deployment", &serde_json::json!({ "spec": { "replicas": replicas } }))
        };
        assert!(read(i64::from(i32::MAX)).is_ok());
        let refused = read(3_000_000_000).unwrap_err();
        assert!(refused.contains("cannot unmarshal number 3000000000 into Go struct field"), "{refused}");
        assert!(refused.ends_with(" of type int32"), "{refused}");
    }
}
