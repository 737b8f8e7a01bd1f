//! Regular expressions of rules. They are bounded in length and size, and constant ones are compiled once.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use cel::extractors::This;
use cel::{Context, ExecutionError, Value};
use regex::{Regex, RegexBuilder};

use super::words;

/// The replacement of `matches`, which the evaluator implements without size limit, compiling the pattern each time.
pub(super) const MATCHES: &str = "@matches";

/// Maximum length of a regular expression, in bytes.
const LONGEST: usize = 4 << 10;

/// Limits of a compiled regular expression in bytes, tried in order: the size determines the cost of matching.
const SIZES: [usize; 3] = [8 << 10, 32 << 10, 256 << 10];

/// Number of bytes of a compiled regular expression that cost one step for each byte of the text.
const BYTES_PER_STEP: usize = 256;

/// Cost of compiling a regular expression that is not constant, and of matching with it for each byte of the text.
pub(super) const UNKNOWN: (u64, u64) = (work(SIZES.len()), (SIZES[SIZES.len() - 1] / BYTES_PER_STEP) as u64);

/// Returns the cost of compiling with the first sizes: one step for each byte.
const fn work(tried: usize) -> u64 {
    let (mut sum, mut n) = (0, 0);
    while n < tried {
        sum += SIZES[n];
        n += 1;
    }
    sum as u64
}

#[derive(Debug)]
struct Compiled {
    /// The error is a sentence.
    regex: Result<Regex, String>,
    /// Cost of matching, for each byte of the text.
    per_byte: u64,
}

/// The constant regular expressions of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns(Arc<BTreeMap<String, Compiled>>);

impl Patterns {
    /// Compiles the patterns, and makes the rule call the replacement function. Also returns the cost.
    pub(super) fn take(rule: &mut IdedExpr) -> (Self, u64) {
        let (mut compiled, mut spent) = (BTreeMap::new(), 0);
        visit(rule, &mut |call| {
            if call.func_name != "matches" {
                return;
            }
            MATCHES.clone_into(&mut call.func_name);
            if let Some(text) = literal(call)
                && !compiled.contains_key(text)
            {
                let (pattern, work) = compile(text);
                spent += work;
                compiled.insert(text.to_owned(), pattern);
            }
        });
        (Self(Arc::new(compiled)), spent)
    }

    /// Returns the cost of compiling the pattern of a call, and of matching with it for each byte of the text.
    pub(super) fn work(&self, call: &CallExpr) -> (u64, u64) {
        literal(call).and_then(|text| self.0.get(text)).map_or(UNKNOWN, |compiled| (0, compiled.per_byte))
    }

    /// Declares the replacement function.
    pub(super) fn declare(&self, context: &mut Context<'_, '_>) -> Result<(), super::CelError> {
        let patterns = self.clone();
        let matches = move |This(text): This<Value>, pattern: Value| patterns.is_match(&text, &pattern);
        context.add_function(MATCHES, matches).map_err(|e| super::CelError(e.to_string()))
    }

    fn is_match(&self, text: &Value, pattern: &Value) -> Result<bool, ExecutionError> {
        let refused = |message: String| ExecutionError::function_error("matches", message);
        let (text, pattern) = match (text, pattern) {
            (Value::String(text), Value::String(pattern)) => (text, pattern),
            (Value::String(_), _) => return Err(refused(words::NO_SUCH_OVERLOAD.to_owned())),
            _ => return Err(refused(format!("{}: matches", words::NO_SUCH_OVERLOAD))),
        };
        let found = |compiled: &Compiled| match &compiled.regex {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(why) => Err(refused(why.clone())),
        };
        match self.0.get(pattern.as_str()) {
            Some(compiled) => found(compiled),
            None => found(&compile(pattern).0),
        }
    }
}

/// Returns the pattern of a call, if it is constant.
fn literal(call: &CallExpr) -> Option<&str> {
    match &call.args.last()?.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// Compiles a regular expression, and returns the cost.
fn compile(text: &str) -> (Compiled, u64) {
    let per_byte = |tried: usize| (SIZES[tried] / BYTES_PER_STEP) as u64;
    if text.len() > LONGEST {
        let why = format!("a regular expression of {} bytes is too long: the limit is {LONGEST}", text.len());
        return (Compiled { regex: Err(why), per_byte: 1 }, 1);
    }
    let mut why = String::new();
    for (tried, size) in SIZES.into_iter().enumerate() {
        match RegexBuilder::new(text).size_limit(size).dfa_size_limit(size).build() {
            Ok(regex) => return (Compiled { regex: Ok(regex), per_byte: per_byte(tried) }, work(tried + 1)),
            Err(regex::Error::CompiledTooBig(_)) => {
                why = format!(
                    "a regular expression takes more than {size} bytes when it is compiled; write a shorter one"
                );
            }
            Err(e) => {
                let why = format!("'{text}' not a valid regex:\n{e}");
                return (Compiled { regex: Err(super::shortened(&why)), per_byte: 1 }, work(tried + 1));
            }
        }
    }
    (Compiled { regex: Err(why), per_byte: 1 }, work(SIZES.len()))
}

/// Visits every call of an expression.
fn visit(expression: &mut IdedExpr, call: &mut impl FnMut(&mut CallExpr)) {
    match &mut expression.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select(select) => visit(&mut select.operand, call),
        Expr::List(list) => list.elements.iter_mut().for_each(|element| visit(element, call)),
        Expr::Map(map) => visit_entries(map.entries.iter_mut().map(|entry| &mut entry.expr), call),
        Expr::Struct(made) => visit_entries(made.entries.iter_mut().map(|entry| &mut entry.expr), call),
        Expr::Call(inner) => {
            call(inner);
            inner.target.as_deref_mut().into_iter().chain(&mut inner.args).for_each(|operand| visit(operand, call));
        }
        Expr::Comprehension(each) => {
            let each = &mut **each;
            for part in
                [&mut each.iter_range, &mut each.accu_init, &mut each.loop_cond, &mut each.loop_step, &mut each.result]
            {
                visit(part, call);
            }
        }
    }
}

fn visit_entries<'e>(entries: impl Iterator<Item = &'e mut EntryExpr>, call: &mut impl FnMut(&mut CallExpr)) {
    for entry in entries {
        match entry {
            EntryExpr::MapEntry(entry) => {
                visit(&mut entry.key, call);
                visit(&mut entry.value, call);
            }
            EntryExpr::StructField(field) => visit(&mut field.value, call),
        }
    }
}
