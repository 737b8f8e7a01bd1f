//! A catalog in a ConfigMap, the oldest format: lists of ClusterServiceVersions, CustomResourceDefinitions and packages as
//! YAML (olm-behaviour/catalogsource.md#configmap-catalogs).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;

use super::{Builder, BundleContent, BundleMessage, Channel, Content, Package, Snapshot};
use crate::api::cluster_service_version::Csv;
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::object::{self, Gvk};
use crate::budget::{CONFIG_MAP_BYTES, ENTRY_BYTES};
use crate::bundle::crd_apis;
use crate::yaml;

/// Memory overhead of a part of a bundle, in bytes.
const PART: usize = 64;

/// CustomResourceDefinitions by the APIs that they define, with the plural. A catalog may have several of one name, for
/// bundles that own different versions.
type Definitions = BTreeMap<(Gvk, String), Rc<Value>>;

/// Returns what is stored of the content of a bundle.
type Pack = fn(&BundleContent) -> Option<Content>;

/// Reads the catalog of a ConfigMap. Also returns its approximate size in memory, in bytes.
///
/// # Errors
/// States the key and what is wrong with it, in one sentence.
pub fn config_map(object: &Value) -> Result<(Snapshot, usize), String> {
    read(object, |content| Some(Content::pack(content)))
}

/// Returns the number of packages of the catalog of a ConfigMap. Does not compress its content, which takes most of the time of
/// [`config_map`].
///
/// # Errors
/// As for [`config_map`].
pub fn count_packages(object: &Value) -> Result<usize, String> {
    read(object, |_| None).map(|(snapshot, _)| snapshot.packages().len())
}

fn read(object: &Value, pack: Pack) -> Result<(Snapshot, usize), String> {
    let csvs: BTreeMap<String, Value> = named(list(object, "clusterServiceVersions")?);
    let crds = definitions(list(object, "customResourceDefinitions")?)?;
    let mut builder = Builder::default();
    let mut messages = Messages { crds: &crds, pack, made: BTreeMap::new(), left: CONFIG_MAP_BYTES };
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
            // The chain ends at an entry that the ConfigMap does not contain.
            while let Some(csv) = csvs.get(next).filter(|_| seen.insert(next)) {
                builder.bundle(messages.get(csv, name, channel)?);
                next = Csv::new(csv).replaces();
            }
            if seen.is_empty() {
                return Err(format!(
                    "packages: channel {channel:?} of package {name:?} has the head {head:?}, which does not exist"
                ));
            }
        }
        let default = match (object::text(&package, &["defaultChannel"]), &channels[..]) {
            ("", [only]) => only.name.clone(),
            (default, _) => default.to_owned(),
        };
        builder.package(Package { name: name.to_owned(), default_channel: default, channels, deprecation: None });
    }
    let bytes = CONFIG_MAP_BYTES - messages.left;
    Ok((builder.build(), bytes))
}

/// Returns the list under a key.
fn list(object: &Value, key: &str) -> Result<Vec<Value>, String> {
    let Some(text) = object.get("data").and_then(|d| d.get(key)).and_then(Value::as_str) else { return Ok(Vec::new()) };
    match yaml::first(text.as_bytes()) {
        Ok(Value::Array(items)) => Ok(items),
        Ok(Value::Null) => Ok(Vec::new()),
        Ok(_) => Err(format!("{key}: not a list")),
        Err(e) => Err(format!("{key}: {e}{}", e.hint.map_or_else(String::new, |hint| format!("; {hint}")))),
    }
}

fn named(objects: Vec<Value>) -> BTreeMap<String, Value> {
    objects.into_iter().map(|object| (object::name(&object).to_owned(), object)).collect()
}

