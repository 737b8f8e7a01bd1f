//! The conditions of an object: by type, whether something holds, and why.

use jiff::Timestamp;
use serde_json::Value;

use super::object;

/// It holds.
pub const TRUE: &str = "True";
/// It does not hold.
pub const FALSE: &str = "False";
/// Nobody can tell.
pub const UNKNOWN: &str = "Unknown";

/// What Kubernetes says of a CustomResourceDefinition that it serves.
pub const ESTABLISHED: &str = "Established";
/// What Kubernetes says of a CustomResourceDefinition whose names nothing else has.
pub const NAMES_ACCEPTED: &str = "NamesAccepted";
/// What Kubernetes says of a Deployment or an APIService that works.
pub const AVAILABLE: &str = "Available";
/// What Kubernetes says of a Pod that works.
pub const READY: &str = "Ready";

/// The conditions of an object, read where they lie in its JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions<'a>(&'a [Value]);

/// A condition, read where it lies in its JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition<'a> {
    /// The whole.
    pub json: &'a Value,
}

impl<'a> Conditions<'a> {
    /// Those of an object, `status.conditions`.
    pub fn of(object: &'a Value) -> Self {
        Self(object::list(object, &["status", "conditions"]))
    }

    /// Those of a status.
    pub fn of_status(status: &'a Value) -> Self {
        Self(object::list(status, &["conditions"]))
    }

    /// All of them, as they stand.
    pub fn json(self) -> &'a [Value] {
        self.0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Condition<'a>> {
        self.0.iter().map(|json| Condition { json })
    }

    /// The condition of a type, if there is one.
    pub fn find(self, of_type: &str) -> Option<Condition<'a>> {
        self.iter().find(|condition| condition.of_type() == of_type)
    }

    /// Does what a type stands for hold?
    pub fn is_true(self, of_type: &str) -> bool {
        self.iter().any(|condition| condition.of_type() == of_type && condition.is_true())
    }

    /// The condition of a type that holds, if there is one.
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
        object::parse_time(object::text(self.json, &["lastTransitionTime"]))
    }

    /// Does it hold?
    pub fn is_true(self) -> bool {
        self.status() == TRUE
    }
}
