//! Compares a recording with a golden one, object by object, as the recordings' own `compare` program does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use olm_core::api::object::text;
use serde_json::Value;

use super::format::{Recording, Step};
use super::python::{Form, dumps};

/// In a golden: matches anything, also absence.
pub const UNSTABLE: &str = "<unstable>";
/// In a golden: the key of a list that must occur as a subsequence.
pub const IN_THIS_ORDER: &str = "<these in this order, others may be between>";
/// Longer values are truncated in a difference's line.
const SHOWN: usize = 400;

/// A difference between the recording and the golden.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The step's name, `all steps` for events, `-` for the recording as a whole.
    pub step: String,
    /// `Kind/namespace/name`, `events`, or `-`.
    pub object: String,
    /// The kind of difference.
    pub what: What,
}

/// The kind of difference. Paths look like `.status.conditions[0].message`; `path[]` means "anywhere in that list".
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The object is missing.
    ObjectMissing,
    /// The object does not exist in the golden.
    ObjectExtra(Value),
    /// A value of the golden is missing.
    Missing(String, Value),
    /// An entry is missing in the golden's order.
    MissingInOrder(String, Value),
    /// A value does not exist in the golden.
    Extra(String, Value),
    /// Different values: path, expected, found.
    Other(String, Value, Value),
    /// A list with the same entries in different numbers: path, expected length, found length.
    Count(String, usize, usize),
    /// An event is missing.
    EventMissing(Value),
    /// An event does not exist in the golden.
    EventExtra(Value),
    /// A state is missing in the golden's order.
    TransitionMissing(Value),
    /// A problem of the whole step: a condition that was not reached, objects that changed without end, an additional step.
    Step(String),
}

impl Difference {
    fn new(step: &str, object: &str, what: What) -> Self {
        Self { step: step.to_owned(), object: object.to_owned(), what }
    }

    /// Returns the path within the object; `object`, `event`, `transition` or `step` if the difference has none.
    pub fn path(&self) -> &str {
        match &self.what {
            What::ObjectMissing | What::ObjectExtra(_) => "object",
            What::EventMissing(_) | What::EventExtra(_) => "event",
            What::TransitionMissing(_) => "transition",
            What::Step(_) => "step",
            What::Missing(path, _)
            | What::MissingInOrder(path, _)
            | What::Extra(path, _)
            | What::Other(path, ..)
            | What::Count(path, ..) => path,
        }
    }

    /// Returns the value of the golden.
    pub fn expected(&self) -> Option<&Value> {
        match &self.what {
            What::Missing(_, v)
            | What::MissingInOrder(_, v)
            | What::Other(_, v, _)
            | What::EventMissing(v)
            | What::TransitionMissing(v) => Some(v),
            _ => None,
        }
    }

    /// Returns the found value.
    pub fn found(&self) -> Option<&Value> {
        match &self.what {
            What::ObjectExtra(v) | What::Extra(_, v) | What::Other(_, _, v) | What::EventExtra(v) => Some(v),
            _ => None,
        }
    }
}

impl fmt::Display for What {
    /// Formats the line as the recordings' own `compare` program does, for the cases that it knows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ObjectMissing => f.write_str("- object missing"),
            Self::ObjectExtra(v) => write!(f, "+ object not expected: {}", show(v)),
            Self::Missing(path, v) => write!(f, "- {path}: {}", show(v)),
            Self::MissingInOrder(path, v) => write!(f, "- {path}[] in this order: {}", show(v)),
            Self::Extra(path, v) => write!(f, "+ {path}: {}", show(v)),
            Self::Other(path, a, b) => write!(f, "! {path}: expected {}, found {}", show(a), show(b)),
            Self::Count(path, a, b) => write!(f, "! {path}: {a} entries expected, {b} found"),
            Self::EventMissing(v) => write!(f, "- {}", dumps(v, Form::Spaced)),
            Self::EventExtra(v) => write!(f, "+ {}", dumps(v, Form::Spaced)),
            Self::TransitionMissing(v) => write!(f, "- transition {} not seen in this order", show(v)),
            Self::Step(what) => write!(f, "! {what}"),
        }
    }
}

