//! The known state of the cluster: objects by kind and name, indexes of them, and external facts.
//!
//! ```text
//!   watch, API answers  --apply/delete/reset-->  World  --Reader-->  plan
//!   catalogs, versions  --learn--------------->         (notes what was read, so that a change
//!                                                        determines which keys to plan again)
//! ```
//!
//! *Guarantees*: an older observation of an object never replaces a newer one. *Assumptions*: resource versions of one
//! object increase (guaranteed by Kubernetes since 1.35). *Caveats*: what is not watched is as old as the last response.

mod facts;
mod index;
pub mod kind;
mod known;
mod reader;
#[cfg(test)]
mod tests;
mod trim;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

pub use facts::{CatalogFact, ConnectionState, Discovery, Fact, FactKey, Refusal};
pub use index::IndexKey;
pub use kind::GroupKind;
pub use known::{Known, Limit};
pub use reader::{Read, Reader};
use serde_json::Value;
pub use trim::{Digest, sendable, trim, trimmed};
pub use unreadable::Unreadable;

use crate::api::object::{self, ObjectRef};

/// Namespace (empty when cluster-scoped) and name.
pub type NamespacedName = (String, String);

/// One object, whole or trimmed to what planning reads.
#[derive(Debug)]
pub struct Object {
    json: Json,
    version: u64,
    says: Option<Digest>,
}

/// The stored form of an object.
#[derive(Debug)]
enum Json {
    Read(Value),
    /// JSON text, which takes a fraction of the memory, for copies of ClusterServiceVersions: most of them are never read.
    Text(Box<str>, OnceLock<Box<Value>>),
    /// Its metadata, and why the rest cannot be read.
    Stub(Box<Unreadable>),
}

impl Object {
    fn new(gk: &GroupKind, json: Value) -> Self {
        let version = version(&json);
        if *gk == kind::COPIED_CSV {
            let says = Some(Digest::from_csv(&json));
            let text = json.to_string().into_boxed_str();
            return Self { json: Json::Text(text, OnceLock::new()), version, says };
        }
        Self { json: Json::Read(json), version, says: None }
    }

    fn unread(object: Unreadable) -> Self {
        let version = version(&object.stub);
        Self { json: Json::Stub(Box::new(object)), version, says: None }
    }

    /// Returns the object as observed; of an unreadable object its metadata.
    pub fn json(&self) -> &Value {
        match &self.json {
            Json::Read(json) => json,
            Json::Stub(object) => &object.stub,
            Json::Text(text, json) => json.get_or_init(|| serde_json::from_str(text).unwrap_or_default()),
        }
    }

    fn is(&self, other: &Value) -> bool {
        match &self.json {
            Json::Read(json) => json == other,
            Json::Text(text, _) => **text == *other.to_string(),
            Json::Stub(_) => false,
        }
    }

    /// Returns the object as an unreadable one, if it is.
    pub fn unreadable(&self) -> Option<&Unreadable> {
        match &self.json {
            Json::Stub(object) => Some(object),
            Json::Read(_) | Json::Text(..) => None,
        }
    }

    /// Returns its digest, if it is the copy of a ClusterServiceVersion.
    pub fn digest(&self) -> Option<Digest> {
        self.says
    }
}

/// A change: the reads whose results may differ now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The kind of the object that changed.
    pub kind: GroupKind,
    /// Its namespace and name.
    pub name: NamespacedName,
    /// Index entries that contain or contained it.
    pub index: BTreeSet<IndexKey>,
    /// Whether the object appeared or disappeared (as opposed to being modified).
    pub membership: bool,
}

#[derive(Clone, Default)]
struct Store {
    objects: BTreeMap<NamespacedName, Arc<Object>>,
    /// Resource version at which an object was known to be deleted, so that a late observation does not restore it.
    graves: BTreeMap<NamespacedName, u64>,
}

/// The known state of the cluster.
#[derive(Clone, Default)]
pub struct World {
    stores: BTreeMap<GroupKind, Store>,
    index: BTreeMap<IndexKey, BTreeMap<(GroupKind, NamespacedName), Arc<Object>>>,
    facts: BTreeMap<FactKey, Fact>,
    /// The objects that cannot be read: usually none.
    unreadable: BTreeSet<(GroupKind, NamespacedName)>,
}

fn version(json: &Value) -> u64 {
    object::resource_version(json).parse().unwrap_or_default()
}

fn key(json: &Value) -> NamespacedName {
    (object::namespace(json).to_owned(), object::name(json).to_owned())
}

