//! Decides how an upgrade of an operator is undone, and what that does not undo.
//!
//! ```text
//!   Subscription, ClusterServiceVersions --judge--> Pending: nothing to undo
//!                                                   Installed: the version to return to
//!   Rollback, stored until it is complete --removal--> what is deleted first: the Subscription and all ClusterServiceVersions;
//!                                                     CustomResourceDefinitions and custom resources are retained
//!                                         --> the Subscription that installs the old version, with manual approval
//! ```
//!
//! *Guarantees*: after an interruption everything that follows is derived from the stored [`Rollback`]. Objects are identified by
//! uid, so that nothing that was created after its beginning is deleted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{OwnedCrd, Removal, Request, plan};
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::install_plan::InstallPlan;
use crate::api::kinds;
use crate::api::object::{self, ObjectRef};
use crate::api::subscription::{Approval, Subscription};
use crate::listing::listed;
use crate::world::{Reader, kind};

/// The annotation of the Operator object with a rollback that has begun.
pub const ANNOTATION: &str = "kubectl-olm/rollback";

/// The annotation with which kubectl remembers what was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What the state of an operator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// An upgrade waits for approval: nothing has changed.
    Pending {
        /// The InstallPlan.
        plan: String,
        /// The ClusterServiceVersion that it would install.
        next: String,
    },
    /// A version is installed, or has failed.
    Installed {
        /// Its ClusterServiceVersion.
        csv: String,
        /// Its version; empty if it has none.
        version: String,
        /// The phase of its ClusterServiceVersion.
        phase: String,
        /// The ClusterServiceVersion that it replaces; empty if there is none.
        replaces: String,
    },
}

/// Why nothing can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPossible {
    /// There is no Subscription, so that the catalog is unknown.
    #[error("it has no Subscription, so it is unknown which catalog has the old version")]
    NoSubscription,
    /// No ClusterServiceVersion of the operator exists.
    #[error("no ClusterServiceVersion of it exists")]
    NotInstalled,
    /// It is being deleted.
    #[error("its Subscription is being deleted")]
    Deleting,
}

/// A rollback that has begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rollback {
    /// The namespace of the operator.
    pub namespace: String,
    /// The name of its Subscription.
    pub name: String,
    /// Its package.
    pub package: String,
    /// The ClusterServiceVersion that is undone.
    pub from: String,
    /// The ClusterServiceVersion that is installed instead.
    pub to: String,
    /// The uid of the Subscription that is deleted.
    pub subscription_uid: String,
    /// The Subscription that is created.
    pub subscription: Value,
    /// The ClusterServiceVersions that are deleted, and their uids.
    pub csvs: BTreeMap<String, String>,
    /// The CustomResourceDefinitions that they own.
    pub definitions: BTreeSet<String>,
    /// The APIServices that they own.
    pub api_services: Vec<String>,
}

/// Returns the Subscription of that name, or the one to that package or with that ClusterServiceVersion.
fn subscription<'w>(world: &Reader<'w>, namespace: &str, name: &str) -> Option<Subscription<'w>> {
    super::subscription(world, namespace, name).map(Subscription::new)
}

/// Judges the state of an operator.
///
/// # Errors
/// Nothing can be undone.
pub fn judge(world: &Reader<'_>, namespace: &str, name: &str) -> Result<Judgement, NotPossible> {
    let subscription = subscription(world, namespace, name).ok_or(NotPossible::NoSubscription)?;
    if object::is_deleting(subscription.json) {
        return Err(NotPossible::Deleting);
    }
    let csv_of = |name: &str| world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name).map(Csv::new);
    let (installed, current) = (subscription.installed_csv(), subscription.current_csv());
    let plan = world.json(&kind::INSTALL_PLAN, namespace, subscription.plan_name()).map(InstallPlan::new);
    let is_pending = |plan: InstallPlan<'_>| !plan.spec_approved() && !plan.phase().is_final();
    // The plan of another operator of the namespace is that of this one, too, if it was resolved with it.
    let is_upgrade = current != installed && csv_of(current).is_none();
    if let Some(plan) = plan.filter(|plan| is_upgrade && is_pending(*plan)) {
        return Ok(Judgement::Pending { plan: object::name(plan.json).to_owned(), next: current.to_owned() });
    }
    let csv = csv_of(current).or_else(|| csv_of(installed)).ok_or(NotPossible::NotInstalled)?;
    Ok(Judgement::Installed {
        csv: csv.name().to_owned(),
        version: csv.version().to_owned(),
        phase: csv.phase_text().to_owned(),
        replaces: csv.replaces().to_owned(),
    })
}

