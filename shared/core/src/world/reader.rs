//! Reads the World, and records what was read.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::kind;
use super::{CatalogFact, Discovery, Fact, FactKey, GroupKind, IndexKey, NamespacedName, Object, Refusal, World};
use crate::bundle::{BundleImage, Unpacking};
use crate::plan::Key;
use crate::structural::{SchemaCheck, SchemaCheckResult};

/// Something that a plan has read; when it changes, the plan is made again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Read {
    /// One object, existing or not.
    Object(GroupKind, NamespacedName),
    /// All objects of a kind.
    Kind(GroupKind),
    /// The names of all objects of a kind, without their content.
    Names(GroupKind),
    /// All objects of a kind in a namespace.
    Namespace(GroupKind, String),
    /// The objects in an index entry.
    Index(IndexKey),
    /// A fact, known or not.
    Fact(FactKey),
}

/// Reads the World for one plan.
pub struct Reader<'w> {
    world: &'w World,
    reads: RefCell<BTreeSet<Read>>,
    resolved: Cell<Option<bool>>,
}

impl<'w> Reader<'w> {
    /// Creates a reader without reads.
    pub fn new(world: &'w World) -> Self {
        Self { world, reads: RefCell::default(), resolved: Cell::new(None) }
    }

    /// Returns what was read.
    pub fn into_reads(self) -> BTreeSet<Read> {
        self.reads.into_inner()
    }

    /// Records, for metrics, that the dependencies of Subscriptions were resolved, and whether this succeeded.
    pub fn note_resolution(&self, succeeded: bool) {
        self.resolved.set(Some(succeeded));
    }

    /// Returns whether dependencies were resolved, and whether this succeeded.
    pub fn resolution(&self) -> Option<bool> {
        self.resolved.get()
    }

    fn note(&self, read: Read) {
        self.reads.borrow_mut().insert(read);
    }

