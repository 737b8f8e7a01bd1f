//! The record of a removal that has begun, in an annotation of the Operator object: its Subscription and its
//! ClusterServiceVersions are deleted first, and nothing else states what else belongs to it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::permissions::Permission;
use crate::api::object;
use crate::world::{Reader, kind};

/// The annotation of the Operator object.
pub const ANNOTATION: &str = "kubectl-olm/removal";

/// What a removal has begun to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// The namespace of the operator.
    pub namespace: String,
    /// Its package.
    pub package: String,
    /// The name that was given, and that of its Subscription.
    pub names: BTreeSet<String>,
    /// Its ClusterServiceVersions.
    pub csvs: BTreeSet<String>,
    /// Its CustomResourceDefinitions. The ClusterServiceVersions state them, and are deleted before.
    pub definitions: BTreeSet<String>,
    /// The ClusterRoles and ClusterRoleBindings of its manifests. The InstallPlans that created them are deleted with the
    /// Subscription.
    pub permissions: BTreeSet<Permission>,
}

/// Returns the record of the removal of an operator. `name` is that of its Subscription, its package or one of its
/// ClusterServiceVersions.
pub(super) fn find(world: &Reader<'_>, namespace: &str, name: &str) -> Option<Record> {
    let records = world
        .all(&kind::OPERATOR)
        .filter_map(|operator| serde_json::from_str::<Record>(object::annotation(operator.json(), ANNOTATION)?).ok());
    let is_it = |record: &Record| {
        record.namespace == namespace
            && (record.package == name || record.names.contains(name) || record.csvs.contains(name))
    };
    records.into_iter().find(is_it)
}
