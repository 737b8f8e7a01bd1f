//! Label and field selectors in the syntax of requests: `a=b,c!=d,e in (f,g),h notin (i),j,!k`, and `metadata.name=a`.

use serde_json::{Value, json};

use crate::api::label_selector::LabelSelector;
use crate::api::object;

/// A selector of objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector {
    /// `matchExpressions`
    labels: Value,
    /// Name or namespace, and whether it has to be equal to the value.
    fields: Vec<(Field, bool, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
}

impl Selector {
    /// Reads a label selector and a field selector.
    ///
    /// # Errors
    /// One of them is invalid.
    pub(super) fn read(labels: &str, fields: &str) -> Result<Self, String> {
        let invalid = |text: &str, why: String| format!("unable to parse {text:?} as a selector: {why}");
        let expressions = split(labels).into_iter().map(expression).collect::<Result<Vec<Value>, String>>();
        let selector = json!({ "matchExpressions": expressions.map_err(|why| invalid(labels, why))? });
        LabelSelector::read(&selector).map_err(|why| invalid(labels, why))?;
        let fields = split(fields).into_iter().map(|part| field(part).map_err(|why| invalid(fields, why)));
        Ok(Self { labels: selector, fields: fields.collect::<Result<_, String>>()? })
    }

    /// Returns whether it selects everything.
    pub(super) fn is_empty(&self) -> bool {
        object::list(&self.labels, &["matchExpressions"]).is_empty() && self.fields.is_empty()
    }

    /// Returns a function that decides whether an object with this metadata, name and namespace is selected.
    pub(super) fn matcher(&self) -> impl Fn(&Value, &str, &str) -> bool + '_ {
        // It was read before.
        let labels = LabelSelector::read(&self.labels).ok();
        move |head, name, namespace| {
            let is_selected = |(field, equal, value): &(Field, bool, String)| {
                let actual = if *field == Field::Name { name } else { namespace };
                (actual == value) == *equal
            };
            labels.as_ref().is_none_or(|labels| labels.selects(head)) && self.fields.iter().all(is_selected)
        }
    }
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let parts = text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Returns the requirement on a label as an entry of `matchExpressions`.
fn expression(part: &str) -> Result<Value, String> {
    let set = |key: &str, operator: &str, values: &[&str]| {
        let values: Vec<&str> = values.iter().map(|value| value.trim()).collect();
        json!({ "key": key.trim(), "operator": operator, "values": values })
    };
    if let Some(key) = part.strip_prefix('!').filter(|rest| !rest.starts_with('=')) {
        return Ok(set(key, "DoesNotExist", &[]));
    }
    if let Some((head, values)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
        let values: Vec<&str> = values.split(',').collect();
        return match head.trim().rsplit_once(char::is_whitespace) {
            Some((key, "in")) => Ok(set(key, "In", &values)),
            Some((key, "notin")) => Ok(set(key, "NotIn", &values)),
            _ => Err(format!("{part:?}: expected KEY in (VALUES) or KEY notin (VALUES)")),
        };
    }
    for (operator, meaning) in [("!=", "NotIn"), ("==", "In"), ("=", "In")] {
        if let Some((key, value)) = part.split_once(operator) {
            return Ok(set(key, meaning, &[value]));
        }
    }
    Ok(set(part, "Exists", &[]))
}

fn field(part: &str) -> Result<(Field, bool, String), String> {
    let found = [("!=", false), ("==", true), ("=", true)].into_iter();
    let mut found = found.filter_map(|(operator, equal)| part.split_once(operator).map(|pair| (pair, equal)));
    let ((name, value), equal) = found.next().ok_or_else(|| format!("{part:?}: expected FIELD=VALUE"))?;
    let field = match name.trim() {
        "metadata.name" => Field::Name,
        "metadata.namespace" => Field::Namespace,
        other => return Err(format!("field label not supported: {other}")),
    };
    Ok((field, equal, value.trim().to_owned()))
}
