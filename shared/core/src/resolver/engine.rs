//! A SAT engine that propagates, learns from conflicts and works in scopes, like that of OLM (gini v1.0.4).
//!
//! ```text
//!   assume, test    opens a scope; reports whether propagation alone finds a conflict        -> Answer
//!   untest          closes it; learns from the conflict, and reports whether the scope below still holds
//!   assume, solve   searches for values of all variables
//! ```
//!
//! [`super::sat`] decides whether rules are satisfiable. This engine is used where it matters *how early* a conflict is
//! noticed, because OLM's search skips candidates depending on that. So it propagates in the order of OLM's engine, learns
//! the same clauses, and forgets the same clauses: a learned unit clause does not survive the scope in which it was
//! learned.
//!
//! *Guarantee.* Memory and time are bounded ([`CONFLICTS`], [`ASSIGNMENTS`]): beyond the limits every answer is [`GaveUp`].
//! *Caveat.* OLM's engine restarts and forgets clauses only after more conflicts.

use super::branching::BranchingHeuristic;
use super::logic_circuit::{Literal, LogicCircuit, TRUE};

/// Maximum number of conflicts.
const CONFLICTS: usize = 1500;
/// Maximum number of assignments in total.
const ASSIGNMENTS: usize = 100_000_000;
/// Maximum depth at which reasons are followed recursively.
const DEPTH: usize = 5000;
/// Initial capacity for variables, which is doubled when exceeded. The order of guesses depends on it.
const ROOM: usize = 129;

/// The state of the rules and assumptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// All variables have values that satisfy everything.
    Holds,
    /// Not decided yet.
    Unknown,
    /// Unsatisfiable.
    Conflict,
}

/// The problem exceeds the limits of an exact answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GaveUp;

/// Index of a clause's first literal; a 0 terminates the clause.
type Clause = usize;
/// No clause: the reason of assumptions and guesses.
const NONE: Clause = 0;

/// A clause that may be false when a literal is false, and another one of its literals.
#[derive(Clone, Copy, Debug)]
struct Watch {
    clause: Clause,
    other: Literal,
    is_pair: bool,
}

/// The engine.
#[derive(Debug)]
pub(super) struct Engine {
    clauses: Vec<Literal>,
    watches: Vec<Vec<Watch>>,
    /// By literal: 1 true, -1 false, 0 unassigned.
    values: Vec<i8>,
    /// By variable: the clause that implied its value.
    reasons: Vec<Clause>,
    /// By variable: the decision level of its value; `None` when unassigned.
    levels: Vec<Option<usize>>,
    branching: BranchingHeuristic,
    room: usize,
    last: usize,
    /// By literal: number of clauses that contain it, weighted; short ones count more.
    asked: Vec<u64>,
    preferred_for: usize,
    /// Assigned literals, in order.
    trail: Vec<Literal>,
    /// Number of propagated literals of the trail.
    head: usize,
    level: usize,
    /// The levels below the open scopes.
    scopes: Vec<usize>,
    /// The level of the innermost scope.
    scope_end: usize,
    assumed: Vec<Literal>,
    assumed_level: usize,
    conflict: Clause,
    conflicts: usize,
    assignments: usize,
    seen: Vec<bool>,
    level_seen: Vec<bool>,
    redundant: Vec<Redundant>,
    visited: Vec<usize>,
    gave_up: bool,
}

/// Whether a literal of a learned clause is implied by the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Redundant {
    Open,
    Yes,
    No,
}

fn variable(literal: Literal) -> usize {
    literal as usize / 2
}

fn is_positive(literal: Literal) -> bool {
    literal & 1 == 0
}

impl Engine {
    /// Creates an engine with the gates of a circuit.
    pub(super) fn new(circuit: &LogicCircuit) -> Self {
        let mut engine = Self {
            clauses: vec![0],
            watches: vec![Vec::new(); 2 * ROOM],
            values: vec![0; 2 * ROOM],
            reasons: vec![NONE; ROOM],
            levels: vec![Some(0); ROOM],
            branching: BranchingHeuristic::default(),
            room: ROOM,
            last: 0,
            asked: vec![0; 2 * ROOM],
            preferred_for: 0,
            trail: Vec::new(),
            head: 0,
            level: 0,
            scopes: Vec::new(),
            scope_end: 0,
            assumed: Vec::new(),
            assumed_level: 0,
            conflict: NONE,
            conflicts: 0,
            assignments: 0,
            seen: vec![false; ROOM],
            level_seen: vec![false; ROOM],
            redundant: vec![Redundant::Open; ROOM],
            visited: Vec::new(),
            gave_up: false,
        };
        engine.state(&[TRUE]);
        for (gate, [a, b]) in &circuit.gates {
            engine.state(&[gate ^ 1, *a]);
            engine.state(&[gate ^ 1, *b]);
            engine.state(&[*gate, a ^ 1, b ^ 1]);
        }
        engine
    }

