//! The defaults of Kubernetes' own types, as the API server sets them when it decodes an object.

mod access;
mod extension;
mod network;
mod pod;
mod workload;

use serde_json::{Map, Value};

use crate::api::object::map_mut;

pub(super) use pod::admit as admit_pod;

/// Sets the defaults of the kind.
pub(super) fn apply(group: &str, kind: &str, object: &mut Value) {
    match (group, kind) {
        ("", "Pod") => pod::pod(object),
        ("apps" | "batch", _) => workload::apply(kind, object),
        ("", "Secret") => secret(object),
        ("", "PersistentVolumeClaim") => {
            with(object, "spec", |spec| set(spec, "volumeMode", "Filesystem"));
            child(object, "status");
        }
        ("", "Event") => event(object),
        ("", "Service") => network::service(object),
        ("networking.k8s.io", "NetworkPolicy") => network::policy(object),
        ("networking.k8s.io", "Ingress") => {
            child(child(object, "status"), "loadBalancer");
        }
        ("rbac.authorization.k8s.io", _) => access::apply(kind, object),
        ("admissionregistration.k8s.io", _) => extension::webhooks(kind, object),
        ("apiregistration.k8s.io", "APIService") => extension::api_service(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => extension::custom_resource_definition(object),
        ("policy", "PodDisruptionBudget") => {
            let status = child(object, "status");
            for count in ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"] {
                set(status, count, 0);
            }
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            set(object, "preemptionPolicy", "PreemptLowerPriority");
            set(object, "value", 0);
        }
        ("storage.k8s.io", "StorageClass") => {
            set(object, "reclaimPolicy", "Delete");
            set(object, "volumeBindingMode", "Immediate");
        }
        _ => {}
    }
}

fn secret(object: &mut Value) {
    use base64::{Engine, engine::general_purpose::STANDARD};
    set(object, "type", "Opaque");
    let Some(Value::Object(plain)) = object.as_object_mut().and_then(|o| o.remove("stringData")) else { return };
    for (key, text) in plain {
        set_always(child(object, "data"), &key, STANDARD.encode(text.as_str().unwrap_or_default()));
    }
}

fn event(object: &mut Value) {
    for time in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        set(object, time, Value::Null);
    }
    for text in ["reportingComponent", "reportingInstance"] {
        set(object, text, "");
    }
    child(object, "source");
}

/// Sets a key that is absent.
fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Value::Object(map) = object {
        map.entry(key).or_insert_with(|| value.into());
    }
}

/// Sets a key.
fn set_always(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Value::Object(map) = object {
        map.insert(key.to_owned(), value.into());
    }
}

/// Returns the value of a key, and sets it to an empty map if it is absent.
fn child<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    map_mut(object, &[]).entry(key).or_insert_with(|| Map::new().into())
}

/// Calls `change` on the value of a key if it is present.
fn with(object: &mut Value, key: &str, change: impl FnOnce(&mut Value)) {
    if let Some(value) = object.get_mut(key) {
        change(value);
    }
}

/// Calls `change` on each entry of a list if it is present.
fn each(object: &mut Value, key: &str, change: impl FnMut(&mut Value)) {
    if let Some(Value::Array(items)) = object.get_mut(key) {
        items.iter_mut().for_each(change);
    }
}
