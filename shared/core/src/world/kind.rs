//! The kinds of objects, by group: what the stores of the World are keyed by.

use std::borrow::Cow;

use serde_json::Value;

use crate::api::{labels, object};

/// A group and kind. The version is left out: one object is one object in whatever version it is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// API group, empty for the core group.
    pub group: Cow<'static, str>,
    /// Kind.
    pub kind: Cow<'static, str>,
}

impl GroupKind {
    /// A group and kind known at compile time.
    pub const fn known(group: &'static str, kind: &'static str) -> Self {
        Self { group: Cow::Borrowed(group), kind: Cow::Borrowed(kind) }
    }

    /// A group and kind.
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: Cow::Owned(group.to_owned()), kind: Cow::Owned(kind.to_owned()) }
    }

    /// The group and kind of an object.
    pub fn of(json: &Value) -> Self {
        let gvk = object::gvk(json);
        Self { group: Cow::Owned(gvk.group), kind: Cow::Owned(gvk.kind) }
    }

    /// As what the World keeps an object: its group and kind, but copies of ClusterServiceVersions for themselves. There are many of them,
    /// they are kept [trimmed](super::trim) to next to nothing, and what concerns one of them concerns only its original.
    pub fn kept_as(json: &Value) -> Self {
        match Self::of(json) {
            csv if csv == CLUSTER_SERVICE_VERSION && object::label(json, labels::COPIED_FROM).is_some() => COPIED_CSV,
            gk => gk,
        }
    }
}

impl std::fmt::Display for GroupKind {
    /// `Kind.group`, or `Kind` for the core group.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { group, kind } = self;
        if group.is_empty() { f.write_str(kind) } else { write!(f, "{kind}.{group}") }
    }
}

macro_rules! kinds {
    ($($name:ident = $group:literal / $kind:literal;)*) => {
        $(#[doc = concat!("`", $kind, "` of group `", $group, "`.")]
        pub const $name: GroupKind = GroupKind::known($group, $kind);)*
    };
}

kinds! {
    CATALOG_SOURCE = "operators.coreos.com" / "CatalogSource";
    SUBSCRIPTION = "operators.coreos.com" / "Subscription";
    INSTALL_PLAN = "operators.coreos.com" / "InstallPlan";
    CLUSTER_SERVICE_VERSION = "operators.coreos.com" / "ClusterServiceVersion";
    COPIED_CSV = "operators.coreos.com" / "ClusterServiceVersion, copied";
    OPERATOR_GROUP = "operators.coreos.com" / "OperatorGroup";
    OPERATOR_CONDITION = "operators.coreos.com" / "OperatorCondition";
    OPERATOR = "operators.coreos.com" / "Operator";
    OLM_CONFIG = "operators.coreos.com" / "OLMConfig";
    NAMESPACE = "" / "Namespace";
    POD = "" / "Pod";
    SERVICE = "" / "Service";
    SERVICE_ACCOUNT = "" / "ServiceAccount";
    SECRET = "" / "Secret";
    CONFIG_MAP = "" / "ConfigMap";
    JOB = "batch" / "Job";
    DEPLOYMENT = "apps" / "Deployment";
    NETWORK_POLICY = "networking.k8s.io" / "NetworkPolicy";
    ROLE = "rbac.authorization.k8s.io" / "Role";
    ROLE_BINDING = "rbac.authorization.k8s.io" / "RoleBinding";
    CLUSTER_ROLE = "rbac.authorization.k8s.io" / "ClusterRole";
    CLUSTER_ROLE_BINDING = "rbac.authorization.k8s.io" / "ClusterRoleBinding";
    CUSTOM_RESOURCE_DEFINITION = "apiextensions.k8s.io" / "CustomResourceDefinition";
    API_SERVICE = "apiregistration.k8s.io" / "APIService";
    MUTATING_WEBHOOK_CONFIGURATION = "admissionregistration.k8s.io" / "MutatingWebhookConfiguration";
    VALIDATING_WEBHOOK_CONFIGURATION = "admissionregistration.k8s.io" / "ValidatingWebhookConfiguration";
}
