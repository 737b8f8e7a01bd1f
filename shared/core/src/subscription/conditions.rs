//! The conditions of a Subscription.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::api::object;

/// A condition as OLM writes it; an empty reason or message is left out.
pub(super) fn condition(kind: &str, status: bool, reason: &str, message: &str) -> Map<String, Value> {
    let mut condition = Map::new();
    condition.insert("type".to_owned(), kind.into());
    condition.insert("status".to_owned(), if status { "True" } else { "False" }.into());
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

fn put(status: &mut Value, mut new: Map<String, Value>, now: Option<Timestamp>) {
    let mut conditions = object::list(status, &["conditions"]).to_vec();
    let known = conditions.iter_mut().find(|c| c["type"] == new["type"]);
    if let Some(known) = &known {
        let says = ["status", "reason", "message"];
        if says.iter().all(|key| object::at(known, &[key]) == new.get(*key).unwrap_or(&Value::Null)) {
            return;
        }
    }
    if let Some(now) = now {
        new.insert("lastTransitionTime".to_owned(), object::time(now).into());
    }
    match known {
        Some(known) => *known = Value::Object(new),
        None => conditions.push(Value::Object(new)),
    }
    status["conditions"] = conditions.into();
}

/// Removes conditions of these types.
pub(super) fn remove(status: &mut Value, types: &[&str]) {
    let conditions = object::list(status, &["conditions"]);
    if conditions.iter().any(|c| types.contains(&object::text(c, &["type"]))) {
        let rest: Vec<&Value> = conditions.iter().filter(|c| !types.contains(&object::text(c, &["type"]))).collect();
        let rest = json!(rest);
        object::map_mut(status, &[]).insert("conditions".to_owned(), rest);
    }
    if object::list(status, &["conditions"]).is_empty() {
        object::map_mut(status, &[]).remove("conditions");
    }
}
