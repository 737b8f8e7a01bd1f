//! The API server's strategy for each kind: which part of a request is used, when the generation increases, and which fields
//! the server sets in a new object.

use serde_json::{Map, Value, json};

use super::ids::Ids;
use super::kinds::{KindVersion, ResourceKind};
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::object::{at, generation, list, map_mut, name, text, uid};

/// The label that contains a Namespace's name.
const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// Drops the fields that a create ignores: the status, if it is a subresource.
pub(super) fn strip_for_create(kind: &ResourceKind, version: &KindVersion, object: &mut Value) {
    if let Value::Object(map) = object
        && version.status
        && (kind.group.as_str(), kind.kind.as_str()) != ("", "Node")
    {
        map.remove("status");
    }
}

/// Sets the fields of a new object that only the server may set.
pub(super) fn prepare_for_create(kind: &ResourceKind, object: &mut Value, ids: &mut Ids) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace") => {
            let own_name = name(object).to_owned();
            map_mut(object, &["metadata", "labels"]).insert(NAMESPACE_LABEL.into(), own_name.into());
            let mut finalizers = list(object, &["spec", "finalizers"]).to_vec();
            if !finalizers.contains(&json!("kubernetes")) {
                finalizers.push("kubernetes".into());
            }
            map_mut(object, &["spec"]).insert("finalizers".into(), finalizers.into());
            object["status"] = json!({"phase": "Active"});
        }
        ("", "Service") => allocate(object, None, ids),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let stored: Vec<Value> = storage_version(object).into_iter().collect();
            object["status"] = json!({
                "conditions": null,
                "acceptedNames": {"plural": "", "kind": ""},
                "storedVersions": stored,
            });
        }
        ("batch", "Job") if at(object, &["spec", "manualSelector"]) != &json!(true) => select_own_pods(object),
        _ => {}
    }
    if has_generation(kind) {
        map_mut(object, &["metadata"]).insert("generation".into(), 1.into());
    }
}

/// Restores the fields that this request may not change, and increases the generation.
pub(super) fn prepare_for_update(
    kind: &ResourceKind,
    version: &KindVersion,
    subresource: Option<&str>,
    object: &mut Value,
    stored: &Value,
    ids: &mut Ids,
) {
    match subresource {
        Some("status") => *object = status_update(kind, object, stored),
        Some(_) => {
            let finalizers = at(object, &["spec", "finalizers"]).clone();
            *object = stored.clone();
            put(map_mut(object, &["spec"]), "finalizers", finalizers);
        }
        None => {
            if version.status {
                put(map_mut(object, &[]), "status", at(stored, &["status"]).clone());
            }
            match (kind.group.as_str(), kind.kind.as_str()) {
                ("", "Namespace") => {
                    put(map_mut(object, &["spec"]), "finalizers", at(stored, &["spec", "finalizers"]).clone());
                    let own_name = name(object).to_owned();
                    map_mut(object, &["metadata", "labels"]).insert(NAMESPACE_LABEL.into(), own_name.into());
                }
                ("", "Service") => allocate(object, Some(stored), ids),
                ("apiextensions.k8s.io", "CustomResourceDefinition") => remember_storage_version(object),
                _ => {}
            }
        }
    }
    let metadata = map_mut(object, &["metadata"]);
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
        put(metadata, field, at(stored, &["metadata", field]).clone());
    }
    if subresource.is_none() && has_generation(kind) && moves_generation(kind, version, object, stored) {
        map_mut(object, &["metadata"]).insert("generation".into(), (generation(stored) + 1).into());
    }
}

/// Returns the stored object with the status of the request. Deployments and ReplicaSets also take the annotations, because
/// their controller writes the revision together with the status.
fn status_update(kind: &ResourceKind, object: &Value, stored: &Value) -> Value {
    let mut updated = stored.clone();
    put(map_mut(&mut updated, &[]), "status", at(object, &["status"]).clone());
    if kind.group == "apps" {
        let annotations = at(object, &["metadata", "annotations"]).clone();
        put(map_mut(&mut updated, &["metadata"]), "annotations", annotations);
    }
    // The metadata contains the precondition.
    put(map_mut(&mut updated, &["metadata"]), "resourceVersion", at(object, &["metadata", "resourceVersion"]).clone());
    updated
}

/// Sets the field, or removes it if the value is null.
fn put(map: &mut Map<String, Value>, field: &str, value: Value) {
    if value.is_null() {
        map.remove(field);
    } else {
        map.insert(field.to_owned(), value);
    }
}

fn has_generation(kind: &ResourceKind) -> bool {
    if !kind.is_built_in() {
        return true;
    }
    matches!(
        kind.kind.as_str(),
        "CronJob"
            | "CustomResourceDefinition"
            | "DaemonSet"
            | "Deployment"
            | "Ingress"
            | "IngressClass"
            | "Job"
            | "MutatingWebhookConfiguration"
            | "NetworkPolicy"
            | "Pod"
            | "PodDisruptionBudget"
            | "PriorityClass"
            | "ReplicaSet"
            | "StatefulSet"
            | "ValidatingWebhookConfiguration"
    )
}

