//! The state of an InstallPlan, derived from its status, for commands that do not execute it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{blocking_step, crd, edits};
use crate::api::cluster_service_version::Csv;
use crate::api::conditions::Conditions;
use crate::api::install_plan::{self, InstallPlan, Phase, StepStatus, is_approved};
use crate::api::object;
use crate::api::subscription::Subscription;
use crate::bundle::reference;
use crate::plan::Reason;
use crate::settings::Settings;
use crate::world::{Reader, kind};

/// Prefix of the message about a failure that is retried (olm-behaviour/installplan.md#phases).
const RETRYING: &str = "retrying execution due to error: ";

/// OLM's message if it found no OperatorGroup to execute the plan with, which has several causes (olm-behaviour/installplan.md#phases).
const NO_GROUP: &str = "no operator group found that is managing this namespace";

/// The state of an InstallPlan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanSummary {
    /// `status.phase`; empty if it is not set.
    pub phase: Phase,
    /// `Automatic` or `Manual`.
    pub approval: String,
    /// Whether it is approved.
    pub approved: bool,
    /// The ClusterServiceVersions that it installs.
    pub csvs: Vec<Change>,
    /// Number of steps that are done, and of all steps.
    pub steps: (usize, usize),
    /// The next step, or the step that failed; `None` if the plan is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// The newer plan of the same namespace that supersedes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// Whether it is left over from operators that were uninstalled. Then nothing waits for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub left_over: bool,
    /// Why it is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Parts of its spec that are ignored, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_edits: Vec<String>,
}

/// A ClusterServiceVersion, and the one that it replaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The replaced ClusterServiceVersion, if one is or was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The new ClusterServiceVersion.
    pub to: String,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Status of the step.
    pub status: String,
    /// The ClusterServiceVersion of the bundle that it belongs to.
    pub resolving: String,
}

impl std::fmt::Display for Change {
    /// `a → b`, or `b`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.from {
            Some(from) => write!(f, "{from} → {}", self.to),
            None => f.write_str(&self.to),
        }
    }
}

impl PlanSummary {
    /// Reports whether the phase is terminal.
    pub fn is_final(&self) -> bool {
        self.phase.is_final()
    }

    /// Corrects the reason if the OperatorGroups of the namespace could not be read: then it is unknown whether there is one.
    pub fn without_groups(&mut self) {
        if let Some(Reason::NoOperatorGroup { namespace }) = &self.reason {
            let object = format!("the OperatorGroup of namespace {namespace}");
            self.reason = Some(Reason::Invalid { object, message: NO_GROUP.to_owned() });
        }
    }

    /// Reports whether it waits for approval. A superseded or left over plan does not, because it should not be approved.
    pub fn is_pending(&self) -> bool {
        self.phase == Phase::RequiresApproval && !self.approved && self.superseded_by.is_none() && !self.left_over
    }

    /// Marks it as left over: nothing waits for it, and no user has to act.
    pub fn set_left_over(&mut self) {
        self.left_over = true;
        self.reason = None;
    }
}

/// Reports whether the plan waits for approval.
pub fn waits_for_approval(plan: &Value) -> bool {
    InstallPlan::new(plan).phase() == Phase::RequiresApproval && !is_approved(plan)
}

/// Reports whether the plan is approved, but no controller has started to execute it.
pub fn waits_for_execution(plan: &Value) -> bool {
    InstallPlan::new(plan).phase() == Phase::RequiresApproval && is_approved(plan)
}

/// Returns the state of the plan. `settings` are those of the controllers that execute it.
pub fn summarize(settings: &Settings, world: &Reader<'_>, plan: &Value) -> PlanSummary {
    let steps = InstallPlan::new(plan).steps_json();
    let done = steps.iter().filter(|step| blocking_step::is_done(step)).count();
    let phase = InstallPlan::new(plan).phase();
    let approved = is_approved(plan);
    let step = (phase != Phase::Complete).then(|| blocking_step::open(plan)).flatten().map(|(_, step)| Step {
        kind: install_plan::Step::new(step).kind().to_owned(),
        name: install_plan::Step::new(step).name().to_owned(),
        status: install_plan::Step::new(step).status_text().to_owned(),
        resolving: install_plan::Step::new(step).resolving().to_owned(),
    });
    let reason = reason(settings, world, plan, phase, approved, step.as_ref());
    let mut summary = PlanSummary {
        approval: InstallPlan::new(plan).approval_text().to_owned(),
        csvs: changes(world, plan),
        steps: (done, steps.len()),
        superseded_by: superseded_by(world, plan).filter(|_| !phase.is_final()),
        phase,
        approved,
        step,
        left_over: false,
        reason,
        ignored_edits: edits::ignored_edits(plan),
    };
    // With a Subscription in the World, the Subscriptions were read.
    if world.all(&kind::SUBSCRIPTION).next().is_some() && is_left_over(world, plan) {
        summary.set_left_over();
    }
    summary
}

