//! InstallPlans: what a resolution installs, step by step (reference/catalog-operator.md §5).
//!
//! ```text
//!   execute    steps -> actions, outcomes   one pass over the steps that are not done yet
//!   apply      one step -> the object that should be there, and how to get it there
//!   crd        the same for CustomResourceDefinitions
//!   referred   manifests that the InstallPlan does not have itself
//! ```
//!
//! RequiresApproval -> Installing -> Complete | Failed. A pass emits all that can be done now; the last one ends with the one
//! write of the status.

mod apply;
mod crd;
mod execute;
mod referred;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::execute::{Pass, Stop};
use crate::api::object;
use crate::plan::{Action, Key, Plan, Reason};
use crate::settings::Settings;
use crate::world::{Reader, Refusal, kind};

/// Plans for one InstallPlan.
pub fn plan(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let Some(json) = world.json(&kind::INSTALL_PLAN, &key.namespace, &key.name) else {
        return Plan::nothing();
    };
    let (namespace, name) = (key.namespace.clone(), key.name.clone());
    if object::is_deleting(json) || object::list(json, &["status", "plan"]).is_empty() {
        return Plan::nothing();
    }
    match object::text(json, &["status", "phase"]) {
        "RequiresApproval" if object::at(json, &["spec", "approved"]) == &Value::Bool(true) => {
            let mut status = Status::of(json);
            status.put("phase", "Installing");
            status.forget("message");
            Plan::act(status.write(json).into_iter().collect())
        }
        "RequiresApproval" => {
            let csvs = object::list(json, &["spec", "clusterServiceVersionNames"]).iter().filter_map(Value::as_str);
            Plan::wait(Reason::ApprovalNeeded { namespace, name, csvs: csvs.map(str::to_owned).collect() })
        }
        "Installing" => install(settings, world, key, json, now),
        "Failed" => {
            let message = object::text(json, &["status", "message"]).to_owned();
            Plan::wait(Reason::InstallPlanFailed { namespace, name, message })
        }
        _ => Plan::nothing(),
    }
}

fn install(settings: &Settings, world: &Reader<'_>, key: &Key, json: &Value, now: Timestamp) -> Plan {
    let mut status = Status::of(json);
    match check(world, &key.namespace) {
        Check::Passed => {}
        Check::Wait(reason) => return Plan::wait(reason),
        Check::Failed(message, reason) => {
            status.installed(false, "InstallCheckFailed", &message, now);
            return Plan::act(status.write(json).into_iter().collect()).because(reason);
        }
    }
    let whole = match referred::whole(settings, world, json, now) {
        Ok(whole) => whole,
        Err(plan) => return plan,
    };
    let mut pass = Pass::over(world, &whole, world.refusals(key));
    referred::refer(json, &mut pass.steps);
    let started = object::parse_time(object::text(json, &["status", "startTime"])).unwrap_or(now);
    let deadline = started + settings.install_plan_retry_timeout;
    status.put("plan", pass.steps.clone());
    match pass.stop {
        None => {
            status.put("phase", "Complete");
            status.put_start(started);
            status.forget("message");
            status.installed(true, "", "", now);
            let mut actions = pass.actions;
            actions.extend(status.write(json));
            Plan::act(actions)
        }
        Some(Stop::Wait(message)) => {
            let (namespace, name) = (key.namespace.clone(), key.name.clone());
            Plan::act(pass.actions).because(Reason::InstallPlanWaits { namespace, name, message })
        }
        Some(Stop::Error { message, is_final }) if is_final && now >= deadline => {
            status.put("phase", "Failed");
            status.put_start(started);
            status.put("message", message.as_str());
            status.installed(false, "InstallComponentFailed", &message, now);
            let reason =
                Reason::InstallPlanFailed { namespace: key.namespace.clone(), name: key.name.clone(), message };
            Plan::act(status.write(json).into_iter().collect()).because(reason)
        }
        Some(Stop::Error { message, is_final }) => {
            status.put_start(started);
            status.put("message", format!("retrying execution due to error: {message}"));
            status.clear_check(now);
            let mut actions = pass.actions;
            actions.extend(status.write(json));
            actions.extend(pass.retry);
            let reason =
                Reason::InstallPlanRetries { namespace: key.namespace.clone(), name: key.name.clone(), message };
            let plan = Plan::act(actions).because(reason);
            if is_final { plan.again_at(deadline) } else { plan }
        }
    }
}