    /// Assumes a literal in the next test or search.
    pub(super) fn assume(&mut self, literal: Literal) {
        self.make_room(literal);
        self.assumed.push(literal);
    }

    /// Opens a scope with the assumptions, and propagates.
    pub(super) fn test(&mut self) -> Result<Answer, GaveUp> {
        if !self.clean_up()? {
            return Err(GaveUp);
        }
        self.scopes.push(self.level);
        if !self.make_assumptions()? {
            return Ok(Answer::Conflict);
        }
        self.scope_end = self.level;
        let is_open = self.branching.has(|v| self.values[2 * v] == 0);
        Ok(if is_open { Answer::Unknown } else { Answer::Holds })
    }

    /// Closes the innermost scope. What was learned may contradict the scope below.
    pub(super) fn untest(&mut self) -> Result<Answer, GaveUp> {
        self.scope_end = self.scopes.pop().ok_or(GaveUp)?;
        if !self.clean_up()? {
            return Ok(Answer::Conflict);
        }
        self.conflict = self.propagate()?;
        Ok(if self.conflict == NONE { Answer::Unknown } else { Answer::Conflict })
    }

    /// Searches for a solution within the innermost scope.
    pub(super) fn solve(&mut self) -> Result<Answer, GaveUp> {
        let found = self.search();
        self.assumed_level = 0;
        self.assumed.clear();
        Ok(if found? { Answer::Holds } else { Answer::Conflict })
    }

    /// Returns whether the literal is true in the current state.
    pub(super) fn is_true(&self, literal: Literal) -> bool {
        self.values.get(literal as usize) == Some(&1)
    }

    fn search(&mut self) -> Result<bool, GaveUp> {
        if !self.clean_up()? || !self.make_assumptions()? {
            return Ok(false);
        }
        self.prefer();
        self.branching.begin();
        let base = self.assumed_level;
        loop {
            let conflict = self.propagate()?;
            if conflict != NONE {
                if self.level <= base {
                    self.conflict = conflict;
                    return Ok(false);
                }
                let (clause, unit, level) = self.learn(conflict)?;
                self.back(level.max(base));
                self.assign(unit, clause);
                self.branching.decay();
                continue;
            }
            let Some((guess, value)) = self.branching.pop(|v| self.values[2 * v] == 0) else { return Ok(true) };
            self.assign(positive(guess) ^ Literal::from(!value), NONE);
        }
    }

    /// Sets the preferred value of each variable: the one in more clauses.
    fn prefer(&mut self) {
        if self.preferred_for != self.last {
            for v in 1..=self.last {
                self.branching.prefer(v, self.asked[2 * v] > self.asked[2 * v + 1]);
            }
            self.preferred_for = self.last;
        }
    }

    /// Adds a clause of one to three distinct literals.
    fn state(&mut self, literals: &[Literal]) {
        for literal in literals {
            self.make_room(*literal);
            self.asked[*literal as usize] += 1 << (16 - literals.len());
        }
        let clause = self.keep(literals);
        if let [only] = literals {
            self.assign(*only, clause);
        }
    }

    fn keep(&mut self, literals: &[Literal]) -> Clause {
        let clause = self.clauses.len();
        self.clauses.extend(literals);
        self.clauses.push(0);
        if let [first, second, ..] = literals {
            let is_pair = literals.len() == 2;
            self.watches[*first as usize].push(Watch { clause, other: *second, is_pair });
            self.watches[*second as usize].push(Watch { clause, other: *first, is_pair });
        }
        clause
    }

