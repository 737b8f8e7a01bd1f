//! Rules as a circuit of "and" gates, the form that OLM's engine uses.
//!
//! The form is relevant: what an engine notices by propagation alone, and what it learns from a conflict, depends on the
//! gates between the variables. A "one of" is a chain of gates in the order of preference, an "at most" a sorting network
//! over its members.

use std::collections::BTreeMap;

use super::rule::Formula;

/// A variable of the circuit, or its negation: twice the number of the variable, plus one for the negation. 0 is no
/// literal.
pub(super) type Literal = u32;

/// The constant true, which is the first variable.
pub(super) const TRUE: Literal = 2;
const FALSE: Literal = TRUE ^ 1;

/// Variables, and gates that combine them.
#[derive(Debug, Default)]
pub(super) struct LogicCircuit {
    /// The gates, in the order of creation: a gate is true when both of its inputs are.
    pub(super) gates: Vec<(Literal, [Literal; 2])>,
    by_inputs: BTreeMap<[Literal; 2], Literal>,
    inputs: usize,
}

impl LogicCircuit {
    /// Creates a circuit with that many variables; [`LogicCircuit::input`] returns their literals.
    pub(super) fn with_inputs(inputs: usize) -> Self {
        Self { inputs, ..Self::default() }
    }

    /// Returns the literal of a variable of the problem.
    pub(super) fn input(variable: usize) -> Literal {
        literal(variable + 2)
    }

    /// Returns a literal that is true exactly when the rule holds.
    pub(super) fn rule(&mut self, formula: &Formula) -> Literal {
        match formula {
            Formula::Chosen(variable) => Self::input(*variable),
            Formula::Never(variable) => Self::input(*variable) ^ 1,
            Formula::OneOf(variable, candidates) => {
                candidates.iter().fold(Self::input(*variable) ^ 1, |any, c| self.or(any, Self::input(*c)))
            }
            Formula::NotBoth(a, b) => self.or(Self::input(*a) ^ 1, Self::input(*b) ^ 1),
            Formula::AtMost(most, members) => {
                if *most >= members.len() {
                    return TRUE;
                }
                let mut sorted: Vec<Literal> = members.iter().map(|m| Self::input(*m)).collect();
                sorted.resize(members.len().next_power_of_two(), TRUE);
                let end = sorted.len();
                self.sort(&mut sorted, 0, end);
                // True members are last, before the padding.
                sorted[members.len() - 1 - most] ^ 1
            }
        }
    }

    fn and(&mut self, a: Literal, b: Literal) -> Literal {
        let inputs = [a.min(b), a.max(b)];
        if a == b || inputs[0] == TRUE {
            return inputs[1];
        }
        if a == b ^ 1 || inputs[0] == FALSE {
            return FALSE;
        }
        let next = literal(self.inputs + self.gates.len() + 2);
        let gate = *self.by_inputs.entry(inputs).or_insert(next);
        if gate == next {
            self.gates.push((gate, inputs));
        }
        gate
    }

    fn or(&mut self, a: Literal, b: Literal) -> Literal {
        self.and(a ^ 1, b ^ 1) ^ 1
    }

    /// Sorts a part, false before true, with Batcher's odd-even merge sort.
    fn sort(&mut self, literals: &mut [Literal], from: usize, to: usize) {
        if to - from > 1 {
            let middle = from.midpoint(to);
            self.sort(literals, from, middle);
            self.sort(literals, middle, to);
            self.merge(literals, from, to, 1);
        }
    }

    fn merge(&mut self, literals: &mut [Literal], from: usize, to: usize, step: usize) {
        if to <= from + step {
            return;
        }
        if 2 * step >= to - from {
            self.exchange(literals, from, from + step);
            return;
        }
        self.merge(literals, from, to, 2 * step);
        self.merge(literals, from + step, to, 2 * step);
        for low in (from + step..to - step).step_by(2 * step) {
            self.exchange(literals, low, low + step);
        }
    }

    fn exchange(&mut self, literals: &mut [Literal], low: usize, high: usize) {
        let (a, b) = (literals[low], literals[high]);
        literals[low] = self.and(a, b);
        literals[high] = self.or(a, b);
    }
}

/// Returns the literal of a variable of the circuit. A problem with two billion gates does not fit into memory.
fn literal(variable: usize) -> Literal {
    Literal::try_from(variable * 2).unwrap_or(Literal::MAX ^ 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the value of a literal when those variables are chosen.
    fn value(circuit: &LogicCircuit, wanted: Literal, chosen: u32) -> bool {
        let mut values = vec![false, true];
        values.extend((0..circuit.inputs).map(|v| chosen & (1 << v) != 0));
        let of = |values: &[bool], l: Literal| values[l as usize / 2] ^ (l & 1 == 1);
        for (_, [a, b]) in &circuit.gates {
            let value = of(&values, *a) && of(&values, *b);
            values.push(value);
        }
        of(&values, wanted)
    }

    #[test]
    fn a_rule_is_true_exactly_when_it_holds() {
        const COUNT: usize = 6;
        let mut rules = vec![
            Formula::Chosen(1),
            Formula::Never(2),
            Formula::OneOf(0, vec![3, 1, 5]),
            Formula::OneOf(0, vec![]),
            Formula::OneOf(2, vec![2]),
            Formula::NotBoth(4, 5),
            Formula::NotBoth(3, 3),
        ];
        for size in 0..=COUNT {
            rules.extend((0..=COUNT).map(|most| Formula::AtMost(most, (0..size).rev().collect())));
        }
        let mut circuit = LogicCircuit::with_inputs(COUNT);
        let literals: Vec<Literal> = rules.iter().map(|rule| circuit.rule(rule)).collect();
        for chosen in 0..1 << COUNT {
            let is = |v: &usize| chosen & (1 << v) != 0;
            for (formula, literal) in rules.iter().zip(&literals) {
                assert_eq!(value(&circuit, *literal, chosen), formula.holds(is), "{formula:?} of {chosen:b}");
            }
        }
    }
}
