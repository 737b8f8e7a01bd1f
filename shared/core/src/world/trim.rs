//! What of an object is not kept in memory: what planning never reads and no write needs. That is `managedFields` (the API server
//! keeps its own when they are not sent) and the schemas of CustomResourceDefinitions (which are only ever patched).

use serde_json::Value;

/// Fields within objects and, where a list is on the way, within its entries.
const OF_ALL: &[&str] = &["metadata", "managedFields"];
const OF_DEFINITIONS: &[&str] = &["spec", "versions", "schema"];

/// Drops it.
pub fn trim(object: &mut Value) {
    for path in dropped(object) {
        remove(object, path);
    }
}

/// A copy without it.
pub fn trimmed(object: &Value) -> Value {
    copy(object, dropped(object))
}

fn dropped(object: &Value) -> &'static [&'static [&'static str]] {
    if object["kind"] == "CustomResourceDefinition" { &[OF_ALL, OF_DEFINITIONS] } else { &[OF_ALL] }
}

fn remove(value: &mut Value, path: &[&str]) {
    match (value, path) {
        (Value::Array(entries), _) => entries.iter_mut().for_each(|entry| remove(entry, path)),
        (Value::Object(map), [field]) => drop(map.remove(*field)),
        (Value::Object(map), [field, rest @ ..]) => map.get_mut(*field).into_iter().for_each(|v| remove(v, rest)),
        _ => {}
    }
}

fn copy(value: &Value, dropped: &[&[&str]]) -> Value {
    match value {
        _ if dropped.is_empty() => value.clone(),
        Value::Array(entries) => entries.iter().map(|entry| copy(entry, dropped)).collect(),
        Value::Object(map) => {
            let kept = map.iter().filter(|(field, _)| !dropped.contains(&&[field.as_str()][..]));
            let kept = kept.map(|(field, value)| {
                let within = dropped.iter().filter_map(|path| path.split_first()).filter(|(first, _)| *first == field);
                (field.clone(), copy(value, &within.map(|(_, rest)| rest).collect::<Vec<_>>()))
            });
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_and_managed_fields_are_dropped_and_nothing_else() {
        let object = |kind: &str| {
            json!({
                "kind": kind,
                "metadata": { "name": "roses", "managedFields": [{ "manager": "user" }] },
                "spec": { "schema": 1, "versions": [{ "name": "v1", "schema": { "a": 1 } }, "v2"] },
            })
        };
        let mut definition = object("CustomResourceDefinition");
        let expected = json!({
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "roses" },
            "spec": { "schema": 1, "versions": [{ "name": "v1" }, "v2"] },
        });
        assert_eq!(trimmed(&definition), expected);
        trim(&mut definition);
        assert_eq!(definition, expected);
        let mut other = object("Rose");
        assert_eq!(trimmed(&other)["spec"], other["spec"]);
        trim(&mut other);
        assert_eq!(other["metadata"], json!({ "name": "roses" }));
        assert_eq!(other["spec"], object("Rose")["spec"]);
    }
}
