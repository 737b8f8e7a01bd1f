//! The objects of a bundle as JSON texts, as a catalog serves them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::api::hash::hex;

use super::property::BUNDLE_OBJECT;
use crate::api::object::text;
use crate::{go_format, yaml};

/// The objects of a bundle. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundleContent {
    /// The CSV as JSON; empty when the bundle has none.
    pub csv_json: Arc<str>,
    /// Every object as JSON, including the CSV, in the order in which a catalog serves them.
    pub objects: Arc<[Arc<str>]>,
    /// Whether it was unpacked from a bundle of type `k8s+v1`.
    pub is_plain: bool,
}

impl BundleContent {
    /// Converts objects in the order of their files to JSON in opm's order, which is that of their base64.
    pub(crate) fn of_objects(objects: &[Value], csv: &Value) -> Self {
        let mut encoded: Vec<(String, Arc<str>, bool)> = objects
            .iter()
            .map(|object| {
                let json = go_format::json(object);
                (STANDARD.encode(&json), json.into(), object == csv)
            })
            .collect();
        encoded.sort();
        let csv_json = encoded.iter().find(|(.., is_csv)| *is_csv).map(|(_, json, _)| json.clone());
        let objects = encoded.into_iter().map(|(_, json, _)| json).collect();
        Self { csv_json: csv_json.unwrap_or_default(), objects, is_plain: false }
    }

    /// Returns a digest, `sha256:…`, of all objects, independent of their order.
    pub fn digest(&self) -> String {
        let mut objects: Vec<&Arc<str>> = self.objects.iter().collect();
        objects.sort_unstable();
        let mut digest = Sha256::new();
        for object in objects {
            digest.update(object.len().to_string());
            digest.update(":");
            digest.update(object.as_bytes());
        }
        format!("sha256:{}", hex(&digest.finalize()))
    }

    /// Converts objects in the order of their files, which is preserved as when a bundle is unpacked.
    pub(crate) fn in_order(objects: &[Value], csv: &Value) -> Self {
        let objects: Arc<[Arc<str>]> = objects.iter().map(|object| go_format::json(object).into()).collect();
        Self { csv_json: go_format::json(csv).into(), objects, is_plain: false }
    }

    /// Decodes the `olm.bundle.object` properties of a blob, base64 of YAML or JSON, in their order; the first CSV is the
    /// CSV.
    pub(crate) fn of_properties(properties: &[Value]) -> Result<Self, String> {
        let mut content = Self::default();
        let mut objects = Vec::new();
        for property in properties.iter().filter(|p| text(p, &["type"]) == BUNDLE_OBJECT) {
            let bytes = decode_data(text(property, &["value", "data"]))
                .map_err(|e| format!("the data of an {BUNDLE_OBJECT} property: {e}"))?;
            let object = yaml::first(&bytes).map_err(|e| format!("an object of the bundle cannot be read: {e}"))?;
            // JSON is served unchanged.
            let json: Arc<str> = match String::from_utf8(bytes) {
                Ok(text) if text.starts_with('{') => text.into(),
                _ => go_format::json(&object).into(),
            };
            if content.csv_json.is_empty() && is_csv(&object) {
                content.csv_json = json.clone();
            }
            objects.push(json);
        }
        content.objects = objects.into();
        Ok(content)
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.csv_json.is_empty()
    }
}

/// Decodes a `[]byte` of Go's JSON: base64, in which line breaks are ignored.
pub(crate) fn decode_data(data: &str) -> Result<Vec<u8>, String> {
    let decoded = if data.contains(['\n', '\r']) {
        STANDARD.decode(data.replace(['\n', '\r'], ""))
    } else {
        STANDARD.decode(data)
    };
    decoded.map_err(|e| format!("not base64: {e}"))
}

/// Encodes bytes in base64 as opm does: without line breaks. Invalid base64 is not changed.
pub(crate) fn encoded_again(data: &str) -> String {
    decode_data(data).map_or_else(|_| data.to_owned(), |bytes| STANDARD.encode(bytes))
}

pub(crate) fn is_csv(object: &Value) -> bool {
    text(object, &["kind"]) == "ClusterServiceVersion"
}
