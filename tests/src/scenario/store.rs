//! Everything the watched kinds ever showed: current objects, whose uid is whose, generated names in order of first sight,
//! the states that OLM's objects went through, and when something last changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use olm_core::api::object::{label, list, name, namespace, text, uid};
use serde_json::{Map, Value, json};

use super::normalise::without_times;

/// What a watch reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The object was added or modified, and is like this now.
    Applied(Arc<Value>),
    /// The object is gone; this was its last state.
    Deleted(Arc<Value>),
}

/// States in the order in which they were seen, by object.
pub type History = BTreeMap<String, Vec<Value>>;

/// Generated names in order of first sight, by kind, namespace and prefix.
pub type Generated = BTreeMap<(String, String, String), Vec<String>>;

/// A cluster as a watch saw it.
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
    /// Takes in a change that was seen at `now` on the engine's clock.
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

    /// Writes down the state of a CSV, InstallPlan or Subscription when it is another than before.
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

    /// The states seen since the last call.
    pub fn take_history(&mut self) -> History {
        std::mem::take(&mut self.history)
    }

    /// The objects there are, by [`ident`].
    pub fn objects(&self) -> &BTreeMap<String, Arc<Value>> {
        &self.objects
    }

    /// The object of a kind and namespace that was created last.
    pub fn newest(&self, kind: &str, in_namespace: &str) -> Option<&Value> {
        let of_kind = self.objects.values().filter(|o| text(o, &["kind"]) == kind && namespace(o) == in_namespace);
        // Creation times have whole seconds; within one, what was seen last.
        let newest = of_kind.max_by_key(|o| (text(o, &["metadata", "creationTimestamp"]), self.born.get(uid(o))));
        newest.map(Arc::as_ref)
    }

    /// The API version of a kind, as its objects or its definition have it.
    pub fn api_version(&self, kind: &str) -> Option<String> {
        if let Some(object) = self.objects.values().find(|o| text(o, &["kind"]) == kind) {
            return Some(text(object, &["apiVersion"]).to_owned());
        }
        let crd = self.objects.values().find(|o| {
            text(o, &["kind"]) == "CustomResourceDefinition" && text(o, &["spec", "names", "kind"]) == kind
        })?;
        Some(format!("{}/{}", text(crd, &["spec", "group"]), storage_version(crd)?))
    }

    /// Which object had which uid.
    pub fn uids(&self) -> &BTreeMap<String, String> {
        &self.uids
    }

    /// The generated names seen.
    pub fn generated(&self) -> &Generated {
        &self.generated
    }

    /// When something other than a timestamp last changed, on the engine's clock.
    pub fn changed_at(&self) -> Duration {
        self.changed_at
    }

    /// Counts quiet time from `now` on.
    pub fn touch(&mut self, now: Duration) {
        self.changed_at = now;
    }
}

/// The version that a CRD stores.
pub fn storage_version(crd: &Value) -> Option<&str> {
    let stored = list(crd, &["spec", "versions"]).iter().find(|version| version["storage"] == true)?;
    Some(text(stored, &["name"]))
}

/// `Kind/namespace/name`, or `Kind/name`.
pub fn ident(object: &Value) -> String {
    let parts = [text(object, &["kind"]), namespace(object), name(object)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

/// An object without what changes on every write.
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

/// Is an event about one of OLM's objects, or OLM's about a Namespace?
pub fn is_from_olm(event: &Value) -> bool {
    text(event, &["involvedObject", "apiVersion"]).starts_with("operators.coreos.com/")
        || (text(event, &["involvedObject", "kind"]) == "Namespace"
            && text(event, &["source", "component"]) == "operator-lifecycle-manager")
}

fn is_catalog_pod(pod: &Value) -> bool {
    label(pod, "olm.catalogSource").is_some()
}

/// Does Kubernetes make this object by itself, whoever runs on it? Events are recorded apart, so they count as such.
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
