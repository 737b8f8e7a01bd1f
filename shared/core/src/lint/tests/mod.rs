//! Every rule finds what it should, and not what is nearly the same.

mod left_over;
mod property;
mod rules;

use serde_json::Value;

use super::{Fix, Known, Linted, Problem, RULES, lint, rule};
use crate::world::World;
use crate::yaml;

/// The time at which everything is looked at.
const NOW: &str = "2026-01-01T12:00:00Z";

/// A World of these objects, in YAML.
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

/// `OG001 error OperatorGroup/garden/all`, for each finding.
fn told(problems: &[Problem]) -> Vec<String> {
    let line = |p: &Problem| format!("{} {} {}", p.rule.code, p.severity, p.object);
    problems.iter().map(line).collect()
}

fn found(text: &str) -> Vec<String> {
    told(&linted(text).problems)
}

/// The only finding.
#[track_caller]
fn only(text: &str) -> Problem {
    let mut problems = linted(text).problems;
    assert_eq!(problems.len(), 1, "{:?}", told(&problems));
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
        assert_eq!(rule(&one.code.to_lowercase()), Some(one));
        assert_eq!(rule(one.name), Some(one), "{} is the name of two rules", one.name);
        let explanation = one.explanation();
        for part in [one.code, one.name, one.summary, one.why, one.fix] {
            assert!(!part.is_empty() && explanation.contains(part), "{}: {explanation}", one.code);
        }
        assert!(!one.summary.ends_with('.') && one.why.ends_with('.') && one.fix.ends_with('.'), "{}", one.code);
    }
    assert_eq!(rule("OG999"), None);
}

#[test]
fn nothing_is_wrong_with_nothing() {
    let Linted { problems, unchecked, groups } = linted("");
    assert_eq!((problems, unchecked, groups), (vec![], vec![], 0));
}
