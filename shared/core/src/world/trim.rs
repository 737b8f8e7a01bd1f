//! Removes parts of objects that planning never reads and no write needs: `managedFields` (the API server preserves its own
//! when they are not sent), the schemas of CustomResourceDefinitions (which are only patched), and the private keys of
//! OLM's serving certificates (which are only replaced). Of a copied ClusterServiceVersion only digests are stored: there
//! may be tens of thousands of copies, each with the content of its original.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use super::kind::{self, GroupKind};
use crate::api::cluster_service_version::Csv;
use crate::api::labels;
use crate::plan::certificate;

/// Fields within objects and, for lists on the path, within their entries.
const OF_ALL: &[&str] = &["metadata", "managedFields"];
const OF_DEFINITIONS: &[&str] = &["spec", "versions", "schema"];
const OF_CERTIFICATES: &[&str] = &["data", certificate::KEY];

/// Removes these parts.
pub fn trim(object: &mut Value) {
    if GroupKind::kept_as(object) == kind::COPIED_CSV {
        *object = Digest::trimmed(object);
        return;
    }
    for path in dropped(object) {
        remove(object, path);
    }
}

/// Returns a copy without these parts.
pub fn trimmed(object: &Value) -> Value {
    if GroupKind::kept_as(object) == kind::COPIED_CSV {
        return Digest::trimmed(object);
    }
    copy(object, dropped(object))
}

/// Digests of a copied ClusterServiceVersion, which suffice to compare it with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Digest of labels, annotations and `spec`.
    pub content: u64,
    /// Digest of `status`.
    pub status: u64,
}

/// The field of a trimmed copy that contains its digest, which replaces the digested field.
const CONTENT: &str = "spec";
const STATUS: &str = "status";

impl Digest {
    /// Returns the digest of a ClusterServiceVersion. Each part of it may be whole or trimmed.
    pub fn from_csv(csv: &Value) -> Self {
        Self::of_parts(&csv["metadata"], &csv[CONTENT], &csv[STATUS])
    }

    /// Returns the digest of a ClusterServiceVersion with this `metadata`, `spec` and `status`.
    pub fn of_parts(metadata: &Value, spec: &Value, status: &Value) -> Self {
        let trimmed = |field: &Value| field.as_str().and_then(|text| u64::from_str_radix(text, 16).ok());
        let part = |field: &Value, values: &[&Value]| trimmed(field).unwrap_or_else(|| digest(values));
        Self {
            content: part(spec, &[&metadata["labels"], &metadata["annotations"], spec]),
            status: part(status, &[status]),
        }
    }

    /// Returns what is stored of a copy: its identity, its original, owners and finalizers, and its digests.
    fn trimmed(copy: &Value) -> Value {
        const KEPT: [&str; 8] = [
            "name",
            "namespace",
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "deletionTimestamp",
            "finalizers",
            "ownerReferences",
        ];
        let Self { content, status } = Self::from_csv(copy);
        let old = &copy["metadata"];
        let kept = KEPT.iter().filter(|field| !old[**field].is_null());
        let mut metadata: Map<String, Value> = kept.map(|field| ((*field).to_owned(), old[*field].clone())).collect();
        let from = Csv::new(copy).copied_from().unwrap_or_default();
        metadata.insert("labels".to_owned(), json!({ labels::COPIED_FROM: from }));
        let mut trimmed = Map::new();
        for field in ["apiVersion", "kind"] {
            trimmed.insert(field.to_owned(), copy[field].clone());
        }
        trimmed.insert("metadata".to_owned(), metadata.into());
        trimmed.insert(CONTENT.to_owned(), format!("{content:016x}").into());
        trimmed.insert(STATUS.to_owned(), format!("{status:016x}").into());
        trimmed.into()
    }
}

/// Returns the object as it can be sent: without digests.
pub fn sendable(object: &Value) -> Cow<'_, Value> {
    let is_digest = |field: &str| object[field].is_string();
    if GroupKind::kept_as(object) != kind::COPIED_CSV || !(is_digest(CONTENT) || is_digest(STATUS)) {
        return Cow::Borrowed(object);
    }
    let fields = object.as_object().into_iter().flatten();
    let kept = fields.filter(|(field, value)| !([CONTENT, STATUS].contains(&field.as_str()) && value.is_string()));
    Cow::Owned(kept.map(|(field, value)| (field.clone(), value.clone())).collect())
}

/// Collisions can only be produced by clients that may write copies.
fn digest(values: &[&Value]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for value in values {
        // Empty objects may be left out.
        let is_empty = value.as_object().is_some_and(Map::is_empty);
        if is_empty { &Value::Null } else { *value }.hash(&mut hasher);
    }
    hasher.finish()
}

fn dropped(object: &Value) -> &'static [&'static [&'static str]] {
    match object["kind"].as_str() {
        Some("CustomResourceDefinition") => &[OF_ALL, OF_DEFINITIONS],
        Some("Secret") if !object["data"][certificate::AUTHORITY].is_null() => &[OF_ALL, OF_CERTIFICATES],
        _ => &[OF_ALL],
    }
}

