//! Converts a package of a catalog.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::manifest::{
    AppLink, CatalogEntry, Channel, Deprecation, Description, Maintainer, Metadata, PackageManifest, Status,
};
use super::{CatalogInfo, KIND};
use crate::api::cluster_service_version::Csv;
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::object::{self, Gvk, at, list, text};
use crate::catalog::{BundleContent, Entry, Package, Snapshot, graph};

/// The prefix of labels of supported operating systems, and the label that OLM adds if there is none.
const OS: (&str, &str) = ("operatorframework.io/os.", "operatorframework.io/os.linux");
/// The prefix of labels of supported architectures, and the label that OLM adds if there is none.
const ARCH: (&str, &str) = ("operatorframework.io/arch.", "operatorframework.io/arch.amd64");
/// The value of these labels.
const SUPPORTED: &str = "supported";
/// The property of a bundle that OLM neither installs nor lists.
const DEPRECATED: &str = "olm.deprecated";

/// Returns the PackageManifest of a package, and why the objects of bundles could not be read.
pub fn manifest(info: &CatalogInfo, snapshot: &Snapshot, package: &Package) -> (PackageManifest, Vec<String>) {
    let mut problems = Vec::new();
    let mut labels = info.labels.clone();
    if !info.name.is_empty() {
        labels.insert("catalog".to_owned(), info.name.clone());
        labels.insert("catalog-namespace".to_owned(), info.namespace.clone());
    }
    let (mut provider, mut of_csv) = (AppLink::default(), BTreeMap::new());
    let mut channels: Vec<Channel> = Vec::new();
    for channel in &package.channels {
        let Some(head) = channel.entry(&channel.head) else { continue };
        let content = snapshot.read_bundle(&package.name, &channel.name, &head.name).unwrap_or_else(|why| {
            problems.push(format!("{KIND} {}: cannot read bundle {}: {why}", package.name, head.name));
            None
        });
        let content = content.unwrap_or_default();
        // The catalog was validated: only its generated ClusterServiceVersions can be empty.
        let csv: Value = serde_json::from_str(&content.csv_json).unwrap_or_default();
        let description = describe(&csv, &content, head);
        if channels.is_empty() || channel.name == package.default_channel {
            provider = description.provider.clone();
            of_csv = strings(&csv, &["metadata", "labels"]);
        }
        channels.push(Channel {
            name: channel.name.clone(),
            current_csv: head.name.clone(),
            current_csv_desc: description,
            deprecation: Deprecation::from_message(channel.deprecation.as_ref()),
            entries: entries(&channel.entries),
        });
    }
    labels.insert("provider".to_owned(), provider.name.clone());
    labels.insert("provider-url".to_owned(), provider.url.clone());
    labels.extend(of_csv);
    for (prefix, usual) in [OS, ARCH] {
        if !labels.keys().any(|key| key.starts_with(prefix)) {
            labels.insert(usual.to_owned(), SUPPORTED.to_owned());
        }
    }
    let metadata = Metadata {
        creation_timestamp: info.created.clone(),
        labels,
        name: package.name.clone(),
        namespace: info.namespace.clone(),
    };
    let status = Status {
        catalog_source: info.name.clone(),
        catalog_source_display_name: info.display_name.clone(),
        catalog_source_publisher: info.publisher.clone(),
        catalog_source_namespace: info.namespace.clone(),
        provider,
        package_name: package.name.clone(),
        deprecation: Deprecation::from_message(package.deprecation.as_ref()),
        channels,
        default_channel: package.default_channel.clone(),
    };
    (PackageManifest { metadata, spec: Map::new(), status }, problems)
}

/// Returns the versions, newest first.
fn entries(entries: &[Entry]) -> Vec<CatalogEntry> {
    let is_listed = |entry: &&Entry| !entry.bundle_properties.iter().any(|p| p.type_ == DEPRECATED);
    let mut listed: Vec<&Entry> = entries.iter().filter(is_listed).collect();
    listed.sort_by(|a, b| graph::newest_first(a, b));
    let convert = |entry: &Entry| CatalogEntry {
        name: entry.name.clone(),
        version: entry.version_text.clone(),
        deprecation: Deprecation::from_message(entry.deprecation.as_ref()),
    };
    listed.into_iter().map(convert).collect()
}

