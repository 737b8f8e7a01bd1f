//! The SAT engine that decides whether clauses are satisfiable: a trait, and its implementation with batsat.
//!
//! Only this file depends on batsat. Another engine only needs to solve under assumptions.
//!
//! *Guarantee.* The total work of an engine is limited, because the authors of catalogs and Subscriptions determine how
//! hard a problem is.

use std::cell::Cell;

use batsat::callbacks::Callbacks;
use batsat::clause::Kind;
use batsat::{Lit, Solver, SolverInterface, Var, lbool};

use super::engine::GaveUp;

/// Maximum number of conflicts. Resolutions of public catalogs need a few hundred at most.
pub(super) const CONFLICTS: u64 = 20_000;
/// Maximum number of decisions. Each question about a catalog takes one per bundle.
const DECISIONS: u64 = 50_000_000;

/// A boolean variable.
pub(super) type Variable = usize;

/// A variable, or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    variable: Variable,
    holds: bool,
}

/// Returns the literal of the variable.
pub(super) fn yes(variable: Variable) -> Literal {
    Literal { variable, holds: true }
}

/// Returns the negated literal of the variable.
pub(super) fn no(variable: Variable) -> Literal {
    Literal { variable, holds: false }
}

/// The interface of an engine.
pub(super) trait Sat {
    /// Creates a variable; they are numbered from 0.
    fn variable(&mut self) -> Variable;

    /// Adds a clause: at least one of the literals holds.
    fn clause(&mut self, literals: &[Literal]);

    /// Returns whether all clauses are satisfiable under these assumptions.
    ///
    /// # Errors
    /// The work limit is exceeded.
    fn solve(&mut self, assumptions: &[Literal]) -> Result<bool, GaveUp>;

    /// Returns the value of the variable in the last solution of [`Sat::solve`].
    fn held(&self, variable: Variable) -> bool;
}

/// batsat, a pure CDCL solver. It is deterministic: the same calls give the same results.
#[derive(Default)]
pub(super) struct Batsat {
    solver: Solver<Budget>,
    variables: Vec<Var>,
    model: Vec<bool>,
}

/// Counts the work, and stops at the limit.
#[derive(Default)]
struct Budget {
    conflicts: u64,
    decisions: Cell<u64>,
}

impl Callbacks for Budget {
    fn on_new_clause(&mut self, _: &[Lit], kind: Kind) {
        self.conflicts += u64::from(kind == Kind::Learnt);
    }

    /// Called before each decision.
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
        // Contradicting clauses are reported by the next `solve`.
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
