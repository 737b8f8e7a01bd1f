//! Validates custom resources against the structural schema of their CustomResourceDefinition, with the API server's
//! messages.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use regex::Regex;
use serde_json::Value;

use super::{flag, list_map_keys};

/// Returns the errors of the object, each `field: problem`. The schema's rules (`x-kubernetes-validations`) are not
/// evaluated.
pub fn problems(schema: &Value, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, object, Path::Root, &mut found);
    found
}

/// The path of a field, which is rendered only for errors.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl fmt::Display for Path<'_> {
    /// `spec.containers[0].name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, field) => f.write_str(field),
            Self::Field(parent, field) => write!(f, "{parent}.{field}"),
            Self::Item(list, n) => write!(f, "{list}[{n}]"),
        }
    }
}

/// Returns whether a problem prevents the API server from evaluating the schema's rules (`x-kubernetes-validations`).
pub fn blocks_rules(problem: &str) -> bool {
    let kinds = [": Required value", ": Unsupported value", ": Too long", ": Too many", " in body must be of type "];
    kinds.iter().any(|kind| problem.contains(kind))
}

/// Returns whether the schema, or a part of it, has rules (`x-kubernetes-validations`).
pub(crate) fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("x-kubernetes-validations") || map.values().any(has_rules),
        Value::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

fn check(schema: &Value, value: &Value, path: Path<'_>, found: &mut Vec<String>) {
    if value.is_null() && flag(schema, "nullable") {
        return;
    }
    if let Some(problem) = type_problem(schema, value, path) {
        found.push(problem);
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        found.push(format!("{path}: Unsupported value: {value}: supported values: {}", allowed.join(", ")));
    }
    match value {
        Value::String(text) => check_text(schema, text, path, found),
        Value::Number(_) => check_number(schema, value, path, found),
        Value::Array(items) => check_list(schema, items, path, found),
        Value::Object(map) => {
            for field in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !map.contains_key(field) {
                    found.push(format!("{}: Required value", Path::Field(&path, field)));
                }
            }
            limit(schema, "minProperties", map.len(), path, "should have at least", "properties", found);
            for (key, value) in map {
                let property = &schema["properties"][key];
                let inner = if property.is_object() { property } else { &schema["additionalProperties"] };
                if inner.is_object() {
                    check(inner, value, Path::Field(&path, key), found);
                }
            }
        }
        _ => {}
    }
    check_combinations(schema, value, path, found);
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn type_problem(schema: &Value, value: &Value, path: Path<'_>) -> Option<String> {
    let found = type_name(value);
    if flag(schema, "x-kubernetes-int-or-string") {
        return (!matches!(found, "integer" | "string"))
            .then(|| invalid(path, found, &format!("must be of type integer,string: {found:?}")));
    }
    let wanted = schema["type"].as_str()?;
    let fits = match (wanted, value) {
        ("number", Value::Number(_)) => true,
        ("integer", Value::Number(n)) => {
            n.is_i64() || n.as_f64().is_some_and(|n| n.fract() == 0.0 && n.abs() <= MOST_EXACT)
        }
        _ => wanted == found,
    };
    (!fits).then(|| invalid(path, found, &format!("must be of type {wanted}: {found:?}")))
}

/// `path: Invalid value: "value": path in body problem`.
fn invalid(path: Path<'_>, value: &str, problem: &str) -> String {
    format!("{path}: Invalid value: {value:?}: {path} in body {problem}")
}

/// Adds the first problem of a string: length, pattern, format.
fn check_text(schema: &Value, text: &str, path: Path<'_>, found: &mut Vec<String>) {
    let length = text.chars().count() as u64;
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        found.push(format!("{path}: Too long: may not be more than {most} bytes"));
    } else if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
        found.push(invalid(path, text, &format!("should be at least {least} chars long")));
    } else if let Some(pattern) = schema["pattern"].as_str()
        && !matches(pattern, text)
    {
        found.push(invalid(path, text, &format!("should match '{pattern}'")));
    } else if schema["format"] == "date-time" && text.parse::<jiff::Timestamp>().is_err() {
        found.push(invalid(path, text, &format!("must be of type date-time: {text:?}")));
    }
}

