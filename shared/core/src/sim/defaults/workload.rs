//! Defaults of Deployments and the other kinds that create pods.

use serde_json::{Value, json};

use super::{child, pod, set, with};

pub(super) fn apply(kind: &str, object: &mut Value) {
    match kind {
        "Deployment" => {
            let spec = child(object, "spec");
            pod::template(spec);
            set(spec, "replicas", 1);
            set(spec, "revisionHistoryLimit", 10);
            set(spec, "progressDeadlineSeconds", 600);
            let strategy = child(spec, "strategy");
            set(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                let rolling = child(strategy, "rollingUpdate");
                set(rolling, "maxUnavailable", "25%");
                set(rolling, "maxSurge", "25%");
            }
            child(object, "status");
        }
        "ReplicaSet" => {
            let spec = child(object, "spec");
            pod::template(spec);
            set(spec, "replicas", 1);
            set(child(object, "status"), "replicas", 0);
        }
        "StatefulSet" => {
            let spec = child(object, "spec");
            pod::template(spec);
            set(spec, "replicas", 1);
            set(spec, "revisionHistoryLimit", 10);
            set(spec, "podManagementPolicy", "OrderedReady");
            set(spec, "serviceName", "");
            set(spec, "persistentVolumeClaimRetentionPolicy", json!({"whenDeleted": "Retain", "whenScaled": "Retain"}));
            let strategy = child(spec, "updateStrategy");
            set(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                set(child(strategy, "rollingUpdate"), "partition", 0);
            }
            let status = child(object, "status");
            set(status, "replicas", 0);
            set(status, "availableReplicas", 0);
        }
        "DaemonSet" => {
            let spec = child(object, "spec");
            pod::template(spec);
            set(spec, "revisionHistoryLimit", 10);
            let strategy = child(spec, "updateStrategy");
            set(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                let rolling = child(strategy, "rollingUpdate");
                set(rolling, "maxUnavailable", 1);
                set(rolling, "maxSurge", 0);
            }
            let status = child(object, "status");
            for count in ["currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"] {
                set(status, count, 0);
            }
        }
        "Job" => {
            let labels = object.pointer("/spec/template/metadata/labels").cloned();
            if let Some(labels) = labels {
                set(child(object, "metadata"), "labels", labels);
            }
            job(child(object, "spec"));
            child(object, "status");
        }
        "CronJob" => {
            let spec = child(object, "spec");
            set(spec, "concurrencyPolicy", "Allow");
            set(spec, "suspend", false);
            set(spec, "successfulJobsHistoryLimit", 3);
            set(spec, "failedJobsHistoryLimit", 1);
            with(spec, "jobTemplate", |template| {
                child(template, "metadata");
                let spec = child(template, "spec");
                pod::template(spec);
            });
            child(object, "status");
        }
        _ => {}
    }
}

fn job(spec: &mut Value) {
    pod::template(spec);
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    set(spec, "backoffLimit", 6);
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "manualSelector", false);
    let replacement = if spec["podFailurePolicy"].is_null() { "TerminatingOrFailed" } else { "Failed" };
    set(spec, "podReplacementPolicy", replacement);
}
