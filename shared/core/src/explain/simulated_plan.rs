//! The simulation of a plan: the cluster before and after, and what happened in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::cluster_copy::{CATALOG, ClusterCopy, reference};
use super::document::{Next, Plan};
use crate::api::cluster_service_version::Csv;
use crate::api::install_plan::{InstallPlan, Phase, Step};
use crate::api::kinds::{self, OLM_GROUP};
use crate::api::object::{self, ObjectRef};
use crate::api::operator_group::OperatorGroup;
use crate::api::status::Status;
use crate::api::subscription::{Approval, Subscription};
use crate::bundle::reference as manifest_reference;
use crate::catalog::Snapshot;
use crate::plan::{Controller, Key, Reason};
use crate::sim::{Happening, Patch, Progress, Simulation};
use crate::version::Range;

/// Virtual time for a plan: longer than every timeout of the controllers.
const AFTER: SignedDuration = SignedDuration::from_mins(15);

/// Virtual time after a repair until a new plan has to exist.
const REPAIR: SignedDuration = SignedDuration::from_mins(1);

/// Maximum number of subsequent plans that are simulated.
const LOOKED_AHEAD: usize = 20;

/// The kind of ClusterServiceVersions.
pub(super) const CSV: &str = kinds::CLUSTER_SERVICE_VERSION.kind;

/// A bundle that is in no catalog, and the catalog that was generated for it.
pub(super) struct Offered {
    /// Name of its ClusterServiceVersion.
    pub(super) csv: String,
    pub(super) snapshot: Arc<Snapshot>,
}

/// The simulation of a plan.
pub(super) struct SimulatedPlan {
    pub(super) namespace: String,
    /// The Subscription in question, if there is one.
    pub(super) subscription: Option<String>,
    /// The requested versions of a package that has a Subscription already, which may choose others.
    pub(super) wanted: Option<(String, Range)>,
    /// The bundle in question, if there is one.
    pub(super) offered: Option<Offered>,
    /// The plan before its approval; null if there is none and nothing is to be done.
    pub(super) plan: Value,
    /// The cluster before the plan.
    pub(super) before: Simulation,
    /// The cluster after the plan. Its controllers provide the reasons why they do nothing more.
    pub(super) after: Simulation,
    /// The changes in between.
    pub(super) happenings: Vec<Happening>,
    /// The refusals of the API server in between, one per object.
    pub(super) refusals: BTreeMap<ObjectRef, Status>,
}

impl SimulatedPlan {
    /// Simulates a plan; without a name, nothing is executed.
    pub(super) fn of_plan(
        before: &Simulation,
        namespace: &str,
        name: Option<&str>,
        subscription: Option<&str>,
    ) -> Self {
        let mut before = before.clone();
        before.take_happenings();
        before.take_refusals();
        let plan = name.and_then(|name| before.api().find(OLM_GROUP, "InstallPlan", namespace, name)).cloned();
        let mut simulated = Self {
            namespace: namespace.to_owned(),
            subscription: subscription.map(str::to_owned),
            wanted: None,
            offered: None,
            plan: plan.unwrap_or_default(),
            after: before.clone(),
            before,
            happenings: Vec::new(),
            refusals: BTreeMap::new(),
        };
        simulated.run();
        simulated
    }

    /// Simulates the open plan of a Subscription, if there is one.
    pub(super) fn of_subscription(before: &Simulation, namespace: &str, name: &str) -> Self {
        let found = before.api().find(OLM_GROUP, "Subscription", namespace, name);
        let plan = found.map_or("", |s| Subscription::new(s).plan_name()).to_owned();
        let is_open = before.api().find(OLM_GROUP, "InstallPlan", namespace, &plan).is_some_and(|plan| {
            matches!(InstallPlan::new(plan).phase(), Phase::RequiresApproval | Phase::Installing | Phase::Failed)
        });
        Self::of_plan(before, namespace, is_open.then_some(&plan), Some(name))
    }

    fn run(&mut self) {
        if self.plan.is_null() {
            return;
        }
        approve(&mut self.after, &self.namespace, object::name(&self.plan));
        // The approval itself is not an effect of the plan.
        self.after.take_happenings();
        let deadline = self.after.now() + AFTER;
        while self.after.advance(deadline) != Progress::Quiet {
            self.happenings.extend(self.after.take_happenings());
        }
        for (_, action, status) in self.after.take_refusals() {
            if !crate::world::Refusal::means_stale(action.verb(), &status) || status.is_not_found() {
                self.refusals.insert(action.target(), status);
            }
        }
    }

