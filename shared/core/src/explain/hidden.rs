//! Prepares objects for display: without status, fields that the API server sets, values that OLM generates, and secret data.
//!
//! *Guarantees*: of a value in a Secret, only whether it changes is shown, neither the value nor a digest of it. The same holds for the
//! annotations of Secrets, because clients store copies of the whole object in them. Generated values are replaced in exactly the fields
//! that OLM writes, so that the digest of an explanation covers every other change.

use serde_json::{Map, Value};

use super::document::Unshown;
use super::simulated_plan::SimulatedPlan;
use crate::api::cluster_service_version::is_copy;
use crate::api::hash::sha256_hex;
use crate::api::object::{self, Gvk};
use crate::api::{kinds, labels};
use crate::csv::generated;
use crate::installplan::kind_made;
use crate::sim::Simulation;

/// The fields of metadata that the API server sets.
pub(super) const OF_THE_SERVER: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
    "deletionGracePeriodSeconds",
];

/// The annotation that the controllers of Kubernetes write on Deployments.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// Replaces a value of a Secret that does not change.
const HIDDEN: &str = "(hidden)";
/// Replaces a value of a Secret that is added or changed.
const CHANGED: &str = "(hidden, changed)";

/// The fields of a Secret that are shown.
const OF_A_SECRET: [&str; 7] = ["apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"];
/// Prefix of the annotations of a Secret whose values are shown.
const PLAIN: &str = "kubernetes.io/";

/// Returns the data of a plan that is not shown.
pub(super) fn unshown(simulated: &SimulatedPlan) -> Unshown {
    let mut unshown = Unshown::default();
    for csv in [&simulated.before, &simulated.after].into_iter().flat_map(csvs).filter(|csv| !is_copy(csv)) {
        unshown.generated.add(csv);
    }
    for step in simulated.steps() {
        let of = |key| object::text(step, &["resource", key]);
        let Gvk { group, kind, .. } = kind_made(step);
        if kind == "Secret" && group.is_empty() {
            unshown.generated.forget_secret(&simulated.namespace, of("name"));
            let digest = sha256_hex(format!("{}{}", of("manifest"), brought(simulated, of("name"))));
            unshown.secrets.push(digest);
        }
    }
    unshown
}

impl Unshown {
    /// Returns an object before and after the plan, for display.
    pub(super) fn shown(&self, before: Option<&Value>, after: Option<&Value>) -> [Option<Value>; 2] {
        [before.map(|json| self.one(json, None)), after.map(|json| self.one(json, before))]
    }

    /// Returns an object as the API server would persist it, for display. `shown` is the displayed object so far.
    pub(super) fn stored(&self, kept: &Value, shown: &Value) -> Value {
        let mut kept = self.one(kept, None);
        if is_secret(&kept) {
            // Values that were not sent were added by the API server.
            for part in ["data", "stringData"] {
                let Some(Value::Object(values)) = kept.get_mut(part) else { continue };
                for (key, value) in values.iter_mut().filter(|(_, value)| **value == HIDDEN) {
                    let known = ["data", "stringData"].iter().find_map(|part| shown.get(part)?.get(key));
                    *value = known.cloned().unwrap_or_else(|| CHANGED.into());
                }
            }
        }
        kept
    }

    fn one(&self, json: &Value, before: Option<&Value>) -> Value {
        let mut shown = json.clone();
        self.generated.stand_in(&mut shown);
        let map = object::map_mut(&mut shown, &[]);
        map.remove("status");
        let metadata = object::map_mut(&mut shown, &["metadata"]);
        for field in OF_THE_SERVER {
            metadata.remove(field);
        }
        for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
            owner.as_object_mut().map(|owner| owner.remove("uid"));
        }
        if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
            // Component labels of OLM have no value.
            labels.retain(|key, value| !(key.starts_with(labels::COMPONENT) && value == ""));
            if object::kind(json) == "Deployment" {
                // A digest of the spec, which is shown.
                labels.remove(labels::DEPLOYMENT_SPEC_HASH);
            }
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            // These name ClusterServiceVersions of other namespaces, which the user may not be allowed to read.
            annotations.retain(|key, _| key != REVISION && !key.starts_with(labels::INSTALLED_ALONGSIDE));
        }
        for part in ["labels", "annotations"] {
            if metadata.get(part).is_some_and(|part| part.as_object().is_some_and(Map::is_empty)) {
                metadata.remove(part);
            }
        }
        match object::kind(json) {
            "Secret" => self.hide(&mut shown, before),
            "Service" => {
                let spec = object::map_mut(&mut shown, &["spec"]);
                if spec.get("clusterIP").is_some_and(|ip| ip != "None") {
                    spec.remove("clusterIP");
                    spec.remove("clusterIPs");
                }
            }
            _ => {}
        }
        shown
    }

    /// Hides the values of a Secret, except whether they change.
    fn hide(&self, secret: &mut Value, before: Option<&Value>) {
        if let Value::Object(fields) = secret {
            fields.retain(|field, _| OF_A_SECRET.contains(&field.as_str()));
        }
        for path in ["/data", "/stringData", "/metadata/annotations"] {
            let is_data = path != "/metadata/annotations";
            let names = secret.clone();
            let old = |key: &str| before.and_then(|before| before.pointer(path)?.get(key));
            let stand_in = |key: &str, value: &Value| match before {
                _ if is_data && self.generated.is_value(&names, key) => generated(),
                Some(_) if old(key) != Some(value) => CHANGED.into(),
                _ => HIDDEN.into(),
            };
            match secret.pointer_mut(path) {
                Some(Value::Object(values)) => {
                    for (key, value) in values.iter_mut().filter(|(key, _)| is_data || !key.starts_with(PLAIN)) {
                        *value = stand_in(key, value);
                    }
                }
                Some(Value::Null) | None => {}
                Some(other) => {
                    let is_same = before.is_none_or(|before| before.pointer(path) == Some(&*other));
                    *other = if is_same { HIDDEN } else { CHANGED }.into();
                }
            }
        }
    }
}

