//! Choices of OLM's search that are not "the first candidate with which all rules are satisfiable". Each was found by
//! comparing 300,000 generated problems with OLM's own solver (v0.46, gini v1.0.4), and minimized; the answers are OLM's.

use crate::resolver::rule::{Formula, Rule};
use crate::resolver::search;
use crate::resolver::solve::{Unsolved, solve};

fn rules(formulas: &[Formula]) -> Vec<Rule> {
    let rule =
        |(i, formula): (usize, &Formula)| Rule { formula: formula.clone(), message: format!("rule {i:02}"), weight: 0 };
    formulas.iter().enumerate().map(rule).collect()
}

fn chosen(formulas: &[Formula], count: usize) -> Vec<usize> {
    let mut chosen = solve(&rules(formulas), count).unwrap();
    chosen.sort_unstable();
    chosen
}

const S: usize = 0;
const T: usize = 1;
const A: usize = 2;
const B: usize = 3;
const C: usize = 4;
const D: usize = 5;
const E: usize = 6;
const F: usize = 7;
const G: usize = 8;
const H: usize = 9;
const I: usize = 10;

/// S requires A or B, and T requires E or F. A leads to D, and D excludes E and F: when E is tried, all of A's scope is
/// closed, before F was tried. T's choice continues with F under B, although E would be possible as well.
#[test]
fn a_candidate_that_failed_under_another_choice_is_not_tried_again() {
    let formulas = [
        Formula::Chosen(S),
        Formula::OneOf(S, vec![A, B]),
        Formula::Chosen(T),
        Formula::OneOf(T, vec![E, F]),
        Formula::OneOf(A, vec![C, D]),
        Formula::OneOf(C, vec![D]),
        Formula::NotBoth(E, D),
        Formula::AtMost(1, vec![D, F]),
    ];
    assert_eq!(chosen(&formulas, 8), [S, T, B, F]);
}

/// S requires A, which requires F or G; T requires B or C, and B leads to a contradiction in two ways. Both are tried below
/// F before B is abandoned. Then A's choice continues after F, although F was not involved.
#[test]
fn a_choice_continues_after_its_last_candidate_when_an_earlier_one_changes() {
    let formulas = [
        Formula::Chosen(S),
        Formula::OneOf(S, vec![A]),
        Formula::Chosen(T),
        Formula::OneOf(T, vec![B, C]),
        Formula::OneOf(A, vec![F, G]),
        Formula::OneOf(B, vec![D, E]),
        Formula::OneOf(D, vec![E]),
        Formula::OneOf(E, vec![H]),
        Formula::NotBoth(E, I),
        Formula::OneOf(H, vec![I]),
    ];
    assert_eq!(chosen(&formulas, 11), [S, T, A, C, G]);
}

/// A network and a chain of several hundred variables are solved exactly.
#[test]
fn large_problems_are_answered_exactly() {
    let (members, end) = (300, 900);
    let last = members - 1;
    let mut formulas = vec![Formula::Chosen(0), Formula::AtMost(1, (1..=members).collect()), Formula::Never(members)];
    formulas.push(Formula::OneOf(0, (1..=members).rev().collect()));
    formulas.push(Formula::OneOf(last, vec![members + 1]));
    formulas.extend((members + 1..end).map(|v| Formula::OneOf(v, vec![v + 1])));
    formulas.push(Formula::NotBoth(end, last));
    assert_eq!(search::choose(&rules(&formulas), end + 1), Ok(Some(vec![0, last - 1])));
}

/// A pigeonhole problem, for which OLM's engine takes hours. This engine gives up, and the solver still finds a choice.
#[test]
fn problems_that_take_too_long_are_given_up() {
    const HOLES: usize = 9;
    let pigeon = |p: usize, h: usize| 2 + p * HOLES + h;
    let count = 2 + (HOLES + 1) * HOLES;
    let mut formulas = vec![Formula::Chosen(0), Formula::OneOf(0, vec![1, count])];
    for p in 0..=HOLES {
        formulas.push(Formula::OneOf(1, (0..HOLES).map(|h| pigeon(p, h)).collect()));
    }
    for h in 0..HOLES {
        for p in 0..=HOLES {
            formulas.extend((0..p).map(|other| Formula::NotBoth(pigeon(p, h), pigeon(other, h))));
        }
    }
    assert!(search::choose(&rules(&formulas), count + 1).is_err());
}

/// A larger pigeonhole problem without another choice ends with an error.
#[test]
fn problems_that_are_too_hard_are_an_error() {
    const HOLES: usize = 15;
    let pigeon = |p: usize, h: usize| 1 + p * HOLES + h;
    let count = 1 + (HOLES + 1) * HOLES;
    let mut formulas = vec![Formula::Chosen(0)];
    formulas.extend((0..=HOLES).map(|p| Formula::OneOf(0, (0..HOLES).map(|h| pigeon(p, h)).collect())));
    for h in 0..HOLES {
        formulas.push(Formula::AtMost(1, (0..=HOLES).map(|p| pigeon(p, h)).collect()));
    }
    assert_eq!(solve(&rules(&formulas), count), Err(Unsolved::GaveUp));
}