fn show(value: &Value) -> String {
    let text = dumps(value, Form::Readable);
    match text.char_indices().nth(SHOWN - 1) {
        // As in that program, a text of exactly SHOWN characters gets the ellipsis, too.
        Some(_) => text.chars().take(SHOWN).chain(['…']).collect(),
        None => text,
    }
}

/// Returns all differences between a golden and a recording, in the order of the steps.
pub fn compare(golden: &Recording, found: &Recording) -> Vec<Difference> {
    let mut out = Vec::new();
    if golden.steps.len() != found.steps.len() {
        let what = format!("{} steps expected, {} found", golden.steps.len(), found.steps.len());
        out.push(Difference::new("-", "-", What::Step(what)));
    }
    let pairs = || golden.steps.iter().zip(&found.steps);
    for (expected, found) in pairs() {
        let step = |what| Difference::new(&expected.name, "-", What::Step(what));
        out.extend(found.faults.iter().map(|fault| step(fault.clone())));
        if found.unsettled && !expected.unsettled {
            out.push(step("objects still changed when the step's limit ran out".to_owned()));
        }
        compare_objects(expected, found, &mut out);
    }
    compare_events(golden, found, &mut out);
    for (expected, found) in pairs() {
        compare_transitions(expected, found, &mut out);
    }
    out
}

/// Returns how many object states either has, and how many of them are equal.
pub fn tally(golden: &Recording, differences: &[Difference]) -> (usize, usize) {
    let total: usize = golden.steps.iter().map(|step| step.objects.values().filter(|o| *o != UNSTABLE).count()).sum();
    let differing: BTreeSet<_> = differences
        .iter()
        .filter(|d| {
            !matches!(d.what, What::EventExtra(_) | What::EventMissing(_) | What::TransitionMissing(_) | What::Step(_))
        })
        .map(|d| (&d.step, &d.object))
        .collect();
    let extra = differences.iter().filter(|d| matches!(d.what, What::ObjectExtra(_))).count();
    (total + extra - differing.len(), total + extra)
}

fn compare_objects(golden: &Step, found: &Step, out: &mut Vec<Difference>) {
    for id in union(golden.objects.keys(), found.objects.keys()) {
        let what = match (golden.objects.get(id), found.objects.get(id)) {
            (Some(expected), _) if expected == UNSTABLE => continue,
            (Some(_), None) => vec![What::ObjectMissing],
            (None, Some(object)) => vec![What::ObjectExtra(object.clone())],
            (Some(expected), Some(object)) => {
                let mut differences = Vec::new();
                diff(expected, object, "", &mut differences);
                differences
            }
            (None, None) => vec![],
        };
        out.extend(what.into_iter().map(|what| Difference::new(&golden.name, id, what)));
    }
}

/// Compares the events of the whole scenario, because an event may occur in one step or the next.
fn compare_events(golden: &Recording, found: &Recording, out: &mut Vec<Difference>) {
    let events = |recording: &Recording| -> BTreeMap<String, Value> {
        let events = recording.steps.iter().flat_map(|step| &step.events);
        events.map(|event| (dumps(event, Form::Spaced), event.clone())).collect()
    };
    let loose: BTreeSet<&str> =
        golden.unstable.iter().filter_map(|line| Some(line.split_once(": event ")?.1)).collect();
    let (expected, mut found) = (events(golden), events(found));
    found.retain(|event, _| !loose.contains(event.as_str()));
    let missing = expected.iter().filter(|(event, _)| !found.contains_key(*event));
    let extra = found.iter().filter(|(event, _)| !expected.contains_key(*event));
    let what = missing
        .map(|(_, event)| What::EventMissing(event.clone()))
        .chain(extra.map(|(_, event)| What::EventExtra(event.clone())));
    out.extend(what.map(|what| Difference::new("all steps", "events", what)));
}

/// Compares the transitions: the golden's states must be a subsequence of the observed ones.
fn compare_transitions(golden: &Step, found: &Step, out: &mut Vec<Difference>) {
    for (id, states) in &golden.saw {
        let seen = found.saw.get(id).map_or(&[][..], Vec::as_slice);
        let missing = not_in_order(states, seen);
        out.extend(missing.map(|state| Difference::new(&golden.name, id, What::TransitionMissing(state.clone()))));
    }
}

