//! How the store keeps an object. What copies of one ClusterServiceVersion say alike, nearly all of what they are, is kept once for all of
//! them: there may be tens of thousands.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use serde_json::{Map, Value, json};

use crate::api::cluster_service_version::Csv;
use crate::api::object::{map_mut, name};
use crate::world::{GroupKind, kind};

/// An object in the store.
#[derive(Clone, Debug)]
pub(super) enum StoredObject {
    Whole(Arc<Value>),
    Folded(Arc<Folded>),
}

/// An object in two parts.
#[derive(Debug)]
pub(super) struct Folded {
    /// `apiVersion`, `kind` and of `metadata` what no other object has.
    own: Value,
    /// All the rest.
    shared: Arc<Value>,
    /// The object as somebody looked at it.
    whole: OnceLock<Value>,
}

/// What of `metadata` copies may have in common.
const COMMON: [&str; 2] = ["labels", "annotations"];

impl StoredObject {
    /// The object without what it may share: it has all that makes it this object, its owners and finalizers, no labels and no content.
    pub(super) fn own(&self) -> &Value {
        match self {
            Self::Whole(object) => object,
            Self::Folded(folded) => &folded.own,
        }
    }

    /// The object, which stays unfolded.
    pub(super) fn whole(&self) -> &Value {
        match self {
            Self::Whole(object) => object,
            Self::Folded(folded) => folded.whole.get_or_init(|| folded.unfold()),
        }
    }

    /// The object for a moment.
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

/// A copy is made without its status, which follows while others are made.
const RECENT: usize = 2;

/// Folds objects: knows what those lately put have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Folds {
    /// By the namespace and name of what they are copies of; the last one first.
    recent: BTreeMap<(String, String), [Weak<Value>; RECENT]>,
}

impl Folds {
    /// The object as it is to be kept.
    pub(super) fn keep(&mut self, object: &Arc<Value>) -> StoredObject {
        if GroupKind::kept_as(object) != kind::COPIED_CSV {
            return StoredObject::Whole(Arc::clone(object));
        }
        let original = Csv::of(object).copied_from().unwrap_or_default().to_owned();
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

/// Is this what the object has in common with others?
fn is_like(object: &Value, shared: &Value) -> bool {
    let (Some(fields), Some(others)) = (object.as_object(), shared.as_object()) else { return false };
    let metadata = || COMMON.iter().all(|field| object["metadata"][field] == shared["metadata"][field]);
    // What is short and differs most often comes last, and is asked first.
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
    fn copies_share_what_they_say() {
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
        assert_ne!(shared(&folds.keep(&copy("other", "Succeeded"))), shared(&kept[1]), "only the last two are known");
    }

    #[test]
    fn what_is_no_copy_stays_whole() {
        let mut original = copy("garden", "Succeeded").as_ref().clone();
        map_mut(&mut original, &["metadata"]).remove("labels");
        let original = Arc::new(original);
        let StoredObject::Whole(kept) = Folds::default().keep(&original) else { panic!("it is folded") };
        assert!(Arc::ptr_eq(&kept, &original));
    }
}
