//! What a bundle requires of another one: a test of that one's properties, and its words (reference/catalog-operator.md §3.6).
//!
//! ```text
//!   property (olm.gvk.required, olm.package.required, olm.label.required, olm.constraint)  --of-->  Constraint
//!   Constraint + Candidate (package, version, properties)  --is_met_by-->  yes or no
//! ```
//!
//! A compound constraint is a test of one bundle: `all` asks for one bundle that has everything, and `not` for a bundle that
//! has nothing of a list; it excludes nothing from a resolution.

mod cel;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use self::cel::{Error as CelError, Policy, Rule};
use crate::api::object::{self, Gvk};
use crate::bundle::property::{self, Property};
use crate::go::quote;
use crate::version::{self, Range, Version};

/// The largest `olm.constraint` that is read, in bytes.
const MAX_SIZE: usize = 2 << 16;

/// Why a constraint was refused, in OLM's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// A bundle that may meet a constraint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidate<'a> {
    /// Package that it was found in; empty when not known.
    pub package: &'a str,
    /// Its version, when it can be read.
    pub version: Option<&'a Version>,
    /// Its properties.
    pub properties: &'a [Property],
}

/// A test of one bundle.
#[derive(Clone, Debug)]
pub enum Constraint {
    /// It provides that API.
    Api(Gvk),
    /// It is of that package and its version is in that range.
    Package(String, Range),
    /// It has that label.
    Label(String),
    /// All hold.
    All(Vec<Self>),
    /// One holds.
    Any(Vec<Self>),
    /// None holds.
    Not(Vec<Self>),
    /// A rule in the Common Expression Language, and what its author wants to be told when it is not met.
    Cel(Rule, String),
}

impl Constraint {
    /// The constraint that a property states; `None` when it states none.
    pub fn of(property: &Property) -> Result<Option<Self>, Error> {
        let value = &property.value;
        Ok(Some(match property.type_.as_str() {
            property::GVK_REQUIRED => Self::Api(api(value)),
            property::PACKAGE_REQUIRED => Self::package(value)?,
            property::LABEL_REQUIRED => Self::Label(object::text(value, &["label"]).to_owned()),
            property::CONSTRAINT => Self::olm_constraint(value)?,
            _ => return Ok(None),
        }))
    }

    fn olm_constraint(value: &Value) -> Result<Self, Error> {
        let refused = |why: String| Error(format!("parse olm.constraint: {why}"));
        if value.to_string().len() > MAX_SIZE {
            return Err(refused(format!("olm.constraint value is greater than max constraint size {MAX_SIZE} bytes")));
        }
        shape(value, &CONSTRAINT).map_err(refused)?;
        Self::nested(value).map_err(|Error(why)| Error(format!("convert olm.constraint to resolver predicate: {why}")))
    }

    fn package(value: &Value) -> Result<Self, Error> {
        let [name, range] = ["packageName", "versionRange"].map(|key| object::text(value, &[key]));
        let range = Range::parse(range).map_err(|e| Error(e.to_string()))?;
        Ok(Self::Package(name.to_owned(), range))
    }

    fn nested(value: &Value) -> Result<Self, Error> {
        let several = |key: &str| -> Result<Vec<Self>, Error> {
            object::list(value, &[key, "constraints"]).iter().map(Self::nested).collect()
        };
        let has = |key: &str| !object::at(value, &[key]).is_null();
        if has("gvk") {
            Ok(Self::Api(api(object::at(value, &["gvk"]))))
        } else if has("package") {
            Self::package(object::at(value, &["package"]))
        } else if has("all") {
            several("all").map(Self::All)
        } else if has("any") {
            several("any").map(Self::Any)
        } else if has("not") {
            several("not").map(Self::Not)
        } else if has("cel") {
            let rule = Rule::compile(object::text(value, &["cel", "rule"])).map_err(|e| Error(e.to_string()))?;
            Ok(Self::Cel(rule, object::text(value, &["failureMessage"]).to_owned()))
        } else {
            Err(Error("constraint is empty".to_owned()))
        }
    }

    /// Is it about an API?
    pub fn is_api(&self) -> bool {
        matches!(self, Self::Api(_))
    }

