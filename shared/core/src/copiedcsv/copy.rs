//! The content of a copy of a ClusterServiceVersion (olm-behaviour/operatorgroup.md#copy-content).

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::api::cluster_service_version::{Csv, FINALIZER, Phase, reason};
use crate::api::labels::TARGET_NAMESPACES;
use crate::api::metadata::Metadata;
use crate::api::{labels, object};
use crate::plan::Action;
use crate::world::{Digest, Object};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Minimum duration of a transient phase until it is copied. An install passes four of them in less: copying each of them
/// to hundreds of namespaces would cost more than the install, and delay it.
const PASSING: SignedDuration = SignedDuration::from_secs(10);

/// Returns until when the phase of a ClusterServiceVersion is too young to be copied; `None` if it is copied.
pub(super) fn passes_until(original: &Value, now: Timestamp) -> Option<Timestamp> {
    let csv = Csv::new(original);
    let lasts = matches!(csv.phase(), Phase::Succeeded | Phase::Failed);
    csv.last_transition().filter(|_| !lasts).map(|since| since + PASSING).filter(|until| now < *until)
}

/// The content of the copies of one ClusterServiceVersion, computed once for all of them.
pub(super) struct Pattern<'a> {
    original: &'a Value,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
    status: Value,
    digest: Digest,
}

impl<'a> Pattern<'a> {
    pub(super) fn new(original: &'a Value) -> Self {
        let (labels, annotations) = (labels_of(original), annotations_of(original));
        let status = status_of(original);
        let as_copy = json!({ "metadata": { "labels": labels, "annotations": annotations } });
        let digest = Digest::of_parts(&as_copy["metadata"], object::at(original, &["spec"]), &status);
        Self { original, labels, annotations, status, digest }
    }

    /// Returns a copy for a namespace. Its status is written after creation.
    pub(super) fn make(&self, namespace: &str) -> Value {
        let original = self.original;
        let mut copy = json!({
            "apiVersion": object::at(original, &["apiVersion"]),
            "kind": object::at(original, &["kind"]),
            "metadata": { "name": object::name(original), "namespace": namespace },
        });
        self.write(&mut copy);
        copy
    }

    fn write(&self, copy: &mut Value) {
        let metadata = object::map_mut(copy, &["metadata"]);
        metadata.insert("labels".to_owned(), self.labels.clone().into());
        metadata.insert("annotations".to_owned(), self.annotations.clone().into());
        object::map_mut(copy, &[]).insert("spec".to_owned(), object::at(self.original, &["spec"]).clone());
    }

    /// Returns what a copy lacks.
    pub(super) fn compare(&self, copy: &Object) -> Flaw {
        match copy.digest() {
            // First, because nearly all of many copies are equal.
            Some(found) if found == self.digest => Flaw::None,
            _ if object::is_deleting(copy.json()) => Flaw::None,
            Some(found) if found.content == self.digest.content => Flaw::Status,
            _ => Flaw::Content,
        }
    }

    /// Returns the write that updates labels, annotations and `spec` of a copy.
    pub(super) fn repair(&self, copy: &Value) -> Action {
        let mut new = copy.clone();
        self.write(&mut new);
        // OLM's finalizer distinguishes an original from a copy.
        if object::has_finalizer(copy, FINALIZER) {
            let finalizers = Metadata::new(copy).finalizers().iter();
            let others: Vec<Value> = finalizers.filter(|f| *f != FINALIZER).cloned().collect();
            object::map_mut(&mut new, &["metadata"]).insert("finalizers".to_owned(), others.into());
        }
        Action::Update(new)
    }

    /// Returns the write that updates the status of a copy.
    pub(super) fn update_status(&self, copy: &Value) -> Action {
        let mut new = copy.clone();
        object::map_mut(&mut new, &[]).insert("status".to_owned(), self.status.clone());
        Action::UpdateStatus(new)
    }
}

/// The difference of a copy from its original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// No relevant difference.
    None,
    /// Labels, annotations or `spec`, and possibly the status.
    Content,
    /// Only the status.
    Status,
}

fn labels_of(original: &Value) -> Map<String, Value> {
    let mut copied = filtered(original, "labels", |key| !key.starts_with(labels::COMPONENT));
    copied.insert(labels::COPIED_FROM.to_owned(), object::namespace(original).into());
    copied
}

fn annotations_of(original: &Value) -> Map<String, Value> {
    filtered(original, "annotations", |key| key != TARGET_NAMESPACES && key != LAST_APPLIED)
}

fn filtered(original: &Value, part: &str, keep: impl Fn(&str) -> bool) -> Map<String, Value> {
    object::entries(original, &["metadata", part])
        .filter(|(key, _)| keep(key))
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}

/// Returns the status of a copy.
pub(super) fn status_of(original: &Value) -> Value {
    let mut status = object::at(original, &["status"]).clone();
    let namespace = object::namespace(original);
    let fields = object::map_mut(&mut status, &[]);
    fields.insert("reason".to_owned(), reason::COPIED.into());
    let message = format!("The operator is running in {namespace} but is managing this namespace");
    fields.insert("message".to_owned(), message.into());
    status
}