    fn make_room(&mut self, literal: Literal) {
        let variable = variable(literal);
        if variable >= self.room {
            while self.room <= variable {
                self.room *= 2;
            }
            self.branching.grow(self.room);
            let room = self.room + 1;
            self.watches.resize_with(2 * room, Vec::new);
            self.values.resize(2 * room, 0);
            self.asked.resize(2 * room, 0);
            self.reasons.resize(room, NONE);
            self.levels.resize(room, Some(0));
            self.seen.resize(room, false);
            self.level_seen.resize(room, false);
            self.redundant.resize(room, Redundant::Open);
        }
        for v in self.last + 1..=variable {
            self.branching.push(v, true);
        }
        self.last = self.last.max(variable);
    }

    fn assign(&mut self, literal: Literal, reason: Clause) {
        self.trail.push(literal);
        self.assignments += 1;
        let v = variable(literal);
        self.reasons[v] = reason;
        if reason == NONE {
            self.level += 1;
        }
        self.levels[v] = Some(self.level);
        self.values[literal as usize] = 1;
        self.values[literal as usize ^ 1] = -1;
    }

    /// Undoes all assignments above a level.
    fn back(&mut self, level: usize) {
        if self.level <= level {
            return;
        }
        while let Some(literal) = self.trail.last().copied() {
            let v = variable(literal);
            if self.levels[v] == Some(level) {
                break;
            }
            self.trail.pop();
            self.values[literal as usize] = 0;
            self.values[literal as usize ^ 1] = 0;
            self.reasons[v] = NONE;
            self.levels[v] = None;
            self.branching.push(v, is_positive(literal));
        }
        self.head = self.trail.len();
        self.level = if self.trail.is_empty() { 0 } else { level };
    }

    /// Makes the assumptions in order. Returns false if they contradict the clauses.
    fn make_assumptions(&mut self) -> Result<bool, GaveUp> {
        self.assumed_level = self.level;
        let assumed = std::mem::take(&mut self.assumed);
        self.conflict = self.propagate()?;
        for literal in assumed {
            if self.conflict != NONE {
                break;
            }
            match self.values[literal as usize] {
                0 => {
                    self.assumed_level += 1;
                    self.assign(literal, NONE);
                    self.conflict = self.propagate()?;
                }
                1 => {}
                // Nothing is learned from this conflict.
                _ => return Ok(false),
            }
        }
        Ok(self.conflict == NONE)
    }

    /// Backtracks to the innermost scope, and learns from the last conflict. Returns false if that contradicts the scope.
    fn clean_up(&mut self) -> Result<bool, GaveUp> {
        while self.conflict != NONE {
            let (clause, unit, level) = self.learn(self.conflict)?;
            if level < self.scope_end {
                self.back(self.scope_end);
                if self.levels[variable(unit)].is_some() {
                    self.conflict = clause;
                    return Ok(false);
                }
            } else {
                self.back(level);
            }
            self.assign(unit, clause);
            self.conflict = self.propagate()?;
        }
        self.back(self.scope_end);
        Ok(true)
    }

    /// Propagates. Returns a clause that became false, or `NONE`.
    fn propagate(&mut self) -> Result<Clause, GaveUp> {
        if self.assignments > ASSIGNMENTS {
            return Err(GaveUp);
        }
        while let Some(literal) = self.trail.get(self.head).copied() {
            self.head += 1;
            let is_false = literal ^ 1;
            let mut watches = std::mem::take(&mut self.watches[is_false as usize]);
            let mut conflict = NONE;
            watches.retain(|watch| conflict != NONE || self.visit(is_false, *watch, &mut conflict));
            self.watches[is_false as usize] = watches;
            if conflict != NONE {
                self.head = self.trail.len();
                return Ok(conflict);
            }
        }
        Ok(NONE)
    }

    /// Updates a watched clause after a literal became false. Returns whether the literal is still watched.
    fn visit(&mut self, is_false: Literal, watch: Watch, conflict: &mut Clause) -> bool {
        let Watch { clause, other, is_pair } = watch;
        let mut value = self.values[other as usize];
        if value == 1 {
            return true;
        }
        let other = if is_pair { other } else { self.clauses[clause] ^ self.clauses[clause + 1] ^ is_false };
        if !is_pair {
            value = self.values[other as usize];
            if value == 1 {
                return true;
            }
            let mut at = clause + 2;
            while self.clauses[at] != 0 {
                let next = self.clauses[at];
                if self.values[next as usize] != -1 {
                    let place = if self.clauses[clause] == is_false { clause } else { clause + 1 };
                    self.clauses.swap(place, at);
                    self.watches[next as usize].push(Watch { clause, other: is_false, is_pair });
                    return false;
                }
                at += 1;
            }
        }
        if is_pair || value == 0 {
            // The implied literal is the first of its clause.
            self.clauses[clause] = other;
            self.clauses[clause + 1] = is_false;
        }
        if value == 0 {
            self.assign(other, clause);
        } else {
            *conflict = clause;
        }
        true
    }

