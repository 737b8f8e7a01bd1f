//! Namespaces: the objects that each receives, and its deletion.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::api_server::ApiServer;
use super::super::store::Key;
use super::super::writes::Propagation;
use super::{Condition, set_condition};
use crate::api::object::{is_deleting, list, map_mut, name};

/// The ConfigMap with the cluster's root certificate. A simulation has none: the text only needs to be mountable.
const ROOT_CA: &str = "kube-root-ca.crt";

pub(super) fn step(server: &mut ApiServer, now: Timestamp) {
    for namespace in server.pick("", "Namespace", |_| true) {
        if is_deleting(&namespace) {
            end(server, &namespace, now);
        } else {
            furnish(server, name(&namespace), now);
        }
    }
}

/// Creates the default ServiceAccount and the ConfigMap of the cluster's root certificate in the namespace.
fn furnish(server: &mut ApiServer, namespace: &str, now: Timestamp) {
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}});
    let root = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"ca.crt": ""},
        "metadata": {"name": ROOT_CA, "namespace": namespace, "annotations": {"kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."}},
    });
    for object in [account, root] {
        if !server.store.contains(&Key::from_object(&object)) {
            let _ = server.create(object, now);
        }
    }
}

/// Deletes the content of the namespace, and removes its finalizer when nothing is left.
fn end(server: &mut ApiServer, namespace: &Value, now: Timestamp) {
    let own = name(namespace);
    let content: Vec<Value> =
        server.store.iter_own().filter(|object| crate::api::object::namespace(object) == own).cloned().collect();
    for object in content.iter().filter(|object| !is_deleting(object)) {
        server.delete_exactly(object, Propagation::Background, now);
    }
    let left: Vec<Value> =
        server.store.iter_own().filter(|object| crate::api::object::namespace(object) == own).cloned().collect();
    let mut updated = namespace.clone();
    set_conditions(&mut updated, &left, server, now);
    if left.is_empty() {
        let mut finalizers = list(namespace, &["spec", "finalizers"]).to_vec();
        finalizers.retain(|f| f != "kubernetes");
        map_mut(&mut updated, &["spec"]).insert("finalizers".into(), finalizers.into());
        server.write_back(updated, Some("finalize"), now);
    } else if &updated != namespace {
        server.write_back(updated, Some("status"), now);
    }
}

/// Reports the remaining content in the conditions.
fn set_conditions(namespace: &mut Value, left: &[Value], server: &ApiServer, now: Timestamp) {
    let mut set = |kind, status, reason, message: &str| {
        set_condition(namespace, &Condition { kind, status, reason, message }, now);
    };
    set("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered");
    set(
        "NamespaceDeletionGroupVersionParsingFailure",
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    );
    set(
        "NamespaceDeletionContentFailure",
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    );
    let mut resources = std::collections::BTreeMap::new();
    let mut finalizers = std::collections::BTreeMap::new();
    for object in left {
        let (group, kind) = super::super::store::group_kind(object);
        let resource = server.kind(group, kind).map_or_else(
            || kind.to_owned(),
            |kind| {
                if kind.group.is_empty() { format!("{}.", kind.plural) } else { kind.resource() }
            },
        );
        *resources.entry(resource).or_insert(0) += 1;
        for finalizer in list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str) {
            *finalizers.entry(finalizer.to_owned()).or_insert(0) += 1;
        }
    }
    if resources.is_empty() {
        set("NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed");
    } else {
        let told: Vec<String> = resources.iter().map(|(r, n)| format!("{r} has {n} resource instances")).collect();
        let message = format!("Some resources are remaining: {}", told.join(", "));
        set("NamespaceContentRemaining", "True", "SomeResourcesRemain", &message);
    }
    if finalizers.is_empty() {
        let message = "All content-preserving finalizers finished";
        set("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", message);
    } else {
        let told: Vec<String> = finalizers.iter().map(|(f, n)| format!("{f} in {n} resource instances")).collect();
        let message = format!("Some content in the namespace has finalizers remaining: {}", told.join(", "));
        set("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", &message);
    }
}
