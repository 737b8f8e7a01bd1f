//! Optional manifests: those without which a bundle can be installed (olm-behaviour/README.md#design-and-code).
//!
//! ```yaml
//! properties:
//! - type: olm.manifests.optional
//!   value:
//!     manifests:
//!     - { group: monitoring.coreos.com, kind: PrometheusRule, name: rose }
//! ```

use serde_json::Value;

use super::property;
use crate::api::object::{self, Gvk};

/// Kinds that are never optional: OLM's own, and those that every cluster has. Without a group the kind alone is compared,
/// as in OLM.
const CORE: [(Option<&str>, &str); 12] = [
    (None, "BundleSecret"),
    (None, "ClusterServiceVersion"),
    (None, "CustomResourceDefinition"),
    (Some(""), "ConfigMap"),
    (Some(""), "Secret"),
    (Some(""), "Service"),
    (Some(""), "ServiceAccount"),
    (Some("operators.coreos.com"), "Subscription"),
    (Some("rbac.authorization.k8s.io"), "ClusterRole"),
    (Some("rbac.authorization.k8s.io"), "ClusterRoleBinding"),
    (Some("rbac.authorization.k8s.io"), "Role"),
    (Some("rbac.authorization.k8s.io"), "RoleBinding"),
];

/// Returns whether an object of that kind can be optional. A `Service` of Knative can, one of Kubernetes cannot.
pub fn may_be_optional(gvk: &Gvk) -> bool {
    !CORE.iter().any(|(group, kind)| *kind == gvk.kind && group.is_none_or(|group| group == gvk.group))
}

/// Identifies one object of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionalManifest {
    /// API group. A version after it is ignored.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace as in the manifest; empty when there is none.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl OptionalManifest {
    /// Returns whether it identifies that object.
    fn is(&self, gvk: &Gvk, namespace: &str, name: &str) -> bool {
        let group = self.group.split('/').next().unwrap_or_default();
        let same_group = group == gvk.group || self.group == gvk.api_version();
        same_group && (self.kind.as_str(), self.namespace.as_str(), self.name.as_str()) == (&gvk.kind, namespace, name)
    }
}

/// Reads the value of a property `olm.manifests.optional`.
///
/// # Errors
/// What is wrong with it, in a sentence without a subject. A partly valid value is ignored as a whole.
pub fn read(value: &Value) -> Result<Vec<OptionalManifest>, String> {
    let Some(manifests) = value.get("manifests").and_then(Value::as_array) else {
        return Err("the value has no list `manifests`".to_owned());
    };
    let one = |(n, manifest): (usize, &Value)| {
        if !manifest.is_object() {
            return Err(format!("manifests[{n}] is not a map with group, kind, namespace and name"));
        }
        let text = |key: &str| match manifest.get(key) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(format!("manifests[{n}].{key} is {other}, which is not a string")),
        };
        let read = OptionalManifest {
            group: text("group")?,
            kind: text("kind")?,
            namespace: text("namespace")?,
            name: text("name")?,
        };
        for (key, text) in [("kind", &read.kind), ("name", &read.name)] {
            if text.is_empty() {
                return Err(format!("manifests[{n}].{key} is missing"));
            }
        }
        Ok(read)
    };
    manifests.iter().enumerate().map(one).collect()
}

