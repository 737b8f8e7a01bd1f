//! OLM's search for the preferred choice, step by step (pkg/controller/registry/resolver/solver/search.go of OLM v0.46).
//!
//! Choices are processed in FIFO order: first what must be chosen, then each "one of" of what was chosen. The next
//! candidate of a choice is assumed in a scope of its own, and the engine propagates. On a conflict the last scope is
//! closed, and the choice returns to the front of the queue with its next candidate.
//!
//! In three ways this differs from "the first candidate with which all rules are satisfiable":
//! * A candidate is tried once. When an *earlier* choice takes its next candidate, later choices that existed before
//!   continue after the candidates that failed with the former one, although these might succeed now.
//! * Closing a scope learns from its conflict. If that contradicts the scope below, that scope is closed as well, before
//!   the other candidates of the choice were tried. These can be taken later; the one that failed cannot.
//! * A choice without remaining candidates stays open. Whether another choice satisfies it is decided at the end, by the
//!   full search.

use std::collections::VecDeque;

use super::engine::{Answer, Engine, GaveUp};
use super::logic_circuit::{Literal, LogicCircuit};
use super::rule::{Formula, Rule};

/// Maximum number of scopes in total.
const DECISIONS: usize = 200_000;

/// An open choice.
#[derive(Clone, Copy, Debug)]
struct Choice<'r> {
    candidates: &'r [usize],
    /// Index of the next candidate to try.
    next: usize,
}

/// A choice that was made.
#[derive(Clone, Copy, Debug)]
struct Decision<'r> {
    choice: Choice<'r>,
    /// The candidate; `None` when one was already chosen, or none is left.
    taken: Option<usize>,
    /// Number of choices that it added.
    needs: usize,
}

/// Chooses among `count` variables as OLM does, in the order of choice. Returns `None` when OLM finds no choice. The rules
/// must be satisfiable.
pub(super) fn choose(rules: &[Rule], count: usize) -> Result<Option<Vec<usize>>, GaveUp> {
    let mut circuit = LogicCircuit::with_inputs(count);
    let holds: Vec<Literal> = rules.iter().map(|rule| circuit.rule(&rule.formula)).collect();
    let mut engine = Engine::new(&circuit);
    let mut needs: Vec<Vec<&[usize]>> = vec![Vec::new(); count];
    let mut anchors: Vec<&[usize]> = Vec::new();
    let mut is_anchor = vec![false; count];
    for rule in rules {
        match &rule.formula {
            Formula::Chosen(variable) if !std::mem::replace(&mut is_anchor[*variable], true) => {
                anchors.push(std::slice::from_ref(variable));
            }
            Formula::OneOf(variable, candidates) if !candidates.is_empty() => needs[*variable].push(candidates),
            _ => {}
        }
    }
    for literal in holds {
        engine.assume(literal);
    }
    for anchor in anchors.iter().copied().flatten() {
        engine.assume(LogicCircuit::input(*anchor));
    }
    let chosen = match engine.test()? {
        Answer::Conflict => return Ok(None),
        Answer::Holds => Vec::new(),
        Answer::Unknown => {
            let choices = anchors.into_iter().map(|candidates| Choice { candidates, next: 0 }).collect();
            let chosen = vec![false; count];
            let search = Search {
                engine: &mut engine,
                needs: &needs,
                choices,
                decisions: Vec::new(),
                chosen,
                last: Answer::Unknown,
            };
            match search.run()? {
                Some(chosen) => chosen,
                None => return Ok(None),
            }
        }
    };
    // Consequences of the rules alone are chosen as well; everything else is not.
    let mut is_chosen = vec![false; count];
    for variable in &chosen {
        is_chosen[*variable] = true;
    }
    let extras = (0..count).filter(|v| !is_chosen[*v] && engine.is_true(LogicCircuit::input(*v)));
    let chosen: Vec<usize> = chosen.iter().copied().chain(extras).collect();
    Ok(hold(rules, count, &chosen).then_some(chosen))
}

/// Returns whether all rules hold with exactly that choice.
pub(super) fn hold(rules: &[Rule], count: usize, chosen: &[usize]) -> bool {
    let mut is_chosen = vec![false; count];
    for variable in chosen {
        is_chosen[*variable] = true;
    }
    rules.iter().all(|rule| rule.formula.holds(|v| is_chosen[*v]))
}

struct Search<'s, 'r> {
    engine: &'s mut Engine,
    /// The choices that each variable adds.
    needs: &'s [Vec<&'r [usize]>],
    choices: VecDeque<Choice<'r>>,
    decisions: Vec<Decision<'r>>,
    chosen: Vec<bool>,
    last: Answer,
}

impl<'r> Search<'_, 'r> {
    /// Returns what is chosen. The engine is left in the scope in which the search began.
    fn run(mut self) -> Result<Option<Vec<usize>>, GaveUp> {
        let mut opened = 0;
        loop {
            if self.choices.is_empty() && self.last == Answer::Unknown {
                self.last = self.engine.solve()?;
            }
            if self.last == Answer::Conflict {
                if self.decisions.is_empty() {
                    return Ok(None);
                }
                self.take_back()?;
                continue;
            }
            let Some(choice) = self.choices.pop_front() else { break };
            opened += 1;
            if opened > DECISIONS {
                return Err(GaveUp);
            }
            self.make(choice)?;
        }
        let chosen = self.decisions.iter().filter_map(|decision| decision.taken).collect();
        while !self.decisions.is_empty() {
            self.take_back()?;
        }
        Ok(Some(chosen))
    }

    fn make(&mut self, choice: Choice<'r>) -> Result<(), GaveUp> {
        let is_chosen = choice.candidates.iter().any(|c| self.chosen[*c]);
        let taken = choice.candidates.get(choice.next).copied().filter(|_| !is_chosen);
        let needs = taken.map_or(&[][..], |taken| &self.needs[taken]);
        self.decisions.push(Decision { choice, taken, needs: needs.len() });
        self.choices.extend(needs.iter().map(|candidates| Choice { candidates, next: 0 }));
        if let Some(taken) = taken {
            self.chosen[taken] = true;
            self.engine.assume(LogicCircuit::input(taken));
            self.last = self.engine.test()?;
        }
        Ok(())
    }

    fn take_back(&mut self) -> Result<(), GaveUp> {
        let Some(decision) = self.decisions.pop() else { return Ok(()) };
        let mut choice = decision.choice;
        if let Some(taken) = decision.taken {
            self.chosen[taken] = false;
            self.last = self.engine.untest()?;
            choice.next += 1;
        }
        self.choices.truncate(self.choices.len() - decision.needs);
        self.choices.push_front(choice);
        Ok(())
    }
}
