//! Descriptions in the generated CustomResourceDefinitions, which `kubectl explain` and `kubectl get` print for OLM's kinds, and in
//! the schemas of machine-readable output.

use std::path::Path;

use serde_json::Value;

use super::Finding;

/// The types of these fields are Kubernetes' own, mainly parts of pods. Their schemas intentionally have no descriptions: the
/// CustomResourceDefinitions would be several times as large, and Kubernetes documents these types. The fields themselves have
/// descriptions.
const OF_KUBERNETES: [&str; 10] = [
    "spec.grpcPodConfig.affinity",
    "spec.grpcPodConfig.tolerations",
    "spec.install.spec.deployments.spec",
    "spec.config.affinity",
    "spec.config.env",
    "spec.config.envFrom",
    "spec.config.resources",
    "spec.config.tolerations",
    "spec.config.volumeMounts",
    "spec.config.volumes",
];

/// The API server adds the descriptions of these fields.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// These fields of printed documents are constants.
const OF_EVERY_DOCUMENT: [&str; 2] = ["apiVersion", "kind"];

/// Shorter descriptions add nothing to the field's name.
const FEWEST_WORDS: usize = 4;

/// Returns the kinds, fields and columns without a useful description. `file` contains the generated CustomResourceDefinitions;
/// findings refer to its first line.
pub fn poor(file: &Path, crds: &[Value]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, crd) in crds.iter().enumerate() {
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default();
        let mut check = |path: &str, described: &Value| {
            if let Some(fault) = fault(described["description"].as_str()) {
                let what = format!("{path}: {fault}: improve the doc comment that it is generated from");
                findings.push(Finding::new(file, index + 2, what));
            }
        };
        for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
            let name = format!("{kind} {}", version["name"].as_str().unwrap_or_default());
            let schema = &version["schema"]["openAPIV3Schema"];
            check(&name, schema);
            fields(&name, "", schema, &mut check);
            for column in version["additionalPrinterColumns"].as_array().into_iter().flatten() {
                check(&format!("{name}, column {}", column["name"]), column);
            }
        }
    }
    findings
}

/// Returns the types, fields and values of the published schemas without a useful description, by the kind of the document.
pub fn poor_output(schemas: &[(String, Value)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (kind, schema) in schemas {
        let file = format!("shared/docs/schemas/{kind}.json");
        let mut check = |what: &str, described: &Value| {
            if let Some(fault) = fault(described["description"].as_str()) {
                findings.push(Finding::new(
                    &file,
                    0,
                    format!("{what}: {fault}: improve the comment of its type or field"),
                ));
            }
        };
        check_type(kind, schema, &OF_EVERY_DOCUMENT, &mut check);
        for (name, defined) in schema["$defs"].as_object().into_iter().flatten() {
            check_type(name, defined, &[], &mut check);
        }
    }
    findings
}

fn check_type(name: &str, schema: &Value, without: &[&str], check: &mut impl FnMut(&str, &Value)) {
    check(name, schema);
    for value in schema["oneOf"].as_array().into_iter().flatten().filter(|value| value["const"].is_string()) {
        check(&format!("{name}, value {}", value["const"]), value);
    }
    for (field, described) in schema["properties"].as_object().into_iter().flatten() {
        if !without.contains(&field.as_str()) {
            check(&format!("{name}.{field}"), described);
        }
    }
}

/// Visits the fields below a schema, with their paths as `kubectl explain` accepts them.
fn fields(kind: &str, path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if OF_EVERY_OBJECT.contains(&path.as_str()) {
            continue;
        }
        visit(&format!("{kind}, {path}"), field);
        if !OF_KUBERNETES.contains(&path.as_str()) {
            fields(kind, &path, field, visit);
        }
    }
    for items in ["items", "additionalProperties"].into_iter().filter_map(|key| schema.get(key)) {
        fields(kind, path, items, visit);
    }
}

/// Returns what is wrong with a description.
fn fault(description: Option<&str>) -> Option<&'static str> {
    let text = description.unwrap_or_default();
    match text.split_whitespace().count() {
        0 => Some("has no description"),
        words if words < FEWEST_WORDS => Some("has a description of fewer than four words"),
        _ if !text.ends_with('.') => Some("has a description that does not end with a full stop"),
        _ => None,
    }
}
