//! Catalog templates: short files that reference bundles by image, from which a catalog is rendered
//! (olm-behaviour/opm.md#templates).
//!
//! ```text
//!   text --Template::read--> Template --render(images)--> blobs, in opm's order
//! ```
//!
//! The caller provides the bundles: a function from an image reference to the blobs in the image.

mod basic;
mod semver;
mod substitutes;
#[cfg(test)]
mod tests;

pub(super) use semver::package_blob;
use serde_json::{Map, Value};

use super::meta::Meta;
use crate::budget;
use crate::finding::Finding;
use crate::go_format::quote;
use crate::yaml;

/// Returns the blobs of an image. The error states in one sentence why they are not available.
pub type Images<'a> = dyn FnMut(&str) -> Result<Vec<Value>, String> + 'a;

/// The kind of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateKind {
    /// `olm.template.basic`: blobs; a bundle may consist of an image only.
    Basic,
    /// `olm.semver`: bundles by maturity; channels and edges are derived from their versions.
    Semver,
    /// `olm.template.substitutes`: blobs, and bundles that replace others.
    Substitutes,
}

impl TemplateKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Basic, Self::Semver, Self::Substitutes];

    /// Returns the schema of a template of this kind.
    pub fn schema(self) -> &'static str {
        match self {
            Self::Basic => "olm.template.basic",
            Self::Semver => "olm.semver",
            Self::Substitutes => "olm.template.substitutes",
        }
    }

    fn of_schema(schema: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.schema() == schema)
    }
}

/// A parsed template.
#[derive(Clone, Debug)]
pub struct Template {
    kind: TemplateKind,
    path: String,
    fields: Map<String, Value>,
}

impl Template {
    /// Reads a template. The schema determines its kind, unless the caller gives it.
    ///
    /// # Errors
    /// The file does not parse, is not a map, or its schema is not that of a template: the message is that of opm.
    pub fn read(path: &str, bytes: &[u8], kind: Option<TemplateKind>) -> Result<Self, Finding> {
        let refused = |line, message: String| {
            Finding::new("bad-template", message)
                .at(path, line)
                .hint("set the schema of the template, such as schema: olm.semver")
        };
        let document = yaml::documents(bytes)
            .and_then(|d| d.first().map(|d| Ok((d.line, d.parse_within(budget::Document::FILE)?.0))).transpose());
        let (line, value) = match document {
            Ok(found) => found.unwrap_or_default(),
            Err(e) => return Err(refused(e.line, e.message)),
        };
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            _ => return Err(refused(line, "a template must be an object".to_owned())),
        };
        let schema = field(&fields, "schema").and_then(Value::as_str).unwrap_or_default();
        let kind = match (kind, TemplateKind::of_schema(schema)) {
            (None, Some(found)) => found,
            (None, None) if fields.is_empty() => return Err(refused(line, "decoding template input: EOF".to_owned())),
            (None, None) if schema.is_empty() => {
                return Err(refused(line, "template input missing required 'schema' field".to_owned()));
            }
            (None, None) => return Err(refused(line, format!("unknown template schema: {schema}"))),
            (Some(kind), found) if found == Some(kind) => kind,
            (Some(TemplateKind::Semver), _) => {
                let message =
                    "render: unable to read file: readFile: input file has unknown schema, should be \"olm.semver\"";
                return Err(refused(line, message.to_owned()));
            }
            (Some(kind), _) => {
                let message =
                    format!("template has unknown schema ({}), should be {}", quote(schema), quote(kind.schema()));
                return Err(refused(line, message));
            }
        };
        Ok(Self { kind, path: path.to_owned(), fields })
    }

    /// Returns whether that is the schema of a template.
    pub fn is_schema(schema: &str) -> bool {
        TemplateKind::of_schema(schema).is_some()
    }

    /// Renders the blobs, in opm's order.
    ///
    /// # Errors
    /// The fields of the template are invalid, or the content of an image is not available.
    pub fn render(&self, images: &mut Images<'_>) -> Result<Vec<Meta>, Finding> {
        let blobs = match self.kind {
            TemplateKind::Basic => basic::render(&self.fields, images),
            TemplateKind::Semver => semver::render(&self.fields, images),
            TemplateKind::Substitutes => substitutes::render(&self.fields, images),
        };
        blobs.map(in_order).map_err(|message| Finding::new("bad-template", message).at(&self.path, 0))
    }
}

/// Sorts blobs into the order in which opm writes them.
pub fn in_order(blobs: Vec<Value>) -> Vec<Meta> {
    let mut blobs: Vec<Meta> = blobs.into_iter().map(Meta::new).collect();
    blobs.sort_by_cached_key(|blob| {
        let package = blob.package().to_owned();
        let (rank, name) = match blob.schema() {
            "olm.package" => (0, String::new()),
            "olm.channel" => (1, blob.name().to_owned()),
            "olm.bundle" => (2, blob.name().to_owned()),
            "olm.deprecations" => (4, String::new()),
            other => (3, other.to_owned()),
        };
        (package.is_empty(), package, rank, name)
    });
    blobs
}

/// Returns a field. Its name is matched case-insensitively, as Go does.
fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).or_else(|| fields.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v))
}

/// Returns the string in a field; empty when there is none.
fn text_of<'a>(fields: &'a Value, name: &str) -> &'a str {
    fields.as_object().and_then(|f| field(f, name)).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the list in a field; empty for null and absence.
fn list_of<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a [Value], String> {
    match field(fields, name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("unmarshalling template: {name} is not a list")),
    }
}
