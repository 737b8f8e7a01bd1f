//! Plain scalars that are booleans and numbers in YAML 1.1 and strings in YAML 1.2. Go's tools use 1.1, including opm,
//! kubectl and OLM: they read unquoted `yes` as true and `014` as 12 (olm-behaviour/opm.md#catalog-blobs; tested with opm).

use std::ops::Range;

use serde_json::{Map, Number, Value};

use super::outline::{Kind, Node, outline};

/// A plain scalar that is not the string that it looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Offset in the text.
    pub(crate) at: usize,
    /// Its text.
    pub(crate) text: String,
    /// Its value, as JSON.
    pub(crate) means: String,
}

/// Returns the value of an unquoted word; `None` when it is a string.
fn meaning(word: &str) -> Option<Value> {
    match word {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Some(true.into()),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => return Some(false.into()),
        _ => {}
    }
    let body = word.strip_prefix(['-', '+']).unwrap_or(word);
    if !body.starts_with(|c: char| c.is_ascii_digit()) || !body.starts_with('0') && !body.contains('_') {
        return None;
    }
    let is_text = matches!(serde_yaml::from_str(word), Ok(Value::String(_)));
    let plain = word.replace('_', "");
    integer(&plain).or_else(|| float(&plain)).filter(|_| is_text)
}

/// Quotes the words of a text that YAML 1.2 reads as strings, so that both versions read it alike. There is one scalar on
/// each line.
pub(super) fn quote(text: String) -> String {
    let is_word = |word: &str| meaning(word).is_some();
    let is_suspect = |line: &str| {
        let line = line.trim_start_matches(['-', ' ']);
        let (key, value) = line.split_once(": ").unwrap_or((line, line));
        is_word(key.trim_end_matches(':')) || is_word(value)
    };
    let Some(outline) = text.lines().any(is_suspect).then(|| outline(&text)).flatten() else { return text };
    let mut places = Vec::new();
    places_of_words(&outline, &mut places);
    let mut quoted = text;
    for place in places.into_iter().rev() {
        quoted.insert(place.end, '\'');
        quoted.insert(place.start, '\'');
    }
    quoted
}

/// Collects the ranges of words in order.
fn places_of_words(node: &Node, places: &mut Vec<Range<usize>>) {
    match &node.kind {
        Kind::List { items, .. } => items.iter().for_each(|item| places_of_words(item, places)),
        Kind::Map { fields, .. } => {
            for (key, value) in fields {
                places_of_words(key, places);
                places_of_words(value, places);
            }
        }
        _ => places.extend(word(node).map(|_| node.range.clone())),
    }
}

/// Parses an integer with a base prefix as Go does.
fn integer(text: &str) -> Option<Value> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = body.to_ascii_lowercase();
    let (digits, base) = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find_map(|(prefix, base)| Some((lower.strip_prefix(prefix)?, base)))
        .or_else(|| Some((lower.strip_prefix('0').filter(|rest| !rest.is_empty())?, 8)))
        .unwrap_or((&lower, 10));
    let is_digits = digits.chars().all(|c| c.is_digit(base));
    let value = i128::from_str_radix(digits, base).ok().filter(|_| is_digits)?;
    Number::from_i128(if negative { -value } else { value }).map(Value::Number)
}

/// Parses a decimal number as Go does.
fn float(text: &str) -> Option<Value> {
    let is_decimal = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    let value: f64 = text.parse().ok().filter(|_| is_decimal)?;
    // Go writes an integral number without a fraction.
    let whole = format!("{value:.0}").parse::<i64>().ok().filter(|_| value.fract() == 0.0);
    whole.map(Value::from).or_else(|| Number::from_f64(value).map(Value::Number))
}

/// Returns whether a string in the value may have been such a word.
pub(super) fn is_suspect(value: &Value) -> bool {
    match value {
        Value::String(text) => meaning(text).is_some(),
        Value::Array(items) => items.iter().any(is_suspect),
        Value::Object(map) => map.iter().any(|(key, value)| meaning(key).is_some() || is_suspect(value)),
        _ => false,
    }
}