/// Returns the entries of `expected` that do not occur in `found` after their predecessor. After a missing one, all that follow
/// are missing.
fn not_in_order<'a>(expected: &'a [Value], found: &[Value]) -> impl Iterator<Item = &'a Value> {
    let mut rest = found.iter();
    expected.iter().filter(move |state| !rest.any(|seen| seen == *state))
}

fn union<'a, T: Ord + ?Sized + 'a>(a: impl Iterator<Item = &'a T>, b: impl Iterator<Item = &'a T>) -> BTreeSet<&'a T> {
    a.chain(b).collect()
}

fn diff(expected: &Value, found: &Value, path: &str, out: &mut Vec<What>) {
    if expected == UNSTABLE || expected == found {
        return;
    }
    match (expected, found) {
        (Value::Object(a), _) if a.contains_key(IN_THIS_ORDER) => {
            let in_order = a[IN_THIS_ORDER].as_array().map_or(&[][..], Vec::as_slice);
            let found = found.as_array().map_or(&[][..], Vec::as_slice);
            out.extend(not_in_order(in_order, found).map(|x| What::MissingInOrder(path.to_owned(), x.clone())));
        }
        (Value::Object(a), Value::Object(b)) => {
            diff_entries(union(a.keys(), b.keys()), |k| (a.get(k), b.get(k)), |k| format!("{path}.{k}"), out);
        }
        (Value::Array(a), Value::Array(b)) if a.iter().any(|x| x.get(UNSTABLE).is_some()) => {
            let (a, b) = (keyed(a), keyed(b));
            let stable =
                union(a.keys(), b.keys()).into_iter().filter(|k| a.get(*k).is_none_or(|x| x.get(UNSTABLE).is_none()));
            diff_entries(stable, |k| (a.get(k), b.get(k)), |k| format!("{path}[{k}]"), out);
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let b = in_order_of(a, b);
            for (n, (a, b)) in a.iter().zip(&b).enumerate() {
                diff(a, b, &format!("{path}[{n}]"), out);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            let before = out.len();
            let entry = format!("{path}[]");
            out.extend(a.iter().filter(|x| !b.contains(x)).map(|x| What::Missing(entry.clone(), x.clone())));
            out.extend(b.iter().filter(|x| !a.contains(x)).map(|x| What::Extra(entry.clone(), x.clone())));
            if out.len() == before {
                out.push(What::Count(path.to_owned(), a.len(), b.len()));
            }
        }
        (a, b) => out.push(What::Other(path.to_owned(), a.clone(), b.clone())),
    }
}

fn diff_entries<'a>(
    keys: impl IntoIterator<Item = &'a String>,
    get: impl Fn(&str) -> (Option<&'a Value>, Option<&'a Value>),
    path: impl Fn(&str) -> String,
    out: &mut Vec<What>,
) {
    for key in keys {
        match get(key) {
            (Some(a), None) if a == UNSTABLE => {}
            (Some(a), None) => out.push(What::Missing(path(key), a.clone())),
            (None, Some(b)) => out.push(What::Extra(path(key), b.clone())),
            (Some(a), Some(b)) => diff(a, b, &path(key), out),
            (None, None) => {}
        }
    }
}

/// Returns the entries of `b`. If both lists have conditions of the same types they are in the order of `a`, because the order
/// in which conditions are first set depends on timing, and no client depends on it.
fn in_order_of(a: &[Value], b: &[Value]) -> Vec<Value> {
    let by_type = |entries: &[Value]| -> Option<BTreeMap<String, Value>> {
        entries.iter().map(|entry| Some((entry["type"].as_str()?.to_owned(), entry.clone()))).collect()
    };
    match (by_type(a), by_type(b)) {
        (Some(x), Some(y)) if x.len() == b.len() && x.keys().eq(y.keys()) => {
            a.iter().map(|entry| y[text(entry, &["type"])].clone()).collect()
        }
        _ => b.to_vec(),
    }
}

fn keyed(entries: &[Value]) -> BTreeMap<String, Value> {
    entries.iter().filter(|entry| entry.is_object()).map(|entry| (entry_key(entry), entry.clone())).collect()
}

/// Returns the identity of an entry of a list of conditions or of object references.
fn entry_key(entry: &Value) -> String {
    match text(entry, &["type"]) {
        "" => ["kind", "namespace", "name"].map(|field| text(entry, &[field])).join("/"),
        kind => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests;