/// Reports whether a plan that is not complete is left over from operators that were uninstalled, if all Subscriptions and
/// ClusterServiceVersions of the namespace are known: a Subscription that owns it was deleted, and nothing of what it installs exists or is
/// named by a Subscription. The garbage collector deletes such a plan only when the last of its Subscriptions is deleted.
pub fn is_left_over(world: &Reader<'_>, plan: &Value) -> bool {
    let namespace = object::namespace(plan);
    let is_deleted = |owner: &Value| {
        let [of_kind, name, uid] = ["kind", "name", "uid"].map(|field| object::text(owner, &[field]));
        let found = world.json(&kind::SUBSCRIPTION, namespace, name).map(object::uid);
        of_kind == kind::SUBSCRIPTION.kind
            && found.is_none_or(|found| !found.is_empty() && !uid.is_empty() && found != uid)
    };
    let is_used = |csv: &&str| {
        let named =
            |subscription: Subscription<'_>| [subscription.installed_csv(), subscription.current_csv()].contains(csv);
        let mut subscriptions = world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|o| Subscription::new(o.json()));
        world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, csv).is_some() || subscriptions.any(named)
    };
    let csvs = edits::csvs(plan);
    InstallPlan::new(plan).phase() != Phase::Complete
        && object::list(plan, &["metadata", "ownerReferences"]).iter().any(is_deleted)
        && !csvs.is_empty()
        && !csvs.iter().any(is_used)
}

fn reason(
    settings: &Settings,
    world: &Reader<'_>,
    plan: &Value,
    phase: Phase,
    approved: bool,
    step: Option<&Step>,
) -> Option<Reason> {
    let (namespace, name) = (object::namespace(plan).to_owned(), object::name(plan).to_owned());
    let waits = |message: &str| {
        let (namespace, name, message) = (namespace.clone(), name.clone(), message.to_owned());
        Some(Reason::InstallPlanWaits { namespace, name, message })
    };
    let message = InstallPlan::new(plan).message();
    match phase {
        Phase::Complete => None,
        Phase::Failed => {
            let (message, blocking_bundle) = (message.to_owned(), blocking_step::of_failed(world, plan));
            Some(Reason::InstallPlanFailed { namespace, name, message, blocking_bundle })
        }
        Phase::None | Phase::Planning if !InstallPlan::new(plan).steps_json().is_empty() => {
            waits("no controller has started to execute it")
        }
        Phase::RequiresApproval if approved => waits("it is approved, but no controller has started to execute it"),
        Phase::RequiresApproval => {
            let csvs = edits::csvs(plan).into_iter().map(str::to_owned).collect();
            Some(Reason::ApprovalNeeded { namespace, name, csvs })
        }
        Phase::Installing => {
            if let Some(reason) = unchecked(world, plan) {
                return Some(reason);
            }
            if let Some(message) = message.strip_prefix(RETRYING) {
                let message = message.to_owned();
                let started = InstallPlan::new(plan).started();
                // Forbidden requests are retried without a deadline.
                let is_final = !message.contains("is forbidden");
                let ends = |started: Timestamp| started + settings.install_plan_retry_timeout;
                let fails_at = started.filter(|_| is_final).map(ends);
                let blocking_bundle = blocking_step::of_failed(world, plan);
                // Only the controller that executes the plan knows the number of attempts and the time of the next one.
                let (attempts, next_at) = (0, None);
                return Some(Reason::InstallPlanRetries {
                    namespace,
                    name,
                    message,
                    blocking_bundle,
                    attempts,
                    next_at,
                    fails_at,
                });
            }
            let steps = InstallPlan::new(plan).steps_json();
            match (steps.iter().find(|s| install_plan::Step::new(s).status() == StepStatus::WaitingForApi), step) {
                (Some(waiting), _) => waits(&crd::waiting(waiting)),
                (None, Some(Step { kind, name, .. })) => waits(&format!("the next step is {kind} {name}")),
                (None, None) => waits("all steps are done, but its phase is not updated yet"),
            }
        }
        _ => {
            let object = format!("InstallPlan {namespace}/{name}");
            let message = "it has no steps: OLM executes only InstallPlans that it has created itself".to_owned();
            Some(Reason::Invalid { object, message })
        }
    }
}

/// Returns the reason that blocks all plans of the namespace, if there is one.
fn unchecked(world: &Reader<'_>, plan: &Value) -> Option<Reason> {
    let failed = Conditions::new(plan).iter().find(|c| c.reason() == install_plan::reason::CHECK_FAILED)?;
    let namespace = object::namespace(plan).to_owned();
    let groups = world.in_namespace(&kind::OPERATOR_GROUP, &namespace);
    let mut names: Vec<String> = groups.map(|group| object::name(group.json()).to_owned()).collect();
    let message = failed.message();
    Some(match names.len() {
        0 if message.starts_with(NO_GROUP) => Reason::NoOperatorGroup { namespace },
        1 => Reason::Invalid {
            object: format!("OperatorGroup {namespace}/{}", names.remove(0)),
            message: message.to_owned(),
        },
        0 => Reason::Invalid {
            object: format!("the OperatorGroup of namespace {namespace}"),
            message: message.to_owned(),
        },
        _ => Reason::TooManyOperatorGroups { namespace, names },
    })
}

