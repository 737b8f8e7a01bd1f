//! Names, labels, owners and finalizers.

use serde_json::Value;

use super::super::kinds::ResourceKind;
use crate::api::labels::{key_problem, value_problem};
use crate::api::names::{LABEL_RULE, LONGEST_LABEL, LONGEST_SUBDOMAIN, SUBDOMAIN_RULE, is_label, is_subdomain};
use crate::api::object::{at, entries, is_deleting, list, name, text};

/// Limit of the total size of annotations, in bytes.
const MOST_ANNOTATION_BYTES: usize = 256 * 1024;

/// Returns the problems of the metadata by itself.
pub(super) fn problems(kind: &ResourceKind, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let own_name = name(object);
    if own_name.is_empty() {
        found.push("metadata.name: Required value: name or generateName is required".to_owned());
    } else {
        for rule in name_problems(kind, own_name) {
            found.push(format!("metadata.name: Invalid value: {own_name:?}: {rule}"));
        }
    }
    for (key, value) in entries(object, &["metadata", "labels"]) {
        found.extend(key_problem(key).map(|rule| format!("metadata.labels: Invalid value: {key:?}: {rule}")));
        found.extend(value_problem(value).map(|rule| format!("metadata.labels: Invalid value: {value:?}: {rule}")));
    }
    let mut bytes = 0;
    for (key, value) in entries(object, &["metadata", "annotations"]) {
        bytes += key.len() + value.len();
        let rule = key_problem(&key.to_lowercase());
        found.extend(rule.map(|rule| format!("metadata.annotations: Invalid value: {key:?}: {rule}")));
    }
    if bytes > MOST_ANNOTATION_BYTES {
        found.push(format!("metadata.annotations: Too long: may not be more than {MOST_ANNOTATION_BYTES} bytes"));
    }
    let owners = list(object, &["metadata", "ownerReferences"]);
    for owner in owners {
        for (field, words) in [("apiVersion", "version "), ("kind", ""), ("name", ""), ("uid", "")] {
            if text(owner, &[field]).is_empty() {
                found.push(format!("metadata.ownerReferences.{field}: Invalid value: \"\": {words}must not be empty"));
            }
        }
    }
    let mut controllers = owners.iter().filter(|owner| owner["controller"] == Value::Bool(true));
    if let (Some(first), Some(second)) = (controllers.next(), controllers.next()) {
        found.push(format!(
            "metadata.ownerReferences: Invalid value: {}: Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
            at(object, &["metadata", "ownerReferences"]),
            text(first, &["kind"]),
            text(first, &["name"]),
            text(second, &["kind"]),
            text(second, &["name"]),
        ));
    }
    for finalizer in list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str) {
        if !finalizer.contains('/') && !matches!(finalizer, "orphan" | "foregroundDeletion" | "kubernetes") {
            found.push(format!("metadata.finalizers[0]: Invalid value: {finalizer:?}: name is neither a standard finalizer name nor is it fully qualified"));
        }
    }
    found
}

/// Returns changes of the metadata that are not allowed.
pub(super) fn update_problems(object: &Value, stored: &Value) -> Vec<String> {
    if !is_deleting(stored) {
        return Vec::new();
    }
    let before = list(stored, &["metadata", "finalizers"]);
    let new: Vec<String> = list(object, &["metadata", "finalizers"])
        .iter()
        .filter(|finalizer| !before.contains(finalizer))
        .map(Value::to_string)
        .collect();
    if new.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        new.join(", ")
    )]
}

fn name_problems(kind: &ResourceKind, own_name: &str) -> Vec<String> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("rbac.authorization.k8s.io", _) => path_segment_problems(own_name),
        ("", "Namespace" | "Service") if own_name.contains('.') => vec!["must not contain dots".into()],
        ("", "Namespace" | "Service") => dns_problems(own_name, is_label, LABEL_RULE, LONGEST_LABEL),
        _ => dns_problems(own_name, is_subdomain, SUBDOMAIN_RULE, LONGEST_SUBDOMAIN),
    }
}

fn dns_problems(own_name: &str, fits: fn(&str) -> bool, rule: &str, longest: usize) -> Vec<String> {
    let mut found = Vec::new();
    if own_name.len() > longest {
        found.push(format!("must be no more than {longest} bytes"));
    }
    if !fits(own_name) {
        found.push(rule.to_owned());
    }
    found
}

fn path_segment_problems(own_name: &str) -> Vec<String> {
    if matches!(own_name, "." | "..") {
        return vec![format!("may not be '{own_name}'")];
    }
    ['/', '%'].iter().filter(|c| own_name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}
