//! Compares steps with the recordings.

use serde_json::Value;

use super::{self as steps, BundleSource};
use crate::api::object;
use crate::testing;

/// Returns a step in the form of the recordings: the manifest as an object.
fn shown(step: &Value) -> Value {
    let mut step = step.clone();
    if let Some(manifest) = step["resource"]["manifest"].as_str() {
        step["resource"]["manifest"] = serde_json::from_str(manifest).unwrap();
    }
    step.as_object_mut().unwrap().remove("status");
    step
}

/// Returns the sort key of steps that the recordings sort last.
fn rank(step: &Value) -> (bool, String, String) {
    let kind = object::text(step, &["resource", "kind"]);
    let access = kind.contains("Role") || kind == "ServiceAccount";
    let key = |k: &str| if access { k.to_owned() } else { String::new() };
    (access, key(kind), key(object::text(step, &["resource", "name"])))
}

#[test]
fn steps_are_those_of_the_recordings() {
    let Some(scenarios) = testing::entries("scenarios") else { return };
    let mut checked = testing::Checked::default();
    for golden in scenarios.iter().map(|s| s.join("golden.yaml")).filter(|p| p.is_file()) {
        let golden: Value = serde_yaml::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
        let changed = golden["steps"].as_array().unwrap().iter().filter_map(|s| s["changed"].as_object());
        for (key, plan) in changed.flatten().filter(|(key, _)| key.starts_with("InstallPlan/")) {
            let recorded = object::list(plan, &["status", "plan"]);
            for csv_step in recorded.iter().filter(|s| s["resource"]["kind"] == "ClusterServiceVersion") {
                checked.add(key, fault(object::namespace(plan), csv_step, recorded));
            }
        }
    }
    checked.end();
}

/// Converts one bundle of the recordings to steps, and returns the difference. Steps recorded as hashes are not comparable.
fn fault(namespace: &str, csv_step: &Value, recorded: &[Value]) -> Option<String> {
    let csv = &csv_step["resource"]["manifest"];
    if !csv["spec"].is_object() {
        return None;
    }
    let resolving = csv_step["resolving"].as_str().unwrap();
    let recorded: Vec<Value> = recorded
        .iter()
        .filter(|s| s["resolving"] == resolving && s["resource"]["kind"] != "Subscription")
        .map(shown)
        .collect();
    let source = BundleSource {
        catalog: object::text(csv_step, &["resource", "sourceName"]),
        catalog_namespace: object::text(csv_step, &["resource", "sourceNamespace"]),
        csv: resolving,
        replaces: object::text(csv, &["spec", "replaces"]),
    };
    let annotation = object::annotation(csv, "operatorframework.io/properties").unwrap();
    let properties: Value = serde_json::from_str(annotation).unwrap();
    let objects: Vec<Value> =
        recorded.iter().map(|s| s["resource"]["manifest"].clone()).filter(|m| m["apiVersion"].is_string()).collect();
    let mut bundle_csv = csv.clone();
    bundle_csv["metadata"].as_object_mut().unwrap().remove("namespace");
    bundle_csv["metadata"]["annotations"].as_object_mut().unwrap().remove("operatorframework.io/properties");
    bundle_csv.as_object_mut().unwrap().remove("status");
    let mut made = steps::of_bundle(&source, namespace, &bundle_csv, &objects, &properties["properties"]).unwrap();
    steps::order(&mut made);
    made.sort_by_key(rank);
    let made: Vec<Value> = made.iter().map(shown).collect();
    let is_hashed = recorded.iter().any(|s| !s["resource"]["manifest"].is_object());
    (!is_hashed && made != recorded).then(|| format!("{made:#?}\ninstead of {recorded:#?}"))
}
