//! Jobs: the pods of a Job succeed as soon as a node accepts them, as on the simulated nodes of a test cluster. A Job that no
//! node accepts waits, and fails at its deadline.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::api_server::{ApiServer, time};
use super::super::writes::Propagation;
use super::{Condition, number, replica_sets, seconds_after, set_condition};
use crate::api::conditions::{COMPLETE, Conditions, FAILED};
use crate::api::object::{at, is_deleting, map_mut};

pub(super) fn step(server: &mut ApiServer, now: Timestamp) {
    for job in server.pick("batch", "Job", |job| !is_deleting(job)) {
        if let Some(ended) = [COMPLETE, FAILED].iter().find_map(|kind| Conditions::new(&job).find(kind)) {
            expire(server, &job, ended.json, now);
        } else if at(&job, &["spec", "suspend"]) != &json!(true) {
            run(server, job, now);
        }
    }
}

fn run(server: &mut ApiServer, mut job: Value, now: Timestamp) {
    let pods = number(&job, &["spec", "parallelism"]);
    if at(&job, &["status", "startTime"]).is_null() {
        map_mut(&mut job, &[]).insert(
            "status".into(),
            json!({"startTime": time(now), "active": pods, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}),
        );
    } else if !replica_sets::schedulable(server, at(&job, &["spec", "template", "spec"])) {
        let seconds = at(&job, &["spec", "activeDeadlineSeconds"]).as_i64();
        match seconds.and_then(|seconds| seconds_after(&job, &["status", "startTime"], seconds)) {
            Some(deadline) if deadline <= now => {
                let message = "Job was active longer than specified deadline";
                end(&mut job, ["FailureTarget", FAILED], "DeadlineExceeded", message, now);
                map_mut(&mut job, &["status"]).insert("failed".into(), pods.into());
            }
            Some(deadline) => return server.wake_at(deadline),
            None => return,
        }
    } else {
        let done = at(&job, &["spec", "completions"]).as_i64().unwrap_or(1);
        let message = "Reached expected number of succeeded pods";
        end(&mut job, ["SuccessCriteriaMet", COMPLETE], "CompletionsReached", message, now);
        let status = map_mut(&mut job, &["status"]);
        status.insert("succeeded".into(), done.into());
        status.insert("completionTime".into(), time(now));
    }
    server.write_back(job, Some("status"), now);
}

/// Ends the Job: no pod is active any more, and these conditions give the reason.
fn end(job: &mut Value, kinds: [&str; 2], reason: &str, message: &str, now: Timestamp) {
    for kind in kinds {
        set_condition(job, &Condition { kind, status: "True", reason, message }, now);
    }
    let status = map_mut(job, &["status"]);
    status.remove("active");
    status.remove("ready");
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastProbeTime"] = time(now);
    }
}

/// Deletes a finished Job after its time to live.
fn expire(server: &mut ApiServer, job: &Value, ended: &Value, now: Timestamp) {
    let Some(seconds) = at(job, &["spec", "ttlSecondsAfterFinished"]).as_i64() else { return };
    match seconds_after(ended, &["lastTransitionTime"], seconds) {
        Some(at) if at <= now => server.delete_exactly(job, Propagation::Foreground, now),
        Some(at) => server.wake_at(at),
        None => {}
    }
}
