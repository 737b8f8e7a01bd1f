//! What a bundle requires of another one: a test of the other one's properties, and its description
//! (olm-behaviour/subscription.md#constraints).
//!
//! ```text
//!   property (olm.gvk.required, olm.package.required, olm.label.required, olm.constraint)  --of-->  Constraint
//!   Constraint + Candidate (package, version, properties)  --is_met_by-->  bool
//! ```
//!
//! A compound constraint is a test of one bundle: `all` requires one bundle that satisfies all parts, and `not` a bundle
//! that satisfies no part; it excludes nothing from a resolution.

mod cel;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use serde_json::{Map, Value};

pub use self::cel::{CelError, Policy, Rule};
use crate::api::object::{self, Gvk};
use crate::bundle::property::{self, Property};
use crate::go_format::quote;
use crate::version::{self, Range, Version};

/// Maximum size of an `olm.constraint`, in bytes.
const MAX_SIZE: usize = 2 << 16;

/// Why a constraint was rejected, in OLM's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// The work budget of the constraints of one resolution, in steps. A step takes up to twenty nanoseconds, so the budget
/// lasts for ten seconds; a resolution with the largest public catalog needs one percent of it.
#[derive(Debug)]
pub struct Work {
    left: Cell<u64>,
}

impl Default for Work {
    fn default() -> Self {
        Self { left: Cell::new(Self::MOST) }
    }
}

impl Work {
    /// Maximum number of steps.
    pub const MOST: u64 = 500_000_000;

    /// The error of a resolution whose constraints exceed the budget.
    pub const SPENT: &'static str = "the constraints of the bundles ask for more than 500000000 steps of work: \
                                     take the bundle with costly olm.constraint properties out of the catalog";

    /// Takes that many steps; returns false when fewer are left, and from then on.
    pub(crate) fn spend(&self, steps: u64) -> bool {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or(0));
        left.is_some_and(|left| left > 0)
    }

    /// Returns whether the budget was exceeded.
    pub fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// Returns the number of steps taken.
    #[cfg(test)]
    pub(crate) fn spent(&self) -> u64 {
        Self::MOST - self.left.get()
    }
}

/// A bundle that may satisfy a constraint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidate<'a> {
    /// Package that it was found in; empty when unknown.
    pub package: &'a str,
    /// Its version, if valid.
    pub version: Option<&'a Version>,
    /// Its properties.
    pub properties: &'a [Property],
}

/// A test of one bundle.
#[derive(Clone, Debug)]
pub enum Constraint {
    /// It provides that API.
    Api(Gvk),
    /// It belongs to that package and its version is in that range.
    Package(String, Range),
    /// It has that label.
    Label(String),
    /// All parts hold.
    All(Vec<Self>),
    /// At least one part holds.
    Any(Vec<Self>),
    /// No part holds.
    Not(Vec<Self>),
    /// A rule in the Common Expression Language, and its author's message for when it is not satisfied.
    Cel(Rule, String),
}

impl Constraint {
    /// Returns the constraint of a property; `None` when the property is not a constraint.
    ///
    /// # Errors
    /// The value of the property is not a valid constraint of its type.
    pub fn from_property(property: &Property) -> Result<Option<Self>, Error> {
        Self::of_within(property, &Work::default())
    }

    /// Like [`Self::from_property`], within a work budget.
    ///
    /// # Errors
    /// As [`Self::from_property`], or the budget is spent.
    pub fn of_within(property: &Property, work: &Work) -> Result<Option<Self>, Error> {
        let value = &property.value;
        Ok(Some(match property.type_.as_str() {
            property::GVK_REQUIRED => Self::Api(api(value)),
            property::PACKAGE_REQUIRED => Self::package(value)?,
            property::LABEL_REQUIRED => Self::Label(object::text(value, &["label"]).to_owned()),
            property::CONSTRAINT => Self::olm_constraint(value, work)?,
            _ => return Ok(None),
        }))
    }

    fn olm_constraint(value: &Value, work: &Work) -> Result<Self, Error> {
        let refused = |why: String| Error(format!("parse olm.constraint: {why}"));
        if value.to_string().len() > MAX_SIZE {
            return Err(refused(format!("olm.constraint value is greater than max constraint size {MAX_SIZE} bytes")));
        }
        shape(value, &CONSTRAINT).map_err(refused)?;
        Self::nested(value, work)
            .map_err(|Error(why)| Error(format!("convert olm.constraint to resolver predicate: {why}")))
    }

    fn package(value: &Value) -> Result<Self, Error> {
        let [name, range] = ["packageName", "versionRange"].map(|key| object::text(value, &[key]));
        let range = Range::parse(range).map_err(|e| Error(e.to_string()))?;
        Ok(Self::Package(name.to_owned(), range))
    }

    fn nested(value: &Value, work: &Work) -> Result<Self, Error> {
        let several = |key: &str| -> Result<Vec<Self>, Error> {
            object::list(value, &[key, "constraints"]).iter().map(|value| Self::nested(value, work)).collect()
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
            if work.is_spent() {
                return Err(Error(Work::SPENT.to_owned()));
            }
            let rule = Rule::compile(object::text(value, &["cel", "rule"])).map_err(|e| Error(e.to_string()))?;
            work.spend(rule.work());
            Ok(Self::Cel(rule, object::text(value, &["failureMessage"]).to_owned()))
        } else {
            Err(Error("constraint is empty".to_owned()))
        }
    }

    /// Returns whether it is about an API.
    pub fn is_api(&self) -> bool {
        matches!(self, Self::Api(_))
    }

    /// Returns whether the bundle satisfies it.
    pub fn is_met_by(&self, candidate: &Candidate<'_>) -> bool {
        self.is_met_within(candidate, &Work::default())
    }

    /// Like [`Self::is_met_by`], within a work budget; false when the budget is exceeded.
    pub fn is_met_within(&self, candidate: &Candidate<'_>, work: &Work) -> bool {
        // Checking a property takes a fraction of a step.
        if !work.spend(1 + candidate.properties.len() as u64 / 4) {
            return false;
        }
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
            Self::All(all) => all.iter().all(|r| r.is_met_within(candidate, work)),
            Self::Any(any) => any.iter().any(|r| r.is_met_within(candidate, work)),
            Self::Not(none) => !none.iter().any(|r| r.is_met_within(candidate, work)),
            Self::Cel(rule, _) => rule.evaluate_within(candidate.properties, work).unwrap_or_default(),
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

/// The fields of a JSON object, with their types.
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

/// Checks that all fields are known and of the right type. The error is Go's.
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
