//! The solver by itself: against the recorded answers of OLM's, and against one that tries everything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::resolver::solve::{Rule, Says, solve};
use crate::testing;

/// A problem as the recording has it.
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

/// The problem in our words. `None`: it refers to a variable that is not there, or has one twice, which numbers cannot.
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
            let (says, message) = match constraint {
                Constraint::Mandatory => (Says::Chosen(at), format!("{id} is mandatory")),
                Constraint::Prohibited => (Says::Never(at), format!("{id} is prohibited")),
                Constraint::Dependency { ids } if ids.is_empty() => {
                    let message = format!("{id} has a dependency without any candidates to satisfy it");
                    (Says::OneOf(at, Vec::new()), message)
                }
                Constraint::Dependency { ids } => {
                    (Says::OneOf(at, all(ids)?), format!("{id} requires at least one of {}", ids.join(", ")))
                }
                Constraint::Conflict { id: other } => {
                    (Says::NotBoth(at, number(other)?), format!("{id} conflicts with {other}"))
                }
                Constraint::AtMost { n, ids } => {
                    let message = format!("{id} permits at most {n} of {}", ids.join(", "));
                    (Says::AtMost(*n, all(ids)?.into_iter().collect()), message)
                }
            };
            rules.push(Rule { says, message, weight: 0 });
        }
    }
    Some(rules)
}

#[test]
fn chooses_as_the_real_solver() {
    let Some(data) = testing::data() else { return };
    let text = std::fs::read_to_string(data.join("recorded/solver/problems.jsonl")).unwrap();
    let (mut installed, mut unsat, mut faulty) = (0, 0, 0);
    for line in text.lines() {
        let problem: Problem = serde_json::from_str(line).unwrap();
        let id = &problem.id;
        let Some(rules) = rules(&problem.variables) else {
            assert_eq!(problem.family, "faulty", "{id}");
            faulty += 1;
            continue;
        };
        let name = |i: &usize| problem.variables[*i].id.clone();
        match (solve(&rules, problem.variables.len()), &problem.result) {
            (Ok(mut chosen), Outcome::Installed(expected)) => {
                chosen.sort_unstable();
                assert_eq!(&chosen.iter().map(name).collect::<Vec<_>>(), expected, "{id}");
                installed += 1;
            }
            (Err(core), Outcome::Unsat(_)) => {
                let messages: BTreeSet<String> = core.iter().map(|i| rules[*i].message.clone()).collect();
                let is_recorded = |o: &Outcome| matches!(o, Outcome::Unsat(m) if messages.iter().eq(m));
                let recorded = problem.distinct_results.iter().chain([&problem.result]).any(is_recorded);
                let core: Vec<Rule> = core.iter().map(|i| rules[*i].clone()).collect();
                assert!(recorded || solve(&core, problem.variables.len()).is_err(), "{id}: {messages:?}");
                unsat += 1;
            }
            (ours, theirs) => panic!("{id}: {ours:?} instead of {theirs:?}"),
        }
    }
    assert_eq!((installed, unsat, faulty), (1320, 659, 21));
}

/// Do the rules hold when exactly these are chosen?
fn hold(rules: &[&Rule], chosen: u32) -> bool {
    let is = |v: &usize| chosen & (1 << v) != 0;
    rules.iter().all(|rule| match &rule.says {
        Says::Chosen(v) => is(v),
        Says::Never(v) => !is(v),
        Says::OneOf(v, others) => !is(v) || others.iter().any(is),
        Says::NotBoth(a, b) => !(is(a) && is(b)),
        Says::AtMost(n, members) => members.iter().filter(|m| is(m)).count() <= *n,
    })
}

/// Can the rules hold when at least those are chosen? Tries everything.
fn can_hold(rules: &[&Rule], count: usize, at_least: u32) -> bool {
    (0..1_u32 << count).any(|chosen| chosen & at_least == at_least && hold(rules, chosen))
}

