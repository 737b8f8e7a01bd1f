//! Rules about a document, such as the explanation of an InstallPlan: `rbac.escalates == false`.
//!
//! The fields of the document are the variables, and integers of the document are integers. Versions are compared with the
//! functions of Kubernetes' CEL library: `semver(x).major()`, `minor()`, `patch()`, `isLessThan(y)`, `isGreaterThan(y)`,
//! `compareTo(y)`, and `isSemver(x)`.

use std::sync::Arc;

use cel::extractors::This;
use cel::objects::{Key, Map};
use cel::{Context, ExecutionError};
use serde_json::Value;

use super::check::{self, Type};
use super::{CelError, Parsed, bound, cost, describe, parse, with_stack};
use crate::version::{self, Version};

/// A compiled rule about a document.
#[derive(Clone)]
pub struct Policy {
    text: String,
    parsed: Arc<Parsed>,
    fields: Vec<String>,
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Policy").field(&self.text).finish()
    }
}

impl Policy {
    /// Compiles a rule about documents with the fields of this one.
    ///
    /// # Errors
    /// The rule is too large, does not parse, uses unknown fields or wrong types, or is not of type bool. The message shows the position.
    pub fn compile(text: &str, example: &Value) -> Result<Self, CelError> {
        Self::over(text, example.as_object().into_iter().flatten().map(|(field, _)| field.clone()).collect())
    }

    fn over(text: &str, fields: Vec<String>) -> Result<Self, CelError> {
        with_stack(|| {
            let program = parse(text)?;
            let found =
                check::check_policy(&program, &fields).map_err(|complaints| CelError(describe(text, complaints)))?;
            if !matches!(found, Type::Bool | Type::Dyn) {
                return Err(CelError(format!("a policy must be of type bool, and this one is of type {found}")));
            }
            Ok(Self { text: text.to_owned(), parsed: Arc::new(Parsed::new(text, &program)), fields })
        })
    }

    /// Returns the text of the rule.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the part that does not hold for the document: the first false operand of a conjunction with `&&`, or the
    /// whole rule when it is not a conjunction. `None` if the rule holds.
    ///
    /// # Errors
    /// The rule cannot be evaluated.
    pub fn failing(&self, document: &Value) -> Result<Option<String>, CelError> {
        if self.holds(document)? {
            return Ok(None);
        }
        let parts: Result<Vec<Self>, CelError> =
            conjuncts(&self.text).into_iter().map(|part| Self::over(part, self.fields.clone())).collect();
        // An operand that is not a valid rule by itself is not reported separately.
        let parts = parts.unwrap_or_default();
        let fails = parts.iter().find(|part| matches!(part.holds(document), Ok(false)));
        Ok(Some(fails.map_or_else(|| self.text.clone(), |part| part.text.clone())))
    }

    /// Evaluates the rule on the document.
    ///
    /// # Errors
    /// Evaluation fails, would exceed the limit of cost, or does not result in a bool.
    pub fn holds(&self, document: &Value) -> Result<bool, CelError> {
        let null = Value::Null;
        let fields = || self.fields.iter().map(|name| (name.as_str(), document.get(name).unwrap_or(&null)));
        let Parsed { expression, patterns, .. } = &*self.parsed;
        bound(with_stack(|| cost::of_fields(expression, patterns, fields())))?;
        let mut context = Context::default();
        for (name, value) in fields() {
            context.add_variable_from_value(name, to_cel(value));
        }
        let declared = context
            .add_function("semver", |text: cel::Value| read(&text).map(|v| cel::Value::from(v.to_string())))
            .and_then(|()| {
                context.add_function("isSemver", |text: cel::Value| Ok::<_, ExecutionError>(read(&text).is_ok()))
            })
            .and_then(|()| context.add_function("major", |This(v): This<Arc<String>>| part(&v, |v| v.major)))
            .and_then(|()| context.add_function("minor", |This(v): This<Arc<String>>| part(&v, |v| v.minor)))
            .and_then(|()| context.add_function("patch", |This(v): This<Arc<String>>| part(&v, |v| v.patch)))
            .and_then(|()| {
                context.add_function("compareTo", |This(a): This<Arc<String>>, b: Arc<String>| compare(&a, &b))
            })
            .and_then(|()| {
                let less = |This(a): This<Arc<String>>, b: Arc<String>| Ok::<_, ExecutionError>(compare(&a, &b)? < 0);
                context.add_function("isLessThan", less)
            })
            .and_then(|()| {
                let more = |This(a): This<Arc<String>>, b: Arc<String>| Ok::<_, ExecutionError>(compare(&a, &b)? > 0);
                context.add_function("isGreaterThan", more)
            });
        declared.map_err(|e| CelError(e.to_string()))?;
        self.parsed.execute(context)
    }
}

/// Returns the operands of a conjunction with `&&`; the whole rule when an operator of lower precedence is outermost.
fn conjuncts(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_u32);
    let mut quote: Option<&str> = None;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let mut step = rest.chars().next().map_or(1, char::len_utf8);
        match quote {
            Some(end) if rest.starts_with(end) => {
                step = end.len();
                quote = None;
            }
            Some(_) if rest.starts_with('\\') => {
                step += rest[1..].chars().next().map_or(0, char::len_utf8);
            }
            Some(_) => {}
            None => match rest.as_bytes()[0] {
                b'\'' | b'"' => {
                    let opened = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| rest.starts_with(quote));
                    step = opened.map_or(1, str::len);
                    quote = opened;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b'?' if depth == 0 => return vec![text],
                _ if depth == 0 && rest.starts_with("||") => return vec![text],
                _ if rest.starts_with("//") => return vec![text],
                _ if depth == 0 && rest.starts_with("&&") => {
                    parts.push(text[begin..at].trim());
                    step = 2;
                    begin = at + step;
                }
                _ => {}
            },
        }
        at += step;
    }
    parts.push(text[begin..].trim());
    parts
}