/// Indexes definitions by their APIs.
///
/// # Errors
/// An API is defined twice. The message has OLM's words: the definition of a bundle would be ambiguous.
fn definitions(crds: Vec<Value>) -> Result<Definitions, String> {
    let mut definitions = Definitions::new();
    for crd in crds.into_iter().map(Rc::new) {
        let plural = CustomResourceDefinition::new(&crd).plural().to_owned();
        for gvk in crd_apis(&crd) {
            let Gvk { group, version, kind } = &gvk;
            let twice = format!("can't add the same CRD twice in one configmap: {group}/{version}/{kind} ({plural})");
            if definitions.insert((gvk, plural.clone()), Rc::clone(&crd)).is_some() {
                return Err(format!("customResourceDefinitions: {twice}"));
            }
        }
    }
    Ok(definitions)
}

/// The bundles of the catalog, each of them read once although several channels may contain it.
struct Messages<'c> {
    crds: &'c Definitions,
    pack: Pack,
    made: BTreeMap<&'c str, BundleMessage>,
    /// Remaining budget in bytes; a bundle counts once for each of its channels.
    left: usize,
}

impl<'c> Messages<'c> {
    fn get(&mut self, csv: &'c Value, package: &str, channel: &str) -> Result<BundleMessage, String> {
        let name = object::name(csv);
        if !self.made.contains_key(name) {
            let message = self.read(csv)?;
            self.made.insert(name, message);
        }
        let made = self.made.get(name).cloned().unwrap_or_default();
        let apis = made.provided_apis.iter().chain(&made.required_apis);
        let apis: usize = apis.map(|api| api.group.len() + api.version.len() + api.kind.len() + PART).sum();
        let skips: usize = made.skips.iter().map(|skip| skip.len() + PART).sum();
        let texts = [&made.csv_name, &made.version, &made.skip_range, &made.replaces].map(String::len);
        self.charge(apis + skips + texts.iter().sum::<usize>() + package.len() + channel.len() + ENTRY_BYTES)?;
        Ok(BundleMessage { package: package.to_owned(), channel: channel.to_owned(), ..made })
    }

    fn charge(&mut self, bytes: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            format!(
                "packages: the bundles of all channels exceed {CONFIG_MAP_BYTES} bytes; use a catalog image instead"
            )
        })?;
        Ok(())
    }

    fn read(&mut self, csv: &Value) -> Result<BundleMessage, String> {
        let (message, objects) = message(csv, self.crds)?;
        let content = BundleContent::of_objects(&objects, csv);
        self.charge(content.objects.iter().map(|object| object.len()).sum())?;
        Ok(BundleMessage { content: (self.pack)(&content), ..message })
    }
}

/// Returns a bundle without its content, and its objects.
fn message(csv: &Value, crds: &Definitions) -> Result<(BundleMessage, Vec<Value>), String> {
    let name = object::name(csv);
    let mut objects = vec![csv.clone()];
    for owned in Csv::new(csv).owned_crds() {
        let text = |key| object::text(owned, &[key]);
        let (plural, group) = text("name").split_once('.').unwrap_or_default();
        let gvk = Gvk::new(group, text("version"), text("kind"));
        let missing = || {
            let (crd, version, kind) = (text("name"), text("version"), text("kind"));
            format!(
                "customResourceDefinitions: {name} owns {crd} in version {version:?} as {kind:?}, which does not exist"
            )
        };
        let found = crds.get(&(gvk, plural.to_owned())).ok_or_else(missing)?;
        if !objects.contains(found) {
            objects.push((**found).clone());
        }
    }
    let mut provided_apis: Vec<Gvk> = objects[1..].iter().flat_map(crd_apis).collect();
    let view = Csv::new(csv);
    provided_apis.extend(services(view.owned_api_services()));
    let skips = object::list(csv, &["spec", "skips"]).iter().filter_map(Value::as_str);
    let message = BundleMessage {
        csv_name: name.to_owned(),
        version: view.version().to_owned(),
        skip_range: object::annotation(csv, "olm.skipRange").unwrap_or_default().to_owned(),
        replaces: view.replaces().to_owned(),
        skips: skips.map(str::to_owned).collect(),
        provided_apis,
        required_apis: required(view).chain(services(view.required_api_services())).collect(),
        ..BundleMessage::default()
    };
    Ok((message, objects))
}