/// May plans of the namespace be executed (§5.3)?
enum Check {
    Passed,
    Wait(Reason),
    Failed(String, Reason),
}

fn check(world: &Reader<'_>, namespace: &str) -> Check {
    let groups: Vec<&Value> = world.in_namespace(&kind::OPERATOR_GROUP, namespace).map(|o| o.json()).collect();
    let none = "no operator group found that is managing this namespace".to_owned();
    let namespace = namespace.to_owned();
    let group = match groups[..] {
        [] => return Check::Failed(none, Reason::NoOperatorGroup { namespace }),
        [group] => group,
        _ => {
            let message = format!("more than one operator group(s) are managing this namespace count={}", groups.len());
            let names = groups.iter().map(|g| object::name(g).to_owned()).collect();
            return Check::Failed(message, Reason::TooManyOperatorGroups { namespace, names });
        }
    };
    let group_name = format!("OperatorGroup {namespace}/{}", object::name(group));
    let account = object::text(group, &["spec", "serviceAccountName"]);
    let has_account = !object::at(group, &["status", "serviceAccountRef"]).is_null();
    if !account.is_empty() && has_account {
        let what = "installing with the rights of a ServiceAccount".to_owned();
        return Check::Wait(Reason::Unsupported { object: group_name, what });
    }
    if !account.is_empty() {
        return Check::Failed(none, Reason::Missing { object: group_name, needs: format!("ServiceAccount {account}") });
    }
    if object::list(group, &["status", "namespaces"]).is_empty() {
        let processed = !object::at(group, &["status", "lastUpdated"]).is_null();
        let reason = Reason::Missing { object: group_name, needs: "a namespace that it targets".to_owned() };
        return if processed { Check::Failed(none, reason) } else { Check::Wait(reason) };
    }
    Check::Passed
}

/// The status of an InstallPlan that is going to be written.
struct Status(Map<String, Value>);

impl Status {
    fn of(plan: &Value) -> Self {
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
        let conditions = self.0.entry("conditions").or_insert_with(|| json!([]));
        let text = if status { "True" } else { "False" };
        let known = conditions.as_array().into_iter().flatten().find(|c| c["type"] == "Installed");
        let same = |c: &&Value| {
            let of = |key| object::text(c, &[key]);
            (of("status"), of("reason"), of("message")) == (text, reason, message)
        };
        if known.as_ref().is_some_and(same) {
            return;
        }
        let changed = object::time(now);
        let mut condition = json!({ "type": "Installed", "status": text, "lastUpdateTime": changed });
        let turned = known.filter(|c| c["status"] == text).map(|c| c["lastTransitionTime"].clone());
        condition["lastTransitionTime"] = turned.unwrap_or_else(|| changed.into());
        for (key, text) in [("reason", reason), ("message", message)] {
            if !text.is_empty() {
                condition[key] = text.into();
            }
        }
        let mut all: Vec<Value> =
            conditions.as_array().into_iter().flatten().filter(|c| c["type"] != "Installed").cloned().collect();
        all.push(condition);
        *conditions = all.into();
    }

    /// The check that failed before passes now.
    fn clear_check(&mut self, now: Timestamp) {
        let conditions = self.0.get("conditions").and_then(Value::as_array);
        if conditions.into_iter().flatten().any(|c| c["reason"] == "InstallCheckFailed") {
            self.installed(false, "Unknown", "", now);
        }
    }

    /// The write, if it changes anything.
    fn write(self, plan: &Value) -> Option<Action> {
        let mut new = plan.clone();
        new["status"] = Value::Object(self.0);
        (new != *plan).then_some(Action::UpdateStatus(new))
    }
}
