//! The schema of PackageManifests, which `kubectl explain` prints. It is generated from their types and stored in
//! `schema.json` (a repository rule), so that neither the generator nor its type information is part of the plugins.

use serde_json::{Value, json};

use super::{GROUP, KIND, PackageManifest, VERSION};
use crate::api::crd::generate::serialized;

/// Returns the schema, generated from the types.
pub fn generate() -> Value {
    let mut schema = serialized::<PackageManifest>();
    schema["x-kubernetes-group-version-kind"] = json!([{ "group": GROUP, "version": VERSION, "kind": KIND }]);
    schema["properties"]["apiVersion"] = text("The API group and version of the object.");
    schema["properties"]["kind"] = text("The kind of the object.");
    schema["properties"]["metadata"]["properties"]["resourceVersion"] =
        text("The revision of the last change of the package. It is valid as long as the server is running.");
    schema
}

/// Returns the schema of a text.
pub(super) fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}
