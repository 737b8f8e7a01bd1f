//! The blobs of a file-based catalog, read leniently as opm reads them (olm-behaviour/opm.md#catalog-blobs).
//!
//! Only the parts of a blob that are needed to select and check bundles are stored; a [`Span`] locates the whole blob.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::document_text::{self, DocumentText};
use super::stored::Span;
use super::{Content, File, Property, reference};
use crate::bundle::property::{self, BUNDLE_OBJECT, CSV_METADATA};
use crate::bundle::{Bundle, decode_data, optional};
use crate::finding::Finding;
use crate::go_format::quote;
use crate::yaml::{self, Document};

/// The location of a blob.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) file: Arc<str>,
    pub(super) line: usize,
}

/// A blob, or a bundle directory that stands for one.
#[derive(Debug)]
pub(super) struct Blob {
    pub(super) place: Place,
    pub(super) source: Source,
    pub(super) kind: Kind,
}

/// The source of the whole blob.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// In a file of blobs.
    Blob(Span),
    /// Generated from a bundle directory, with these objects.
    Directory(Content),
}

#[derive(Debug)]
pub(super) enum Kind {
    Package(PackageBlob),
    Channel(ChannelBlob),
    Bundle(BundleBlob),
    Deprecations(DeprecationsBlob),
    Other(OtherBlob),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PackageBlob {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(rename = "defaultChannel", deserialize_with = "or_default")]
    pub(super) default_channel: String,
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

impl ChannelEntry {
    /// Returns the entry as JSON of a channel's blob.
    pub(super) fn to_value(&self) -> Value {
        let mut value = json!({"name": self.name});
        for (key, text) in [("replaces", &self.replaces), ("skipRange", &self.skip_range)] {
            if !text.is_empty() {
                value[key] = text.as_str().into();
            }
        }
        if !self.skips.is_empty() {
            value["skips"] = self.skips.clone().into();
        }
        value
    }
}

#[derive(Debug, Default)]
pub(super) struct BundleBlob {
    pub(super) name: String,
    pub(super) package: String,
    pub(super) image: String,
    /// Without those that carry objects or describe the CSV, which stay in the file.
    pub(super) properties: Vec<Property>,
    /// Channels in the annotations of a bundle, and the default channel.
    pub(super) channels: Vec<String>,
    pub(super) default_channel: String,
    /// Whether the blob carries objects that include a CSV.
    pub(super) has_objects: bool,
    /// Problems of parts that are not stored: code and opm's message.
    pub(super) problems: Vec<(&'static str, String)>,
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
    #[serde(deserialize_with = "or_default")]
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

/// A blob of a schema that OLM does not know.
#[derive(Debug, Default)]
pub(super) struct OtherBlob {
    pub(super) schema: String,
    pub(super) package: String,
}

impl Blob {
    /// Returns the package that the blob belongs to; empty for none.
    pub(super) fn package(&self) -> &str {
        match &self.kind {
            Kind::Package(blob) => &blob.name,
            Kind::Channel(blob) => &blob.package,
            Kind::Bundle(blob) => &blob.package,
            Kind::Deprecations(blob) => &blob.package,
            Kind::Other(blob) => &blob.package,
        }
    }
}

/// Returns the blob that a bundle directory stands for.
pub(super) fn of_directory(directory: &str, files: &[File]) -> Result<Blob, Vec<Finding>> {
    let read = Bundle::read_whole(directory, files)?;
    let rendered = read.render().map_err(|finding| vec![finding])?;
    let mut bundle = BundleBlob {
        name: rendered.name,
        package: rendered.package,
        image: String::new(),
        properties: rendered.properties,
        channels: read.channels().into_iter().map(str::to_owned).collect(),
        default_channel: read.default_channel().to_owned(),
        has_objects: true,
        problems: Vec::new(),
    };
    check_images(&mut bundle, rendered.related_images.iter().map(|(_, image)| image.as_str()));
    Ok(Blob {
        place: Place { file: directory.into(), line: 0 },
        source: Source::Directory(Content::pack(&rendered.content)),
        kind: Kind::Bundle(bundle),
    })
}

/// Reads a document.
pub(super) fn read(
    text: &DocumentText<'_>,
    span: Span,
    file: &Arc<str>,
    document: &Document<'_>,
) -> Result<Blob, Finding> {
    let at = |finding: Finding| finding.at(file, document.line);
    if !text.json.starts_with('{') {
        return Err(at(Finding::new("not-an-object", "a blob of a catalog must be an object with a schema")));
    }
    let fields: Fields<'_> =
        serde_json::from_str(&text.json).map_err(|e| document_text::unreadable(document.json_error(&e), file))?;
    let kind = kind(fields, text).map_err(at)?;
    Ok(Blob { place: Place { file: file.clone(), line: document.line }, source: Source::Blob(span), kind })
}

fn kind(fields: Fields<'_>, text: &DocumentText<'_>) -> Result<Kind, Finding> {
    fields.refuse_repeated()?;
    let [schema, package, name] = [fields.text("schema")?, fields.text("package")?, fields.text("name")?];
    let quoted = quote(&name);
    let about = |what: &'static str| {
        let subject = format!("{what} {quoted}");
        move |e: serde_json::Error| Finding::new("bad-blob", format!("parse {what}: {e}")).about(subject)
    };
    Ok(match schema.as_str() {
        "" => {
            let message = format!("object '{}' is missing root schema field", text.json);
            return Err(Finding::new("no-schema", shorten(message)).hint("set the schema, such as schema: olm.channel"));
        }
        "olm.package" => {
            fields.check_icon().map_err(about("package"))?;
            Kind::Package(fields.typed().map_err(about("package"))?)
        }
        "olm.channel" => Kind::Channel(fields.typed().map_err(about("channel"))?),
        "olm.deprecations" => Kind::Deprecations(fields.typed().map_err(about("deprecation"))?),
        "olm.bundle" => Kind::Bundle(bundle(&fields, text, package, name).map_err(about("bundle"))?),
        _ => Kind::Other(OtherBlob { schema, package }),
    })
}

/// The unparsed fields of an object.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A string that is borrowed if possible.
#[derive(Deserialize)]
struct Str<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    fn get(&self, key: &str) -> Option<&'a RawValue> {
        // Of duplicate keys the last one is used.
        let found = self.0.iter().rev().find(|(k, _)| k.eq_ignore_ascii_case(key));
        found.map(|(_, value)| *value).filter(|value| value.get() != "null")
    }

