//! What of an object is not kept in memory: what planning never reads and no write needs. That is `managedFields` (the API server
//! keeps its own when they are not sent), the schemas of CustomResourceDefinitions (which are only ever patched), and the private
//! keys of OLM's serving certificates (which are only ever made anew).

use serde_json::Value;

use crate::plan::certificate;

/// Fields within objects and, where a list is on the way, within its entries.
const OF_ALL: &[&str] = &["metadata", "managedFields"];
const OF_DEFINITIONS: &[&str] = &["spec", "versions", "schema"];
const OF_CERTIFICATES: &[&str] = &["data", certificate::KEY];

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
    match object["kind"].as_str() {
        Some("CustomResourceDefinition") => &[OF_ALL, OF_DEFINITIONS],
        Some("Secret") if !object["data"][certificate::AUTHORITY].is_null() => &[OF_ALL, OF_CERTIFICATES],
        _ => &[OF_ALL],
    }
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
    #[test]
    fn private_keys_of_serving_certificates_are_dropped() {
        let secret = |data: Value| json!({ "apiVersion": "v1", "kind": "Secret", "data": data });
        let ours = secret(json!({ "olmCAKey": "YQ==", "tls.crt": "Yg==", "tls.key": "Yw==" }));
        assert_eq!(trimmed(&ours)["data"], json!({ "olmCAKey": "YQ==", "tls.crt": "Yg==" }));
        let theirs = secret(json!({ "tls.crt": "Yg==", "tls.key": "Yw==" }));
        assert_eq!(trimmed(&theirs), theirs, "a bundle's own Secret is compared with what it should be");
    }
}