/// Marks the steps of a bundle that its properties (each `{type, value}`) declare optional. Missing objects are ignored.
/// Returns what cannot be read, one sentence for each property.
pub fn mark(steps: &mut [Value], properties: &[Value]) -> Vec<String> {
    let (mut named, mut unreadable) = (Vec::new(), Vec::new());
    for property in properties.iter().filter(|p| object::text(p, &["type"]) == property::MANIFESTS_OPTIONAL) {
        match read(object::at(property, &["value"])) {
            Ok(manifests) => named.extend(manifests),
            Err(why) => unreadable.push(why),
        }
    }
    if named.is_empty() {
        return unreadable;
    }
    for step in steps.iter_mut() {
        let [group, version, kind, name] =
            ["group", "version", "kind", "name"].map(|key| object::text(step, &["resource", key]));
        let gvk = Gvk::new(group, version, kind);
        if !may_be_optional(&gvk) {
            continue;
        }
        let manifest: Value = serde_json::from_str(object::text(step, &["resource", "manifest"])).unwrap_or_default();
        if named.iter().any(|n| n.is(&gvk, object::namespace(&manifest), name)) {
            object::map_mut(step, &[]).insert("optional".to_owned(), true.into());
        }
    }
    unreadable
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(api_version: &str, kind: &str, name: &str, namespace: Option<&str>) -> Value {
        let gvk = Gvk::from_api_version(api_version, kind);
        let manifest =
            json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name, "namespace": namespace } });
        json!({ "resource": {
            "group": gvk.group, "version": gvk.version, "kind": kind, "name": name, "manifest": manifest.to_string(),
        } })
    }

    fn marked(manifest: Value, step: Value) -> bool {
        let mut steps = [step];
        let property = json!({ "type": "olm.manifests.optional", "value": { "manifests": [manifest] } });
        assert_eq!(mark(&mut steps, &[json!({ "type": "olm.package", "value": {} }), property]), [""; 0]);
        steps[0]["optional"] == true
    }

    #[test]
    fn an_object_is_named_by_group_kind_namespace_and_name() {
        let rule = || step("monitoring.coreos.com/v1", "PrometheusRule", "rose", None);
        let named = |group: &str| json!({ "group": group, "kind": "PrometheusRule", "name": "rose" });
        assert!(marked(named("monitoring.coreos.com"), rule()));
        for group in ["monitoring.coreos.com/v1", "monitoring.coreos.com/v1beta1"] {
            assert!(marked(named(group), rule()), "{group}");
        }
        for group in ["", "example.com", "monitoring"] {
            assert!(!marked(named(group), rule()), "{group}");
        }
        assert!(marked(json!({ "group": "v1", "kind": "Pod", "name": "rose" }), step("v1", "Pod", "rose", None)));
        assert!(marked(json!({ "kind": "Pod", "name": "rose" }), step("v1", "Pod", "rose", None)));

        let mut elsewhere = named("monitoring.coreos.com");
        elsewhere["namespace"] = "garden".into();
        assert!(!marked(elsewhere.clone(), rule()));
        assert!(marked(elsewhere, step("monitoring.coreos.com/v1", "PrometheusRule", "rose", Some("garden"))));
        assert!(!marked(
            named("monitoring.coreos.com"),
            step("monitoring.coreos.com/v1", "ServiceMonitor", "rose", None)
        ));
        assert!(!marked(
            named("monitoring.coreos.com"),
            step("monitoring.coreos.com/v1", "PrometheusRule", "tulip", None)
        ));
    }

    #[test]
    fn core_kinds_are_never_optional() {
        for (api_version, kind) in [
            ("operators.coreos.com/v1alpha1", "ClusterServiceVersion"),
            ("v1", "BundleSecret"),
            ("v1", "Secret"),
            ("v1", "ServiceAccount"),
            ("rbac.authorization.k8s.io/v1", "Role"),
            ("rbac.authorization.k8s.io/v1", "RoleBinding"),
            ("rbac.authorization.k8s.io/v1", "ClusterRole"),
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
            ("v1", "Service"),
            ("v1", "ConfigMap"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ] {
            let group = Gvk::from_api_version(api_version, kind).group;
            assert!(!marked(
                json!({ "group": group, "kind": kind, "name": "rose" }),
                step(api_version, kind, "rose", None)
            ));
        }
    }

    #[test]
    fn kinds_of_other_groups_with_the_name_of_a_core_kind_may_be_optional() {
        for (api_version, kind) in
            [("serving.knative.dev/v1", "Service"), ("apps.open-cluster-management.io/v1", "Subscription")]
        {
            let group = Gvk::from_api_version(api_version, kind).group;
            let named = json!({ "group": group, "kind": kind, "name": "rose" });
            assert!(marked(named.clone(), step(api_version, kind, "rose", None)), "{kind}");
            assert!(!marked(named, step("operators.coreos.com/v1alpha1", kind, "rose", None)), "{kind}");
        }
        // A ClusterServiceVersion of OLM, whatever group the bundle's manifest has.
        assert!(!may_be_optional(&Gvk::new("", "v1alpha1", "ClusterServiceVersion")));
    }

    #[test]
    fn invalid_values_are_reported() {
        for (value, problem) in [
            (json!(null), "the value has no list `manifests`"),
            (json!([]), "the value has no list `manifests`"),
            (json!({ "manifests": {} }), "the value has no list `manifests`"),
            (json!({ "manifests": ["rose"] }), "manifests[0] is not a map with group, kind, namespace and name"),
            (json!({ "manifests": [{ "kind": "Pod", "name": 1 }] }), "manifests[0].name is 1, which is not a string"),
            (json!({ "manifests": [{ "kind": "Pod" }] }), "manifests[0].name is missing"),
            (json!({ "manifests": [{ "kind": "Pod", "name": "a" }, { "name": "b" }] }), "manifests[1].kind is missing"),
        ] {
            let mut steps = [step("v1", "Pod", "a", None)];
            let problems = mark(&mut steps, &[json!({ "type": "olm.manifests.optional", "value": value })]);
            assert_eq!(problems, [problem]);
            assert!(steps[0].get("optional").is_none());
        }
    }
}