/// Converts JSON to CEL, with integers.
fn to_cel(value: &Value) -> cel::Value {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::Array(list) => cel::Value::List(Arc::new(list.iter().map(to_cel).collect())),
        Value::Object(map) => {
            let map = map.iter().map(|(key, value)| (Key::from(key.as_str()), to_cel(value))).collect();
            cel::Value::Map(Map { map: Arc::new(map) })
        }
        other => super::to_cel(other),
    }
}

fn read(text: &cel::Value) -> Result<Version, ExecutionError> {
    let refused =
        |text: &str| ExecutionError::function_error("semver", format!("semver({text}): invalid semantic version"));
    match text {
        cel::Value::String(text) => of_text(text),
        other => Err(refused(&super::words::printed(other))),
    }
}

fn of_text(text: &str) -> Result<Version, ExecutionError> {
    let refused = |_| ExecutionError::function_error("semver", format!("semver({text:?}): invalid semantic version"));
    version::parse_tolerant(text).map_err(refused)
}

fn part(text: &str, of: impl Fn(&Version) -> u64) -> Result<i64, ExecutionError> {
    Ok(i64::try_from(of(&of_text(text)?)).unwrap_or(i64::MAX))
}

fn compare(a: &str, b: &str) -> Result<i64, ExecutionError> {
    Ok(version::compare(&of_text(a)?, &of_text(b)?) as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({
            "rbac": { "escalates": false, "gained": [] },
            "crds": [{ "name": "roses.garden", "safe": true, "invalidCount": 0 }],
            "csvs": [{ "name": "rose.v1.10.0", "from": "1.9.0", "to": "1.10.0" }],
            "objects": [],
        })
    }

    fn holds(text: &str, document: &Value) -> Result<bool, String> {
        Policy::compile(text, document).and_then(|policy| policy.holds(document)).map_err(|error| error.to_string())
    }

    #[test]
    fn policies_hold_or_do_not() {
        let document = document();
        for (text, wanted) in [
            (
                "rbac.escalates == false && crds.all(c, c.safe) && csvs.all(x, semver(x.to).major() == semver(x.from).major())",
                true,
            ),
            ("rbac.escalates", false),
            ("csvs.all(x, semver(x.to).minor() == semver(x.from).minor())", false),
            ("csvs.exists(x, semver(x.from).isLessThan(semver(x.to)))", true),
            ("csvs[0].to.startsWith('1.10') && semver(csvs[0].to).patch() == 0", true),
            ("semver(csvs[0].to).compareTo(semver('v1.9')) == 1", true),
            ("csvs.all(x, isSemver(x.to)) && !isSemver('rose')", true),
            ("size(objects) == 0 && crds[0].invalidCount < 1", true),
            ("'rbac' in {'rbac': 1} ? true : false", true),
        ] {
            assert_eq!(holds(text, &document), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn the_failing_part_is_reported() {
        let document = document();
        for (text, fails) in [
            ("size(csvs) == 1 && rbac.escalates && crds.all(c, c.safe)", Some("rbac.escalates")),
            ("size(csvs) == 1 && (rbac.escalates && true)", Some("(rbac.escalates && true)")),
            ("size(csvs) == 1 && csvs.all(x, x.to == '&&')", Some("csvs.all(x, x.to == '&&')")),
            ("csvs.all(x, x.to == 'a\\'&&b' && true) && true", Some("csvs.all(x, x.to == 'a\\'&&b' && true)")),
            ("'\u{e4}' == '\u{e4}' && 1 > 2", Some("1 > 2")),
            ("true && false || 1 > 2", Some("true && false || 1 > 2")),
            ("rbac.escalates", Some("rbac.escalates")),
            ("true && !rbac.escalates", None),
        ] {
            let policy = Policy::compile(text, &document).unwrap();
            assert_eq!(policy.failing(&document), Ok(fails.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn invalid_policies_are_rejected_on_compilation() {
        for (text, why) in [
            ("rback.escalates", "undeclared reference to 'rback'"),
            ("1 + 1", "must be of type bool"),
            ("semver('1.0.0') < semver('2.0.0')", "no matching overload"),
            ("csvs.all(x, x.to.major() == 1) &&", "Syntax error"),
            ("major('1.0.0') == 1", "undeclared reference to 'major'"),
        ] {
            let error = Policy::compile(text, &document()).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn evaluation_errors_are_reported() {
        let mut document = document();
        document["csvs"][0]["from"] = Value::Null;
        let text = "csvs.all(x, semver(x.to).major() == semver(x.from).major())";
        assert!(holds(text, &document).unwrap_err().contains("invalid semantic version"));
        assert!(holds("csvs.all(x, x.nothing == 1)", &document).unwrap_err().contains("no such key"));
        assert!(holds("rbac.gained", &document).is_err());
        document["objects"] = json!(vec![json!({ "name": "x" }); 3000]);
        let much = "objects.all(a, objects.all(b, objects.all(c, a.name + b.name != c.name)))";
        assert_eq!(holds(much, &document), Err("the rule needs too much work".to_owned()));
    }
}