/// The choice that comes first in the order of preference, by OLM's own search, which goes back when it has to, with a judge
/// that tries everything.
fn preferred(rules: &[&Rule], count: usize) -> Option<u32> {
    struct Search<'r> {
        rules: &'r [&'r Rule],
        count: usize,
    }
    impl<'r> Search<'r> {
        fn from(&self, mut choices: VecDeque<&'r [usize]>, chosen: u32) -> Option<u32> {
            let Some(candidates) = choices.pop_front() else {
                return can_hold(self.rules, self.count, chosen).then_some(chosen);
            };
            if candidates.iter().any(|c| chosen & (1 << c) != 0) {
                return self.from(choices, chosen);
            }
            candidates.iter().find_map(|c| {
                let chosen = chosen | 1 << c;
                if !can_hold(self.rules, self.count, chosen) {
                    return None;
                }
                let needs = self.rules.iter().filter_map(|r| match &r.says {
                    Says::OneOf(v, others) if v == c => Some(&others[..]),
                    _ => None,
                });
                self.from(choices.iter().copied().chain(needs).collect(), chosen)
            })
        }
    }
    let anchors = rules.iter().filter_map(|r| match &r.says {
        Says::Chosen(v) => Some(std::slice::from_ref(v)),
        _ => None,
    });
    Search { rules, count }.from(anchors.collect(), 0)
}

/// Most variables of a problem made up: all their combinations are tried.
const MOST: usize = 9;

fn some_problem() -> impl Strategy<Value = (usize, Vec<Says>)> {
    (2..=MOST).prop_flat_map(|count| {
        let variable = move || 0..count;
        let says = prop_oneof![
            2 => variable().prop_map(Says::Chosen),
            1 => variable().prop_map(Says::Never),
            6 => (variable(), prop::collection::vec(variable(), 0..4)).prop_map(|(v, others)| Says::OneOf(v, others)),
            2 => (variable(), variable()).prop_map(|(a, b)| Says::NotBoth(a, b)),
            2 => (0..3_usize, prop::collection::btree_set(variable(), 1..5)).prop_map(|(n, m)| Says::AtMost(n, m)),
        ];
        (Just(count), prop::collection::vec(says, 1..14))
    })
}

/// The problem as a line of the recording, for a failing case to be kept.
fn as_recorded(count: usize, rules: &[Rule]) -> Value {
    let name = |v: &usize| format!("v{v}");
    let names = |vs: &mut dyn Iterator<Item = &usize>| vs.map(name).collect::<Vec<_>>();
    let constraints = |v: usize| {
        let of = rules.iter().filter_map(|r| match &r.says {
            Says::Chosen(a) if *a == v => Some(json!({ "type": "mandatory" })),
            Says::Never(a) if *a == v => Some(json!({ "type": "prohibited" })),
            Says::OneOf(a, others) if *a == v => {
                Some(json!({ "type": "dependency", "ids": names(&mut others.iter()) }))
            }
            Says::NotBoth(a, b) if *a == v => Some(json!({ "type": "conflict", "id": name(b) })),
            Says::AtMost(n, members) if members.first() == Some(&v) => {
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
    fn is_judged_by_one_that_tries_everything((count, says) in some_problem()) {
        let rules: Vec<Rule> =
            says.into_iter().enumerate().map(|(i, says)| Rule { says, message: format!("rule {i:02}"), weight: 0 }).collect();
        let all: Vec<&Rule> = rules.iter().collect();
        let scenario = as_recorded(count, &rules).to_string();
        let answer = solve(&rules, count);
        prop_assert_eq!(&answer, &solve(&rules, count), "again: {}", scenario);
        match answer {
            Ok(chosen) => {
                let chosen = chosen.iter().fold(0, |all, c| all | 1 << c);
                prop_assert!(hold(&all, chosen), "the choice breaks rules: {}", scenario);
                prop_assert_eq!(Some(chosen), preferred(&all, count), "not the preferred choice: {}", scenario);
            }
            Err(core) => {
                prop_assert!(!can_hold(&all, count, 0), "there is a choice: {}", scenario);
                let core: Vec<&Rule> = core.iter().map(|i| &rules[*i]).collect();
                prop_assert!(!can_hold(&core, count, 0), "the core can hold: {}", scenario);
                for at in 0..core.len() {
                    let without: Vec<&Rule> = core.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, r)| *r).collect();
                    prop_assert!(can_hold(&without, count, 0), "the core is not minimal: {}", scenario);
                }
                // The contradiction told does not depend on the order of the rules.
                let mut reversed = rules.clone();
                reversed.reverse();
                let messages = |rules: &[Rule]| -> Option<BTreeSet<String>> {
                    Some(solve(rules, count).err()?.iter().map(|i| rules[*i].message.clone()).collect())
                };
                prop_assert_eq!(messages(&rules), messages(&reversed), "depends on the order: {}", scenario);
            }
        }
    }
}
