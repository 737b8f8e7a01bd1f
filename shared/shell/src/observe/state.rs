//! What was read: objects and catalogs as a World, which kinds are served, and what could not be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::catalog::Snapshot;
use olm_core::settings::Settings;
use olm_core::world::{CatalogFact, Fact, FactKey, GroupKind, World, trim};
use serde_json::Value;

use super::gap::Gap;
use super::list::{self, Listed};
use super::scope;
use super::served::Served;
use crate::cluster::api::Api;

/// The state of a cluster, or what files say of one.
pub struct ClusterState {
    /// The objects, and the catalogs as facts.
    pub world: World,
    /// The namespace to look at; none for all.
    pub namespace: Option<String>,
    /// Which kinds the API server knows.
    pub served: Served,
    /// Where the objects were read that are from files: `file:line`.
    pub places: BTreeMap<ObjectRef, String>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
    /// The choices that controllers would make here.
    pub settings: Settings,
    /// When.
    pub at: Timestamp,
    /// What was given on top.
    pub on_top: Vec<ObjectRef>,
    /// From where on what happens can be watched.
    pub(super) lists: Vec<Listed>,
    /// The cluster; none when files were read.
    pub(super) api: Option<Api>,
}

impl ClusterState {
    /// The cluster that was looked at; none when files were read.
    pub fn api(&self) -> Option<&Api> {
        self.api.as_ref()
    }

    /// A state to try something out in: these objects and no others, and no cluster, but the same kinds, and these catalogs.
    pub(crate) fn sandbox(&self, objects: Vec<Value>, catalogs: BTreeMap<(String, String), Arc<Snapshot>>) -> Self {
        let mut world = World::new();
        for ((namespace, name), snapshot) in catalogs {
            let fact = Fact::Catalog(CatalogFact::local(snapshot, self.at));
            world.learn(FactKey::Catalog(namespace, name), Some(fact));
        }
        let mut served = self.served.clone();
        for object in objects {
            served.add_object(&object);
            world.apply(object);
        }
        Self {
            world,
            namespace: self.namespace.clone(),
            served,
            places: BTreeMap::new(),
            gaps: Vec::new(),
            settings: self.settings.clone(),
            at: self.at,
            on_top: Vec::new(),
            lists: Vec::new(),
            api: None,
        }
    }

    /// Takes it that these kinds are served.
    pub(crate) fn serve(&mut self, kinds: impl IntoIterator<Item = Gvk>) {
        kinds.into_iter().for_each(|gvk| self.served.add(gvk, None));
    }

    /// Is the object in a namespace that is looked at?
    pub fn is_asked(&self, object: &Value) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| namespace == object::namespace(object))
    }

    /// Reads single objects, whatever their kinds: those that are there are in the World afterwards. What may not be read is
    /// a gap; kinds that are not served are not there.
    pub async fn read_objects(&mut self, targets: impl IntoIterator<Item = ObjectRef>) {
        let Some(api) = self.api.clone() else { return };
        let missing: Vec<ObjectRef> = targets.into_iter().filter(|target| !self.world.knows(target)).collect();
        for (target, answer) in list::get(&api, missing).await {
            match answer {
                Ok(Some(object)) => {
                    self.world.apply(object);
                }
                Ok(None) => {}
                Err(refusal) if refusal.is_not_found() => {}
                Err(refusal) => self.gaps.push(Gap::get(&target, &refusal)),
            }
        }
    }

    /// Lists objects of a kind that is read here, in one namespace or (when it is empty) in all. What may not be listed is a gap.
    pub(crate) async fn read_kind(&mut self, gk: &GroupKind, namespace: &str) {
        let Some(api) = self.api.clone() else { return };
        let Some(kind) = scope::find(&gk.group, &gk.kind) else { return };
        match list::listed(&api, kind, namespace).await {
            Ok((objects, gaps)) => {
                self.gaps.extend(gaps);
                for mut object in objects {
                    trim(&mut object);
                    self.world.apply(object);
                }
            }
            Err(refusal) => self.gaps.push(Gap::list(kind, namespace, &refusal)),
        }
    }

    /// Puts an object that says no namespace where kubectl would put it, if it needs one.
    pub(super) fn place(&self, object: &mut Value) {
        if !object::namespace(object).is_empty() {
            return;
        }
        let gvk = object::gvk(object);
        let namespaced = scope::find(&gvk.group, &gvk.kind).is_some_and(|known| known.namespaced);
        if namespaced || self.served.is_namespaced(&gvk) == Some(true) {
            let namespace = self.namespace.as_deref().unwrap_or("default");
            object::map_mut(object, &["metadata"]).insert("namespace".to_owned(), namespace.into());
        }
    }
}
