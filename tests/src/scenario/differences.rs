//! The expected differences from the recordings, each with its reason: `tests/scenarios/differences.yaml`.

use std::path::PathBuf;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

use super::compare::{Difference, IN_THIS_ORDER};
use super::format::{Recording, read_yaml};
use super::python::{Form, dumps};

/// An expected difference, or a group of them. In all patterns `*` matches any text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The scenarios' names: a pattern or several.
    pub scenario: OneOrMore,
    /// Limits the difference to this engine.
    pub engine: Option<String>,
    /// The step's name; `all steps` for events.
    #[serde(default = "any")]
    pub step: String,
    /// `Kind/namespace/name`; `events` for events, `-` for the step as a whole.
    pub object: String,
    /// Path within the object as differences print it (`.status.conditions[0].message`), or `object`, `event`, `transition`,
    /// `step`. `moment`: a transient state `[phase, reason]`, given as `expected`, that may be skipped; it is ignored on both
    /// sides.
    pub path: String,
    /// The value of the recording, as JSON with `, ` and `: ` as separators; the quotes of a text are optional.
    #[serde(default = "any")]
    pub expected: String,
    /// The value of this implementation.
    #[serde(default = "any")]
    pub found: String,
    /// Depends on timing: does not have to occur every time.
    #[serde(default)]
    pub sometimes: bool,
    /// The reason of the difference.
    pub reason: String,
}

/// A pattern or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// One pattern.
    One(String),
    /// Any of these patterns.
    More(Vec<String>),
}

impl OneOrMore {
    /// Returns whether any of them matches.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::One(pattern) => matches(pattern, text),
            Self::More(patterns) => patterns.iter().any(|pattern| matches(pattern, text)),
        }
    }
}

fn any() -> String {
    "*".to_owned()
}

impl Wanted {
    fn is_for(&self, scenario: &str, engine: &str) -> bool {
        self.scenario.matches(scenario) && self.engine.as_deref().is_none_or(|only| only == engine)
    }

    fn covers(&self, difference: &Difference) -> bool {
        matches(&self.step, &difference.step)
            && matches(&self.object, &difference.object)
            && matches(&self.path, difference.path())
            && value_matches(&self.expected, difference.expected())
            && value_matches(&self.found, difference.found())
    }
}

/// The path of an expected difference for a transient state.
const MOMENT: &str = "moment";

/// Returns the recording without the transient states that may be skipped: in histories, in transitions and as events.
pub fn without_moments(recording: &Recording, scenario: &str, engine: &str, wanted: &[Wanted]) -> Recording {
    let mut recording = recording.clone();
    for wanted in wanted.iter().filter(|w| w.path == MOMENT && w.is_for(scenario, engine)) {
        let is_moment = |phase: &Value, reason: &Value| {
            let state = format!("[{}, {}]", phase.as_str().unwrap_or_default(), reason.as_str().unwrap_or_default());
            matches(&wanted.expected, &state)
        };
        for step in &mut recording.steps {
            for (_, object) in step.objects.iter_mut().filter(|(id, _)| matches(&wanted.object, id)) {
                let history = object.pointer_mut("/status/conditions").map(|conditions| match conditions {
                    Value::Object(stable) => stable.entry(IN_THIS_ORDER).or_insert(Value::Null),
                    list => list,
                });
                if let Some(history) = history.and_then(Value::as_array_mut) {
                    history.retain(|c| !is_moment(&c["phase"], &c["reason"]));
                }
            }
            for (_, states) in step.saw.iter_mut().filter(|(id, _)| matches(&wanted.object, id)) {
                states.retain(|state| !is_moment(&state[0], &state[1]));
            }
            step.events.retain(|event| {
                let about = event["object"].as_str().unwrap_or_default();
                let reason = event["reason"].as_str().unwrap_or_default();
                !(matches(&wanted.object, about) && wanted.expected.ends_with(&format!(", {reason}]")))
            });
        }
    }
    recording
}

fn value_matches(pattern: &str, value: Option<&Value>) -> bool {
    match value {
        None => pattern == "*",
        Some(value) => {
            value.as_str().is_some_and(|text| matches(pattern, text)) || matches(pattern, &dumps(value, Form::Readable))
        }
    }
}

/// Returns whether the text matches a pattern in which `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(start) else { return false };
    let mut parts: Vec<_> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(end)
}

/// Returns the path of the checked-in file.
pub fn path() -> PathBuf {
    super::checked_in().join("differences.yaml")
}

/// Reads all expected differences.
pub fn wanted() -> Result<Vec<Wanted>> {
    Ok(read_yaml::<Option<Vec<Wanted>>>(&path())?.unwrap_or_default())
}

/// Returns the differences that are not expected, and the expected ones that are required and missing.
pub fn judge<'a>(
    scenario: &str,
    engine: &str,
    differences: &[Difference],
    wanted: &'a [Wanted],
) -> (Vec<Difference>, Vec<&'a Wanted>) {
    let mut used = vec![false; wanted.len()];
    let unwanted = differences.iter().filter(|difference| {
        let mut covered = false;
        for (wanted, used) in wanted.iter().zip(&mut used) {
            if wanted.is_for(scenario, engine) && wanted.covers(difference) {
                covered = true;
                *used = true;
            }
        }
        !covered
    });
    let unwanted = unwanted.cloned().collect();
    let unused = wanted
        .iter()
        .zip(used)
        .filter(|(w, used)| !used && !w.sometimes && w.path != MOMENT && w.is_for(scenario, engine));
    (unwanted, unused.map(|(wanted, _)| wanted).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::compare::What;
    use super::*;

    fn other(path: &str, expected: &str, found: &str) -> Difference {
        let what = What::Other(path.to_owned(), json!(expected), json!(found));
        Difference { step: "plant".to_owned(), object: "Rose/garden/red".to_owned(), what }
    }

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text) in
            [("*", ""), ("*", "a"), ("a", "a"), ("a*", "ab"), ("*b", "ab"), ("a*c*e", "abcde"), ("*[*].x", "a[0].x")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", "ab"), ("a*", "ba"), ("*b", "ba"), ("a*c*e", "abde"), ("ab*ba", "aba")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn expected_differences_are_removed_and_must_occur() {
        let wanted: Vec<Wanted> = serde_yaml::from_str(
            "
- {scenario: planting, object: Rose/*, path: '.status.*', expected: withered, reason: they bloom}
- {scenario: [other, plant*], engine: sim, object: '*', path: '.spec', reason: not on this engine}
- {scenario: planting, object: Tulip/*, path: '*', reason: never there}
- {scenario: planting, object: Tulip/*, path: '*', sometimes: true, reason: may be there}
- {scenario: elsewhere, object: '*', path: '*', reason: another scenario}
",
        )
        .unwrap();
        let differences = [
            other(".status.phase", "withered", "blooming"),
            other(".status.phase", "dry", "wet"),
            other(".spec", "a", "b"),
        ];
        let (unwanted, unused) = judge("planting", "cluster", &differences, &wanted);
        assert_eq!(unwanted, differences[1..]);
        assert_eq!(unused.iter().map(|w| w.reason.as_str()).collect::<Vec<_>>(), ["never there"]);
        let (unwanted, _) = judge("planting", "sim", &differences, &wanted);
        assert_eq!(unwanted, differences[1..2]);
    }
}
