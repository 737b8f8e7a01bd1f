//! The requests.

mod kinds;
mod olm;
mod requests;
mod workloads;

use serde_json::{Value, json};

use crate::transcript::{Script, Transcript};

/// Every script with its namespace.
pub(crate) const ALL: &[(&str, Script)] = &[
    ("names", requests::names),
    ("conflicts", requests::conflicts),
    ("deletions", requests::deletions),
    ("owners", requests::owners),
    ("services", kinds::services),
    ("access", kinds::access),
    ("small_kinds", kinds::small_kinds),
    ("workload_defaults", workloads::workload_defaults),
    ("rollouts", workloads::rollouts),
    ("unschedulable", workloads::unschedulable),
    ("budgets", workloads::budgets),
    ("jobs", workloads::jobs),
    ("pods", workloads::pods),
    ("definitions", kinds::definitions),
    ("custom_resources", kinds::custom_resources),
    ("extensions", kinds::extensions),
    ("namespace_end", requests::namespace_end),
    ("patches", requests::patches),
    ("applying", requests::applying),
    ("decoding", requests::decoding),
    ("olm_kinds", olm::kinds),
];

fn config_map(t: &Transcript<'_>, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": t.namespace}})
}

fn with(mut object: Value, patch: Value) -> Value {
    json_patch::merge(&mut object, &patch);
    object
}

fn is_absent(object: &Value) -> bool {
    object.is_null()
}

fn has_condition(object: &Value, kind: &str, status: &str, reason: &str) -> bool {
    object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|c| c["type"] == kind && c["status"] == status && (reason.is_empty() || c["reason"] == reason))
}