    /// Returns the steps of the plan before its execution.
    pub(super) fn steps(&self) -> &[Value] {
        InstallPlan::new(&self.plan).steps_json()
    }

    /// Returns the plan after its execution; null if it does not exist.
    pub(super) fn done(&self) -> &Value {
        self.after
            .api()
            .find(OLM_GROUP, "InstallPlan", &self.namespace, object::name(&self.plan))
            .unwrap_or(&Value::Null)
    }

    /// Returns the phase of the plan after its execution.
    pub(super) fn phase(&self) -> Phase {
        InstallPlan::new(self.done()).phase()
    }

    /// Returns the names of the ClusterServiceVersions that the plan installs, in the order of its steps.
    pub(super) fn csv_names(&self) -> Vec<&str> {
        let csvs = self.steps().iter().filter(|s| Step::new(s).kind() == CSV);
        csvs.map(|s| Step::new(s).name()).collect()
    }

    /// Returns the ClusterServiceVersions that the plan installs, each with the one that it replaces.
    pub(super) fn operators(&self) -> Vec<(Value, Option<&Value>)> {
        let find = |name: &str| self.before.api().find(OLM_GROUP, CSV, &self.namespace, name);
        let steps = self.steps().iter().filter(|s| Step::new(s).kind() == CSV);
        let pairs = steps.filter_map(|step| {
            let name = Step::new(step).name();
            let made = self.after.api().find(OLM_GROUP, CSV, &self.namespace, name).cloned();
            let new = made.or_else(|| manifest(step))?;
            let old = find(Csv::new(&new).replaces()).or_else(|| find(name));
            Some((new, old))
        });
        pairs.collect()
    }

    /// Returns the Subscriptions of the namespace before the plan.
    pub(super) fn subscriptions(&self) -> impl Iterator<Item = &Value> {
        self.before.api().list(OLM_GROUP, "Subscription", Some(&self.namespace))
    }

    /// Replaces the names in a message that were generated for the bundle in question.
    pub(super) fn without_made_up_names(&self, text: &str) -> String {
        if self.offered.is_none() {
            return text.to_owned();
        }
        let namespace = &self.namespace;
        let identifier = format!("{CATALOG}/{namespace}/{CATALOG}/");
        text.replace(&identifier, "")
            .replace(&format!("{namespace}/{CATALOG}"), "of the bundle")
            .replace(CATALOG, "of the bundle")
    }

    /// Returns the Subscriptions whose `currentCSV` is the ClusterServiceVersion.
    pub(super) fn subscriptions_of(&self, csv: &str) -> Vec<String> {
        let gets = |s: &&Value| Subscription::new(s).current_csv() == csv;
        self.subscriptions().filter(gets).map(|s| object::name(s).to_owned()).collect()
    }

    /// Returns the reasons why a controller does nothing more for the subject of that name in the namespace.
    pub(super) fn reasons(&self, controller: Controller, name: &str) -> &[Reason] {
        let key = match controller {
            Controller::Resolution => Key { controller, namespace: String::new(), name: name.to_owned() },
            _ => Key { controller, namespace: self.namespace.clone(), name: name.to_owned() },
        };
        let mut all = self.after.planner().reasons();
        all.find(|(known, _)| **known == key).map_or(&[], |(_, reasons)| reasons)
    }

    /// Describes the plan for the explanation.
    pub(super) fn described(&self, copy: &ClusterCopy) -> Plan {
        if self.plan.is_null() {
            return Plan::default();
        }
        let name = object::name(&self.plan);
        let read = copy.read.api().find(OLM_GROUP, "InstallPlan", &self.namespace, name);
        let exists = read.is_some();
        // In the copy the plan may be held back.
        let plan = read.unwrap_or(&self.plan);
        let is_over = InstallPlan::new(plan).phase().is_final();
        let wants = |s: &Value| {
            let key = (object::namespace(s).to_owned(), object::name(s).to_owned());
            copy.approvals.get(&key).copied().unwrap_or(Approval::Automatic)
        };
        let is_manual = if exists {
            InstallPlan::new(plan).approval() == Approval::Manual
        } else {
            self.subscriptions().any(|s| wants(s) == Approval::Manual)
        };
        let generation = |plan: &Value| InstallPlan::new(plan).generation();
        let mut others = copy.read.api().list(OLM_GROUP, "InstallPlan", Some(&self.namespace));
        let subscriptions: BTreeSet<String> =
            self.csv_names().into_iter().flat_map(|csv| self.subscriptions_of(csv)).collect();
        let groups: Vec<&Value> = self.before.api().list(OLM_GROUP, "OperatorGroup", Some(&self.namespace)).collect();
        let account = groups.first().map_or("", |group| OperatorGroup::new(group).service_account());
        Plan {
            name: if exists { name.to_owned() } else { String::new() },
            exists,
            phase: if exists { InstallPlan::new(plan).phase_text().to_owned() } else { String::new() },
            approval: if is_manual { Approval::Manual } else { Approval::Automatic }.to_string(),
            approved: !is_manual || InstallPlan::new(plan).spec_approved(),
            superseded: !is_over && others.any(|other| generation(other) > generation(&self.plan)),
            subscriptions: subscriptions.into_iter().collect(),
            service_account: (!account.is_empty()).then(|| format!("{}/{account}", self.namespace)),
        }
    }
}