    /// Rejects keys that differ only in case. Of equal keys the last one is used.
    fn refuse_repeated(&self) -> Result<(), Finding> {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for (key, _) in &self.0 {
            let lower = key.to_lowercase();
            if let Some(other) = seen.get(&lower).filter(|other| *other != key) {
                let message = format!("duplicate keys for key {}: [{other} {key}]", quote(&lower));
                return Err(Finding::new("duplicate-key", message).hint("remove one of them"));
            }
            seen.insert(lower, key);
        }
        Ok(())
    }

    fn text(&self, key: &str) -> Result<String, Finding> {
        let Some(value) = self.get(key) else { return Ok(String::new()) };
        serde_json::from_str(value.get())
            .map_err(|_| Finding::new("bad-blob", format!("field {key:?} is not a string")))
    }

    fn typed<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let mut map = Map::new();
        for key in ["name", "package", "defaultChannel", "entries"] {
            if let Some(value) = self.get(key) {
                map.insert(key.to_owned(), serde_json::from_str(value.get())?);
            }
        }
        serde_json::from_value(Value::Object(map))
    }

    fn check_icon(&self) -> Result<(), serde_json::Error> {
        use serde::de::Error as _;
        let Some(icon) = self.get("icon") else { return Ok(()) };
        let icon: Fields<'_> = serde_json::from_str(icon.get())?;
        let Some(data) = icon.get("base64data") else { return Ok(()) };
        let data: Str<'_> = serde_json::from_str(data.get())?;
        decode_data(&data.0).map(drop).map_err(|e| serde_json::Error::custom(format!("the icon's base64data: {e}")))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((Str(key), value)) = access.next_entry()? {
                    fields.push((key, value));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Reader).map(Self)
    }
}

