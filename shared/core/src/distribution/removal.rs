//! The removal of an installation: what is deleted, in which order, what remains, and what prevents it.
//!
//! ```text
//!   objects of users --> refuse, unless they are to be deleted
//!   Subscriptions, ClusterServiceVersions, catalogs --> controllers --> APIService --> access --> namespaces --> CRDs
//! ```
//! ClusterServiceVersions are deleted while the controllers still clean up after them. The APIService is deleted before the namespaces,
//! whose deletion it blocks without its server, and the CRDs last, since all objects of OLM's kinds are deleted with them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::installation::Installation;
use super::{CONTROLLERS, OPERATORS, PACKAGE_SERVER, RELEASE, UPSTREAM, UPSTREAM_ROLE};
use crate::api::cluster_service_version::{Csv, is_copy};
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::labels::{MANAGED, OWNER, OWNER_KIND};
use crate::api::object::{self, ObjectRef};
use crate::api::{crd, kinds};

/// Namespaces that are never deleted.
const PROTECTED: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The names of the cluster-scoped RBAC objects of all releases.
const ACCESS: [&str; 5] =
    [UPSTREAM_ROLE, "olm-operator-binding-olm", "aggregate-olm-edit", "aggregate-olm-view", CONTROLLERS];

/// The parts of the removal, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Subscriptions: they would install again.
    Subscriptions,
    /// ClusterServiceVersions.
    Versions,
    /// CatalogSources and OperatorGroups.
    Resources,
    /// Deployments of the controllers.
    Controllers,
    /// The APIService of the package server, and what leads to the server.
    Apis,
    /// ClusterRoles, bindings, and roles in other namespaces.
    Access,
    /// Namespaces.
    Namespaces,
    /// CustomResourceDefinitions.
    Definitions,
}

/// The objects that the removal depends on.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// The installations.
    pub installations: Vec<Installation>,
    /// Subscriptions, ClusterServiceVersions, CatalogSources and OperatorGroups of all namespaces.
    pub resources: Vec<Value>,
    /// CustomResourceDefinitions.
    pub crds: Vec<Value>,
    /// `ClusterRole`, `ClusterRoleBinding` and `RoleBinding` objects.
    pub access: Vec<Value>,
    /// Namespaces.
    pub namespaces: Vec<Value>,
    /// The APIService of the package server.
    pub api: Option<Value>,
    /// What `kubectl olm run --packages` creates besides the APIService.
    pub serving: Vec<Value>,
    /// Deployments, StatefulSets, DaemonSets and PersistentVolumeClaims in the namespaces of OLM.
    pub workloads: Vec<Value>,
}

/// What is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Whether to delete objects of users.
    pub user_objects: bool,
    /// Whether to keep the CustomResourceDefinitions, their objects, and namespaces.
    pub keep_crds: bool,
}

/// The removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// The objects to delete, in order.
    pub deleted: Vec<(Part, ObjectRef)>,
    /// The namespaces that remain, with the reason.
    pub kept: Vec<(ObjectRef, String)>,
    /// Objects of users that would be deleted.
    pub users: Vec<ObjectRef>,
}

impl Removal {
    /// Plans the removal.
    pub fn new(inventory: &Inventory, extent: Extent) -> Self {
        let mut removal = Self::default();
        let ours = namespaces(inventory);
        let is_copied = |resource: &&Value| object::kind(resource) == "ClusterServiceVersion" && is_copy(resource);
        for resource in inventory.resources.iter().filter(|resource| !is_copied(resource)) {
            let (target, part) = (ObjectRef::from_object(resource), part(resource));
            let is_users = is_of_users(resource, &ours);
            if is_users && !extent.keep_crds {
                removal.users.push(target.clone());
            }
            // Without the package server, its Subscription and ClusterServiceVersion are of no use.
            let deletes = if is_users { extent.user_objects } else { !extent.keep_crds || part < Part::Resources };
            if deletes {
                removal.deleted.push((part, target));
            }
        }
        let is_controllers = |workload: &&Value| {
            let name = object::name(workload);
            object::kind(workload) == "Deployment"
                && (inventory.installations.iter().any(|found| {
                    found.namespace == object::namespace(workload)
                        && found.controllers.iter().any(|known| known == name)
                }) || ours.contains(object::namespace(workload))
                    && UPSTREAM.into_iter().chain([PACKAGE_SERVER, CONTROLLERS]).any(|known| known == name))
        };
        let (controllers, others): (Vec<&Value>, Vec<&Value>) = inventory.workloads.iter().partition(is_controllers);
        removal.delete(Part::Controllers, controllers);
        removal.delete(Part::Apis, inventory.api.iter().chain(&inventory.serving));
        removal.delete(Part::Access, inventory.access.iter().filter(|object| is_access(object)));
        let namespaces = inventory.namespaces.iter().filter(|namespace| ours.contains(object::name(namespace)));
        for namespace in namespaces.filter(|_| !extent.keep_crds) {
            let name = object::name(namespace);
            let foreign: BTreeSet<String> = others
                .iter()
                .filter(|object| object::namespace(object) == name && !is_owned(object, extent))
                .map(|object| format!("{}/{}", object::kind(object).to_lowercase(), object::name(object)))
                .collect();
            let target = ObjectRef::from_object(namespace);
            if object::is_deleting(namespace) || foreign.is_empty() {
                removal.deleted.push((Part::Namespaces, target));
            } else {
                removal.kept.push((target, format!("it contains {}", Vec::from_iter(foreign).join(", "))));
            }
        }
        if !extent.keep_crds {
            let known: BTreeSet<String> = crd::all().iter().map(|crd| object::name(crd).to_owned()).collect();
            let crds = inventory.crds.iter().filter(|crd| {
                CustomResourceDefinition::new(crd).group() == kinds::OLM_GROUP && known.contains(object::name(crd))
            });
            removal.delete(Part::Definitions, crds);
        }
        removal.deleted.sort_by_key(|(part, _)| *part);
        removal
    }

