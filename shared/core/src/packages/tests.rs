use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::catalog::{Loaded, index_files};
use crate::testing::{self, files};

const CATALOG: &str = "
schema: olm.package
name: rose
defaultChannel: stable
icon: {base64data: PHN2Zy8+, mediatype: image/svg+xml}
---
schema: olm.channel
package: rose
name: fast
entries: [{name: rose.v2.0.0, replaces: rose.v1.0.0}, {name: rose.v1.0.0}]
---
schema: olm.channel
package: rose
name: old
entries: [{name: rose.v0.1.0}, {name: rose.v0.9.0, replaces: rose.v0.1.0}]
---
schema: olm.channel
package: rose
name: stable
entries: [{name: rose.v1.0.0}]
---
schema: olm.bundle
package: rose
name: rose.v1.0.0
image: registry.example.com/rose:v1
properties:
- {type: olm.package, value: {packageName: rose, version: 1.0.0}}
- type: olm.csv.metadata
  value:
    displayName: Rose
    annotations: {capabilities: Seamless Upgrades}
    labels: {operatorframework.io/arch.s390x: supported, tier: gold}
    provider: {name: 'Garden, Inc.', url: https://garden.example.com}
    crdDescriptions:
      owned: [{name: roses.garden.example.com, kind: Rose, version: v1, description: A rose, specDescriptors: [{path: size}]}]
    installModes: [{type: AllNamespaces, supported: true}]
    minKubeVersion: 1.30.0
    maintainers: [{name: Ada, email: ada@example.com}]
    links: [{name: Source, url: https://example.com/rose}]
    keywords: [flower]
relatedImages: [{name: pot, image: registry.example.com/pot:v1}]
---
schema: olm.bundle
package: rose
name: rose.v2.0.0
image: registry.example.com/rose:v2
properties:
- {type: olm.gvk, value: {group: garden.example.com, kind: Rose, version: v1}}
- {type: olm.gvk.required, value: {group: garden.example.com, kind: Pot, version: v1}}
- {type: olm.package, value: {packageName: rose, version: 2.0.0}}
---
schema: olm.bundle
package: rose
name: rose.v0.1.0
image: registry.example.com/rose:v0
properties: [{type: olm.package, value: {packageName: rose, version: 0.1.0}}]
---
schema: olm.bundle
package: rose
name: rose.v0.9.0
image: registry.example.com/rose:v0
properties: [{type: olm.package, value: {packageName: rose, version: 0.9.0}}, {type: olm.deprecated, value: {}}]
---
schema: olm.deprecations
package: rose
entries:
- {reference: {schema: olm.package}, message: grow tulips}
- {reference: {schema: olm.channel, name: fast}, message: too fast}
- {reference: {schema: olm.bundle, name: rose.v0.1.0}, message: has thorns}
";

fn load(text: &str) -> Loaded {
    index_files(&[crate::bundle::File::new("catalog.yaml", text.as_bytes().to_vec())]).load()
}

fn info() -> CatalogInfo {
    let mut source = testing::catalog_source(
        "olm",
        "market",
        &json!({ "displayName": "Market", "publisher": "Town", "priority": 5, "sourceType": "grpc" }),
    );
    source["metadata"]["labels"] = json!({ "team": "a", "tier": "silver" });
    source["metadata"]["creationTimestamp"] = "2026-11-21T12:00:00Z".into();
    CatalogInfo::from_source(&source)
}

#[test]
fn a_manifest_has_the_fields_of_packageserver() {
    let Loaded { snapshot, findings, .. } = load(CATALOG);
    assert!(findings.is_empty(), "{findings:?}");
    let (manifest, problems) = manifest(&info(), &snapshot, snapshot.package("rose").unwrap());
    assert!(problems.is_empty(), "{problems:?}");
    let desc = json!({
        "displayName": "Rose", "version": "1.0.0",
        "provider": { "name": "Garden, Inc.", "url": "https://garden.example.com" },
        "annotations": { "capabilities": "Seamless Upgrades" }, "keywords": ["flower"],
        "links": [{ "name": "Source", "url": "https://example.com/rose" }],
        "maintainers": [{ "name": "Ada", "email": "ada@example.com" }],
        "installModes": [{ "type": "AllNamespaces", "supported": true }],
        "customresourcedefinitions": { "owned": [
            { "name": "roses.garden.example.com", "version": "v1", "kind": "Rose", "description": "A rose" },
        ] },
        "apiservicedefinitions": {}, "minKubeVersion": "1.30.0", "relatedImages": ["registry.example.com/pot:v1"],
    });
    // Without a ClusterServiceVersion the description is that of the index.
    let plain = |name: &str, version: &str, definitions: serde_json::Value| {
        json!({
            "displayName": name, "version": version, "provider": {}, "apiservicedefinitions": {},
            "customresourcedefinitions": definitions,
        })
    };
    let api = |kind: &str| json!([{ "name": format!("{}.garden.example.com", kind.to_lowercase()), "version": "v1", "kind": kind }]);
    let expected = json!({
        "apiVersion": "packages.operators.coreos.com/v1",
        "kind": "PackageManifest",
        "metadata": {
            "creationTimestamp": "2026-11-21T12:00:00Z", "name": "rose", "namespace": "olm",
            "labels": {
                "catalog": "market", "catalog-namespace": "olm", "team": "a", "tier": "gold",
                "provider": "Garden, Inc.", "provider-url": "https://garden.example.com",
                "operatorframework.io/arch.s390x": "supported", "operatorframework.io/os.linux": "supported",
            },
        },
        "spec": {},
        "status": {
            "catalogSource": "market", "catalogSourceDisplayName": "Market", "catalogSourcePublisher": "Town",
            "catalogSourceNamespace": "olm", "packageName": "rose", "defaultChannel": "stable",
            "provider": { "name": "Garden, Inc.", "url": "https://garden.example.com" },
            "deprecation": { "message": "grow tulips" },
            "channels": [
                {
                    "name": "fast", "currentCSV": "rose.v2.0.0", "deprecation": { "message": "too fast" },
                    "currentCSVDesc": plain("rose", "2.0.0", json!({ "owned": api("Rose"), "required": api("Pot") })),
                    "entries": [{ "name": "rose.v2.0.0", "version": "2.0.0" }, { "name": "rose.v1.0.0", "version": "1.0.0" }],
                },
                {
                    "name": "old", "currentCSV": "rose.v0.9.0", "currentCSVDesc": plain("rose", "0.9.0", json!({})),
                    // A bundle with the property olm.deprecated is not listed.
                    "entries": [{ "name": "rose.v0.1.0", "version": "0.1.0", "deprecation": { "message": "has thorns" } }],
                },
                {
                    "name": "stable", "currentCSV": "rose.v1.0.0", "currentCSVDesc": desc,
                    "entries": [{ "name": "rose.v1.0.0", "version": "1.0.0" }],
                },
            ],
        },
    });
    let actual = manifest.to_json();
    assert_eq!(actual, expected, "{}", serde_json::to_string_pretty(&actual).unwrap());
    let icon = icon(&snapshot, snapshot.package("rose").unwrap()).unwrap();
    assert_eq!((icon.media_type.as_str(), icon.data.as_slice()), ("image/svg+xml", &b"<svg/>"[..]));
    assert_eq!(icon.etag, "\"rose.stable.rose.v1.0.0\"");
}

#[test]
fn plain_bundles_describe_their_definitions_and_images() {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "roses.garden.example.com" },
        "spec": {
            "group": "garden.example.com", "names": { "kind": "Rose", "plural": "roses" },
            "versions": [{ "name": "v1", "served": true }, { "name": "v0", "served": false }],
        },
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "rose" },
        "spec": { "template": { "spec": {
            "containers": [{ "image": "b" }, { "image": "a" }], "initContainers": [{ "image": "a" }, { "name": "no image" }],
        } } },
    });
    let object = |object: &serde_json::Value| {
        let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, object.to_string());
        format!("- {{type: olm.bundle.object, value: {{data: {data}}}}}\n")
    };
    let text = format!(
        "schema: olm.package\nname: rose\ndefaultChannel: c\n---\nschema: olm.channel\npackage: rose\nname: c\n\
         entries: [{{name: rose.v1.0.0}}]\n---\nschema: olm.bundle\npackage: rose\nname: rose.v1.0.0\nimage: a/b:c\nproperties:\n\
         - {{type: olm.package, value: {{packageName: rose, version: 1.0.0}}}}\n{}{}",
        object(&definition),
        object(&deployment)
    );
    let Loaded { snapshot, findings, .. } = load(&text);
    assert!(snapshot.package("rose").is_some(), "{findings:?}");
    let (manifest, _) = manifest(&CatalogInfo::default(), &snapshot, snapshot.package("rose").unwrap());
    let desc = &manifest.status.channels[0].current_csv_desc;
    assert_eq!(
        desc.customresourcedefinitions,
        json!({ "owned": [{ "name": "roses.garden.example.com", "version": "v1", "kind": "Rose" }] })
    );
    assert_eq!(desc.related_images, ["a", "b"]);
    assert!(manifest.metadata.labels.keys().all(|key| !key.starts_with("catalog")), "there is no CatalogSource");
}

