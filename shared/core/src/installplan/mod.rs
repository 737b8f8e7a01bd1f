//! InstallPlans: the objects that a resolution installs, step by step (olm-behaviour/installplan.md#overview).
//!
//! ```text
//!   pass                  steps -> actions, outcomes   one pass over the steps that are not done yet
//!   step                  one step -> the desired object, and the action that creates or updates it
//!   crd                   the same for CustomResourceDefinitions
//!   existing_resources    validates custom resources against the new schemas of their definition
//!   optional              refusals after which a plan skips a step and continues
//!   blocking_step         the bundle whose step blocks a plan
//!   permissions           the permissions that the ServiceAccount of a plan lacks
//!   edits                 edits of the spec that are ignored
//!   summary               the state of a plan, for commands that do not execute it
//!   referenced_manifests  manifests that the InstallPlan only references
//!   warning_events        Events about warnings of the API server
//! ```
//!
//! RequiresApproval -> Installing -> Complete | Failed. A pass emits all actions that are possible now; the last pass ends with a single
//! write of the status.

mod blocking_step;
mod crd;
mod edits;
mod existing_resources;
mod optional;
mod pass;
pub mod permissions;
mod referenced_manifests;
mod step;
pub mod summary;
#[cfg(test)]
mod tests;
mod warning_events;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub use self::edits::ignored_edits;
use self::pass::{Error, Pass, Stop};
pub use self::referenced_manifests::contents;
pub use self::step::gvk as kind_made;
pub use self::warning_events::warning_event;
use crate::api::conditions::{self, Conditions};
use crate::api::install_plan::{InstallPlan, Phase, condition, is_approved, reason};
use crate::api::object::{self, ObjectRef};
use crate::api::status::Status;
use crate::plan::{Action, Emit, Key, Plan, Reason};
use crate::settings::Settings;
use crate::structural::SchemaCheck;
use crate::world::{Reader, Refusal, kind};
use crate::{membership, rbac};

/// Plans one InstallPlan.
pub fn plan(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let Some(json) = world.json(&kind::INSTALL_PLAN, &key.namespace, &key.name) else {
        return Plan::nothing();
    };
    let is_empty = |field| object::list(json, &["status", field]).is_empty();
    if object::is_deleting(json) || is_empty("plan") && is_empty("bundleLookups") {
        return Plan::nothing();
    }
    let mut plan = plan_for_phase(settings, world, key, json, now);
    let object = || format!("InstallPlan {}/{}", key.namespace, key.name);
    plan.reasons.extend(ignored_edits(json).into_iter().map(|message| Reason::Ignored { object: object(), message }));
    plan
}

fn plan_for_phase(settings: &Settings, world: &Reader<'_>, key: &Key, json: &Value, now: Timestamp) -> Plan {
    let (namespace, name) = (key.namespace.clone(), key.name.clone());
    match InstallPlan::new(json).phase() {
        Phase::RequiresApproval if is_approved(json) => {
            let mut status = NewStatus::new(json);
            status.put("phase", Phase::Installing);
            status.forget("message");
            Plan::act(status.write(json).into_iter().collect())
        }
        Phase::RequiresApproval => {
            let csvs = edits::csvs(json).into_iter().map(str::to_owned).collect();
            Plan::wait(Reason::ApprovalNeeded { namespace, name, csvs })
        }
        Phase::Installing => install(settings, world, key, json, now),
        Phase::Failed if is_attenuated(json) && rbac::changed_since(world, json) => {
            let mut status = NewStatus::new(json);
            status.put("phase", Phase::Installing);
            Plan::act(status.write(json).into_iter().collect()).at_an_end()
        }
        Phase::Failed => {
            let message = InstallPlan::new(json).message().to_owned();
            let blocking_bundle = blocking_step::of_failed(world, json);
            Plan::wait(Reason::InstallPlanFailed { namespace, name, message, blocking_bundle }).at_an_end()
        }
        Phase::Complete if settings.optional_manifests => optional::after_all(settings, world, key, json, now),
        _ => Plan::nothing(),
    }
}

/// Reports whether the plan was executed with the permissions of a ServiceAccount.
fn is_attenuated(plan: &Value) -> bool {
    !InstallPlan::new(plan).service_account().is_null()
}

