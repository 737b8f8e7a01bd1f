//! A catalog in a ConfigMap, the oldest form: lists of ClusterServiceVersions, CustomResourceDefinitions and packages as YAML texts
//! (reference/catalog-operator.md §1.6).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Builder, BundleContent, BundleMessage, Channel, Content, Package, Snapshot};
use crate::api::object::{self, Gvk};
use crate::yaml;

/// Reads the catalog of a ConfigMap.
///
/// # Errors
/// Names the key and what is wrong with it, in one sentence.
pub fn config_map(object: &Value) -> Result<Snapshot, String> {
    let csvs: BTreeMap<String, Value> = named(list(object, "clusterServiceVersions")?);
    let crds = named(list(object, "customResourceDefinitions")?);
    let mut builder = Builder::default();
    for package in list(object, "packages")? {
        let name = object::text(&package, &["packageName"]);
        if name.is_empty() {
            return Err("packages: a package has no packageName".to_owned());
        }
        let mut channels = Vec::new();
        for channel in object::list(&package, &["channels"]) {
            let (channel, head) = (object::text(channel, &["name"]), object::text(channel, &["currentCSV"]));
            channels.push(Channel { name: channel.to_owned(), head: head.to_owned(), ..Channel::default() });
            let mut seen = BTreeSet::new();
            let mut next = head;
            // The chain ends with what the ConfigMap does not hold.
            while let Some(csv) = csvs.get(next).filter(|_| seen.insert(next)) {
                builder.bundle(message(csv, &crds, name, channel)?);
                next = object::text(csv, &["spec", "replaces"]);
            }
            if seen.is_empty() {
                return Err(format!(
                    "packages: channel {channel:?} of package {name:?} begins with {head:?}, which is not there"
                ));
            }
        }
        let default = match (object::text(&package, &["defaultChannel"]), &channels[..]) {
            ("", [only]) => only.name.clone(),
            (default, _) => default.to_owned(),
        };
        builder.package(Package { name: name.to_owned(), default_channel: default, channels, deprecation: None });
    }
    Ok(builder.build())
}

/// The list that stands under a key.
fn list(object: &Value, key: &str) -> Result<Vec<Value>, String> {
    let Some(text) = object.get("data").and_then(|d| d.get(key)).and_then(Value::as_str) else { return Ok(Vec::new()) };
    match yaml::first(text.as_bytes()) {
        Ok(Value::Array(items)) => Ok(items),
        Ok(Value::Null) => Ok(Vec::new()),
        Ok(_) => Err(format!("{key}: it is not a list")),
        Err(e) => Err(format!("{key}: {e}")),
    }
}

fn named(objects: Vec<Value>) -> BTreeMap<String, Value> {
    objects.into_iter().map(|object| (object::name(&object).to_owned(), object)).collect()
}

fn message(csv: &Value, crds: &BTreeMap<String, Value>, package: &str, channel: &str) -> Result<BundleMessage, String> {
    let name = object::name(csv);
    let mut objects = vec![csv.clone()];
    for owned in object::list(csv, &["spec", "customresourcedefinitions", "owned"]) {
        let crd = object::text(owned, &["name"]);
        let found =
            crds.get(crd).ok_or_else(|| format!("customResourceDefinitions: {name} owns {crd}, which is not there"))?;
        if !objects.contains(found) {
            objects.push(found.clone());
        }
    }
    let text = |path: &[&str]| object::text(csv, path).to_owned();
    let skips = object::list(csv, &["spec", "skips"]).iter().filter_map(Value::as_str);
    Ok(BundleMessage {
        csv_name: name.to_owned(),
        package: package.to_owned(),
        channel: channel.to_owned(),
        version: text(&["spec", "version"]),
        skip_range: object::annotation(csv, "olm.skipRange").unwrap_or_default().to_owned(),
        replaces: text(&["spec", "replaces"]),
        skips: skips.map(str::to_owned).collect(),
        provided_apis: apis(csv, "owned"),
        required_apis: apis(csv, "required"),
        content: Some(Content::pack(&BundleContent::of_objects(&objects, csv))),
        ..BundleMessage::default()
    })
}

/// The APIs that a CSV owns or requires; of a CustomResourceDefinition the group stands in its name.
fn apis(csv: &Value, which: &str) -> Vec<Gvk> {
    let gvk =
        |entry: &Value, group: &str| Gvk::new(group, object::text(entry, &["version"]), object::text(entry, &["kind"]));
    let definitions = object::list(csv, &["spec", "customresourcedefinitions", which])
        .iter()
        .map(|d| gvk(d, object::text(d, &["name"]).split_once('.').map_or("", |(_, group)| group)));
    let services = object::list(csv, &["spec", "apiservicedefinitions", which])
        .iter()
        .map(|s| gvk(s, object::text(s, &["group"])));
    definitions.chain(services).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog(packages: &str) -> Value {
        let csv = |version: &str, replaces: &str| {
            json!({
                "kind": "ClusterServiceVersion", "metadata": { "name": format!("rose.v{version}") },
                "spec": { "version": version, "replaces": replaces, "customresourcedefinitions": {
                    "owned": [{ "name": "roses.garden.example.com", "version": "v1", "kind": "Rose" }] } },
            })
        };
        let csvs = json!([csv("1.0.0", "rose.v0.9.0"), csv("1.1.0", "rose.v1.0.0")]).to_string();
        let crds = "- kind: CustomResourceDefinition\n  metadata: {name: roses.garden.example.com}\n";
        json!({ "data": { "clusterServiceVersions": csvs, "customResourceDefinitions": crds, "packages": packages } })
    }

    #[test]
    fn a_channel_is_the_chain_of_what_its_head_replaces() {
        let packages = "- packageName: rose\n  channels: [{name: stable, currentCSV: rose.v1.1.0}]\n";
        let snapshot = config_map(&catalog(packages)).unwrap();
        let rose = snapshot.package("rose").unwrap();
        assert_eq!(rose.default_channel, "stable");
        let names: Vec<_> = snapshot.entries().map(|e| (e.name.as_str(), e.replaces.as_deref())).collect();
        assert_eq!(names, [("rose.v1.0.0", Some("rose.v0.9.0")), ("rose.v1.1.0", Some("rose.v1.0.0"))]);
        let content = snapshot.bundle("rose", "stable", "rose.v1.1.0").unwrap();
        assert_eq!((content.objects.len(), content.csv_json.is_empty()), (2, false));
        assert_eq!(
            snapshot.entry("rose", "stable", "rose.v1.0.0").unwrap().provided_apis[0].group,
            "garden.example.com"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (packages, words) in [
            ("- packageName: rose\n  channels: [{name: stable, currentCSV: tulip}]\n", "tulip"),
            ("- channels: []\n", "packageName"),
            ("rose: 1", "not a list"),
            ("[", "packages: "),
        ] {
            let error = config_map(&catalog(packages)).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let mut missing = catalog("- packageName: rose\n  channels: [{name: a, currentCSV: rose.v1.0.0}]\n");
        missing["data"]["customResourceDefinitions"] = Value::Null;
        assert!(config_map(&missing).unwrap_err().contains("roses.garden.example.com"));
        assert_eq!(config_map(&json!({})), Ok(Snapshot::default()));
    }
}
