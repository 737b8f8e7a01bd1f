//! JSONPath templates in kubectl's syntax: text with expressions in braces.
//!
//! The supported expressions are those of kubectl's documentation: paths, `range … end` and quoted text. A path is
//! translated to an RFC 9535 query, in which keys are quoted and `\.` is not needed. `$` and `@` both refer to the
//! current object, as in kubectl. Missing fields are empty.

use std::fmt::{self, Write as _};
use std::iter::Peekable;
use std::str::{Chars, FromStr};

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::{QueryRef, js_path_process};
use serde_json::Value;

use super::{CliError, ErrorKind};

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Values(JpQuery),
    Range(JpQuery, Vec<Self>),
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The open ranges, innermost last; the first is the template itself.
        let mut open: Vec<(Option<JpQuery>, Vec<Part>)> = vec![(None, Vec::new())];
        let mut rest = text;
        while let Some((before, inner, after)) = next_expression(rest)? {
            push(&mut open, Part::Text(before.to_owned()));
            match (inner, inner.strip_prefix("range ")) {
                (_, Some(path)) => open.push((Some(query(path.trim())?), Vec::new())),
                ("end", _) => match open.pop() {
                    Some((Some(query), parts)) => push(&mut open, Part::Range(query, parts)),
                    _ => return Err("{end} without {range}".to_owned()),
                },
                _ => push(&mut open, value(inner)?),
            }
            rest = after;
        }
        push(&mut open, Part::Text(rest.to_owned()));
        match (open.pop(), open.is_empty()) {
            (Some((None, parts)), true) => Ok(Self { parts }),
            _ => Err("{range} without {end}".to_owned()),
        }
    }
}

impl Template {
    /// Renders the template for an object.
    pub fn render(&self, object: &Value) -> Result<String, CliError> {
        let mut text = String::new();
        render(&self.parts, object, &mut text)
            .map_err(|e| CliError::new(ErrorKind::Internal, format!("jsonpath: {e}")))?;
        Ok(text)
    }
}

/// A path to values in an object, as for `--sort-by` and `custom-columns`: with or without braces and the first dot.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    text: String,
    query: JpQuery,
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text).trim();
        if inner.is_empty() {
            return Err("a path is missing, such as .metadata.name".to_owned());
        }
        let path = if inner.starts_with(['.', '[', '$', '@']) { inner.to_owned() } else { format!(".{inner}") };
        Ok(Self { text: path.clone(), query: query(&path)? })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Path {
    /// Returns the values at the path.
    pub fn values<'o>(&self, object: &'o Value) -> Vec<&'o Value> {
        let found = js_path_process(&self.query, object).unwrap_or_default();
        found.into_iter().map(QueryRef::val).collect()
    }
}

fn render(parts: &[Part], object: &Value, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    for part in parts {
        match part {
            Part::Text(words) => text.push_str(words),
            Part::Values(query) => {
                for (index, found) in js_path_process(query, object)?.into_iter().enumerate() {
                    let gap = if index == 0 { "" } else { " " };
                    match found.val() {
                        Value::String(words) => write!(text, "{gap}{words}")?,
                        other => write!(text, "{gap}{other}")?,
                    }
                }
            }
            Part::Range(query, parts) => {
                for found in js_path_process(query, object)? {
                    render(parts, found.val(), text)?;
                }
            }
        }
    }
    Ok(())
}

fn push(open: &mut [(Option<JpQuery>, Vec<Part>)], part: Part) {
    if part == Part::Text(String::new()) {
        return;
    }
    if let Some((_, parts)) = open.last_mut() {
        parts.push(part);
    }
}

/// Splits a text at the next `{…}` into the text before, the expression, and the rest; `None` if there is no expression.
fn next_expression(text: &str) -> Result<Option<(&str, &str, &str)>, String> {
    let Some((before, from)) = text.split_once('{') else { return Ok(None) };
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in from.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '}') => return Ok(Some((before, from[..at].trim(), &from[at + 1..]))),
            _ => {}
        }
    }
    Err(format!("no closing brace after {{{from}"))
}

/// Parses quoted text or a path.
fn value(inner: &str) -> Result<Part, String> {
    match inner.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let quoted = inner.strip_prefix(quote).and_then(|q| q.strip_suffix(quote));
            quoted.map(|text| Part::Text(unescape(text))).ok_or_else(|| format!("unterminated text in {{{inner}}}"))
        }
        Some('.' | '[' | '$' | '@') => query(inner).map(Part::Values),
        _ => Err(format!("{{{inner}}} is not a path: paths start with a dot, as in {{.metadata.name}}")),
    }
}

fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => plain.push('\n'),
            ('\\', Some('t')) => plain.push('\t'),
            ('\\', Some('r')) => plain.push('\r'),
            ('\\', Some(other)) => plain.push(other),
            (c, _) => plain.push(c),
        }
    }
    plain
}

