//! blang's recorded output, and its quirks.

use std::cmp::Ordering;

use serde_json::Value;

use super::*;
use crate::testing::{Checked, recorded};

fn range(text: &str) -> Range {
    Range::parse(text).unwrap()
}

fn version(text: &str) -> Version {
    parse(text).unwrap()
}

#[test]
fn quirks_of_ranges() {
    assert!(range(">=1.0.0 <2.0.0 || 3.x").contains(&version("3.9.9")));
    assert!(range(">=1.0.0 7 <2.0.0").contains(&version("1.5.0")), "a token of one byte is dropped");
    assert!(!range("!=1.2.x").contains(&version("1.3.0")), "both below and above is never met");
    assert!(range("<2.0.0").contains(&version("2.0.0-rc.1")), "a pre-release is an ordinary version");
    assert!(range("1.2.3").contains(&version("1.2.3+other")), "build metadata is ignored");
    assert!(!range(">=1.0.0 || || <0.5.0").contains(&version("0.7.0")), "blang panics here");
    assert_eq!(range(" >= 1.0.0").to_string(), " >= 1.0.0");
}

#[test]
fn tolerant_parsing_adds_missing_parts_and_trims() {
    for (text, full) in [(" v1.02 ", "1.2.0"), ("3", "3.0.0"), ("00.00.01", "0.0.1"), ("1.2.3-rc+b", "1.2.3-rc+b")] {
        assert_eq!(parse_tolerant(text), Ok(version(full)), "{text:?}");
    }
    assert_eq!(
        parse_tolerant("1.2-beta").unwrap_err().to_string(),
        "Short version cannot contain PreRelease/Build meta data"
    );
}

fn answer<T: ToString>(result: Result<T, Error>) -> Result<String, String> {
    result.map(|v| v.to_string()).map_err(|e| e.to_string())
}

#[test]
fn recorded_versions() {
    let Some(data) = recorded("blang/blang.json") else { return };
    let mut checked = Checked::default();
    for case in data["versions"].as_array().unwrap() {
        let text = case["in"].as_str().unwrap();
        let expected = |ok: &str, err: &str| match case[ok].as_str() {
            Some(ok) => Ok(ok.to_owned()),
            None => Err(case[err].as_str().unwrap().to_owned()),
        };
        checked.same(text, &answer(parse(text)), &expected("parse", "parse_error"));
        checked.same(text, &answer(parse_tolerant(text)), &expected("tolerant", "tolerant_error"));
        if let Some(finalized) = case["finalize_version"].as_str() {
            checked.same(text, &finalize(&version(text)).to_string(), &finalized.to_owned());
        }
    }
    checked.end();
}

#[test]
fn recorded_order() {
    let Some(data) = recorded("blang/blang.json") else { return };
    let order: Vec<&str> = data["order"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
    let mut checked = Checked::default();
    for pair in order.windows(2) {
        let expected = if pair[1].starts_with('=') { Ordering::Equal } else { Ordering::Less };
        let [a, b] = [pair[0], pair[1]].map(|v| version(v.trim_start_matches('=')));
        checked.same(format!("{a} {b}"), &compare(&a, &b), &expected);
        checked.same(format!("{b} {a}"), &compare(&b, &a), &expected.reverse());
    }
    checked.end();
}

#[test]
fn recorded_ranges() {
    let Some(data) = recorded("blang/blang.json") else { return };
    let mut checked = Checked::default();
    for case in data["ranges"].as_array().unwrap() {
        let text = case["range"].as_str().unwrap();
        let parsed = Range::parse(text);
        let error = parsed.as_ref().err().map(ToString::to_string);
        checked.same(text, &error.as_deref(), &case["error"].as_str());
        let Ok(parsed) = parsed else { continue };
        for (key, contains) in [("matches", true), ("fails", false)] {
            for v in case[key].as_array().into_iter().flatten().filter_map(Value::as_str) {
                checked.same(format!("{v} in {text:?}"), &parsed.contains(&version(v)), &contains);
            }
        }
    }
    checked.end();
}

proptest::proptest! {
    /// Any text is parsed or rejected without panics.
    #[test]
    fn any_range_is_bounded(
        words in proptest::collection::vec(proptest::sample::select(WORDS), 0..20),
        text in "\\PC{0,40}",
        version in "[0-9xv.+-]{0,12}",
    ) {
        let rose = super::Version::new(1, 2, 3);
        for text in [words.concat(), text, version] {
            if let Ok(range) = super::Range::parse(&text) {
                range.contains(&rose);
            }
            if let Ok(version) = super::parse_tolerant(&text) {
                super::compare(&version, &rose);
            }
        }
    }
}

const WORDS: &[&str] = &[
    ">",
    "<",
    "=",
    "!",
    ">=",
    "<=",
    "==",
    "!=",
    " ",
    "  ",
    "||",
    " || ",
    "x",
    "X",
    ".",
    "1",
    "0",
    "01",
    "1.2.3",
    "1.x",
    "1.2.x",
    "x.x.x",
    "-rc.1",
    "+b",
    "18446744073709551616",
    "9223372036854775807.x",
    "v1.0.0",
    "²",
    "٣",
    "é",
];
