//! Tests of the rules: each finds its problem, and does not report similar objects without a problem.

mod left_over;
mod property;
mod rules;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Fix, Known, Linted, Problem, RULES, lint, rule};
use crate::testing;
use crate::world::World;
use crate::yaml;

/// The time at which the rules are checked.
const NOW: &str = "2026-01-01T12:00:00Z";

/// Returns a World of these objects, in YAML.
fn world(text: &str) -> World {
    let mut world = World::new();
    for document in yaml::documents(text.as_bytes()).unwrap() {
        let mut object: Value = document.value().unwrap();
        let kind = object["kind"].as_str().unwrap().to_owned();
        let group = match kind.as_str() {
            "OperatorGroup" => "operators.coreos.com/v1",
            "ClusterServiceVersion" | "Subscription" | "InstallPlan" => "operators.coreos.com/v1alpha1",
            "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => "rbac.authorization.k8s.io/v1",
            "Deployment" => "apps/v1",
            _ => "v1",
        };
        object["apiVersion"] = group.into();
        world.apply(object);
    }
    world
}

fn linted(text: &str) -> Linted {
    lint(&world(text), &Known::everything(), NOW.parse().unwrap())
}

/// Formats each finding as `OG001 error OperatorGroup/garden/all`.
fn summaries(problems: &[Problem]) -> Vec<String> {
    let line = |p: &Problem| format!("{} {} {}", p.rule.code, p.severity, p.object);
    problems.iter().map(line).collect()
}

fn found(text: &str) -> Vec<String> {
    summaries(&linted(text).problems)
}

/// Returns the only finding.
#[track_caller]
fn only(text: &str) -> Problem {
    let mut problems = linted(text).problems;
    assert_eq!(problems.len(), 1, "{:?}", summaries(&problems));
    problems.remove(0)
}

fn fix(problem: &Problem) -> &Fix {
    problem.fix.as_ref().unwrap()
}

fn command(problem: &Problem) -> String {
    fix(problem).command().unwrap_or_default()
}

#[test]
fn rules_have_codes_in_order_and_names_of_their_own() {
    for (at, one) in RULES.into_iter().enumerate() {
        assert_eq!(one.code, format!("OG{:03}", at + 1));
        assert_eq!(rule(&RULES, &one.code.to_lowercase()), Some(one));
        assert_eq!(rule(&RULES, one.name), Some(one), "{} is the name of two rules", one.name);
        let explanation = one.explanation();
        let flat = explanation.replace('\n', " ");
        for part in [one.code, one.name, one.summary, one.why, one.fix] {
            assert!(!part.is_empty() && flat.contains(part), "{}: {explanation}", one.code);
        }
        assert!(!one.summary.ends_with('.') && one.why.ends_with('.') && one.fix.ends_with('.'), "{}", one.code);
    }
    assert_eq!(rule(&RULES, "OG999"), None);
}

#[test]
fn a_thousand_groups_are_checked_in_seconds() {
    let mut world = World::new();
    for n in 0..1000 {
        let labels = json!({ "team": format!("t{}", n % 50) });
        let name = format!("n{n}");
        world.apply(testing::labelled_namespace(&name, &labels));
        let spec = match n % 3 {
            0 => json!({ "selector": { "matchLabels": { "team": format!("t{}", n % 50) } } }),
            1 => json!({ "targetNamespaces": (n..n + 20).map(|n| format!("n{n}")).collect::<Vec<_>>() }),
            _ => json!({ "targetNamespaces": [name] }),
        };
        world.apply(testing::operator_group(&name, "all", &spec));
    }
    let modes = testing::install_modes(&testing::ALL_MODES);
    for n in 0..1500 {
        let kind = format!("Rose{}", n % 40);
        let owned = json!([{ "name": format!("{}s.example.com", kind.to_lowercase()), "kind": kind, "version": "v1" }]);
        world.apply(testing::csv(
            &format!("n{}", n % 1000),
            &format!("rose.v{n}"),
            &json!({ "installModes": modes, "customresourcedefinitions": { "owned": owned } }),
        ));
    }
    let began = Instant::now();
    let linted = lint(&world, &Known::everything(), NOW.parse().unwrap());
    eprintln!("{} problems in {:?}", linted.problems.len(), began.elapsed());
    assert!(linted.problems.len() > 100);
    // The limit is for an unoptimised build on a busy machine.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn an_empty_world_has_no_problems() {
    let Linted { problems, unchecked, groups } = linted("");
    assert_eq!((problems, unchecked, groups), (vec![], vec![], 0));
}
