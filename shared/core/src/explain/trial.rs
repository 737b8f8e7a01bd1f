//! A plan tried out: the cluster before and after, and what happened between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::cluster_copy::{CATALOG, ClusterCopy, reference};
use super::document::{Next, Plan};
use crate::api::cluster_service_version::Csv;
use crate::api::install_plan::{InstallPlan, Phase, Step};
use crate::api::kinds::{self, OLM};
use crate::api::object::{self, ObjectRef};
use crate::api::operator_group::OperatorGroup;
use crate::api::status::Status;
use crate::api::subscription::{Approval, Subscription};
use crate::bundle::reference as manifest_reference;
use crate::catalog::Snapshot;
use crate::plan::{Controller, Key, Reason};
use crate::sim::{Happening, Patch, Progress, Simulation};
use crate::version::Range;

/// How much virtual time a plan gets: longer than every time-out of the controllers.
const AFTER: SignedDuration = SignedDuration::from_mins(15);

/// How much virtual time a repair gets until there is another plan.
const REPAIR: SignedDuration = SignedDuration::from_mins(1);

/// How many plans that follow are looked for.
const LOOKED_AHEAD: usize = 20;

/// The kind of ClusterServiceVersions.
pub(super) const CSV: &str = kinds::CLUSTER_SERVICE_VERSION.kind;

/// A bundle that is in no catalog, and the catalog that was made up for it.
pub(super) struct Offered {
    /// Name of its ClusterServiceVersion.
    pub(super) csv: String,
    pub(super) snapshot: Arc<Snapshot>,
}

/// A plan tried out.
pub(super) struct Trial {
    pub(super) namespace: String,
    /// The Subscription that was asked about, if one was.
    pub(super) subscription: Option<String>,
    /// The versions of a package that were asked for, although a Subscription decides.
    pub(super) wanted: Option<(String, Range)>,
    /// The bundle that was asked about, if one was.
    pub(super) offered: Option<Offered>,
    /// The plan before it was approved; null: there is none, and nothing is to be done.
    pub(super) plan: Value,
    /// The cluster before.
    pub(super) before: Simulation,
    /// The cluster afterwards. The controllers know why they go no further.
    pub(super) after: Simulation,
    /// What happened between.
    pub(super) happenings: Vec<Happening>,
    /// What the API server refused meanwhile, each refusal once.
    pub(super) refusals: BTreeMap<ObjectRef, Status>,
}