/// Returns the manifest of a step; `None` if it is invalid, or only a reference.
pub(super) fn manifest(step: &Value) -> Option<Value> {
    let manifest = Step::new(step).manifest();
    if manifest_reference::is_reference(manifest) { None } else { serde_json::from_str(manifest).ok() }
}

/// Reports whether deleting the plan and these Subscriptions would lead to a new plan without the ClusterServiceVersion.
pub(super) fn helps(simulated: &SimulatedPlan, subscriptions: &[String], without: &str) -> bool {
    let mut simulation = simulated.before.clone();
    for name in subscriptions {
        // A Subscription that does not exist needs no deletion.
        let _ = simulation.delete(&reference("Subscription", &simulated.namespace, name));
    }
    let _ = simulation.delete(&reference("InstallPlan", &simulated.namespace, object::name(&simulated.plan)));
    simulation.settle(REPAIR);
    let mut plans = simulation.api().list(OLM_GROUP, "InstallPlan", Some(&simulated.namespace));
    plans.any(|plan| {
        let plan = InstallPlan::new(plan);
        let is_another = plan.csv_names().next().is_some() && plan.csv_names().all(|csv| csv != without);
        is_another && plan.phase() == Phase::RequiresApproval
    })
}

fn approve(simulation: &mut Simulation, namespace: &str, plan: &str) {
    // The patch has no effect on an approved plan.
    let approved = Patch::Merge(json!({ "spec": { "approved": true } }));
    let _ = simulation.patch(&reference("InstallPlan", namespace, plan), approved, None);
}

/// Returns the plans that follow this one, until one needs approval.
pub(super) fn afterwards(simulated: &SimulatedPlan, copy: &ClusterCopy) -> Vec<Next> {
    following(simulated, copy, LOOKED_AHEAD, false)
}

/// Returns the plans that follow this one; with `approved`, as if each that needs approval were approved.
pub(super) fn following(simulated: &SimulatedPlan, copy: &ClusterCopy, most: usize, approved: bool) -> Vec<Next> {
    if simulated.phase() != Phase::Complete {
        return Vec::new();
    }
    let mut simulation = simulated.after.clone();
    let mut visited: BTreeSet<String> = BTreeSet::from([object::name(&simulated.plan).to_owned()]);
    let known = simulated.before.api().list(OLM_GROUP, "InstallPlan", Some(&simulated.namespace));
    visited.extend(known.map(|plan| object::name(plan).to_owned()));
    let manual = simulated.subscriptions().any(|s| {
        let key = (object::namespace(s).to_owned(), object::name(s).to_owned());
        copy.approvals.get(&key).is_some_and(|approval| *approval == Approval::Manual)
    });
    let mut next = Vec::new();
    while next.len() < most {
        let plans = simulation.api().list(OLM_GROUP, "InstallPlan", Some(&simulated.namespace));
        let new = plans.filter(|plan| !visited.contains(object::name(plan))).map(|plan| {
            let csvs = InstallPlan::new(plan).csv_names();
            let csvs = csvs.map(str::to_owned).collect();
            (object::name(plan).to_owned(), Next { csvs, needs_approval: manual })
        });
        let Some((name, plan)) = new.collect::<Vec<_>>().into_iter().next() else { break };
        next.push(plan);
        visited.insert(name.clone());
        if manual && !approved {
            break;
        }
        approve(&mut simulation, &simulated.namespace, &name);
        simulation.settle(AFTER);
        simulation.take_happenings();
        simulation.take_refusals();
    }
    next
}
