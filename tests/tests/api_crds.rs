//! The generated CustomResourceDefinitions against those that OLM installs, property by property, and a round trip of every
//! object of the sample data through the types.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use olm_core::api::catalog_source::CatalogSource;
use olm_core::api::cluster_service_version::ClusterServiceVersion;
use olm_core::api::install_plan::InstallPlan;
use olm_core::api::olm_config::OlmConfig;
use olm_core::api::operator::Operator;
use olm_core::api::operator_condition::OperatorCondition;
use olm_core::api::operator_group::OperatorGroup;
use olm_core::api::resource::{GROUP, ReadError, Resource, View};
use olm_core::api::subscription::Subscription;
use olm_core::api::{crd, object};
use olm_tests::data;
use serde_json::Value;

/// The differences that are allowed: path, then why.
const ALLOWED: &str = include_str!("api_crds.allowed.txt");

#[test]
fn crds_are_those_of_olm() -> Result<()> {
    let Some(data) = data::data() else {
        data::say_skipped(data::NO_DATA);
        return Ok(());
    };
    let ours = crd::all();
    let ours: BTreeMap<&str, &Value> = ours.iter().map(|crd| (object::name(crd), crd)).collect();
    let mut differences = BTreeSet::new();
    let mut compared = BTreeSet::new();
    for file in data::files(&data.join("crds")).iter().filter(|f| f.extension().is_some_and(|e| e == "yaml")) {
        for theirs in data::documents(file)? {
            let name = object::name(&theirs);
            let ours = ours.get(name).context("a CRD that we do not have")?;
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
    assert!(new.is_empty() && gone.is_empty(), "new: {new:#?}\nallowed but not there: {gone:#?}");
    Ok(())
}

/// Without what is said to people only.
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

/// Through the type of its kind and back; `None` when it is none of OLM's kinds.
fn round_trip(object: &Value) -> Option<Result<Value, ReadError>> {
    fn through<T: View>(object: &Value) -> Result<Value, ReadError> {
        Resource::<T>::read_tolerant(object.clone()).map(|(resource, _)| resource.into_json())
    }
    let gvk = object::gvk(object);
    let through = match gvk.kind.as_str() {
        "CatalogSource" => through::<CatalogSource>,
        "ClusterServiceVersion" => through::<ClusterServiceVersion>,
        "InstallPlan" => through::<InstallPlan>,
        "OLMConfig" => through::<OlmConfig>,
        "Operator" => through::<Operator>,
        "OperatorCondition" => through::<OperatorCondition>,
        "OperatorGroup" => through::<OperatorGroup>,
        "Subscription" => through::<Subscription>,
        _ => return None,
    };
    (gvk.group == GROUP).then(|| through(object))
}

/// The objects in a value: itself, the items of a list, the manifests of the steps of an InstallPlan.
fn objects(value: &Value, see: &mut impl FnMut(&Value)) {
    for item in object::list(value, &["items"]) {
        objects(item, see);
    }
    for step in object::list(value, &["status", "plan"]) {
        let manifest = object::text(step, &["resource", "manifest"]);
        if let Ok(manifest) = serde_json::from_str(manifest) {
            objects(&manifest, see);
        }
    }
    see(value);
}

#[test]
fn nothing_is_lost() {
    let Some(data) = data::data() else { olm_tests::skip!("{}", data::NO_DATA) };
    let (mut equal, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    for file in ["objects", "bundles", "plain", "scenarios"].iter().flat_map(|folder| data::files(&data.join(folder))) {
        let extension = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
        // Some files are wrong on purpose.
        let documents = match extension {
            "yaml" | "yml" | "json" => data::documents(&file).unwrap_or_default(),
            _ => continue,
        };
        for document in &documents {
            objects(document, &mut |object| match round_trip(object) {
                Some(Ok(back)) if back == *object => *equal.entry(object::gvk(object).kind).or_default() += 1,
                Some(Ok(_)) => wrong.push(format!("{}: changed", file.display())),
                Some(Err(error)) => wrong.push(format!("{}: {error}", file.display())),
                None => {}
            });
        }
    }
    assert!(wrong.is_empty(), "{equal:?}\n{}", wrong.join("\n"));
    assert!(equal["ClusterServiceVersion"] > 200 && equal.len() >= 6, "{equal:?}");
}
