//! The in-memory API server: accepts requests, returns objects or errors, and records watch events of all writes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ids::Ids;
use super::kinds::{self, KindSchema, KindVersion, Kinds, ResourceKind};
use super::store::{Key, Store, WatchEvent};
use super::{defaults, strategy, typed, validation};
use crate::api::object::{Gvk, ObjectRef, at, gvk, is_deleting, map_mut, name, namespace, resource_version, text};
use crate::api::status::Status;
use crate::structural;

/// How many names the server tries for `generateName` before it returns an error.
const GENERATE_TRIES: usize = 8;

/// The parts of discovery that do not follow from the stored kinds.
#[derive(Clone, Debug, Default)]
pub(super) struct Unstored {
    /// Whether the list of the server's kinds was complete; then its built-in kinds are only those of the list.
    pub(super) is_listed: bool,
    /// Whether only a part of its kinds is known.
    pub(super) is_partial: bool,
    /// Group versions for which discovery fails, with the error.
    pub(super) hidden: BTreeMap<(String, String), String>,
}

/// An in-memory Kubernetes API server with Kubernetes' own controllers ([`ApiServer::step`]).
///
/// Guarantees: the same seed and the same calls produce the same objects, resource versions and events. A write that changes
/// nothing has no effect. Assumptions: a single user with all permissions; no admission webhooks.
#[derive(Clone, Debug)]
pub struct ApiServer {
    pub(super) kinds: Kinds,
    pub(super) store: Store,
    pub(super) ids: Ids,
    /// The fields that each manager applied last, by uid, subresource and manager.
    pub(super) applied: BTreeMap<(String, String, String), Arc<Value>>,
    /// The generation of each CustomResourceDefinition at which its kind is served, by uid.
    pub(super) served: BTreeMap<String, i64>,
    /// Further results of discovery.
    pub(super) unstored: Unstored,
    /// The resource version at which the controllers last had nothing to do.
    pub(super) quiet_at: Option<u64>,
    pub(super) next_wakeup: Option<Timestamp>,
}

impl ApiServer {
    /// Creates an empty server with Kubernetes' own kinds. Uids and generated names follow from the seed.
    pub fn new(seed: u64) -> Self {
        Self {
            kinds: Kinds::built_in(),
            store: Store::default(),
            ids: Ids::new(seed),
            applied: BTreeMap::new(),
            served: BTreeMap::new(),
            unstored: Unstored::default(),
            quiet_at: None,
            next_wakeup: None,
        }
    }

