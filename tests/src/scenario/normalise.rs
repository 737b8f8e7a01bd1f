//! Removes everything from objects and events that differs between runs: uids, times, addresses, generated names, random order.
//!
//! The rules are those of the recordings' own `record` program, because lengths and hashes of long texts are computed after
//! their application.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use olm_core::api::hash::sha256_hex;
use olm_core::api::object::{at, list, map_mut, text};
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::python::{Form, dumps};
use super::store::Generated;

/// Longer texts are recorded as length and hash.
const TEXT_LIMIT: usize = 2000;
/// Longer CSV specs (as JSON) are recorded as length and hash.
const CSV_SPEC_LIMIT: usize = 6000;
/// Longer manifests of InstallPlan steps (as JSON) are recorded as length and hash.
const MANIFEST_LIMIT: usize = 4000;

#[expect(clippy::expect_used, reason = "the patterns are constants")]
fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("constant pattern")
}

static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
/// RFC 3339, and the form of Go's `time.Time.String` with its monotonic clock.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| ?[+-]\d\d:?\d\d( [A-Z]+)?)( m=[+-][\d.]+)?")
});
static REPLICA_SET: LazyLock<Regex> = LazyLock::new(|| pattern(r#"ReplicaSet "(\S+)-[0-9a-z]{6,10}""#));
/// Addresses of Services and pods: the recorded cluster's ranges are in 10.0.0.0/8.
static IP: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b10\.\d+\.\d+\.\d+(:\d+)?\b"));

/// Replaces times in a text by `<time>`.
pub(super) fn without_times(text: &str) -> String {
    TIME.replace_all(text, "<time>").into_owned()
}

/// Converts objects and events to the form of the recordings. It needs everything observed in a run, so it is created at the
/// end.
#[derive(Clone, Debug)]
pub struct Normaliser {
    uids: BTreeMap<String, String>,
    names: BTreeMap<String, String>,
    any_name: Option<Regex>,
}

impl Normaliser {
    /// `uids` maps uids to objects, `generated` contains the generated names by order of creation, `addresses` maps the actual
    /// address of each catalog to the recorded one.
    pub fn new(
        uids: &BTreeMap<String, String>,
        generated: &Generated,
        addresses: &BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        let mut names = addresses.clone();
        for ((_, _, prefix), generated) in generated {
            for (n, name) in generated.iter().enumerate() {
                names.insert(name.clone(), format!("{prefix}<{}>", n + 1));
            }
        }
        // The longest first, because a name may be a prefix of another.
        let mut longest_first: Vec<_> = names.keys().map(|name| regex::escape(name)).collect();
        longest_first.sort_by_key(|name| std::cmp::Reverse(name.len()));
        let any_name = if longest_first.is_empty() { None } else { Some(Regex::new(&longest_first.join("|"))?) };
        Ok(Self { uids: uids.clone(), names, any_name })
    }

    fn with_names(&self, text: &str) -> String {
        let Some(any_name) = &self.any_name else { return text.to_owned() };
        any_name.replace_all(text, |found: &Captures| self.names[&found[0]].as_str()).into_owned()
    }

    /// Returns a text without its random parts; a long one as length and hash.
    pub fn text(&self, text: &str) -> String {
        let text = self.with_names(text);
        let text = UUID.replace_all(&text, |uid: &Captures| match self.uids.get(&uid[0]) {
            Some(owner) => format!("<uid of {}>", self.with_names(owner)),
            None => "<uid>".to_owned(),
        });
        let text = REPLICA_SET.replace_all(&text, r#"ReplicaSet "$1-<hash>""#);
        let text = without_times(&text);
        let text = IP.replace_all(&text, "<ip>").into_owned();
        match text.chars().count() {
            ..=TEXT_LIMIT => text,
            length => format!("<text of {length} characters, sha256 {}>", sha256_hex(&text)),
        }
    }

    /// Applies the rules for all kinds to every part of an object.
    pub fn walk(&self, value: &Value) -> Value {
        self.walk_under("", value)
    }

    fn walk_under(&self, key: &str, value: &Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(map.iter().filter_map(|(key, v)| self.entry(key, v)).collect()),
            Value::Array(list) => {
                let mut list: Vec<_> = list.iter().map(|item| self.walk(item)).collect();
                if matches!(key, "ownerReferences" | "catalogHealth") {
                    list.sort_by_cached_key(|item| dumps(item, Form::Spaced));
                }
                Value::Array(list)
            }
            Value::String(s) => Value::String(self.text(s)),
            other => other.clone(),
        }
    }

    fn entry(&self, key: &str, value: &Value) -> Option<(String, Value)> {
        Some(match key {
            "managedFields" | "resourceVersion" | "generation" | "observedGeneration" => return None,
            "caBundle" | "olmcahash" => (key.to_owned(), json!("<cert>")),
            _ => match embedded(key, value) {
                Some(manifest) => (key.to_owned(), short(self.walk(&manifest), MANIFEST_LIMIT)),
                None => (self.text(key), self.walk_under(key, value)),
            },
        })
    }

    /// Returns an object in the form of the recordings.
    pub fn object(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let metadata = map_mut(&mut object, &["metadata"]);
        for field in ["uid", "creationTimestamp", "selfLink"] {
            metadata.remove(field);
        }
        match text(&object, &["kind"]).to_owned().as_str() {
            "Secret" => secret(&mut object),
            "Service" => service(&mut object),
            "CustomResourceDefinition" => crd(&mut object),
            "Deployment" => deployment(&mut object),
            "Job" => job(&mut object),
            "Pod" => pod(&mut object),
            "ClusterServiceVersion" => csv(&mut object),
            "InstallPlan" => install_plan(&mut object),
            "OperatorGroup" => sort_list(&mut object, "/status/namespaces", |n| n.as_str().unwrap_or("").to_owned()),
            "Subscription" => sort_list(&mut object, "/status/conditions", |c| text(c, &["type"]).to_owned()),
            _ => {}
        }
        self.walk(&object)
    }

    /// Returns an event in the form of the recordings: object, type, reason, message and source.
    pub fn event(&self, event: &Value) -> Value {
        let about = |field: &str| text(event, &["involvedObject", field]);
        let parts = [about("kind"), about("namespace"), about("name")];
        let object = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let from = match at(event, &["source", "component"]) {
            Value::String(component) if !component.is_empty() => json!(component),
            _ => at(event, &["reportingComponent"]).clone(),
        };
        let field = |name: &str| at(event, &[name]).clone();
        let mut normal = json!({
            "object": object, "type": field("type"), "reason": field("reason"), "message": field("message"), "from": from,
        });
        if !about("fieldPath").is_empty() {
            normal["fieldPath"] = json!(about("fieldPath"));
        }
        self.walk(&normal)
    }
}

/// Parses the object in the manifest of an InstallPlan step, which OLM stores as text.
fn embedded(key: &str, value: &Value) -> Option<Value> {
    let text = value.as_str().filter(|text| key == "manifest" && text.starts_with('{'))?;
    serde_json::from_str(text).ok()
}

/// Returns the value, or its length and hash if it is longer than `limit` characters of JSON.
fn short(value: Value, limit: usize) -> Value {
    // Compact JSON is ASCII, so its length in bytes is that in characters.
    let json = dumps(&value, Form::Compact);
    if json.len() <= limit {
        return value;
    }
    json!(format!("<{} characters of JSON with sorted keys, sha256 {}>", json.len(), sha256_hex(&json)))
}

/// Sorts the list at a JSON pointer, if it exists.
fn sort_list<K: Ord>(object: &mut Value, pointer: &str, key: impl Fn(&Value) -> K) {
    if let Some(Value::Array(list)) = object.pointer_mut(pointer) {
        list.sort_by_cached_key(key);
    }
}

/// Reduces the status to some fields.
fn keep_status(object: &mut Value, fields: &[&str]) {
    let status = object.get("status").and_then(Value::as_object).into_iter().flatten();
    let kept: Map<_, _> =
        status.filter(|(k, _)| fields.contains(&k.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect();
    object["status"] = Value::Object(kept);
}

fn remove(object: &mut Value, pointer: &str, keys: &[&str]) {
    if let Some(Value::Object(map)) = object.pointer_mut(pointer) {
        for key in keys {
            map.remove(*key);
        }
    }
}

fn secret(object: &mut Value) {
    let data = object.get("data").and_then(Value::as_object);
    let mut keys: Vec<String> = data.into_iter().flatten().map(|(key, _)| key.clone()).collect();
    keys.sort();
    remove(object, "", &["data", "stringData"]);
    object["keys"] = json!(keys);
}

fn service(object: &mut Value) {
    for field in ["clusterIP", "clusterIPs"] {
        let address = at(object, &["spec", field]);
        if !address.is_null() && *address != json!("None") && *address != json!(["None"]) {
            object["spec"][field] = json!("<ip>");
        }
    }
    for n in 0..list(object, &["spec", "ports"]).len() {
        remove(object, &format!("/spec/ports/{n}"), &["nodePort"]);
    }
}

fn crd(object: &mut Value) {
    let versions: Vec<Value> = list(object, &["spec", "versions"])
        .iter()
        .map(|version| {
            let known =
                ["name", "served", "storage"].into_iter().filter_map(|k| Some((k.to_owned(), version.get(k)?.clone())));
            Value::Object(known.collect())
        })
        .collect();
    object["spec"]["versions"] = Value::Array(versions);
    object["status"] = json!({"storedVersions": at(object, &["status", "storedVersions"])});
}

fn deployment(object: &mut Value) {
    let mut conditions: Vec<String> = list(object, &["status", "conditions"])
        .iter()
        .map(|c| format!("{}={} {}", text(c, &["type"]), text(c, &["status"]), text(c, &["reason"])))
        .collect();
    conditions.sort();
    keep_status(object, &["replicas", "readyReplicas", "availableReplicas", "updatedReplicas"]);
    object["status"]["conditions"] = json!(conditions);
    if !at(object, &["spec", "template", "metadata", "annotations", "olmcahash"]).is_null() {
        map_mut(object, &["metadata", "labels"])
            .insert("olm.deployment-spec-hash".to_owned(), json!("<depends on cert>"));
    }
}

fn job(object: &mut Value) {
    keep_status(object, &["active", "failed", "succeeded"]);
    remove(object, "/spec/selector", &["matchLabels"]);
    for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
        remove(object, labels, &["controller-uid", "batch.kubernetes.io/controller-uid"]);
    }
}

fn pod(object: &mut Value) {
    const TOKEN: &str = "kube-api-access-";
    let others = |list: &[Value]| -> Value {
        list.iter().filter(|v| !text(v, &["name"]).starts_with(TOKEN)).cloned().collect::<Vec<_>>().into()
    };
    remove(object, "", &["status"]);
    remove(object, "/spec", &["nodeName"]);
    object["spec"]["volumes"] = others(list(object, &["spec", "volumes"]));
    for containers in ["containers", "initContainers"] {
        if let Some(Value::Array(containers)) = object.pointer_mut(&format!("/spec/{containers}")) {
            for container in containers {
                container["volumeMounts"] = others(list(container, &["volumeMounts"]));
            }
        }
    }
}

fn csv(object: &mut Value) {
    object["spec"] = short(object["spec"].take(), CSV_SPEC_LIMIT);
    if let Some(Value::Array(conditions)) = object.pointer_mut("/status/conditions") {
        // Whether this state is observed depends on how fast pods start.
        conditions.retain(|c| (text(c, &["phase"]), text(c, &["reason"])) != ("Installing", "InstallWaiting"));
    }
    if let Some(Value::Array(requirements)) = object.pointer_mut("/status/requirementStatus") {
        for requirement in requirements {
            sort_list(requirement, "/dependents", |dependent| dumps(dependent, Form::Spaced));
        }
    }
    sort_list(object, "/status/requirementStatus", |requirement| match text(requirement, &["kind"]) {
        "ServiceAccount" => (true, text(requirement, &["name"]).to_owned()),
        _ => (false, String::new()),
    });
}

/// The order of several bundles is random in OLM, and so is that of the service accounts of one bundle.
fn install_plan(object: &mut Value) {
    let own_text = |item: &Value| item.as_str().unwrap_or_default().to_owned();
    sort_list(object, "/spec/clusterServiceVersionNames", own_text);
    sort_list(object, "/status/catalogSources", own_text);
    sort_list(object, "/status/bundleLookups", |lookup| text(lookup, &["identifier"]).to_owned());
    sort_list(object, "/status/plan", |step| {
        let kind = text(step, &["resource", "kind"]);
        let is_rbac = matches!(kind, "ServiceAccount" | "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding");
        let order = if is_rbac { (true, kind, text(step, &["resource", "name"])) } else { (false, "", "") };
        (text(step, &["resolving"]).to_owned(), order.0, order.1.to_owned(), order.2.to_owned())
    });
}

#[cfg(test)]
mod tests;