fn moves_generation(kind: &ResourceKind, version: &KindVersion, object: &Value, stored: &Value) -> bool {
    let changed = |path: &[&str]| at(object, path) != at(stored, path);
    if !kind.is_built_in() {
        let content = |object: &Value| {
            let mut content = object.clone();
            let map = map_mut(&mut content, &[]);
            map.remove("metadata");
            map.remove("apiVersion");
            if version.status {
                map.remove("status");
            }
            content
        };
        return content(object) != content(stored);
    }
    match kind.kind.as_str() {
        "Deployment" => changed(&["spec"]) || changed(&["metadata", "annotations"]),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => changed(&["webhooks"]),
        "PriorityClass" => false,
        _ => changed(&["spec"]),
    }
}

fn storage_version(crd: &Value) -> Option<Value> {
    let versions = list(crd, &["spec", "versions"]);
    versions.iter().find(|v| v["storage"] == json!(true)).map(|v| v["name"].clone())
}

/// Adds the storage version to the stored versions.
fn remember_storage_version(crd: &mut Value) {
    let Some(storage) = storage_version(crd) else { return };
    if !CustomResourceDefinition::new(crd).stored_versions().any(|stored| storage == stored) {
        let mut stored = list(crd, &["status", "storedVersions"]).to_vec();
        stored.push(storage);
        map_mut(crd, &["status"]).insert("storedVersions".into(), stored.into());
    }
}

/// Selects the pods of a Job by its uid.
fn select_own_pods(job: &mut Value) {
    let (own_uid, own_name) = (uid(job).to_owned(), name(job).to_owned());
    map_mut(job, &["spec", "selector", "matchLabels"])
        .insert("batch.kubernetes.io/controller-uid".into(), own_uid.clone().into());
    let labels = map_mut(job, &["spec", "template", "metadata", "labels"]);
    for prefix in ["", "batch.kubernetes.io/"] {
        labels.insert(format!("{prefix}controller-uid"), own_uid.clone().into());
        labels.insert(format!("{prefix}job-name"), own_name.clone().into());
    }
    let labels = labels.clone();
    map_mut(job, &["metadata"]).entry("labels").or_insert_with(|| labels.into());
}

/// Allocates the cluster address, IP family and node ports of a Service; an update preserves existing ones.
fn allocate(service: &mut Value, stored: Option<&Value>, ids: &mut Ids) {
    let kind = text(service, &["spec", "type"]).to_owned();
    if kind == "ExternalName" {
        return;
    }
    let kept = |field: &str| stored.map(|s| at(s, &["spec", field])).filter(|v| !v.is_null()).cloned();
    let (kept_address, kept_addresses) = (kept("clusterIP"), kept("clusterIPs"));
    // Without a selector another writer creates the endpoints, of any IP family.
    let selects = !at(service, &["spec", "selector"]).is_null();
    let spec = map_mut(service, &["spec"]);
    if spec.get("clusterIP").is_none_or(|ip| ip == "") {
        let address = kept_address.clone().unwrap_or_else(|| ids.service_address().into());
        spec.insert("clusterIP".into(), address);
    }
    let address = spec["clusterIP"].clone();
    if kept_address.is_some_and(|kept| kept != address) && spec.get("clusterIPs") == kept_addresses.as_ref() {
        spec.remove("clusterIPs");
    }
    let any_family = address == "None" && !selects;
    spec.entry("clusterIPs").or_insert_with(|| json!([address]));
    spec.entry("ipFamilies").or_insert_with(|| if any_family { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
    let policy = if any_family { "RequireDualStack" } else { "SingleStack" };
    spec.entry("ipFamilyPolicy").or_insert_with(|| policy.into());
    if !matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        return;
    }
    let before = stored.map(|s| list(s, &["spec", "ports"]).to_vec()).unwrap_or_default();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port.get("nodePort").is_none_or(Value::is_null) {
            let same = before.iter().find(|b| b["port"] == port["port"] && b["protocol"] == port["protocol"]);
            let number = same.map(|b| b["nodePort"].clone()).filter(|n| !n.is_null());
            port["nodePort"] = number.unwrap_or_else(|| ids.node_port().into());
        }
    }
}

/// Returns whether a PUT of this kind must name the resource version that it replaces.
pub(super) fn needs_resource_version(kind: &ResourceKind) -> bool {
    !kind.is_built_in()
        || matches!(
            kind.kind.as_str(),
            "APIService"
                | "CustomResourceDefinition"
                | "Lease"
                | "MutatingWebhookConfiguration"
                | "PodDisruptionBudget"
                | "ValidatingWebhookConfiguration"
        )
}

/// Returns whether a PUT of a missing name creates the object.
pub(super) fn creates_on_update(kind: &ResourceKind) -> bool {
    kind.group == "rbac.authorization.k8s.io"
        || matches!((kind.group.as_str(), kind.kind.as_str()), ("", "Endpoints" | "Event") | ("coordination.k8s.io", _))
}
