//! The resource kinds that the server knows: names, scope, versions, and the schema of each version.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use crate::api::object::{Gvk, list, text};
use crate::api::status::Status;

/// A kind that the server stores. Objects are stored once per group and kind, in the storage version.
#[derive(Clone, Debug)]
pub struct ResourceKind {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind, `Deployment`.
    pub kind: String,
    /// Plural, `deployments`.
    pub plural: String,
    /// Do its objects live in a namespace?
    pub namespaced: bool,
    /// Every version, served or not.
    pub versions: Vec<KindVersion>,
    /// The name of the version that objects are stored and read in.
    pub storage_version: String,
}

/// One version of a kind.
#[derive(Clone, Debug)]
pub struct KindVersion {
    /// `v1`.
    pub name: String,
    /// Does the server answer requests in this version?
    pub served: bool,
    /// Is the status written through a subresource of its own?
    pub status: bool,
    /// What its objects look like.
    pub schema: KindSchema,
}

/// How the objects of a version are read.
#[derive(Clone, Debug)]
pub enum KindSchema {
    /// One of Kubernetes' own types, by its name there (`io.k8s.api.core.v1.Pod`): unknown fields are dropped, and the rest is read
    /// as Go reads it.
    BuiltIn(&'static str),
    /// A structural schema, as a CustomResourceDefinition carries it (`openAPIV3Schema`).
    Structural(Arc<Value>),
    /// Every field is kept.
    Anything,
}

impl ResourceKind {
    /// A kind of one version whose objects keep every field and whose status, if it has one, is an ordinary field.
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

    /// The kind that a CustomResourceDefinition defines; none when it has no storage version.
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

    /// `plural.group`, as refusals name it; the plural alone in the core group.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `Kind.group`, as refusals of invalid objects name it.
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// The `apiVersion` that its objects are stored in.
    pub fn storage_api_version(&self) -> String {
        Gvk::new(&self.group, &self.storage_version, &self.kind).api_version()
    }

    /// Is it one of Kubernetes' own types (and not defined by a CustomResourceDefinition)?
    pub fn is_built_in(&self) -> bool {
        self.versions.iter().any(|v| matches!(v.schema, KindSchema::BuiltIn(_)))
    }

    /// Was it defined by a CustomResourceDefinition?
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
    /// Kubernetes' own kinds.
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

