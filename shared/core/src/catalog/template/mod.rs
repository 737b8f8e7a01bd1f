//! Templates of catalogs: short files that name bundles by their images, from which a catalog is made (olm-behaviour/opm.md#templates).
//!
//! ```text
//!   text --Template::read--> Template --render(images)--> blobs, in opm's order
//! ```
//!
//! Where bundles come from is the caller's affair: a function from an image's reference to the blobs in it.

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

/// The blobs of an image; the error says in one sentence why they cannot be had.
pub type Images<'a> = dyn FnMut(&str) -> Result<Vec<Value>, String> + 'a;

/// What kind of template a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateKind {
    /// `olm.template.basic`: the blobs, of which bundles may be no more than an image.
    Basic,
    /// `olm.semver`: bundles by maturity; channels and edges follow from their versions.
    Semver,
    /// `olm.template.substitutes`: blobs, and bundles that take the place of others.
    Substitutes,
}

impl TemplateKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Basic, Self::Semver, Self::Substitutes];

    /// The schema that a template of this kind has.
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

/// A template, read but not rendered.
#[derive(Clone, Debug)]
pub struct Template {
    kind: TemplateKind,
    path: String,
    fields: Map<String, Value>,
}

impl Template {
    /// Reads a template; its kind is told by its schema, unless the caller knows. Errors have opm's texts.
    pub fn read(path: &str, bytes: &[u8], kind: Option<TemplateKind>) -> Result<Self, Finding> {
        let refused = |line, message: String| {
            Finding::new("bad-template", message)
                .at(path, line)
                .hint("a template begins with its schema, such as schema: olm.semver")
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
            _ => return Err(refused(line, "a template is an object".to_owned())),
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

    /// Is that the schema of a template?
    pub fn is_schema(schema: &str) -> bool {
        TemplateKind::of_schema(schema).is_some()
    }

    /// Makes the blobs, in opm's order.
    pub fn render(&self, images: &mut Images<'_>) -> Result<Vec<Meta>, Finding> {
        let blobs = match self.kind {
            TemplateKind::Basic => basic::render(&self.fields, images),
            TemplateKind::Semver => semver::render(&self.fields, images),
            TemplateKind::Substitutes => substitutes::render(&self.fields, images),
        };
        blobs.map(in_order).map_err(|message| Finding::new("bad-template", message).at(&self.path, 0))
    }
}

/// PackageBlobs in the order in which opm writes them.
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

/// A field, whose name Go matches without regard to case.
fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).or_else(|| fields.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v))
}

/// The text in a field; empty when there is none.
fn text_of<'a>(fields: &'a Value, name: &str) -> &'a str {
    fields.as_object().and_then(|f| field(f, name)).and_then(Value::as_str).unwrap_or_default()
}

/// The list in a field; null and absence are empty.
fn list_of<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a [Value], String> {
    match field(fields, name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("unmarshalling template: {name} is not a list")),
    }
}