fn install(settings: &Settings, world: &Reader<'_>, key: &Key, json: &Value, now: Timestamp) -> Plan {
    let mut status = NewStatus::new(json);
    let account = match check(world, &key.namespace) {
        Check::Passed(account) => account,
        Check::Wait(reason) => return Plan::wait(reason),
        Check::Failed(message, reason) => {
            status.installed(false, reason::CHECK_FAILED, &message, now);
            return Plan::act(status.write(json).into_iter().collect()).because(reason);
        }
    };
    let attenuated = InstallPlan::new(json).service_account();
    if !account.is_null() && account != attenuated {
        status.put("attenuatedServiceAccountRef", account.clone());
        status.clear_check(now);
        return Plan::act(status.write(json).into_iter().collect());
    }
    let whole = match referenced_manifests::whole(settings, world, json, now) {
        Ok(whole) => whole,
        Err(plan) => return plan,
    };
    // A plan with a ServiceAccount keeps using it, as in OLM.
    let account = permissions::account(json, attenuated);
    let mut pass = Pass::over(settings, world, &whole, world.refusals(key), account.as_ref(), now);
    referenced_manifests::refer(json, &mut pass.steps);
    let (namespace, name) = (key.namespace.clone(), key.name.clone());
    let mut events: Vec<Action> = pass.skipped.iter().map(|skipped| skipped.event(json)).collect();
    events.extend(pass.warnings.iter().map(|warning| failed_check_event(json, warning)));
    let started = InstallPlan::new(json).started().unwrap_or(now);
    let deadline = started + settings.install_plan_retry_timeout;
    status.put("plan", pass.steps.clone());
    match pass.stop {
        None => {
            status.put("phase", Phase::Complete);
            status.put_start(started);
            status.forget("message");
            status.installed(true, "", "", now);
            Plan::in_batches(then(pass.actions, status.write(json), events))
        }
        Some(Stop::Wait(message)) => {
            // Skipped steps are recorded at once, because the refusal will be forgotten.
            let write = status.write(json).filter(|_| !pass.skipped.is_empty());
            Plan::in_batches(then(pass.actions, write, events)).because(Reason::InstallPlanWaits {
                namespace,
                name,
                message,
            })
        }
        Some(Stop::Error(Error { message, step, is_final: true, .. })) if now >= deadline => {
            status.put("phase", Phase::Failed);
            status.put_start(started);
            status.put("message", message.as_str());
            status.installed(false, reason::COMPONENT_FAILED, &message, now);
            let blocking_bundle = blocking_step::blocking_bundle(world, json, step);
            let actions = status.write(json).into_iter().chain(events).collect();
            Plan::act(actions).because(Reason::InstallPlanFailed { namespace, name, message, blocking_bundle })
        }
        Some(Stop::Error(Error { message, step, is_final, attempts, again })) => {
            status.put_start(started);
            status.put("message", format!("retrying execution due to error: {message}"));
            status.clear_check(now);
            let mut batches = then(pass.actions, status.write(json), events);
            batches.extend(pass.retry);
            let (blocking_bundle, fails_at) =
                (blocking_step::blocking_bundle(world, json, step), is_final.then_some(deadline));
            let reason = Reason::InstallPlanRetries {
                namespace,
                name,
                message,
                blocking_bundle,
                attempts,
                next_at: again,
                fails_at,
            };
            let mut plan = Plan::in_batches(batches).because(reason);
            plan.reasons.extend(account.and_then(|account| permissions::missing(world, json, &account)));
            // The planner itself retries refused actions.
            let looks_again = again.filter(|_| attempts == 0);
            fails_at.into_iter().chain(looks_again).fold(plan, Plan::again_at)
        }
    }
}

/// Returns the check of custom resources that precedes a change of their definition; `None` if no check is needed
/// (olm-behaviour/installplan.md#crds).
pub fn schema_check_of(live: &Value, desired: &Value) -> Option<SchemaCheck> {
    existing_resources::question(live, desired)
}

/// Reports whether a message states that the scope of a kind is unknown.
pub fn is_unknown_scope(message: &str) -> bool {
    message.contains(step::UNKNOWN_SCOPE)
}

/// Reports whether a response of the API server is permanent for this cluster, so that a retry would not change it. A plan skips an
/// optional object after such a response.
pub fn is_about_the_cluster(answer: &Status) -> bool {
    optional::is_about_the_cluster(answer)
}

/// Returns the version that a definition loses although objects may be stored in it, for which its step is refused
/// (olm-behaviour/installplan.md#crds).
pub fn lost_version<'l>(live: &'l Value, desired: &Value) -> Option<&'l str> {
    crd::lost_version(live, desired)
}

/// Returns the batches, followed by the write of the status and the events.
fn then(mut batches: Vec<Vec<Action>>, write: Option<Action>, events: Vec<Action>) -> Vec<Vec<Action>> {
    batches.extend(write.into_iter().chain(events).map(|action| vec![action]));
    batches
}

