//! `kubectl olm install-plan list` of plans that the real OLM created and executed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use olm_shell::cli::flags::{NamespaceFlags, OutputFlags, SourceFlags};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{Outcome, Printer};
use olm_shell::installplan::list;
use olm_tests::data::{NO_DATA, data, documents, files};
use olm_tests::skip;
use serde_json::{Value, json};

/// Lists the plans in these files.
fn listed(from: PathBuf) -> Vec<Value> {
    let options = list::Options {
        source: SourceFlags { from: vec![from], ..SourceFlags::default() },
        namespaces: NamespaceFlags::default(),
        names: Vec::new(),
        pending: false,
        list: ListFlags { output: OutputFlags { output: "json".parse().unwrap() }, ..ListFlags::default() },
    };
    let (out, err) = (Buffer::default(), Buffer::default());
    let answer = list::run(&options, &mut Printer::to(out.clone(), err.clone()));
    assert_eq!(answer, Ok(Outcome::Done), "{}", err.text());
    let list: Value = serde_json::from_str(&out.text()).unwrap();
    list["items"].as_array().unwrap().clone()
}

/// Returns the objects after each step of a recording.
fn states(golden: &Path) -> Vec<(String, Vec<Value>)> {
    let recording = documents(golden).unwrap().remove(0);
    let mut objects: BTreeMap<String, Value> = BTreeMap::new();
    let steps = recording["steps"].as_array().into_iter().flatten();
    let matters = |name: &str| {
        ["InstallPlan/", "Subscription/", "ClusterServiceVersion/", "OperatorGroup/"]
            .iter()
            .any(|kind| name.starts_with(kind))
    };
    let after = steps.map(|step| {
        for gone in step["gone"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            objects.remove(gone);
        }
        for (name, object) in step["changed"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, object)| matters(name) && object.is_object())
        {
            objects.insert(name.clone(), as_it_was(object.clone()));
        }
        (step["name"].as_str().unwrap_or_default().to_owned(), objects.values().cloned().collect())
    });
    after.collect()
}

/// Returns the object with its manifests as text, which recordings contain as objects.
pub(crate) fn as_it_was(mut object: Value) -> Value {
    for step in object.pointer_mut("/status/plan").and_then(Value::as_array_mut).into_iter().flatten() {
        let manifest = &mut step["resource"]["manifest"];
        if !manifest.is_string() {
            *manifest = manifest.to_string().into();
        }
    }
    object
}

#[test]
fn every_recorded_plan_has_the_state_of_its_status() {
    let Some(data) = data() else { skip!("{NO_DATA}") };
    let goldens = files(&data.join("scenarios")).into_iter().filter(|file| file.ends_with("golden.yaml"));
    let folder = tempfile::tempdir().unwrap();
    let (mut plans, mut failed) = (0, 0);
    for golden in goldens {
        for (step, objects) in states(&golden) {
            let file = folder.path().join("all.json");
            std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
            for plan in listed(file) {
                let told = format!("{} after {step:?}: {plan:#}", golden.display());
                let done = plan["steps"]["done"].as_u64().unwrap();
                let reason = plan["reason"]["reason"].as_str().unwrap_or_default();
                plans += 1;
                match plan["phase"].as_str().unwrap() {
                    // Not all of its steps are done: OLM marks a plan as complete even if a definition was not established at
                    // its last check. A value that differed between recordings is not a status.
                    "Complete" => assert!(reason.is_empty(), "{told}"),
                    "RequiresApproval" => assert!(reason == "ApprovalNeeded" && done == 0, "{told}"),
                    "Failed" => {
                        failed += 1;
                        assert!(reason == "InstallPlanFailed" && plan["step"]["name"].is_string(), "{told}");
                        assert!(!plan["reason"]["message"].as_str().unwrap().is_empty(), "{told}");
                    }
                    "Installing" => {
                        assert!(!reason.is_empty() && !plan["message"].as_str().unwrap().is_empty(), "{told}");
                    }
                    _ => assert_eq!(reason, "Invalid", "{told}"),
                }
            }
        }
    }
    assert!(plans > 80 && failed > 2, "{plans} plans, {failed} of them failed");
}

#[test]
fn upgrades_are_distinguished_from_installs() {
    let Some(data) = data() else { skip!("{NO_DATA}") };
    let folder = tempfile::tempdir().unwrap();
    let changes: Vec<Value> = states(&data.join("scenarios/upgrade-manual-steps/golden.yaml"))
        .into_iter()
        .map(|(_, objects)| {
            let file = folder.path().join("all.json");
            std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
            listed(file).into_iter().next_back().unwrap()["csvs"].clone()
        })
        .collect();
    assert_eq!(changes[0], json!([{ "to": "rose.v1.0.0" }]));
    assert_eq!(changes[1], json!([{ "from": "rose.v1.0.0", "to": "rose.v1.1.0" }]));
}

#[test]
fn plans_of_older_olm_versions_are_read_from_a_must_gather() {
    let Some(data) = data() else { skip!("{NO_DATA}") };
    let plans = listed(data.join("objects/insights-operator"));
    assert!(plans.len() >= 3, "{plans:#?}");
    for plan in plans {
        assert_eq!((&plan["phase"], &plan["reason"]), (&"Complete".into(), &Value::Null), "{plan:#}");
        assert_eq!(plan["steps"]["done"], plan["steps"]["all"]);
    }
}
