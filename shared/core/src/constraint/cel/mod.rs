//! Rules in the Common Expression Language about the properties of a bundle.
//!
//! ```text
//!   text --(limits, parser of the cel crate)--> expression --check--> Rule        a rule must be valid and of type bool
//!   Rule + properties --cost--> within the limit --(evaluator of the cel crate)--> bool, or an error
//!   policy   rules about the fields of a document
//! ```
//!
//! The crate parses and evaluates. It does not check types, so OLM's checks on compilation are implemented here, and it
//! does not limit the work, so limits are implemented here as well. *Caveats*: durations and timestamps are rejected,
//! because the crate supports them only with an additional time library.

mod check;
mod cost;
mod pattern;
mod policy;
mod words;

use std::fmt;
use std::sync::Arc;

use cel::common::ast::IdedExpr;
use cel::objects::{Key, Map};
use cel::{Context, ExecutionError, Program};
use serde_json::Value;

use self::pattern::Patterns;
pub use self::policy::Policy;
use super::Work;
use crate::bundle::property::Property;
use crate::version;

/// Maximum length of a rule, in bytes. The longest rule in published catalogs has a few hundred.
const MAX_LENGTH: usize = 16 << 10;

/// Cost of compiling one byte of a rule.
const READING: u64 = 10;

/// Cost of estimating a rule that exceeds the limit.
const ESTIMATING: u64 = cost::LIMIT / 50;

/// Maximum number of operators, fields and brackets of a rule. Each may be one level of nesting.
const MAX_OPERATORS: usize = 600;

/// Stack size for the most deeply nested rule, in bytes: the parser, the checks and the evaluator are recursive, and use up to
/// 40 KiB for an operator when they are compiled without optimization. Memory is taken only as far as it is used.
const STACK: usize = 64 << 20;

/// Maximum depth of brackets of a rule, as in the parser of OLM's CEL library.
const MAX_BRACKETS: usize = 100;

/// Maximum number of reported errors of one rule, and of characters of an error and of the line that it shows.
const MOST_COMPLAINTS: usize = 10;
const LONGEST_COMPLAINT: usize = 300;

/// Why a rule was rejected or could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CelError(String);

/// A compiled rule.
#[derive(Clone)]
pub struct Rule {
    text: String,
    parsed: Arc<Parsed>,
}

/// A rule in the form in which it is evaluated.
struct Parsed {
    expression: IdedExpr,
    patterns: Patterns,
    /// The cost of compiling it.
    work: u64,
}

impl Parsed {
    /// Wraps a checked rule.
    fn new(text: &str, program: &Program) -> Self {
        let mut expression = program.expression().clone();
        let (patterns, work) = Patterns::take(&mut expression);
        Self { expression, patterns, work: work.saturating_add(READING * text.len() as u64) }
    }

    fn execute(&self, mut context: Context<'_, '_>) -> Result<bool, CelError> {
        self.patterns.declare(&mut context)?;
        match with_stack(|| context.resolve(&self.expression)) {
            Ok(cel::Value::Bool(holds)) => Ok(holds),
            Ok(_) => Err(CelError(words::NO_SUCH_OVERLOAD.to_owned())),
            Err(error) => Err(CelError(words::of_error(&error))),
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rule").field(&self.text).finish()
    }
}

impl Rule {
    /// Compiles a rule. Errors about names, types and syntax are those of OLM's CEL library.
    ///
    /// # Errors
    /// The rule is too large, does not parse, uses unknown names or wrong types, or is not of type bool.
    pub fn compile(text: &str) -> Result<Self, CelError> {
        with_stack(|| {
            let program = parse(text)?;
            let found = check::check(&program).map_err(|complaints| CelError(describe(text, complaints)))?;
            if found != check::Type::Bool {
                return Err(CelError("cel expressions must have type Bool".to_owned()));
            }
            Ok(Self { text: text.to_owned(), parsed: Arc::new(Parsed::new(text, &program)) })
        })
    }

    /// Returns the cost of compiling the rule.
    pub(super) fn work(&self) -> u64 {
        self.parsed.work
    }

    /// Returns the text of the rule.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates the rule on these properties.
    ///
    /// # Errors
    /// Evaluation fails, or would exceed the limits of cost or work.
    pub fn evaluate(&self, properties: &[Property]) -> Result<bool, CelError> {
        self.evaluate_within(properties, &Work::default())
    }

