//! Compares the generated CustomResourceDefinitions with those that OLM installs, property by property.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use olm_core::api::{crd, object};
use olm_tests::data;
use serde_json::Value;

/// The permitted differences: path and reason.
const ALLOWED: &str = include_str!("api_crds.allowed.txt");

#[test]
fn crds_are_those_of_olm() -> Result<()> {
    let Some(data) = data::data() else {
        data::report_skipped(data::NO_DATA);
        return Ok(());
    };
    let ours = crd::all();
    let ours: BTreeMap<&str, &Value> = ours.iter().map(|crd| (object::name(crd), crd)).collect();
    let mut differences = BTreeSet::new();
    let mut compared = BTreeSet::new();
    for file in data::files(&data.join("crds")).iter().filter(|f| f.extension().is_some_and(|e| e == "yaml")) {
        for theirs in data::documents(file)? {
            let name = object::name(&theirs);
            let ours = ours.get(name).context("an unknown CRD")?;
            compare(name, &without_words(ours), &without_words(&theirs), &mut differences);
            compared.insert(name.to_owned());
        }
    }
    assert!(ours.keys().eq(compared.iter()), "{compared:?}");
    let allowed: BTreeSet<&str> = ALLOWED
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(|l| l.split_once(" because ").expect("PATH because REASON").0)
        .collect();
    let found: BTreeSet<&str> = differences.iter().map(|d: &String| d.split(": ").next().unwrap()).collect();
    let new: Vec<_> = differences.iter().filter(|d| !allowed.contains(d.split(": ").next().unwrap())).collect();
    let gone: Vec<_> = allowed.difference(&found).collect();
    assert!(new.is_empty() && gone.is_empty(), "new: {new:#?}\npermitted but missing: {gone:#?}");
    Ok(())
}

/// Returns the schema without descriptions.
fn without_words(value: &Value) -> Value {
    fn schema(value: &Value, is_map: bool) -> Value {
        match value {
            Value::Object(map) => map
                .iter()
                .filter(|(k, v)| is_map || *k != "description" || !v.is_string())
                .map(|(k, v)| (k.clone(), schema(v, k == "properties" && !is_map)))
                .collect(),
            Value::Array(items) => items.iter().map(|v| schema(v, false)).collect(),
            other => other.clone(),
        }
    }
    schema(value, false)
}

fn compare(path: &str, ours: &Value, theirs: &Value, differences: &mut BTreeSet<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let (a, b) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
                compare(&format!("{path}.{key}"), a, b, differences);
            }
        }
        (Value::Array(a), Value::Array(b)) if matches!(path.rsplit('.').next(), Some("required" | "enum")) => {
            let set = |list: &[Value]| list.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
            if set(a) != set(b) {
                differences.insert(format!("{path}: {ours}, OLM has {theirs}"));
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{i}]"), a, b, differences);
            }
        }
        _ if ours != theirs => {
            differences.insert(format!("{path}: {ours}, OLM has {theirs}"));
        }
        _ => {}
    }
}
