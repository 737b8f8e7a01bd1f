//! The Subscriptions of a namespace: their whole status, and the InstallPlans that resolving them asks for
//! (reference/catalog-operator.md §2).
//!
//! ```text
//!   offer       the catalogs, and whether they can be used now
//!   status      each Subscription: its CSV, its InstallPlan, health of catalogs, deprecations
//!   installed   the CSVs that are there, and which of them are about to go
//!   install     resolution -> InstallPlan, and Subscriptions -> the InstallPlan that was made for them
//!   there       the same, for those who only ask what would be installed
//! ```
//!
//! One key is one namespace, for resolution is about all of its Subscriptions, and every field of a status has one writer.
//! *Guarantees*: all is recomputed from the World. An InstallPlan that was made before a crash is recognised by its generation,
//! which no Subscription has recorded yet.

mod conditions;
mod install;
mod installed;
mod offer;
mod status;
#[cfg(test)]
mod tests;
mod there;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::conditions::{condition, remove, set_timeless};
use self::install::{Install, Make};
use self::installed::Namespace;
use self::offer::{Source, Unusable};
use self::status::{Subscription, phase};
use crate::api::object;
use crate::plan::{Action, Emit, Key, Plan, Propagation, Reason, Verb};
use crate::resolver::{self, Failure, Inputs};
use crate::settings::Settings;
use crate::world::{Reader, kind};

pub use there::There;

/// How many InstallPlans of a namespace are kept (§5.9).
const KEPT_PLANS: usize = 5;
const RESOLUTION_FAILED: &str = "ResolutionFailed";
const UNPACKING: &str = "BundleUnpacking";
const UNPACK_FAILED: &str = "BundleUnpackFailed";

/// Plans for the Subscriptions of the namespace that is the key's name.
pub fn plan(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let namespace = key.name.as_str();
    let mut plans: Vec<&Value> = world.in_namespace(&kind::INSTALL_PLAN, namespace).map(|o| o.json()).collect();
    plans.retain(|p| !object::is_deleting(p));
    let mut subscriptions: Vec<Subscription<'_>> =
        world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|o| Subscription::new(o.json())).collect();
    if subscriptions.is_empty() && plans.is_empty() {
        return Plan::nothing();
    }
    let collected = collect(&plans, &subscriptions);
    if subscriptions.is_empty() {
        return Plan::act(collected);
    }
    let groups: Vec<&Value> = world.in_namespace(&kind::OPERATOR_GROUP, namespace).map(|o| o.json()).collect();
    let group = Group::read(&groups);
    install::link(&mut subscriptions, &plans);
    for subscription in &mut subscriptions {
        subscription.follow(world, &plans, group.fail_forward);
    }
    let mut pass = Pass {
        settings,
        world,
        key,
        now,
        plans,
        filled: None,
        group,
        subscriptions,
        actions: collected,
        reasons: Vec::new(),
    };
    if groups.len() == 1 {
        pass.resolve();
    } else {
        let names = groups.iter().map(|g| object::name(g).to_owned()).collect();
        let namespace = namespace.to_owned();
        pass.reasons.push(match groups.len() {
            0 => Reason::NoOperatorGroup { namespace },
            _ => Reason::TooManyOperatorGroups { namespace, names },
        });
    }
    pass.finish()
}

/// What the OperatorGroup of the namespace says about resolution.
struct Group {
    fail_forward: bool,
    excludes_global: bool,
}

impl Group {
    fn read(groups: &[&Value]) -> Self {
        let says = |path: &[&str], value: &str| matches!(groups, [only] if object::text(only, path) == value);
        let annotation = "olm.operatorframework.io/exclude-global-namespace-resolution";
        Self {
            fail_forward: says(&["spec", "upgradeStrategy"], "TechPreviewUnsafeFailForward"),
            excludes_global: says(&["metadata", "annotations", annotation], "true"),
        }
    }
}

