//! The diagnosis of operators in the states that the real OLM left behind, as recorded in the scenarios.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;
use olm_core::diagnosis::{Diagnosis, Scope, State, diagnose, known_of_files};
use olm_core::health::{self, Health};
use olm_core::settings::Settings;
use olm_core::world::{Reader, World};
use olm_tests::data::{documents, files, repository};
use serde_json::Value;

use crate::install_plan::as_it_was;

/// Returns the objects after each step of a recording.
fn states(golden: &Path) -> Vec<(String, World)> {
    let recording = documents(golden).unwrap().remove(0);
    let mut objects: BTreeMap<String, Value> = BTreeMap::new();
    let steps = recording["steps"].as_array().into_iter().flatten();
    let after = steps.map(|step| {
        for name in step["gone"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            objects.remove(name);
        }
        let changed = step["changed"].as_object().into_iter().flatten();
        for (name, object) in changed.filter(|(_, object)| object.is_object()) {
            objects.insert(name.clone(), as_it_was(object.clone()));
        }
        let mut world = World::new();
        for object in objects.values() {
            world.apply(object.clone());
        }
        (step["name"].as_str().unwrap_or_default().to_owned(), world)
    });
    after.collect()
}

fn diagnoses(world: &World) -> Vec<Diagnosis> {
    let (settings, known, reader) = (Settings::default(), known_of_files(world), Reader::new(world));
    let scope = Scope {
        settings: &settings,
        known: &known,
        controllers: None,
        now: "2026-06-01T00:00:00Z".parse::<Timestamp>().unwrap(),
    };
    let all = health::Scope { settings: &settings, knows_groups: true, knows_catalogs: true };
    let operators = health::operators(&reader, all, None);
    operators.iter().filter_map(|one| diagnose(&reader, scope, &one.namespace, &one.name)).collect()
}

#[test]
fn every_recorded_state_has_a_diagnosis() {
    let root = repository().join("tests/scenarios");
    let mut goldens: Vec<_> = files(&root).into_iter().filter(|file| file.ends_with("golden.yaml")).collect();
    goldens.sort();
    let mut lines = Vec::new();
    for golden in goldens {
        let scenario = golden.parent().unwrap().strip_prefix(&root).unwrap().display().to_string();
        let states = states(&golden);
        for (step, world) in &states {
            for diagnosis in diagnoses(world) {
                let place = format!("{scenario} after {step:?}: {diagnosis:#?}");
                let is_blocked = diagnosis.operator.health == Health::Blocked;
                assert!(!is_blocked || !diagnosis.problems.is_empty(), "{place}");
                let in_trouble = diagnosis.stages.iter().filter(|stage| stage.state == State::Failed);
                assert!(in_trouble.count() <= diagnosis.problems.len().max(1) * 4, "{place}");
                // What is wrong is never what the recording does not contain.
                for stage in diagnosis.stages.iter().filter(|stage| stage.state == State::Unknown) {
                    assert!(stage.message.contains("not in the files"), "{place}");
                }
            }
        }
        let Some((_, last)) = states.last() else { continue };
        for diagnosis in diagnoses(last) {
            let codes: Vec<&str> = diagnosis.problems.iter().map(|problem| problem.code.name).collect();
            let unknown: BTreeSet<&str> = diagnosis
                .stages
                .iter()
                .filter(|stage| stage.state == State::Unknown)
                .map(|stage| stage.stage.as_str())
                .collect();
            let operator = &diagnosis.operator;
            lines.push(format!(
                "{scenario}: {} {}: {}; unknown: {}",
                operator.name,
                operator.health.as_str(),
                codes.join(" "),
                unknown.into_iter().collect::<Vec<_>>().join(" ")
            ));
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}
