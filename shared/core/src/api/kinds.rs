//! The kinds that OLM reads and writes: group, version, kind, plural and scope of each, defined in one place.

use serde_json::Value;

use super::object::{self, Gvk, ObjectRef};

/// The API group of OLM's own kinds.
pub const OLM_GROUP: &str = "operators.coreos.com";
/// The API group of Roles and their bindings.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
/// The API group of CustomResourceDefinitions.
pub const API_EXTENSIONS: &str = "apiextensions.k8s.io";
/// The API group of APIServices.
pub const API_REGISTRATION: &str = "apiregistration.k8s.io";
/// The API group of webhook configurations.
pub const ADMISSION_REGISTRATION: &str = "admissionregistration.k8s.io";

/// A kind, in the version that is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// API version, `v1`.
    pub version: &'static str,
    /// Kind, `Deployment`.
    pub kind: &'static str,
    /// The plural, as in URLs, `deployments`.
    pub plural: &'static str,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
}

impl Kind {
    /// Returns group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(self.group, self.version, self.kind)
    }

    /// Returns whether the object is of this kind, in any version.
    pub fn is(&self, object: &Value) -> bool {
        let Gvk { group, kind, .. } = object::gvk(object);
        (group.as_str(), kind.as_str()) == (self.group, self.kind)
    }

    /// Returns `plural.group`, as in the names of CustomResourceDefinitions; the plural alone in the core group.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Returns whether every cluster serves it: its group is stable since before the oldest Kubernetes that is supported.
    pub fn is_always_served(&self) -> bool {
        ["", "apps", "coordination.k8s.io", RBAC_GROUP, API_EXTENSIONS].contains(&self.group)
    }

    /// Returns a reference to the object of that namespace (empty when cluster-scoped) and name.
    pub fn object(&self, namespace: &str, name: &str) -> ObjectRef {
        ObjectRef { gvk: self.gvk(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// Returns the kind of that group and name, if it is one of these.
pub fn find(group: &str, kind: &str) -> Option<&'static Kind> {
    ALL.iter().find(|known| known.group == group && known.kind == kind)
}

macro_rules! kinds {
    ($($name:ident = $group:expr, $version:literal $kind:literal $plural:literal $scope:ident;)*) => {
        $(#[doc = concat!("`", $kind, "`, `", $version, "`.")]
        pub const $name: Kind =
            Kind { group: $group, version: $version, kind: $kind, plural: $plural, namespaced: kinds!(@ $scope) };)*

        /// All kinds.
        pub const ALL: &[Kind] = &[$($name),*];
    };
    (@ namespaced) => { true };
    (@ cluster) => { false };
}

kinds! {
    CATALOG_SOURCE = OLM_GROUP, "v1alpha1" "CatalogSource" "catalogsources" namespaced;
    CLUSTER_SERVICE_VERSION = OLM_GROUP, "v1alpha1" "ClusterServiceVersion" "clusterserviceversions" namespaced;
    INSTALL_PLAN = OLM_GROUP, "v1alpha1" "InstallPlan" "installplans" namespaced;
    OLM_CONFIG = OLM_GROUP, "v1" "OLMConfig" "olmconfigs" cluster;
    OPERATOR = OLM_GROUP, "v1" "Operator" "operators" cluster;
    OPERATOR_CONDITION = OLM_GROUP, "v2" "OperatorCondition" "operatorconditions" namespaced;
    OPERATOR_GROUP = OLM_GROUP, "v1" "OperatorGroup" "operatorgroups" namespaced;
    SUBSCRIPTION = OLM_GROUP, "v1alpha1" "Subscription" "subscriptions" namespaced;

    CONFIG_MAP = "", "v1" "ConfigMap" "configmaps" namespaced;
    ENDPOINTS = "", "v1" "Endpoints" "endpoints" namespaced;
    EVENT = "", "v1" "Event" "events" namespaced;
    LIMIT_RANGE = "", "v1" "LimitRange" "limitranges" namespaced;
    NAMESPACE = "", "v1" "Namespace" "namespaces" cluster;
    NODE = "", "v1" "Node" "nodes" cluster;
    PERSISTENT_VOLUME = "", "v1" "PersistentVolume" "persistentvolumes" cluster;
    PERSISTENT_VOLUME_CLAIM = "", "v1" "PersistentVolumeClaim" "persistentvolumeclaims" namespaced;
    POD = "", "v1" "Pod" "pods" namespaced;
    RESOURCE_QUOTA = "", "v1" "ResourceQuota" "resourcequotas" namespaced;
    SECRET = "", "v1" "Secret" "secrets" namespaced;
    SERVICE = "", "v1" "Service" "services" namespaced;
    SERVICE_ACCOUNT = "", "v1" "ServiceAccount" "serviceaccounts" namespaced;

    MUTATING_WEBHOOK_CONFIGURATION = ADMISSION_REGISTRATION, "v1" "MutatingWebhookConfiguration" "mutatingwebhookconfigurations" cluster;
    VALIDATING_WEBHOOK_CONFIGURATION = ADMISSION_REGISTRATION, "v1" "ValidatingWebhookConfiguration" "validatingwebhookconfigurations" cluster;
    CUSTOM_RESOURCE_DEFINITION = API_EXTENSIONS, "v1" "CustomResourceDefinition" "customresourcedefinitions" cluster;
    API_SERVICE = API_REGISTRATION, "v1" "APIService" "apiservices" cluster;
    DAEMON_SET = "apps", "v1" "DaemonSet" "daemonsets" namespaced;
    DEPLOYMENT = "apps", "v1" "Deployment" "deployments" namespaced;
    REPLICA_SET = "apps", "v1" "ReplicaSet" "replicasets" namespaced;
    STATEFUL_SET = "apps", "v1" "StatefulSet" "statefulsets" namespaced;
    HORIZONTAL_POD_AUTOSCALER = "autoscaling", "v2" "HorizontalPodAutoscaler" "horizontalpodautoscalers" namespaced;
    CRON_JOB = "batch", "v1" "CronJob" "cronjobs" namespaced;
    JOB = "batch", "v1" "Job" "jobs" namespaced;
    LEASE = "coordination.k8s.io", "v1" "Lease" "leases" namespaced;
    ENDPOINT_SLICE = "discovery.k8s.io", "v1" "EndpointSlice" "endpointslices" namespaced;
    INGRESS = "networking.k8s.io", "v1" "Ingress" "ingresses" namespaced;
    INGRESS_CLASS = "networking.k8s.io", "v1" "IngressClass" "ingressclasses" cluster;
    NETWORK_POLICY = "networking.k8s.io", "v1" "NetworkPolicy" "networkpolicies" namespaced;
    RUNTIME_CLASS = "node.k8s.io", "v1" "RuntimeClass" "runtimeclasses" cluster;
    POD_DISRUPTION_BUDGET = "policy", "v1" "PodDisruptionBudget" "poddisruptionbudgets" namespaced;
    CLUSTER_ROLE = RBAC_GROUP, "v1" "ClusterRole" "clusterroles" cluster;
    CLUSTER_ROLE_BINDING = RBAC_GROUP, "v1" "ClusterRoleBinding" "clusterrolebindings" cluster;
    ROLE = RBAC_GROUP, "v1" "Role" "roles" namespaced;
    ROLE_BINDING = RBAC_GROUP, "v1" "RoleBinding" "rolebindings" namespaced;
    PRIORITY_CLASS = "scheduling.k8s.io", "v1" "PriorityClass" "priorityclasses" cluster;
    CSI_DRIVER = "storage.k8s.io", "v1" "CSIDriver" "csidrivers" cluster;
    STORAGE_CLASS = "storage.k8s.io", "v1" "StorageClass" "storageclasses" cluster;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::api::{crd, object};

    #[test]
    fn no_kind_is_defined_twice() {
        let kinds: BTreeSet<_> = ALL.iter().map(|kind| (kind.group, kind.kind)).collect();
        let resources: BTreeSet<_> = ALL.iter().map(Kind::resource).collect();
        assert_eq!((kinds.len(), resources.len()), (ALL.len(), ALL.len()));
    }

    #[test]
    fn olms_kinds_match_their_definitions() {
        let definitions = crd::all();
        for kind in ALL.iter().filter(|kind| kind.group == OLM_GROUP) {
            let definition = definitions.iter().find(|crd| object::name(crd) == kind.resource()).unwrap();
            let spec = |path: &[&str]| object::text(&definition["spec"], path);
            assert_eq!((spec(&["names", "kind"]), spec(&["scope"]) != "Cluster"), (kind.kind, kind.namespaced));
            let served = object::list(definition, &["spec", "versions"]).iter().filter(|v| v["served"] == true);
            assert!(served.into_iter().any(|v| v["name"] == kind.version), "{kind:?}");
        }
        assert_eq!(ALL.iter().filter(|kind| kind.group == OLM_GROUP).count(), definitions.len());
    }
}