/// The oldest InstallPlans, beyond those kept. Unlike OLM's choice it spares those that a Subscription refers to.
fn collect(plans: &[&Value], subscriptions: &[Subscription<'_>]) -> Vec<Action> {
    let mut oldest: Vec<&Value> = plans.to_vec();
    oldest.sort_by_key(|p| {
        let created = object::text(p, &["metadata", "creationTimestamp"]);
        (object::at(p, &["spec", "generation"]).as_i64(), created, object::name(p))
    });
    let surplus = plans.len().saturating_sub(KEPT_PLANS);
    let is_referred = |p: &&Value| subscriptions.iter().any(|s| s.plan_name() == object::name(p));
    let oldest = oldest.into_iter().take(surplus).filter(|p| !is_referred(p));
    oldest.map(|p| Action::delete(p, Propagation::Background)).collect()
}

/// One plan in the making.
struct Pass<'w, 'r> {
    settings: &'w Settings,
    world: &'r Reader<'w>,
    key: &'w Key,
    now: Timestamp,
    plans: Vec<&'w Value>,
    /// The InstallPlan whose first status is among the actions.
    filled: Option<Value>,
    group: Group,
    subscriptions: Vec<Subscription<'w>>,
    actions: Vec<Action>,
    reasons: Vec<Reason>,
}

impl<'w> Pass<'w, '_> {
    /// Resolves, and makes an InstallPlan of what is new.
    fn resolve(&mut self) {
        let namespace = Namespace::read(self.world, &self.key.name);
        let (busy, leaving) = namespace.under_way(&self.subscriptions, &self.plans, self.group.fail_forward);
        let waits = |(s, busy): (&Subscription<'_>, &bool)| {
            *busy || s.status("state") == "UpgradePending" && !s.plan_name().is_empty()
        };
        if self.subscriptions.iter().zip(&busy).all(waits) {
            self.tell_of_lost_csvs(&namespace);
            return;
        }
        match self.resolution(&namespace, &leaving, &busy) {
            Ok(install) => {
                for subscription in &mut self.subscriptions {
                    remove(&mut subscription.status, &[RESOLUTION_FAILED, UNPACKING, UNPACK_FAILED]);
                }
                self.reasons.extend(install.reasons.iter().cloned());
                self.install(&install);
            }
            Err(Unusable::NotYet(reasons)) => self.reasons.extend(reasons),
            Err(Unusable::Broken(failure)) => self.fail(&failure),
        }
        self.tell_of_lost_csvs(&namespace);
    }

    fn resolution(
        &self,
        namespace: &Namespace<'w>,
        leaving: &BTreeSet<&str>,
        busy: &[bool],
    ) -> Result<Install, Unusable> {
        let name = self.key.name.as_str();
        let sources = offer::sources(self.world, self.settings, name, !self.group.excludes_global);
        let is_named = |source: &Source<'_>| {
            let wanted = |s: &Subscription<'_>| s.wanted(false).takes_from(source.name, source.namespace);
            self.subscriptions.iter().any(wanted)
        };
        let (catalogs, broken) = offer::catalogs(&sources, is_named)?;
        let installed = namespace.installed(&self.subscriptions, leaving).map_err(Unusable::Broken)?;
        let subscriptions = self.subscriptions.iter().zip(busy).map(|(s, busy)| s.wanted(*busy)).collect();
        let inputs = Inputs { namespace: name, subscriptions, catalogs, broken, installed };
        let resolution = resolver::resolve(&inputs).map_err(Unusable::Broken)?;
        Install::of(name, &resolution, &self.subscriptions, |csv| namespace.has(csv)).map_err(Unusable::Broken)
    }

    fn install(&mut self, install: &Install) {
        let Some(make) = install.make(&self.key.name, &self.subscriptions, &self.plans) else { return };
        match make {
            Make::Create(plan) => {
                let refusals = self.world.refusals(self.key);
                let refused = refusals.iter().find(|r| r.verb == Verb::Create && r.target.gvk.kind == "InstallPlan");
                if let Some(refused) = refused {
                    let message = format!("error ensuring InstallPlan: {}", refused.status.message);
                    for subscription in &mut self.subscriptions {
                        let condition = condition(UNPACK_FAILED, true, "EnsureInstallPlanFailed", &message);
                        set_timeless(&mut subscription.status, condition);
                    }
                    self.write_statuses();
                }
                // The Subscriptions are written when they can refer to it.
                self.subscriptions.clear();
                self.actions.push(Action::Create(plan));
            }
            Make::Fill(plan) => {
                install.link(&mut self.subscriptions, &plan);
                self.actions.push(Action::UpdateStatus(plan.clone()));
                self.filled = Some(plan);
            }
        }
    }

    /// Says in all Subscriptions, and in an Event, that they cannot be resolved.
    fn fail(&mut self, failure: &Failure) {
        let message = failure.to_string();
        let namespace = self.key.name.clone();
        let reason = match failure {
            Failure::Unsatisfiable(_) => "ConstraintsNotSatisfiable",
            Failure::Error(_) => "ErrorPreventedResolution",
        };
        let mut news = false;
        for subscription in &mut self.subscriptions {
            let before = subscription.status.clone();
            set_timeless(&mut subscription.status, condition(RESOLUTION_FAILED, true, reason, &message));
            news |= before != subscription.status;
        }
        if news {
            let object = self.world.json(&kind::NAMESPACE, "", &namespace);
            let regarding = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": { "name": namespace, "uid": object.map_or("", object::uid) },
            });
            let (warning, reason, message) = (true, RESOLUTION_FAILED.to_owned(), message.clone());
            self.actions.push(Action::Emit(Emit { regarding, warning, reason, message }));
        }
        self.reasons.push(Reason::Unsatisfiable { namespace, message });
    }

    /// A CSV that was installed and is gone is not installed again, as in OLM, until its InstallPlan is deleted too.
    fn tell_of_lost_csvs(&mut self, namespace: &Namespace<'_>) {
        for subscription in &self.subscriptions {
            let current = subscription.status("currentCSV");
            let plan = self.plans.iter().find(|p| object::name(p) == subscription.plan_name());
            if plan.is_some_and(|p| phase(p) == "Complete") && !current.is_empty() && !namespace.has(current) {
                let object = format!("Subscription {}/{}", self.key.name, subscription.name());
                let needs = format!("ClusterServiceVersion {current}");
                self.reasons.push(Reason::Missing { object, needs });
            }
        }
    }

    /// Completes the statuses and writes those that changed.
    fn write_statuses(&mut self) {
        let sources = offer::sources(self.world, self.settings, &self.key.name, true);
        let filled = self.filled.as_ref();
        let is_filled = |p: &&Value| filled.is_some_and(|f| object::uid(f) == object::uid(p));
        let plans: Vec<&Value> =
            filled.into_iter().chain(self.plans.iter().copied().filter(|p| !is_filled(p))).collect();
        for subscription in &mut self.subscriptions {
            subscription.follow(self.world, &plans, self.group.fail_forward);
            subscription.tell_of_catalogs(&sources, self.now);
            subscription.tell_of_plan(&plans, self.now);
            subscription.tell_of_deprecations(&sources, self.now);
        }
        let changed = self.subscriptions.iter().filter_map(|s| s.changed(self.now));
        self.actions.extend(changed.map(Action::UpdateStatus));
    }

    fn finish(mut self) -> Plan {
        self.write_statuses();
        Plan { actions: self.actions, reasons: self.reasons, ..Plan::default() }
    }
}
