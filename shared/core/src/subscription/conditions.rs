//! The conditions of a Subscription.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::api::conditions::{self, Conditions};
use crate::api::object;

/// A condition as OLM writes it; an empty reason or message is left out.
pub(super) fn condition(kind: &str, status: bool, reason: &str, message: &str) -> Map<String, Value> {
    let mut condition = Map::new();
    condition.insert("type".to_owned(), kind.into());
    condition.insert("status".to_owned(), conditions::status(status).into());
    for (key, text) in [("reason", reason), ("message", message)] {
        if !text.is_empty() {
            condition.insert(key.to_owned(), text.into());
        }
    }
    condition
}

/// Sets a condition, with the time of its last change. An equal condition is not changed.
pub(super) fn set(status: &mut Value, condition: Map<String, Value>, now: Timestamp) {
    put(status, condition, Some(now));
}

/// Sets a condition without a time, as OLM writes those about resolution.
pub(super) fn set_timeless(status: &mut Value, condition: Map<String, Value>) {
    put(status, condition, None);
}

fn put(status: &mut Value, new: Map<String, Value>, now: Option<Timestamp>) {
    let mut conditions = Conditions::from_status(status).json().to_vec();
    if conditions::set_changed(&mut conditions, new, now) {
        status["conditions"] = conditions.into();
    }
}

/// Removes conditions of these types.
pub(super) fn remove(status: &mut Value, types: &[&str]) {
    let known = Conditions::from_status(status).json();
    let mut conditions = known.to_vec();
    conditions::remove(&mut conditions, types);
    if conditions.is_empty() {
        object::map_mut(status, &[]).remove("conditions");
    } else if conditions.len() < known.len() {
        object::map_mut(status, &[]).insert("conditions".to_owned(), conditions.into());
    }
}
