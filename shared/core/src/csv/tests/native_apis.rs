//! `spec.nativeAPIs`: kinds that have to be served according to the API server's discovery.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::{Step, transition};
use crate::api::cluster_service_version::Csv;
use crate::plan::{Action, Controller, Key, Question, Reason, Severity};
use crate::testing;
use crate::world::{Discovery, Fact, FactKey, Reader, World};

const GROUP: &str = "garden.example.com";

/// `rose` requires Roses of v1 and v2, and in one case Pods.
fn csv(phase: &str, present: &[&str]) -> Value {
    let known = present.iter().map(|version| {
        json!({
            "group": GROUP, "version": version, "kind": "Rose", "name": format!("{version}.{GROUP}"),
            "status": "Present", "message": "Native API exists",
        })
    });
    let spec = json!({
        "install": { "strategy": "deployment", "spec": {} },
        "nativeAPIs": [
            { "group": GROUP, "version": "v1", "kind": "Rose" }, { "group": GROUP, "version": "v2", "kind": "Rose" },
        ],
    });
    testing::with_status(
        testing::csv("garden", "rose", &spec),
        &json!({ "phase": phase, "requirementStatus": known.collect::<Vec<_>>() }),
    )
}

fn served(kinds: &[&str]) -> Discovery {
    Discovery::new(kinds.iter().map(|kind| ((*kind).to_owned(), Some(true))).collect())
}

fn learn(world: &mut World, version: &str, discovery: Discovery) {
    let key = FactKey::Discovery(GROUP.to_owned(), version.to_owned());
    world.learn(key, Some(Fact::Discovery(discovery)));
}

fn next(world: &World, csv: &Value) -> Step {
    let key = Key::new(Controller::ClusterServiceVersion, "garden", "rose");
    transition::next(&Reader::new(world), Csv::new(csv), &key, Timestamp::UNIX_EPOCH)
}

/// Returns the next phase, and the status of each requirement.
fn found(step: &Step) -> (&str, Vec<&str>) {
    let phase = step.transition.as_ref().map_or("", |t| t.phase.as_str());
    let statuses = step.requirements.iter().flatten().map(|entry| entry["status"].as_str().unwrap());
    (phase, statuses.collect())
}

#[test]
fn nothing_happens_before_discovery_and_then_it_decides() {
    let mut world = World::new();
    for phase in ["Pending", "Succeeded", "Failed"] {
        let step = next(&world, &csv(phase, &[]));
        let question =
            |version: &str| Action::Ask(Question::Discover { group: GROUP.to_owned(), version: version.to_owned() });
        assert_eq!(step, Step { before: vec![question("v1"), question("v2")], ..Step::default() }, "{phase}");
    }
    learn(&mut world, "v1", served(&["Rose"]));
    learn(&mut world, "v2", served(&["Tulip"]));
    let step = next(&world, &csv("Pending", &[]));
    assert_eq!(found(&step), ("Pending", vec!["Present", "NotPresent"]));
    let entries = step.requirements.unwrap();
    assert_eq!(
        entries[1],
        json!({
            "group": GROUP, "version": "v2", "kind": "Rose", "name": "v2.garden.example.com",
            "status": "NotPresent", "message": "Native API does not exist",
        })
    );
    let [Reason::RequirementsNotMet { missing, .. }] = &step.reasons[..] else { panic!("{:?}", step.reasons) };
    assert_eq!(missing, &["Rose v2.garden.example.com: Native API does not exist"]);
    // A removed API fails the operator, an added one lets it continue.
    assert_eq!(found(&next(&world, &csv("Succeeded", &["v1", "v2"]))).0, "Failed");
    learn(&mut world, "v2", served(&["Rose", "Tulip"]));
    assert_eq!(found(&next(&world, &csv("Pending", &[]))), ("InstallReady", vec!["Present", "Present"]));
    assert_eq!(found(&next(&world, &csv("Succeeded", &["v1", "v2"]))).0, "Succeeded");
}

#[test]
fn an_api_that_does_not_respond_neither_fails_nor_admits_operators() {
    let away = || Discovery::failed("service unavailable");
    let mut world = World::new();
    learn(&mut world, "v1", served(&["Rose"]));
    learn(&mut world, "v2", served(&["Rose"]));
    learn(&mut world, "v2", away());
    // Known kinds stay known.
    assert_eq!(found(&next(&world, &csv("Succeeded", &[]))), ("Succeeded", vec!["Present", "Present"]));
    // After a restart only the status is known.
    let mut world = World::new();
    learn(&mut world, "v1", served(&["Rose"]));
    learn(&mut world, "v2", away());
    let step = next(&world, &csv("Succeeded", &["v1", "v2"]));
    assert_eq!(found(&step), ("Succeeded", vec!["Present", "Present"]));
    let [reason @ Reason::ApisUnknown { assumed_served: true, .. }] = &step.reasons[..] else {
        panic!("{:?}", step.reasons)
    };
    assert_eq!(reason.severity(), Severity::Settled);
    assert_eq!(
        reason.to_string(),
        "it is not known whether the API server serves Rose (garden.example.com/v2), which ClusterServiceVersion \
         garden/rose needs: service unavailable; they were served at the last check, and are assumed to be"
    );
    let step = next(&world, &csv("Pending", &["v1"]));
    assert_eq!(found(&step), ("Pending", vec!["Present", "NotPresent"]));
    let [reason @ Reason::ApisUnknown { assumed_served: false, .. }] = &step.reasons[..] else {
        panic!("{:?}", step.reasons)
    };
    assert_eq!(reason.severity(), Severity::Blocked);
    // A response without the version is definite.
    learn(&mut world, "v2", Discovery::new(BTreeMap::new()));
    assert_eq!(found(&next(&world, &csv("Succeeded", &["v1", "v2"]))), ("Failed", vec!["Present", "NotPresent"]));
}

#[test]
fn a_required_aggregated_api_needs_its_kind_in_discovery() {
    let mut csv = csv("Pending", &[]);
    csv["spec"]["nativeAPIs"] = json!([]);
    csv["spec"]["apiservicedefinitions"]["required"] =
        json!([{ "group": GROUP, "version": "v1", "kind": "Rose", "name": "roses" }]);
    let mut world = World::new();
    // A missing API is not looked up.
    assert_eq!(found(&next(&world, &csv)), ("Pending", vec!["NotPresent"]));
    world.apply(json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": format!("v1.{GROUP}") },
        "status": { "conditions": [{ "type": "Available", "status": "True" }] },
    }));
    assert!(matches!(&next(&world, &csv).before[..], [Action::Ask(Question::Discover { .. })]));
    learn(&mut world, "v1", served(&["Tulip"]));
    assert_eq!(found(&next(&world, &csv)), ("Pending", vec!["NotPresent"]));
    learn(&mut world, "v1", Discovery::failed("busy"));
    learn(&mut world, "v1", served(&["Rose"]));
    assert_eq!(found(&next(&world, &csv)), ("InstallReady", vec!["Present"]));
}
