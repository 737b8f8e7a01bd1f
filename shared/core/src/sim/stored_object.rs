//! The stored form of an object. The content that copies of one ClusterServiceVersion have in common, which is nearly all of
//! it, is stored once for all copies, because there may be tens of thousands.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use serde_json::{Map, Value, json};

use crate::api::cluster_service_version::Csv;
use crate::api::object::{map_mut, name};
use crate::world::{GroupKind, kind};

/// A stored object.
#[derive(Clone, Debug)]
pub(super) enum StoredObject {
    Whole(Arc<Value>),
    Folded(Arc<Folded>),
}

/// An object split into its own and its shared part.
#[derive(Debug)]
pub(super) struct Folded {
    /// `apiVersion`, `kind` and the fields of `metadata` that are specific to the object.
    own: Value,
    /// The remaining content.
    shared: Arc<Value>,
    /// The complete object, assembled on first use.
    whole: OnceLock<Value>,
}

/// Fields of `metadata` that copies may share.
const COMMON: [&str; 2] = ["labels", "annotations"];

impl StoredObject {
    /// Returns the object without the part it may share: with its identity, owners and finalizers, without labels and content.
    pub(super) fn own(&self) -> &Value {
        match self {
            Self::Whole(object) => object,
            Self::Folded(folded) => &folded.own,
        }
    }

    /// Returns the complete object, which stays assembled.
    pub(super) fn whole(&self) -> &Value {
        match self {
            Self::Whole(object) => object,
            Self::Folded(folded) => folded.whole.get_or_init(|| folded.unfold()),
        }
    }

    /// Returns the complete object without caching it.
    pub(super) fn read(&self) -> Cow<'_, Value> {
        match self {
            Self::Whole(object) => Cow::Borrowed(object),
            Self::Folded(folded) => folded.whole.get().map_or_else(|| Cow::Owned(folded.unfold()), Cow::Borrowed),
        }
    }
}

impl Folded {
    fn unfold(&self) -> Value {
        let mut object = self.shared.as_ref().clone();
        let own = self.own["metadata"].as_object().into_iter().flatten();
        map_mut(&mut object, &["metadata"]).extend(own.map(|(field, value)| (field.clone(), value.clone())));
        object
    }
}

/// A copy is created without a status. Its status is written while other copies are created.
const RECENT: usize = 2;

/// Splits objects, using the shared parts of recently stored ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Folds {
    /// Shared parts by namespace and name of the original, most recent first.
    recent: BTreeMap<(String, String), [Weak<Value>; RECENT]>,
}

impl Folds {
    /// Returns the stored form of the object.
    pub(super) fn keep(&mut self, object: &Arc<Value>) -> StoredObject {
        if GroupKind::kept_as(object) != kind::COPIED_CSV {
            return StoredObject::Whole(Arc::clone(object));
        }
        let original = Csv::new(object).copied_from().unwrap_or_default().to_owned();
        let recent = self.recent.entry((original, name(object).to_owned())).or_default();
        let known = recent.iter().filter_map(Weak::upgrade).find(|shared| is_like(object, shared));
        let shared = known.unwrap_or_else(|| Arc::new(without_own(object)));
        if recent[0].as_ptr() != Arc::as_ptr(&shared) {
            recent.rotate_right(1);
            recent[0] = Arc::downgrade(&shared);
        }
        StoredObject::Folded(Arc::new(Folded { own: own(object), shared, whole: OnceLock::new() }))
    }
}

fn own(object: &Value) -> Value {
    let metadata = object["metadata"].as_object().into_iter().flatten();
    let own = metadata.filter(|(field, _)| !COMMON.contains(&field.as_str()));
    let own: Map<String, Value> = own.map(|(field, value)| (field.clone(), value.clone())).collect();
    json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": own })
}

fn without_own(object: &Value) -> Value {
    let fields = object.as_object().into_iter().flatten().filter(|(field, _)| *field != "metadata");
    let mut rest: Map<String, Value> = fields.map(|(field, value)| (field.clone(), value.clone())).collect();
    let metadata = object["metadata"].as_object().into_iter().flatten();
    let common = metadata.filter(|(field, _)| COMMON.contains(&field.as_str()));
    let common: Map<String, Value> = common.map(|(field, value)| (field.clone(), value.clone())).collect();
    rest.insert("metadata".to_owned(), common.into());
    rest.into()
}

/// Returns whether this is the part that the object shares with others.
fn is_like(object: &Value, shared: &Value) -> bool {
    let (Some(fields), Some(others)) = (object.as_object(), shared.as_object()) else { return false };
    let metadata = || COMMON.iter().all(|field| object["metadata"][field] == shared["metadata"][field]);
    // Short fields that differ most often come last, and are compared first.
    fields.len() == others.len()
        && metadata()
        && fields.iter().rev().all(|(field, value)| field == "metadata" || others.get(field) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(namespace: &str, status: &str) -> Arc<Value> {
        Arc::new(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {
                "name": "rose.v1", "namespace": namespace, "uid": namespace, "generation": 1,
                "labels": { "olm.copiedFrom": "garden" }, "annotations": { "note": "red" },
            },
            "spec": { "version": "1.0.0" }, "status": { "phase": status },
        }))
    }

    fn shared(kept: &StoredObject) -> *const Value {
        let StoredObject::Folded(folded) = kept else { panic!("{kept:?} is whole") };
        Arc::as_ptr(&folded.shared)
    }

    #[test]
    fn copies_share_their_content() {
        let mut folds = Folds::default();
        let given =
            [copy("field", "Pending"), copy("meadow", "Succeeded"), copy("park", "Pending"), copy("yard", "Gone")];
        let kept = given.each_ref().map(|object| folds.keep(object));
        for (object, kept) in given.iter().zip(&kept) {
            assert_eq!(*kept.read(), **object);
            assert_eq!(kept.whole(), object.as_ref());
            assert_eq!(kept.own()["metadata"]["uid"], object["metadata"]["uid"]);
            assert!(kept.own().get("spec").is_none());
        }
        assert_eq!(shared(&kept[0]), shared(&kept[2]));
        assert_ne!(shared(&kept[0]), shared(&kept[1]));
        assert_ne!(
            shared(&folds.keep(&copy("other", "Succeeded"))),
            shared(&kept[1]),
            "only the last two are remembered"
        );
    }

    #[test]
    fn other_objects_are_not_split() {
        let mut original = copy("garden", "Succeeded").as_ref().clone();
        map_mut(&mut original, &["metadata"]).remove("labels");
        let original = Arc::new(original);
        let StoredObject::Whole(kept) = Folds::default().keep(&original) else { panic!("the object was split") };
        assert!(Arc::ptr_eq(&kept, &original));
    }
}
