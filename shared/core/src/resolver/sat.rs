//! The engine that answers whether clauses can hold together: our own trait, and batsat behind it.
//!
//! Only this file knows batsat. Another engine needs nothing but to solve under assumptions.
//!
//! *Guarantee.* An engine does a limited amount of work in all: who writes catalogs and Subscriptions chooses how hard the question is.

use std::cell::Cell;

use batsat::callbacks::Callbacks;
use batsat::clause::Kind;
use batsat::{Lit, Solver, SolverInterface, Var, lbool};

use super::engine::GaveUp;

/// Most conflicts that are learnt from. Resolutions of public catalogs need a few hundred at most.
pub(super) const CONFLICTS: u64 = 20_000;
/// Most decisions. Every question about a catalog takes as many as it has bundles.
const DECISIONS: u64 = 50_000_000;

/// A variable, which holds or does not.
pub(super) type Variable = usize;

/// A variable, or its opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    variable: Variable,
    holds: bool,
}

/// It holds.
pub(super) fn yes(variable: Variable) -> Literal {
    Literal { variable, holds: true }
}

/// It does not hold.
pub(super) fn no(variable: Variable) -> Literal {
    Literal { variable, holds: false }
}

/// What the search asks of an engine.
pub(super) trait Sat {
    /// A new variable; they are numbered from 0.
    fn variable(&mut self) -> Variable;

    /// From now on one of these holds.
    fn clause(&mut self, literals: &[Literal]);

    /// Can all clauses hold together with these?
    ///
    /// # Errors
    /// It has done all the work that it may do.
    fn solve(&mut self, assumptions: &[Literal]) -> Result<bool, GaveUp>;

    /// Did the variable hold the last time that [`Sat::solve`] said yes?
    fn held(&self, variable: Variable) -> bool;
}

/// batsat, a pure CDCL solver. It draws no random numbers: the same calls give the same answers.
#[derive(Default)]
pub(super) struct Batsat {
    solver: Solver<Budget>,
    variables: Vec<Var>,
    model: Vec<bool>,
}

/// Counts the work, and says when it is enough.
#[derive(Default)]
struct Budget {
    conflicts: u64,
    decisions: Cell<u64>,
}

impl Callbacks for Budget {
    fn on_new_clause(&mut self, _: &[Lit], kind: Kind) {
        self.conflicts += u64::from(kind == Kind::Learnt);
    }

    /// Asked before each decision.
    fn stop(&self) -> bool {
        self.decisions.set(self.decisions.get() + 1);
        self.conflicts > CONFLICTS || self.decisions.get() > DECISIONS
    }
}

impl Batsat {
    fn literal(&self, literal: &Literal) -> Lit {
        Lit::new(self.variables[literal.variable], literal.holds)
    }
}

impl Sat for Batsat {
    fn variable(&mut self) -> Variable {
        self.variables.push(self.solver.new_var(lbool::FALSE, true));
        self.variables.len() - 1
    }

    fn clause(&mut self, literals: &[Literal]) {
        let mut clause = literals.iter().map(|l| self.literal(l)).collect();
        // Clauses that contradict each other are told by the next solve.
        self.solver.add_clause_reuse(&mut clause);
    }

    fn solve(&mut self, assumptions: &[Literal]) -> Result<bool, GaveUp> {
        let assumptions: Vec<Lit> = assumptions.iter().map(|l| self.literal(l)).collect();
        let answer = self.solver.solve_limited(&assumptions);
        if answer == lbool::TRUE {
            self.model = self.variables.iter().map(|v| self.solver.value_var(*v) == lbool::TRUE).collect();
        } else if answer != lbool::FALSE {
            return Err(GaveUp);
        }
        Ok(answer == lbool::TRUE)
    }

    fn held(&self, variable: Variable) -> bool {
        self.model.get(variable).copied().unwrap_or_default()
    }
}
