//! The digest of what a plan would do, to which an approval can be bound.

use serde_json::{Map, Value};

use super::Explanation;
use crate::api::hash::sha256_hex;

/// The parts that may change while the plan would still do the same: the verdict, what could be read, and later plans.
const NOT_WHAT_IT_DOES: [&str; 8] =
    ["hash", "verdict", "dryRun", "unreadable", "afterwards", "deprecations", "bundles", "totals"];

impl Explanation {
    /// Returns the digest, `sha256:…`, of what the plan would do. It is independent of resource versions and time. It changes if the plan,
    /// or an object that the plan would change, changes.
    pub fn digest(&self) -> String {
        let mut document = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(fields) = &mut document {
            fields.retain(|field, _| !NOT_WHAT_IT_DOES.contains(&field.as_str()));
            if let Some(Value::Object(plan)) = fields.get_mut("plan") {
                // The digest has to be the same before and after the plan is created and approved.
                for field in ["name", "exists", "phase", "approved", "superseded"] {
                    plan.remove(field);
                }
            }
            if !self.unshown.secrets.is_empty() {
                fields.insert("secrets".to_owned(), self.unshown.secrets.clone().into());
            }
            forget_generated_names(fields);
            forget(fields, "csvs", &["reasons"]);
            // Which objects correspond follows from the objects.
            forget(fields, "objects", &["replaces", "replacedBy"]);
            forget(fields, "crds", &["existing", "invalid", "invalidCount", "message"]);
        }
        format!("sha256:{}", sha256_hex(sorted(document).to_string()))
    }
}

/// Removes the suffixes that the API server appends to a `generateName`.
fn forget_generated_names(document: &mut Map<String, Value>) {
    for object in document.get_mut("objects").and_then(Value::as_array_mut).into_iter().flatten() {
        let beginning = object["after"]["metadata"]["generateName"].clone();
        if beginning.is_string() && object["before"].is_null() {
            object["after"]["metadata"]["name"] = beginning.clone();
            object["name"] = beginning;
        }
    }
}

/// Removes fields from every entry of a list.
fn forget(document: &mut Map<String, Value>, list: &str, fields: &[&str]) {
    for entry in document.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
        for field in fields {
            entry.as_object_mut().map(|entry| entry.remove(*field));
        }
    }
}

/// Returns the value with the keys of all maps sorted.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(entries.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Explanation, Object, VerdictReason, VerdictResult};

    #[test]
    fn the_digest_covers_only_what_the_plan_does() {
        let object = Object { name: "rose".to_owned(), after: json!({ "b": 1, "a": [2] }), ..Object::default() };
        let first = Explanation { objects: vec![object.clone()], ..Explanation::default() };
        let mut second = first.clone();
        second.objects[0].after = json!({ "a": [2], "b": 1 });
        second.verdict.result = VerdictResult::NeedsDecision;
        second.verdict.reasons.push(VerdictReason::default());
        second.plan.approved = true;
        second.hash = first.digest();
        second.dry_run.sent = true;
        assert_eq!(first.digest(), second.digest());
        assert!(first.digest().starts_with("sha256:"));
        second.objects[0].after = json!({ "a": [3], "b": 1 });
        assert_ne!(first.digest(), second.digest());
        // Generated names do not count.
        second.objects[0].after = json!({ "metadata": { "generateName": "rose-", "name": "rose-a1b2c" } });
        let mut other = second.clone();
        other.objects[0].name = "rose-z9y8x".to_owned();
        other.objects[0].after["metadata"]["name"] = "rose-z9y8x".into();
        assert_eq!(second.digest(), other.digest());
        // The name of the plan does not count.
        let mut third = first.clone();
        third.plan.name = "install-2".to_owned();
        assert_eq!(first.digest(), third.digest());
    }
}
