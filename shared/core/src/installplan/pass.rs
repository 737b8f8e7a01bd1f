//! One pass over the steps of an InstallPlan (olm-behaviour/installplan.md#execution).

use jiff::Timestamp;
use serde_json::Value;

use super::optional::{self, Skipped};
use super::step::{self, Outcome, ParallelGroup};
use super::{Refusal, crd};
use crate::api::install_plan::{InstallPlan, Step, StepStatus};
use crate::plan::{Account, Action, Question};
use crate::settings::Settings;
use crate::world::Reader;

const INVALID: &str = "the InstallPlan contains invalid data";

/// The result of a pass.
pub(super) struct Pass {
    /// The steps with the statuses that they have once `actions` are done.
    pub(super) steps: Vec<Value>,
    /// The actions, in batches of independent actions.
    pub(super) actions: Vec<Vec<Action>>,
    /// Refused actions to retry, and the actions that follow them.
    pub(super) retry: Vec<Vec<Action>>,
    /// Optional steps that the plan skips from now on.
    pub(super) skipped: Vec<Skipped>,
    /// Warnings to emit once `actions` are done.
    pub(super) warnings: Vec<String>,
    /// Why not all steps are done after that; `None` if they are.
    pub(super) stop: Option<Stop>,
}

/// Why a pass ends before the last step is done.
pub(super) enum Stop {
    /// Something has to happen first, which will be observed.
    Wait(String),
    /// A step failed.
    Error(Error),
}

/// The failure of a step.
pub(super) struct Error {
    /// OLM's message.
    pub(super) message: String,
    /// Index of the step.
    pub(super) step: usize,
    /// Whether the plan fails if the error persists until its deadline.
    pub(super) is_final: bool,
    /// Number of consecutive refusals by the API server.
    pub(super) attempts: u32,
    /// When the step is retried or checked again, unless a change is observed before.
    pub(super) again: Option<Timestamp>,
}

/// An action for a step. `blind`: it is unknown whether the action is needed, so it is executed only when nothing else has to be awaited.
struct Planned {
    step: usize,
    action: Action,
    after: StepStatus,
    parallel_group: Option<ParallelGroup>,
    blind: bool,
    optional: bool,
    warning: Option<String>,
}

/// The results of the steps so far.
#[derive(Default)]
struct Found {
    planned: Vec<Planned>,
    questions: Vec<Action>,
    skipped: Vec<Skipped>,
    /// What has to happen before the plan can be complete.
    waits: Option<String>,
    error: Option<Error>,
}

impl Pass {
    /// Runs a pass over all steps. Actions use the permissions of the account.
    pub(super) fn over(
        settings: &Settings,
        world: &Reader<'_>,
        plan: &Value,
        refusals: &[Refusal],
        account: Option<&Account>,
        now: Timestamp,
    ) -> Self {
        let mut steps = InstallPlan::new(plan).steps_json().to_vec();
        let mut found = Found::default();
        let mut csvs_to_come: Vec<String> = Vec::new();
        for (index, step) in steps.iter_mut().enumerate() {
            let is_optional = optional::is(settings, step);
            let fail =
                |message: String, is_final, again| Some(Error { message, step: index, is_final, attempts: 0, again });
            match Step::new(step).status() {
                StepStatus::Created | StepStatus::Present => continue,
                StepStatus::NotCreated if is_optional => continue,
                StepStatus::Unknown | StepStatus::NotPresent | StepStatus::WaitingForApi => {}
                StepStatus::NotCreated | StepStatus::UnsupportedResource | StepStatus::Other => {
                    found.error = fail(INVALID.to_owned(), true, None);
                    break;
                }
            }
            if is_optional && found.waits.is_some() {
                // The APIs that the plan itself defines come first; only then is it certain that one is missing.
                continue;
            }
            let kind = Step::new(step).kind().to_owned();
            let outcome = match kind.as_str() {
                step::CRD => crd::outcome(world, plan, step, now),
                _ => step::outcome(world, plan, step, &csvs_to_come, is_optional),
            };
            match outcome {
                Outcome::Done(status) => step["status"] = status.into(),
                Outcome::Act { action, after, blind, warning } => {
                    if is_optional && let Some(refusal) = optional::given_up(world, step, &action, refusals) {
                        step["status"] = StepStatus::NotCreated.into();
                        found.skipped.push(Skipped::new(step, refusal));
                        continue;
                    }
                    if kind == "ClusterServiceVersion" {
                        csvs_to_come.push(action.target().name);
                    }
                    if after == StepStatus::WaitingForApi {
                        found.waits.get_or_insert_with(|| crd::waiting(step));
                    }
                    // As in OLM, definitions are written with the controllers' own permissions.
                    let account = account.filter(|_| kind != step::CRD);
                    let action = action.with_permissions_of(account);
                    let parallel_group = step::parallel_group(world, step, is_optional);
                    let planned =
                        Planned { step: index, action, after, parallel_group, blind, optional: is_optional, warning };
                    found.planned.push(planned);
                }
                Outcome::Ask(question) => {
                    found.waits.get_or_insert_with(|| awaited(&question));
                    found.questions.push(Action::Ask(question));
                }
                Outcome::Wait(status, message) => {
                    step["status"] = status.into();
                    found.waits.get_or_insert(message);
                }
                Outcome::NeedsOwner(message) => {
                    found.waits = Some(message);
                    break;
                }
                Outcome::Fail(message, again) => found.error = fail(message, true, again),
                Outcome::Denied(message, again) => found.error = fail(message, false, again),
                Outcome::Unsupported => {
                    step["status"] = StepStatus::UnsupportedResource.into();
                    found.error = fail(INVALID.to_owned(), true, None);
                }
            }
            if found.error.is_some() {
                break;
            }
        }
        found.pass(steps, world, refusals)
    }
}