    /// Creates a server with the objects of every cluster: stock Namespaces, PriorityClasses and the `cluster-admin` role.
    pub fn with_stock_objects(seed: u64, now: Timestamp) -> Self {
        let mut server = Self::new(seed);
        for stock in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            server.add_stock(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stock}}), now);
        }
        for (stock, value) in [("system-cluster-critical", 2_000_000_000_i64), ("system-node-critical", 2_000_001_000)]
        {
            server.add_stock(
                json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": stock}, "value": value}),
                now,
            );
        }
        let everything = json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ]);
        server.add_stock(
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "cluster-admin"}, "rules": everything}),
            now,
        );
        server
    }

    /// Adds a Node with this name and the labels of a Linux node on amd64.
    #[must_use]
    pub fn with_node(mut self, node: &str, now: Timestamp) -> Self {
        self.add_stock(
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": {
                "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": node,
                // The node lifecycle controller keeps these labels equal to the ones above.
                "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
            }}}),
            now,
        );
        self
    }

    /// Ignores the result: stock objects are valid, and an existing one is left as it is.
    fn add_stock(&mut self, object: Value, now: Timestamp) {
        let _ = self.create(object, now);
    }

    /// Registers a kind. Kubernetes' own kinds are registered from the start; a CustomResourceDefinition registers its kind
    /// when it is established.
    pub fn register(&mut self, kind: ResourceKind) {
        self.kinds.register(kind);
    }

    /// Returns the kind with this group and name, if the server knows it.
    pub fn kind(&self, group: &str, kind: &str) -> Option<&ResourceKind> {
        self.kinds.get(group, kind).map(Arc::as_ref)
    }

    /// Returns the kind with this group and plural, if the server knows it.
    pub fn kind_by_plural(&self, group: &str, plural: &str) -> Option<&ResourceKind> {
        self.kinds.by_plural(group, plural).map(Arc::as_ref)
    }

    /// Returns every kind that discovery lists, by group and kind.
    pub fn kinds(&self) -> impl Iterator<Item = &ResourceKind> {
        self.kinds.iter().map(Arc::as_ref)
    }

    /// Returns the resource version of the last write, which is that of every list.
    pub fn resource_version(&self) -> u64 {
        self.store.resource_version()
    }

    /// Returns the object in its storage version.
    pub fn get(&self, target: &ObjectRef) -> Option<&Value> {
        self.store.get(&self.key(target)?)
    }

    /// Returns a ConfigMap, or the message that it does not exist.
    pub(super) fn config_map(&self, namespace: &str, name: &str) -> Result<&Value, String> {
        let target = crate::api::kinds::CONFIG_MAP.object(namespace, name);
        self.get(&target).ok_or_else(|| format!("configmaps \"{name}\" not found"))
    }

    /// Returns the objects of a kind in one namespace or in all, by namespace and name.
    pub fn list(&self, group: &str, kind: &str, namespace: Option<&str>) -> impl Iterator<Item = &Value> + use<'_> {
        self.store.list(group, kind, namespace)
    }

    /// Returns every object, by kind, namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, Value>> {
        self.store.iter()
    }

    /// Returns the events since the last call, in order.
    pub fn drain(&mut self) -> Vec<WatchEvent> {
        self.store.drain()
    }

    /// Creates an object (POST).
    ///
    /// # Errors
    /// Returns the server's error if the kind is not served, the namespace is missing or terminating, the name is taken, or the
    /// object is invalid.
    pub fn create(&mut self, object: Value, now: Timestamp) -> Result<Value, Status> {
        let (kind, mut object) = self.read_for_create(object)?;
        let version = served_version(&kind, &gvk(&object))?;
        let base = text(&object, &["metadata", "generateName"]).to_owned();
        self.admit(&kind, &mut object)?;
        let generated = name(&object).is_empty() && !base.is_empty();
        if !generated {
            return self.insert(&kind, version, object, now);
        }
        for _ in 0..GENERATE_TRIES {
            map_mut(&mut object, &["metadata"]).insert("name".into(), self.ids.name(&base).into());
            if !self.store.contains(&Key::from_object(&object)) {
                break;
            }
        }
        self.insert(&kind, version, object, now)
    }

    /// Returns an object to create as the server reads it, in its namespace, and its kind.
    fn read_for_create(&self, mut object: Value) -> Result<(Arc<ResourceKind>, Value), Status> {
        let gvk = gvk(&object);
        let kind = self.kinds.served(&gvk)?;
        let version = served_version(&kind, &gvk)?;
        strategy::strip_for_create(&kind, version, &mut object);
        let mut object = read(&kind, version, object)?;
        self.place(&kind, &mut object)?;
        Ok((kind, object))
    }

    /// Returns the problems for which the server would refuse to create an object as invalid, each as `FIELD: PROBLEM`. Nothing is
    /// stored.
    ///
    /// # Errors
    /// Returns the server's error if the kind is not served, the namespace is missing, or a field has the wrong type.
    pub fn problems(&self, object: Value) -> Result<Vec<String>, Status> {
        let (kind, mut object) = self.read_for_create(object)?;
        let version = served_version(&kind, &gvk(&object))?;
        strategy::prepare_for_create(&kind, &mut object, &mut self.ids.clone());
        Ok(validation::problems_on_create(&kind, version, &object))
    }

    fn insert(
        &mut self,
        kind: &ResourceKind,
        version: &KindVersion,
        mut object: Value,
        now: Timestamp,
    ) -> Result<Value, Status> {
        let version_given = resource_version(&object).to_owned();
        let metadata = map_mut(&mut object, &["metadata"]);
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"] {
            metadata.remove(field);
        }
        metadata.insert("uid".into(), self.ids.uid().into());
        metadata.insert("creationTimestamp".into(), time(now));
        strategy::prepare_for_create(kind, &mut object, &mut self.ids);
        validation::on_create(kind, version, &object)?;
        if !matches!(version_given.as_str(), "" | "0") {
            return Err(Status::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        if self.store.contains(&Key::from_object(&object)) {
            return Err(Status::already_exists(&kind.resource(), name(&object)));
        }
        Ok(self.store.put(object))
    }

    /// Sets the namespace: none for a cluster-scoped kind, and one that accepts new objects for all others.
    fn place(&self, kind: &ResourceKind, object: &mut Value) -> Result<(), Status> {
        if !kind.namespaced {
            map_mut(object, &["metadata"]).remove("namespace");
            return Ok(());
        }
        let own = namespace(object);
        if own.is_empty() {
            return Err(Status::new(400, "BadRequest", "an empty namespace may not be set during creation"));
        }
        match self.store.get(&Key::new("", "Namespace", "", own)) {
            None => Err(Status::not_found("namespaces", own)),
            Some(namespace) if is_deleting(namespace) => Err(Status::new(
                403,
                "Forbidden",
                format!(
                    "{} {:?} is forbidden: unable to create new content in namespace {own} because it is being terminated",
                    kind.resource(),
                    name(object),
                ),
            )),
            Some(_) => Ok(()),
        }
    }

    /// Applies the admission plugins to a new Pod.
    fn admit(&mut self, kind: &ResourceKind, object: &mut Value) -> Result<(), Status> {
        if (kind.group.as_str(), kind.kind.as_str()) != ("", "Pod") {
            return Ok(());
        }
        let class = text(object, &["spec", "priorityClassName"]).to_owned();
        let forbidden = |why: String| {
            // A name that is still to be generated is unknown here.
            let called = Some(name(object))
                .filter(|own| !own.is_empty())
                .unwrap_or_else(|| text(object, &["metadata", "generateName"]));
            Status::new(403, "Forbidden", format!("pods {called:?} is forbidden: {why}"))
        };
        let priority = match self.store.get(&Key::new("scheduling.k8s.io", "PriorityClass", "", &class)) {
            Some(class) => class["value"].as_i64().unwrap_or_default(),
            None if class.is_empty() => 0,
            None => return Err(forbidden(format!("no PriorityClass with name {class} was found"))),
        };
        let account = text(object, &["spec", "serviceAccountName"]).to_owned();
        let own = namespace(object).to_owned();
        if !matches!(account.as_str(), "" | "default")
            && !self.store.contains(&Key::new("", "ServiceAccount", &own, &account))
        {
            let why = format!("error looking up service account {own}/{account}: serviceaccount {account:?} not found");
            return Err(forbidden(why));
        }
        let suffix = self.ids.suffix();
        defaults::admit_pod(object, priority, &suffix);
        Ok(())
    }

    pub(super) fn key(&self, target: &ObjectRef) -> Option<Key> {
        let kind = self.kinds.get(&target.gvk.group, &target.gvk.kind)?;
        let namespace = if kind.namespaced { &target.namespace } else { "" };
        Some(Key::new(&kind.group, &kind.kind, namespace, &target.name))
    }

    /// Returns the discovery entries of a group version: name, kind and scope of each resource.
    pub fn discovery(&self, group: &str, version: &str) -> Vec<Value> {
        let served = |kind: &&Arc<ResourceKind>| {
            kind.group == group && kind.version(version).is_some_and(|version| version.served)
        };
        self.kinds.iter().filter(served).map(|kind| kinds::discovery_entry(kind)).collect()
    }
}

