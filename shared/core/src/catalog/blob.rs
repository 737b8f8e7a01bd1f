//! The blobs of a file-based catalog, read leniently as opm reads them (reference: bundles and catalogs §2.1).

use std::ops::Range;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{File, Property};
use crate::bundle::property::BUNDLE_OBJECT;
use crate::finding::Finding;
use crate::go::quote;
use crate::yaml::{self, Document};

/// Where a blob is.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) file: Arc<str>,
    pub(super) line: usize,
}

/// A blob, or something that stands for one.
#[derive(Debug)]
pub(super) struct Blob {
    pub(super) place: Place,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Package(PackageBlob),
    Channel(ChannelBlob),
    Bundle(BundleBlob),
    Deprecations(DeprecationsBlob),
    Other(Value),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PackageBlob {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(rename = "defaultChannel", deserialize_with = "or_default")]
    pub(super) default_channel: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) description: String,
    pub(super) icon: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChannelBlob {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) package: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) entries: Vec<ChannelEntry>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChannelEntry {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) replaces: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) skips: Vec<String>,
    #[serde(rename = "skipRange", deserialize_with = "or_default")]
    pub(super) skip_range: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BundleBlob {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) package: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) image: String,
    /// Without those that carry objects, which stay in the file.
    #[serde(deserialize_with = "or_default")]
    pub(super) properties: Vec<Property>,
    /// Does the blob carry objects?
    #[serde(skip)]
    pub(super) has_objects: bool,
    /// Where the blob's bytes are.
    #[serde(skip)]
    pub(super) source: Source,
}

/// Where the objects of a bundle come from.
#[derive(Clone, Debug, Default)]
pub(super) enum Source {
    #[default]
    None,
    Blob {
        file: Arc<[u8]>,
        range: Range<usize>,
    },
    Directory(super::Content),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DeprecationsBlob {
    #[serde(deserialize_with = "or_default")]
    pub(super) package: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) entries: Vec<Deprecation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Deprecation {
    pub(super) reference: Reference,
    #[serde(deserialize_with = "or_default")]
    pub(super) message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub(super) struct Reference {
    #[serde(deserialize_with = "or_default")]
    pub(super) schema: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
}

/// The fields of the known schemas, whose keys are matched without regard to case.
const KEYS: [&str; 10] = [
    "schema",
    "package",
    "name",
    "defaultChannel",
    "description",
    "icon",
    "entries",
    "properties",
    "image",
    "relatedImages",
];

impl Blob {
    /// The package that the blob belongs to; empty when to none.
    pub(super) fn package(&self) -> &str {
        match &self.kind {
            Kind::Package(blob) => &blob.name,
            Kind::Channel(blob) => &blob.package,
            Kind::Bundle(blob) => &blob.package,
            Kind::Deprecations(blob) => &blob.package,
            Kind::Other(blob) => blob.get("package").and_then(Value::as_str).unwrap_or_default(),
        }
    }
}

/// The blobs of a catalog file, each of them read or refused.
pub(super) fn read(file: &File) -> Vec<Result<Blob, Finding>> {
    let path: Arc<str> = file.path.as_str().into();
    let documents = match yaml::documents(&file.bytes) {
        Ok(documents) => documents,
        Err(e) => return vec![Err(unreadable(e, &path))],
    };
    let blob = |d: &Document<'_>| {
        let place = Place { file: path.clone(), line: d.line };
        let value = d.value().map_err(|e| unreadable(e, &path))?;
        let kind = kind(value, file, d).map_err(|e| e.at(&path, d.line))?;
        Ok(Blob { place, kind })
    };
    documents.iter().map(blob).collect()
}

fn unreadable(error: yaml::Error, path: &str) -> Finding {
    Finding::new("unreadable-file", error.message)
        .at(path, error.line)
        .hint("a catalog is YAML or JSON; name other files in .indexignore")
}

fn kind(value: Value, file: &File, document: &Document<'_>) -> Result<Kind, Finding> {
    let Value::Object(fields) = value else {
        return Err(Finding::new("not-an-object", "a blob of a catalog is an object with a schema"));
    };
    let fields = fold_keys(fields)?;
    for key in ["schema", "package", "name"] {
        if fields.get(key).is_some_and(|v| !v.is_string() && !v.is_null()) {
            return Err(Finding::new("bad-blob", format!("field {key:?} is not a string")));
        }
    }
    let get = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (schema, name) = (get("schema"), get("name"));
    Ok(match schema.as_str() {
        "" => {
            let message = format!("object '{}' is missing root schema field", Value::Object(fields));
            return Err(Finding::new("no-schema", shorten(message)));
        }
        "olm.package" => Kind::Package(typed(fields, "package", &name)?),
        "olm.channel" => Kind::Channel(typed(fields, "channel", &name)?),
        "olm.deprecations" => Kind::Deprecations(typed(fields, "deprecation", &name)?),
        "olm.bundle" => {
            let mut blob: BundleBlob = typed(fields, "bundle", &name)?;
            let total = blob.properties.len();
            blob.properties.retain(|p| p.type_ != BUNDLE_OBJECT);
            blob.has_objects = blob.properties.len() < total;
            let range = document.offset..document.offset + document.text.len();
            blob.source = Source::Blob { file: file.bytes.clone(), range };
            Kind::Bundle(blob)
        }
        _ => Kind::Other(Value::Object(fields)),
    })
}

fn typed<T: DeserializeOwned>(fields: Map<String, Value>, what: &str, name: &str) -> Result<T, Finding> {
    serde_json::from_value(Value::Object(fields))
        .map_err(|e| Finding::new("bad-blob", format!("parse {what}: {e}")).about(format!("{what} {}", quote(name))))
}

/// The known keys in their usual spelling; two that differ only in case are refused.
fn fold_keys(fields: Map<String, Value>) -> Result<Map<String, Value>, Finding> {
    let mut folded = Map::new();
    let mut seen = std::collections::BTreeMap::new();
    for (key, value) in fields {
        let lower = key.to_lowercase();
        if let Some(other) = seen.insert(lower.clone(), key.clone()) {
            return Err(Finding::new(
                "duplicate-key",
                format!("duplicate keys for key {}: [{other} {key}]", quote(&lower)),
            ));
        }
        let known = KEYS.iter().find(|k| k.eq_ignore_ascii_case(&key));
        folded.insert(known.map_or(key, |k| (*k).to_owned()), value);
    }
    Ok(folded)
}

fn shorten(mut text: String) -> String {
    // A whole bundle in an error message helps nobody.
    const LIMIT: usize = 200;
    if let Some((at, _)) = text.char_indices().nth(LIMIT) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// `null` reads as the empty value, as in Go.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
