//! What a bundle requires of another one: a test of that one's properties, and its words (reference/catalog-operator.md §3.6).

use serde_json::Value;

use super::Failure;
use crate::api::object::{self, Gvk};
use crate::bundle::property::{self, Property};
use crate::catalog::Entry;
use crate::version::{self, Range};

/// The largest `olm.constraint` that is read, in bytes.
const MAX_CONSTRAINT: usize = 131_072;

/// A test of one bundle.
#[derive(Clone, Debug)]
pub(super) enum Requirement {
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
}

impl Requirement {
    /// The requirement that a property states; `None` when it states none.
    pub(super) fn of(property: &Property) -> Result<Option<Self>, Failure> {
        let value = &property.value;
        Ok(Some(match property.type_.as_str() {
            property::GVK_REQUIRED => Self::Api(property.as_gvk()),
            property::PACKAGE_REQUIRED => Self::package(value)?,
            property::LABEL_REQUIRED => Self::Label(object::text(value, &["label"]).to_owned()),
            property::CONSTRAINT => {
                if value.to_string().len() > MAX_CONSTRAINT {
                    let message =
                        format!("olm.constraint value is greater than max constraint size {MAX_CONSTRAINT} bytes");
                    return Err(Failure::Error(message));
                }
                Self::constraint(value)?
            }
            _ => return Ok(None),
        }))
    }

    fn package(value: &Value) -> Result<Self, Failure> {
        let [name, range] = ["packageName", "versionRange"].map(|key| object::text(value, &[key]));
        let parsed = Range::parse(range).map_err(|e| Failure::Error(e.to_string()))?;
        Ok(Self::Package(name.to_owned(), parsed))
    }

    fn constraint(value: &Value) -> Result<Self, Failure> {
        let several = |key: &str| -> Result<Vec<Self>, Failure> {
            object::list(value, &[key, "constraints"]).iter().map(Self::constraint).collect()
        };
        let has = |key: &str| !object::at(value, &[key]).is_null();
        if has("gvk") {
            let gvk = |key| object::text(value, &["gvk", key]);
            Ok(Self::Api(Gvk::new(gvk("group"), gvk("version"), gvk("kind"))))
        } else if has("package") {
            Self::package(object::at(value, &["package"]))
        } else if has("all") {
            several("all").map(Self::All)
        } else if has("any") {
            several("any").map(Self::Any)
        } else if has("not") {
            several("not").map(Self::Not)
        } else if has("cel") {
            Err(Failure::Error("constraints in CEL are not supported by this version of kubectl-olm".to_owned()))
        } else {
            Err(Failure::Error("convert olm.constraint to resolver predicate: constraint is empty".to_owned()))
        }
    }

    /// Is it about an API?
    pub(super) fn is_api(&self) -> bool {
        matches!(self, Self::Api(_))
    }

    /// Does that bundle meet it?
    pub(super) fn is_met_by(&self, entry: &Entry) -> bool {
        let of_type = |type_: &'static str| entry.properties.iter().filter(move |p| p.type_ == type_);
        match self {
            Self::Api(api) => of_type(property::GVK).any(|p| p.as_gvk() == *api),
            Self::Package(name, range) => of_type(property::PACKAGE).any(|p| {
                let [package, version] = ["packageName", "version"].map(|key| object::text(&p.value, &[key]));
                package == name && version::parse_tolerant(version).is_ok_and(|v| range.contains(&v))
            }),
            Self::Label(label) => of_type(property::LABEL).any(|p| object::text(&p.value, &["label"]) == label),
            Self::All(all) => all.iter().all(|r| r.is_met_by(entry)),
            Self::Any(any) => any.iter().any(|r| r.is_met_by(entry)),
            Self::Not(none) => !none.iter().any(|r| r.is_met_by(entry)),
        }
    }
}

impl std::fmt::Display for Requirement {
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
        }
    }
}