fn query(path: &str) -> Result<JpQuery, String> {
    let mut chars = path.chars().peekable();
    chars.next_if(|c| matches!(c, '$' | '@'));
    let mut standard = "$".to_owned();
    segments(&mut chars, &mut standard)?;
    if let Some(extra) = chars.next() {
        return Err(format!("unexpected {extra:?} in {path}"));
    }
    parse_json_path(&standard).map_err(|e| format!("invalid path {path}: {e}"))
}

/// Translates path segments, up to the first character that cannot belong to the path.
fn segments(chars: &mut Peekable<Chars<'_>>, standard: &mut String) -> Result<(), String> {
    loop {
        match chars.peek() {
            Some('.') => {
                chars.next();
                if chars.next_if_eq(&'.').is_some() {
                    standard.push_str("..");
                }
                if chars.peek() == Some(&'[') || chars.peek().is_none() {
                    continue;
                }
                match key(chars).as_str() {
                    "" => return Err("a key is missing after a dot".to_owned()),
                    "*" => standard.push_str("[*]"),
                    key => push_key(standard, key),
                }
            }
            Some('[') => {
                chars.next();
                bracket(chars, standard)?;
            }
            _ => return Ok(()),
        }
    }
}

/// Parses a key in kubectl's syntax, with `\` before characters that would end it.
fn key(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut key = String::new();
    while let Some(c) = chars.next_if(|c| !" .,[](){}$@=!<>&|".contains(*c)) {
        if c == '\\' { key.extend(chars.next()) } else { key.push(c) }
    }
    key
}

fn push_key(standard: &mut String, key: &str) {
    standard.push_str("['");
    standard.push_str(&key.replace('\\', "\\\\").replace('\'', "\\'"));
    standard.push_str("']");
}

/// Translates the content of brackets. Quoted keys may contain dots for nesting, and filters contain paths; everything
/// else is already standard.
fn bracket(chars: &mut Peekable<Chars<'_>>, standard: &mut String) -> Result<(), String> {
    if let Some(quote) = chars.next_if(|c| matches!(c, '\'' | '"')) {
        let mut inner = String::new();
        while let Some(c) = chars.next_if(|c| *c != quote) {
            inner.push(c);
        }
        chars.next();
        if chars.next_if_eq(&']').is_some() {
            let mut keys = inner.chars().peekable();
            push_key(standard, &key(&mut keys));
            return segments(&mut keys, standard);
        }
        standard.push_str("['");
        standard.push_str(&inner);
        standard.push('\'');
    } else {
        standard.push('[');
    }
    let mut depth = 1;
    let mut quote = None;
    while let Some(c) = chars.next() {
        standard.push(c);
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '@' | '$') => segments(chars, standard)?,
            (None, '[') => depth += 1,
            (None, ']') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(());
        }
    }
    Err("no closing bracket".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(template: &str) -> String {
        let object = json!({
            "kind": "List",
            "items": [
                {"metadata": {"name": "tea", "labels": {"app.kubernetes.io/name": "pot"}}, "size": 3,
                 "conditions": [{"type": "Ready", "status": "True"}, {"type": "Hot", "status": "False"}]},
                {"metadata": {"name": "milk"}, "size": 1, "conditions": []},
            ],
        });
        template.parse::<Template>().unwrap().render(&object).unwrap()
    }

    #[test]
    fn the_forms_of_kubectls_documentation() {
        for (template, text) in [
            ("{.kind}", "List"),
            ("{$.kind} and {@.kind}", "List and List"),
            ("{['kind']}", "List"),
            ("{.items[0].metadata.name}", "tea"),
            ("{.items[-1].metadata.name}", "milk"),
            ("{.items[0:2].size}", "3 1"),
            ("{.items[0,1].size}", "3 1"),
            ("{.items[*]['metadata.name']}", "tea milk"),
            ("{..name}", "tea milk"),
            (r"{.items[0].metadata.labels.app\.kubernetes\.io/name}", "pot"),
            (r"{.items[0].metadata.labels['app\.kubernetes\.io/name']}", "pot"),
            (r#"{.items[?(@.metadata.name=="milk")].size}"#, "1"),
            (r#"{.items[*].conditions[?(@.type=="Ready")].status}"#, "True"),
            ("{.items[?(@.size>2)].metadata.name}", "tea"),
            ("{range .items[*]}{.metadata.name}={.size}{\"\\n\"}{end}", "tea=3\nmilk=1\n"),
            ("{range .items[*]}[{range .conditions[*]}{.type},{end}]{end}.", "[Ready,Hot,][]."),
            ("{.items[0].conditions[0]}", r#"{"status":"True","type":"Ready"}"#),
            ("{.nothing.here}", ""),
            ("plain", "plain"),
        ] {
            assert_eq!(rendered(template), text, "{template}");
        }
    }

    #[test]
    fn invalid_templates_are_refused() {
        for template in ["{.a", "{end}", "{range .a}", "{.a[}", "{if .a}", "{.a..}", "{.a b}", "{\"x}"] {
            assert!(template.parse::<Template>().is_err(), "{template}");
        }
    }
}
