//! A blob as opm writes it: fields in the order of its schema; fields of unknown schemas are sorted
//! (olm-behaviour/opm.md#catalog-blobs).

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::api::object::text;
use crate::bundle::encoded_again;

/// A blob that serializes as opm writes it. Unknown fields of a known schema are left out, as opm does.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta(pub Value);

impl Meta {
    /// Wraps a blob, whose known fields may be written in any case, as Go reads them. A package's icon is decoded and
    /// encoded again.
    pub fn new(mut blob: Value) -> Self {
        const KNOWN: [&str; 10] = [
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
        if let Some(fields) = blob.as_object_mut() {
            for key in KNOWN.into_iter().filter(|key| !fields.contains_key(*key)).collect::<Vec<_>>() {
                let other = fields.keys().find(|k| k.eq_ignore_ascii_case(key)).cloned();
                if let Some(value) = other.and_then(|k| fields.remove(&k)) {
                    fields.insert(key.to_owned(), value);
                }
            }
        }
        if text(&blob, &["schema"]) == "olm.package"
            && let Some(Value::String(data)) = blob.pointer_mut("/icon/base64data")
        {
            *data = encoded_again(data);
        }
        Self(blob)
    }

    /// Returns the schema of the blob.
    pub fn schema(&self) -> &str {
        text(&self.0, &["schema"])
    }

    /// Returns the package of the blob; empty for none.
    pub fn package(&self) -> &str {
        let key = if self.schema() == "olm.package" { "name" } else { "package" };
        text(&self.0, &[key])
    }

    /// Returns the name of the blob.
    pub fn name(&self) -> &str {
        text(&self.0, &["name"])
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Ordered(&self.0, shape(self.schema())).serialize(serializer)
    }
}

/// A field: its name, whether it is written when empty, and the shape of its value.
struct Field(&'static str, bool, Shape);

/// The order of an object's fields; for a list, that of its items. The empty shape matches any object.
type Shape = &'static [Field];

const ANY: Shape = &[];
const PROPERTIES: Shape = &[Field("type", true, ANY), Field("value", true, ANY)];

fn shape(schema: &str) -> Shape {
    match schema {
        "olm.package" => &[
            Field("schema", true, ANY),
            Field("name", true, ANY),
            Field("defaultChannel", true, ANY),
            Field("icon", false, &[Field("base64data", true, ANY), Field("mediatype", true, ANY)]),
            Field("description", false, ANY),
            Field("properties", false, PROPERTIES),
        ],
        "olm.channel" => &[
            Field("schema", true, ANY),
            Field("name", true, ANY),
            Field("package", true, ANY),
            Field(
                "entries",
                true,
                &[
                    Field("name", true, ANY),
                    Field("replaces", false, ANY),
                    Field("skips", false, ANY),
                    Field("skipRange", false, ANY),
                ],
            ),
            Field("properties", false, PROPERTIES),
        ],
        "olm.bundle" => &[
            Field("schema", true, ANY),
            Field("name", false, ANY),
            Field("package", false, ANY),
            Field("image", true, ANY),
            Field("properties", false, PROPERTIES),
            Field("relatedImages", false, &[Field("name", true, ANY), Field("image", true, ANY)]),
        ],
        "olm.deprecations" => &[
            Field("schema", true, ANY),
            Field("package", true, ANY),
            Field(
                "entries",
                true,
                &[
                    Field("reference", true, &[Field("schema", true, ANY), Field("name", false, ANY)]),
                    Field("message", true, ANY),
                ],
            ),
        ],
        _ => ANY,
    }
}

struct Ordered<'a>(&'a Value, Shape);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(value, shape) = self;
        match value {
            _ if shape.is_empty() => value.serialize(serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(|item| Ordered(item, shape))),
            Value::Object(fields) => {
                let mut map = serializer.serialize_map(None)?;
                for Field(key, stays, shape) in *shape {
                    // Go matches field names case-insensitively.
                    let found = fields
                        .get(*key)
                        .or_else(|| fields.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, v)| v));
                    match found.filter(|value| !is_empty(value)) {
                        Some(value) => map.serialize_entry(key, &Ordered(value, shape))?,
                        None if *stays => map.serialize_entry(key, &empty(key, found))?,
                        None => {}
                    }
                }
                map.end()
            }
            other => other.serialize(serializer),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Returns what Go writes for an empty field.
fn empty(key: &str, found: Option<&Value>) -> Value {
    match (key, found) {
        (_, Some(value)) if !value.is_null() => value.clone(),
        ("entries" | "value", _) => Value::Null,
        ("reference", _) => serde_json::json!({"schema": ""}),
        _ => "".into(),
    }
}
