//! Objects that tests of many modules need.

use serde_json::{Value, json};

use crate::api::object;

/// All install modes.
pub(crate) const ALL_MODES: [&str; 4] = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];

/// Returns an object with a spec, or without one if it is null.
fn with_spec(api_version: &str, kind: &str, namespace: &str, name: &str, spec: &Value) -> Value {
    let mut object =
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name, "namespace": namespace } });
    if !spec.is_null() {
        object["spec"] = spec.clone();
    }
    object
}

/// Returns a ClusterServiceVersion.
pub(crate) fn csv(namespace: &str, name: &str, spec: &Value) -> Value {
    with_spec("operators.coreos.com/v1alpha1", "ClusterServiceVersion", namespace, name, spec)
}

/// Returns a Subscription.
pub(crate) fn subscription(namespace: &str, name: &str, spec: &Value) -> Value {
    with_spec("operators.coreos.com/v1alpha1", "Subscription", namespace, name, spec)
}

/// Returns an InstallPlan.
pub(crate) fn install_plan(namespace: &str, name: &str, spec: &Value) -> Value {
    with_spec("operators.coreos.com/v1alpha1", "InstallPlan", namespace, name, spec)
}

/// Returns a CatalogSource.
pub(crate) fn catalog_source(namespace: &str, name: &str, spec: &Value) -> Value {
    with_spec("operators.coreos.com/v1alpha1", "CatalogSource", namespace, name, spec)
}

/// Returns an OperatorGroup.
pub(crate) fn operator_group(namespace: &str, name: &str, spec: &Value) -> Value {
    with_spec("operators.coreos.com/v1", "OperatorGroup", namespace, name, spec)
}

/// Returns a Namespace.
pub(crate) fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// Returns a Namespace with labels.
pub(crate) fn labelled_namespace(name: &str, labels: &Value) -> Value {
    with_metadata(namespace(name), &json!({ "labels": labels }))
}

/// Adds fields to the metadata of an object.
pub(crate) fn with_metadata(mut object: Value, fields: &Value) -> Value {
    let metadata = object::map_mut(&mut object, &["metadata"]);
    metadata.extend(fields.as_object().into_iter().flatten().map(|(field, value)| (field.clone(), value.clone())));
    object
}

/// Sets the status of an object.
pub(crate) fn with_status(mut object: Value, status: &Value) -> Value {
    object["status"] = status.clone();
    object
}

/// Returns `spec.installModes` that supports these modes.
pub(crate) fn install_modes(supported: &[&str]) -> Value {
    supported.iter().map(|mode| json!({ "type": mode, "supported": true })).collect()
}

/// Returns an entry of `spec.customresourcedefinitions` for version `v1` of a kind, in the group `x.io`.
pub(crate) fn owned_crd(kind: &str) -> Value {
    json!({ "name": format!("{}s.x.io", kind.to_lowercase()), "kind": kind, "version": "v1" })
}
