//! The resource kinds that the server knows: names, scope, versions, and the schema of each version.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use crate::api::kinds::{self, Kind};
use crate::api::object::{Gvk, list, text};
use crate::api::status::Status;

/// A kind that the server stores. Each object is stored once per group and kind, in the storage version.
#[derive(Clone, Debug)]
pub struct ResourceKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind, for example `Deployment`.
    pub kind: String,
    /// Plural, for example `deployments`.
    pub plural: String,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
    /// Every version, served or not.
    pub versions: Vec<KindVersion>,
    /// The name of the version that objects are stored and read in.
    pub storage_version: String,
}

/// One version of a kind.
#[derive(Clone, Debug)]
pub struct KindVersion {
    /// Name, for example `v1`.
    pub name: String,
    /// Whether the server serves requests in this version.
    pub served: bool,
    /// Whether the status is a subresource.
    pub status: bool,
    /// The schema of its objects.
    pub schema: KindSchema,
}

/// How the objects of a version are decoded.
#[derive(Clone, Debug)]
pub enum KindSchema {
    /// One of Kubernetes' own types, by its OpenAPI name (`io.k8s.api.core.v1.Pod`): unknown fields are dropped, and the rest
    /// is decoded as in Go.
    BuiltIn(&'static str),
    /// A structural schema, as in the `openAPIV3Schema` of a CustomResourceDefinition.
    Structural(Arc<Value>),
    /// All fields are preserved.
    Anything,
}

impl ResourceKind {
    /// Creates a kind with one version whose objects preserve all fields and whose status, if any, is an ordinary field.
    pub fn new(gvk: &Gvk, plural: &str, namespaced: bool) -> Self {
        let version =
            KindVersion { name: gvk.version.clone(), served: true, status: false, schema: KindSchema::Anything };
        Self {
            group: gvk.group.clone(),
            kind: gvk.kind.clone(),
            plural: plural.to_owned(),
            namespaced,
            storage_version: gvk.version.clone(),
            versions: vec![version],
        }
    }

    /// Returns the kind that a CustomResourceDefinition defines, or `None` if it has no storage version.
    pub fn from_crd(crd: &Value) -> Option<Self> {
        let versions = list(crd, &["spec", "versions"]);
        let storage = versions.iter().find(|v| v["storage"] == json!(true))?;
        Some(Self {
            group: text(crd, &["spec", "group"]).to_owned(),
            kind: text(crd, &["spec", "names", "kind"]).to_owned(),
            plural: text(crd, &["spec", "names", "plural"]).to_owned(),
            namespaced: text(crd, &["spec", "scope"]) != "Cluster",
            storage_version: text(storage, &["name"]).to_owned(),
            versions: versions.iter().map(version_of_crd).collect(),
        })
    }

    /// Returns `plural.group`, as error messages name the resource; the plural alone in the core group.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Returns `Kind.group`, as error messages about invalid objects name the kind.
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// Returns the `apiVersion` in which its objects are stored.
    pub fn storage_api_version(&self) -> String {
        Gvk::new(&self.group, &self.storage_version, &self.kind).api_version()
    }

    /// Returns whether it is one of Kubernetes' own types, not defined by a CustomResourceDefinition.
    pub fn is_built_in(&self) -> bool {
        self.versions.iter().any(|v| matches!(v.schema, KindSchema::BuiltIn(_)))
    }

    /// Returns whether it is defined by a CustomResourceDefinition.
    pub fn is_from_crd(&self) -> bool {
        self.versions.iter().any(|v| matches!(v.schema, KindSchema::Structural(_)))
    }

    pub(super) fn version(&self, name: &str) -> Option<&KindVersion> {
        self.versions.iter().find(|v| v.name == name)
    }
}

fn version_of_crd(version: &Value) -> KindVersion {
    let schema = match version.pointer("/schema/openAPIV3Schema") {
        Some(schema) => KindSchema::Structural(Arc::new(schema.clone())),
        None => KindSchema::Anything,
    };
    KindVersion {
        name: text(version, &["name"]).to_owned(),
        served: version["served"] == json!(true),
        status: !version.pointer("/subresources/status").unwrap_or(&Value::Null).is_null(),
        schema,
    }
}

/// The kinds by group and kind.
#[derive(Clone, Debug)]
pub(super) struct Kinds(BTreeMap<(String, String), Arc<ResourceKind>>);

impl Kinds {
    /// Returns Kubernetes' own kinds.
    pub(super) fn built_in() -> Self {
        Self(BUILT_IN.iter().map(|k| ((k.group.clone(), k.kind.clone()), Arc::clone(k))).collect())
    }

    pub(super) fn register(&mut self, kind: ResourceKind) {
        self.0.insert((kind.group.clone(), kind.kind.clone()), Arc::new(kind));
    }

    pub(super) fn remove(&mut self, group: &str, kind: &str) {
        self.0.remove(&(group.to_owned(), kind.to_owned()));
    }

    pub(super) fn get(&self, group: &str, kind: &str) -> Option<&Arc<ResourceKind>> {
        self.0.get(&(group.to_owned(), kind.to_owned()))
    }

