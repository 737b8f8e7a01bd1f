//! Rules of CustomResourceDefinitions.

use serde_json::{Value, json};

use crate::api::object::{annotation, at, list, name, text};

pub(super) fn problems(crd: &Value, found: &mut Vec<String>) {
    let (group, plural) = (text(crd, &["spec", "group"]), text(crd, &["spec", "names", "plural"]));
    if name(crd) != format!("{plural}.{group}") {
        found
            .push(format!("metadata.name: Invalid value: {:?}: must be spec.names.plural+\".\"+spec.group", name(crd)));
    }
    for field in ["group", "scope"] {
        if text(crd, &["spec", field]).is_empty() {
            found.push(format!("spec.{field}: Required value"));
        }
    }
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(crd, &["spec", "names", field]).is_empty() {
            found.push(format!("spec.names.{field}: Required value"));
        }
    }
    if is_protected(group) && annotation(crd, "api-approved.kubernetes.io").is_none() {
        found.push("metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111".into());
    }
    if at(crd, &["spec", "preserveUnknownFields"]) == &json!(true) {
        if list(crd, &["spec", "versions"]).iter().any(|version| has_default(&version["schema"])) {
            found.push(
                "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema"
                    .into(),
            );
        }
        found.push("spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead".into());
    }
    let versions = list(crd, &["spec", "versions"]);
    if versions.iter().filter(|version| version["storage"] == json!(true)).count() != 1 {
        found.push(format!(
            "spec.versions: Invalid value: {}: must have exactly one version marked as storage version",
            at(crd, &["spec", "versions"])
        ));
    }
    schemas(versions, found);
    stored_versions(crd, found);
}

fn schemas(versions: &[Value], found: &mut Vec<String>) {
    let schema = |version: &Value| version.pointer("/schema/openAPIV3Schema").cloned();
    let common =
        versions.first().and_then(schema).filter(|first| versions.iter().all(|v| schema(v).as_ref() == Some(first)));
    if let Some(schema) = common {
        // The schema common to all versions is stored and checked in one place.
        structural(&schema, "spec.validation.openAPIV3Schema", true, found);
        return;
    }
    for (n, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{n}].schema.openAPIV3Schema");
        match schema(version) {
            Some(schema) => structural(&schema, &path, true, found),
            None => found.push(format!("{path}: Required value")),
        }
    }
}

/// Checks that the storage version and all stored versions still exist.
fn stored_versions(crd: &Value, found: &mut Vec<String>) {
    if list(crd, &["status", "storedVersions"]).is_empty() {
        found.push("status.storedVersions: Invalid value: null: must have at least one stored version".into());
    }
    let known = |wanted: &Value| list(crd, &["spec", "versions"]).iter().any(|version| &version["name"] == wanted);
    for (n, stored) in list(crd, &["status", "storedVersions"]).iter().enumerate().filter(|(_, v)| !known(v)) {
        let version = stored.as_str().unwrap_or_default();
        found.push(format!("status.storedVersions[{n}]: Invalid value: {version:?}: missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"));
    }
}

fn structural(schema: &Value, path: &str, root: bool, found: &mut Vec<String>) {
    let free = ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"]
        .iter()
        .any(|flag| schema[*flag] == json!(true));
    let kind = text(schema, &["type"]);
    if kind.is_empty() && (root || !free) {
        let words =
            if root { "must not be empty at the root" } else { "must not be empty for specified object fields" };
        found.push(format!("{path}.type: Required value: {words}"));
    } else if root && kind != "object" {
        found.push(format!("{path}.type: Invalid value: {kind:?}: must be object at the root"));
    }
    for (field, property) in schema["properties"].as_object().into_iter().flatten() {
        structural(property, &format!("{path}.properties[{field}]"), false, found);
    }
    if kind == "array" {
        if schema["items"].is_object() {
            structural(&schema["items"], &format!("{path}.items"), false, found);
        } else {
            found.push(format!("{path}.items: Required value: must be specified"));
        }
    }
    if schema["additionalProperties"].is_object() {
        structural(&schema["additionalProperties"], &format!("{path}.additionalProperties"), false, found);
    }
}

fn has_default(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.get("default").is_some_and(|d| !d.is_object()) || map.values().any(has_default),
        Value::Array(items) => items.iter().any(has_default),
        _ => false,
    }
}

fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|domain| group == *domain || group.ends_with(&format!(".{domain}")))
}

pub(super) fn update_problems(crd: &Value, stored: &Value, found: &mut Vec<String>) {
    for path in [&["spec", "group"][..], &["spec", "scope"], &["spec", "names", "plural"], &["spec", "names", "kind"]] {
        let (new, old) = (at(crd, path), at(stored, path));
        if new != old && !(path.len() == 3 && text(stored, &["status", "acceptedNames", path[2]]).is_empty()) {
            found.push(format!("{}: Invalid value: {new}: field is immutable", path.join(".")));
        }
    }
}