impl Trial {
    /// Tries out a plan; without a name, nothing.
    pub(super) fn of_plan(
        before: &Simulation,
        namespace: &str,
        name: Option<&str>,
        subscription: Option<&str>,
    ) -> Self {
        let mut before = before.clone();
        before.take_happenings();
        before.take_refusals();
        let plan = name.and_then(|name| before.api().find(OLM, "InstallPlan", namespace, name)).cloned();
        let mut trial = Self {
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
        trial.run();
        trial
    }

    /// Tries out the plan that waits for a Subscription.
    pub(super) fn of_subscription(before: &Simulation, namespace: &str, name: &str) -> Self {
        let found = before.api().find(OLM, "Subscription", namespace, name);
        let plan = found.map_or("", |s| Subscription::of(s).plan_name()).to_owned();
        let is_open = before.api().find(OLM, "InstallPlan", namespace, &plan).is_some_and(|plan| {
            matches!(InstallPlan::of(plan).phase(), Phase::RequiresApproval | Phase::Installing | Phase::Failed)
        });
        Self::of_plan(before, namespace, is_open.then_some(&plan), Some(name))
    }

    fn run(&mut self) {
        if self.plan.is_null() {
            return;
        }
        approve(&mut self.after, &self.namespace, object::name(&self.plan));
        // The approval is nobody's doing.
        self.after.take_happenings();
        let deadline = self.after.now() + AFTER;
        while self.after.advance(deadline) != Progress::Quiet {
            self.happenings.extend(self.after.take_happenings());
        }
        for (_, action, status) in self.after.take_refusals() {
            if !crate::world::Refusal::tells_stale(action.verb(), &status) || status.is_not_found() {
                self.refusals.insert(action.target(), status);
            }
        }
    }

    /// The steps of the plan as they were.
    pub(super) fn steps(&self) -> &[Value] {
        InstallPlan::of(&self.plan).steps_json()
    }

    /// The plan as it is in the end; null when it is gone.
    pub(super) fn done(&self) -> &Value {
        self.after.api().find(OLM, "InstallPlan", &self.namespace, object::name(&self.plan)).unwrap_or(&Value::Null)
    }

    /// Its phase in the end.
    pub(super) fn phase(&self) -> &str {
        InstallPlan::of(self.done()).phase_text()
    }

    /// Names of the ClusterServiceVersions that the plan brings, in the order of its steps.
    pub(super) fn csv_names(&self) -> Vec<&str> {
        let csvs = self.steps().iter().filter(|s| Step::of(s).kind() == CSV);
        csvs.map(|s| Step::of(s).name()).collect()
    }

    /// The ClusterServiceVersions that the plan brings, and those whose place they take.
    pub(super) fn operators(&self) -> Vec<(Value, Option<&Value>)> {
        let find = |name: &str| self.before.api().find(OLM, CSV, &self.namespace, name);
        let steps = self.steps().iter().filter(|s| Step::of(s).kind() == CSV);
        let pairs = steps.filter_map(|step| {
            let name = Step::of(step).name();
            let made = self.after.api().find(OLM, CSV, &self.namespace, name).cloned();
            let new = made.or_else(|| manifest(step))?;
            let old = find(Csv::of(&new).replaces()).or_else(|| find(name));
            Some((new, old))
        });
        pairs.collect()
    }

    /// The Subscriptions of the namespace, before.
    pub(super) fn subscriptions(&self) -> impl Iterator<Item = &Value> {
        self.before.api().list(OLM, "Subscription", Some(&self.namespace))
    }

    /// A sentence about the copy, without the names that were made up for the bundle that was asked about.
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

    /// The Subscriptions that get a ClusterServiceVersion.
    pub(super) fn subscriptions_of(&self, csv: &str) -> Vec<String> {
        let gets = |s: &&Value| Subscription::of(s).current_csv() == csv;
        self.subscriptions().filter(gets).map(|s| object::name(s).to_owned()).collect()
    }

    /// Why a controller does nothing more for the subject of that name in the namespace.
    pub(super) fn reasons(&self, controller: Controller, name: &str) -> &[Reason] {
        let key = match controller {
            Controller::Resolution => Key { controller, namespace: String::new(), name: name.to_owned() },
            _ => Key { controller, namespace: self.namespace.clone(), name: name.to_owned() },
        };
        let mut all = self.after.planner().reasons();
        all.find(|(known, _)| **known == key).map_or(&[], |(_, reasons)| reasons)
    }

    /// The plan as it is told.
    pub(super) fn described(&self, copy: &ClusterCopy) -> Plan {
        if self.plan.is_null() {
            return Plan::default();
        }
        let name = object::name(&self.plan);
        let read = copy.read.api().find(OLM, "InstallPlan", &self.namespace, name);
        let exists = read.is_some();
        // In the copy it may be held back.
        let plan = read.unwrap_or(&self.plan);
        let is_over = InstallPlan::of(plan).phase().is_final();
        let wants = |s: &Value| {
            let key = (object::namespace(s).to_owned(), object::name(s).to_owned());
            copy.approvals.get(&key).map_or("Automatic", String::as_str)
        };
        let is_manual = if exists {
            InstallPlan::of(plan).approval() == Approval::Manual
        } else {
            self.subscriptions().any(|s| wants(s) == "Manual")
        };
        let generation = |plan: &Value| InstallPlan::of(plan).generation();
        let mut others = copy.read.api().list(OLM, "InstallPlan", Some(&self.namespace));
        let subscriptions: BTreeSet<String> =
            self.csv_names().into_iter().flat_map(|csv| self.subscriptions_of(csv)).collect();
        let groups: Vec<&Value> = self.before.api().list(OLM, "OperatorGroup", Some(&self.namespace)).collect();
        let account = groups.first().map_or("", |group| OperatorGroup::of(group).service_account());
        Plan {
            name: if exists { name.to_owned() } else { String::new() },
            exists,
            phase: if exists { InstallPlan::of(plan).phase_text().to_owned() } else { String::new() },
            approval: if is_manual { "Manual" } else { "Automatic" }.to_owned(),
            approved: !is_manual || InstallPlan::of(plan).spec_approved(),
            superseded: !is_over && others.any(|other| generation(other) > generation(&self.plan)),
            subscriptions: subscriptions.into_iter().collect(),
            service_account: (!account.is_empty()).then(|| format!("{}/{account}", self.namespace)),
        }
    }
}

/// The manifest of a step; none when it cannot be read, or is elsewhere.
pub(super) fn manifest(step: &Value) -> Option<Value> {
    let manifest = Step::of(step).manifest();
    if manifest_reference::is_reference(manifest) { None } else { serde_json::from_str(manifest).ok() }
}

/// Would there be a plan without a ClusterServiceVersion if its Subscriptions were deleted, and the plan?
pub(super) fn helps(trial: &Trial, subscriptions: &[String], without: &str) -> bool {
    let mut simulation = trial.before.clone();
    for name in subscriptions {
        // What is gone already is as good.
        let _ = simulation.delete(&reference("Subscription", &trial.namespace, name));
    }
    let _ = simulation.delete(&reference("InstallPlan", &trial.namespace, object::name(&trial.plan)));
    simulation.settle(REPAIR);
    let mut plans = simulation.api().list(OLM, "InstallPlan", Some(&trial.namespace));
    plans.any(|plan| {
        let csvs = object::list(plan, &["spec", "clusterServiceVersionNames"]);
        let waits = InstallPlan::of(plan).phase() == Phase::RequiresApproval;
        waits && !csvs.is_empty() && !csvs.iter().any(|csv| csv == without)
    })
}

fn approve(simulation: &mut Simulation, namespace: &str, plan: &str) {
    // One that is approved already stays as it is.
    let approved = Patch::Merge(json!({ "spec": { "approved": true } }));
    let _ = simulation.patch(&reference("InstallPlan", namespace, plan), approved, None);
}

/// The plans that follow this one: those that need nobody's approval one after the other, until one does.
pub(super) fn afterwards(trial: &Trial, copy: &ClusterCopy) -> Vec<Next> {
    if trial.phase() != "Complete" {
        return Vec::new();
    }
    let mut simulation = trial.after.clone();
    let mut seen: BTreeSet<String> = BTreeSet::from([object::name(&trial.plan).to_owned()]);
    let known = trial.before.api().list(OLM, "InstallPlan", Some(&trial.namespace));
    seen.extend(known.map(|plan| object::name(plan).to_owned()));
    let manual = trial.subscriptions().any(|s| {
        let key = (object::namespace(s).to_owned(), object::name(s).to_owned());
        copy.approvals.get(&key).is_some_and(|approval| approval == "Manual")
    });
    let mut next = Vec::new();
    while next.len() < LOOKED_AHEAD {
        let plans = simulation.api().list(OLM, "InstallPlan", Some(&trial.namespace));
        let new = plans.filter(|plan| !seen.contains(object::name(plan))).map(|plan| {
            let csvs = InstallPlan::of(plan).csv_names();
            let csvs = csvs.map(str::to_owned).collect();
            (object::name(plan).to_owned(), Next { csvs, needs_approval: manual })
        });
        let Some((name, plan)) = new.collect::<Vec<_>>().into_iter().next() else { break };
        next.push(plan);
        seen.insert(name.clone());
        if manual {
            break;
        }
        approve(&mut simulation, &trial.namespace, &name);
        simulation.settle(AFTER);
        simulation.take_happenings();
        simulation.take_refusals();
    }
    next
}
