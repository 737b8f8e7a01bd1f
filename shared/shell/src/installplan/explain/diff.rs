//! The changes of an object, as a diff.

use serde_json::Value;
use similar::TextDiff;

/// The number of context lines around a change.
const AROUND: usize = 3;

/// Returns the change as a unified diff of YAML, without a header.
pub(super) fn lines(before: &Value, after: &Value) -> String {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        value => serde_yaml::to_string(value).unwrap_or_default(),
    };
    let (before, after) = (text(before), text(after));
    let diff = TextDiff::from_lines(&before, &after);
    diff.unified_diff().context_radius(AROUND).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_changes_is_shown() {
        let diff = lines(&json!({ "spec": { "size": 1 } }), &json!({ "spec": { "size": 2 } }));
        assert_eq!(diff, "@@ -1,2 +1,2 @@\n spec:\n-  size: 1\n+  size: 2\n");
        assert_eq!(lines(&Value::Null, &json!({ "a": 1 })), "@@ -0,0 +1 @@\n+a: 1\n");
    }
}
