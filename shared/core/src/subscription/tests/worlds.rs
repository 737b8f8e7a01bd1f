//! The recorded worlds: the real resolver's choice with real listers, and what OLM does with that choice.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::object::{self, Gvk};
use crate::bundle::Property;
use crate::catalog::{Builder, BundleMessage, Channel, Package, Snapshot};
use crate::resolver::{self, Broken, Catalog, Failure, Inputs};
use crate::subscription::install::{Need, needs};
use crate::subscription::installed::Namespace;
use crate::subscription::status::Draft;
use crate::testing;
use crate::world::{Reader, World};

#[derive(Deserialize)]
struct Line {
    id: String,
    world: Value,
    result: Outcome,
    #[serde(default)]
    distinct_results: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    resolve: Value,
    steps: Value,
}

/// Worlds with a different expected result, and why.
const DEVIATIONS: &[(&str, &str)] = &[
    ("w-069", "which of two broken channels is reported is random in OLM"),
    ("w-287", "the head is in two channels; which of them is random in OLM, and five runs agreed by chance"),
];

fn gvks(value: &Value, key: &str) -> Vec<Gvk> {
    let gvk = |v: &Value| {
        let [group, version, kind] = ["group", "version", "kind"].map(|k| object::text(v, &[k]));
        Gvk::new(group, version, kind)
    };
    object::list(value, &[key]).iter().map(gvk).collect()
}

fn snapshot(catalog: &Value, bundles: &Value) -> Snapshot {
    let mut builder = Builder::default();
    for package in object::list(catalog, &["packages"]) {
        let channels = object::list(package, &["channels"]).iter().map(|c| Channel {
            name: c.as_str().map_or_else(|| object::text(c, &["name"]).to_owned(), str::to_owned),
            ..Channel::default()
        });
        builder.package(Package {
            name: object::text(package, &["name"]).to_owned(),
            default_channel: object::text(package, &["defaultChannel"]).to_owned(),
            channels: channels.collect(),
            ..Package::default()
        });
    }
    for entry in object::list(catalog, &["bundles"]) {
        let text = |key: &str| object::text(entry, &[key]).to_owned();
        let bundle = &bundles[text("csvName")];
        let properties = |key: &str| {
            object::list(bundle, &[key])
                .iter()
                .map(|p| Property::new(object::text(p, &["type"]), p["value"].clone()))
                .collect::<Vec<_>>()
        };
        builder.bundle(BundleMessage {
            csv_name: text("csvName"),
            package: text("packageName"),
            channel: text("channelName"),
            version: object::text(bundle, &["version"]).to_owned(),
            replaces: text("replaces"),
            skip_range: text("skipRange"),
            skips: object::list(entry, &["skips"]).iter().filter_map(|s| s.as_str().map(str::to_owned)).collect(),
            bundle_path: object::text(bundle, &["bundlePath"]).to_owned(),
            provided_apis: gvks(bundle, "providedApis"),
            required_apis: gvks(bundle, "requiredApis"),
            dependencies: properties("dependencies"),
            properties: properties("properties"),
            ..BundleMessage::default()
        });
    }
    builder.build()
}

fn csv(csv: &Value, namespace: &str) -> Value {
    let text = |key: &str| object::text(csv, &[key]);
    let descriptions = |key: &str| -> Vec<Value> {
        let description = |d: &Value| {
            let part = |key: &str| object::text(d, &[key]).to_owned();
            json!({ "name": format!("{}.{}", part("plural"), part("group")), "version": part("version"), "kind": part("kind") })
        };
        let unreadable = Some(text("crd")).filter(|name| !name.is_empty()).map(|name| json!({ "name": name }));
        object::list(csv, &[key]).iter().map(description).chain(unreadable).collect()
    };
    let mut metadata =
        json!({ "namespace": namespace, "name": text("name"), "uid": text("name"), "resourceVersion": "1" });
    if csv["copied"] == true {
        metadata["labels"] = json!({ "olm.copiedFrom": "elsewhere" });
    }
    if let properties @ Value::Array(_) = &csv["propertiesAnnotation"] {
        let annotation = json!({ "properties": properties }).to_string();
        metadata["annotations"] = json!({ "operatorframework.io/properties": annotation });
    }
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": metadata,
        "spec": {
            "version": text("version"),
            "replaces": text("replaces"),
            "customresourcedefinitions": { "owned": descriptions("owned"), "required": descriptions("required") },
        },
        "status": { "phase": text("phase") },
    })
}

