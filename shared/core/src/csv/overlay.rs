//! Updates objects that other clients may have created or changed.

use serde_json::Value;

use crate::api::metadata::Metadata;
use crate::api::object;
use crate::plan::Action;

/// Returns the write that sets the desired fields of an object; other fields are preserved. `None` if they are already set.
pub(super) fn overlay(live: Option<&Value>, desired: Value) -> Option<Action> {
    let Some(live) = live else { return Some(Action::Create(desired)) };
    let new = overlaid(live, &desired);
    (new != *live).then_some(Action::Update(new))
}

fn overlaid(live: &Value, desired: &Value) -> Value {
    let mut new = live.clone();
    take_over(&mut new, desired);
    for (field, wanted) in desired.as_object().into_iter().flatten() {
        if matches!(field.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        match wanted {
            Value::Object(parts) => {
                for (part, wanted) in parts {
                    if !matches(object::at(&new, &[field, part]), part, wanted) {
                        object::map_mut(&mut new, &[field]).insert(part.clone(), wanted.clone());
                    }
                }
            }
            _ if !matches(object::at(&new, &[field]), field, wanted) => {
                object::map_mut(&mut new, &[]).insert(field.clone(), wanted.clone());
            }
            _ => {}
        }
    }
    new
}

/// Returns whether a field has the expected value. Defaults are not a difference, except in a selector, where they change the
/// selection.
fn matches(actual: &Value, field: &str, wanted: &Value) -> bool {
    match (actual, wanted) {
        _ if field.to_ascii_lowercase().ends_with("selector") => actual == wanted,
        (Value::Object(actual), Value::Object(wanted)) => {
            wanted.iter().all(|(field, wanted)| matches(actual.get(field).unwrap_or(&Value::Null), field, wanted))
        }
        (Value::Array(actual), Value::Array(wanted)) => {
            actual.len() == wanted.len() && actual.iter().zip(wanted).all(|(a, w)| matches(a, "", w))
        }
        _ => object::covers(actual, wanted),
    }
}

/// Sets the desired labels, and replaces an owner ClusterServiceVersion, the replaced one, by the desired owner.
pub(super) fn take_over(object: &mut Value, desired: &Value) {
    for (key, value) in object::entries(desired, &["metadata", "labels"]) {
        object::set_label(object, key, value);
    }
    let owners = Metadata::new(desired).owner_references();
    if !owners.is_empty() {
        let owners = with_owners(object, owners);
        object::map_mut(object, &["metadata"]).insert("ownerReferences".to_owned(), owners.into());
    }
}

/// Returns the owners of an object, with these instead of ClusterServiceVersions.
pub(super) fn with_owners(object: &Value, owners: &[Value]) -> Vec<Value> {
    let others = Metadata::new(object).owner_references().iter().filter(|o| !is_csv(o));
    others.chain(owners).cloned().collect()
}

fn is_csv(owner: &Value) -> bool {
    object::kind(owner) == "ClusterServiceVersion"
}
