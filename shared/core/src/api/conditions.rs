//! The conditions of an object: type, status and reason.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::object;
use super::view::view;

/// The condition holds.
pub const TRUE: &str = "True";
/// The condition does not hold.
pub const FALSE: &str = "False";
/// The state of the condition is unknown.
pub const UNKNOWN: &str = "Unknown";

/// Kubernetes serves the CustomResourceDefinition.
pub const ESTABLISHED: &str = "Established";
/// The names of the CustomResourceDefinition do not conflict with others.
pub const NAMES_ACCEPTED: &str = "NamesAccepted";
/// The Deployment or APIService is available.
pub const AVAILABLE: &str = "Available";
/// Set by Kubernetes on a Deployment whose rollout progresses or is complete.
pub const PROGRESSING: &str = "Progressing";
/// The Job has failed.
pub const FAILED: &str = "Failed";
/// The Job is complete.
pub const COMPLETE: &str = "Complete";
/// The operator can be upgraded: in an OperatorCondition.
pub const UPGRADEABLE: &str = "Upgradeable";
/// The Pod is ready.
pub const READY: &str = "Ready";

/// A view of an object's conditions, which borrows its JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions<'a>(&'a [Value]);

view! {
    /// A view of a condition.
    Condition
}

impl<'a> Conditions<'a> {
    /// Returns the conditions of an object, `status.conditions`.
    pub fn new(object: &'a Value) -> Self {
        Self(object::list(object, &["status", "conditions"]))
    }

    /// Returns the conditions of a status.
    pub fn from_status(status: &'a Value) -> Self {
        Self(object::list(status, &["conditions"]))
    }

    /// Returns a list of conditions.
    pub const fn from_list(conditions: &'a [Value]) -> Self {
        Self(conditions)
    }

    /// Returns all conditions as JSON.
    pub fn json(self) -> &'a [Value] {
        self.0
    }

    /// Iterates over the conditions.
    pub fn iter(self) -> impl Iterator<Item = Condition<'a>> {
        self.0.iter().map(Condition::new)
    }

    /// Returns the condition of a type, if it exists.
    pub fn find(self, of_type: &str) -> Option<Condition<'a>> {
        self.iter().find(|condition| condition.of_type() == of_type)
    }

    /// Returns whether the condition of a type is true.
    pub fn is_true(self, of_type: &str) -> bool {
        self.iter().any(|condition| condition.of_type() == of_type && condition.is_true())
    }

    /// Returns the condition of a type if it is true.
    pub fn holding(self, of_type: &str) -> Option<Condition<'a>> {
        self.iter().find(|condition| condition.of_type() == of_type && condition.is_true())
    }
}

impl<'a> Condition<'a> {
    /// `type`
    pub fn of_type(self) -> &'a str {
        object::text(self.json, &["type"])
    }

    /// `status`: [`TRUE`], [`FALSE`] or [`UNKNOWN`].
    pub fn status(self) -> &'a str {
        object::text(self.json, &["status"])
    }

    /// `reason`
    pub fn reason(self) -> &'a str {
        object::text(self.json, &["reason"])
    }

    /// `message`
    pub fn message(self) -> &'a str {
        object::text(self.json, &["message"])
    }

    /// `lastTransitionTime`
    pub fn last_transition(self) -> Option<Timestamp> {
        object::parse_time(self.last_transition_text())
    }

    /// `lastTransitionTime` as text.
    pub fn last_transition_text(self) -> &'a str {
        object::text(self.json, &["lastTransitionTime"])
    }

    /// `observedGeneration`: the generation of the object for which the condition was determined.
    pub fn observed_generation(self) -> Option<i64> {
        object::at(self.json, &["observedGeneration"]).as_i64()
    }

    /// Returns whether the status is [`TRUE`].
    pub fn is_true(self) -> bool {
        self.status() == TRUE
    }
}

/// Returns the status of a condition that holds or does not.
pub(crate) const fn status(holds: bool) -> &'static str {
    if holds { TRUE } else { FALSE }
}

/// Sets a condition in a list: it replaces the condition of its type, or is added at the end.
pub(crate) fn set(conditions: &mut Vec<Value>, new: Value) {
    match conditions.iter_mut().find(|condition| condition["type"] == new["type"]) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

/// Sets a condition as [`set`] does, unless the list contains it with the same status, reason and message. `now`, if given, becomes its
/// `lastTransitionTime`. Returns whether the list changed.
pub(crate) fn set_changed(conditions: &mut Vec<Value>, mut new: Map<String, Value>, now: Option<Timestamp>) -> bool {
    let field = |key: &str| new.get(key).unwrap_or(&Value::Null);
    let known = conditions.iter().find(|condition| condition["type"] == *field("type"));
    let is_same = |known: &Value| ["status", "reason", "message"].iter().all(|key| known[*key] == *field(key));
    if known.is_some_and(is_same) {
        return false;
    }
    if let Some(now) = now {
        new.insert("lastTransitionTime".to_owned(), object::time(now).into());
    }
    set(conditions, Value::Object(new));
    true
}

/// Removes the conditions of these types from a list.
pub(crate) fn remove(conditions: &mut Vec<Value>, types: &[&str]) {
    conditions.retain(|condition| !types.contains(&object::text(condition, &["type"])));
}

/// Returns the `lastTransitionTime` of a condition that changes with its status: the one in the list if that has the same status,
/// otherwise now.
pub(crate) fn transition_time(conditions: &[Value], of_type: &str, status: &str, now: Timestamp) -> Value {
    let known = conditions.iter().find(|condition| condition["type"] == of_type);
    let same = known.filter(|condition| condition["status"] == status);
    same.map_or_else(|| object::time(now).into(), |condition| condition["lastTransitionTime"].clone())
}
