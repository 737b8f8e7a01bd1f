//! The settings of a Subscription for the pods of its operator: `spec.config` (olm-behaviour/csv.md#subscription-config).

use serde_json::{Map, Value, json};

use crate::api::cluster_service_version::Csv;
use crate::api::object;
use crate::api::subscription::Subscription;
use crate::world::{Reader, kind};

/// `spec.config` of a Subscription.
#[derive(Clone, Copy)]
pub(super) struct Config<'a>(&'a Value);

impl<'a> Config<'a> {
    /// Returns the config of the Subscription that installed the ClusterServiceVersion.
    pub(super) fn find(world: &Reader<'a>, csv: Csv<'_>) -> Option<Self> {
        let installed = |s: &&Value| Subscription::new(s).installed_csv() == csv.name();
        let subscription =
            world.in_namespace(&kind::SUBSCRIPTION, csv.namespace()).map(|o| o.json()).find(installed)?;
        Some(object::at(subscription, &["spec", "config"])).filter(|config| config.is_object()).map(Self)
    }

    /// Returns annotations for Deployments, their pods, and APIServices.
    pub(super) fn annotations(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        object::entries(self.0, &["annotations"])
    }

    /// Applies the config to the spec of a Deployment. Init containers are not changed.
    pub(super) fn inject(self, spec: &mut Value) {
        let annotations = object::map_mut(spec, &["template", "metadata", "annotations"]);
        for (key, value) in self.annotations() {
            annotations.entry(key).or_insert_with(|| value.into());
        }
        let pod = object::map_mut(spec, &["template", "spec"]);
        merge(pod, "volumes", self.list("volumes"), same_name);
        merge(pod, "tolerations", self.list("tolerations"), PartialEq::eq);
        if let Some(selector) = self.0.get("nodeSelector").filter(|s| s.is_object()) {
            pod.insert("nodeSelector".to_owned(), selector.clone());
        }
        if let Some(wanted) = self.0.get("affinity").and_then(Value::as_object) {
            affinity(pod, wanted);
        }
        for container in pod.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten() {
            let container = object::map_mut(container, &[]);
            merge(container, "env", self.list("env"), same_name);
            merge(container, "envFrom", self.list("envFrom"), PartialEq::eq);
            merge(container, "volumeMounts", self.list("volumeMounts"), same_name);
            if let Some(resources) = self.0.get("resources").filter(|r| r.is_object()) {
                container.insert("resources".to_owned(), resources.clone());
            }
        }
    }

    fn list(self, field: &str) -> &'a [Value] {
        object::list(self.0, &[field])
    }
}

fn same_name(a: &Value, b: &Value) -> bool {
    a["name"] == b["name"]
}

/// Merges entries into a list: each replaces an equal one, or is appended.
pub(super) fn merge(
    object: &mut Map<String, Value>,
    field: &str,
    entries: &[Value],
    alike: fn(&Value, &Value) -> bool,
) {
    if entries.is_empty() {
        return;
    }
    let list = object.entry(field).or_insert(Value::Null);
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    for entry in entries {
        match list.iter_mut().find(|old| alike(old, entry)) {
            Some(old) => *old = entry.clone(),
            None => list.push(entry.clone()),
        }
    }
}

/// Removes affinities: `{}` removes all of it, or one kind of it. (OLM removes all of it for an empty `podAntiAffinity`.)
fn affinity(pod: &mut Map<String, Value>, wanted: &Map<String, Value>) {
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    let mut new = match pod.remove("affinity") {
        Some(Value::Object(old)) if !wanted.is_empty() => old,
        _ => Map::new(),
    };
    for (kind, value) in wanted.iter().filter(|(_, value)| !value.is_null()) {
        new.insert(kind.clone(), value.clone());
    }
    new.retain(|_, value| !is_empty(value));
    if !new.is_empty() {
        pod.insert("affinity".to_owned(), new.into());
    }
}
