//! Choices of OLM's search that are not "the first candidate with which all rules are satisfiable". Each was found by
//! comparing 300,000 generated problems with OLM's own solver (v0.46, gini v1.0.4), and minimized; the answers are OLM's.

use crate::resolver::rule::{Rule, Says};
use crate::resolver::search;
use crate::resolver::solve::{Unsolved, solve};

fn rules(says: &[Says]) -> Vec<Rule> {
    let rule = |(i, says): (usize, &Says)| Rule { says: says.clone(), message: format!("rule {i:02}"), weight: 0 };
    says.iter().enumerate().map(rule).collect()
}

fn chosen(says: &[Says], count: usize) -> Vec<usize> {
    let mut chosen = solve(&rules(says), count).unwrap();
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
    let says = [
        Says::Chosen(S),
        Says::OneOf(S, vec![A, B]),
        Says::Chosen(T),
        Says::OneOf(T, vec![E, F]),
        Says::OneOf(A, vec![C, D]),
        Says::OneOf(C, vec![D]),
        Says::NotBoth(E, D),
        Says::AtMost(1, vec![D, F]),
    ];
    assert_eq!(chosen(&says, 8), [S, T, B, F]);
}

/// S requires A, which requires F or G; T requires B or C, and B leads to a contradiction in two ways. Both are tried below
/// F before B is abandoned. Then A's choice continues after F, although F was not involved.
#[test]
fn a_choice_continues_after_its_last_candidate_when_an_earlier_one_changes() {
    let says = [
        Says::Chosen(S),
        Says::OneOf(S, vec![A]),
        Says::Chosen(T),
        Says::OneOf(T, vec![B, C]),
        Says::OneOf(A, vec![F, G]),
        Says::OneOf(B, vec![D, E]),
        Says::OneOf(D, vec![E]),
        Says::OneOf(E, vec![H]),
        Says::NotBoth(E, I),
        Says::OneOf(H, vec![I]),
    ];
    assert_eq!(chosen(&says, 11), [S, T, A, C, G]);
}

/// A network and a chain of several hundred variables are solved exactly.
#[test]
fn large_problems_are_answered_exactly() {
    let (members, end) = (300, 900);
    let last = members - 1;
    let mut says = vec![Says::Chosen(0), Says::AtMost(1, (1..=members).collect()), Says::Never(members)];
    says.push(Says::OneOf(0, (1..=members).rev().collect()));
    says.push(Says::OneOf(last, vec![members + 1]));
    says.extend((members + 1..end).map(|v| Says::OneOf(v, vec![v + 1])));
    says.push(Says::NotBoth(end, last));
    assert_eq!(search::choose(&rules(&says), end + 1), Ok(Some(vec![0, last - 1])));
}

/// A pigeonhole problem, for which OLM's engine takes hours. This engine gives up, and the solver still finds a choice.
#[test]
fn problems_that_take_too_long_are_given_up() {
    const HOLES: usize = 9;
    let pigeon = |p: usize, h: usize| 2 + p * HOLES + h;
    let count = 2 + (HOLES + 1) * HOLES;
    let mut says = vec![Says::Chosen(0), Says::OneOf(0, vec![1, count])];
    for p in 0..=HOLES {
        says.push(Says::OneOf(1, (0..HOLES).map(|h| pigeon(p, h)).collect()));
    }
    for h in 0..HOLES {
        for p in 0..=HOLES {
            says.extend((0..p).map(|other| Says::NotBoth(pigeon(p, h), pigeon(other, h))));
        }
    }
    assert!(search::choose(&rules(&says), count + 1).is_err());
}

/// A larger pigeonhole problem without another choice ends with an error.
#[test]
fn problems_that_are_too_hard_are_an_error() {
    const HOLES: usize = 15;
    let pigeon = |p: usize, h: usize| 1 + p * HOLES + h;
    let count = 1 + (HOLES + 1) * HOLES;
    let mut says = vec![Says::Chosen(0)];
    says.extend((0..=HOLES).map(|p| Says::OneOf(0, (0..HOLES).map(|h| pigeon(p, h)).collect())));
    for h in 0..HOLES {
        says.push(Says::AtMost(1, (0..=HOLES).map(|p| pigeon(p, h)).collect()));
    }
    assert_eq!(solve(&rules(&says), count), Err(Unsolved::GaveUp));
}