pub(super) fn served_version<'a>(kind: &'a ResourceKind, gvk: &Gvk) -> Result<&'a KindVersion, Status> {
    kind.version(&gvk.version)
        .ok_or_else(|| Status::new(404, "NotFound", "the server could not find the requested resource"))
}

/// Formats the time as Kubernetes does, in whole seconds.
pub(super) fn time(now: Timestamp) -> Value {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string().into()
}

/// Decodes the object of a request in its version: drops unknown fields, sets defaults, and converts to the storage version.
pub(super) fn read(kind: &ResourceKind, version: &KindVersion, mut object: Value) -> Result<Value, Status> {
    let cannot = |why: String| {
        let message =
            format!("{} in version {:?} cannot be handled as a {}: {why}", kind.kind, version.name, kind.kind);
        Status::new(400, "BadRequest", message)
    };
    if let KindSchema::BuiltIn(type_) = version.schema {
        object = typed::decode(type_, &object).map_err(cannot)?;
    } else {
        let metadata = typed::decode(typed::OBJECT_META, at(&object, &["metadata"])).map_err(cannot)?;
        map_mut(&mut object, &[]).insert("metadata".into(), metadata);
    }
    let metadata = map_mut(&mut object, &["metadata"]);
    metadata.remove("managedFields");
    metadata.remove("selfLink");
    match &version.schema {
        KindSchema::BuiltIn(_) => defaults::apply(&kind.group, &kind.kind, &mut object),
        KindSchema::Structural(schema) => {
            structural::prune(schema, &mut object);
            structural::default(schema, &mut object);
        }
        KindSchema::Anything => {}
    }
    let storage = kind.versions.iter().find(|v| v.name == kind.storage_version && v.name != version.name);
    if let Some(KindVersion { schema: KindSchema::Structural(schema), .. }) = storage {
        structural::default(schema, &mut object);
    }
    let map = map_mut(&mut object, &[]);
    map.insert("apiVersion".into(), kind.storage_api_version().into());
    map.insert("kind".into(), kind.kind.clone().into());
    Ok(object)
}