/// Returns the APIs of the CustomResourceDefinitions that a CSV requires; the group is part of the name.
fn required(csv: Csv<'_>) -> impl Iterator<Item = Gvk> {
    csv.required_crds().iter().map(|crd| {
        let text = |key| object::text(crd, &[key]);
        let (_, group) = text("name").split_once('.').unwrap_or_default();
        Gvk::new(group, text("version"), text("kind"))
    })
}

/// Returns the aggregated APIs that a CSV owns or requires.
fn services(descriptions: &[Value]) -> impl Iterator<Item = Gvk> {
    descriptions.iter().map(|service| {
        let text = |key| object::text(service, &[key]);
        Gvk::new(text("group"), text("version"), text("kind"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(versions: &[&str]) -> Value {
        let versions: Vec<Value> = versions.iter().map(|name| json!({ "name": name, "served": true })).collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "roses.garden.example.com" },
            "spec": {
                "group": "garden.example.com", "names": { "kind": "Rose", "plural": "roses" }, "versions": versions,
            },
        })
    }

    fn catalog(packages: &str) -> Value {
        let csv = |version: &str, replaces: &str| {
            json!({
                "kind": "ClusterServiceVersion", "metadata": { "name": format!("rose.v{version}") },
                "spec": { "version": version, "replaces": replaces, "customresourcedefinitions": {
                    "owned": [{ "name": "roses.garden.example.com", "version": "v1", "kind": "Rose" }] } },
            })
        };
        let csvs = json!([csv("1.0.0", "rose.v0.9.0"), csv("1.1.0", "rose.v1.0.0")]).to_string();
        let crds = json!([crd(&["v1"])]).to_string();
        json!({ "data": { "clusterServiceVersions": csvs, "customResourceDefinitions": crds, "packages": packages } })
    }

    #[test]
    fn a_channel_is_the_chain_of_what_its_head_replaces() {
        let packages = "- packageName: rose\n  channels: [{name: stable, currentCSV: rose.v1.1.0}]\n";
        let (snapshot, _) = config_map(&catalog(packages)).unwrap();
        let rose = snapshot.package("rose").unwrap();
        assert_eq!(rose.default_channel, "stable");
        assert_eq!(count_packages(&catalog(packages)), Ok(1));
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
    fn a_bundle_brings_the_definition_with_the_version_and_kind_that_it_owns() {
        let csv = |version: &str, owned: &[&str]| {
            let owned =
                owned.iter().map(|v| json!({ "name": "roses.garden.example.com", "version": v, "kind": "Rose" }));
            json!({
                "kind": "ClusterServiceVersion", "metadata": { "name": format!("rose.v{version}") },
                "spec": { "version": version, "customresourcedefinitions": { "owned": owned.collect::<Vec<_>>() } },
            })
        };
        let read = |csv: Value, crds: &[Value]| {
            let packages =
                format!("- packageName: rose\n  channels: [{{name: a, currentCSV: {}}}]\n", object::name(&csv));
            config_map(&json!({ "data": {
                "clusterServiceVersions": json!([csv]).to_string(), "customResourceDefinitions": json!(crds).to_string(),
                "packages": packages,
            } }))
        };
        let crds = [crd(&["v1alpha1", "v1beta1"]), crd(&["v1"])];
        for (owned, versions) in [
            (&["v1beta1"][..], &["v1alpha1", "v1beta1"][..]),
            (&["v1"], &["v1"]),
            (&["v1alpha1", "v1beta1"], &["v1alpha1", "v1beta1"]),
        ] {
            let (snapshot, _) = read(csv("1.0.0", owned), &crds).unwrap();
            let content = snapshot.bundle("rose", "a", "rose.v1.0.0").unwrap();
            let objects = content.objects.iter().map(|o| serde_json::from_str::<Value>(o).unwrap());
            let brought: Vec<Value> = objects.filter(|o| o["kind"] == "CustomResourceDefinition").collect();
            assert_eq!(brought, [crd(versions)], "{owned:?}");
            let provided = &snapshot.entry("rose", "a", "rose.v1.0.0").unwrap().provided_apis;
            assert_eq!(provided.iter().map(|gvk| gvk.version.as_str()).collect::<Vec<_>>(), versions);
        }
        // A bundle that owns versions of both brings both.
        let (both, _) = read(csv("1.0.0", &["v1", "v1alpha1"]), &crds).unwrap();
        assert_eq!(both.bundle("rose", "a", "rose.v1.0.0").unwrap().objects.len(), 3);
        let error = read(csv("1.0.0", &["v2"]), &crds).unwrap_err();
        assert!(error.contains("rose.v1.0.0 owns roses.garden.example.com in version \"v2\" as \"Rose\""), "{error}");
        // The definition would be ambiguous: OLM serves nothing of such a catalog.
        let error = read(csv("1.0.0", &["v1"]), &[crd(&["v1"]), crd(&["v1", "v2"])]).unwrap_err();
        let twice = "can't add the same CRD twice in one configmap: garden.example.com/v1/Rose (roses)";
        assert_eq!(error, format!("customResourceDefinitions: {twice}"));
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (packages, words) in [
            ("- packageName: rose\n  channels: [{name: stable, currentCSV: tulip}]\n", "tulip"),
            ("- channels: []\n", "packageName"),
            ("rose: 1", "packages: not a list"),
            ("[", "packages: "),
        ] {
            let error = config_map(&catalog(packages)).unwrap_err();
            assert!(error.contains(words), "{error}");
            assert_eq!(count_packages(&catalog(packages)), Err(error));
        }
        let mut missing = catalog("- packageName: rose\n  channels: [{name: a, currentCSV: rose.v1.0.0}]\n");
        missing["data"]["customResourceDefinitions"] = Value::Null;
        assert!(config_map(&missing).unwrap_err().contains("roses.garden.example.com"));
        assert_eq!(config_map(&json!({})), Ok((Snapshot::default(), 0)));
    }

    /// A definition counts for each of its versions, and a bundle for each channel that contains it.
    #[test]
    fn a_config_map_is_not_multiplied() {
        let versions: Vec<String> = (0..10_000).map(|n| format!("v{n}")).collect();
        let crds = definitions(vec![crd(&versions.iter().map(String::as_str).collect::<Vec<_>>())]).unwrap();
        let shared: Vec<&Rc<Value>> = crds.values().collect();
        assert!(shared.len() == 10_000 && shared.iter().all(|crd| Rc::ptr_eq(crd, shared[0])));

        let skips: Vec<String> = (0..1000).map(|n| format!("rose.v0.0.{n}")).collect();
        let csv = json!({
            "kind": "ClusterServiceVersion", "metadata": { "name": "rose.v1.0.0" }, "spec": { "version": "1.0.0", "skips": skips },
        });
        let packages = |channels: usize| {
            let channels: String =
                (0..channels).map(|n| format!("  - {{name: c{n}, currentCSV: rose.v1.0.0}}\n")).collect();
            json!({ "data": {
                "clusterServiceVersions": json!([csv]).to_string(),
                "packages": format!("- packageName: rose\n  defaultChannel: c0\n  channels:\n{channels}"),
            } })
        };
        let (_, bytes) = config_map(&packages(100)).unwrap();
        assert!(bytes > 100 * (ENTRY_BYTES + 1000 * PART), "{bytes}: each channel takes as much");
        let error = config_map(&packages(5000)).unwrap_err();
        assert!(error.contains("exceed 67108864 bytes"), "{error}");
        let bomb = format!("- &a {}\n- [{}]\n", "x".repeat(10_000), vec!["*a"; 2500].join(", "));
        let error = config_map(&json!({ "data": { "clusterServiceVersions": bomb } })).unwrap_err();
        assert!(error.contains("bytes of text, including text that aliases repeat; replace"), "{error}");
    }
}
