//! Chooses variables in the order of preference that the rules give, or finds the rules that contradict each other
//! (olm-behaviour/subscription.md#solver).
//!
//! Choices are processed in FIFO order: first what must be chosen, then each `OneOf` of what was chosen. When all rules
//! hold with the first candidate of each, that is the answer. Otherwise there is a conflict, and the answer is that of
//! OLM's own search ([`super::search`]), which depends on how early each conflict is noticed. Nothing is chosen that no
//! rule requires.

use std::collections::VecDeque;

use super::engine::GaveUp;
use super::rule::{Formula, Rule};
use super::sat::{Batsat, Literal, Sat, Variable, no, yes};
use super::search;

/// Why nothing is chosen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unsolved {
    /// These rules contradict each other, by number: without any one of them the others are satisfiable.
    Contradiction(Vec<usize>),
    /// The work limit was exceeded.
    GaveUp,
}

impl From<GaveUp> for Unsolved {
    fn from(_: GaveUp) -> Self {
        Self::GaveUp
    }
}

/// Returns the chosen variables among `count`, in the order of choice.
pub(super) fn solve(rules: &[Rule], count: usize) -> Result<Vec<usize>, Unsolved> {
    let first = choose(rules, count, |candidates| candidates.first().copied());
    if search::hold(rules, count, &first) {
        return Ok(first);
    }
    let mut engine = Batsat::default();
    let variables: Vec<Variable> = (0..count).map(|_| engine.variable()).collect();
    for rule in rules {
        state(&mut engine, &variables, &rule.formula, None);
    }
    if !engine.solve(&[])? {
        return Err(Unsolved::Contradiction(contradiction(rules, count)?));
    }
    if let Ok(Some(chosen)) = search::choose(rules, count) {
        return Ok(chosen);
    }
    // Too large for OLM's search. Of each choice the first candidate is taken with which all rules are still satisfiable.
    // One exists: the rules are satisfiable with the previous choices, and these require one of the candidates.
    let mut gave_up = false;
    let chosen = choose(rules, count, |candidates| {
        let is_possible = |c: &usize| {
            engine.held(variables[*c])
                || !gave_up
                    && engine.solve(&[yes(variables[*c])]).unwrap_or_else(|GaveUp| {
                        gave_up = true;
                        false
                    })
        };
        let choice = candidates.iter().copied().find(is_possible)?;
        engine.clause(&[yes(variables[choice])]);
        Some(choice)
    });
    if gave_up { Err(Unsolved::GaveUp) } else { Ok(chosen) }
}

/// Makes all choices with the given function.
fn choose<'r>(rules: &'r [Rule], count: usize, mut by: impl FnMut(&'r [usize]) -> Option<usize>) -> Vec<usize> {
    let mut needs: Vec<Vec<&[usize]>> = vec![Vec::new(); count];
    let mut choices: VecDeque<&[usize]> = VecDeque::new();
    for rule in rules {
        match &rule.formula {
            Formula::Chosen(variable) => choices.push_back(std::slice::from_ref(variable)),
            Formula::OneOf(variable, candidates) => needs[*variable].push(candidates),
            _ => {}
        }
    }
    let (mut chosen, mut order) = (vec![false; count], Vec::new());
    while let Some(candidates) = choices.pop_front() {
        if candidates.iter().any(|c| chosen[*c]) {
            continue;
        }
        if let Some(choice) = by(candidates) {
            chosen[choice] = true;
            order.push(choice);
            choices.extend(&needs[choice]);
        }
    }
    order
}

/// Adds the clauses of a rule; if `unless` holds, the rule need not.
fn state(engine: &mut impl Sat, variables: &[Variable], formula: &Formula, unless: Option<Literal>) {
    let is = |v: &usize| yes(variables[*v]);
    let is_not = |v: &usize| no(variables[*v]);
    let clause = |engine: &mut _, literals: Vec<Literal>| {
        let literals: Vec<Literal> = literals.into_iter().chain(unless).collect();
        Sat::clause(engine, &literals);
    };
    match formula {
        Formula::Chosen(variable) => clause(engine, vec![is(variable)]),
        Formula::Never(variable) => clause(engine, vec![is_not(variable)]),
        Formula::OneOf(variable, others) => {
            clause(engine, [is_not(variable)].into_iter().chain(others.iter().map(is)).collect());
        }
        Formula::NotBoth(a, b) => clause(engine, vec![is_not(a), is_not(b)]),
        Formula::AtMost(most, members) => {
            // `counted[n]`: more than n of the members so far are chosen.
            let mut counted: Vec<Variable> = Vec::new();
            for member in members {
                let mut next = Vec::new();
                for n in 0..(counted.len() + 1).min(*most) {
                    let more = engine.variable();
                    if let Some(before) = counted.get(n) {
                        clause(engine, vec![no(*before), yes(more)]);
                    }
                    let enough = if n == 0 { None } else { Some(no(counted[n - 1])) };
                    clause(engine, [is_not(member), yes(more)].into_iter().chain(enough).collect());
                    next.push(more);
                }
                if counted.len() == *most {
                    let full = counted.last().map(|v| no(*v));
                    clause(engine, [is_not(member)].into_iter().chain(full).collect());
                }
                counted = next;
            }
        }
    }
}

/// Returns a minimal set of rules that contradict each other, by number. It does not depend on the order of the rules,
/// except for rules with equal messages.
fn contradiction(rules: &[Rule], count: usize) -> Result<Vec<usize>, GaveUp> {
    let mut engine = Batsat::default();
    let variables: Vec<Variable> = (0..count).map(|_| engine.variable()).collect();
    let mut holds = Vec::new();
    for rule in rules {
        let rule_holds = engine.variable();
        state(&mut engine, &variables, &rule.formula, Some(no(rule_holds)));
        holds.push(yes(rule_holds));
    }
    let mut ascending: Vec<usize> = (0..rules.len()).collect();
    ascending.sort_by_key(|i| (rules[*i].weight, &rules[*i].message));
    let mut descending = ascending.clone();
    descending.sort_by(|a, b| {
        rules[*a].weight.cmp(&rules[*b].weight).then_with(|| rules[*b].message.cmp(&rules[*a].message))
    });
    // Each order leads to a minimal set. One may be smaller than the other.
    let one = first_contradiction(&mut engine, &holds, ascending)?;
    let other = first_contradiction(&mut engine, &holds, descending)?;
    Ok(if other.len() < one.len() { other } else { one })
}

/// Returns the first contradiction in an order of rules: it ends as early as possible, and so do its parts.
fn first_contradiction(engine: &mut impl Sat, holds: &[Literal], mut order: Vec<usize>) -> Result<Vec<usize>, GaveUp> {
    let mut core: Vec<usize> = Vec::new();
    let mut contradict = |core: &[usize], others: &[usize]| {
        let assumptions: Vec<Literal> = core.iter().chain(others).map(|i| holds[*i]).collect();
        engine.solve(&assumptions).map(|can| !can)
    };
    while !contradict(&core, &[])? {
        // The smallest prefix of the remaining rules that contradicts the core.
        let (mut too_few, mut enough) = (0, order.len());
        while enough - too_few > 1 {
            let middle = too_few.midpoint(enough);
            if contradict(&core, &order[..middle])? {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        order.truncate(enough);
        let Some(last) = order.pop() else { break };
        core.push(last);
    }
    core.sort_unstable();
    Ok(core)
}
