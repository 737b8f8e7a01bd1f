//! A search for the variables to choose, in the order of preference that the rules give (reference/catalog-operator.md §3.7).
//!
//! Choices are made first come first served; each tries its candidates from left to right and goes back to the choice before
//! when none will do. Nothing is chosen that no rule asks for.

use std::collections::BTreeSet;

use super::Failure;

/// How many candidates are tried before the search is given up: far more than any real catalog needs, and a bound for
/// hostile ones.
const PATIENCE: usize = 2_000_000;

/// Something that must hold, and how to say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) says: Says,
    pub(super) message: String,
}

/// What must hold of variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// It is chosen.
    Chosen(usize),
    /// It is not chosen.
    Never(usize),
    /// When the first is chosen, so is one of the others; earlier ones are preferred.
    OneOf(usize, Vec<usize>),
    /// Not both are chosen.
    NotBoth(usize, usize),
    /// At most one of them is chosen.
    AtMostOne(BTreeSet<usize>),
}

/// The variables to choose among `count`, in the order in which they were chosen.
pub(super) fn solve(rules: &[Rule], count: usize) -> Result<Vec<usize>, Failure> {
    let mut patience = PATIENCE;
    let all: Vec<&Rule> = rules.iter().collect();
    if let Some(chosen) = search(&all, count, &mut patience)? {
        return Ok(chosen);
    }
    let mut cores = Vec::new();
    for order in orders(rules) {
        let mut core = all.clone();
        for at in order {
            let without: Vec<&Rule> =
                core.iter().filter(|r| !std::ptr::eq(**r, &raw const rules[at])).copied().collect();
            // Out of patience, the core stays larger than it need be.
            if let Ok(None) = search(&without, count, &mut patience) {
                core = without;
            }
        }
        let mut messages: Vec<String> = core.iter().map(|r| r.message.clone()).collect();
        messages.sort();
        messages.dedup();
        cores.push(messages);
    }
    cores.sort_by_key(Vec::len);
    Err(Failure::Unsatisfiable(cores.into_iter().next().unwrap_or_default()))
}

/// Orders in which rules are left out to see whether the contradiction remains: what is left out first is not told if it can be
/// helped, and packages are told rather than APIs. Another order may find a shorter explanation.
fn orders(rules: &[Rule]) -> [Vec<usize>; 2] {
    let tells_of_apis = |rule: &Rule| match rule.says {
        Says::AtMostOne(_) => rule.message.contains(" provide "),
        Says::OneOf(..) => rule.message.contains(" providing an API with "),
        _ => false,
    };
    let mut ascending: Vec<usize> = (0..rules.len()).collect();
    ascending.sort_by_key(|i| (!tells_of_apis(&rules[*i]), &rules[*i].message));
    let apis = rules.iter().filter(|r| tells_of_apis(r)).count();
    let mut descending = ascending.clone();
    descending[apis..].reverse();
    [descending, ascending]
}

fn search(rules: &[&Rule], count: usize, patience: &mut usize) -> Result<Option<Vec<usize>>, Failure> {
    let mut search = Search {
        needs: vec![Vec::new(); count],
        excludes: vec![BTreeSet::new(); count],
        never: vec![false; count],
        chosen: vec![false; count],
        order: Vec::new(),
        choices: Vec::new(),
        patience,
    };
    for rule in rules {
        match &rule.says {
            Says::Chosen(variable) => search.choices.push(vec![*variable]),
            Says::Never(variable) => search.never[*variable] = true,
            Says::OneOf(variable, candidates) => search.needs[*variable].push(candidates),
            Says::NotBoth(a, b) => {
                search.excludes[*a].insert(*b);
                search.excludes[*b].insert(*a);
            }
            Says::AtMostOne(members) => {
                for member in members {
                    search.excludes[*member].extend(members.iter().filter(|m| *m != member));
                }
            }
        }
    }
    Ok(search.from(0)?.then_some(search.order))
}

struct Search<'r, 'p> {
    needs: Vec<Vec<&'r Vec<usize>>>,
    excludes: Vec<BTreeSet<usize>>,
    never: Vec<bool>,
    chosen: Vec<bool>,
    order: Vec<usize>,
    choices: Vec<Vec<usize>>,
    patience: &'p mut usize,
}

impl Search<'_, '_> {
    /// Makes the choices from that one on. `false`: it cannot be done.
    fn from(&mut self, at: usize) -> Result<bool, Failure> {
        let Some(candidates) = self.choices.get(at).cloned() else { return Ok(true) };
        if candidates.iter().any(|c| self.chosen[*c]) {
            return self.from(at + 1);
        }
        for candidate in candidates {
            if self.never[candidate] || self.excludes[candidate].iter().any(|other| self.chosen[*other]) {
                continue;
            }
            *self.patience = self
                .patience
                .checked_sub(1)
                .ok_or_else(|| Failure::Error(format!("no resolution was found after {PATIENCE} attempts")))?;
            let known = self.choices.len();
            self.chosen[candidate] = true;
            self.order.push(candidate);
            for needed in &self.needs[candidate] {
                self.choices.push((*needed).clone());
            }
            if self.from(at + 1)? {
                return Ok(true);
            }
            self.choices.truncate(known);
            self.order.pop();
            self.chosen[candidate] = false;
        }
        Ok(false)
    }
}
