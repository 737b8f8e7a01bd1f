//! Jobs: nothing runs, but a Job's pods succeed at once, as they do on the fake nodes of a test cluster.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::api_server::{ApiServer, time};
use super::super::writes::Propagation;
use super::{Condition, condition, number, seconds_after, set_condition};
use crate::api::object::{at, is_deleting, map_mut};

pub(super) fn step(server: &mut ApiServer, now: Timestamp) {
    for job in server.pick("batch", "Job", |job| !is_deleting(job)) {
        if condition(&job, "Complete").is_some() {
            expire(server, &job, now);
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
    } else {
        let done = at(&job, &["spec", "completions"]).as_i64().unwrap_or(1);
        let message = "Reached expected number of succeeded pods";
        for kind in ["SuccessCriteriaMet", "Complete"] {
            let condition = Condition { kind, status: "True", reason: "CompletionsReached", message };
            set_condition(&mut job, &condition, now);
        }
        let status = map_mut(&mut job, &["status"]);
        status.remove("active");
        status.remove("ready");
        status.insert("succeeded".into(), done.into());
        status.insert("completionTime".into(), time(now));
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastProbeTime"] = time(now);
        }
    }
    server.write_back(job, Some("status"), now);
}

/// A finished Job goes when its time to live is over.
fn expire(server: &mut ApiServer, job: &Value, now: Timestamp) {
    let Some(seconds) = at(job, &["spec", "ttlSecondsAfterFinished"]).as_i64() else { return };
    match seconds_after(job, &["status", "completionTime"], seconds) {
        Some(at) if at <= now => server.delete_exactly(job, Propagation::Foreground, now),
        Some(at) => server.wake_at(at),
        None => {}
    }
}