fn subscription(subscription: &Value, namespace: &str) -> Value {
    let text = |key: &str| object::text(subscription, &[key]);
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": { "namespace": namespace, "name": text("name"), "uid": text("name"), "resourceVersion": "1" },
        "spec": {
            "name": text("package"),
            "channel": text("channel"),
            "source": text("source"),
            "sourceNamespace": text("sourceNamespace"),
            "startingCSV": text("startingCSV"),
        },
        "status": { "installedCSV": text("statusInstalledCSV"), "currentCSV": text("statusCurrentCSV") },
    })
}

/// Returns our resolution and its result, in the form of the recording.
fn ours(world: &Value) -> (Result<Value, Failure>, Value) {
    let text = |key: &str| object::text(world, &[key]);
    let (namespace, global) = (text("namespace"), text("globalCatalogNamespace"));
    let is = |key: &str| world[key] == true;
    let mut objects = World::default();
    for one in object::list(world, &["csvs"]) {
        objects.apply(csv(one, namespace));
    }
    let reader = Reader::new(&objects);
    let subscriptions: Vec<Value> =
        object::list(world, &["subscriptions"]).iter().map(|s| subscription(s, namespace)).collect();
    let subscriptions: Vec<Draft<'_>> = subscriptions.iter().map(Draft::new).collect();
    let here = Namespace::read(&reader, namespace);
    let leaving = if is("operatorGroupFailForward") { here.left_behind() } else { BTreeSet::new() };
    let offered: Vec<&Value> = object::list(world, &["catalogs"])
        .iter()
        .filter(|c| object::text(c, &["namespace"]) == namespace || !is("operatorGroupExcludesGlobal"))
        .filter(|c| [namespace, global].contains(&object::text(c, &["namespace"])))
        .collect();
    let names = |c: &&'_ Value| (object::text(c, &["name"]).to_owned(), object::text(c, &["namespace"]).to_owned());
    let named: Vec<((String, String), &Value)> = offered.iter().map(|c| (names(c), *c)).collect();
    let snapshots: Vec<Snapshot> = offered.iter().map(|c| snapshot(c, &world["bundles"])).collect();
    let is_broken = |c: &Value| !object::text(c, &["listBundlesError"]).is_empty();
    let groups = world["operatorGroups"].as_u64().unwrap_or(1) as usize;
    let (installed, existing) = match here.installed(namespace, groups, &subscriptions, &leaving) {
        Ok(installed) => (installed, None),
        Err(existing) => (Vec::new(), Some(existing)),
    };
    let inputs = Inputs {
        namespace,
        subscriptions: subscriptions.iter().map(|s| s.requested(false)).collect(),
        catalogs: named
            .iter()
            .zip(&snapshots)
            .filter(|((_, c), _)| !is_broken(c))
            .map(|(((name, namespace), c), snapshot)| Catalog {
                name,
                namespace,
                priority: c["priority"].as_i64().unwrap_or_default(),
                snapshot,
            })
            .collect(),
        broken: named
            .iter()
            .filter(|(_, c)| is_broken(c))
            .map(|((name, namespace), c)| Broken {
                name,
                namespace,
                why: format!("failed to list bundles: {}", object::text(c, &["listBundlesError"])),
            })
            .chain(existing)
            .collect(),
        installed,
    };
    let resolution = match resolver::resolve(&inputs) {
        Ok(resolution) => resolution,
        Err(failure) => return (Err(failure), Value::Null),
    };
    let bundles = resolution.bundles.iter().map(|c| {
        json!({
            "name": c.entry.name, "package": c.entry.package, "channel": c.entry.channel,
            "defaultChannel": c.entry.is_default_channel,
            "catalog": { "name": c.catalog.name, "namespace": c.catalog.namespace },
            "replaces": c.replaces, "bundlePath": c.entry.bundle_path,
        })
    });
    let bundles: Value = bundles.collect();
    // Like OLM, this looks for any CSV of the name, including copies.
    let exists = |name: &str| object::list(world, &["csvs"]).iter().any(|c| c["name"] == name);
    let (mut lookups, mut new, mut updated) = (Vec::new(), Vec::new(), Vec::new());
    for Need { chosen, matches } in needs(&resolution, &subscriptions, exists) {
        let (entry, catalog) = (chosen.entry, chosen.catalog);
        lookups.push(json!([entry.name, entry.bundle_path, chosen.replaces, catalog.namespace, catalog.name]));
        if matches.is_empty() {
            let name = format!("{}-{}-{}-{}", entry.package, entry.channel, catalog.name, catalog.namespace);
            new.push(json!([name, entry.package, entry.channel, catalog.name, catalog.namespace, entry.name]));
        }
        let changed = matches.iter().filter(|s| s.planned().current_csv() != entry.name);
        updated.extend(changed.map(|s| json!([s.view.name(), entry.name])));
    }
    (Ok(bundles), json!([sorted(lookups), sorted(new), sorted(updated)]))
}

