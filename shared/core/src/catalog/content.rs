//! The objects of a bundle, which stay compressed or in the catalog's files until a plan needs them.

use std::io::{Read, Write};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde_json::{Map, Value, json};

use super::BundleContent;
use super::stored::Span;
use crate::api::go_json::GoType;
use crate::api::object::{at, list, text};
use crate::bundle::encoded_again;
use crate::bundle::property::{CSV_METADATA, PACKAGE};

/// The objects of one bundle, or the bytes that hold them. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Content {
    /// In memory, compressed: a catalog contains hundreds of bundles, of which few are ever installed.
    Packed(Packed),
    /// In an `olm.bundle` blob of a catalog file.
    Blob {
        /// Location of the blob.
        bundle: Span,
        /// Location of the package's blob. It describes the CSV that is generated when the blob contains none.
        package: Option<Span>,
    },
}

/// Compressed objects. Equal objects give equal bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The texts, each terminated by NUL, compressed with deflate.
    bytes: Arc<[u8]>,
    /// Index of the CSV among the texts.
    csv: Option<usize>,
    /// Whether the CSV is the last text and not one of the objects.
    csv_apart: bool,
}

impl Content {
    /// Compresses objects.
    pub fn pack(content: &BundleContent) -> Self {
        let mut csv = content.objects.iter().position(|o| *o == content.csv_json);
        let csv_apart = csv.is_none() && !content.csv_json.is_empty();
        let apart = csv_apart.then_some(&content.csv_json);
        if csv_apart {
            csv = Some(content.objects.len());
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory does not fail.
        let written = content.objects.iter().chain(apart).try_for_each(|text| {
            encoder.write_all(text.as_bytes())?;
            encoder.write_all(&[0])
        });
        let bytes = written.and_then(|()| encoder.finish()).unwrap_or_default();
        Self::Packed(Packed { bytes: bytes.into(), csv, csv_apart })
    }

    /// Returns whether both hold the same objects. Unreadable content is equal to nothing.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Packed(a), Self::Packed(b)) => a == b,
            (a, b) => a.read().is_ok_and(|a| b.read().is_ok_and(|b| a == b)),
        }
    }

    /// Decodes the objects.
    ///
    /// # Errors
    /// The blob cannot be read again because its file has changed, or its objects cannot be decoded: the message states what is wrong.
    pub fn read(&self) -> Result<BundleContent, String> {
        match self {
            Self::Packed(packed) => packed.unpack(),
            Self::Blob { bundle, package } => {
                let blob = bundle.value()?;
                let content = BundleContent::of_properties(list(&blob, &["properties"]))?;
                if !content.csv_json.is_empty() {
                    return Ok(content);
                }
                let package = package.as_ref().map_or(Ok(Value::Null), Span::value)?;
                let Some(csv) = stand_in(&blob, &package)? else { return Ok(content) };
                let csv_json: Arc<str> = GoType::CLUSTER_SERVICE_VERSION.encode(&csv).into();
                let objects = if content.objects.is_empty() { Arc::from([csv_json.clone()]) } else { content.objects };
                Ok(BundleContent { csv_json, objects, is_plain: false })
            }
        }
    }
}

impl Packed {
    fn unpack(&self) -> Result<BundleContent, String> {
        let mut text = String::new();
        DeflateDecoder::new(&*self.bytes).read_to_string(&mut text).map_err(|e| e.to_string())?;
        let mut objects: Vec<Arc<str>> = text.split_terminator('\0').map(Arc::from).collect();
        let csv_json = self.csv.and_then(|at| objects.get(at)).cloned().unwrap_or_default();
        if self.csv_apart {
            objects.pop();
        }
        Ok(BundleContent { csv_json, objects: objects.into(), is_plain: false })
    }
}

/// Generates the CSV of a bundle without one from its `olm.csv.metadata` property (olm-behaviour/opm.md#registry-protocol).
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
        let data = encoded_again(text(icon, &["base64data"]));
        spec["icon"] = json!([{"base64data": data, "mediatype": text(icon, &["mediatype"])}]);
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