/// Returns the ClusterServiceVersions that the plan installs, and those that they replace.
pub fn changes(world: &Reader<'_>, plan: &Value) -> Vec<Change> {
    edits::csvs(plan)
        .into_iter()
        .map(|to| Change { from: replaced(plan, to).filter(|from| was_there(world, plan, from)), to: to.to_owned() })
        .collect()
}

/// Returns the ClusterServiceVersion that one of the plan replaces.
fn replaced(plan: &Value, csv: &str) -> Option<String> {
    let lookups = InstallPlan::new(plan).bundle_lookups();
    let lookup = lookups.iter().find(|lookup| object::text(lookup, &["identifier"]) == csv);
    let of_lookup = lookup.map(|lookup| object::text(lookup, &["replaces"]).to_owned());
    let of_step = || {
        let is_of_csv = |step: &&Value| {
            let text = |key| object::text(step, &["resource", key]);
            text("kind") == "ClusterServiceVersion" && text("name") == csv
        };
        let step = InstallPlan::new(plan).steps_json().iter().find(is_of_csv)?;
        let manifest = install_plan::Step::new(step).manifest();
        if let Some(replaces) = reference::replaces(manifest) {
            return Some(replaces);
        }
        let manifest: Value = serde_json::from_str(manifest).ok()?;
        Some(Csv::new(&manifest).replaces().to_owned())
    };
    of_lookup.filter(|name| !name.is_empty()).or_else(of_step).filter(|name| !name.is_empty())
}

/// Reports whether that ClusterServiceVersion is or was installed. A bundle names the one that it replaces even on a first installation.
fn was_there(world: &Reader<'_>, plan: &Value, csv: &str) -> bool {
    let namespace = object::namespace(plan);
    if world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, csv).is_some() {
        return true;
    }
    let mut plans = world.in_namespace(&kind::INSTALL_PLAN, namespace).map(|o| o.json());
    plans.any(|other| generation(other) < generation(plan) && edits::csvs(other).contains(&csv))
}

fn generation(plan: &Value) -> i64 {
    InstallPlan::new(plan).generation()
}

/// Returns the newest plan of the namespace, if it is newer than this one. OLM's resolution reads only the newest plan, but OLM still
/// executes an old one that is approved.
pub fn superseded_by(world: &Reader<'_>, plan: &Value) -> Option<String> {
    let plans = world.in_namespace(&kind::INSTALL_PLAN, object::namespace(plan)).map(|o| o.json());
    let newest = plans.max_by_key(|other| generation(other))?;
    // Generations start at 1; plans that were created by hand or by old versions of OLM have none.
    (generation(plan) > 0 && generation(newest) > generation(plan)).then(|| object::name(newest).to_owned())
}

/// Returns the Subscriptions of the namespace whose `currentCSV` is a ClusterServiceVersion of the plan.
pub fn subscriptions<'w>(world: &Reader<'w>, plan: &Value) -> Vec<&'w Value> {
    let csvs: BTreeSet<&str> = edits::csvs(plan).into_iter().collect();
    let all = world.in_namespace(&kind::SUBSCRIPTION, object::namespace(plan)).map(|o| o.json());
    all.filter(|s| csvs.contains(Subscription::new(s).current_csv())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_is_left_over_when_all_that_it_installs_was_uninstalled() {
        let metadata = |name: &str| json!({ "namespace": "garden", "name": name, "uid": name });
        let subscription = |name: &str, csv: &str| {
            json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": metadata(name),
                    "status": { "currentCSV": csv } })
        };
        let csv = json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": metadata("rose.v1") });
        let plan = |phase: &str, owners: &[&str]| {
            let owners = owners.iter().map(|name| json!({ "kind": "Subscription", "name": name, "uid": name }));
            let mut plan = json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan", "metadata": metadata("install-a"),
                "spec": { "clusterServiceVersionNames": ["rose.v1"], "approval": "Manual", "approved": false },
                "status": { "phase": phase },
            });
            plan["metadata"]["ownerReferences"] = owners.collect();
            plan
        };
        let waiting = plan("RequiresApproval", &["rose", "bee"]);
        let bee = subscription("bee", "bee.v1");
        for (objects, plan, expected) in [
            (vec![bee.clone()], &waiting, true),
            (vec![bee.clone()], &plan("Failed", &["rose", "bee"]), true),
            (vec![bee.clone()], &plan("Complete", &["rose", "bee"]), false),
            (vec![bee.clone()], &plan("RequiresApproval", &["bee"]), false),
            (vec![bee.clone()], &plan("RequiresApproval", &[]), false),
            (vec![bee.clone(), csv], &waiting, false),
            (vec![bee, subscription("tulip", "rose.v1")], &waiting, false),
            (vec![], &waiting, false),
        ] {
            let world = crate::testing::world(&objects);
            let summary = summarize(&Settings::default(), &Reader::new(&world), plan);
            assert_eq!((summary.left_over, summary.is_pending() && expected), (expected, false), "{objects:?} {plan}");
            assert!(!expected || summary.reason.is_none(), "{summary:?}");
        }
    }
}