    /// Returns the kind if its version is served, otherwise the error of Kubernetes' clients for an unknown path.
    pub(super) fn served(&self, gvk: &Gvk) -> Result<Arc<ResourceKind>, Status> {
        self.get(&gvk.group, &gvk.kind)
            .filter(|kind| kind.version(&gvk.version).is_some_and(|v| v.served))
            .cloned()
            .ok_or_else(|| Status::new(404, "NotFound", "the server could not find the requested resource"))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<ResourceKind>> {
        self.0.values()
    }

    /// Returns the kind with this group and plural.
    pub(super) fn by_plural(&self, group: &str, plural: &str) -> Option<&Arc<ResourceKind>> {
        self.0.values().find(|k| k.group == group && k.plural == plural)
    }
}

/// Returns the discovery entry of a kind (`/apis/<group>/<version>`).
pub(super) fn discovery_entry(kind: &ResourceKind) -> Value {
    let mut entry = Map::new();
    entry.insert("name".into(), kind.plural.clone().into());
    entry.insert("kind".into(), kind.kind.clone().into());
    entry.insert("namespaced".into(), kind.namespaced.into());
    Value::Object(entry)
}

macro_rules! kinds {
    ($($name:ident $($status:ident)? $schema:literal $(+ $version:literal)*;)*) => {
        vec![$(built_in(&kinds::$name, kinds!(@has $($status)?), concat!("io.k8s.", $schema), &[$($version),*])),*]
    };
    (@has status) => { true };
    (@has) => { false };
}

/// Creates one of Kubernetes' own kinds: whether it has a status, the schema of its objects, and its further versions.
fn built_in(kind: &Kind, status: bool, schema: &'static str, others: &[&str]) -> Arc<ResourceKind> {
    let versions = std::iter::once(&kind.version).chain(others);
    let version = |name: &&str| KindVersion {
        name: (*name).to_owned(),
        served: true,
        status,
        schema: KindSchema::BuiltIn(schema),
    };
    Arc::new(ResourceKind {
        group: kind.group.to_owned(),
        kind: kind.kind.to_owned(),
        plural: kind.plural.to_owned(),
        namespaced: kind.namespaced,
        storage_version: kind.version.to_owned(),
        versions: versions.map(version).collect(),
    })
}

/// The kinds of Kubernetes 1.36 that operators and their bundles use. The first of several versions is the storage version.
static BUILT_IN: LazyLock<Vec<Arc<ResourceKind>>> = LazyLock::new(|| {
    kinds! {
        CONFIG_MAP "api.core.v1.ConfigMap";
        ENDPOINTS "api.core.v1.Endpoints";
        EVENT "api.core.v1.Event";
        LIMIT_RANGE "api.core.v1.LimitRange";
        NAMESPACE status "api.core.v1.Namespace";
        NODE status "api.core.v1.Node";
        PERSISTENT_VOLUME_CLAIM status "api.core.v1.PersistentVolumeClaim";
        PERSISTENT_VOLUME status "api.core.v1.PersistentVolume";
        POD status "api.core.v1.Pod";
        RESOURCE_QUOTA status "api.core.v1.ResourceQuota";
        SECRET "api.core.v1.Secret";
        SERVICE_ACCOUNT "api.core.v1.ServiceAccount";
        SERVICE status "api.core.v1.Service";
        MUTATING_WEBHOOK_CONFIGURATION "api.admissionregistration.v1.MutatingWebhookConfiguration";
        VALIDATING_WEBHOOK_CONFIGURATION "api.admissionregistration.v1.ValidatingWebhookConfiguration";
        CUSTOM_RESOURCE_DEFINITION status "apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
        API_SERVICE status "kube-aggregator.pkg.apis.apiregistration.v1.APIService";
        DAEMON_SET status "api.apps.v1.DaemonSet";
        DEPLOYMENT status "api.apps.v1.Deployment";
        REPLICA_SET status "api.apps.v1.ReplicaSet";
        STATEFUL_SET status "api.apps.v1.StatefulSet";
        HORIZONTAL_POD_AUTOSCALER status "api.autoscaling.v2.HorizontalPodAutoscaler" + "v1";
        CRON_JOB status "api.batch.v1.CronJob";
        JOB status "api.batch.v1.Job";
        LEASE "api.coordination.v1.Lease";
        ENDPOINT_SLICE "api.discovery.v1.EndpointSlice";
        INGRESS_CLASS "api.networking.v1.IngressClass";
        INGRESS status "api.networking.v1.Ingress";
        NETWORK_POLICY "api.networking.v1.NetworkPolicy";
        RUNTIME_CLASS "api.node.v1.RuntimeClass";
        POD_DISRUPTION_BUDGET status "api.policy.v1.PodDisruptionBudget";
        CLUSTER_ROLE_BINDING "api.rbac.v1.ClusterRoleBinding";
        CLUSTER_ROLE "api.rbac.v1.ClusterRole";
        ROLE_BINDING "api.rbac.v1.RoleBinding";
        ROLE "api.rbac.v1.Role";
        PRIORITY_CLASS "api.scheduling.v1.PriorityClass";
        CSI_DRIVER "api.storage.v1.CSIDriver";
        STORAGE_CLASS "api.storage.v1.StorageClass";
    }
});