    /// Returns the object of that kind, namespace (empty when cluster-scoped) and name. A ClusterServiceVersion may be a
    /// copy.
    pub fn object(&self, gk: &GroupKind, namespace: &str, name: &str) -> Option<&'w Arc<Object>> {
        let name = (namespace.to_owned(), name.to_owned());
        let found = self.world.stores.get(gk).and_then(|s| s.objects.get(&name));
        self.note(Read::Object(gk.clone(), name.clone()));
        if found.is_none() && *gk == kind::CLUSTER_SERVICE_VERSION {
            return self.object(&kind::COPIED_CSV, &name.0, &name.1);
        }
        found
    }

    /// Returns the object's JSON.
    pub fn json(&self, gk: &GroupKind, namespace: &str, name: &str) -> Option<&'w Value> {
        self.object(gk, namespace, name).map(|o| o.json())
    }

    /// Returns all objects of a kind, by namespace and name. Copies follow all other ClusterServiceVersions.
    pub fn all(&self, gk: &GroupKind) -> impl Iterator<Item = &'w Arc<Object>> + use<'w> {
        let copies = (*gk == kind::CLUSTER_SERVICE_VERSION).then_some(kind::COPIED_CSV);
        let of_kind = |gk: GroupKind| {
            let store = self.world.stores.get(&gk);
            self.note(Read::Kind(gk));
            store
        };
        let stores = [of_kind(gk.clone()), copies.and_then(of_kind)];
        stores.into_iter().flatten().flat_map(|s| s.objects.values())
    }

    /// Returns the names of all objects of a kind. A cheaper dependency than [`Reader::all`]: only creation and deletion
    /// are changes.
    pub fn names(&self, gk: &GroupKind) -> impl Iterator<Item = &'w NamespacedName> + use<'w> {
        self.note(Read::Names(gk.clone()));
        self.world.stores.get(gk).into_iter().flat_map(|s| s.objects.keys())
    }

    /// Returns all objects of a kind in a namespace, by name, without copied ClusterServiceVersions.
    pub fn in_namespace(&self, gk: &GroupKind, namespace: &str) -> impl Iterator<Item = &'w Arc<Object>> + use<'w> {
        self.note(Read::Namespace(gk.clone(), namespace.to_owned()));
        let namespace = namespace.to_owned();
        let start = (namespace.clone(), String::new());
        self.world
            .stores
            .get(gk)
            .into_iter()
            .flat_map(move |s| s.objects.range(start.clone()..))
            .take_while(move |((ns, _), _)| *ns == namespace)
            .map(|(_, o)| o)
    }

    /// Returns the objects in an index entry, of every kind, by kind, namespace and name.
    pub fn indexed(&self, key: IndexKey) -> Vec<&'w Arc<Object>> {
        let entry = self.world.index.get(&key);
        self.note(Read::Index(key));
        entry.into_iter().flat_map(BTreeMap::values).collect()
    }

    /// Returns the copies of a ClusterServiceVersion with their namespaces, by namespace.
    pub fn copies(&self, namespace: &str, name: &str) -> impl Iterator<Item = (&'w str, &'w Arc<Object>)> + use<'w> {
        let key = IndexKey::CopyOf(namespace.to_owned(), name.to_owned());
        let entry = self.world.index.get(&key);
        self.note(Read::Index(key));
        entry.into_iter().flatten().map(|((_, (namespace, _)), copy)| (namespace.as_str(), copy))
    }

    /// Returns the state of a catalog.
    pub fn catalog(&self, namespace: &str, name: &str) -> Option<&'w CatalogFact> {
        match self.fact(FactKey::Catalog(namespace.to_owned(), name.to_owned()))? {
            Fact::Catalog(fact) => Some(fact),
            _ => None,
        }
    }

    /// Returns the catalogs of a namespace that were given as local directories.
    pub fn local_catalogs(&self, namespace: &str) -> Vec<(&'w str, &'w CatalogFact)> {
        let start = FactKey::catalogs_of(namespace);
        self.note(Read::Fact(start.clone()));
        self.world
            .facts
            .range(start..)
            .map_while(|(key, fact)| match (key, fact) {
                (FactKey::Catalog(ns, name), Fact::Catalog(fact)) if ns == namespace => Some((name.as_str(), fact)),
                _ => None,
            })
            .filter(|(_, fact)| fact.is_local())
            .collect()
    }

    /// Returns the state of unpacking a bundle image; `None` when it was not requested.
    pub fn bundle(&self, image: &BundleImage) -> Option<&'w Unpacking> {
        match self.fact(FactKey::Bundle(image.clone()))? {
            Fact::Bundle(unpacking) => Some(unpacking),
            _ => None,
        }
    }

    /// Returns the bundle images that were requested in a namespace.
    pub fn bundles_of(&self, namespace: &str) -> Vec<&'w BundleImage> {
        let start = FactKey::bundles_of(namespace);
        self.note(Read::Fact(start.clone()));
        let of_namespace = |key: &'w FactKey| match key {
            FactKey::Bundle(bundle) if bundle.namespace == namespace => Some(bundle),
            _ => None,
        };
        self.world.facts.range(start..).map_while(|(key, _)| of_namespace(key)).collect()
    }

    /// Returns the API server's `gitVersion`.
    pub fn server_version(&self) -> Option<&'w str> {
        match self.fact(FactKey::ServerVersion)? {
            Fact::ServerVersion(version) => Some(version),
            _ => None,
        }
    }

    /// Returns the kinds that the API server serves in a version of a group; `None` when not requested yet.
    pub fn discovery(&self, group: &str, version: &str) -> Option<&'w Discovery> {
        match self.fact(FactKey::Discovery(group.to_owned(), version.to_owned()))? {
            Fact::Discovery(discovery) => Some(discovery),
            _ => None,
        }
    }

    /// Returns the actions of a key's plan that the API server refused.
    pub fn refusals(&self, key: &Key) -> &'w [Refusal] {
        match self.fact(FactKey::Refusals(key.clone())) {
            Some(Fact::Refusals(refusals)) => refusals,
            _ => &[],
        }
    }

    /// Returns the result of a check of custom resources.
    pub fn schema_check(&self, question: &SchemaCheck) -> Option<&'w SchemaCheckResult> {
        match self.fact(FactKey::SchemaCheck(question.crd.clone(), question.digest()))? {
            Fact::SchemaCheck(fact) => Some(fact),
            _ => None,
        }
    }

    /// Returns a fact.
    pub fn fact(&self, key: FactKey) -> Option<&'w Fact> {
        let fact = self.world.facts.get(&key);
        self.note(Read::Fact(key));
        fact
    }
}