fn remove(value: &mut Value, path: &[&str]) {
    match (value, path) {
        (Value::Array(entries), _) => entries.iter_mut().for_each(|entry| remove(entry, path)),
        (Value::Object(map), [field]) => drop(map.remove(*field)),
        (Value::Object(map), [field, rest @ ..]) => map.get_mut(*field).into_iter().for_each(|v| remove(v, rest)),
        _ => {}
    }
}

fn copy(value: &Value, dropped: &[&[&str]]) -> Value {
    match value {
        _ if dropped.is_empty() => value.clone(),
        Value::Array(entries) => entries.iter().map(|entry| copy(entry, dropped)).collect(),
        Value::Object(map) => {
            let kept = map.iter().filter(|(field, _)| !dropped.contains(&&[field.as_str()][..]));
            let kept = kept.map(|(field, value)| {
                let within = dropped.iter().filter_map(|path| path.split_first()).filter(|(first, _)| *first == field);
                (field.clone(), copy(value, &within.map(|(_, rest)| rest).collect::<Vec<_>>()))
            });
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_and_managed_fields_are_dropped_and_nothing_else() {
        let object = |kind: &str| {
            json!({
                "kind": kind,
                "metadata": { "name": "roses", "managedFields": [{ "manager": "user" }] },
                "spec": { "schema": 1, "versions": [{ "name": "v1", "schema": { "a": 1 } }, "v2"] },
            })
        };
        let mut definition = object("CustomResourceDefinition");
        let expected = json!({
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "roses" },
            "spec": { "schema": 1, "versions": [{ "name": "v1" }, "v2"] },
        });
        assert_eq!(trimmed(&definition), expected);
        trim(&mut definition);
        assert_eq!(definition, expected);
        let mut other = object("Rose");
        assert_eq!(trimmed(&other)["spec"], other["spec"]);
        trim(&mut other);
        assert_eq!(other["metadata"], json!({ "name": "roses" }));
        assert_eq!(other["spec"], object("Rose")["spec"]);
    }

    #[test]
    fn copies_are_trimmed_to_digests() {
        let copy = |label: &str, replicas: u32, phase: &str| {
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
                "metadata": {
                    "name": "rose.v1", "namespace": "field", "uid": "1", "resourceVersion": "7",
                    "labels": { "olm.copiedFrom": "garden", "a": label }, "annotations": { "alm-examples": "[]" },
                    "managedFields": [{ "manager": "user" }],
                },
                "spec": { "replicas": replicas },
                "status": { "phase": phase },
            })
        };
        let once = trimmed(&copy("a", 1, "Succeeded"));
        let Digest { content, status } = Digest::from_csv(&copy("a", 1, "Succeeded"));
        let expected = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {
                "name": "rose.v1", "namespace": "field", "uid": "1", "resourceVersion": "7",
                "labels": { "olm.copiedFrom": "garden" },
            },
            "spec": format!("{content:016x}"), "status": format!("{status:016x}"),
        });
        assert_eq!(once, expected);
        assert_eq!(trimmed(&once), once, "trimming is idempotent");
        let mut in_place = copy("a", 1, "Succeeded");
        trim(&mut in_place);
        assert_eq!(in_place, once);
        let of = |label, replicas, phase| Digest::from_csv(&copy(label, replicas, phase));
        let digest = of("a", 1, "Succeeded");
        assert_eq!(digest, Digest::from_csv(&once));
        for other in [of("b", 1, "Succeeded"), of("a", 2, "Succeeded")] {
            assert_ne!(other.content, digest.content);
            assert_eq!(other.status, digest.status);
        }
        assert_ne!(of("a", 1, "Failed").status, digest.status);
        assert_eq!(of("a", 1, "Failed").content, digest.content);
        assert_eq!(sendable(&once)["metadata"], once["metadata"]);
        assert!(sendable(&once)["spec"].is_null() && sendable(&once)["status"].is_null());
        assert_eq!(*sendable(&copy("a", 1, "Failed")), copy("a", 1, "Failed"));
        let original =
            json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "spec": {} });
        assert_eq!(trimmed(&original), original, "only copies");
    }

    #[test]
    fn private_keys_of_serving_certificates_are_dropped() {
        let secret = |data: Value| json!({ "apiVersion": "v1", "kind": "Secret", "data": data });
        let ours = secret(json!({ "olmCAKey": "YQ==", "tls.crt": "Yg==", "tls.key": "Yw==" }));
        assert_eq!(trimmed(&ours)["data"], json!({ "olmCAKey": "YQ==", "tls.crt": "Yg==" }));
        let theirs = secret(json!({ "tls.crt": "Yg==", "tls.key": "Yw==" }));
        assert_eq!(trimmed(&theirs), theirs, "a bundle's own Secret is compared with its manifest");
    }
}
