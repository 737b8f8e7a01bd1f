//! Whether Deployments and Pods work, from their status.

use std::fmt;

use serde_json::Value;

use crate::api::conditions::{AVAILABLE, Conditions, FALSE, PROGRESSING, READY};
use crate::api::object;

/// The state of the rollout of a Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// The desired number of replicas is available, all with the current template.
    Complete,
    /// No replicas are desired.
    ScaledToZero,
    /// The Deployment controller has not processed the current spec.
    NotStarted,
    /// Replicas are being started.
    Waiting {
        /// The number of available replicas with the current template.
        available: i64,
        /// The desired number.
        desired: i64,
    },
    /// Pods cannot be created, or did not become available in time.
    Stuck {
        /// The reason of the condition, such as `ProgressDeadlineExceeded` or `FailedCreate`.
        reason: String,
        /// The message of the condition.
        message: String,
    },
}

impl fmt::Display for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("the rollout is complete"),
            Self::ScaledToZero => f.write_str("it is scaled to zero"),
            Self::NotStarted => f.write_str("the rollout has not started"),
            Self::Waiting { available, desired } => write!(f, "{available} of {desired} replicas are available"),
            Self::Stuck { reason, message } => write!(f, "{reason}: {message}"),
        }
    }
}

/// Returns the state of the rollout of a Deployment.
pub fn rollout(deployment: &Value) -> Rollout {
    let conditions = Conditions::new(deployment);
    let number = |path: &[&str]| object::at(deployment, path).as_i64();
    let desired = number(&["spec", "replicas"]).unwrap_or(1);
    if desired == 0 {
        return Rollout::ScaledToZero;
    }
    if number(&["status", "observedGeneration"]).unwrap_or_default() < object::generation(deployment) {
        return Rollout::NotStarted;
    }
    // Refused Pods explain an exceeded deadline.
    let refused = conditions.holding("ReplicaFailure");
    if let Some(failed) = refused.or_else(|| conditions.find(PROGRESSING).filter(|c| c.status() == FALSE)) {
        return Rollout::Stuck { reason: failed.reason().to_owned(), message: failed.message().to_owned() };
    }
    let updated = number(&["status", "updatedReplicas"]).unwrap_or_default();
    // Pods of the previous template stay until new ones are available, and count as available.
    let old = number(&["status", "replicas"]).unwrap_or_default().saturating_sub(updated).max(0);
    if conditions.is_true(AVAILABLE) && updated >= desired && old == 0 {
        return Rollout::Complete;
    }
    let available = number(&["status", "availableReplicas"]).unwrap_or_default().saturating_sub(old);
    Rollout::Waiting { available: available.clamp(0, updated.max(0)), desired }
}

/// The kind of a problem that prevents a Pod from starting. It does not end without a change, or only by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No node accepts the Pod.
    Unschedulable,
    /// An image cannot be pulled.
    Image,
    /// A container cannot be created, such as because a ConfigMap or Secret is missing.
    Configuration,
    /// A container ends again and again.
    CrashLoop,
}

/// Why a Pod cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodTrouble {
    /// The kind of the problem.
    pub kind: Trouble,
    /// The container; empty for the whole Pod.
    pub container: String,
    /// The reason in the status, such as `ImagePullBackOff`.
    pub reason: String,
    /// The message in the status.
    pub message: String,
}

impl fmt::Display for PodTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

/// Whether a Pod works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodState {
    /// It is ready, or complete.
    Ready,
    /// It is starting, for this reason.
    Waiting(String),
    /// It cannot start.
    Stuck(PodTrouble),
}

