//! Everything that the watches of all kinds reported: current objects, the objects of uids, generated names in order of first
//! observation, the states of OLM's objects, and the time of the last change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use olm_core::api::object::{label, list, name, namespace, text, uid};
use serde_json::{Map, Value, json};

use super::normalise::without_times;

/// What a watch reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The object was added or modified, with its current state.
    Applied(Arc<Value>),
    /// The object was deleted, with its last state.
    Deleted(Arc<Value>),
}

/// States in the order of their observation, by object.
pub type History = BTreeMap<String, Vec<Value>>;

/// Generated names in order of first observation, by kind, namespace and prefix.
pub type Generated = BTreeMap<(String, String, String), Vec<String>>;

/// A cluster as observed by watches.
#[derive(Clone, Debug, Default)]
pub struct Store {
    objects: BTreeMap<String, Arc<Value>>,
    uids: BTreeMap<String, String>,
    born: BTreeMap<String, usize>,
    generated: Generated,
    seen: BTreeMap<String, Arc<Value>>,
    history: History,
    changed_at: Duration,
}

impl Store {
    /// Records a change that was observed at `now` on the engine's clock.
    pub fn take(&mut self, change: Change, now: Duration) {
        match change {
            Change::Applied(object) => self.put(object, now),
            Change::Deleted(object) => {
                self.objects.remove(&ident(&object));
                self.changed_at = now;
                self.note(&object, true);
            }
        }
    }

    fn put(&mut self, object: Arc<Value>, now: Duration) {
        let id = ident(&object);
        let kind = text(&object, &["kind"]);
        self.uids.entry(uid(&object).to_owned()).or_insert_with(|| id.clone());
        let order = self.born.len();
        self.born.entry(uid(&object).to_owned()).or_insert(order);
        let counts = kind != "Pod" || is_catalog_pod(&object);
        let prefix = text(&object, &["metadata", "generateName"]);
        if !prefix.is_empty() && name(&object).starts_with(prefix) && kind != "Event" && counts {
            let key = (kind.to_owned(), namespace(&object).to_owned(), prefix.to_owned());
            let names = self.generated.entry(key).or_default();
            if !names.iter().any(|n| n == name(&object)) {
                names.push(name(&object).to_owned());
            }
        }
        if counts && (kind != "Event" || is_from_olm(&object)) {
            let stripped = strip(&object);
            if self.seen.get(&id).is_none_or(|seen| **seen != stripped) {
                self.seen.insert(id.clone(), Arc::new(stripped));
                self.changed_at = now;
            }
        }
        self.note(&object, false);
        self.objects.insert(id, object);
    }

    /// Records the state of a CSV, InstallPlan or Subscription if it has changed.
    fn note(&mut self, object: &Value, gone: bool) {
        let kind = text(object, &["kind"]);
        if !matches!(kind, "ClusterServiceVersion" | "InstallPlan" | "Subscription")
            || label(object, "olm.copiedFrom").is_some()
        {
            return;
        }
        let status = |field: &str| text(object, &["status", field]);
        let state = match kind {
            _ if gone => json!(["gone"]),
            "ClusterServiceVersion" => json!([status("phase"), status("reason"), status("message")]),
            "InstallPlan" => json!([status("phase"), "", status("message")]),
            _ => json!([
                status("state"),
                format!("installed={}", status("installedCSV")),
                format!("current={}", status("currentCSV"))
            ]),
        };
        if state.as_array().is_some_and(|parts| parts.iter().all(|part| part == "")) {
            return;
        }
        let history = self.history.entry(ident(object)).or_default();
        if history.last() != Some(&state) {
            history.push(state);
        }
    }

    /// Returns the states since the last call.
    pub fn take_history(&mut self) -> History {
        std::mem::take(&mut self.history)
    }

    /// Returns the current objects, by [`ident`].
    pub fn objects(&self) -> &BTreeMap<String, Arc<Value>> {
        &self.objects
    }