impl World {
    /// Creates an empty World.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records an observation of an object. `None` when it is older than, or equal to, the known state. A caller that needs
    /// to handle a ClusterServiceVersion becoming a copy calls [`World::turned`] first.
    pub fn apply(&mut self, json: Value) -> Option<Change> {
        self.turned(&json);
        let gk = GroupKind::kept_as(&json);
        let (name, old) = self.before(&gk, &json)?;
        if old.as_ref().is_some_and(|old| old.is(&json)) {
            return None;
        }
        self.unreadable.remove(&(gk.clone(), name.clone()));
        let index = index::keys(&gk, &json).into_iter().collect();
        let new = Object::new(&gk, json);
        Some(self.put(gk, name, old, index, new))
    }

    /// Records that an object exists and cannot be read. `None` when that is known, or older than the known state.
    pub fn apply_unreadable(&mut self, object: Unreadable) -> Option<Change> {
        self.turned(&object.stub);
        let gk = GroupKind::kept_as(&object.stub);
        let (name, old) = self.before(&gk, &object.stub)?;
        if old.as_ref().is_some_and(|old| old.unreadable() == Some(&object)) {
            return None;
        }
        self.unreadable.insert((gk.clone(), name.clone()));
        let index = index::keys(&gk, &object.stub).into_iter().collect();
        Some(self.put(gk, name, old, index, Object::unread(object)))
    }

    /// Returns the name of an observed object, and its known state. `None` when the observation is older than that.
    fn before(&self, gk: &GroupKind, json: &Value) -> Option<(NamespacedName, Option<Arc<Object>>)> {
        let name = key(json);
        let store = self.stores.get(gk);
        if store.and_then(|store| store.graves.get(&name)).is_some_and(|rv| version(json) <= *rv) {
            return None;
        }
        let old = store.and_then(|store| store.objects.get(&name)).cloned();
        let is_stale = old.as_ref().is_some_and(|old| version(json) < old.version);
        (!is_stale || version(json) == 0).then_some((name, old))
    }

    /// Replaces the known state of an object.
    fn put(
        &mut self,
        gk: GroupKind,
        name: NamespacedName,
        old: Option<Arc<Object>>,
        mut index: BTreeSet<IndexKey>,
        new: Object,
    ) -> Change {
        let replaced = old.as_ref().is_some_and(|old| object::uid(old.json()) != object::uid(new.json()));
        let new = Arc::new(new);
        for key in &index {
            self.index.entry(key.clone()).or_default().insert((gk.clone(), name.clone()), new.clone());
        }
        if let Some(old) = &old {
            for key in index::keys(&gk, old.json()) {
                if !index.contains(&key) {
                    self.unindex(&key, &gk, &name);
                    index.insert(key);
                }
            }
        }
        let store = self.stores.entry(gk.clone()).or_default();
        store.graves.remove(&name);
        store.objects.insert(name.clone(), new);
        Change { kind: gk, name, index, membership: old.is_none() || replaced }
    }

    /// Records that an object was deleted. `uid` and `resource_version` identify the deleted object; both may be unknown
    /// (`""`, 0).
    pub fn delete(
        &mut self,
        gk: &GroupKind,
        name: &NamespacedName,
        uid: &str,
        resource_version: u64,
    ) -> Option<Change> {
        let store = self.stores.get_mut(gk)?;
        let old = store.objects.get(name)?.clone();
        let another_life = !uid.is_empty() && object::uid(old.json()) != uid;
        if another_life && old.version > resource_version {
            return None;
        }
        store.objects.remove(name);
        store.graves.insert(name.clone(), resource_version.max(old.version));
        self.unreadable.remove(&(gk.clone(), name.clone()));
        let index: BTreeSet<IndexKey> = index::keys(gk, old.json()).into_iter().collect();
        for key in &index {
            self.unindex(key, gk, name);
        }
        Some(Change { kind: gk.clone(), name: name.clone(), index, membership: true })
    }

    /// Removes a ClusterServiceVersion that has become a copy, or is no longer one.
    pub fn turned(&mut self, json: &Value) -> Option<Change> {
        let before = match GroupKind::kept_as(json) {
            gk if gk == kind::CLUSTER_SERVICE_VERSION => kind::COPIED_CSV,
            gk if gk == kind::COPIED_CSV => kind::CLUSTER_SERVICE_VERSION,
            _ => return None,
        };
        let name = key(json);
        let old = self.stores.get(&before)?.objects.get(&name)?;
        if old.version > version(json) {
            return None;
        }
        self.delete(&before, &name, "", version(json))
    }