/// Returns the description of a bundle: from its ClusterServiceVersion, else from its objects and the catalog's index.
fn describe(csv: &Value, content: &BundleContent, entry: &Entry) -> Description {
    if csv.is_null() {
        return of_plain(content, entry);
    }
    let view = Csv::new(csv);
    let of = |field: &str| text(csv, &["spec", field]).to_owned();
    let both = |owned: &[Value], required: &[Value], fields: &[&str]| {
        let trimmed = |all: &[Value]| all.iter().map(|one| with_fields(one, fields)).collect::<Vec<Value>>();
        without_empty(json!({ "owned": trimmed(owned), "required": trimmed(required) }))
    };
    let version = Some(view.version()).filter(|version| !version.is_empty()).unwrap_or(&entry.version_text);
    Description {
        display_name: view.display_name().to_owned(),
        version: version.to_owned(),
        provider: link(at(csv, &["spec", "provider"])),
        annotations: strings(csv, &["metadata", "annotations"]),
        keywords: list(csv, &["spec", "keywords"]).iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        links: list(csv, &["spec", "links"]).iter().map(link).collect(),
        maintainers: list(csv, &["spec", "maintainers"])
            .iter()
            .map(|one| Maintainer { name: text(one, &["name"]).to_owned(), email: text(one, &["email"]).to_owned() })
            .collect(),
        maturity: of("maturity"),
        description: of("description"),
        install_modes: view.install_modes().to_vec(),
        customresourcedefinitions: both(
            view.owned_crds(),
            view.required_crds(),
            &["name", "version", "kind", "displayName", "description"],
        ),
        apiservicedefinitions: both(
            view.owned_api_services(),
            view.required_api_services(),
            &["name", "group", "version", "kind", "displayName", "description"],
        ),
        native_apis: list(csv, &["spec", "nativeAPIs"]).to_vec(),
        min_kube_version: of("minKubeVersion"),
        related_images: images(csv, content),
    }
}

/// Returns the description of a bundle without a ClusterServiceVersion: of the format `k8s+v1`, or an image whose catalog
/// contains nothing else about it.
fn of_plain(content: &BundleContent, entry: &Entry) -> Description {
    let objects: Vec<Value> = content.objects.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
    let mut owned = Vec::new();
    for definition in objects.iter().filter(|o| object::kind(o) == "CustomResourceDefinition") {
        let view = CustomResourceDefinition::new(definition);
        let versions = view.served();
        owned.extend(versions.map(|v| json!({ "name": view.name(), "version": v.name(), "kind": view.kind() })));
    }
    if owned.is_empty() {
        owned.extend(entry.provided_apis.iter().map(api));
    }
    let required: Vec<Value> = entry.required_apis.iter().map(api).collect();
    Description {
        display_name: entry.package.clone(),
        version: entry.version_text.clone(),
        customresourcedefinitions: without_empty(json!({ "owned": owned, "required": required })),
        apiservicedefinitions: json!({}),
        related_images: images(&Value::Null, content),
        ..Description::default()
    }
}

/// Returns an API whose plural is unknown. kubectl accepts the kind in lower case as a name of the resource.
fn api(gvk: &Gvk) -> Value {
    let name = format!("{}.{}", gvk.kind.to_lowercase(), gvk.group);
    json!({ "name": name, "version": gvk.version, "kind": gvk.kind })
}

/// Returns the images of the operator's pods and those that the ClusterServiceVersion declares.
fn images(csv: &Value, content: &BundleContent) -> Vec<String> {
    let mut images = BTreeSet::new();
    let mut of_pods = |template: &Value| {
        for containers in ["containers", "initContainers"] {
            let containers = list(template, &["template", "spec", containers]).iter();
            images.extend(containers.map(|container| text(container, &["image"]).to_owned()));
        }
    };
    let view = Csv::new(csv);
    view.deployments().iter().for_each(|deployment| of_pods(at(deployment, &["spec"])));
    if csv.is_null() {
        let objects = content.objects.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
        objects.for_each(|object| of_pods(at(&object, &["spec"])));
    }
    images.extend(view.related_images().iter().map(|image| text(image, &["image"]).to_owned()));
    images.retain(|image| !image.is_empty());
    images.into_iter().collect()
}

fn link(json: &Value) -> AppLink {
    AppLink { name: text(json, &["name"]).to_owned(), url: text(json, &["url"]).to_owned() }
}

fn strings(json: &Value, path: &[&str]) -> BTreeMap<String, String> {
    object::entries(json, path).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Returns the object with only these fields.
fn with_fields(json: &Value, fields: &[&str]) -> Value {
    let found = fields.iter().filter(|field| !text(json, &[field]).is_empty());
    Value::Object(found.map(|field| ((*field).to_owned(), json[*field].clone())).collect())
}

fn without_empty(mut json: Value) -> Value {
    if let Some(fields) = json.as_object_mut() {
        fields.retain(|_, value| value.as_array().is_none_or(|items| !items.is_empty()));
    }
    json
}

/// The icon of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icon {
    /// `image/svg+xml`
    pub media_type: String,
    /// The image.
    pub data: Vec<u8>,
    /// Identifies the image: it changes with the channel head.
    pub etag: String,
}

/// Returns the first icon of the default channel's head; `None` if it has none.
pub fn icon(snapshot: &Snapshot, package: &Package) -> Option<Icon> {
    let channel = package.channel(&package.default_channel).or_else(|| package.channels.first())?;
    let csv: Value =
        serde_json::from_str(&snapshot.bundle(&package.name, &channel.name, &channel.head)?.csv_json).ok()?;
    let icon = list(&csv, &["spec", "icon"]).first()?;
    // The data of some bundles is wrapped.
    let encoded: String = text(icon, &["base64data"]).chars().filter(|c| !c.is_whitespace()).collect();
    let data = STANDARD.decode(encoded).ok().filter(|data| !data.is_empty())?;
    let etag = format!("\"{}.{}.{}\"", package.name, channel.name, channel.head);
    Some(Icon { media_type: text(icon, &["mediatype"]).to_owned(), data, etag })
}