    /// Returns the most recently created object of a kind and namespace.
    pub fn newest(&self, kind: &str, in_namespace: &str) -> Option<&Value> {
        let of_kind = self.objects.values().filter(|o| text(o, &["kind"]) == kind && namespace(o) == in_namespace);
        // Creation times have whole seconds; within one second, the most recently observed.
        let newest = of_kind.max_by_key(|o| (text(o, &["metadata", "creationTimestamp"]), self.born.get(uid(o))));
        newest.map(Arc::as_ref)
    }

    /// Returns the API version of a kind, from its objects or its definition.
    pub fn api_version(&self, kind: &str) -> Option<String> {
        if let Some(object) = self.objects.values().find(|o| text(o, &["kind"]) == kind) {
            return Some(text(object, &["apiVersion"]).to_owned());
        }
        let crd = self.objects.values().find(|o| {
            text(o, &["kind"]) == "CustomResourceDefinition" && text(o, &["spec", "names", "kind"]) == kind
        })?;
        Some(format!("{}/{}", text(crd, &["spec", "group"]), storage_version(crd)?))
    }

    /// Returns the objects of all uids.
    pub fn uids(&self) -> &BTreeMap<String, String> {
        &self.uids
    }

    /// Returns the observed generated names.
    pub fn generated(&self) -> &Generated {
        &self.generated
    }

    /// Returns when anything other than a timestamp last changed, on the engine's clock.
    pub fn changed_at(&self) -> Duration {
        self.changed_at
    }

    /// Restarts the quiet time at `now`.
    pub fn touch(&mut self, now: Duration) {
        self.changed_at = now;
    }
}

/// Returns the storage version of a CRD.
pub fn storage_version(crd: &Value) -> Option<&str> {
    let stored = list(crd, &["spec", "versions"]).iter().find(|version| version["storage"] == true)?;
    Some(text(stored, &["name"]))
}

/// Returns `Kind/namespace/name`, or `Kind/name`.
pub fn ident(object: &Value) -> String {
    let parts = [text(object, &["kind"]), namespace(object), name(object)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

/// Returns an object without the fields that change on every write.
pub fn strip(value: &Value) -> Value {
    const VOLATILE: [&str; 6] =
        ["managedFields", "resourceVersion", "generation", "observedGeneration", "count", "series"];
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !VOLATILE.contains(&key.as_str()));
            Value::Object(kept.map(|(key, item)| (key.clone(), strip(item))).collect::<Map<_, _>>())
        }
        Value::Array(list) => Value::Array(list.iter().map(strip).collect()),
        Value::String(s) => Value::String(without_times(s)),
        other => other.clone(),
    }
}

/// Returns whether an event is about one of OLM's objects, or from OLM about a Namespace.
pub fn is_from_olm(event: &Value) -> bool {
    text(event, &["involvedObject", "apiVersion"]).starts_with("operators.coreos.com/")
        || (text(event, &["involvedObject", "kind"]) == "Namespace"
            && text(event, &["source", "component"]) == "operator-lifecycle-manager")
}

fn is_catalog_pod(pod: &Value) -> bool {
    label(pod, "olm.catalogSource").is_some()
}

/// Returns whether Kubernetes creates this object by itself in every cluster. Events count as such, because they are recorded
/// separately.
pub fn is_stock(object: &Value) -> bool {
    let name = name(object);
    match text(object, &["kind"]) {
        "ServiceAccount" => name == "default" || namespace(object) == "kube-system",
        "ConfigMap" => name == "kube-root-ca.crt",
        "ClusterRole" | "ClusterRoleBinding" => {
            name.starts_with("system:") || matches!(name, "admin" | "edit" | "view" | "cluster-admin")
        }
        "APIService" => label(object, "kube-aggregator.kubernetes.io/automanaged").is_some(),
        "Pod" => !is_catalog_pod(object),
        kind => kind == "Event",
    }
}
