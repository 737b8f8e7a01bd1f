//! One pass over the steps of an InstallPlan (reference/catalog-operator.md §5.4).

use serde_json::Value;

use super::apply::{self, Outcome};
use super::{Refusal, crd};
use crate::api::object;
use crate::plan::Action;
use crate::world::Reader;

/// What a pass comes to.
pub(super) struct Pass {
    /// The steps with their outcomes, as far as they are certain once `actions` are done.
    pub(super) steps: Vec<Value>,
    /// What to do now, in order.
    pub(super) actions: Vec<Action>,
    /// What was refused before and is to be tried again, and what comes after it.
    pub(super) retry: Vec<Action>,
    /// Why not all steps are done then; `None` when they are.
    pub(super) stop: Option<Stop>,
}

/// Why a pass ends before the last step is done.
pub(super) enum Stop {
    /// Something has to happen first, which will be seen.
    Wait(String),
    /// A step failed. `is_final`: time makes it a failure of the plan.
    Error { message: String, is_final: bool },
}

/// An action for a step. `blind`: whether it is needed cannot be seen, so it is done only when nothing else is left to wait for.
struct Planned {
    step: usize,
    action: Action,
    after: &'static str,
    blind: bool,
}

impl Pass {
    /// Looks at all steps.
    pub(super) fn over(world: &Reader<'_>, plan: &Value, refusals: &[Refusal]) -> Self {
        let mut steps = object::list(plan, &["status", "plan"]).to_vec();
        let (mut planned, mut waits, mut error) = (Vec::new(), None, None);
        let mut csvs_to_come: Vec<String> = Vec::new();
        for (index, step) in steps.iter_mut().enumerate() {
            let kind = object::text(step, &["resource", "kind"]).to_owned();
            match object::text(step, &["status"]) {
                "Created" | "Present" => continue,
                "Unknown" | "NotPresent" | "WaitingForApi" => {}
                _ => {
                    error = Some("the InstallPlan contains invalid data".to_owned());
                    break;
                }
            }
            let outcome = match kind.as_str() {
                "CustomResourceDefinition" => crd::step(world, plan, step),
                _ => apply::step(world, plan, step, &csvs_to_come),
            };
            match outcome {
                Outcome::Done(status) => step["status"] = status.into(),
                Outcome::Act { action, after, blind } => {
                    if kind == "ClusterServiceVersion" {
                        csvs_to_come.push(object::text(step, &["resource", "name"]).to_owned());
                    }
                    if after == crd::WAITING {
                        waits.get_or_insert_with(|| crd::waiting(step));
                    }
                    planned.push(Planned { step: index, action, after, blind });
                }
                Outcome::Wait(status, message) => {
                    step["status"] = status.into();
                    waits.get_or_insert(message);
                }
                Outcome::NeedsOwner(message) => {
                    waits = Some(message);
                    break;
                }
                Outcome::Fail(message) => {
                    error = Some(message);
                    break;
                }
            }
        }
        let is_refused = |p: &Planned| {
            let (verb, target) = (p.action.verb(), p.action.target());
            refusals.iter().find(|r| r.verb == verb && r.target == target && !r.is_stale())
        };
        if let Some((at, refusal)) = planned.iter().enumerate().find_map(|(i, p)| Some((i, is_refused(p)?))) {
            return Self::refused(steps, planned, at, refusal);
        }
        // What may or may not be needed is sent only with the write that remembers it.
        let waiting = waits.is_some() && error.is_none();
        let mut actions = Vec::new();
        for Planned { step, action, after, blind } in planned {
            if blind && waiting {
                continue;
            }
            steps[step]["status"] = after.into();
            actions.push(action);
        }
        let stop = match (waits, error) {
            (_, Some(message)) => Some(Stop::Error { message, is_final: true }),
            (Some(message), None) => Some(Stop::Wait(message)),
            (None, None) => None,
        };
        Self { steps, actions, retry: Vec::new(), stop }
    }

    fn refused(mut steps: Vec<Value>, planned: Vec<Planned>, at: usize, refusal: &Refusal) -> Self {
        let step = &steps[planned[at].step];
        let message = apply::refusal(step, refusal);
        let is_final = !refusal.status.is_forbidden();
        let (mut actions, mut retry) = (Vec::new(), Vec::new());
        for (index, Planned { step, action, after, blind }) in planned.into_iter().enumerate() {
            if index >= at {
                retry.push(action);
            } else if blind {
                // It went through, or the refused one would not have been tried.
                steps[step]["status"] = after.into();
            } else {
                actions.push(action);
            }
        }
        Self { steps, actions, retry, stop: Some(Stop::Error { message, is_final }) }
    }
}