    /// Like [`Self::evaluate`], within a work budget.
    pub(super) fn evaluate_within(&self, properties: &[Property], work: &Work) -> Result<bool, CelError> {
        let Parsed { expression, patterns, .. } = &*self.parsed;
        let cost = with_stack(|| cost::total(expression, patterns, properties));
        // Estimating the cost of an expensive rule costs as well.
        if !work.spend(if cost > cost::LIMIT { ESTIMATING } else { cost }) {
            return Err(CelError(Work::SPENT.to_owned()));
        }
        bound(cost)?;
        let list = properties.iter().map(|p| {
            let fields = [("type", cel::Value::from(p.type_.as_str())), ("value", to_cel(&p.value))];
            cel::Value::Map(Map { map: Arc::new(fields.into_iter().map(|(k, v)| (Key::from(k), v)).collect()) })
        });
        let mut context = Context::default();
        context.add_variable_from_value("properties", cel::Value::List(Arc::new(list.collect())));
        context.add_function("semver_compare", semver_compare).map_err(|e| CelError(e.to_string()))?;
        self.parsed.execute(context)
    }
}

/// Runs work whose depth of recursion is that of a rule.
fn with_stack<R>(work: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(STACK, STACK, work)
}

fn parse(text: &str) -> Result<Program, CelError> {
    limit(text)?;
    Program::compile(text).map_err(|errors| syntax_errors(text, &errors))
}

fn bound(cost: u64) -> Result<(), CelError> {
    if cost > cost::LIMIT { Err(CelError("the rule needs too much work".to_owned())) } else { Ok(()) }
}

/// Limits the work of the parser and the depth of its result.
fn limit(text: &str) -> Result<(), CelError> {
    if text.len() > MAX_LENGTH {
        return Err(CelError(format!("a rule of {} bytes is too long: the limit is {MAX_LENGTH}", text.len())));
    }
    // The content of strings and comments counts as well, which does not affect realistic rules.
    let (mut operators, mut depth, mut deepest) = (0, 0_usize, 0);
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => (depth, operators) = (depth + 1, operators + 1),
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '.' | '+' | '-' | '*' | '/' | '%' | '!' | '?' | '<' | '>' | '=' => operators += 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    // The operator `in`.
    operators += text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| *word == "in").count();
    if operators > MAX_OPERATORS || deepest > MAX_BRACKETS {
        return Err(CelError(format!(
            "the rule is too complex: it may have {MAX_OPERATORS} operators and {MAX_BRACKETS} levels of brackets"
        )));
    }
    Ok(())
}

/// Converts JSON to CEL: every number is a double, as in Go.
fn to_cel(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => number.as_f64().unwrap_or_default().into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(list) => cel::Value::List(Arc::new(list.iter().map(to_cel).collect())),
        Value::Object(map) => {
            let map = map.iter().map(|(key, value)| (Key::from(key.as_str()), to_cel(value))).collect();
            cel::Value::Map(Map { map: Arc::new(map) })
        }
    }
}

/// `semver_compare(a, b)`: -1, 0 or 1. Versions are parsed tolerantly, from any value that prints as one.
fn semver_compare(a: cel::Value, b: cel::Value) -> Result<i64, ExecutionError> {
    let read = |value: &cel::Value| {
        let text = words::printed(value);
        let refused = |_| ExecutionError::function_error("", format!("unable to parse '{text}' to semver format"));
        version::parse_tolerant(&text).map_err(refused)
    };
    Ok(version::compare(&read(&a)?, &read(&b)?) as i64)
}

fn syntax_errors(text: &str, errors: &cel::ParseErrors) -> CelError {
    let complaints = errors.errors.iter().map(|e| {
        let at = |n: isize| usize::try_from(n).unwrap_or_default();
        ((at(e.pos.0), at(e.pos.1)), e.msg.clone())
    });
    CelError(describe(text, complaints.collect()))
}

/// Renders errors with the lines that they are about. A position is a line and a column, both starting at 1. Only the first
/// errors are rendered, and long lines are shortened to the surroundings of the position.
fn describe(text: &str, complaints: Vec<((usize, usize), String)>) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let more = complaints.len().saturating_sub(MOST_COMPLAINTS);
    let each = complaints.into_iter().take(MOST_COMPLAINTS).map(|((line, column), message)| {
        let mut said = format!("ERROR: <input>:{line}:{column}: {}", shortened(&message));
        if let Some(source) = line.checked_sub(1).and_then(|n| lines.get(n)) {
            let before = column.saturating_sub(1);
            let left_out =
                if source.len() > LONGEST_COMPLAINT { before.saturating_sub(LONGEST_COMPLAINT / 2) } else { 0 };
            let shown: String = source.chars().skip(left_out).take(LONGEST_COMPLAINT).collect();
            said += &format!("\n | {shown}\n | {}^", ".".repeat((before - left_out).min(LONGEST_COMPLAINT)));
        }
        said
    });
    let mut said: Vec<String> = each.collect();
    if more > 0 {
        said.push(format!("and {more} more errors"));
    }
    said.join("\n")
}

/// Truncates a message.
fn shortened(message: &str) -> String {
    match message.char_indices().nth(LONGEST_COMPLAINT) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}
