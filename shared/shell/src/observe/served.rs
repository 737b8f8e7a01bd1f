//! The kinds that an API server serves, from its discovery or as far as files contain them.

use std::collections::{BTreeMap, BTreeSet};

use olm_core::api::custom_resource_definition::CustomResourceDefinition;
use olm_core::api::kinds;
use olm_core::api::object::{self, Gvk};
use serde_json::Value;

/// The kinds that an API server serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// The known kinds, and whether they are namespaced, if known.
    kinds: BTreeMap<Gvk, Option<bool>>,
    /// Groups and kinds of which all versions are known from a CustomResourceDefinition.
    defined: BTreeSet<(String, String)>,
    /// Whether all kinds of the core group are known, and all kinds of the other groups.
    complete: (bool, bool),
    /// The group versions whose kinds are unknown nevertheless.
    hidden: BTreeSet<(String, String)>,
}

impl Served {
    /// Returns whether the kind is served in that version; `None` if unknown.
    pub fn serves(&self, gvk: &Gvk) -> Option<bool> {
        if self.kinds.contains_key(gvk) {
            return Some(true);
        }
        let complete = if gvk.group.is_empty() { self.complete.0 } else { self.complete.1 };
        let complete = complete && !self.hidden.contains(&(gvk.group.clone(), gvk.version.clone()));
        (complete || self.defined.contains(&(gvk.group.clone(), gvk.kind.clone()))).then_some(false)
    }

    /// Returns whether the kind is namespaced, in any version; `None` if unknown.
    pub fn is_namespaced(&self, gvk: &Gvk) -> Option<bool> {
        self.kinds
            .iter()
            .filter(|(known, _)| (&known.group, &known.kind) == (&gvk.group, &gvk.kind))
            .find_map(|(_, namespaced)| *namespaced)
    }

    /// Returns the kinds that are known to be served.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }

    /// Returns whether all kinds are known.
    pub fn is_complete(&self) -> bool {
        self.complete == (true, true)
    }

    /// Adds a kind that is served.
    pub(super) fn add(&mut self, gvk: Gvk, namespaced: Option<bool>) {
        let known = self.kinds.entry(gvk).or_default();
        *known = known.or(namespaced);
    }

    /// Marks the kinds of a group version as unknown.
    pub(super) fn hide(&mut self, group: String, version: String) {
        self.hidden.insert((group, version));
    }

    /// Returns the group versions whose kinds are unknown although all others are known.
    pub fn hidden(&self) -> &BTreeSet<(String, String)> {
        &self.hidden
    }

    /// Records that all kinds are known.
    pub(super) fn complete(&mut self) {
        self.complete = (true, true);
    }

    /// Adds the kind of an object and, for a CustomResourceDefinition, the kinds that it defines.
    pub(super) fn add_object(&mut self, json: &Value) {
        let gvk = object::gvk(json);
        if kinds::CUSTOM_RESOURCE_DEFINITION.is(json) {
            let crd = CustomResourceDefinition::new(json);
            self.defined.insert((crd.group().to_owned(), crd.kind().to_owned()));
            for version in crd.served() {
                self.add(Gvk::new(crd.group(), version.name(), crd.kind()), Some(crd.is_namespaced()));
            }
        }
        self.add(gvk, None);
    }

    /// Adds the kinds of a discovery document: an `APIResourceList` or an `APIGroupDiscoveryList`.
    pub(super) fn add_discovery(&mut self, list: &Value) {
        for resource in object::list(list, &["resources"]) {
            if object::text(resource, &["name"]).contains('/') {
                continue;
            }
            let of_list =
                Gvk::from_api_version(object::text(list, &["groupVersion"]), object::text(resource, &["kind"]));
            let [group, version] = ["group", "version"].map(|key| object::text(resource, &[key]));
            let own = !version.is_empty();
            let gvk = if own { Gvk::new(group, version, &of_list.kind) } else { of_list };
            self.add(gvk, object::at(resource, &["namespaced"]).as_bool());
        }
        for group in object::list(list, &["items"]) {
            if object::name(group).is_empty() {
                self.complete.0 = true;
            } else {
                self.complete.1 = true;
            }
            for version in object::list(group, &["versions"]) {
                if object::text(version, &["freshness"]) == "Stale" {
                    self.hide(object::name(group).to_owned(), object::text(version, &["version"]).to_owned());
                }
                for resource in object::list(version, &["resources"]) {
                    let gvk = Gvk::new(
                        object::name(group),
                        object::text(version, &["version"]),
                        object::text(resource, &["responseKind", "kind"]),
                    );
                    self.add(gvk, Some(object::text(resource, &["scope"]) == "Namespaced"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_is_absent_only_if_all_kinds_are_known() {
        let mut served = Served::default();
        let serves = |served: &Served, group, version, kind| served.serves(&Gvk::new(group, version, kind));
        assert_eq!(serves(&served, "apps", "v1", "Deployment"), None);
        served.add_object(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "roses.garden"},
            "spec": {"group": "garden", "scope": "Namespaced", "names": {"kind": "Rose"}, "versions": [
                {"name": "v1", "served": true}, {"name": "v1beta1", "served": false},
            ]},
        }));
        assert_eq!(serves(&served, "garden", "v1", "Rose"), Some(true));
        assert_eq!(serves(&served, "garden", "v1beta1", "Rose"), Some(false));
        assert_eq!(served.is_namespaced(&Gvk::new("garden", "v2", "Rose")), Some(true));
        assert_eq!(serves(&served, "garden", "v1", "Tulip"), None);
        served.add_discovery(&json!({"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true},
            {"name": "deployments/scale", "group": "autoscaling", "version": "v1", "kind": "Scale", "namespaced": true},
        ]}));
        assert_eq!(serves(&served, "apps", "v1", "Deployment"), Some(true));
        assert_eq!(serves(&served, "apps", "v1beta1", "Deployment"), None);
        assert_eq!(serves(&served, "autoscaling", "v1", "Scale"), None);
        served.add_discovery(&json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "batch"}, "versions": [
            {"version": "v1", "resources": [{"resource": "jobs", "responseKind": {"kind": "Job"}, "scope": "Namespaced"}]},
        ]}]}));
        assert_eq!(serves(&served, "batch", "v1", "Job"), Some(true));
        assert_eq!(serves(&served, "batch", "v1beta1", "CronJob"), Some(false));
        assert_eq!(serves(&served, "", "v1", "Pod"), None);
        assert!(!served.is_complete());
        served.add_discovery(
            &json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "metrics.k8s.io"}, "versions": [
                {"version": "v1beta1", "freshness": "Stale"},
            ]}]}),
        );
        assert_eq!(serves(&served, "metrics.k8s.io", "v1beta1", "PodMetrics"), None);
        assert_eq!(serves(&served, "metrics.k8s.io", "v1", "PodMetrics"), Some(false));
    }
}