/// Returns whether a Pod works.
pub fn pod(pod: &Value) -> PodState {
    let conditions = Conditions::new(pod);
    if let Some(scheduled) = conditions.find("PodScheduled").filter(|condition| condition.status() == FALSE) {
        return PodState::Stuck(PodTrouble {
            kind: Trouble::Unschedulable,
            container: String::new(),
            reason: scheduled.reason().to_owned(),
            message: scheduled.message().to_owned(),
        });
    }
    let lists = ["initContainerStatuses", "containerStatuses"];
    let containers = || lists.iter().flat_map(|list| object::list(pod, &["status", list]));
    if let Some(trouble) = containers().find_map(trouble) {
        return PodState::Stuck(trouble);
    }
    if conditions.is_true(READY) || object::text(pod, &["status", "phase"]) == "Succeeded" {
        return PodState::Ready;
    }
    let is_unready = |container: &&Value| {
        object::at(container, &["ready"]) == &Value::Bool(false)
            && object::text(container, &["state", "terminated", "reason"]) != "Completed"
    };
    PodState::Waiting(match containers().find(is_unready) {
        Some(container) => {
            let name = object::text(container, &["name"]);
            match object::text(container, &["state", "waiting", "reason"]) {
                "" => format!("container {name} is not ready"),
                reason => format!("container {name} is not ready: {reason}"),
            }
        }
        None => "its containers are being created".to_owned(),
    })
}

/// Returns why a container cannot start.
fn trouble(container: &Value) -> Option<PodTrouble> {
    let waiting = object::at(container, &["state", "waiting"]);
    let reason = object::text(waiting, &["reason"]);
    let kind = match reason {
        "ImagePullBackOff" | "ErrImageNeverPull" | "InvalidImageName" => Trouble::Image,
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => Trouble::Configuration,
        "CrashLoopBackOff" => Trouble::CrashLoop,
        _ => return None,
    };
    let ended = object::at(container, &["lastState", "terminated"]);
    let message = match (kind, object::at(ended, &["exitCode"]).as_i64()) {
        (Trouble::CrashLoop, Some(code)) => {
            let words = [object::text(ended, &["reason"]), object::text(ended, &["message"]).trim_end()];
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            let why = if words.is_empty() { String::new() } else { format!(" ({})", words.join(": ")) };
            format!("the container ended with exit code {code}{why}")
        }
        _ => object::text(waiting, &["message"]).to_owned(),
    };
    let container = object::text(container, &["name"]).to_owned();
    Some(PodTrouble { kind, container, reason: reason.to_owned(), message })
}

