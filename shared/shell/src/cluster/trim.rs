//! What of an object is not kept in memory.

use olm_core::api::object;
use serde_json::Value;

/// Drops what planning never reads and no write needs: `managedFields` (the API server keeps its own when they are not sent) and
/// the schemas of CustomResourceDefinitions (which are only ever patched).
pub(super) fn trim(json: &mut Value) {
    if let Some(metadata) = json.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    if object::text(json, &["kind"]) == "CustomResourceDefinition"
        && let Some(versions) = json.pointer_mut("/spec/versions").and_then(Value::as_array_mut)
    {
        for version in versions.iter_mut().filter_map(Value::as_object_mut) {
            version.remove("schema");
        }
    }
}
