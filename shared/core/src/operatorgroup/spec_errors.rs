//! Errors in the spec of an OperatorGroup that the API server would reject. No cluster contains such a group, but files
//! may. The API server drops misspelled fields unless validation is strict, and a group without targets targets all
//! namespaces.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::api::{crd, kinds, object};
use crate::structural;

/// An error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The error with its field.
    pub what: String,
    /// How to fix it, an imperative without a full stop.
    pub hint: String,
}

/// The OperatorGroup's CustomResourceDefinition.
static DEFINITION: LazyLock<Value> = LazyLock::new(|| crd::of(&kinds::OPERATOR_GROUP));

/// Returns all errors. The status is not checked: users do not write it.
pub fn spec_errors(group: &Value) -> Vec<SpecError> {
    let schema = schema(group);
    let written = json!({ "metadata": {}, "spec": object::at(group, &["spec"]) });
    let mut taken = written.clone();
    structural::default(schema, &mut taken);
    let invalid = structural::problems(schema, &taken).into_iter().map(|what| SpecError {
        what,
        hint: "see the valid fields with kubectl explain operatorgroup.spec".to_owned(),
    });
    let unknown = structural::unknown_fields(schema, &written).into_iter().map(|field| SpecError {
        what: format!("unknown field {field}"),
        hint: match &field.similar {
            Some(other) => format!("use {} instead, if intended", field.beside(other)),
            None => "remove it; see the valid fields with kubectl explain operatorgroup.spec".to_owned(),
        },
    });
    invalid.chain(unknown).collect()
}

/// Returns the schema of the group's version, or the newest one.
fn schema(group: &Value) -> &'static Value {
    let version = object::text(group, &["apiVersion"]).rsplit('/').next().unwrap_or_default();
    let versions = object::list(&DEFINITION, &["spec", "versions"]);
    let wanted = versions.iter().find(|v| object::text(v, &["name"]) == version).or_else(|| versions.first());
    wanted.map_or(&Value::Null, |v| object::at(v, &["schema", "openAPIV3Schema"]))
}
