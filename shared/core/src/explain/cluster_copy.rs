//! The copy of a cluster on which plans are simulated.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::Cluster;
use super::document::UnreadableResource;
use crate::api::crd;
use crate::api::install_plan::{InstallPlan, Phase};
use crate::api::kinds::OLM_GROUP;
use crate::api::object::{self, Gvk, ObjectRef};
use crate::api::subscription::{Approval, Subscription};
use crate::bundle::Unpacked;
use crate::catalog::Snapshot;
use crate::settings::Settings;
use crate::sim::{ApiServer, Patch, Simulation};
use crate::structural::SchemaCheckResult;

/// An arbitrary seed for uids and generated names in the copy.
const SEED: u64 = 5;

/// Virtual time for operations in progress before a plan is approved: enough for all of them except timeouts.
pub(super) const BEFORE: SignedDuration = SignedDuration::from_mins(2);

/// Name of the generated catalog, and of its channel, for a bundle that is in no catalog.
pub(super) const CATALOG: &str = "bundle-asked-about";

/// A copy of a cluster in which every plan is held back: as it was read, and after it has settled.
pub(super) struct ClusterCopy {
    /// The cluster as it was read.
    pub(super) read: Simulation,
    /// The cluster after everything has happened that needs no plan. Nothing is installed or upgraded in it, because every plan waits.
    pub(super) settled: Simulation,
    /// The original `installPlanApproval` of Subscriptions, by namespace and name. In the copies it is Manual.
    pub(super) approvals: BTreeMap<(String, String), Approval>,
    pub(super) catalogs: BTreeMap<(String, String), Arc<Snapshot>>,
    /// Digests of the content of bundle images, by reference.
    pub(super) contents: BTreeMap<String, String>,
    pub(super) unreadable: Vec<UnreadableResource>,
    pub(super) fits: BTreeMap<(String, String), SchemaCheckResult>,
    /// The namespace of global catalogs.
    pub(super) global: String,
}

impl ClusterCopy {
    /// Copies the cluster. `settings` are the settings of the controllers that run in it.
    pub(super) fn new(settings: &Settings, cluster: Cluster) -> Self {
        let Cluster { mut objects, kinds, kinds_are_complete, undiscovered, server_version, .. } = cluster;
        let Cluster { catalogs, bundles, fits, unreadable, now, .. } = cluster;
        let approvals = hold(&mut objects);
        let has_node = objects.iter().any(|o| object::kind(o) == "Node");
        let defines = |name: &str| objects.iter().any(|o| object::kind(o) == CRD && object::name(o) == name);
        let olm: Vec<Value> = crd::all().into_iter().filter(|crd| !defines(object::name(crd))).collect();
        objects.extend(olm);
        let mut api = ApiServer::with_stock_objects(SEED, now);
        if !has_node {
            // Pods need a node to run on.
            api = api.with_node("node", now);
        }
        api.serve(&kinds, kinds_are_complete);
        if !kinds_are_complete {
            api.know_kinds_in_part();
        }
        for ((group, version), error) in &undiscovered {
            api.hide_version(group, version, error);
        }
        api.load(objects, now);
        api.make_namespaces(now);
        api.make_namespace(&settings.global_catalog_namespace, now);
        let mut read = Simulation::new(api, settings.clone(), now);
        if !server_version.is_empty() {
            read.report_version(&server_version);
        }
        for ((namespace, name), snapshot) in &catalogs {
            read.add_local_catalog(namespace, name, snapshot.clone());
        }
        let mut contents = BTreeMap::new();
        for (reference, unpacked) in bundles {
            if let Unpacked::Content(content) = &unpacked {
                contents.insert(reference.clone(), content.digest());
            }
            read.give_bundle(&reference, unpacked);
        }
        for ((crd, digest), found) in &fits {
            read.give_fit(crd, digest, found.clone());
        }
        let mut settled = read.clone();
        settled.settle(BEFORE);
        let global = settings.global_catalog_namespace.clone();
        Self { read, settled, approvals, catalogs, contents, unreadable, fits, global }
    }

    /// Returns the cluster before a plan is executed. A plan that waits for approval waits in the settled copy, too. A plan that needs no
    /// approval is already executed in the settled copy, so it is held back in a copy of its own, unless its execution has started.
    pub(super) fn before(&self, namespace: &str, plan: &str) -> Cow<'_, Simulation> {
        let [read, settled] = [&self.read, &self.settled].map(|simulation| {
            let plan = simulation.api().find(OLM_GROUP, "InstallPlan", namespace, plan);
            plan.map(|plan| InstallPlan::new(plan).phase())
        });
        let is_final = |phase: Option<Phase>| phase.is_some_and(Phase::is_final);
        match read {
            Some(Phase::Installing) => Cow::Borrowed(&self.read),
            Some(_) if !is_final(read) && (is_final(settled) || matches!(settled, None | Some(Phase::Installing))) => {
                Cow::Owned(self.held_back(namespace, plan))
            }
            _ => Cow::Borrowed(&self.settled),
        }
    }

    /// Returns the settled cluster as it would be if the plan still waited for approval.
    fn held_back(&self, namespace: &str, plan: &str) -> Simulation {
        let mut before = self.read.clone();
        let target = reference("InstallPlan", namespace, plan);
        let spec = Patch::Merge(json!({ "spec": { "approval": Approval::Manual, "approved": false } }));
        let status = Patch::Merge(json!({ "status": { "phase": Phase::RequiresApproval } }));
        // If the patch is refused, the plan is executed at once, and its result is reported.
        let _ = before.patch(&target, spec, None);
        let _ = before.patch(&target, status, Some("status"));
        before.settle(BEFORE);
        before
    }

    /// Returns the Subscription to a package.
    pub(super) fn subscribed(&self, namespace: &str, package: &str) -> Option<String> {
        let mut all = self.read.api().list(OLM_GROUP, "Subscription", Some(namespace));
        all.find(|s| Subscription::new(s).package() == package).map(|s| object::name(s).to_owned())
    }
}

const CRD: &str = "CustomResourceDefinition";

/// Sets all Subscriptions to manual approval, and returns their original setting.
fn hold(objects: &mut [Value]) -> BTreeMap<(String, String), Approval> {
    let mut approvals = BTreeMap::new();
    for object in objects.iter_mut().filter(|o| object::kind(o) == "Subscription") {
        if object::gvk(object).group != OLM_GROUP {
            continue;
        }
        let key = (object::namespace(object).to_owned(), object::name(object).to_owned());
        approvals.insert(key, Subscription::new(object).approval());
        object::map_mut(object, &["spec"]).insert("installPlanApproval".to_owned(), Approval::Manual.into());
    }
    approvals
}

pub(super) fn reference(kind: &str, namespace: &str, name: &str) -> ObjectRef {
    ObjectRef { gvk: Gvk::new(OLM_GROUP, "v1alpha1", kind), namespace: namespace.to_owned(), name: name.to_owned() }
}
