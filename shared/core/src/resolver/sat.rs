//! The engine that answers whether clauses can hold together: our own trait, and batsat behind it.
//!
//! Only this file knows batsat. Another engine needs nothing but to solve under assumptions.

use batsat::{BasicSolver, Lit, SolverInterface, Var, lbool};

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
    fn solve(&mut self, assumptions: &[Literal]) -> bool;

    /// Did the variable hold the last time that [`Sat::solve`] said yes?
    fn held(&self, variable: Variable) -> bool;
}

/// batsat, a pure CDCL solver. It draws no random numbers: the same calls give the same answers.
#[derive(Default)]
pub(super) struct Batsat {
    solver: BasicSolver,
    variables: Vec<Var>,
    model: Vec<bool>,
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

    fn solve(&mut self, assumptions: &[Literal]) -> bool {
        let assumptions: Vec<Lit> = assumptions.iter().map(|l| self.literal(l)).collect();
        let can = self.solver.solve_limited(&assumptions) == lbool::TRUE;
        if can {
            self.model = self.variables.iter().map(|v| self.solver.value_var(*v) == lbool::TRUE).collect();
        }
        can
    }

    fn held(&self, variable: Variable) -> bool {
        self.model.get(variable).copied().unwrap_or_default()
    }
}