    /// Replaces all objects of a kind by a complete list of them, made at `resource_version`. Unreadable objects are part
    /// of the list.
    pub fn reset(
        &mut self,
        gk: &GroupKind,
        objects: Vec<Value>,
        unreadable: Vec<Unreadable>,
        resource_version: u64,
    ) -> Vec<Change> {
        let listed: BTreeSet<NamespacedName> =
            objects.iter().chain(unreadable.iter().map(|object| &object.stub)).map(key).collect();
        let gone: Vec<(NamespacedName, Arc<Object>)> = self
            .stores
            .get(gk)
            .into_iter()
            .flat_map(|s| &s.objects)
            .filter(|(name, o)| !listed.contains(*name) && o.version <= resource_version)
            .map(|(name, o)| (name.clone(), o.clone()))
            .collect();
        let mut changes: Vec<Change> = gone
            .iter()
            .filter_map(|(name, o)| self.delete(gk, name, object::uid(o.json()), resource_version))
            .collect();
        changes.extend(objects.into_iter().filter_map(|json| self.apply(json)));
        changes.extend(unreadable.into_iter().filter_map(|object| self.apply_unreadable(object)));
        if let Some(store) = self.stores.get_mut(gk) {
            store.graves.retain(|_, rv| *rv > resource_version);
        }
        changes
    }

    /// Records a fact. `false` when it was already known.
    pub fn learn(&mut self, key: FactKey, fact: Option<Fact>) -> bool {
        let fact = match (fact, self.facts.get(&key)) {
            (Some(Fact::Discovery(new)), Some(Fact::Discovery(known))) => Some(Fact::Discovery(new.after(Some(known)))),
            (fact, _) => fact,
        };
        match fact {
            Some(fact) if self.facts.get(&key) == Some(&fact) => false,
            Some(fact) => {
                self.facts.insert(key, fact);
                true
            }
            None => self.facts.remove(&key).is_some(),
        }
    }

    /// Returns whether the object is known.
    pub fn knows(&self, target: &ObjectRef) -> bool {
        let store = self.stores.get(&GroupKind::new(&target.gvk.group, &target.gvk.kind));
        store.is_some_and(|s| s.objects.contains_key(&(target.namespace.clone(), target.name.clone())))
    }

    /// Returns the groups and versions whose kinds are known from the API server's discovery.
    pub fn discovered(&self) -> impl Iterator<Item = (&str, &str)> {
        let first = FactKey::Discovery(String::new(), String::new());
        self.facts.range(first..).map_while(|(key, _)| match key {
            FactKey::Discovery(group, version) => Some((group.as_str(), version.as_str())),
            _ => None,
        })
    }

    /// Returns the catalogs whose state is known, by namespace and name.
    pub fn catalogs(&self) -> impl Iterator<Item = (&str, &str, &CatalogFact)> {
        let first = FactKey::Catalog(String::new(), String::new());
        self.facts.range(first..).map_while(|(key, fact)| match (key, fact) {
            (FactKey::Catalog(namespace, name), Fact::Catalog(fact)) => Some((namespace.as_str(), name.as_str(), fact)),
            _ => None,
        })
    }

    /// Returns whether the image of a bundle is being pulled.
    pub fn is_unpacking(&self) -> bool {
        self.facts.values().any(|fact| matches!(fact, Fact::Bundle(unpacking) if unpacking.running))
    }

    /// Returns whether the object is known in this state or a newer one.
    pub fn knows_state(&self, json: &Value) -> bool {
        let store = self.stores.get(&GroupKind::kept_as(json));
        let known = store.and_then(|s| s.objects.get(&key(json))).map(|o| o.version);
        let gone = store.and_then(|s| s.graves.get(&key(json))).copied();
        known.max(gone) >= Some(version(json))
    }

    /// Returns every object, by kind and name.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.stores.values().flat_map(|s| s.objects.values())
    }

    /// Returns the objects that cannot be read.
    pub fn unreadable(&self) -> impl Iterator<Item = &Unreadable> {
        let object = |(gk, name): &(GroupKind, NamespacedName)| self.stores.get(gk)?.objects.get(name);
        self.unreadable.iter().filter_map(object).filter_map(|object| object.unreadable())
    }

    /// Returns whether all of these reads are of single objects, of owners' objects, and of facts, none of which is known.
    pub(crate) fn knows_none_of(&self, reads: &BTreeSet<Read>) -> bool {
        reads.iter().all(|read| match read {
            Read::Object(gk, name) => !self.stores.get(gk).is_some_and(|s| s.objects.contains_key(name)),
            Read::Fact(FactKey::Refusals(_)) => true,
            Read::Fact(key) => !self.facts.contains_key(key),
            Read::Index(key @ IndexKey::OwnerLabels { .. }) => !self.index.contains_key(key),
            Read::Kind(_) | Read::Names(_) | Read::Namespace(..) | Read::Index(_) => false,
        })
    }

    fn unindex(&mut self, key: &IndexKey, gk: &GroupKind, name: &NamespacedName) {
        if let Some(entry) = self.index.get_mut(key) {
            entry.remove(&(gk.clone(), name.clone()));
            if entry.is_empty() {
                self.index.remove(key);
            }
        }
    }
}
