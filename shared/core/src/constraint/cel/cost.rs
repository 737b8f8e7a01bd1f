//! Estimates the cost of a rule before evaluation: it can multiply with every nested loop and double with every `x + x`.

use std::collections::BTreeMap;

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

use super::pattern::{MATCHES, Patterns};
use crate::bundle::property::Property;

/// Maximum cost of an evaluation: about a tenth of a second.
pub(super) const LIMIT: u64 = 5_000_000;

/// Upper bounds of a value.
#[derive(Clone, Copy, Default)]
struct Size {
    /// Length, if it is a list, map or string.
    length: u64,
    /// Length of the longest list, map or string in it.
    inner: u64,
    /// Weight of the heaviest of its parts.
    heaviest: u64,
    /// Total weight.
    weight: u64,
}

impl Size {
    /// Returns the size of a string, or of an empty list, of that length.
    fn new(length: usize) -> Self {
        let length = length as u64;
        Self { length, inner: 1, heaviest: 1, weight: length + 1 }
    }

    /// Adds another value as a part.
    fn with(self, part: Self) -> Self {
        let weight = self.weight.saturating_add(part.weight);
        let inner = self.inner.max(part.length).max(part.inner);
        Self { inner, heaviest: self.heaviest.max(part.weight), weight, ..self }
    }

    /// Returns the size of a part.
    fn part(self) -> Self {
        Self { length: self.inner, weight: self.heaviest, ..self }
    }

    fn from_json(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::new(text.len()),
            Value::Array(list) => list.iter().map(Self::from_json).fold(Self::new(list.len()), Self::with),
            Value::Object(map) => {
                let parts = map.iter().flat_map(|(k, v)| [Self::new(k.len()), Self::from_json(v)]);
                parts.fold(Self::new(map.len()), Self::with)
            }
            _ => Self::new(1),
        }
    }
}

/// Returns an upper bound of the cost of evaluating an expression on the properties of a bundle; saturates.
pub(super) fn total(expression: &IdedExpr, patterns: &Patterns, properties: &[Property]) -> u64 {
    let each = properties.iter().map(|p| Size::new(2).with(Size::new(p.type_.len())).with(Size::from_json(&p.value)));
    let all = each.fold(Size::new(properties.len()), Size::with);
    of_variables(expression, Scope { variables: BTreeMap::from([("properties", all)]), patterns })
}

/// Like [`of`], on the fields of a document.
pub(super) fn of_fields<'e>(
    expression: &'e IdedExpr,
    patterns: &'e Patterns,
    fields: impl Iterator<Item = (&'e str, &'e Value)>,
) -> u64 {
    let variables = fields.map(|(name, value)| (name, Size::from_json(value))).collect();
    of_variables(expression, Scope { variables, patterns })
}

/// The variables in scope of an expression.
struct Scope<'e> {
    variables: BTreeMap<&'e str, Size>,
    patterns: &'e Patterns,
}

fn of_variables<'e>(expression: &'e IdedExpr, mut scope: Scope<'e>) -> u64 {
    // The variables are first converted to values of the evaluator.
    let made = scope.variables.values().fold(0_u64, |all, size| all.saturating_add(size.weight));
    estimate(expression, &mut scope).1.saturating_add(made)
}

