//! Do the custom resources that exist fit the schemas that their CustomResourceDefinition is to have?
//!
//! ```text
//!   SchemaCheck (the question) -> SchemaChecker: one object after the other -> SchemaCheckResult (the answer)
//! ```
//!
//! *Guarantee.* Memory does not grow with the number of objects: what does not fit is counted, and only the first are kept.
//! *Caveat.* Rules (`x-kubernetes-validations`) are not tried; neither does OLM.

use jiff::Timestamp;
use serde_json::Value;

use super::unknown::unknown_fields;
use super::{default, problems};
use crate::api::hash::fnv64a;
use crate::api::object;
use crate::api::status::Status;

/// How many objects that do not fit are named.
const NAMED: usize = 5;
/// How much is told of what is wrong with one of them, in bytes: a validation can fail in a thousand places.
const TOLD: usize = 600;

/// What is asked: which custom resources, and the schemas they are to fit.
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
    /// Are they in namespaces?
    pub namespaced: bool,
    /// The versions to read them in, each with its new schema (`openAPIV3Schema`).
    pub schemas: Vec<(String, Value)>,
}

impl SchemaCheck {
    /// What tells this question from others about the same CustomResourceDefinition.
    pub fn digest(&self) -> String {
        let schemas: Vec<String> = self.schemas.iter().map(|(version, schema)| format!("{version} {schema}")).collect();
        fnv64a(&schemas.join("\n"))
    }
}

/// A custom resource that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The version it was read in.
    pub version: String,
    /// `namespace/name`, or the name alone.
    pub name: String,
    /// What is wrong: `spec.size: Required value`, several in brackets.
    pub problem: String,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaCheckResult {
    /// When.
    pub at: Timestamp,
    /// How many custom resources were looked at; each counts once a version.
    pub looked_at: u64,
    /// How many of them do not fit.
    pub misfits: u64,
    /// The first of those.
    pub first: Vec<Violation>,
    /// How many fit, but have fields that the schema does not know: the API server drops them.
    pub losses: u64,
    /// The first of those, with the first of their fields.
    pub first_losses: Vec<Violation>,
    /// Why they could not all be read.
    pub refusal: Option<Status>,
}

/// Looks at custom resources, one after the other.
#[derive(Debug)]
pub struct SchemaChecker<'q> {
    question: &'q SchemaCheck,
    looked_at: u64,
    misfits: u64,
    first: Vec<Violation>,
    losses: u64,
    first_losses: Vec<Violation>,
}

impl<'q> SchemaChecker<'q> {
    /// Nothing was looked at yet.
    pub fn new(question: &'q SchemaCheck) -> Self {
        Self { question, looked_at: 0, misfits: 0, first: Vec::new(), losses: 0, first_losses: Vec::new() }
    }

    /// Looks at one, as it was read in a version. What the schema has a default for counts as there, as it does for the API server.
    pub fn look(&mut self, version: &str, mut object: Value) {
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
        self.misfits += 1;
        if self.first.len() < NAMED {
            let mut problem = if found.len() == 1 { found.remove(0) } else { format!("[{}]", found.join(", ")) };
            if problem.len() > TOLD {
                problem.truncate(problem.floor_char_boundary(TOLD));
                problem.push('…');
            }
            self.first.push(Violation { version: version.to_owned(), name: name(), problem });
        }
    }

    /// Notes an object with fields that the schema does not know. A schema without properties is none: it only counts objects.
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

    /// What was found, at that time; `refusal` says why not all could be read.
    pub fn end(self, at: Timestamp, refusal: Option<Status>) -> SchemaCheckResult {
        let Self { question: _, looked_at, misfits, first, losses, first_losses } = self;
        SchemaCheckResult { at, looked_at, misfits, first, losses, first_losses, refusal }
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
    fn ten_thousand_misfits_are_counted_and_the_first_are_named() {
        let question = question();
        let mut fitting = SchemaChecker::new(&question);
        for n in 0..10_000 {
            let spec = if n % 2 == 0 { json!({ "size": n }) } else { json!({}) };
            let metadata = json!({ "name": format!("rose-{n}"), "namespace": "garden" });
            fitting.look("v1", json!({ "metadata": metadata, "spec": spec }));
        }
        fitting.look("v2", json!({ "spec": {} }));
        let found = fitting.end(Timestamp::UNIX_EPOCH, None);
        assert_eq!((found.looked_at, found.misfits, found.first.len()), (10_000, 5_000, NAMED));
        let problem = "spec.size: Required value".to_owned();
        assert_eq!(found.first[0], Violation { version: "v1".into(), name: "garden/rose-1".into(), problem });
        assert_eq!(found.losses, 0);
    }

    #[test]
    fn fields_that_would_be_dropped_are_losses() {
        let question = question();
        let mut fitting = SchemaChecker::new(&question);
        let metadata = json!({ "name": "rose", "namespace": "garden" });
        fitting.look("v1", json!({ "metadata": metadata, "spec": { "size": 1, "terrace": true } }));
        fitting.look("v1", json!({ "metadata": metadata, "spec": { "size": 1 } }));
        let found = fitting.end(Timestamp::UNIX_EPOCH, None);
        assert_eq!((found.looked_at, found.misfits, found.losses), (2, 0, 1));
        let loss = Violation { version: "v1".into(), name: "garden/rose".into(), problem: "spec.terrace".into() };
        assert_eq!(found.first_losses, [loss]);
    }

    #[test]
    fn other_schemas_are_another_question() {
        let other = SchemaCheck { schemas: vec![("v1".into(), json!({}))], ..question() };
        assert_eq!(question().digest(), question().digest());
        assert_ne!(question().digest(), other.digest());
    }
}