impl Judgement {
    /// Returns whether the installed version does not work.
    pub fn has_failed(&self) -> bool {
        matches!(self, Self::Installed { phase, .. } if phase != Phase::Succeeded.as_str())
    }
}

/// Returns the rollback of an operator from one ClusterServiceVersion to another one.
pub fn begin(world: &Reader<'_>, namespace: &str, name: &str, from: &str, to: &str) -> Option<Rollback> {
    let subscription = subscription(world, namespace, name)?;
    let removal = plan(world, Request { namespace, name: subscription.name(), delete_crds: false, knows_all: true });
    let uid = |target: &ObjectRef| {
        let csv = world.json(&kind::CLUSTER_SERVICE_VERSION, &target.namespace, &target.name);
        csv.map(|csv| (target.name.clone(), object::uid(csv).to_owned()))
    };
    Some(Rollback {
        namespace: namespace.to_owned(),
        name: subscription.name().to_owned(),
        package: subscription.package().to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        subscription_uid: subscription.uid().to_owned(),
        subscription: renewed(subscription.json, to),
        csvs: removal.csvs.iter().filter_map(uid).collect(),
        definitions: removal.crds.into_iter().map(|crd| crd.name).collect(),
        api_services: removal.api_services,
    })
}

/// Returns the Subscription that installs that ClusterServiceVersion and stays with it.
fn renewed(old: &Value, to: &str) -> Value {
    let mut spec = old["spec"].clone();
    let fields = object::map_mut(&mut spec, &[]);
    fields.insert("startingCSV".to_owned(), to.into());
    fields.insert("installPlanApproval".to_owned(), json!(Approval::Manual));
    let mut metadata = json!({ "name": object::name(old), "namespace": object::namespace(old) });
    for field in ["labels", "annotations"] {
        let path = ["metadata", field];
        let stored = object::entries(old, &path).filter(|(key, _)| *key != LAST_APPLIED);
        let stored: serde_json::Map<String, Value> =
            stored.map(|(key, value)| (key.to_owned(), value.into())).collect();
        if !stored.is_empty() {
            metadata[field] = stored.into();
        }
    }
    json!({
        "apiVersion": kinds::SUBSCRIPTION.gvk().api_version(), "kind": kinds::SUBSCRIPTION.kind,
        "metadata": metadata, "spec": spec,
    })
}

/// Returns the rollback of an operator that was interrupted. `name` is that of its Subscription, its package or one of its
/// ClusterServiceVersions.
pub fn interrupted(world: &Reader<'_>, namespace: &str, name: &str) -> Option<Rollback> {
    let stored = world
        .all(&kind::OPERATOR)
        .filter_map(|operator| serde_json::from_str::<Rollback>(object::annotation(operator.json(), ANNOTATION)?).ok());
    let is_it = |stored: &Rollback| {
        stored.namespace == namespace
            && ([&stored.name, &stored.package].iter().any(|known| *known == name) || stored.csvs.contains_key(name))
    };
    stored.into_iter().find(is_it)
}

/// Returns whether the new Subscription exists, so that only its installation is left to do.
pub fn is_subscribed(world: &Reader<'_>, rollback: &Rollback) -> bool {
    let found = world.json(&kind::SUBSCRIPTION, &rollback.namespace, &rollback.name);
    found.is_some_and(|found| object::uid(found) != rollback.subscription_uid)
}

/// Returns what is deleted before the old version is installed: only objects that existed when the rollback began.
pub fn removal(world: &Reader<'_>, rollback: &Rollback) -> Removal {
    let Rollback { namespace, name, package, csvs, definitions, api_services, .. } = rollback;
    let subscription = world.json(&kind::SUBSCRIPTION, namespace, name);
    let of = |name: &str| kinds::CLUSTER_SERVICE_VERSION.object(namespace, name);
    let exists = |(name, uid): &(&String, &String)| {
        let found = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name);
        found.is_some_and(|found| object::uid(found) == uid.as_str())
    };
    let (existing, deleted): (Vec<_>, Vec<_>) = csvs.iter().partition(exists);
    let definition = |name: &String| {
        let service = ["spec", "conversion", "webhook", "clientConfig", "service", "namespace"];
        let crd = world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", name);
        OwnedCrd {
            name: name.clone(),
            kept: Some("the old version uses it".to_owned()),
            other_owners: Vec::new(),
            loses_conversion: crd.is_some_and(|crd| object::text(crd, &service) == namespace),
        }
    };
    Removal {
        namespace: namespace.clone(),
        package: package.clone(),
        subscription: subscription
            .filter(|found| object::uid(found) == rollback.subscription_uid)
            .map(ObjectRef::from_object),
        csvs: existing.into_iter().map(|(name, _)| of(name)).collect(),
        replaced: deleted.into_iter().map(|(name, _)| of(name)).collect(),
        crds: definitions.iter().map(definition).collect(),
        api_services: api_services.clone(),
        ..Removal::default()
    }
}

