//! Removes what the state of operators is not derived from. It is most of a list: descriptions, icons, examples, manifests and
//! `managedFields`.

use serde_json::{Map, Value, json};

use crate::api::install_plan::Step;
use crate::api::object;
use crate::world::{GroupKind, kind};

/// Returns the parts of an object from which [`operators`](super::operators) derives the state of operators, and its identity and labels.
pub fn trimmed(mut object: Value) -> Value {
    let gk = GroupKind::kept_as(&object);
    object::map_mut(&mut object, &["metadata"]).remove("managedFields");
    if gk == kind::CLUSTER_SERVICE_VERSION {
        object::map_mut(&mut object, &["metadata"]).remove("annotations");
        let version = object["spec"]["version"].take();
        object["spec"] = json!({ "version": version });
    } else if gk == kind::INSTALL_PLAN {
        let steps = object.pointer_mut("/status/plan").and_then(Value::as_array_mut).into_iter().flatten();
        // The manifest of a ClusterServiceVersion names the one that it replaces.
        for step in steps.filter(|step| !Step::new(step).is_csv()) {
            if let Some(resource) = step.get_mut("resource").and_then(Value::as_object_mut) {
                Map::remove(resource, "manifest");
            }
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_lists_large_is_removed() {
        let csv = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {
                "name": "rose.v1", "namespace": "garden", "labels": { "a": "b" }, "annotations": { "alm-examples": "[]" },
                "managedFields": [{ "manager": "user" }],
            },
            "spec": { "version": "1.0.0", "description": "A rose.", "icon": [{ "base64data": "AA==" }] },
            "status": { "phase": "Succeeded" },
        });
        let expected = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": "rose.v1", "namespace": "garden", "labels": { "a": "b" } },
            "spec": { "version": "1.0.0" },
            "status": { "phase": "Succeeded" },
        });
        assert_eq!(trimmed(csv), expected);
        let step = |kind: &str, manifest: Value| {
            let group = if kind == "Role" { "rbac.authorization.k8s.io" } else { "operators.coreos.com" };
            let resource = json!({ "group": group, "version": "v1alpha1", "kind": kind, "name": "rose" });
            let mut step = json!({ "resolving": "rose.v1", "resource": resource, "status": "Created" });
            if !manifest.is_null() {
                step["resource"]["manifest"] = manifest;
            }
            step
        };
        let plan = |manifest_of_role: Value| {
            let steps = [step("ClusterServiceVersion", json!("{}")), step("Role", manifest_of_role)];
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
                "metadata": { "name": "install-a", "namespace": "garden" }, "status": { "plan": steps },
            })
        };
        assert_eq!(trimmed(plan(json!("{}"))), plan(Value::Null));
        let other =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "b": "c" } });
        assert_eq!(trimmed(other.clone()), other);
    }
}