/// Number of compiled patterns that are cached: objects of one kind are checked one after another, and compiling a pattern
/// takes longer than everything else.
const PATTERNS: usize = 64;

/// The API server rejects numbers beyond this that are not 64-bit integers.
const MOST_EXACT: f64 = 9_007_199_254_740_991.0;

/// Returns whether the text matches. Everything matches an invalid pattern.
fn matches(pattern: &str, text: &str) -> bool {
    thread_local! {
        static READY: RefCell<BTreeMap<String, Option<Regex>>> = const { RefCell::new(BTreeMap::new()) };
    }
    READY.with_borrow_mut(|ready| {
        if let Some(regex) = ready.get(pattern) {
            return regex.as_ref().is_none_or(|regex| regex.is_match(text));
        }
        if ready.len() == PATTERNS {
            ready.clear();
        }
        let regex = ready.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).ok());
        regex.as_ref().is_none_or(|regex| regex.is_match(text))
    })
}

fn check_number(schema: &Value, value: &Value, path: Path<'_>, found: &mut Vec<String>) {
    let Some(number) = value.as_f64() else { return };
    let mut bound = |key: &str, broken: fn(f64, f64) -> bool, words: &str| {
        if let Some(bound) = schema[key].as_f64().filter(|bound| broken(number, *bound)) {
            found.push(format!("{path}: Invalid value: {value}: {path} in body should be {words} {bound}"));
        }
    };
    bound("minimum", |n, b| n < b, "greater than or equal to");
    bound("maximum", |n, b| n > b, "less than or equal to");
}

fn check_list(schema: &Value, items: &[Value], path: Path<'_>, found: &mut Vec<String>) {
    limit(schema, "minItems", items.len(), path, "should have at least", "items", found);
    if let Some(most) = schema["maxItems"].as_u64().filter(|most| items.len() as u64 > *most) {
        found.push(format!("{path}: Too many: {}: must have at most {most} items", items.len()));
    }
    if schema["items"].is_object() {
        for (n, item) in items.iter().enumerate() {
            check(&schema["items"], item, Path::Item(&path, n), found);
        }
    }
    let keys = list_map_keys(schema);
    let is_set = schema["x-kubernetes-list-type"] == "set";
    if keys.is_empty() && !is_set {
        return;
    }
    let mut seen = BTreeSet::new();
    for (n, item) in items.iter().enumerate() {
        let mut identity = String::new();
        if is_set {
            canonical(item, &mut identity);
        } else {
            for key in &keys {
                canonical(&item[key], &mut identity);
                identity.push(',');
            }
        }
        if !seen.insert(identity) {
            let id: Value =
                if is_set { item.clone() } else { keys.iter().map(|key| (key.clone(), item[key].clone())).collect() };
            found.push(format!("{path}[{n}]: Duplicate value: {id}"));
        }
    }
}

