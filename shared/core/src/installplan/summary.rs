//! Where an InstallPlan stands, as its status tells whoever executes it: for those who only look.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{blocking_step, crd, edits};
use crate::api::cluster_service_version::Csv;
use crate::api::conditions::Conditions;
use crate::api::install_plan::{self, InstallPlan, Phase, is_approved};
use crate::api::object;
use crate::api::subscription::Subscription;
use crate::bundle::reference;
use crate::plan::Reason;
use crate::settings::Settings;
use crate::world::{Reader, kind};

/// How a message about a failure that is not the last begins (olm-behaviour/installplan.md#phases).
const RETRYING: &str = "retrying execution due to error: ";

/// How OLM says that it found no OperatorGroup to execute the plan with, for more causes than one (olm-behaviour/installplan.md#phases).
const NO_GROUP: &str = "no operator group found that is managing this namespace";

/// Where an InstallPlan stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanSummary {
    /// `status.phase`; empty when nobody has written it.
    pub phase: String,
    /// `Automatic` or `Manual`.
    pub approval: String,
    /// Has somebody approved it?
    pub approved: bool,
    /// The ClusterServiceVersions that it brings.
    pub csvs: Vec<Change>,
    /// How many of its steps are done, and of how many.
    pub steps: (usize, usize),
    /// The step that is to be done next, or that failed, when it is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// The plan of the same namespace that came after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// Why it is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What its spec says and nobody heeds, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unheeded: Vec<String>,
}

/// A ClusterServiceVersion, and the one in whose place it comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What is or was installed; none when there is nothing before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What comes.
    pub to: String,
}

/// An object that a plan makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What became of it so far.
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
    /// Will nobody ever change it again by himself?
    pub fn is_final(&self) -> bool {
        Phase::from(self.phase.as_str()).is_final()
    }

    /// Takes it that the OperatorGroups of the namespace could not be read: then it is not known whether there is one.
    pub fn without_groups(&mut self) {
        if let Some(Reason::NoOperatorGroup { namespace }) = &self.reason {
            let object = format!("the OperatorGroup of namespace {namespace}");
            self.reason = Some(Reason::Invalid { object, message: NO_GROUP.to_owned() });
        }
    }

    /// Does it wait for somebody's approval? One that a newer plan supersedes should not get it.
    pub fn is_pending(&self) -> bool {
        self.phase == Phase::RequiresApproval.as_str() && !self.approved && self.superseded_by.is_none()
    }
}

/// Is the plan made, and not approved yet?
pub fn waits_for_approval(plan: &Value) -> bool {
    InstallPlan::of(plan).phase() == Phase::RequiresApproval && !is_approved(plan)
}

/// Is the plan approved, while no controller has begun to execute it?
pub fn waits_for_execution(plan: &Value) -> bool {
    InstallPlan::of(plan).phase() == Phase::RequiresApproval && is_approved(plan)
}

/// Where the plan stands. `settings` are those of whoever executes it.
pub fn summarize(settings: &Settings, world: &Reader<'_>, plan: &Value) -> PlanSummary {
    let steps = InstallPlan::of(plan).steps_json();
    let done = steps.iter().filter(|step| blocking_step::is_done(step)).count();
    let phase = InstallPlan::of(plan).phase_text().to_owned();
    let approved = is_approved(plan);
    let step = (phase != Phase::Complete.as_str()).then(|| blocking_step::open(plan)).flatten().map(|(_, step)| Step {
        kind: install_plan::Step::of(step).kind().to_owned(),
        name: install_plan::Step::of(step).name().to_owned(),
        status: object::text(step, &["status"]).to_owned(),
        resolving: install_plan::Step::of(step).resolving().to_owned(),
    });
    let reason = reason(settings, world, plan, &phase, approved, step.as_ref());
    PlanSummary {
        approval: InstallPlan::of(plan).approval_text().to_owned(),
        csvs: changes(world, plan),
        steps: (done, steps.len()),
        superseded_by: superseded_by(world, plan).filter(|_| !Phase::from(phase.as_str()).is_final()),
        phase,
        approved,
        step,
        reason,
        unheeded: edits::unheeded(plan),
    }
}

