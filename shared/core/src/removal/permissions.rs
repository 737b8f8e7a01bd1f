//! Finds the ClusterRoles and ClusterRoleBindings of a bundle's manifests: OLM creates them without an owner, so that they
//! outlive the operator (olm-behaviour/installplan.md#execution).
//!
//! *Guarantee*: an object that is older than every InstallPlan that created it is retained. The state of an InstallPlan can be
//! written by users of its namespace, and must not make an administrator delete another object.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::install_plan::{InstallPlan, StepStatus};
use crate::api::kinds::{self, Kind};
use crate::api::labels;
use crate::api::object::{self, ObjectRef};
use crate::api::subscription::Subscription;
use crate::world::{GroupKind, Reader, kind};

/// A ClusterRole or ClusterRoleBinding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Permission {
    /// `ClusterRole` or `ClusterRoleBinding`
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Why it is retained; `None` if it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

impl Permission {
    /// Returns the object; `None` if the kind is another one.
    pub fn target(&self) -> Option<ObjectRef> {
        KINDS.iter().find(|kind| kind.kind == self.kind).map(|kind| kind.object("", &self.name))
    }
}

const KINDS: [Kind; 2] = [kinds::CLUSTER_ROLE_BINDING, kinds::CLUSTER_ROLE];

/// What InstallPlans state about an object.
#[derive(Default)]
struct Origin<'w> {
    /// When the InstallPlans were created that created it.
    created_by: Vec<&'w str>,
    /// The other ClusterServiceVersions whose manifests contain it, too.
    others: BTreeSet<&'w str>,
    is_own: bool,
}

/// Returns the objects of the manifests of these ClusterServiceVersions that exist, and those of `recorded`, the record of an
/// interrupted removal.
pub(super) fn find(
    world: &Reader<'_>,
    namespace: &str,
    package: &str,
    csvs: &BTreeSet<&str>,
    recorded: &BTreeSet<Permission>,
) -> Vec<Permission> {
    let mut origins: BTreeMap<(usize, &str), Origin<'_>> = BTreeMap::new();
    for plan in world.in_namespace(&kind::INSTALL_PLAN, namespace) {
        let created = object::text(plan.json(), &["metadata", "creationTimestamp"]);
        for step in InstallPlan::new(plan.json()).steps() {
            let index = KINDS.iter().position(|kind| (kind.group, kind.kind) == (step.group(), step.kind()));
            let Some(index) = index else { continue };
            let origin = origins.entry((index, step.name())).or_default();
            if !csvs.contains(step.resolving()) {
                origin.others.insert(step.resolving());
                continue;
            }
            origin.is_own = true;
            if step.status() == StepStatus::Created {
                origin.created_by.push(created);
            }
        }
    }
    let shared = sharing(world, namespace, package);
    let found = origins.into_iter().filter(|(_, origin)| origin.is_own).filter_map(|((index, name), origin)| {
        let kind = &KINDS[index];
        let live = live(world, kind, name)?;
        // Those that OLM generates for a ClusterServiceVersion are deleted by these labels.
        object::label(live, labels::OWNER_NAMESPACE).is_none().then_some(())?;
        // An InstallPlan that updates an object only names the ClusterServiceVersion.
        let mut origin = origin;
        origin.others.extend(object::label(live, labels::OWNER).filter(|owner| !csvs.contains(owner)));
        let kept = kept(&origin, live, shared.as_deref());
        Some(Permission { kind: kind.kind.to_owned(), name: name.to_owned(), uid: object::uid(live).to_owned(), kept })
    });
    let mut all: Vec<Permission> = found.collect();
    let exists = |permission: &&Permission| {
        let kind = KINDS.iter().find(|kind| kind.kind == permission.kind);
        kind.and_then(|kind| live(world, kind, &permission.name)).map(object::uid) == Some(&permission.uid)
    };
    for permission in recorded.iter().filter(exists) {
        if !all.iter().any(|known| known.uid == permission.uid) {
            all.push(permission.clone());
        }
    }
    all
}

fn live<'w>(world: &Reader<'w>, kind: &Kind, name: &str) -> Option<&'w Value> {
    world.json(&GroupKind::new(kind.group, kind.kind), "", name)
}

fn kept(origin: &Origin<'_>, live: &Value, shared: Option<&str>) -> Option<String> {
    if let Some(other) = origin.others.first() {
        return Some(format!("the manifests of {other} contain it, too"));
    }
    if let Some(other) = shared {
        return Some(format!("Subscription {other} has the same package"));
    }
    let exists_since = object::text(live, &["metadata", "creationTimestamp"]);
    // Timestamps of Kubernetes are in UTC, without fractions: their order is that of their texts.
    let is_created = origin.created_by.iter().any(|plan| *plan <= exists_since);
    (!is_created).then(|| "no InstallPlan is left that created it".to_owned())
}

/// Returns a Subscription of another namespace to the same package, `NAMESPACE/NAME`.
fn sharing(world: &Reader<'_>, namespace: &str, package: &str) -> Option<String> {
    let all = world.all(&kind::SUBSCRIPTION).map(|object| object.json());
    let mut others =
        all.filter(|json| object::namespace(json) != namespace && Subscription::new(json).package() == package);
    others.next().map(|json| format!("{}/{}", object::namespace(json), object::name(json)))
}
