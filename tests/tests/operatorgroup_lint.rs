//! Findings about OperatorGroups in final states: of every scenario, with the real OLM and with this implementation, and of
//! manifests written by users. Each finding was reviewed, and none is a false positive.
//!
//! Snapshots list the findings of scenarios with synthetic objects, and count those of others.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use jiff::Timestamp;
use olm_core::finding::Severity;
use olm_core::lint::{Known, Problem, lint};
use olm_core::world::World;
use olm_shell::cli::Printer;
use olm_shell::cli::findings::Format;
use olm_shell::cli::flags::{NamespaceFlags, SourceFlags};
use olm_shell::cli::streams::Buffer;
use olm_shell::operatorgroup::lint::{self as verb, FailOn, Options};
use olm_tests::data::{self, NO_DATA};
use olm_tests::scenario::format::Scenario;
use olm_tests::scenario::runner::Run;
use olm_tests::scenario::sim::SimEngine;
use olm_tests::scenario::{all, checked_in};
use olm_tests::skip;
use serde_json::{Value, json};

/// A time at which nothing in a scenario has changed recently.
const LATER: &str = "2030-01-01T00:00:00Z";

fn problems(objects: impl IntoIterator<Item = Value>) -> Vec<Problem> {
    let mut world = World::new();
    for object in objects {
        world.apply(object);
    }
    lint(&world, &Known::everything(), LATER.parse::<Timestamp>().unwrap()).problems
}

/// Returns the objects of a scenario's cluster before its first step, which recordings do not contain.
fn before() -> Vec<Value> {
    let namespace = |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let group = |name: &str, namespace: &str, target: &str| {
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": { "name": name, "namespace": namespace },
            "spec": if target.is_empty() { json!({}) } else { json!({ "targetNamespaces": [target] }) },
            "status": { "lastUpdated": "2026-01-01T00:00:00Z", "namespaces": [target] },
        })
    };
    let names = ["default", "kube-node-lease", "kube-public", "kube-system", "olm", "operators"];
    let mut objects: Vec<Value> = names.into_iter().map(namespace).collect();
    objects.extend([group("olm-operators", "olm", "olm"), group("global-operators", "operators", "")]);
    objects
}

/// Returns the final objects of the real OLM.
fn left_by_olm(scenario: &Scenario) -> Vec<Value> {
    let golden = scenario.golden().unwrap();
    before().into_iter().chain(golden.steps.last().unwrap().objects.values().cloned()).collect()
}

/// Returns the final objects of this implementation.
fn left_by_ours(scenario: &Scenario) -> Vec<Value> {
    let data = data::data();
    let engine = SimEngine::start_for(scenario).unwrap();
    let mut run = Run::new(engine, scenario, data.as_deref());
    run.play().unwrap();
    run.engine().simulation().api().iter().map(Cow::into_owned).collect()
}

fn render(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        writeln!(text, "  {} {} {}: {}", problem.rule.code, problem.severity, problem.object, problem.message).unwrap();
    }
    text
}

fn counts<'a>(codes: impl IntoIterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for code in codes {
        *counts.entry(code).or_default() += 1;
    }
    let counts: Vec<String> = counts.into_iter().map(|(code, n)| format!("{code}={n}")).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(" ") }
}

fn is_ours(scenario: &Scenario) -> bool {
    scenario.folder.starts_with(checked_in())
}

#[test]
fn the_end_of_every_scenario() {
    let mut text = String::new();
    for (name, scenario) in all().unwrap().into_iter().filter(|(_, scenario)| is_ours(scenario)) {
        let (olm, ours) = (render(&problems(left_by_olm(&scenario))), render(&problems(left_by_ours(&scenario))));
        if olm == ours {
            if !olm.is_empty() {
                writeln!(text, "{name}\n{olm}").unwrap();
            }
        } else {
            writeln!(text, "{name}, by OLM\n{olm}{name}, by ours\n{ours}").unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

/// Reasons with which the real OLM fails ClusterServiceVersions because of OperatorGroups.
const REASONS: [&str; 6] = [
    "NoOperatorGroup",
    "TooManyOperatorGroups",
    "NoTargetNamespaces",
    "UnsupportedOperatorGroup",
    "InterOperatorGroupOwnerConflict",
    "CannotModifyStaticOperatorGroupProvidedAPIs",
];

#[test]
fn every_step_that_was_recorded() {
    let mut text = String::new();
    for (name, scenario) in all().unwrap().into_iter().filter(|(_, scenario)| is_ours(scenario)) {
        for step in scenario.golden().unwrap().steps {
            let problems = problems(before().into_iter().chain(step.objects.values().cloned()));
            for csv in step.objects.values().filter(|o| o["kind"] == "ClusterServiceVersion") {
                let reason = csv["status"]["reason"].as_str().unwrap_or_default();
                if csv["status"]["phase"] == "Failed" && REASONS.contains(&reason) {
                    let namespace = csv["metadata"]["namespace"].as_str().unwrap();
                    let is_told =
                        problems.iter().any(|p| p.severity == Severity::Error && p.namespaces().contains(namespace));
                    assert!(is_told, "{name} [{}]: {reason} comes from nowhere", step.name);
                }
            }
            let errors: Vec<Problem> = problems.into_iter().filter(|p| p.rule.code != "OG017").collect();
            if !errors.is_empty() {
                writeln!(text, "{name} [{}]\n{}", step.name, render(&errors)).unwrap();
            }
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_end_of_scenarios_with_real_operators() {
    if data::data().is_none() {
        skip!("{NO_DATA}");
    }
    let mut text = String::new();
    for (name, scenario) in all().unwrap().into_iter().filter(|(_, scenario)| !is_ours(scenario)) {
        // Recordings do not contain long specs of ClusterServiceVersions.
        let ours = problems(left_by_ours(&scenario));
        writeln!(text, "{name}: {}", counts(ours.iter().map(|problem| problem.rule.code))).unwrap();
    }
    insta::assert_snapshot!(text);
}

/// Lints files as a user does.
fn linted(path: &Path) -> Value {
    let options = Options {
        source: SourceFlags { from: vec![path.to_owned()], ..SourceFlags::default() },
        namespaces: NamespaceFlags::default(),
        on_top: Vec::new(),
        complete: false,
        package: None,
        images: olm_shell::image::Options::default(),
        format: Format::Json,
        baseline: None,
        create_baseline: false,
        fail_on: FailOn::Never,
        fix: false,
        yes: false,
    };
    let (out, err) = (Buffer::default(), Buffer::default());
    verb::run(&options, &mut Printer::to(out.clone(), err)).unwrap();
    serde_json::from_str(&out.text()).unwrap()
}

#[test]
fn objects_written_by_users() {
    let Some(data) = data::data() else { skip!("{NO_DATA}") };
    let mut text = String::new();
    let mut sources: Vec<_> = std::fs::read_dir(data.join("objects")).unwrap().map(|e| e.unwrap().path()).collect();
    sources.sort();
    for source in sources.into_iter().filter(|path| path.is_dir()) {
        let document = linted(&source);
        let findings = document["findings"].as_array().unwrap();
        if std::env::var_os("OLM_SHOW").is_some() {
            eprintln!("{}", serde_json::to_string_pretty(findings).unwrap());
        }
        let codes = findings.iter().map(|finding| finding["code"].as_str().unwrap());
        let name = source.file_name().unwrap().to_string_lossy().into_owned();
        writeln!(text, "{name}: {} groups, {}", document["operatorGroups"], counts(codes)).unwrap();
    }
    insta::assert_snapshot!(text);
}
