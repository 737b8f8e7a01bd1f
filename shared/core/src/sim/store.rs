//! Stores objects by kind, namespace and name, with one resource version for all and the events since the last drain. Clones of
//! the store share the objects.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::stored_object::{Folds, StoredObject};
use crate::api::object::{at, list, map_mut, name, namespace, text, uid};

/// The watch event of one write.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    /// The object was created.
    Added(Arc<Value>),
    /// The object was changed.
    Modified(Arc<Value>),
    /// The object was deleted; contains its last state, with the resource version of the deletion.
    Deleted(Arc<Value>),
}

impl WatchEvent {
    /// Returns the object of the event.
    pub fn object(&self) -> &Arc<Value> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => object,
        }
    }
}

/// The identity of an object: group, kind, namespace (empty if cluster-scoped), name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    pub(super) fn from_object(object: &Value) -> Self {
        let (group, kind) = group_kind(object);
        Self::new(group, kind, namespace(object), name(object))
    }
}

/// Returns the group and kind of an object or of a reference to one.
pub(super) fn group_kind(object: &Value) -> (&str, &str) {
    let group = text(object, &["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    (group, text(object, &["kind"]))
}

/// Objects of one kind, by namespace and name.
type OfKind = BTreeMap<(String, String), StoredObject>;

/// The stored objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    objects: BTreeMap<(String, String), OfKind>,
    folds: Folds,
    by_uid: BTreeMap<String, Key>,
    /// The objects that name this uid as an owner.
    dependents: BTreeMap<String, BTreeSet<Key>>,
    resource_version: u64,
    events: Vec<WatchEvent>,
}

impl Store {
    /// The resource version of the last write.
    pub(super) fn resource_version(&self) -> u64 {
        self.resource_version
    }

    fn stored(&self, key: &Key) -> Option<&StoredObject> {
        let of_kind = self.objects.get(&(key.group.clone(), key.kind.clone()))?;
        of_kind.get(&(key.namespace.clone(), key.name.clone()))
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        self.stored(key).is_some()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Value> {
        self.stored(key).map(StoredObject::whole)
    }

    /// Returns a copy of the object.
    pub(super) fn read(&self, key: &Key) -> Option<Value> {
        self.stored(key).map(|kept| kept.read().into_owned())
    }

    /// Returns the object [without the parts it may share](StoredObject::own).
    pub(super) fn own(&self, key: &Key) -> Option<&Value> {
        self.stored(key).map(StoredObject::own)
    }

    /// Returns the object with this uid, without the parts it may share.
    pub(super) fn by_uid(&self, uid: &str) -> Option<&Value> {
        self.by_uid.get(uid).and_then(|key| self.own(key))
    }

    /// Returns the objects that name this uid as an owner, without the parts they may share.
    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Value> {
        self.dependents.get(uid).into_iter().flatten().filter_map(|key| self.own(key))
    }

    /// Returns the uids that any object names as its owner.
    pub(super) fn owner_uids(&self) -> impl Iterator<Item = &str> {
        self.dependents.keys().map(String::as_str)
    }

    pub(super) fn list(
        &self,
        group: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &Value> + use<'_> {
        let of_kind = self.objects.get(&(group.to_owned(), kind.to_owned()));
        let namespace = namespace.map(str::to_owned);
        let start = (namespace.clone().unwrap_or_default(), String::new());
        of_kind
            .into_iter()
            .flat_map(move |objects| objects.range(start.clone()..))
            .take_while(move |((ns, _), _)| namespace.as_ref().is_none_or(|wanted| wanted == ns))
            .map(|(_, kept)| kept.whole())
    }

    /// Returns every object, by kind, namespace and name.
    pub(super) fn iter(&self) -> impl Iterator<Item = Cow<'_, Value>> {
        self.objects.values().flat_map(BTreeMap::values).map(StoredObject::read)
    }

    /// Returns every object without the parts it may share, by kind, namespace and name.
    pub(super) fn iter_own(&self) -> impl Iterator<Item = &Value> {
        self.objects.values().flat_map(BTreeMap::values).map(StoredObject::own)
    }

    /// Stores the object under a new resource version and returns it as stored.
    pub(super) fn put(&mut self, mut object: Value) -> Value {
        self.bump(&mut object);
        let key = Key::from_object(&object);
        let shared = Arc::new(object.clone());
        let kept = self.folds.keep(&shared);
        let before = self
            .objects
            .entry((key.group.clone(), key.kind.clone()))
            .or_default()
            .insert((key.namespace.clone(), key.name.clone()), kept);
        if let Some(before) = &before {
            self.forget(before.own(), &key);
        }
        self.by_uid.insert(uid(&object).to_owned(), key.clone());
        for owner in owners(&object) {
            self.dependents.entry(owner.to_owned()).or_default().insert(key.clone());
        }
        self.events.push(match before {
            None => WatchEvent::Added(shared),
            Some(_) => WatchEvent::Modified(shared),
        });
        object
    }

    /// Replaces how the objects of a kind are read. This is not a write.
    pub(super) fn read_as(&mut self, group: &str, kind: &str, mut read: impl FnMut(&mut Value)) {
        let objects = self.objects.get_mut(&(group.to_owned(), kind.to_owned()));
        for kept in objects.into_iter().flat_map(BTreeMap::values_mut) {
            let mut object = kept.read().into_owned();
            read(&mut object);
            *kept = self.folds.keep(&Arc::new(object));
        }
    }

    /// Changes the last state of an object that is about to be removed, without an event or a new resource version.
    pub(super) fn overwrite(&mut self, object: Value) {
        let key = Key::from_object(&object);
        if let Some(stored) = self
            .objects
            .get_mut(&(key.group.clone(), key.kind.clone()))
            .and_then(|objects| objects.get_mut(&(key.namespace.clone(), key.name.clone())))
        {
            let before = std::mem::replace(stored, StoredObject::Whole(Arc::new(object)));
            self.forget(before.own(), &key);
        }
    }

    /// Removes the object and returns its last state.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Value> {
        let kept = self
            .objects
            .get_mut(&(key.group.clone(), key.kind.clone()))?
            .remove(&(key.namespace.clone(), key.name.clone()))?;
        self.forget(kept.own(), key);
        let mut object = kept.read().into_owned();
        self.bump(&mut object);
        self.events.push(WatchEvent::Deleted(Arc::new(object.clone())));
        Some(object)
    }

    /// Returns the events since the last call, in order.
    pub(super) fn drain(&mut self) -> Vec<WatchEvent> {
        std::mem::take(&mut self.events)
    }

    fn bump(&mut self, object: &mut Value) {
        self.resource_version += 1;
        let text = self.resource_version.to_string();
        map_mut(object, &["metadata"]).insert("resourceVersion".into(), text.into());
    }

    fn forget(&mut self, object: &Value, key: &Key) {
        self.by_uid.remove(uid(object));
        for owner in owners(object) {
            if let Some(keys) = self.dependents.get_mut(owner) {
                keys.remove(key);
                if keys.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    list(object, &["metadata", "ownerReferences"]).iter().filter_map(|owner| at(owner, &["uid"]).as_str())
}