/// Writes a value so that two texts are equal if and only if the values are.
fn canonical(value: &Value, text: &mut String) {
    match value {
        // Negative zero equals zero.
        Value::Number(number) if number.is_f64() && number.as_f64() == Some(0.0) => text.push_str("0.0"),
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut fields: Vec<(&String, &Value)> = map.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (key, value) in fields {
                canonical(&Value::String(key.clone()), text);
                text.push(':');
                canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn limit(schema: &Value, key: &str, size: usize, path: Path<'_>, words: &str, unit: &str, found: &mut Vec<String>) {
    if let Some(least) = schema[key].as_u64().filter(|least| (size as u64) < *least) {
        found.push(invalid(path, "", &format!("{words} {least} {unit}")));
    }
}

fn check_combinations(schema: &Value, value: &Value, path: Path<'_>, found: &mut Vec<String>) {
    let fits = |schema: &Value| {
        let mut inner = Vec::new();
        check(schema, value, path, &mut inner);
        inner.is_empty()
    };
    let mut refuse =
        |words: &str| found.push(format!("<nil>: Invalid value: \"\": {:?} must {words}", path.to_string()));
    if let Some(all) = schema["allOf"].as_array()
        && !all.iter().all(fits)
    {
        refuse("validate all the schemas (allOf)");
    }
    if let Some(any) = schema["anyOf"].as_array()
        && !any.iter().any(fits)
    {
        refuse("validate at least one schema (anyOf)");
    }
    if let Some(one) = schema["oneOf"].as_array() {
        match one.iter().filter(|schema| fits(schema)).count() {
            1 => {}
            0 => refuse("validate one and only one schema (oneOf). Found none valid"),
            n => refuse(&format!("validate one and only one schema (oneOf). Found {n} valid alternatives")),
        }
    }
    if schema["not"].is_object() && fits(&schema["not"]) {
        refuse("not validate the schema (not)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(schema: Value, value: Value) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        problems(&schema, &json!({"spec": value}))
    }

    #[test]
    fn problems_have_the_api_servers_messages() {
        let cases = [
            (
                json!({"type": "integer"}),
                json!("x"),
                "spec: Invalid value: \"string\": spec in body must be of type integer: \"string\"",
            ),
            (json!({"type": "object", "required": ["a"]}), json!({}), "spec.a: Required value"),
            (
                json!({"type": "string", "enum": ["A", "B"]}),
                json!("C"),
                "spec: Unsupported value: \"C\": supported values: \"A\", \"B\"",
            ),
            (
                json!({"type": "string", "pattern": "^a+$"}),
                json!("b"),
                "spec: Invalid value: \"b\": spec in body should match '^a+$'",
            ),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                json!(["a", 1]),
                "spec[1]: Invalid value: \"integer\": spec[1] in body must be of type string: \"integer\"",
            ),
            (
                json!({"type": "integer"}),
                json!(9_223_372_036_854_775_808_u64),
                "spec: Invalid value: \"number\": spec in body must be of type integer: \"number\"",
            ),
            (
                json!({"type": "integer", "minimum": 2}),
                json!(1),
                "spec: Invalid value: 1: spec in body should be greater than or equal to 2",
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], "items": {"type": "object"}}),
                json!([{"n": 1}, {"n": 1}]),
                "spec[1]: Duplicate value: {\"n\":1}",
            ),
        ];
        for (schema, value, wanted) in cases {
            assert_eq!(of(schema, value), [wanted]);
        }
    }

    #[test]
    fn equal_items_are_found_however_they_are_written() {
        let duplicates = |list_type: &str, items: Value| {
            let schema =
                json!({ "type": "array", "x-kubernetes-list-type": list_type, "x-kubernetes-list-map-keys": ["n"] });
            of(schema, items).len()
        };
        assert_eq!(
            duplicates("set", json!([{ "a": 1, "b": [0.0] }, { "b": [-0.0], "a": 1 }, { "a": 1 }, "1", 1, null])),
            1
        );
        assert_eq!(duplicates("set", json!(["a,", "a", ["a"], ["a", ""], [["a"]], { "a": "" }])), 0);
        assert_eq!(duplicates("map", json!([{ "n": "a" }, { "n": "a", "m": 1 }, { "m": 1 }, { "n": null }])), 2);
        // Comparing each with each would take ten billion comparisons.
        let many: Vec<Value> = (0..100_000).map(|n| json!({ "n": n % 99_999 })).collect();
        assert_eq!(duplicates("map", many.into()), 1);
    }

    #[test]
    fn valid_objects_pass() {
        assert!(of(json!({"x-kubernetes-int-or-string": true}), json!("50%")).is_empty());
        assert!(of(json!({"type": "string", "nullable": true}), Value::Null).is_empty());
        assert!(
            of(json!({"type": "object", "additionalProperties": {"type": "string"}}), json!({"a": "b"})).is_empty()
        );
    }
}