    /// Does that bundle meet it?
    pub fn is_met_by(&self, candidate: &Candidate<'_>) -> bool {
        let of_type = |type_: &'static str| candidate.properties.iter().filter(move |p| p.type_ == type_);
        match self {
            Self::Api(api) => of_type(property::GVK).any(|p| is_api(&p.value, api)),
            Self::Package(name, range) => {
                let is_of_package = candidate.package == name
                    || of_type(property::PACKAGE).any(|p| object::text(&p.value, &["packageName"]) == name);
                let is_in_range = |p: &Property| {
                    version::parse(object::text(&p.value, &["version"])).is_ok_and(|v| range.contains(&v))
                };
                is_of_package
                    && (of_type(property::PACKAGE).any(is_in_range)
                        || candidate.version.is_some_and(|v| range.contains(v)))
            }
            Self::Label(label) => of_type(property::LABEL).any(|p| object::text(&p.value, &["label"]) == label),
            Self::All(all) => all.iter().all(|r| r.is_met_by(candidate)),
            Self::Any(any) => any.iter().any(|r| r.is_met_by(candidate)),
            Self::Not(none) => !none.iter().any(|r| r.is_met_by(candidate)),
            Self::Cel(rule, _) => rule.evaluate(candidate.properties).unwrap_or_default(),
        }
    }
}

impl std::fmt::Display for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let join = |parts: &[Self], word: &str| parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(word);
        match self {
            Self::Api(Gvk { group, version, kind }) => {
                write!(f, "providing an API with group: {group}, version: {version}, kind: {kind}")
            }
            Self::Package(name, range) => {
                write!(f, "with package: {name} and with version in range: {}", range.as_str())
            }
            Self::Label(label) => write!(f, "with label: {label}"),
            Self::All(parts) => f.write_str(&join(parts, " and ")),
            Self::Any(parts) => f.write_str(&join(parts, " or ")),
            Self::Not(parts) => f.write_str(&join(parts, " and not ")),
            Self::Cel(rule, message) => {
                write!(f, "with constraint: {} and message: {}", quote(rule.text()), quote(message))
            }
        }
    }
}

fn api(value: &Value) -> Gvk {
    let [group, version, kind] = ["group", "version", "kind"].map(|key| object::text(value, &[key]));
    Gvk::new(group, version, kind)
}

fn is_api(value: &Value, api: &Gvk) -> bool {
    let says = |key| object::text(value, &[key]);
    says("kind") == api.kind && says("version") == api.version && says("group") == api.group
}

/// The fields of a JSON object, and what each holds.
struct Shape(&'static str, &'static [(&'static str, Field)]);

enum Field {
    Text,
    Object(&'static Shape),
    Constraints,
}

const CONSTRAINT: Shape = Shape(
    "Constraint",
    &[
        ("failureMessage", Field::Text),
        ("cel", Field::Object(&Shape("Cel", &[("rule", Field::Text)]))),
        (
            "package",
            Field::Object(&Shape("PackageConstraint", &[("packageName", Field::Text), ("versionRange", Field::Text)])),
        ),
        (
            "gvk",
            Field::Object(&Shape(
                "GVKConstraint",
                &[("group", Field::Text), ("kind", Field::Text), ("version", Field::Text)],
            )),
        ),
        ("all", Field::Object(&COMPOUND)),
        ("any", Field::Object(&COMPOUND)),
        ("not", Field::Object(&COMPOUND)),
    ],
);
const COMPOUND: Shape = Shape("CompoundConstraint", &[("constraints", Field::Constraints)]);

/// Are all fields known and of the right type? The complaint is Go's.
fn shape(value: &Value, expected: &Shape) -> Result<(), String> {
    let Shape(name, fields) = expected;
    let none = Map::new();
    let object = match value {
        Value::Null => &none,
        Value::Object(object) => object,
        other => return Err(wrong_type(other, "", &format!("constraints.{name}"))),
    };
    for (key, value) in object {
        let known = fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(key));
        let path = format!("Go struct field {name}.{key} ");
        match known {
            None => return Err(format!("json: unknown field {}", quote(key))),
            Some(_) if value.is_null() => {}
            Some((_, Field::Text)) if !value.is_string() => return Err(wrong_type(value, &path, "string")),
            Some((_, Field::Text)) => {}
            Some((_, Field::Object(inner))) => shape(value, inner)?,
            Some((_, Field::Constraints)) => match value.as_array() {
                Some(list) => list.iter().try_for_each(|c| shape(c, &CONSTRAINT))?,
                None => return Err(wrong_type(value, &path, "[]constraints.Constraint")),
            },
        }
    }
    Ok(())
}

fn wrong_type(value: &Value, path: &str, wanted: &str) -> String {
    let what = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {what} into {path}of type {wanted}")
}
