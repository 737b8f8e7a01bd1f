//! Steps that an InstallPlan may skip (enhancement `optional-manifest`, feature gate `OptionalManifests`).
//!
//! ```text
//!   permanent refusal by the API server        -> NotCreated, the plan continues, a warning
//!   temporary refusal, or no response          -> retried until the plan's deadline, like any other step
//!   its API appears later (--retry-optional)   -> retried once
//! ```

use jiff::Timestamp;
use serde_json::Value;

use super::step::{self, Outcome};
use super::{NewStatus, permissions};
use crate::api::conditions::Conditions;
use crate::api::install_plan::{InstallPlan, Step, StepStatus, condition};
use crate::api::object;
use crate::api::status::Status;
use crate::bundle::optional::may_be_optional;
use crate::plan::{Action, Emit, Key, Plan, Reason};
use crate::settings::Settings;
use crate::world::{Reader, Refusal};

/// Maximum number of "not found" responses for an established API, which is served only a moment after its definition is established.
const SETTLING_TRIES: u32 = 3;

/// Reports whether the plan may skip the step.
pub(super) fn is(settings: &Settings, step: &Value) -> bool {
    let says_so = Step::new(step).is_optional();
    settings.optional_manifests && says_so && may_be_optional(&step::gvk(step))
}

/// Reports whether a response is permanent for this cluster, so that a retry would not change it. It is classified by its reason, or by its
/// code if the reason is unknown, as Kubernetes clients do.
pub(super) fn is_about_the_cluster(answer: &Status) -> bool {
    match answer.reason.as_str() {
        "Unauthorized"
        | "Forbidden"
        | "NotFound"
        | "NotAcceptable"
        | "Conflict"
        | "UnsupportedMediaType"
        | "Invalid" => true,
        "AlreadyExists"
        | "Gone"
        | "ServerTimeout"
        | "StoreReadError"
        | "Timeout"
        | "TooManyRequests"
        | "BadRequest"
        | "MethodNotAllowed"
        | "RequestEntityTooLarge"
        | "InternalError"
        | "Expired"
        | "ServiceUnavailable" => false,
        _ => matches!(answer.code, 401 | 403 | 404 | 406 | 409 | 415 | 422),
    }
}

/// Returns the refusal for which the plan skips the optional step, if there is one.
pub(super) fn given_up<'r>(
    world: &Reader<'_>,
    step: &Value,
    action: &Action,
    refusals: &'r [Refusal],
) -> Option<&'r Refusal> {
    let refusal = step::refusal_of(action, refusals)?;
    let is_certain = !refusal.is_stale() && !is_settling(world, step, refusal);
    (is_certain && is_about_the_cluster(&refusal.status)).then_some(refusal)
}

/// Reports whether the API of an optional step is not found although its definition is established.
pub(super) fn is_settling(world: &Reader<'_>, step: &Value, refusal: &Refusal) -> bool {
    refusal.status.is_not_found() && refusal.attempts <= SETTLING_TRIES && step::served_since(world, step).is_some()
}

/// A step that the plan skips, with the message of its Event.
#[derive(Debug)]
pub(super) struct Skipped(String);

impl Skipped {
    /// Creates it for a refusal of the API server.
    pub(super) fn new(step: &Value, refusal: &Refusal) -> Self {
        let csv = Step::new(step).resolving();
        let why = step::refusal(step, refusal);
        Self(format!("the plan goes on without optional {} of {csv}: {why}", described(step)))
    }

    /// Returns the Event about it.
    pub(super) fn event(&self, plan: &Value) -> Action {
        Action::Emit(Emit {
            regarding: plan.clone(),
            warning: true,
            reason: "OptionalManifestNotCreated".to_owned(),
            message: self.0.clone(),
        })
    }
}

fn described(step: &Value) -> String {
    let [kind, name] = ["kind", "name"].map(|key| object::text(step, &["resource", key]));
    format!("{kind} {name:?}")
}

/// Plans a complete InstallPlan: reports skipped steps, and retries them if their API has appeared.
pub(super) fn after_all(settings: &Settings, world: &Reader<'_>, key: &Key, plan: &Value, now: Timestamp) -> Plan {
    let mut steps = InstallPlan::new(plan).steps_json().to_vec();
    let is_missing = |step: &Value| Step::new(step).status() == StepStatus::NotCreated && is(settings, step);
    let missing: Vec<String> = steps.iter().filter(|s| is_missing(s)).map(described).collect();
    if missing.is_empty() {
        return Plan::nothing();
    }
    let (namespace, name) = (key.namespace.clone(), key.name.clone());
    let tell = Reason::OptionalNotCreated { namespace, name, objects: missing };
    if !settings.retry_optional {
        return Plan::wait(tell);
    }
    let installed = Conditions::new(plan).find(condition::INSTALLED);
    let tried = installed.and_then(|c| object::parse_time(object::text(c.json, &["lastUpdateTime"])));
    let account = permissions::account(plan, InstallPlan::new(plan).service_account());
    let (mut actions, mut skipped, mut any) = (Vec::new(), Vec::new(), false);
    for step in steps.iter_mut().filter(|s| is_missing(s)) {
        if step::served_since(world, step).is_none_or(|since| tried.is_some_and(|tried| since <= tried)) {
            continue;
        }
        match step::outcome(world, plan, step, &[], true) {
            Outcome::Done(status) => step["status"] = status.into(),
            Outcome::Act { action, after, .. } => match given_up(world, step, &action, world.refusals(key)) {
                Some(refusal) => skipped.push(Skipped::new(step, refusal)),
                None => {
                    step["status"] = after.into();
                    actions.push(action.with_permissions_of(account.as_ref()));
                }
            },
            // Its ClusterServiceVersion does not exist any longer, so the objects of this plan are obsolete.
            _ => continue,
        }
        any = true;
    }
    if !any {
        return Plan::wait(tell);
    }
    let mut status = NewStatus::new(plan);
    status.put("plan", steps);
    status.tried(now);
    actions.extend(status.write(plan));
    actions.extend(skipped.iter().map(|s| s.event(plan)));
    Plan::act(actions).because(tell)
}
