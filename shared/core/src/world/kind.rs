//! The kinds of objects, by group: the keys of the World's stores.

use std::borrow::Cow;

use serde_json::Value;

use crate::api::cluster_service_version::Csv;
use crate::api::kinds::{self, Kind};
use crate::api::object;

/// A group and kind. The version is left out: an object is the same object in every version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// API group, empty for the core group.
    pub group: Cow<'static, str>,
    /// Kind.
    pub kind: Cow<'static, str>,
}

impl GroupKind {
    /// Returns the group and kind of one that is known at compile time.
    pub const fn known(kind: &Kind) -> Self {
        Self { group: Cow::Borrowed(kind.group), kind: Cow::Borrowed(kind.kind) }
    }

    /// Creates a group and kind.
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: Cow::Owned(group.to_owned()), kind: Cow::Owned(kind.to_owned()) }
    }

    /// Returns the group and kind of an object.
    pub fn from_object(json: &Value) -> Self {
        let gvk = object::gvk(json);
        Self { group: Cow::Owned(gvk.group), kind: Cow::Owned(gvk.kind) }
    }

    /// Returns the key under which the World stores an object: its group and kind, except that copies of
    /// ClusterServiceVersions have their own. There are many copies, which are [trimmed](super::trim) to digests, and a
    /// change of a copy only concerns its original.
    pub fn kept_as(json: &Value) -> Self {
        match Self::from_object(json) {
            csv if csv == CLUSTER_SERVICE_VERSION && Csv::new(json).copied_from().is_some() => COPIED_CSV,
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
    ($($name:ident)*) => {
        $(#[doc = concat!("[`kinds::", stringify!($name), "`]")]
        pub const $name: GroupKind = GroupKind::known(&kinds::$name);)*
    };
}

kinds! {
    CATALOG_SOURCE
    SUBSCRIPTION
    INSTALL_PLAN
    CLUSTER_SERVICE_VERSION
    OPERATOR_GROUP
    OPERATOR_CONDITION
    OPERATOR
    OLM_CONFIG
    NAMESPACE
    POD
    SERVICE
    SERVICE_ACCOUNT
    SECRET
    CONFIG_MAP
    JOB
    DEPLOYMENT
    LEASE
    NETWORK_POLICY
    ROLE
    ROLE_BINDING
    CLUSTER_ROLE
    CLUSTER_ROLE_BINDING
    CUSTOM_RESOURCE_DEFINITION
    API_SERVICE
    MUTATING_WEBHOOK_CONFIGURATION
    VALIDATING_WEBHOOK_CONFIGURATION
}

/// Copies of ClusterServiceVersions, as distinguished by [`GroupKind::kept_as`].
pub const COPIED_CSV: GroupKind =
    GroupKind { group: Cow::Borrowed(kinds::OLM_GROUP), kind: Cow::Borrowed("ClusterServiceVersion, copied") };
