//! blang's version ranges: `>=1.0.0 <2.0.0 || 3.x !3.1.4`.
//!
//! Adjacent comparisons must all hold, `||` between spaces separates alternatives. Quirks of blang that catalogs depend on:
//! a token of one byte is dropped silently; any token with an `x`, even in a pre-release, is a wildcard; `!=1.2.x` requires
//! versions both below and above and is never satisfied; pre-releases are compared like any other version. Unlike blang, an
//! empty alternative (`a || || b`) matches nothing instead of panicking.

use std::cmp::Ordering;
use std::fmt;

use super::{Error, Version, compare, parse};
use crate::go_format::quote;

/// A parsed range, which retains its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    text: String,
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Comparison {
    operator: Operator,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Range {
    /// Parses a range.
    ///
    /// # Errors
    /// The text is not a range: the message states which part is invalid, as blang does.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let tokens = tokens(text);
        if tokens.first().is_some_and(|t| t == "||") {
            return Err(Error::new("First element in range is '||'"));
        }
        if tokens.last().is_none_or(|t| t == "||") {
            return Err(Error::new("Last element in range is '||'"));
        }
        let alternatives: Vec<Vec<String>> =
            tokens.split(|t| t == "||").map(expand_wildcards).collect::<Result<_, _>>()?;
        let alternatives = alternatives
            .iter()
            .map(|comparisons| comparisons.iter().map(|c| Comparison::parse(c)).collect())
            .collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), alternatives })
    }

    /// Parses a range, or one version, which may be incomplete: `1.2` is `=1.2.0`.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse_or_exact(text: &str) -> Result<Self, Error> {
        match super::parse_tolerant(text) {
            Ok(version) => Self::parse(&format!("={version}")),
            Err(_) => Self::parse(text),
        }
    }

    /// Returns whether the range contains the version.
    pub fn contains(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| !all.is_empty() && all.iter().all(|c| c.holds(version)))
    }

    /// Returns the text of the range.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Comparison {
    fn parse(text: &str) -> Result<Self, Error> {
        let (operator, version) = split_operator(text)?;
        let refused = |why: String| Error::new(format!("Could not parse Range {}: {why}", quote(text)));
        let joined = format!("{operator}{version}");
        let operator = Operator::parse(operator)
            .ok_or_else(|| refused(format!("Could not parse comparator {} in {}", quote(operator), quote(&joined))))?;
        let version = parse(version)
            .map_err(|e| refused(format!("Could not parse version {} in {}: {e}", quote(version), quote(&joined))))?;
        Ok(Self { operator, version })
    }

    fn holds(&self, version: &Version) -> bool {
        let order = compare(version, &self.version);
        match self.operator {
            Operator::Equal => order == Ordering::Equal,
            Operator::NotEqual => order != Ordering::Equal,
            Operator::Greater => order == Ordering::Greater,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual => order != Ordering::Greater,
        }
    }
}

impl Operator {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "" | "=" | "==" => Self::Equal,
            "!" | "!=" => Self::NotEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            _ => return None,
        })
    }
}

/// Splits at spaces, except those after `>`, `<` or `=`, and drops tokens shorter than two bytes.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut push = |token: &str| {
        if token.len() > 1 {
            tokens.push(token.replace(' ', ""));
        }
    };
    let mut start = 0;
    let mut last = '\0';
    for (i, c) in text.char_indices() {
        if c != ' ' {
            last = c;
        } else if !matches!(last, '>' | '<' | '=') {
            push(&text[start..i]);
            start = i + 1;
        }
    }
    push(&text[start..]);
    tokens
}

/// Splits the operator from the version, which begins at the first digit.
fn split_operator(text: &str) -> Result<(&str, &str), Error> {
    let digit = text
        .find(char::is_numeric)
        .ok_or_else(|| Error::new(format!("Could not get version from string: {}", quote(text))))?;
    Ok((text[..digit].trim(), &text[digit..]))
}

fn expand_wildcards(tokens: &[String]) -> Result<Vec<String>, Error> {
    let mut expanded = Vec::new();
    for token in tokens {
        if !token.contains('x') {
            expanded.push(token.clone());
            continue;
        }
        let (operator, version) = split_operator(token)?;
        let flat = without_wildcards(version);
        let next = next_after_wildcard(version, &flat);
        match operator {
            ">" => expanded.push(format!(">={next}")),
            ">=" => expanded.push(format!(">={flat}")),
            "<" => expanded.push(format!("<{flat}")),
            "<=" => expanded.push(format!("<{next}")),
            "" | "=" | "==" => expanded.extend([format!(">={flat}"), format!("<{next}")]),
            "!" | "!=" => expanded.extend([format!("<{flat}"), format!(">={next}")]),
            // blang continues with an empty operator and an empty or flat version.
            _ => expanded.push(flat),
        }
    }
    Ok(expanded)
}

/// Replaces the wildcards of `1.x.x`, `1.x` and `1.2.x` by zeros.
fn without_wildcards(version: &str) -> String {
    let flat = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if flat.split('.').count() == 2 { flat + ".0" } else { flat }
}

/// Returns the first version after those that the wildcard matches; empty without a trailing wildcard.
fn next_after_wildcard(version: &str, flat: &str) -> String {
    let wild = version.split('.').collect::<Vec<_>>();
    let part = match wild[..] {
        [.., "x"] if wild.len() == 3 => 1,
        [.., "x"] if wild.len() == 2 => 0,
        _ => return String::new(),
    };
    let mut parts: Vec<String> = flat.split('.').map(str::to_owned).collect();
    match parts[part].parse::<i64>().ok().and_then(|n| n.checked_add(1)) {
        Some(next) => parts[part] = next.to_string(),
        None => return String::new(),
    }
    parts.join(".")
}
