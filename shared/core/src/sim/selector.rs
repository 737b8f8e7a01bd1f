//! Label selectors.

use serde_json::Value;

use crate::api::object::{list, text};

/// Returns whether a selector (`matchLabels`, `matchExpressions`) selects these labels. An empty selector selects everything, a
/// missing one nothing.
pub(super) fn matches(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let equal = selector["matchLabels"].as_object().into_iter().flatten().all(|(key, value)| &labels[key] == value);
    equal && list(selector, &["matchExpressions"]).iter().all(|expression| holds(expression, labels))
}

fn holds(expression: &Value, labels: &Value) -> bool {
    let label = &labels[text(expression, &["key"])];
    let among = list(expression, &["values"]).contains(label);
    match text(expression, &["operator"]) {
        "In" => among,
        "NotIn" => !among,
        "Exists" => !label.is_null(),
        "DoesNotExist" => label.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_select() {
        let labels = json!({"app": "rose", "tier": "x"});
        for (selector, wanted) in [
            (json!({}), true),
            (Value::Null, false),
            (json!({"matchLabels": {"app": "rose"}}), true),
            (json!({"matchLabels": {"app": "tulip"}}), false),
            (json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["rose", "pot"]}]}), true),
            (json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["rose"]}]}), false),
            (json!({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["rose"]}]}), true),
            (json!({"matchExpressions": [{"key": "none", "operator": "Exists"}]}), false),
            (json!({"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}), true),
        ] {
            assert_eq!(matches(&selector, &labels), wanted, "{selector}");
        }
    }
}
