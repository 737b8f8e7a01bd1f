//! Where the objects of a bundle are until a plan needs them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::BundleContent;
use crate::api::go_json::GoType;
use crate::api::object::{at, list, text};
use crate::bundle::property::{CSV_METADATA, PACKAGE};
use crate::yaml;

/// The objects of one bundle, or the bytes that hold them. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Content {
    /// At hand.
    Inline(BundleContent),
    /// In an `olm.bundle` blob of a catalog file.
    Blob {
        /// The file.
        file: Arc<[u8]>,
        /// Where in the file the blob is.
        range: std::ops::Range<usize>,
        /// Icon and description of the package, for the CSV that stands in for one that the blob leaves out.
        package: Arc<Value>,
    },
}

impl Content {
    /// Decodes the objects. The error says what is wrong with the blob.
    pub fn read(&self) -> Result<BundleContent, String> {
        match self {
            Self::Inline(content) => Ok(content.clone()),
            Self::Blob { file, range, package } => {
                let bytes = file.get(range.clone()).unwrap_or_default();
                let blob = yaml::first(bytes).map_err(|e| e.to_string())?;
                let content = BundleContent::of_properties(list(&blob, &["properties"]))?;
                if !content.csv_json.is_empty() {
                    return Ok(content);
                }
                let Some(csv) = stand_in(&blob, package)? else { return Ok(content) };
                let csv_json: Arc<str> = GoType::CLUSTER_SERVICE_VERSION.encode(&csv).into();
                let objects = if content.objects.is_empty() { Arc::from([csv_json.clone()]) } else { content.objects };
                Ok(BundleContent { csv_json, objects })
            }
        }
    }
}

/// The CSV that stands in for one that a catalog left out, made from its `olm.csv.metadata`
/// (reference: bundles and catalogs §3.2).
fn stand_in(blob: &Value, package: &Value) -> Result<Option<Value>, String> {
    let of_type = |type_: &'static str| {
        list(blob, &["properties"]).iter().filter(move |p| text(p, &["type"]) == type_).map(|p| at(p, &["value"]))
    };
    let found: Vec<&Value> = of_type(CSV_METADATA).collect();
    let metadata = match found[..] {
        [] => return Ok(None),
        [metadata] => metadata,
        _ => return Err(format!("expected at most 1 property of type {CSV_METADATA:?}, found {}", found.len())),
    };
    let mut meta = Map::new();
    meta.insert("name".to_owned(), at(blob, &["name"]).clone());
    for key in ["annotations", "labels"] {
        if !at(metadata, &[key]).is_null() {
            meta.insert(key.to_owned(), at(metadata, &[key]).clone());
        }
    }
    let version = of_type(PACKAGE).next().map_or("", |p| text(p, &["version"]));
    let mut spec = json!({
        "apiservicedefinitions": object_or_empty(at(metadata, &["apiServiceDefinitions"])),
        "customresourcedefinitions": object_or_empty(at(metadata, &["crdDescriptions"])),
        "displayName": text(metadata, &["displayName"]),
        "install": {"spec": {"deployments": null}, "strategy": "deployment"},
        "provider": object_or_empty(at(metadata, &["provider"])),
        "version": version,
    });
    let optional = ["installModes", "keywords", "links", "maintainers", "maturity", "minKubeVersion", "nativeAPIs"];
    for key in optional {
        if !at(metadata, &[key]).is_null() {
            spec[key] = at(metadata, &[key]).clone();
        }
    }
    let description = match text(metadata, &["description"]) {
        "" => text(package, &["description"]),
        own => own,
    };
    if !description.is_empty() {
        spec["description"] = description.into();
    }
    let icon = at(package, &["icon"]);
    if !icon.is_null() {
        spec["icon"] = json!([{"base64data": text(icon, &["base64data"]), "mediatype": text(icon, &["mediatype"])}]);
    }
    if !list(blob, &["relatedImages"]).is_empty() {
        spec["relatedImages"] = at(blob, &["relatedImages"]).clone();
    }
    Ok(Some(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": meta,
        "spec": spec,
    })))
}

fn object_or_empty(value: &Value) -> Value {
    if value.is_object() { value.clone() } else { json!({}) }
}