/// Returns what a plan waits for while an external fact is requested.
fn awaited(question: &Question) -> String {
    match question {
        Question::CheckSchema(fit) => format!("every {} is validated against the new schema of its CRD", fit.kind),
        _ => "the kinds that the API server serves are being discovered".to_owned(),
    }
}

impl Found {
    fn pass(self, mut steps: Vec<Value>, world: &Reader<'_>, refusals: &[Refusal]) -> Pass {
        let refusal_of = |p: &Planned| {
            let refusal = step::refusal_of(&p.action, refusals)?;
            let is_settling = p.optional && optional::is_settling(world, &steps[p.step], refusal);
            (!refusal.is_stale() && !is_settling).then_some(refusal)
        };
        let refused = self.planned.iter().enumerate().find_map(|(i, p)| Some((i, refusal_of(p)?)));
        if let Some((at, refusal)) = refused {
            return self.refused(steps, at, refusal);
        }
        let Self { planned, questions, skipped, waits, error } = self;
        // Blind actions are sent only together with the write of the status that records them.
        let waiting = waits.is_some() && error.is_none();
        let (mut actions, mut warnings) = (Batches::default(), Vec::new());
        for Planned { step, action, after, parallel_group, blind, warning, .. } in planned {
            if blind && waiting {
                continue;
            }
            steps[step]["status"] = after.into();
            actions.push(parallel_group, action);
            warnings.extend(warning);
        }
        let mut actions = actions.end();
        if error.is_none() && !questions.is_empty() {
            actions.push(questions);
        }
        let stop = match (waits, error) {
            (_, Some(error)) => Some(Stop::Error(error)),
            (Some(message), None) => Some(Stop::Wait(message)),
            (None, None) => None,
        };
        Pass { steps, actions, retry: Vec::new(), skipped, warnings, stop }
    }

    fn refused(self, mut steps: Vec<Value>, at: usize, refusal: &Refusal) -> Pass {
        let Self { planned, skipped, .. } = self;
        let Planned { step, parallel_group, .. } = planned[at];
        let message = step::refusal(&steps[step], refusal);
        let (is_final, attempts) = (!refusal.status.is_forbidden(), refusal.attempts);
        let error = Error { message, step, is_final, attempts, again: Some(refusal.retry_at) };
        // The start of the batch of the refused action.
        let before = planned[..at].iter().rposition(|p| parallel_group.is_none() || p.parallel_group != parallel_group);
        let batch = before.map_or(0, |last| last + 1);
        let (mut actions, mut retry, mut warnings) = (Batches::default(), Batches::default(), Vec::new());
        for (index, Planned { step, action, after, parallel_group, blind, warning, .. }) in
            planned.into_iter().enumerate()
        {
            if blind && index < batch {
                // It has succeeded, because otherwise the refused action would not have been tried.
                steps[step]["status"] = after.into();
                warnings.extend(warning);
            } else if blind || index >= at {
                retry.push(parallel_group, action);
            } else {
                actions.push(parallel_group, action);
            }
        }
        let (actions, retry) = (actions.end(), retry.end());
        Pass { steps, actions, retry, skipped, warnings, stop: Some(Stop::Error(error)) }
    }
}

/// Actions in their order, in batches of actions that may be executed concurrently.
#[derive(Default)]
struct Batches(Vec<(Option<ParallelGroup>, Vec<Action>)>);

impl Batches {
    fn push(&mut self, parallel_group: Option<ParallelGroup>, action: Action) {
        match self.0.last_mut() {
            Some((last, batch)) if parallel_group.is_some() && *last == parallel_group => batch.push(action),
            _ => self.0.push((parallel_group, vec![action])),
        }
    }

    fn end(self) -> Vec<Vec<Action>> {
        let in_two = |(_, batch): (_, Vec<Action>)| {
            let (after, before): (Vec<_>, Vec<_>) = batch.into_iter().partition(step::refers);
            [before, after]
        };
        self.0.into_iter().flat_map(in_two).filter(|batch| !batch.is_empty()).collect()
    }
}
