//! The result of reading: objects and catalogs as a World, the kinds that are served, and what could not be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::catalog::Snapshot;
use olm_core::settings::Settings;
use olm_core::world::{CatalogFact, Fact, FactKey, GroupKind, Known, World, trim};
use serde_json::Value;

use super::list::{self, Listed, Reduced, reduced};
use super::read_failure::ReadFailure;
use super::scope;
use super::served::Served;
use crate::cluster::api::Api;
use crate::cluster::request_error::RequestError;

/// The state of a cluster, or of one that files describe.
pub struct ClusterState {
    /// The objects, and the catalogs as facts.
    pub world: World,
    /// The requested namespace; `None` for all namespaces.
    pub namespace: Option<String>,
    /// The kinds that the API server serves.
    pub served: Served,
    /// The places of objects from files: `file:line`.
    pub places: BTreeMap<ObjectRef, String>,
    /// What could not be read.
    pub read_failures: Vec<ReadFailure>,
    /// The settings of the controllers.
    pub settings: Settings,
    /// The time of reading.
    pub at: Timestamp,
    /// The objects of the overlay.
    pub on_top: Vec<ObjectRef>,
    /// The lists from which changes can be watched.
    pub(super) lists: Vec<Listed>,
    /// The client of the cluster; `None` if files were read.
    pub(super) api: Option<Api>,
}

impl ClusterState {
    /// Returns the client of the cluster; `None` if files were read.
    pub fn api(&self) -> Option<&Api> {
        self.api.as_ref()
    }

    /// Returns a state for a dry run: only these objects and catalogs, the same kinds, and no cluster.
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
            read_failures: Vec::new(),
            settings: self.settings.clone(),
            at: self.at,
            on_top: Vec::new(),
            lists: Vec::new(),
            api: None,
        }
    }

    /// Assumes that these kinds are served.
    pub(crate) fn serve(&mut self, kinds: impl IntoIterator<Item = Gvk>) {
        kinds.into_iter().for_each(|gvk| self.served.add(gvk, None));
    }

    /// Returns whether the object is in a requested namespace.
    pub fn is_requested(&self, object: &Value) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| namespace == object::namespace(object))
    }

    /// Reads single objects of any kind into the World. Objects that cannot be read are read failures; objects of kinds that are not
    /// served do not exist.
    pub async fn read_objects(&mut self, targets: impl IntoIterator<Item = ObjectRef>) {
        let Some(api) = self.api.clone() else { return };
        let missing: Vec<ObjectRef> = targets.into_iter().filter(|target| !self.world.knows(target)).collect();
        for (target, answer) in list::get(&api, missing).await {
            match answer {
                Ok(Some(mut object)) => {
                    // A private key is never needed.
                    if target.gvk.kind == kinds::SECRET.kind {
                        trim(&mut object);
                    }
                    self.world.apply(object);
                }
                Ok(None) => {}
                Err(refusal) if refusal.is_not_found() => {}
                Err(refusal) => self.read_failures.push(ReadFailure::get(&target, &refusal)),
            }
        }
    }

    /// Lists the objects of a kind of OLM or Kubernetes into the World, in one namespace, or in all namespaces if it is empty. A refused
    /// list is a read failure.
    pub(crate) async fn read_kind(&mut self, gk: &GroupKind, namespace: &str) {
        self.read_kinds([(gk.clone(), namespace)]).await;
    }

    /// As [`Self::read_kind`], for several kinds and namespaces.
    pub(crate) async fn read_kinds<'a>(&mut self, lists: impl IntoIterator<Item = (GroupKind, &'a str)>) {
        let Some(api) = self.api.clone() else { return };
        let known =
            lists.into_iter().filter_map(|(gk, namespace)| Some((kinds::find(&gk.group, &gk.kind)?, namespace)));
        let known: Vec<(&Kind, &str)> = known.collect();
        for part in known.chunks(list::REQUESTS) {
            let answers = part.iter().map(|(kind, namespace)| list::listed(&api, kind, namespace, Some(trimmed)));
            let answers = join_all(answers.collect::<Vec<_>>()).await;
            for ((kind, namespace), answer) in part.iter().zip(answers) {
                match answer {
                    Ok((listed, objects, failures)) => {
                        self.lists.push(listed);
                        self.read_failures.extend(failures);
                        for object in objects {
                            self.world.apply(object);
                        }
                    }
                    Err(refusal) => self.read_failures.push(ReadFailure::list(kind, namespace, &refusal)),
                }
            }
        }
    }

    /// Lists objects into the World, page by page. A refused list is a read failure; of a kind that is not served there are no objects.
    ///
    /// # Errors
    /// The API server did not respond, or refused everything.
    pub(crate) async fn read_reduced(&mut self, lists: &[Reduced]) -> Result<(), RequestError> {
        let Some(api) = self.api.clone() else { return Ok(()) };
        let answers = join_all(lists.iter().map(|list| reduced(&api, &list.query, list.reduce))).await;
        let mut refused = Vec::new();
        for (Reduced { kind, query, .. }, answer) in lists.iter().zip(answers) {
            match answer {
                Ok((objects, unreadable)) => {
                    self.read_failures.extend(unreadable.iter().map(|object| ReadFailure::unreadable(kind, object)));
                    for object in objects {
                        self.world.apply(object);
                    }
                }
                Err(refusal) if refusal.is_not_found() => {}
                Err(refusal) => {
                    self.read_failures.push(ReadFailure::list(kind, &query.namespace, &refusal));
                    refused.push(RequestError::about("list", &query.resource, &query.namespace, refusal));
                }
            }
        }
        let is_fatal = refused.len() == lists.len() || refused.iter().any(|error| error.status.code == 0);
        let fatal = refused.into_iter().min_by_key(|error| error.status.code).filter(|_| is_fatal);
        fatal.map_or(Ok(()), Err)
    }

    /// Returns of which kinds of the cluster all objects are known, apart from those that were not requested.
    pub(crate) fn known(&self) -> Known {
        let mut known = Known::everything();
        let asked = self.namespace.as_deref().unwrap_or_default();
        for of_kind in kinds::ALL {
            let failures: Vec<&ReadFailure> =
                self.read_failures.iter().filter(|failure| failure.hides(of_kind)).collect();
            let Some(first) = failures.first() else { continue };
            // A resource that cannot be listed in all namespaces was listed in the selected one.
            let in_one =
                of_kind.namespaced && !asked.is_empty() && !failures.iter().any(|failure| failure.namespace == asked);
            let within = if in_one { BTreeSet::from([asked.to_owned()]) } else { BTreeSet::new() };
            known.limit(GroupKind::known(of_kind), within, first.to_string());
        }
        known.about(self.namespace.as_deref())
    }

    /// Sets the namespace of a namespaced object without one, as kubectl does.
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

fn trimmed(mut object: Value) -> Option<Value> {
    trim(&mut object);
    Some(object)
}
