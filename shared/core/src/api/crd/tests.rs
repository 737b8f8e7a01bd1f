use serde_json::Map;

use super::*;

/// Visits every schema in a value, with its path.
fn schemas<'a>(path: &str, schema: &'a Value, see: &mut impl FnMut(&str, &'a Map<String, Value>)) {
    let Value::Object(map) = schema else { return };
    see(path, map);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        schemas(&format!("{path}.{name}"), property, see);
    }
    for key in ["items", "additionalProperties"] {
        schemas(&format!("{path}[]"), &schema[key], see);
    }
}

#[test]
fn one_definition_is_found_without_the_others() {
    let all = all();
    assert_eq!(all.iter().map(|crd| crd["metadata"]["name"].as_str().unwrap()).collect::<Vec<_>>(), names());
    for crd in all {
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
        assert_eq!(of(kinds::find(kinds::OLM_GROUP, kind).unwrap()), crd);
    }
    assert_eq!(of(&kinds::POD), Value::Null);
}

#[test]
fn schemas_are_structural() {
    let crds = all();
    assert_eq!(crds.len(), 8);
    for crd in &crds {
        for version in crd["spec"]["versions"].as_array().unwrap() {
            let root = &version["schema"]["openAPIV3Schema"];
            schemas(&crd["metadata"]["name"].to_string(), root, &mut |path, schema| {
                let type_ = schema.get("type").is_some_and(Value::is_string);
                let any = schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true))
                    || schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
                assert!(type_ || any, "{path}: {schema:?}");
                for key in ["$ref", "allOf", "oneOf", "nullable", "$defs"] {
                    assert!(!schema.contains_key(key), "{path}: {key}");
                }
                for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
                    let properties = &schema["properties"];
                    assert!(properties.get(required.as_str().unwrap()).is_some(), "{path} requires {required}");
                }
            });
        }
    }
}

#[test]
fn one_version_is_stored() {
    for crd in all() {
        let stored = crd["spec"]["versions"].as_array().unwrap().iter().filter(|v| v["storage"] == true).count();
        assert_eq!(stored, 1, "{}", crd["metadata"]["name"]);
    }
}