/// Returns the values that a plan adds to a Secret. Existing values must not be part of a digest.
fn brought(simulated: &SimulatedPlan, name: &str) -> Value {
    let find = |simulation: &'_ Simulation| simulation.api().find("", "Secret", &simulated.namespace, name).cloned();
    let (before, mut after) = (find(&simulated.before).unwrap_or_default(), find(&simulated.after).unwrap_or_default());
    for part in ["data", "stringData"] {
        if let Some(Value::Object(values)) = after.get_mut(part) {
            values.retain(|key, value| object::at(&before, &[part, key]) != value);
        }
    }
    serde_json::json!([after["data"], after["stringData"]])
}

fn csvs(simulation: &Simulation) -> impl Iterator<Item = &Value> {
    simulation.api().list(kinds::OLM_GROUP, kinds::CLUSTER_SERVICE_VERSION.kind, None)
}

fn is_secret(json: &Value) -> bool {
    object::kind(json) == "Secret"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COPY: &str = "kubectl.kubernetes.io/last-applied-configuration";

    fn secret(data: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": data, "status": {}, "more": "dGhvcm5z",
            "metadata": { "name": "seed", "uid": "u", "resourceVersion": "7",
                          "annotations": { COPY: data.to_string(), "kubernetes.io/service-account.name": "rose" } },
        })
    }

    #[test]
    fn csvs_of_other_namespaces_are_not_shown_in_definitions() {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "roses", "annotations": {
                "operatorframework.io/installed-alongside-29a1e560b635065c": "field/rose.v1.0.0", "mine": "yes",
            } },
        });
        let shown = Unshown::default().one(&definition, None);
        assert_eq!(shown["metadata"]["annotations"], json!({ "mine": "yes" }));
    }

    #[test]
    fn only_changes_of_secrets_are_shown() {
        let (old, new) = (
            json!({ "key": "dGhvcm5z", "tls.key": "YQ==" }),
            json!({ "key": "dGhvcm5z", "tls.key": "Yg==", "x": "eA==" }),
        );
        let [before, after] = Unshown::default().shown(Some(&secret(&old)), Some(&secret(&new))).map(Option::unwrap);
        assert_eq!(before["data"], json!({ "key": HIDDEN, "tls.key": HIDDEN }));
        assert_eq!(after["data"], json!({ "key": HIDDEN, "tls.key": CHANGED, "x": CHANGED }));
        let annotations = json!({ COPY: CHANGED, "kubernetes.io/service-account.name": "rose" });
        assert_eq!((&after["metadata"]["annotations"], after.get("more")), (&annotations, None));
        let [none, new] = Unshown::default().shown(None, Some(&secret(&new)));
        assert_eq!((none, &new.unwrap()["data"]["x"]), (None, &HIDDEN.into()));
        let [before, after] = Unshown::default().shown(Some(&secret(&old)), Some(&secret(&old)));
        assert_eq!(before, after, "nothing changes");
    }

    #[test]
    fn values_of_secrets_in_dry_run_results_are_not_shown() {
        let unshown = Unshown::default();
        let (old, new) = (secret(&json!({ "a": "YQ==", "b": "Yg==" })), secret(&json!({ "a": "YQ==", "b": "Yw==" })));
        let [_, shown] = unshown.shown(Some(&old), Some(&new));
        let kept = unshown.stored(&secret(&json!({ "a": "YQ==", "b": "Yw==", "c": "ZA==" })), &shown.unwrap());
        assert_eq!(kept["data"], json!({ "a": HIDDEN, "b": CHANGED, "c": CHANGED }));
    }

    #[test]
    fn values_of_malformed_secrets_are_not_shown() {
        for data in [json!("dGhvcm5z"), json!(["dGhvcm5z"]), json!({ "a": { "b": "dGhvcm5z" } })] {
            let shown = Unshown::default().shown(Some(&secret(&data)), Some(&secret(&json!({}))));
            assert!(!format!("{shown:?}").contains("dGhvcm5z"), "{shown:?}");
        }
    }
}