    /// The kind, if its version is served; otherwise what Kubernetes' clients say of a path that is not there.
    pub(super) fn served(&self, gvk: &Gvk) -> Result<Arc<ResourceKind>, Status> {
        self.get(&gvk.group, &gvk.kind)
            .filter(|kind| kind.version(&gvk.version).is_some_and(|v| v.served))
            .cloned()
            .ok_or_else(|| Status::new(404, "NotFound", "the server could not find the requested resource"))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<ResourceKind>> {
        self.0.values()
    }

    /// The kind whose group and plural these are.
    pub(super) fn by_plural(&self, group: &str, plural: &str) -> Option<&Arc<ResourceKind>> {
        self.0.values().find(|k| k.group == group && k.plural == plural)
    }
}

/// What discovery (`/apis/<group>/<version>`) lists for a kind.
pub(super) fn discovery_entry(kind: &ResourceKind) -> Value {
    let mut entry = Map::new();
    entry.insert("name".into(), kind.plural.clone().into());
    entry.insert("kind".into(), kind.kind.clone().into());
    entry.insert("namespaced".into(), kind.namespaced.into());
    Value::Object(entry)
}

macro_rules! kinds {
    ($($group:literal $plural:literal $scope:ident $($status:ident)? : $($version:ident)::+ $kind:ident from $module:literal;)*) => {
        vec![$(kinds!(@one $group, $plural, kinds!(@is $scope), kinds!(@has $($status)?), [$($version),+], $kind, $module)),*]
    };
    (@is namespaced) => { true };
    (@is cluster) => { false };
    (@has status) => { true };
    (@has) => { false };
    (@one $group:literal, $plural:literal, $namespaced:expr, $status:expr, [$($version:ident),+], $kind:ident, $module:literal) => {{
        let versions: Vec<KindVersion> = [$(stringify!($version)),+]
            .into_iter()
            .map(|name| KindVersion {
                name: name.to_owned(),
                served: true,
                status: $status,
                schema: KindSchema::BuiltIn(concat!("io.k8s.", $module, ".", stringify!($kind))),
            })
            .collect();
        Arc::new(ResourceKind {
            group: $group.to_owned(),
            kind: stringify!($kind).to_owned(),
            plural: $plural.to_owned(),
            namespaced: $namespaced,
            storage_version: versions[0].name.clone(),
            versions,
        })
    }};
}

/// Kubernetes 1.36's kinds, as far as operators and their bundles use them. Of several versions the first is stored.
static BUILT_IN: LazyLock<Vec<Arc<ResourceKind>>> = LazyLock::new(|| {
    kinds! {
        "" "configmaps" namespaced: v1 ConfigMap from "api.core.v1";
        "" "endpoints" namespaced: v1 Endpoints from "api.core.v1";
        "" "events" namespaced: v1 Event from "api.core.v1";
        "" "limitranges" namespaced: v1 LimitRange from "api.core.v1";
        "" "namespaces" cluster status: v1 Namespace from "api.core.v1";
        "" "nodes" cluster status: v1 Node from "api.core.v1";
        "" "persistentvolumeclaims" namespaced status: v1 PersistentVolumeClaim from "api.core.v1";
        "" "persistentvolumes" cluster status: v1 PersistentVolume from "api.core.v1";
        "" "pods" namespaced status: v1 Pod from "api.core.v1";
        "" "resourcequotas" namespaced status: v1 ResourceQuota from "api.core.v1";
        "" "secrets" namespaced: v1 Secret from "api.core.v1";
        "" "serviceaccounts" namespaced: v1 ServiceAccount from "api.core.v1";
        "" "services" namespaced status: v1 Service from "api.core.v1";
        "admissionregistration.k8s.io" "mutatingwebhookconfigurations" cluster: v1 MutatingWebhookConfiguration from "api.admissionregistration.v1";
        "admissionregistration.k8s.io" "validatingwebhookconfigurations" cluster: v1 ValidatingWebhookConfiguration from "api.admissionregistration.v1";
        "apiextensions.k8s.io" "customresourcedefinitions" cluster status: v1 CustomResourceDefinition from "apiextensions-apiserver.pkg.apis.apiextensions.v1";
        "apiregistration.k8s.io" "apiservices" cluster status: v1 APIService from "kube-aggregator.pkg.apis.apiregistration.v1";
        "apps" "daemonsets" namespaced status: v1 DaemonSet from "api.apps.v1";
        "apps" "deployments" namespaced status: v1 Deployment from "api.apps.v1";
        "apps" "replicasets" namespaced status: v1 ReplicaSet from "api.apps.v1";
        "apps" "statefulsets" namespaced status: v1 StatefulSet from "api.apps.v1";
        "autoscaling" "horizontalpodautoscalers" namespaced status: v2::v1 HorizontalPodAutoscaler from "api.autoscaling.v2";
        "batch" "cronjobs" namespaced status: v1 CronJob from "api.batch.v1";
        "batch" "jobs" namespaced status: v1 Job from "api.batch.v1";
        "coordination.k8s.io" "leases" namespaced: v1 Lease from "api.coordination.v1";
        "discovery.k8s.io" "endpointslices" namespaced: v1 EndpointSlice from "api.discovery.v1";
        "networking.k8s.io" "ingressclasses" cluster: v1 IngressClass from "api.networking.v1";
        "networking.k8s.io" "ingresses" namespaced status: v1 Ingress from "api.networking.v1";
        "networking.k8s.io" "networkpolicies" namespaced: v1 NetworkPolicy from "api.networking.v1";
        "node.k8s.io" "runtimeclasses" cluster: v1 RuntimeClass from "api.node.v1";
        "policy" "poddisruptionbudgets" namespaced status: v1 PodDisruptionBudget from "api.policy.v1";
        "rbac.authorization.k8s.io" "clusterrolebindings" cluster: v1 ClusterRoleBinding from "api.rbac.v1";
        "rbac.authorization.k8s.io" "clusterroles" cluster: v1 ClusterRole from "api.rbac.v1";
        "rbac.authorization.k8s.io" "rolebindings" namespaced: v1 RoleBinding from "api.rbac.v1";
        "rbac.authorization.k8s.io" "roles" namespaced: v1 Role from "api.rbac.v1";
        "scheduling.k8s.io" "priorityclasses" cluster: v1 PriorityClass from "api.scheduling.v1";
        "storage.k8s.io" "csidrivers" cluster: v1 CSIDriver from "api.storage.v1";
        "storage.k8s.io" "storageclasses" cluster: v1 StorageClass from "api.storage.v1";
    }
});
