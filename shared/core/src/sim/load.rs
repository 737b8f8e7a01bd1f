//! Loads the state of another server: its objects unchanged, and the kinds that it serves.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::api_server::{ApiServer, read, time};
use super::controllers::establish_definitions;
use super::kinds::{KindSchema, KindVersion, ResourceKind};
use super::store::Key;
use crate::api::kinds;
use crate::api::object::{self, Gvk, ObjectRef, gvk, list, map_mut, namespace, uid};

impl ApiServer {
    /// Loads objects of another server with their uids, timestamps and status. They are not validated.
    /// CustomResourceDefinitions are loaded first, regardless of their order; kinds without a definition are assumed to be
    /// served. References to owners that are not among the objects are removed, so that the dependents are not garbage
    /// collected.
    pub fn load(&mut self, objects: Vec<Value>, now: Timestamp) {
        let is_definition = |o: &Value| object::kind(o) == "CustomResourceDefinition";
        let uids: BTreeSet<String> = objects.iter().map(|o| uid(o).to_owned()).collect();
        let (definitions, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(is_definition);
        for object in definitions {
            self.load_one(object, &uids, now);
        }
        establish_definitions(self, now);
        for object in others {
            self.load_one(object, &uids, now);
        }
    }

    fn load_one(&mut self, object: Value, uids: &BTreeSet<String>, now: Timestamp) {
        let gvk = gvk(&object);
        if self.kind(&gvk.group, &gvk.kind).is_none() {
            self.register(guessed(&gvk, !namespace(&object).is_empty()));
        }
        let Some(kind) = self.kinds.get(&gvk.group, &gvk.kind).cloned() else { return };
        let version = kind.version(&gvk.version).or_else(|| kind.version(&kind.storage_version));
        let mut object = match version {
            Some(version) => read(&kind, version, object.clone()).unwrap_or(object),
            None => object,
        };
        let missing_uid = uid(&object).is_empty().then(|| self.ids.uid());
        let owners: Vec<Value> = list(&object, &["metadata", "ownerReferences"])
            .iter()
            .filter(|owner| uids.contains(object::text(owner, &["uid"])))
            .cloned()
            .collect();
        let metadata = map_mut(&mut object, &["metadata"]);
        if owners.is_empty() {
            metadata.remove("ownerReferences");
        } else {
            metadata.insert("ownerReferences".into(), owners.into());
        }
        metadata.extend(missing_uid.map(|uid| ("uid".to_owned(), uid.into())));
        metadata.entry("creationTimestamp").or_insert_with(|| time(now));
        if kind.is_from_crd() || kind.is_built_in() && kind.versions.iter().any(|v| v.status) {
            metadata.entry("generation").or_insert_with(|| 1.into());
        }
        self.store.put(object);
    }

    /// Serves these kinds in addition to the known ones, each with whether its objects are namespaced. With `complete`, no
    /// other version of the server's built-in kinds is served.
    pub fn serve(&mut self, kinds: &BTreeMap<Gvk, Option<bool>>, complete: bool) {
        for (gvk, namespaced) in kinds {
            match self.kind(&gvk.group, &gvk.kind).cloned() {
                // The CustomResourceDefinition takes precedence.
                Some(known) if known.is_from_crd() || known.version(&gvk.version).is_some() => {}
                Some(mut known) => {
                    known.versions.push(as_it_is(&gvk.version));
                    self.register(known);
                }
                None => self.register(guessed(gvk, namespaced.unwrap_or(true))),
            }
        }
        if !complete {
            return;
        }
        self.unstored.is_listed = true;
        let own: Vec<ResourceKind> = self.kinds().filter(|kind| kind.is_built_in()).cloned().collect();
        for mut kind in own {
            let listed = |v: &KindVersion| kinds.contains_key(&Gvk::new(&kind.group, &v.name, &kind.kind));
            if kind.versions.iter().all(&listed) {
                continue;
            }
            let versions = kind.versions.iter().map(|v| KindVersion { served: listed(v), ..v.clone() }).collect();
            kind.versions = versions;
            self.register(kind);
        }
    }

    /// Creates the missing namespaces of all namespaced objects.
    pub fn make_namespaces(&mut self, now: Timestamp) {
        let used: BTreeSet<String> =
            self.store.iter_own().map(|o| namespace(o).to_owned()).filter(|n| !n.is_empty()).collect();
        for namespace in used {
            self.make_namespace(&namespace, now);
        }
    }

    /// Creates the namespace if it does not exist.
    pub fn make_namespace(&mut self, namespace: &str, now: Timestamp) {
        let target = ObjectRef { gvk: kinds::NAMESPACE.gvk(), namespace: String::new(), name: namespace.to_owned() };
        if self.get(&target).is_none() {
            let made = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
            // An invalid name is an error of the objects, and is refused when they are written.
            let _ = self.create(made, now);
        }
    }

    /// Returns the served versions of a kind, none if the kind is unknown.
    pub fn served_versions(&self, group: &str, kind: &str) -> Vec<&str> {
        let kind = self.kind(group, kind);
        let versions = kind.into_iter().flat_map(|kind| &kind.versions);
        versions.filter(|v| v.served).map(|v| v.name.as_str()).collect()
    }

    /// Returns the object with this group, kind and name, in this namespace or cluster-scoped.
    pub fn find(&self, group: &str, kind: &str, place: &str, called: &str) -> Option<&Value> {
        let kind = self.kind(group, kind)?;
        let place = if kind.namespaced { place } else { "" };
        self.store.get(&Key::new(&kind.group, &kind.kind, place, called))
    }
}

fn as_it_is(version: &str) -> KindVersion {
    KindVersion { name: version.to_owned(), served: true, status: false, schema: KindSchema::Anything }
}

/// Returns a kind of which only the group, version, kind and scope are known.
fn guessed(gvk: &Gvk, namespaced: bool) -> ResourceKind {
    let lower = gvk.kind.to_lowercase();
    let plural = match lower.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{lower}s"),
    };
    ResourceKind::new(gvk, &plural, namespaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_objects_are_unchanged() {
        let now = Timestamp::UNIX_EPOCH;
        let mut server = ApiServer::new(1);
        let owner = |uid: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "soil", "uid": uid });
        let objects = vec![
            json!({ "apiVersion": "garden.example.com/v1", "kind": "Rose", "spec": { "size": 1 }, "status": { "open": true },
                    "metadata": { "name": "red", "namespace": "garden", "uid": "u1", "ownerReferences": [owner("gone")] } }),
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "soil", "namespace": "garden", "uid": "u2",
                    "creationTimestamp": "2020-01-01T00:00:00Z" } }),
            json!({ "apiVersion": "v1", "kind": "Secret",
                    "metadata": { "name": "seed", "namespace": "garden", "uid": "u3", "ownerReferences": [owner("u2")] } }),
        ];
        server.load(objects, now);
        server.make_namespaces(now);
        while server.step(now) {}
        let rose = server.find("garden.example.com", "Rose", "garden", "red").unwrap();
        assert_eq!((&rose["status"], uid(rose)), (&json!({ "open": true }), "u1"));
        assert!(rose["metadata"].get("ownerReferences").is_none());
        let secret = server.find("", "Secret", "garden", "seed").unwrap();
        assert_eq!(list(secret, &["metadata", "ownerReferences"]).len(), 1);
        let soil = server.find("", "ConfigMap", "garden", "soil").unwrap();
        assert_eq!(soil["metadata"]["creationTimestamp"], "2020-01-01T00:00:00Z");
        assert!(server.find("", "Namespace", "", "garden").is_some());
    }

    #[test]
    fn only_what_is_listed_is_served() {
        let mut server = ApiServer::new(1);
        let kind = |group: &str, version: &str, kind: &str| (Gvk::new(group, version, kind), Some(true));
        let listed = BTreeMap::from([kind("", "v1", "Pod"), kind("policy", "v1beta1", "PodDisruptionBudget")]);
        server.serve(&listed, false);
        assert_eq!(server.served_versions("policy", "PodDisruptionBudget"), ["v1", "v1beta1"]);
        server.serve(&listed, true);
        assert_eq!(server.served_versions("policy", "PodDisruptionBudget"), ["v1beta1"]);
        assert_eq!(server.served_versions("", "Pod"), ["v1"]);
        assert!(server.served_versions("apps", "Deployment").is_empty());
    }
}