fn bundle(
    fields: &Fields<'_>,
    text: &DocumentText<'_>,
    package: String,
    name: String,
) -> Result<BundleBlob, serde_json::Error> {
    let list = |key: &str| match fields.get(key) {
        Some(value) => serde_json::from_str::<Vec<Fields<'_>>>(value.get()),
        None => Ok(Vec::new()),
    };
    let string = |of: &Fields<'_>, key: &str| match of.get(key) {
        Some(value) => serde_json::from_str::<String>(value.get()),
        None => Ok(String::new()),
    };
    let mut bundle = BundleBlob { name, package, image: string(fields, "image")?, ..BundleBlob::default() };
    for (index, property) in list("properties")?.iter().enumerate() {
        let type_ = string(property, "type")?;
        let raw = property.get("value").map_or("null", RawValue::get);
        let problem = match type_.as_str() {
            BUNDLE_OBJECT => {
                bundle.has_objects = true;
                check_object(raw, text).map_err(|(code, e)| match code {
                    "bad-property" => (code, format!("parse property at index {index} as bundle object: {e}")),
                    _ => (code, format!("convert bundle object property at index {index} to JSON: {e}")),
                })
            }
            _ => {
                let checked = super::properties::check(&type_, raw);
                if type_ == property::MANIFESTS_OPTIONAL
                    && let Err(why) = serde_json::from_str(raw)
                        .map_err(|e| e.to_string())
                        .and_then(|value| optional::read(&value).map_err(|why| format!("it is ignored: {why}")))
                {
                    bundle
                        .problems
                        .push(("bad-optional-manifests", format!("property[{index}] of type {type_}: {why}")));
                }
                if type_ != CSV_METADATA {
                    bundle.properties.push(Property { value: serde_json::from_str(raw)?, type_: type_.clone() });
                }
                checked.map_err(|e| {
                    let name = quote(&bundle.name);
                    let message = format!(
                        "parse properties for bundle {name}: parse property[{index}] of type {}: {e}",
                        quote(&type_)
                    );
                    ("bad-property", message)
                })
            }
        };
        if let Err((code, message)) = problem {
            let in_full = match code {
                "bad-property" if message.starts_with("parse properties") => message,
                _ => format!("package {}, bundle {}: {message}", quote(&bundle.package), quote(&bundle.name)),
            };
            bundle.problems.push((code, in_full));
        }
    }
    let images = list("relatedImages")?;
    let images: Vec<String> = images.iter().map(|i| string(i, "image")).collect::<Result<_, _>>()?;
    check_images(&mut bundle, images.iter().map(String::as_str));
    Ok(bundle)
}

/// Checks that the object in a property can be read.
fn check_object(raw: &str, text: &DocumentText<'_>) -> Result<(), (&'static str, String)> {
    let bad = |e: String| ("bad-property", e);
    let value: Fields<'_> = serde_json::from_str(raw).map_err(|e| bad(e.to_string()))?;
    let data: Cow<'_, str> = match value.get("data") {
        Some(data) => serde_json::from_str::<Str<'_>>(data.get()).map_err(|e| bad(e.to_string()))?.0,
        None => Cow::Borrowed(""),
    };
    let bytes = decode_data(text.data(&data)).map_err(bad)?;
    let read = match bytes.first() {
        Some(b'{') => serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).map(drop).map_err(|e| e.to_string()),
        _ => yaml::first(&bytes).map(drop).map_err(|e| e.to_string()),
    };
    read.map_err(|e| ("bad-object", e))
}

fn check_images<'a>(bundle: &mut BundleBlob, related: impl Iterator<Item = &'a str>) {
    let about = format!("package {} bundle {}", quote(&bundle.package), quote(&bundle.name));
    let check = |image: &str| if image.is_empty() { Ok(()) } else { reference::check(image) };
    if let Err(e) = check(&bundle.image) {
        let message = format!("{about} image: invalid image pull spec {}: {e}", quote(&bundle.image));
        bundle.problems.push(("bad-image", message));
    }
    for (index, image) in related.enumerate() {
        if let Err(e) = check(image) {
            let message =
                format!("{about} relatedImages[{index}].image: invalid image pull spec {}: {e}", quote(image));
            bundle.problems.push(("bad-related-image", message));
        }
    }
}

/// Returns the version in a bundle's properties; empty when there is none.
pub(super) fn version(properties: &[Property]) -> &str {
    let package = properties.iter().find(|p| p.type_ == property::PACKAGE);
    package.map_or("", |p| crate::api::object::text(&p.value, &["version"]))
}

fn shorten(mut text: String) -> String {
    // A whole bundle in an error message is not useful.
    const LIMIT: usize = 200;
    if let Some((at, _)) = text.char_indices().nth(LIMIT) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// Deserializes `null` as the empty value, as Go does.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Source {
    /// Returns the location of the blob in its file, when it is in one.
    pub(super) fn span(&self) -> Option<Span> {
        match self {
            Self::Blob(span) => Some(span.clone()),
            Self::Directory(_) => None,
        }
    }
}
