//! The stages of the Deployments of a ClusterServiceVersion and of their pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Code, StageName, State, Walk, code, deleting};
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::kinds;
use crate::api::object::{self, ObjectRef};
use crate::health::workload::{self, PodState, Rollout, Trouble};
use crate::world::kind;

/// The maximum number of pods of a Deployment that are listed. Pods of a Deployment usually have the same problem.
const PODS: usize = 3;

impl<'w> Walk<'_, 'w> {
    /// Walks through Deployments and pods of the newest ClusterServiceVersion that has any.
    pub(super) fn workloads(&mut self) {
        let Some(csv) = self.newest() else {
            for stage in [StageName::Deployment, StageName::Pod] {
                self.stage(stage, None, State::Waiting, "it follows the ClusterServiceVersion");
            }
            return;
        };
        if csv.deployments().is_empty() {
            for stage in [StageName::Deployment, StageName::Pod] {
                self.stage(stage, None, State::Ok, "the ClusterServiceVersion has none");
            }
            return;
        }
        let mut names = BTreeSet::new();
        for entry in csv.deployments() {
            let name = object::text(entry, &["name"]);
            if names.insert(name) {
                self.deployment(csv, name);
            }
        }
    }

    /// Returns the newest ClusterServiceVersion whose Deployments are being or were created, or the newest one.
    pub(super) fn newest(&self) -> Option<Csv<'w>> {
        let is_waiting = |csv: &&Csv<'_>| matches!(csv.phase(), Phase::None | Phase::Pending);
        let started = self.csvs.iter().find(|csv| !is_waiting(csv));
        started.or_else(|| self.csvs.first()).copied()
    }

    fn deployment(&mut self, csv: Csv<'w>, name: &str) {
        const STAGE: StageName = StageName::Deployment;
        let object = kinds::DEPLOYMENT.object(csv.namespace(), name);
        let deployment = match self.find(&kind::DEPLOYMENT, csv.namespace(), name) {
            Ok(Some(deployment)) => deployment,
            Ok(None) => {
                if csv.phase() == Phase::Succeeded {
                    let message = format!("Deployment {name} does not exist");
                    self.stage(STAGE, Some(object.clone()), State::Failed, "it does not exist");
                    self.problem(&code::DEPLOYMENT_MISSING, STAGE, object, message);
                } else {
                    self.stage(STAGE, Some(object), State::Waiting, "it does not exist yet");
                }
                return;
            }
            Err(why) => {
                self.unknown(STAGE, Some(object), &why);
                self.unknown(StageName::Pod, None, &format!("the pods of Deployment {name}: {why}"));
                return;
            }
        };
        if let Some(message) = deleting(deployment) {
            return self.stage(STAGE, Some(object), State::Waiting, message);
        }
        let rollout = workload::rollout(deployment);
        let (state, problem): (State, Option<&'static Code>) = match &rollout {
            Rollout::Complete => (State::Ok, None),
            Rollout::ScaledToZero => (State::Failed, Some(&code::SCALED_TO_ZERO)),
            Rollout::NotStarted | Rollout::Waiting { .. } => (State::Waiting, None),
            Rollout::Stuck { reason, message } => (State::Failed, Some(stuck(reason, message))),
        };
        self.stage(STAGE, Some(object.clone()), state, rollout.to_string());
        if let Some(code) = problem {
            self.problem(code, STAGE, object, format!("Deployment {name}: {rollout}"));
        }
        match rollout {
            Rollout::ScaledToZero => {}
            Rollout::Complete => {
                let ready = object::at(deployment, &["status", "readyReplicas"]).as_i64();
                let ready = ready.or_else(|| object::at(deployment, &["status", "availableReplicas"]).as_i64());
                let message = format!("{} ready of Deployment {name}", ready.unwrap_or_default());
                self.stage(StageName::Pod, None, State::Ok, message);
            }
            Rollout::NotStarted | Rollout::Waiting { .. } | Rollout::Stuck { .. } => self.pods(deployment),
        }
    }

    fn pods(&mut self, deployment: &Value) {
        const STAGE: StageName = StageName::Pod;
        let (namespace, name) = (object::namespace(deployment), object::name(deployment));
        let labels = object::at(deployment, &["spec", "selector", "matchLabels"]);
        let pods = self.world.in_namespace(&kind::POD, namespace).map(|pod| pod.json());
        let is_its = |pod: &&Value| {
            labels.as_object().is_some_and(|labels| !labels.is_empty())
                && object::covers(object::at(pod, &["metadata", "labels"]), labels)
                && !object::is_deleting(pod)
        };
        let pods: Vec<&Value> = pods.filter(is_its).collect();
        if pods.is_empty() {
            let known = self.scope.known.why_unknown(&kind::POD, namespace);
            match known.map(str::to_owned) {
                Some(why) => self.unknown(STAGE, None, &format!("the pods of Deployment {name}: {why}")),
                None => self.stage(STAGE, None, State::Waiting, format!("Deployment {name} has no pods")),
            }
            return;
        }
        let mut listed = 0;
        let mut unready = 0;
        for pod in &pods {
            let state = workload::pod(pod);
            if state == PodState::Ready {
                continue;
            }
            unready += 1;
            if listed == PODS {
                continue;
            }
            listed += 1;
            let object = ObjectRef::from_object(pod);
            let (state, code, message): (State, &'static Code, String) = match state {
                PodState::Ready => continue,
                PodState::Waiting(message) => (State::Waiting, &code::NOT_READY, message),
                PodState::Stuck(trouble) => {
                    let container = match trouble.container.as_str() {
                        "" => String::new(),
                        container => format!("container {container}: "),
                    };
                    (State::Failed, pod_code(trouble.kind), format!("{container}{trouble}"))
                }
            };
            self.stage(STAGE, Some(object.clone()), state, message.clone());
            // One pod of a Deployment stands for the others.
            if !self.problems.iter().any(|known| known.code == code && known.stage == STAGE) {
                self.problem(code, STAGE, object.clone(), format!("pod {}: {message}", object.name));
            }
        }
        if unready > listed {
            let message = format!("{} more pods of Deployment {name} are not ready", unready - listed);
            self.stage(STAGE, None, State::Waiting, message);
        }
        if unready == 0 {
            self.stage(STAGE, None, State::Ok, format!("{} ready of Deployment {name}", pods.len()));
        }
    }
}

/// Returns the code for a rollout that does not continue.
fn stuck(reason: &str, message: &str) -> &'static Code {
    if message.contains("exceeded quota") || message.contains("failed quota") {
        &code::QUOTA_EXCEEDED
    } else if reason == "ProgressDeadlineExceeded" {
        &code::ROLLOUT_STUCK
    } else {
        &code::POD_REFUSED
    }
}

fn pod_code(trouble: Trouble) -> &'static Code {
    match trouble {
        Trouble::Unschedulable => &code::UNSCHEDULABLE,
        Trouble::Image => &code::IMAGE_PULL,
        Trouble::Configuration => &code::CONTAINER_CONFIG,
        Trouble::CrashLoop => &code::CRASH_LOOP,
    }
}