fn sorted(mut list: Vec<Value>) -> Vec<Value> {
    list.sort_by_key(ToString::to_string);
    list
}

/// Returns the recorded steps in the same form.
fn their_steps(steps: &Value) -> Value {
    let all = |key: &str, fields: &[&[&str]]| {
        let one = |v: &Value| fields.iter().map(|path| json!(object::text(v, path))).collect::<Value>();
        sorted(object::list(steps, &[key]).iter().map(one).collect())
    };
    let lookup: &[&[&str]] =
        &[&["identifier"], &["path"], &["replaces"], &["catalog", "namespace"], &["catalog", "name"]];
    let new: &[&[&str]] = &[&["name"], &["package"], &["channel"], &["source"], &["sourceNamespace"], &["startingCSV"]];
    let updated: &[&[&str]] = &[&["name"], &["currentCSV"]];
    json!([all("bundleLookups", lookup), all("newSubscriptions", new), all("updatedSubscriptions", updated)])
}

fn their_bundles(resolve: &Value) -> Value {
    let mut bundles = resolve["bundles"].clone();
    for bundle in bundles.as_array_mut().into_iter().flatten() {
        bundle.as_object_mut().unwrap().remove("startingCSV");
        for key in ["replaces", "bundlePath"] {
            if bundle[key].is_null() {
                bundle[key] = "".into();
            }
        }
    }
    bundles
}

/// The order of joined errors is arbitrary.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text.split([' ', ',', '[', ']', '"']).collect();
    words.sort_unstable();
    words
}

/// Returns what is wrong with the answer for a world; `None` when it is one of the recorded ones.
fn fault(Line { id: _, world, result, distinct_results }: &Line) -> Option<String> {
    let recorded: Vec<&Outcome> = distinct_results.iter().chain([result]).collect();
    let (resolved, steps) = ours(world);
    let is_equal = match &resolved {
        Ok(bundles) => {
            recorded.iter().any(|o| their_bundles(&o.resolve) == *bundles)
                && recorded.iter().any(|o| their_steps(&o.steps) == steps)
        }
        // Which of several contradictions is reported varies.
        Err(Failure::Unsatisfiable(_)) => recorded.iter().all(|o| !o.resolve["unsatisfied"].is_null()),
        Err(Failure::Error(message)) => {
            recorded.iter().any(|o| words(object::text(&o.resolve, &["error"])) == words(message))
        }
    };
    (!is_equal).then(|| format!("{resolved:?} {steps}\n   {} {}", result.resolve, their_steps(&result.steps)))
}

#[test]
fn worlds_as_recorded() {
    let Some(lines) = testing::recorded_lines::<Line>("resolver/worlds.jsonl") else { return };
    let mut checked = testing::Checked::default();
    for line in lines {
        let fault = fault(&line).filter(|_| !DEVIATIONS.iter().any(|(id, _)| *id == line.id));
        checked.add(&line.id, fault);
    }
    checked.end();
}

/// Two OperatorGroups, an unreadable CSV, and a catalog that does not respond: OLM reports them together.
#[test]
fn errors_of_several_sources_are_reported_together() {
    let catalog = |name: &str| json!({ "name": name, "namespace": "olm", "packages": [], "bundles": [], "listBundlesError": "refused" });
    let world = |groups: u64, csvs: Value, catalogs: Value| {
        json!({ "namespace": "app", "globalCatalogNamespace": "olm", "operatorGroups": groups, "csvs": csvs,
                "catalogs": catalogs, "bundles": {}, "subscriptions": [
            { "name": "s", "package": "p", "channel": "c", "source": "tea", "sourceNamespace": "olm" }] })
    };
    let told = |world: Value| match ours(&world).0 {
        Err(Failure::Error(message)) => message,
        other => panic!("{other:?}"),
    };
    let existing = "error using catalogsource app/@existing: ";
    assert_eq!(told(world(2, json!([]), json!([]))), format!("{existing}found 2 operatorGroups, expected 1"));
    let both = format!(
        "[{existing}found 2 operatorGroups, expected 1, error using catalogsource olm/tea: failed to list bundles: refused]"
    );
    assert_eq!(told(world(2, json!([]), json!([catalog("tea")]))), both);
    let unreadable = format!(
        "[{existing}error parsing crd name: x, error using catalogsource olm/tea: failed to list bundles: refused]"
    );
    let mut world = world(1, json!([]), json!([catalog("tea")]));
    world["csvs"] = json!([{ "name": "a.v1", "version": "1.0.0", "crd": "x" }]);
    assert_eq!(told(world), unreadable);
}