/// Returns the Event that custom resources do not fit their new definition, unless its webhook converts them
/// (olm-behaviour/installplan.md#crds).
fn failed_check_event(plan: &Value, message: &str) -> Action {
    let (reason, message) = ("CRDValidation".to_owned(), message.to_owned());
    Action::Emit(Emit { regarding: plan.clone(), warning: true, reason, message })
}

/// Whether plans of the namespace may be executed (olm-behaviour/installplan.md#phases).
enum Check<'w> {
    /// They may, with the permissions of this ServiceAccount (a reference), or with the controllers' own (null).
    Passed(&'w Value),
    Wait(Reason),
    Failed(String, Reason),
}

fn check<'w>(world: &Reader<'w>, namespace: &str) -> Check<'w> {
    let groups = membership::groups(world, namespace);
    let none = "no operator group found that is managing this namespace".to_owned();
    let namespace = namespace.to_owned();
    if groups.is_empty() {
        return Check::Failed(none, Reason::NoOperatorGroup { namespace });
    }
    let managing: Vec<membership::Group<'_>> = groups.iter().copied().filter(|g| !g.targets().is_empty()).collect();
    let described = |group: membership::Group<'_>| ObjectRef::from_object(group.json).to_string();
    match managing[..] {
        [] => {
            let needs = |g: &membership::Group<'_>| match g.account() {
                Ok(_) => "a namespace that it targets".to_owned(),
                Err(name) => format!("ServiceAccount {name}"),
            };
            let Some(group) = groups.first() else { return Check::Failed(none, Reason::NoOperatorGroup { namespace }) };
            let reason = Reason::Missing { object: described(*group), needs: needs(group) };
            if groups.iter().all(|group| group.has_status()) {
                Check::Failed(none, reason)
            } else {
                Check::Wait(reason)
            }
        }
        [group] => match group.account() {
            Ok(None) => Check::Passed(&Value::Null),
            Ok(Some(_)) => Check::Passed(group.service_account_ref()),
            Err(name) => {
                let message = format!(
                    "please make sure the service account exists. sa={name} operatorgroup={}/{}",
                    group.namespace(),
                    group.name()
                );
                let needs = format!("ServiceAccount {name}");
                Check::Failed(message, Reason::Missing { object: described(group), needs })
            }
        },
        _ => {
            let count = managing.len();
            let message = format!("more than one operator group(s) are managing this namespace count={count}");
            let names = managing.iter().map(|g| g.name().to_owned()).collect();
            Check::Failed(message, Reason::TooManyOperatorGroups { namespace, names })
        }
    }
}

/// The status of an InstallPlan that is to be written.
struct NewStatus(Map<String, Value>);

impl NewStatus {
    fn new(plan: &Value) -> Self {
        Self(object::at(plan, &["status"]).as_object().cloned().unwrap_or_default())
    }

    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }

    fn put_start(&mut self, started: Timestamp) {
        self.0.entry("startTime").or_insert_with(|| object::time(started).into());
    }

    /// Sets the condition `Installed`.
    fn installed(&mut self, status: bool, reason: &str, message: &str, now: Timestamp) {
        let status = conditions::status(status);
        let mut all = self.conditions().to_vec();
        let known = Conditions::from_list(&all).find(condition::INSTALLED);
        if known.is_some_and(|c| (c.status(), c.reason(), c.message()) == (status, reason, message)) {
            return;
        }
        let mut condition = json!({
            "type": condition::INSTALLED, "status": status, "lastUpdateTime": object::time(now),
            "lastTransitionTime": conditions::transition_time(&all, condition::INSTALLED, status, now),
        });
        for (key, text) in [("reason", reason), ("message", message)] {
            if !text.is_empty() {
                condition[key] = text.into();
            }
        }
        conditions::remove(&mut all, &[condition::INSTALLED]);
        all.push(condition);
        self.put("conditions", all);
    }

    fn conditions(&self) -> &[Value] {
        self.0.get("conditions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Records the time of the last attempt to create skipped objects.
    fn tried(&mut self, now: Timestamp) {
        let conditions = self.0.get_mut("conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten().filter(|c| c["type"] == condition::INSTALLED) {
            condition["lastUpdateTime"] = object::time(now).into();
        }
    }

    /// Clears the condition of an earlier failed check.
    fn clear_check(&mut self, now: Timestamp) {
        if Conditions::from_list(self.conditions()).iter().any(|c| c.reason() == reason::CHECK_FAILED) {
            self.installed(false, "Unknown", "", now);
        }
    }

    /// Returns the write of the status, if it changes anything.
    fn write(self, plan: &Value) -> Option<Action> {
        let mut new = plan.clone();
        new["status"] = Value::Object(self.0);
        (new != *plan).then_some(Action::UpdateStatus(new))
    }
}