fn reason(
    settings: &Settings,
    world: &Reader<'_>,
    plan: &Value,
    phase: &str,
    approved: bool,
    step: Option<&Step>,
) -> Option<Reason> {
    let (namespace, name) = (object::namespace(plan).to_owned(), object::name(plan).to_owned());
    let waits = |message: &str| {
        let (namespace, name, message) = (namespace.clone(), name.clone(), message.to_owned());
        Some(Reason::InstallPlanWaits { namespace, name, message })
    };
    let message = InstallPlan::of(plan).message();
    match Phase::from(phase) {
        Phase::Complete => None,
        Phase::Failed => {
            let (message, culprit) = (message.to_owned(), blocking_step::of_failed(world, plan));
            Some(Reason::InstallPlanFailed { namespace, name, message, culprit })
        }
        Phase::None | Phase::Planning if !InstallPlan::of(plan).steps_json().is_empty() => {
            waits("no controller has begun to execute it yet")
        }
        Phase::RequiresApproval if approved => waits("it is approved, and no controller has begun to execute it yet"),
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
                let started = InstallPlan::of(plan).started();
                // What is forbidden is tried for ever.
                let is_final = !message.contains("is forbidden");
                let ends = |started: Timestamp| started + settings.install_plan_retry_timeout;
                let fails_at = started.filter(|_| is_final).map(ends);
                let culprit = blocking_step::of_failed(world, plan);
                // How often, and when next, only who carries it out knows.
                let (attempts, next_at) = (0, None);
                return Some(Reason::InstallPlanRetries {
                    namespace,
                    name,
                    message,
                    culprit,
                    attempts,
                    next_at,
                    fails_at,
                });
            }
            let steps = InstallPlan::of(plan).steps_json();
            match (steps.iter().find(|s| object::text(s, &["status"]) == crd::WAITING), step) {
                (Some(waiting), _) => waits(&crd::waiting(waiting)),
                (None, Some(Step { kind, name, .. })) => waits(&format!("{kind} {name} comes next")),
                (None, None) => waits("all its steps are done, and nobody has said so yet"),
            }
        }
        _ => {
            let object = format!("InstallPlan {namespace}/{name}");
            let message = "it has no steps: OLM carries out what it has planned itself, and nothing else".to_owned();
            Some(Reason::Invalid { object, message })
        }
    }
}

/// What keeps all plans of the namespace from being executed.
fn unchecked(world: &Reader<'_>, plan: &Value) -> Option<Reason> {
    let failed = Conditions::of(plan).iter().find(|c| c.reason() == install_plan::reason::CHECK_FAILED)?;
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

/// What the plan brings, and in whose place.
pub fn changes(world: &Reader<'_>, plan: &Value) -> Vec<Change> {
    edits::csvs(plan)
        .into_iter()
        .map(|to| Change { from: replaced(plan, to).filter(|from| was_there(world, plan, from)), to: to.to_owned() })
        .collect()
}

/// What a ClusterServiceVersion of the plan says that it replaces.
fn replaced(plan: &Value, csv: &str) -> Option<String> {
    let lookups = InstallPlan::of(plan).bundle_lookups();
    let lookup = lookups.iter().find(|lookup| object::text(lookup, &["identifier"]) == csv);
    let of_lookup = lookup.map(|lookup| object::text(lookup, &["replaces"]).to_owned());
    let of_step = || {
        let is_of_csv = |step: &&Value| {
            let text = |key| object::text(step, &["resource", key]);
            text("kind") == "ClusterServiceVersion" && text("name") == csv
        };
        let step = InstallPlan::of(plan).steps_json().iter().find(is_of_csv)?;
        let manifest = install_plan::Step::of(step).manifest();
        if let Some(replaces) = reference::replaces(manifest) {
            return Some(replaces);
        }
        let manifest: Value = serde_json::from_str(manifest).ok()?;
        Some(Csv::of(&manifest).replaces().to_owned())
    };
    of_lookup.filter(|name| !name.is_empty()).or_else(of_step).filter(|name| !name.is_empty())
}

/// Is or was that ClusterServiceVersion installed? A bundle says what it replaces also where nothing was before.
fn was_there(world: &Reader<'_>, plan: &Value, csv: &str) -> bool {
    let namespace = object::namespace(plan);
    if world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, csv).is_some() {
        return true;
    }
    let mut plans = world.in_namespace(&kind::INSTALL_PLAN, namespace).map(|o| o.json());
    plans.any(|other| generation(other) < generation(plan) && edits::csvs(other).contains(&csv))
}

fn generation(plan: &Value) -> i64 {
    InstallPlan::of(plan).generation()
}

/// The newest plan of the namespace that came after this one. OLM looks at the newest only when it resolves, but still carries out an
/// old one that somebody approves.
pub fn superseded_by(world: &Reader<'_>, plan: &Value) -> Option<String> {
    let plans = world.in_namespace(&kind::INSTALL_PLAN, object::namespace(plan)).map(|o| o.json());
    let newest = plans.max_by_key(|other| generation(other))?;
    // Generations count from 1; plans that somebody made, and those of old OLMs, have none.
    (generation(plan) > 0 && generation(newest) > generation(plan)).then(|| object::name(newest).to_owned())
}

/// The Subscriptions that the plan was made for: of its namespace, and with a ClusterServiceVersion of it as their current one.
pub fn subscriptions<'w>(world: &Reader<'w>, plan: &Value) -> Vec<&'w Value> {
    let csvs: BTreeSet<&str> = edits::csvs(plan).into_iter().collect();
    let all = world.in_namespace(&kind::SUBSCRIPTION, object::namespace(plan)).map(|o| o.json());
    all.filter(|s| csvs.contains(Subscription::of(s).current_csv())).collect()
}