    /// Learns a clause from a false one. Returns the clause, its first literal, and the highest level of the others.
    fn learn(&mut self, conflict: Clause) -> Result<(Clause, Literal, usize), GaveUp> {
        self.conflicts += 1;
        if self.conflicts > CONFLICTS {
            return Err(GaveUp);
        }
        // The first literal is the unique implication point.
        let mut learned: Vec<Literal> = vec![0];
        let mut of_level: Vec<Literal> = Vec::new();
        let (mut target, mut open) = (0, 0_usize);
        let mut clause = Some(conflict);
        for at in (0..self.trail.len()).rev() {
            if let Some(mut part) = clause.take() {
                while self.clauses[part] != 0 {
                    let literal = self.clauses[part];
                    let v = variable(literal);
                    part += 1;
                    if std::mem::replace(&mut self.seen[v], true) {
                        continue;
                    }
                    match self.levels[v] {
                        Some(0) => {}
                        Some(level) if level != self.level => {
                            learned.push(literal);
                            target = target.max(level);
                            self.level_seen[level] = true;
                        }
                        _ => {
                            of_level.push(literal);
                            self.branching.bump(v);
                            open += 1;
                        }
                    }
                }
            }
            let literal = self.trail[at];
            let v = variable(literal);
            if !self.seen[v] {
                continue;
            }
            open = open.checked_sub(1).ok_or(GaveUp)?;
            if open == 0 {
                learned[0] = literal ^ 1;
                self.branching.bump(v);
                break;
            }
            if self.reasons[v] == NONE {
                return Err(GaveUp);
            }
            clause = Some(self.reasons[v] + 1);
        }
        if learned[0] == 0 {
            return Err(GaveUp);
        }
        for literal in learned.iter().chain(&of_level) {
            self.seen[variable(*literal)] = false;
        }
        self.leave_out_redundant(&mut learned);
        if self.gave_up {
            return Err(GaveUp);
        }
        let unit = learned[0];
        Ok((self.keep(&learned), unit, target))
    }

    /// Removes implied literals from a learned clause.
    fn leave_out_redundant(&mut self, learned: &mut Vec<Literal>) {
        for literal in &learned[1..] {
            self.redundant[variable(*literal)] = Redundant::Yes;
        }
        let first = learned[0];
        learned.retain(|literal| {
            let v = variable(*literal);
            if *literal == first {
                return true;
            }
            self.redundant[v] = Redundant::Open;
            let follows = self.follows(v, 0);
            self.redundant[v] = Redundant::Yes;
            if !follows {
                self.branching.bump(v);
            }
            !follows
        });
        for v in std::mem::take(&mut self.visited) {
            self.redundant[v] = Redundant::Open;
        }
        for literal in learned.iter() {
            if let Some(level) = self.levels[variable(*literal)] {
                self.level_seen[level] = false;
            }
        }
    }

    fn follows(&mut self, v: usize, depth: usize) -> bool {
        if self.redundant[v] != Redundant::Open {
            return self.redundant[v] == Redundant::Yes;
        }
        self.visited.push(v);
        self.redundant[v] = Redundant::No;
        let is_of_level = self.levels[v].is_some_and(|level| self.level_seen[level]);
        if !is_of_level || self.reasons[v] == NONE {
            return false;
        }
        if depth == DEPTH {
            self.gave_up = true;
            return false;
        }
        self.redundant[v] = Redundant::Open;
        let mut at = self.reasons[v] + 1;
        while self.clauses[at] != 0 {
            let reason = variable(self.clauses[at]);
            if !self.follows(reason, depth + 1) {
                self.redundant[v] = Redundant::No;
                return false;
            }
            at += 1;
        }
        self.redundant[v] = Redundant::Yes;
        true
    }
}

/// Returns the positive literal of a variable.
fn positive(variable: usize) -> Literal {
    Literal::try_from(2 * variable).unwrap_or_default()
}