/// Returns what remains of the version that is undone, in sentences without a full stop. `old` is the ClusterServiceVersion that is installed
/// instead.
pub fn not_undone(world: &Reader<'_>, rollback: &Rollback, old: Csv<'_>) -> Vec<String> {
    let mut all = vec![
        "what the operator has changed in its custom resources, its data or outside of the cluster, such as a migrated database".to_owned(),
        "objects that the upgrade, or the operator, has deleted".to_owned(),
    ];
    let owned: BTreeSet<&str> = old.owned_crd_names().collect();
    let added: Vec<&str> =
        rollback.definitions.iter().map(String::as_str).filter(|name| !owned.contains(name)).collect();
    if !added.is_empty() {
        all.push(format!(
            "definitions that {} does not own, with their custom resources: {}",
            rollback.to,
            listed(&added)
        ));
    }
    let asked = Request { namespace: &rollback.namespace, name: &rollback.name, delete_crds: false, knows_all: true };
    let permissions = plan(world, asked).permissions;
    if !permissions.is_empty() {
        let names: Vec<String> = permissions.iter().map(|one| format!("{} {}", one.kind, one.name)).collect();
        all.push(format!("permissions of manifests, unless {} has them, too: {}", rollback.to, listed(&names)));
    }
    let stored: Vec<String> = rollback
        .definitions
        .iter()
        .filter_map(|name| world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", name))
        .map(CustomResourceDefinition::new)
        .filter(|crd| crd.stored_versions().count() > 1)
        .map(|crd| format!("{} ({})", crd.name(), crd.stored_versions().collect::<Vec<_>>().join(", ")))
        .collect();
    if !stored.is_empty() {
        all.push(format!("the versions in which custom resources are stored: {}", listed(&stored)));
    }
    let converted: Vec<String> =
        removal(world, rollback).crds.into_iter().filter(|crd| crd.loses_conversion).map(|crd| crd.name).collect();
    if !converted.is_empty() {
        all.push(format!(
            "the conversion of {}, which is None until the webhook of {} is installed: what other clients write meanwhile is not converted",
            listed(&converted),
            rollback.to
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn csv(name: &str, uid: &str, replaces: &str, phase: &str) -> Value {
        let owned = json!([{ "name": "roses.example.com", "kind": "Rose", "version": "v1" }]);
        let spec =
            json!({ "version": &name[6..], "replaces": replaces, "customresourcedefinitions": { "owned": owned } });
        let mut csv = testing::csv("garden", name, &spec);
        csv["metadata"]["uid"] = uid.into();
        csv["status"] = json!({ "phase": phase });
        csv
    }

    fn subscribed(uid: &str, installed: &str, current: &str) -> Value {
        let spec =
            json!({ "name": "rose", "channel": "stable", "installPlanApproval": "Automatic", "config": { "env": [] } });
        let mut subscription = testing::subscription("garden", "rose-sub", &spec);
        subscription["metadata"]["uid"] = uid.into();
        subscription["metadata"]["labels"] = json!({ "team": "roses" });
        subscription["metadata"]["annotations"] = json!({ LAST_APPLIED: "{}" });
        subscription["status"] = json!({
            "installedCSV": installed, "currentCSV": current, "installPlanRef": { "name": "install-2", "namespace": "garden" },
        });
        subscription
    }

    fn install(approved: bool, phase: &str) -> Value {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": { "name": "install-2", "namespace": "garden" },
            "spec": { "approved": approved, "clusterServiceVersionNames": ["rose.v2.0.0"] }, "status": { "phase": phase },
        })
    }

    fn judged(objects: &[Value]) -> Result<Judgement, NotPossible> {
        let world = testing::world(objects);
        judge(&Reader::new(&world), "garden", "rose")
    }

    #[test]
    fn only_what_has_changed_can_be_undone() {
        let old = csv("rose.v1.0.0", "1", "", "Succeeded");
        let pending = subscribed("s", "rose.v1.0.0", "rose.v2.0.0");
        let judgement = judged(&[old.clone(), pending.clone(), install(false, "RequiresApproval")]).unwrap();
        let next = "rose.v2.0.0".to_owned();
        assert_eq!(judgement, Judgement::Pending { plan: "install-2".to_owned(), next });
        // A plan that has failed before the new ClusterServiceVersion exists.
        let failed = judged(&[old.clone(), pending, install(true, "Failed")]).unwrap();
        assert!(matches!(&failed, Judgement::Installed { csv, .. } if csv == "rose.v1.0.0") && !failed.has_failed());
        // The new version has failed, and the old one still exists.
        let new = |phase| csv("rose.v2.0.0", "2", "rose.v1.0.0", phase);
        let upgraded = subscribed("s", "rose.v2.0.0", "rose.v2.0.0");
        let replacing = csv("rose.v1.0.0", "1", "", "Replacing");
        let failed = judged(&[replacing, new("Failed"), upgraded.clone()]).unwrap();
        assert!(failed.has_failed());
        let Judgement::Installed { csv, version, replaces, .. } = failed else { panic!() };
        assert_eq!((csv.as_str(), version.as_str(), replaces.as_str()), ("rose.v2.0.0", "2.0.0", "rose.v1.0.0"));
        assert!(!judged(&[new("Succeeded"), upgraded.clone()]).unwrap().has_failed());
        assert_eq!(judged(&[upgraded]), Err(NotPossible::NotInstalled));
        assert_eq!(judged(&[old]), Err(NotPossible::NoSubscription));
        let mut deleting = subscribed("s", "rose.v2.0.0", "rose.v2.0.0");
        deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(judged(&[new("Succeeded"), deleting]), Err(NotPossible::Deleting));
    }

    #[test]
    fn an_interrupted_rollback_deletes_nothing_that_is_new() {
        let mut crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "roses.example.com" },
            "status": { "storedVersions": ["v1", "v2"] },
        });
        crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["namespace"] = "garden".into();
        let before = [
            subscribed("s1", "rose.v2.0.0", "rose.v2.0.0"),
            csv("rose.v1.0.0", "1", "", "Replacing"),
            csv("rose.v2.0.0", "2", "rose.v1.0.0", "Failed"),
            csv("rose.v3.0.0", "9", "", "Succeeded"),
            crd.clone(),
        ];
        let world = testing::world(&before[..]);
        let world = Reader::new(&world);
        let begun = begin(&world, "garden", "rose", "rose.v2.0.0", "rose.v1.0.0").unwrap();
        assert_eq!(begun.csvs.keys().collect::<Vec<_>>(), ["rose.v1.0.0", "rose.v2.0.0"]);
        let new = &begun.subscription;
        assert_eq!(
            new["metadata"],
            json!({ "name": "rose-sub", "namespace": "garden", "labels": { "team": "roses" } })
        );
        assert_eq!(new["spec"]["startingCSV"], "rose.v1.0.0");
        assert_eq!(new["spec"]["installPlanApproval"], "Manual");
        assert_eq!(new["spec"]["config"], json!({ "env": [] }));
        let all = removal(&world, &begun);
        assert_eq!((all.subscription.is_some(), all.csvs.len(), all.replaced.len()), (true, 2, 0));
        assert!(all.group.is_none() && all.crds.iter().all(|crd| crd.kept.is_some() && crd.loses_conversion));
        let left = not_undone(&world, &begun, Csv::new(&json!({}))).join("\n");
        assert!(left.contains("roses.example.com (v1, v2)") && left.contains("does not own"), "{left}");

        // The new Subscription has begun to install the old version again.
        let stored = serde_json::to_string(&begun).unwrap();
        let operator = json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "Operator",
            "metadata": { "name": "rose.garden", "annotations": { ANNOTATION: stored } },
        });
        let after = [operator, subscribed("s2", "", "rose.v1.0.0"), csv("rose.v1.0.0", "3", "", "Installing"), crd];
        let world = testing::world(&after);
        let world = Reader::new(&world);
        for name in ["rose-sub", "rose", "rose.v2.0.0"] {
            assert_eq!(interrupted(&world, "garden", name).as_ref(), Some(&begun), "{name}");
        }
        assert_eq!(interrupted(&world, "park", "rose"), None);
        assert!(is_subscribed(&world, &begun));
        let rest = removal(&world, &begun);
        assert_eq!((rest.subscription, rest.csvs.len(), rest.replaced.len()), (None, 0, 2));
    }
}
