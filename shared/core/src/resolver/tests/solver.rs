//! The solver in isolation: against recorded answers of OLM's solver, and against an exhaustive one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::resolver::rule::{Formula, Rule};
use crate::resolver::solve::{Unsolved, solve};
use crate::testing;

/// A problem of the recording.
#[derive(Deserialize)]
struct Problem {
    id: String,
    family: String,
    variables: Vec<Variable>,
    result: Outcome,
    #[serde(default)]
    distinct_results: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Variable {
    id: String,
    constraints: Vec<Constraint>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Constraint {
    Mandatory,
    Prohibited,
    Dependency {
        #[serde(default)]
        ids: Vec<String>,
    },
    Conflict {
        id: String,
    },
    AtMost {
        n: usize,
        ids: Vec<String>,
    },
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Installed(Vec<String>),
    Unsat(Vec<String>),
    Error(String),
}

/// Converts the problem to rules. `None`: it refers to a missing variable, or has one twice, which numbers cannot express.
fn rules(variables: &[Variable]) -> Option<Vec<Rule>> {
    let numbers: BTreeMap<&str, usize> = variables.iter().enumerate().map(|(i, v)| (v.id.as_str(), i)).collect();
    if numbers.len() < variables.len() {
        return None;
    }
    let number = |id: &String| numbers.get(id.as_str()).copied();
    let all = |ids: &[String]| ids.iter().map(number).collect::<Option<Vec<usize>>>();
    let mut rules = Vec::new();
    for (at, Variable { id, constraints }) in variables.iter().enumerate() {
        for constraint in constraints {
            let (formula, message) = match constraint {
                Constraint::Mandatory => (Formula::Chosen(at), format!("{id} is mandatory")),
                Constraint::Prohibited => (Formula::Never(at), format!("{id} is prohibited")),
                Constraint::Dependency { ids } if ids.is_empty() => {
                    let message = format!("{id} has a dependency without any candidates to satisfy it");
                    (Formula::OneOf(at, Vec::new()), message)
                }
                Constraint::Dependency { ids } => {
                    (Formula::OneOf(at, all(ids)?), format!("{id} requires at least one of {}", ids.join(", ")))
                }
                Constraint::Conflict { id: other } => {
                    (Formula::NotBoth(at, number(other)?), format!("{id} conflicts with {other}"))
                }
                Constraint::AtMost { n, ids } => {
                    let message = format!("{id} permits at most {n} of {}", ids.join(", "));
                    (Formula::AtMost(*n, all(ids)?), message)
                }
            };
            rules.push(Rule { formula, message, weight: 0 });
        }
    }
    Some(rules)
}

/// Returns what is wrong with the answer; `None` when it is the recorded one.
fn fault(problem: &Problem) -> Option<String> {
    let Some(rules) = rules(&problem.variables) else {
        return (problem.family != "faulty").then(|| "it refers to a missing variable".to_owned());
    };
    let name = |i: &usize| problem.variables[*i].id.clone();
    match (solve(&rules, problem.variables.len()), &problem.result) {
        (Ok(mut chosen), Outcome::Installed(expected)) => {
            chosen.sort_unstable();
            let chosen: Vec<String> = chosen.iter().map(name).collect();
            (&chosen != expected).then(|| format!("{chosen:?} instead of {expected:?}"))
        }
        (Err(Unsolved::Contradiction(core)), Outcome::Unsat(_)) => {
            // OLM's choice among contradictions varies; the one found need not be among those recorded.
            let core: Vec<Rule> = core.iter().map(|i| rules[*i].clone()).collect();
            let messages: BTreeSet<String> = core.iter().map(|rule| rule.message.clone()).collect();
            let found = Outcome::Unsat(messages.into_iter().collect());
            let is_recorded = found == problem.result || problem.distinct_results.contains(&found);
            let is_one = is_recorded || solve(&core, problem.variables.len()).is_err();
            (!is_one).then(|| format!("{found:?} is not a contradiction"))
        }
        (ours, theirs) => Some(format!("{ours:?} instead of {theirs:?}")),
    }
}

#[test]
fn chooses_as_the_real_solver() {
    let Some(problems) = testing::recorded_lines::<Problem>("solver/problems.jsonl") else { return };
    let mut checked = testing::Checked::default();
    for problem in problems {
        checked.add(&problem.id, fault(&problem));
    }
    checked.end();
}

/// Returns whether the rules hold when exactly these are chosen.
fn hold(rules: &[&Rule], chosen: u32) -> bool {
    rules.iter().all(|rule| rule.formula.holds(|v| chosen & (1 << v) != 0))
}

/// Returns whether the rules can hold when at least those are chosen, by exhaustive search.
fn can_hold(rules: &[&Rule], count: usize, at_least: u32) -> bool {
    (0..1_u32 << count).any(|chosen| chosen & at_least == at_least && hold(rules, chosen))
}

/// Chooses the first candidate of every choice; `None` when a choice has no candidates.
fn first_candidates(rules: &[&Rule]) -> Option<u32> {
    let (mut chosen, mut choices) = (0, VecDeque::new());
    choices
        .extend(rules.iter().filter_map(|r| if let Formula::Chosen(v) = &r.formula { Some(vec![*v]) } else { None }));
    while let Some(candidates) = choices.pop_front() {
        if candidates.iter().any(|c| chosen & (1 << c) != 0) {
            continue;
        }
        let first = *candidates.first()?;
        chosen |= 1 << first;
        choices.extend(rules.iter().filter_map(|r| match &r.formula {
            Formula::OneOf(v, others) if *v == first => Some(others.clone()),
            _ => None,
        }));
    }
    Some(chosen)
}

/// Returns what must be chosen, or is a candidate of something chosen.
fn needed(rules: &[&Rule], chosen: u32) -> u32 {
    rules.iter().fold(0, |needed, rule| match &rule.formula {
        Formula::Chosen(v) => needed | 1 << v,
        Formula::OneOf(v, others) if chosen & (1 << v) != 0 => others.iter().fold(needed, |needed, c| needed | 1 << c),
        _ => needed,
    })
}

/// Maximum number of variables of a generated problem: all combinations are tried.
const MOST: usize = 9;

fn some_problem() -> impl Strategy<Value = (usize, Vec<Formula>)> {
    (2..=MOST).prop_flat_map(|count| {
        let variable = move || 0..count;
        let formula = prop_oneof![
            2 => variable().prop_map(Formula::Chosen),
            1 => variable().prop_map(Formula::Never),
            6 => (variable(), prop::collection::vec(variable(), 0..4)).prop_map(|(v, others)| Formula::OneOf(v, others)),
            2 => (variable(), variable()).prop_map(|(a, b)| Formula::NotBoth(a, b)),
            2 => (0..3_usize, prop::collection::btree_set(variable(), 1..5)).prop_map(|(n, m)| Formula::AtMost(n, m.into_iter().collect())),
        ];
        (Just(count), prop::collection::vec(formula, 1..14))
    })
}

/// Returns the problem as a line of the recording, to preserve a failing case.
fn as_recorded(count: usize, rules: &[Rule]) -> Value {
    let name = |v: &usize| format!("v{v}");
    let names = |vs: &mut dyn Iterator<Item = &usize>| vs.map(name).collect::<Vec<_>>();
    let constraints = |v: usize| {
        let of = rules.iter().filter_map(|r| match &r.formula {
            Formula::Chosen(a) if *a == v => Some(json!({ "type": "mandatory" })),
            Formula::Never(a) if *a == v => Some(json!({ "type": "prohibited" })),
            Formula::OneOf(a, others) if *a == v => {
                Some(json!({ "type": "dependency", "ids": names(&mut others.iter()) }))
            }
            Formula::NotBoth(a, b) if *a == v => Some(json!({ "type": "conflict", "id": name(b) })),
            Formula::AtMost(n, members) if members.first() == Some(&v) => {
                Some(json!({ "type": "atMost", "n": n, "ids": names(&mut members.iter()) }))
            }
            _ => None,
        });
        of.collect::<Vec<_>>()
    };
    json!((0..count).map(|v| json!({ "id": name(&v), "constraints": constraints(v) })).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_an_exhaustive_solver((count, formulas) in some_problem()) {
        let rules: Vec<Rule> =
            formulas.into_iter().enumerate().map(|(i, formula)| Rule { formula, message: format!("rule {i:02}"), weight: 0 }).collect();
        let all: Vec<&Rule> = rules.iter().collect();
        let scenario = as_recorded(count, &rules).to_string();
        let answer = solve(&rules, count);
        prop_assert_eq!(&answer, &solve(&rules, count), "again: {}", scenario);
        match answer {
            Ok(chosen) => {
                let chosen = chosen.iter().fold(0, |all, c| all | 1 << c);
                prop_assert!(hold(&all, chosen), "the choice breaks rules: {}", scenario);
                prop_assert_eq!(chosen & !needed(&all, chosen), 0, "an unneeded variable is chosen: {}", scenario);
                if let Some(preferred) = first_candidates(&all).filter(|first| hold(&all, *first)) {
                    prop_assert_eq!(chosen, preferred, "not the preferred choice: {}", scenario);
                }
            }
            Err(Unsolved::GaveUp) => prop_assert!(false, "it gave up: {}", scenario),
            Err(Unsolved::Contradiction(core)) => {
                prop_assert!(!can_hold(&all, count, 0), "a choice exists: {}", scenario);
                let core: Vec<&Rule> = core.iter().map(|i| &rules[*i]).collect();
                prop_assert!(!can_hold(&core, count, 0), "the core is satisfiable: {}", scenario);
                for at in 0..core.len() {
                    let without: Vec<&Rule> = core.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, r)| *r).collect();
                    prop_assert!(can_hold(&without, count, 0), "the core is not minimal: {}", scenario);
                }
                // The reported contradiction does not depend on the order of the rules.
                let mut reversed = rules.clone();
                reversed.reverse();
                let messages = |rules: &[Rule]| -> Option<BTreeSet<String>> {
                    match solve(rules, count) {
                        Err(Unsolved::Contradiction(core)) => {
                            Some(core.iter().map(|i| rules[*i].message.clone()).collect())
                        }
                        _ => None,
                    }
                };
                prop_assert_eq!(messages(&rules), messages(&reversed), "depends on the order: {}", scenario);
            }
        }
    }
}