/// Replaces unquoted words by their values. `node` is the outline of the text of the value. Values of aliases are not
/// changed.
pub(super) fn replace(value: &mut Value, node: &Node, words: &mut Vec<Word>) {
    match (value, &node.kind) {
        (Value::Array(values), Kind::List { items, .. }) => {
            for (value, node) in values.iter_mut().zip(items) {
                replace(value, node, words);
            }
        }
        (Value::Object(map), Kind::Map { fields, .. }) => {
            for (key, node) in fields {
                if let Some(value) = key.text().and_then(|key| map.get_mut(key)) {
                    replace(value, node, words);
                }
            }
            for (key, _) in fields {
                rename(map, key, words);
            }
        }
        (value, _) => {
            if let Some((text, means)) = word(node)
                && value.as_str() == Some(text)
            {
                words.push(Word { at: node.range.start, text: text.to_owned(), means: means.to_string() });
                *value = means;
            }
        }
    }
}

fn rename(map: &mut Map<String, Value>, key: &Node, words: &mut Vec<Word>) {
    if let Some((text, means)) = word(key)
        && let Some(value) = map.remove(text)
    {
        let means = means.to_string();
        words.push(Word { at: key.range.start, text: text.to_owned(), means: means.clone() });
        map.insert(means, value);
    }
}

/// Returns an unquoted scalar that is not a string, and its value.
fn word(node: &Node) -> Option<(&str, Value)> {
    match &node.kind {
        Kind::Scalar { text, is_plain: true } => Some((text, meaning(text)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{documents, to_string};

    #[test]
    fn unquoted_words_are_read_as_in_go() {
        let text = "{a: y, b: yes, c: On, d: N, e: \"yes\", f: !!str no, g: OFF, on: 1, h: nO, i: 0o14, j: 014, k: 1_000, l: ~, \
                    m: 0b11, n: 1:30, o: .inf0, p: 2026-01-01, q: 09, r: -0x_f, s: 0_0.5, t: _1, u: 08x, v: [no, 'no'], w: 0}";
        let found = documents(text.as_bytes()).unwrap()[0].read(text).unwrap();
        let expected = json!({
            "a": true, "b": true, "c": true, "d": false, "e": "yes", "f": "no", "g": false, "true": 1, "h": "nO", "i": 12,
            "j": 12, "k": 1000, "l": null, "m": 3, "false": "1:30", "o": ".inf0", "p": "2026-01-01", "q": 9, "r": -15,
            "s": 0.5, "t": "_1", "u": "08x", "v": [false, "no"], "w": 0,
        });
        assert_eq!(found.value, expected);
        let words: Vec<&str> = found.words.iter().map(|word| word.text.as_str()).collect();
        assert!(words.contains(&"yes") && words.contains(&"014") && !words.contains(&"nO"), "{words:?}");
        assert!(found.words.iter().all(|word| text[word.at..].starts_with(&word.text)), "{:?}", found.words);
    }

    #[test]
    fn written_yaml_is_read_alike_by_both_versions() {
        let value = json!({
            "x": ["y", "No", "014", "1_000", "0_0.5", "-0x_f", "1.0", "nO", true, 0, 0.5, {"on": {"off": "x: yes\ny: no\n"}}],
            "y": "yes: no", "yes": "yes",
        });
        let text = to_string(&value).unwrap();
        for expected in [
            "- 'y'\n",
            "- 'No'\n",
            "- '1_000'\n",
            "- nO\n",
            "- 0\n",
            "'on':\n",
            "'off': |\n",
            "    y: no\n",
            "'yes': 'yes'\n",
        ] {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
        let read = documents(text.as_bytes()).unwrap()[0].read(&text).unwrap();
        assert_eq!((read.value, read.words), (value, vec![]), "{text}");
    }

    #[test]
    fn aliased_values_are_not_changed() {
        let text = "base: &b {x: yes}\nmade:\n  <<: *b\n  y: 3\nalso: *b\n";
        let found = documents(text.as_bytes()).unwrap()[0].read(text).unwrap().value;
        assert_eq!(found, json!({"base": {"x": true}, "made": {"x": "yes", "true": 3}, "also": {"x": "yes"}}));
    }
}
