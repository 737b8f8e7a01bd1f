//! Label queries in kubectl's syntax: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use kube::core::{Expression, Selector, SelectorExt};
use olm_core::api::object;
use serde_json::Value;

/// A label query, a conjunction of requirements.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelQuery(Selector);

impl LabelQuery {
    /// Returns whether the labels of the object match.
    pub fn selects(&self, object: &Value) -> bool {
        let labels = object::entries(object, &["metadata", "labels"]);
        let labels: BTreeMap<String, String> = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        self.0.matches(&labels)
    }
}

impl FromStr for LabelQuery {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parts(text).into_iter().map(expression).collect::<Result<Selector, String>>().map(Self)
    }
}

/// Splits at commas outside parentheses.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn expression(part: &str) -> Result<Expression, String> {
    let key = |key: &str| {
        let key = key.trim();
        let of_key = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if key.is_empty() || !key.chars().all(of_key) {
            return Err(format!(
                "invalid label query {part:?}: write a=b, a!=b, 'a in (b,c)', 'a notin (b,c)', a or !a"
            ));
        }
        Ok(key.to_owned())
    };
    if let Some(absent) = part.strip_prefix('!') {
        return Ok(Expression::DoesNotExist(key(absent)?));
    }
    for (operator, make) in [
        ("!=", Expression::NotEqual as fn(String, String) -> Expression),
        ("==", Expression::Equal),
        ("=", Expression::Equal),
    ] {
        if let Some((name, value)) = part.split_once(operator) {
            return Ok(make(key(name)?, value.trim().to_owned()));
        }
    }
    let Some((head, values)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) else {
        return Ok(Expression::Exists(key(part)?));
    };
    let values: BTreeSet<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    match head.trim().rsplit_once(char::is_whitespace) {
        Some((name, "in")) => Ok(Expression::In(key(name)?, values)),
        Some((name, "notin")) => Ok(Expression::NotIn(key(name)?, values)),
        _ => key("(").map(Expression::Exists),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn queries_are_kubectls() {
        let object = json!({ "metadata": { "labels": { "app": "rose", "operators.coreos.com/rose.garden": "" } } });
        for (query, wanted) in [
            ("", true),
            ("app=rose", true),
            ("app == rose, !tier", true),
            ("app!=rose", false),
            ("tier!=x", true),
            ("app in (tulip, rose),app", true),
            ("app notin (tulip,rose)", false),
            ("operators.coreos.com/rose.garden", true),
            ("!app", false),
        ] {
            assert_eq!(query.parse::<LabelQuery>().unwrap().selects(&object), wanted, "{query}");
        }
        for wrong in ["a b", "a of (b)", "=b", "a in b)", "a;b"] {
            assert!(wrong.parse::<LabelQuery>().is_err(), "{wrong}");
        }
    }
}