#[test]
fn catalogs_are_those_of_catalog_sources_and_local_directories() {
    use crate::api::catalog_source::Target;
    use crate::world::{CatalogFact, ConnectionState, Fact, FactKey};

    let snapshot = Arc::new(load(CATALOG).snapshot);
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let source = |name: &str| testing::catalog_source("olm", name, &json!({ "displayName": name }));
    let mut world = testing::world(&[source("read"), source("unread")]);
    let read = CatalogFact {
        snapshot: Some(snapshot.clone()),
        ..CatalogFact::new(Target::Address("a:1".to_owned()), ConnectionState::TransientFailure, now)
    };
    let key = |name: &str| FactKey::Catalog("olm".to_owned(), name.to_owned());
    world.learn(key("read"), Some(Fact::Catalog(read.clone())));
    world.learn(key("deleted"), Some(Fact::Catalog(read)));
    world.learn(key("local"), Some(Fact::Catalog(CatalogFact::local(snapshot, now))));
    let known = catalogs(&world);
    let names: Vec<(&str, &str)> =
        known.iter().map(|catalog| (catalog.info.name.as_str(), catalog.info.display_name.as_str())).collect();
    assert_eq!(names, [("local", ""), ("read", "read")]);
    assert_eq!(known[0].info.created, "2026-11-21T12:00:00Z");
}

#[test]
fn every_package_of_the_sample_catalogs_has_a_manifest() {
    let Some(folders) = testing::entries("catalogs") else { return };
    let (mut packages, mut described) = (0, 0);
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let data = testing::data().unwrap();
        let snapshot = index_files(&files(&data, &format!("catalogs/{name}"))).load().snapshot;
        for package in snapshot.packages().values() {
            let (manifest, problems) = manifest(&CatalogInfo::named("olm", &name), &snapshot, package);
            assert!(problems.is_empty(), "{name}: {problems:?}");
            let channels: Vec<&str> = manifest.status.channels.iter().map(|c| c.name.as_str()).collect();
            let expected: Vec<&str> = package.channels.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(channels, expected, "{name}: {}", package.name);
            for channel in &manifest.status.channels {
                assert!(!channel.current_csv.is_empty() && !channel.current_csv_desc.version.is_empty(), "{name}");
                described += usize::from(!channel.current_csv_desc.provider.name.is_empty());
            }
            packages += 1;
        }
    }
    assert!(packages > 20 && described > 20, "{packages} packages, {described} described channels");
}