    fn delete<'a>(&mut self, part: Part, objects: impl IntoIterator<Item = &'a Value>) {
        self.deleted.extend(objects.into_iter().map(|object| (part, ObjectRef::from_object(object))));
    }

    /// Returns the objects of a part.
    pub fn part(&self, of: Part) -> impl Iterator<Item = &ObjectRef> {
        self.deleted.iter().filter(move |(part, _)| *part == of).map(|(_, target)| target)
    }
}

/// Returns the namespaces of OLM.
fn namespaces(inventory: &Inventory) -> BTreeSet<String> {
    let of_controllers = inventory.installations.iter().map(|found| found.namespace.clone());
    let labelled = inventory.namespaces.iter().filter(|namespace| {
        object::label(namespace, RELEASE).is_some() || [super::NAMESPACE, OPERATORS].contains(&object::name(namespace))
    });
    let labelled = labelled.map(|namespace| object::name(namespace).to_owned());
    of_controllers.chain(labelled).filter(|name| !PROTECTED.contains(&name.as_str())).collect()
}

/// Returns whether a resource was not created by the installation. A Subscription to the package server was a part of old releases.
fn is_of_users(resource: &Value, ours: &BTreeSet<String>) -> bool {
    let (name, is_here) = (object::name(resource), ours.contains(object::namespace(resource)));
    if object::label(resource, RELEASE).is_some() && is_here {
        return false;
    }
    match object::kind(resource) {
        "ClusterServiceVersion" => !(is_here && name == PACKAGE_SERVER),
        "Subscription" => !(is_here && object::text(resource, &["spec", "name"]) == PACKAGE_SERVER),
        "OperatorGroup" => !(is_here && ["olm-operators", "global-operators"].contains(&name)),
        "CatalogSource" => !(is_here && ["operatorhubio-catalog", "olm-operators"].contains(&name)),
        _ => true,
    }
}

fn part(resource: &Value) -> Part {
    match object::kind(resource) {
        "Subscription" => Part::Subscriptions,
        "ClusterServiceVersion" => Part::Versions,
        _ => Part::Resources,
    }
}

/// Returns whether an RBAC object belongs to OLM: by its name, or because OLM created it for the package server or a group.
fn is_access(object: &Value) -> bool {
    let is_labelled = object::label(object, RELEASE).is_some();
    let of_server = object::label(object, OWNER) == Some(PACKAGE_SERVER);
    let of_group = object::label(object, OWNER_KIND) == Some("OperatorGroup")
        || object::label(object, MANAGED) == Some("true") && object::name(object).starts_with("olm.og.");
    let is_named = object::namespace(object).is_empty() && ACCESS.contains(&object::name(object));
    is_labelled || of_server || of_group && object::namespace(object).is_empty() || is_named
}

/// Returns whether a workload is deleted with its ClusterServiceVersion or CatalogSource.
fn is_owned(object: &Value, extent: Extent) -> bool {
    let owners = object::list(object, &["metadata", "ownerReferences"]);
    let is_olms = |owner: &Value| {
        object::text(owner, &["apiVersion"]).starts_with(kinds::OLM_GROUP)
            && (object::text(owner, &["name"]) == PACKAGE_SERVER || extent.user_objects)
    };
    owners.iter().any(is_olms)
}

/// Returns whether a ClusterServiceVersion is being deleted and waits for the controllers.
pub fn waits_for_controllers(csv: &Value) -> bool {
    object::is_deleting(csv)
        && object::has_finalizer(csv, crate::api::cluster_service_version::FINALIZER)
        && !Csv::new(csv).is_copy()
}
