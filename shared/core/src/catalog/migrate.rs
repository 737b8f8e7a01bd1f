//! Migrates older blobs to newer forms, like `opm render --migrate-level` (olm-behaviour/opm.md#rendering).

use std::str::FromStr;

use serde_json::{Map, Value, json};

use crate::api::go_json::GoType;
use crate::api::object::{at, list, text};
use crate::bundle::property::{BUNDLE_OBJECT, CSV_METADATA};
use crate::bundle::{BundleContent, decode_data, is_csv};
use crate::yaml;

/// How far blobs are migrated. Each level includes the previous ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MigrationLevel {
    /// No migration.
    #[default]
    None,
    /// Bundles with an image carry an `olm.csv.metadata` property instead of their objects.
    BundleObjectToCsvMetadata,
}

impl MigrationLevel {
    /// The names of the levels on the command line.
    pub const NAMES: [&'static str; 3] = ["none", "bundle-object-to-csv-metadata", "all"];

    /// Migrates a blob.
    pub fn migrate(self, blob: &mut Value) {
        if self >= Self::BundleObjectToCsvMetadata && text(blob, &["schema"]) == "olm.bundle" {
            objects_to_metadata(blob);
        }
    }
}

impl FromStr for MigrationLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::None),
            "bundle-object-to-csv-metadata" | "all" => Ok(Self::BundleObjectToCsvMetadata),
            _ => Err(format!("unknown migration level {text:?}: expected one of {}", Self::NAMES.join(", "))),
        }
    }
}

fn objects_to_metadata(bundle: &mut Value) {
    let is_of = |property: &Value, type_: &str| text(property, &["type"]) == type_;
    let properties = list(bundle, &["properties"]);
    if text(bundle, &["image"]).is_empty() || properties.iter().any(|p| is_of(p, CSV_METADATA)) {
        return;
    }
    let Some(csv) = csv(properties) else { return };
    let mut kept: Vec<Value> = properties.iter().filter(|p| !is_of(p, BUNDLE_OBJECT)).cloned().collect();
    kept.push(json!({"type": CSV_METADATA, "value": metadata(&csv)}));
    bundle["properties"] = kept.into();
}

/// Returns the first CSV among the objects in the properties.
pub(super) fn csv(properties: &[Value]) -> Option<Value> {
    let objects = properties.iter().filter(|p| text(p, &["type"]) == BUNDLE_OBJECT);
    objects.filter_map(|p| yaml::first(&decode_data(text(p, &["value", "data"])).ok()?).ok()).find(is_csv)
}

/// Returns the CSV of decoded objects.
pub(super) fn csv_of(content: &BundleContent) -> Value {
    serde_json::from_str(&content.csv_json).unwrap_or_default()
}

/// Returns the `olm.csv.metadata` of a CSV.
fn metadata(csv: &Value) -> Value {
    let csv = GoType::CLUSTER_SERVICE_VERSION.known(csv);
    let spec = at(&csv, &["spec"]);
    let mut metadata = Map::new();
    let is_empty = |v: &Value| match v {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    for key in ["annotations", "labels"] {
        let value = at(&csv, &["metadata", key]);
        if !is_empty(value) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let same = |key| (key, key);
    let optional = [
        "description",
        "displayName",
        "installModes",
        "keywords",
        "links",
        "maintainers",
        "maturity",
        "minKubeVersion",
        "nativeAPIs",
    ];
    let always = [
        ("apiservicedefinitions", "apiServiceDefinitions"),
        ("customresourcedefinitions", "crdDescriptions"),
        same("provider"),
    ];
    for key in optional {
        let value = at(spec, &[key]);
        if !is_empty(value) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    for (from, to) in always {
        let value = at(spec, &[from]);
        metadata.insert(to.to_owned(), if value.is_object() { value.clone() } else { json!({}) });
    }
    Value::Object(metadata)
}