/// Returns the label selector of the pods of a Deployment; `None` if it selects none, or cannot be written as one.
pub fn pod_selector(deployment: &Value) -> Option<String> {
    let selector = object::at(deployment, &["spec", "selector"]);
    let mut terms: Vec<String> =
        object::entries(selector, &["matchLabels"]).map(|(key, value)| format!("{key}={value}")).collect();
    for expression in object::list(selector, &["matchExpressions"]) {
        let key = object::text(expression, &["key"]);
        let values: Vec<&str> = object::list(expression, &["values"]).iter().filter_map(Value::as_str).collect();
        terms.push(match object::text(expression, &["operator"]) {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    Some(terms.join(",")).filter(|selector| !selector.is_empty())
}

/// Returns whether containers of a pod may run: also while it terminates, but not after it has ended, for example by an eviction.
pub fn may_run(pod: &Value) -> bool {
    !["Succeeded", "Failed"].contains(&object::text(pod, &["status", "phase"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of_container(status: &Value) -> String {
        let mut container = json!({ "name": "manager", "ready": false });
        for (key, value) in status.as_object().unwrap() {
            container[key] = value.clone();
        }
        format!("{:?}", pod(&json!({ "status": { "containerStatuses": [container] } })))
    }

    #[test]
    fn pods_are_ready_starting_or_stuck() {
        let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
        assert_eq!(pod(&ready), PodState::Ready);
        assert_eq!(pod(&json!({ "status": { "phase": "Succeeded" } })), PodState::Ready);
        assert_eq!(pod(&json!({})), PodState::Waiting("its containers are being created".to_owned()));
        assert_eq!(
            of_container(&json!({ "state": { "running": {} } })),
            r#"Waiting("container manager is not ready")"#
        );
        let waiting = |reason: &str| json!({ "state": { "waiting": { "reason": reason, "message": "m" } } });
        assert_eq!(
            of_container(&waiting("ContainerCreating")),
            r#"Waiting("container manager is not ready: ContainerCreating")"#
        );
        let stuck = |kind: &str, reason: &str, message: &str| {
            format!(
                "Stuck(PodTrouble {{ kind: {kind}, container: \"manager\", reason: {reason:?}, message: {message:?} }})"
            )
        };
        for (kind, reason) in [
            ("Image", "ImagePullBackOff"),
            ("Image", "InvalidImageName"),
            ("Configuration", "CreateContainerConfigError"),
            ("Configuration", "RunContainerError"),
            ("CrashLoop", "CrashLoopBackOff"),
        ] {
            assert_eq!(of_container(&waiting(reason)), stuck(kind, reason, "m"));
        }
        let mut crashed = waiting("CrashLoopBackOff");
        crashed["lastState"] =
            json!({ "terminated": { "exitCode": 2, "reason": "Error", "message": "panic: no config\n" } });
        let message = "the container ended with exit code 2 (Error: panic: no config)";
        assert_eq!(of_container(&crashed), stuck("CrashLoop", "CrashLoopBackOff", message));
    }

    #[test]
    fn a_pod_without_a_node_is_stuck() {
        let condition =
            json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes" });
        let PodState::Stuck(trouble) = pod(&json!({ "status": { "conditions": [condition] } })) else { panic!() };
        assert_eq!((trouble.kind, trouble.to_string().as_str()), (Trouble::Unschedulable, "Unschedulable: 0/3 nodes"));
    }

    #[test]
    fn rollouts() {
        let deployment = |status: Value| {
            rollout(&json!({ "metadata": { "generation": 2 }, "spec": { "replicas": 2 }, "status": status }))
                .to_string()
        };
        assert_eq!(deployment(json!({ "observedGeneration": 1 })), "the rollout has not started");
        let counts = |available: u64, of_type: &str, status: &str| {
            json!({
                "observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": available,
                "conditions": [{ "type": of_type, "status": status, "reason": "R", "message": "m" }],
            })
        };
        assert_eq!(deployment(counts(2, "Available", "True")), "the rollout is complete");
        assert_eq!(deployment(counts(1, "Available", "False")), "1 of 2 replicas are available");
        let mut upgraded = counts(2, "Available", "True");
        (upgraded["replicas"], upgraded["updatedReplicas"]) = (3.into(), 1.into());
        assert_eq!(deployment(upgraded), "0 of 2 replicas are available", "pods of the previous template");
        assert_eq!(deployment(counts(1, "Progressing", "False")), "R: m");
        assert_eq!(deployment(counts(1, "ReplicaFailure", "True")), "R: m");
        assert_eq!(rollout(&json!({ "spec": { "replicas": 0 } })), Rollout::ScaledToZero);
    }

    #[test]
    fn pods_are_selected_as_by_the_deployment() {
        let of = |selector: Value| pod_selector(&json!({ "spec": { "selector": selector } }));
        let expressions = json!([
            { "key": "a", "operator": "In", "values": ["b", "c"] }, { "key": "d", "operator": "NotIn", "values": ["e"] },
            { "key": "f", "operator": "Exists" }, { "key": "g", "operator": "DoesNotExist" },
        ]);
        for (selector, expected) in [
            (json!({ "matchLabels": { "app": "olm" } }), Some("app=olm")),
            (json!({ "matchExpressions": expressions }), Some("a in (b,c),d notin (e),f,!g")),
            (json!({ "matchExpressions": [{ "key": "a", "operator": "Like" }] }), None),
            (json!({}), None),
            (json!("app"), None),
        ] {
            assert_eq!(of(selector.clone()).as_deref(), expected, "{selector}");
        }
    }

    #[test]
    fn a_pod_that_has_ended_is_not_awaited() {
        for (phase, expected) in
            [("Running", true), ("Pending", true), ("Unknown", true), ("Failed", false), ("Succeeded", false)]
        {
            assert_eq!(may_run(&json!({ "status": { "phase": phase } })), expected, "{phase}");
        }
    }
}
