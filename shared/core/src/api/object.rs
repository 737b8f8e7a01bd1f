//! Reading and editing objects as JSON: names, labels, annotations, owner references.
//!
//! The functions never panic on a malformed object: a missing value or one of the wrong type is read as empty.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Group, version and kind; the core group is `""`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Gvk {
    /// API group, empty for the core group.
    pub group: String,
    /// API version, for example `v1`.
    pub version: String,
    /// Kind, for example `Deployment`.
    pub kind: String,
}

impl Gvk {
    /// Creates a group, version and kind.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// Reads `apiVersion` and `kind` of an object.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        match api_version.split_once('/') {
            Some((group, version)) => Self::new(group, version, kind),
            None => Self::new("", api_version, kind),
        }
    }

    /// Returns `group/version`, or `version` alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// Identifies an object: its kind, namespace (empty when cluster-scoped) and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Group, version and kind.
    pub gvk: Gvk,
    /// Namespace, empty when the object is cluster-scoped.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectRef {
    /// Returns the reference to an object.
    pub fn from_object(object: &Value) -> Self {
        Self { gvk: gvk(object), namespace: namespace(object).to_owned(), name: name(object).to_owned() }
    }

    /// Returns an object of that kind and name, without other fields.
    pub fn to_object(&self) -> Value {
        let mut metadata = json!({ "name": self.name });
        if !self.namespace.is_empty() {
            metadata["namespace"] = self.namespace.as_str().into();
        }
        json!({ "apiVersion": self.gvk.api_version(), "kind": self.gvk.kind, "metadata": metadata })
    }
}

impl std::fmt::Display for ObjectRef {
    /// `Kind/namespace/name`, or `Kind/name`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { gvk, namespace, name } = self;
        if namespace.is_empty() {
            write!(f, "{}/{name}", gvk.kind)
        } else {
            write!(f, "{}/{namespace}/{name}", gvk.kind)
        }
    }
}

static NULL: Value = Value::Null;

/// Returns the value at a path of keys; `null` when a part is missing.
pub fn at<'a>(object: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(object, |v, key| v.get(key).unwrap_or(&NULL))
}

/// Returns the string at a path of keys; empty when missing.
pub fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).as_str().unwrap_or_default()
}

/// Returns the list at a path of keys; empty when missing.
pub fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).as_array().map_or(&[], Vec::as_slice)
}

/// `apiVersion` and `kind`.
pub fn gvk(object: &Value) -> Gvk {
    Gvk::from_api_version(text(object, &["apiVersion"]), text(object, &["kind"]))
}

/// `kind`
pub fn kind(object: &Value) -> &str {
    text(object, &["kind"])
}

/// `metadata.name`.
pub fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

/// `metadata.namespace`.
pub fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"])
}

/// `metadata.uid`.
pub fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"])
}

/// `metadata.resourceVersion`.
pub fn resource_version(object: &Value) -> &str {
    text(object, &["metadata", "resourceVersion"])
}

/// `metadata.generation`, 0 when missing.
pub fn generation(object: &Value) -> i64 {
    at(object, &["metadata", "generation"]).as_i64().unwrap_or_default()
}

/// Returns whether `metadata.finalizers` contains it.
pub fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    list(object, &["metadata", "finalizers"]).iter().any(|f| f == finalizer)
}

/// Returns whether `metadata.deletionTimestamp` is set.
pub fn is_deleting(object: &Value) -> bool {
    !at(object, &["metadata", "deletionTimestamp"]).is_null()
}

/// Returns whether nothing blocks its deletion. The API server removes such an object with the update that removes its last
/// finalizer.
pub fn is_released(object: &Value) -> bool {
    let grace = at(object, &["metadata", "deletionGracePeriodSeconds"]).as_i64().unwrap_or_default();
    is_deleting(object) && grace == 0 && list(object, &["metadata", "finalizers"]).is_empty()
}

/// Returns whether a namespace is being deleted, so that the API server refuses to create anything in it.
pub fn is_terminating(namespace: &Value) -> bool {
    is_deleting(namespace) || text(namespace, &["status", "phase"]) == "Terminating"
}

/// Returns the label of that key.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    at(object, &["metadata", "labels", key]).as_str()
}

/// Returns the annotation of that key.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    at(object, &["metadata", "annotations", key]).as_str()
}

/// Returns the entries of a map of strings at a path.
pub fn entries<'a>(object: &'a Value, path: &[&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
    at(object, path).as_object().into_iter().flatten().filter_map(|(k, v)| Some((k.as_str(), v.as_str()?)))
}

/// Returns the map at a path, creating it and its parents, and replacing values that are not maps.
pub fn map_mut<'a>(object: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    fn as_map(v: &mut Value) -> &mut Map<String, Value> {
        if !v.is_object() {
            *v = Value::Object(Map::new());
        }
        match v {
            Value::Object(map) => map,
            _ => unreachable!("made a map above"),
        }
    }
    path.iter().fold(as_map(object), |map, key| as_map(map.entry(*key).or_insert(Value::Null)))
}

/// Sets a label.
pub fn set_label(object: &mut Value, key: &str, value: &str) {
    map_mut(object, &["metadata", "labels"]).insert(key.to_owned(), value.into());
}

/// Sets an annotation.
pub fn set_annotation(object: &mut Value, key: &str, value: &str) {
    map_mut(object, &["metadata", "annotations"]).insert(key.to_owned(), value.into());
}

/// Returns an owner reference as OLM writes it: `blockOwnerDeletion: false`, `controller` as given.
pub fn owner_reference(owner: &Value, controller: bool) -> Value {
    json!({
        "apiVersion": text(owner, &["apiVersion"]),
        "kind": text(owner, &["kind"]),
        "name": name(owner),
        "uid": uid(owner),
        "controller": controller,
        "blockOwnerDeletion": false,
    })
}

/// Adds an owner reference to an object, replacing one to a previous object of the same owner.
pub fn set_owner_reference(object: &mut Value, reference: Value) {
    let group = |r: &Value| Gvk::from_api_version(text(r, &["apiVersion"]), text(r, &["kind"]));
    let same_owner = |r: &Value| {
        let (old, new) = (group(r), group(&reference));
        (&old.group, &old.kind, text(r, &["name"])) == (&new.group, &new.kind, text(&reference, &["name"]))
    };
    let mut references = list(object, &["metadata", "ownerReferences"]).to_vec();
    match references.iter().position(same_owner) {
        Some(old) => references[old] = reference,
        None => references.push(reference),
    }
    map_mut(object, &["metadata"]).insert("ownerReferences".to_owned(), references.into());
}

/// Formats a time as Kubernetes does in objects: RFC 3339 in UTC, whole seconds.
pub fn time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Parses a time of an object.
pub fn parse_time(text: &str) -> Option<jiff::Timestamp> {
    text.parse().ok()
}

/// Returns whether `actual` contains everything that `desired` contains. Maps may have more keys, lists must correspond
/// item by item: defaults that the API server adds are not a difference.
pub fn covers(actual: &Value, desired: &Value) -> bool {
    match (actual, desired) {
        (Value::Object(actual), Value::Object(desired)) => desired.iter().all(|(key, d)| match actual.get(key) {
            Some(a) => covers(a, d),
            None => is_empty(d),
        }),
        (Value::Array(actual), Value::Array(desired)) => {
            actual.len() == desired.len() && actual.iter().zip(desired).all(|(a, d)| covers(a, d))
        }
        (actual, desired) => actual == desired,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
