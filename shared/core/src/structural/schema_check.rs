//! Checks whether existing custom resources match the schemas that their CustomResourceDefinition is to have.
//!
//! ```text
//!   SchemaCheck (the request) -> SchemaChecker: object by object -> SchemaCheckResult (the result)
//! ```
//!
//! *Guarantee.* Memory does not grow with the number of objects: mismatches are counted, and only the first are stored.
//! *Caveat.* Rules (`x-kubernetes-validations`) are not evaluated, as in OLM.

use jiff::Timestamp;
use serde_json::Value;

use super::unknown::unknown_fields;
use super::{default, problems};
use crate::api::hash::fnv64a;
use crate::api::object;
use crate::api::status::Status;

/// Number of mismatches that are listed.
const NAMED: usize = 5;
/// Maximum length of the description of one mismatch, in bytes: a validation can fail in a thousand places.
const TOLD: usize = 600;

/// A request: the custom resources, and the schemas that they have to match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaCheck {
    /// Name of the CustomResourceDefinition.
    pub crd: String,
    /// API group of the custom resources.
    pub group: String,
    /// Their kind.
    pub kind: String,
    /// Their plural, as in URLs.
    pub plural: String,
    /// Whether they are namespaced.
    pub namespaced: bool,
    /// The versions to read them in, each with its new schema (`openAPIV3Schema`).
    pub schemas: Vec<(String, Value)>,
}

impl SchemaCheck {
    /// Returns a digest that distinguishes requests about the same CustomResourceDefinition.
    pub fn digest(&self) -> String {
        let schemas: Vec<String> = self.schemas.iter().map(|(version, schema)| format!("{version} {schema}")).collect();
        fnv64a(&schemas.join("\n"))
    }
}

/// A custom resource that does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The version in which it was read.
    pub version: String,
    /// `namespace/name`, or the name alone.
    pub name: String,
    /// The errors: `spec.size: Required value`; several are in brackets.
    pub problem: String,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaCheckResult {
    /// Time of the check.
    pub at: Timestamp,
    /// Number of custom resources that were checked; each counts once for every version.
    pub looked_at: u64,
    /// Number of mismatches.
    pub invalid: u64,
    /// The first mismatches.
    pub first: Vec<Violation>,
    /// Number of objects that match, but have fields that the schema does not contain: the API server drops them.
    pub losses: u64,
    /// The first of those, with the first of their fields.
    pub first_losses: Vec<Violation>,
    /// Why not all of them could be read.
    pub refusal: Option<Status>,
}

/// Checks custom resources, one after another.
#[derive(Debug)]
pub struct SchemaChecker<'q> {
    question: &'q SchemaCheck,
    looked_at: u64,
    invalid: u64,
    first: Vec<Violation>,
    losses: u64,
    first_losses: Vec<Violation>,
}

impl<'q> SchemaChecker<'q> {
    /// Creates a checker.
    pub fn new(question: &'q SchemaCheck) -> Self {
        Self { question, looked_at: 0, invalid: 0, first: Vec::new(), losses: 0, first_losses: Vec::new() }
    }

    /// Checks an object, as it was read in a version. Fields with a default in the schema are considered set, as in the API
    /// server.
    pub fn check(&mut self, version: &str, mut object: Value) {
        let Some((_, schema)) = self.question.schemas.iter().find(|(name, _)| name == version) else { return };
        self.looked_at += 1;
        default(schema, &mut object);
        let mut found = problems(schema, &object);
        let name = || match object::namespace(&object) {
            "" => object::name(&object).to_owned(),
            namespace => format!("{namespace}/{}", object::name(&object)),
        };
        if found.is_empty() {
            self.look_for_losses(version, schema, &object, name);
            return;
        }
        self.invalid += 1;
        if self.first.len() < NAMED {
            let mut problem = if found.len() == 1 { found.remove(0) } else { format!("[{}]", found.join(", ")) };
            if problem.len() > TOLD {
                problem.truncate(problem.floor_char_boundary(TOLD));
                problem.push('…');
            }
            self.first.push(Violation { version: version.to_owned(), name: name(), problem });
        }
    }

    /// Records an object with unknown fields. A schema without properties is not checked for this: it only counts objects.
    fn look_for_losses(&mut self, version: &str, schema: &Value, object: &Value, name: impl Fn() -> String) {
        if !schema["properties"].is_object() {
            return;
        }
        let unknown = unknown_fields(schema, object);
        if unknown.is_empty() {
            return;
        }
        self.losses += 1;
        if self.first_losses.len() < NAMED {
            let fields: Vec<String> = unknown.iter().take(NAMED).map(ToString::to_string).collect();
            let more = if unknown.len() > NAMED { ", …" } else { "" };
            let problem = format!("{}{more}", fields.join(", "));
            self.first_losses.push(Violation { version: version.to_owned(), name: name(), problem });
        }
    }

    /// Returns the result, at that time; `refusal` states why not all objects could be read.
    pub fn end(self, at: Timestamp, refusal: Option<Status>) -> SchemaCheckResult {
        let Self { question: _, looked_at, invalid, first, losses, first_losses } = self;
        SchemaCheckResult { at, looked_at, invalid, first, losses, first_losses, refusal }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question() -> SchemaCheck {
        let size = json!({ "type": "integer" });
        let colour = json!({ "type": "string", "default": "red" });
        let spec = json!({ "type": "object", "required": ["size", "colour"], "properties": { "size": size, "colour": colour } });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        SchemaCheck { kind: "Rose".into(), schemas: vec![("v1".into(), schema)], ..SchemaCheck::default() }
    }

    #[test]
    fn ten_thousand_mismatches_are_counted_and_the_first_are_listed() {
        let question = question();
        let mut fitting = SchemaChecker::new(&question);
        for n in 0..10_000 {
            let spec = if n % 2 == 0 { json!({ "size": n }) } else { json!({}) };
            let metadata = json!({ "name": format!("rose-{n}"), "namespace": "garden" });
            fitting.check("v1", json!({ "metadata": metadata, "spec": spec }));
        }
        fitting.check("v2", json!({ "spec": {} }));
        let found = fitting.end(Timestamp::UNIX_EPOCH, None);
        assert_eq!((found.looked_at, found.invalid, found.first.len()), (10_000, 5_000, NAMED));
        let problem = "spec.size: Required value".to_owned();
        assert_eq!(found.first[0], Violation { version: "v1".into(), name: "garden/rose-1".into(), problem });
        assert_eq!(found.losses, 0);
    }

    #[test]
    fn fields_that_would_be_dropped_are_losses() {
        let question = question();
        let mut fitting = SchemaChecker::new(&question);
        let metadata = json!({ "name": "rose", "namespace": "garden" });
        fitting.check("v1", json!({ "metadata": metadata, "spec": { "size": 1, "terrace": true } }));
        fitting.check("v1", json!({ "metadata": metadata, "spec": { "size": 1 } }));
        let found = fitting.end(Timestamp::UNIX_EPOCH, None);
        assert_eq!((found.looked_at, found.invalid, found.losses), (2, 0, 1));
        let loss = Violation { version: "v1".into(), name: "garden/rose".into(), problem: "spec.terrace".into() };
        assert_eq!(found.first_losses, [loss]);
    }

    #[test]
    fn other_schemas_are_another_request() {
        let other = SchemaCheck { schemas: vec![("v1".into(), json!({}))], ..question() };
        assert_eq!(question().digest(), question().digest());
        assert_ne!(question().digest(), other.digest());
    }
}