/// Estimates the size of the result, and the cost.
fn estimate<'e>(expression: &'e IdedExpr, scope: &mut Scope<'e>) -> (Size, u64) {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => (Size::new(text.inner().len()), 1),
        Expr::Literal(LiteralValue::Bytes(bytes)) => (Size::new(bytes.inner().len()), 1),
        Expr::Literal(_) => (Size::new(1), 1),
        Expr::Ident(name) => (scope.variables.get(name.as_str()).copied().unwrap_or_else(|| Size::new(1)), 1),
        Expr::Select(select) => {
            let (size, work) = estimate(&select.operand, scope);
            (size.part(), work.saturating_add(1))
        }
        Expr::List(list) => several(list.elements.iter(), scope),
        Expr::Map(map) => several(
            map.entries.iter().flat_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            }),
            scope,
        ),
        Expr::Unspecified | Expr::Struct(_) => (Size::default(), 1),
        Expr::Call(call) => {
            let operands: Vec<(Size, u64)> =
                call.target.as_deref().into_iter().chain(&call.args).map(|o| estimate(o, scope)).collect();
            let work = operands.iter().fold(1_u64, |all, (_, work)| all.saturating_add(*work));
            let sizes: Vec<Size> = operands.iter().map(|(size, _)| *size).collect();
            let weights = sizes.iter().map(|s| s.weight);
            let any = sizes.iter().copied().fold(Size::default(), Size::with);
            match call.func_name.as_str() {
                "_[_]" => (sizes.first().copied().unwrap_or_default().part(), work),
                "_?_:_" => (any.part(), work),
                "_&&_" | "_||_" | "!_" | "@not_strictly_false" | "size" | "type" => (Size::new(1), work),
                // A comparison ends with the shorter operand.
                "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "startsWith" | "endsWith" => {
                    (Size::new(1), work.saturating_add(weights.min().unwrap_or_default()))
                }
                MATCHES => {
                    let (compiled, per_byte) = scope.patterns.work(call);
                    let text = sizes.first().map_or(1, |text| text.weight);
                    (Size::new(1), work.saturating_add(compiled).saturating_add(text.saturating_mul(per_byte)))
                }
                "contains" => (Size::new(1), work.saturating_add(weights.fold(1, u64::saturating_mul))),
                "@in" | "semver_compare" => (Size::new(1), work.saturating_add(weights.fold(1, u64::saturating_add))),
                // Lists and strings are concatenated; numbers are converted to strings.
                _ => {
                    let length = sizes.iter().fold(32, |all: u64, s| all.saturating_add(s.length));
                    (Size { length, weight: any.weight.saturating_add(32), ..any }, work.saturating_add(length))
                }
            }
        }
        Expr::Comprehension(l) => {
            let (range, range_work) = estimate(&l.iter_range, scope);
            let (start, start_work) = estimate(&l.accu_init, scope);
            let hidden = scope.variables.insert(&l.iter_var, range.part());
            let outer = scope.variables.insert(&l.accu_var, start);
            let (grown, step) = estimate(&l.loop_step, scope);
            let (_, condition) = estimate(&l.loop_cond, scope);
            let rounds = range.length;
            let end = Size {
                length: start.length.saturating_add(rounds.saturating_mul(grown.length)),
                inner: grown.inner,
                heaviest: grown.weight,
                weight: start.weight.saturating_add(rounds.saturating_mul(grown.weight)),
            };
            scope.variables.insert(&l.accu_var, end);
            let (result, finish) = estimate(&l.result, scope);
            restore(&mut scope.variables, &l.iter_var, hidden);
            restore(&mut scope.variables, &l.accu_var, outer);
            // Each iteration copies the result so far.
            let round = step.saturating_add(condition).saturating_add(end.length);
            let work = range_work.saturating_add(start_work).saturating_add(rounds.saturating_mul(round));
            (result, work.saturating_add(finish))
        }
    }
}

fn several<'e>(parts: impl Iterator<Item = &'e IdedExpr>, scope: &mut Scope<'e>) -> (Size, u64) {
    let (mut size, mut work, mut count) = (Size::new(0), 1_u64, 0);
    for part in parts {
        let (one, cost) = estimate(part, scope);
        size = size.with(one);
        work = work.saturating_add(cost).saturating_add(1);
        count += 1;
    }
    (Size { length: count, ..size }, work)
}

fn restore<'e>(variables: &mut BTreeMap<&'e str, Size>, name: &'e str, before: Option<Size>) {
    match before {
        Some(before) => variables.insert(name, before),
        None => variables.remove(name),
    };
}
