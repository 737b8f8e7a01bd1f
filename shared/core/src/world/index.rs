//! Indexes of objects, besides kind, namespace and name.
//!
//! A plan can depend on an index entry: when it has read an entry, it is made again when an object enters or leaves the
//! entry, or changes while in it.

use serde_json::Value;

use super::kind::{self, GroupKind};
use crate::api::cluster_service_version::{Csv, FINALIZER, reason};
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::metadata::Metadata;
use crate::api::operator_group::OperatorGroup;
use crate::api::subscription::Subscription;
use crate::api::{labels, object};

/// One entry of one index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexKey {
    /// Objects with an owner reference to this uid.
    Owner(String),
    /// Objects with the labels `olm.owner.kind`, `olm.owner.namespace`, `olm.owner` (olm-behaviour/processes.md#labels).
    OwnerLabels {
        /// `olm.owner.kind`
        kind: String,
        /// `olm.owner.namespace`
        namespace: String,
        /// `olm.owner`
        name: String,
    },
    /// Objects with the label `operators.coreos.com/<this>` (olm-behaviour/processes.md#operators-and-adoption).
    Component(String),
    /// OperatorGroups whose `olm.providedAPIs` names this API, `Kind.version.group`.
    ProvidedApi(String),
    /// OperatorGroups whose status names this namespace as a target; `""` stands for all namespaces.
    Target(String),
    /// ClusterServiceVersions, not copied ones, that own the CustomResourceDefinition of this name.
    OwnedCrd(String),
    /// ClusterServiceVersions copied from this namespace under this name, according to the label, or if that was removed,
    /// to status and annotation. An original with the label is in its own entry.
    CopyOf(String, String),
    /// RoleBindings and ClusterRoleBindings with the ServiceAccount of this namespace and name among their subjects, also as user.
    Subject(String, String),
    /// Subscriptions to the CatalogSource of this namespace and name.
    Catalog(String, String),
    /// CustomResourceDefinitions of this group and kind.
    Definition(String, String),
}

/// Returns the index entries of an object.
pub(super) fn keys(gk: &GroupKind, json: &Value) -> Vec<IndexKey> {
    let mut keys = Vec::new();
    for owner in Metadata::new(json).owners() {
        keys.push(IndexKey::Owner(owner.uid().to_owned()));
    }
    if let (Some(name), Some(namespace), Some(kind)) = (
        object::label(json, labels::OWNER),
        object::label(json, labels::OWNER_NAMESPACE),
        object::label(json, labels::OWNER_KIND),
    ) {
        keys.push(IndexKey::OwnerLabels { kind: kind.into(), namespace: namespace.into(), name: name.into() });
    }
    for (label, _) in object::entries(json, &["metadata", "labels"]) {
        if let Some(component) = label.strip_prefix(labels::COMPONENT) {
            keys.push(IndexKey::Component(component.to_owned()));
        }
    }
    if *gk == kind::OPERATOR_GROUP {
        let provided = object::annotation(json, labels::PROVIDED_APIS).unwrap_or_default();
        let provided = provided.split(',').map(|api| api.replace(' ', ""));
        keys.extend(provided.filter(|api| !api.is_empty()).map(IndexKey::ProvidedApi));
        keys.extend(OperatorGroup::new(json).namespaces().map(|t| IndexKey::Target(t.to_owned())));
    } else if *gk == kind::COPIED_CSV {
        let from = object::label(json, labels::COPIED_FROM).filter(|_| !object::has_finalizer(json, FINALIZER));
        let from = from.unwrap_or_else(|| object::namespace(json));
        keys.push(IndexKey::CopyOf(from.to_owned(), object::name(json).to_owned()));
    } else if *gk == kind::CLUSTER_SERVICE_VERSION {
        let csv = Csv::new(json);
        keys.extend(csv.owned_crd_names().map(|name| IndexKey::OwnedCrd(name.to_owned())));
        // A copy whose label was removed.
        if csv.reason() == reason::COPIED {
            let from = object::annotation(json, labels::OPERATOR_NAMESPACE).unwrap_or_default();
            keys.push(IndexKey::CopyOf(from.to_owned(), object::name(json).to_owned()));
        }
    } else if *gk == kind::ROLE_BINDING || *gk == kind::CLUSTER_ROLE_BINDING {
        for subject in object::list(json, &["subjects"]) {
            let name = object::text(subject, &["name"]);
            let account = match object::kind(subject) {
                "ServiceAccount" => match object::text(subject, &["namespace"]) {
                    "" => Some((object::namespace(json), name)),
                    namespace => Some((namespace, name)),
                },
                "User" => name.strip_prefix("system:serviceaccount:").and_then(|user| user.split_once(':')),
                _ => None,
            };
            if let Some((namespace, name)) = account {
                keys.push(IndexKey::Subject(namespace.to_owned(), name.to_owned()));
            }
        }
    } else if *gk == kind::CUSTOM_RESOURCE_DEFINITION {
        let crd = CustomResourceDefinition::new(json);
        keys.push(IndexKey::Definition(crd.group().to_owned(), crd.kind().to_owned()));
    } else if *gk == kind::SUBSCRIPTION {
        let subscription = Subscription::new(json);
        keys.push(IndexKey::Catalog(subscription.source_namespace().to_owned(), subscription.source().to_owned()));
    }
    keys.sort();
    keys.dedup();
    keys
}
