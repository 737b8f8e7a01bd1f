//! What the API server would refuse in the spec of an OperatorGroup. No cluster has such a group, but files do. What is misspelt there is
//! lost, where the API server is not asked to be strict, and a group without targets targets all namespaces.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::{crd, object};
use crate::structural;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What, with its field.
    pub what: String,
    /// What to do about it, an imperative without a full stop.
    pub hint: String,
}

/// The OperatorGroup's CustomResourceDefinition.
static DEFINITION: LazyLock<Value> = LazyLock::new(|| {
    let is_wanted = |crd: &Value| CustomResourceDefinition::of(crd).kind() == "OperatorGroup";
    crd::all().into_iter().find(is_wanted).unwrap_or_default()
});

/// Everything that is wrong. The status does not count: nobody writes it.
pub fn faults(group: &Value) -> Vec<Fault> {
    let schema = schema(group);
    let written = json!({ "metadata": {}, "spec": object::at(group, &["spec"]) });
    let mut taken = written.clone();
    structural::default(schema, &mut taken);
    let invalid = structural::problems(schema, &taken).into_iter().map(|what| Fault {
        what,
        hint: "correct it: kubectl explain operatorgroup.spec tells what may be there".to_owned(),
    });
    let unknown = structural::unknown_fields(schema, &written).into_iter().map(|field| Fault {
        what: format!("there is no field {field}"),
        hint: match &field.similar {
            Some(other) => format!("write {}, if that is meant", field.beside(other)),
            None => "leave it out: kubectl explain operatorgroup.spec tells what may be there".to_owned(),
        },
    });
    invalid.chain(unknown).collect()
}

/// The schema of the version that the group is written in, or the newest.
fn schema(group: &Value) -> &'static Value {
    let version = object::text(group, &["apiVersion"]).rsplit('/').next().unwrap_or_default();
    let versions = object::list(&DEFINITION, &["spec", "versions"]);
    let wanted = versions.iter().find(|v| object::text(v, &["name"]) == version).or_else(|| versions.first());
    wanted.map_or(&Value::Null, |v| object::at(v, &["schema", "openAPIV3Schema"]))
}
