//! Selects the relevant objects of common kinds: objects that OLM created, and components of an operator.

use olm_core::api::{labels, object};
use serde_json::Value;

/// Returns whether OLM created an object, by its labels or by an owner of kind ClusterServiceVersion: old versions of OLM do not set the
/// label.
pub(crate) fn is_of_olm(json: &Value) -> bool {
    let owners = object::list(json, &["metadata", "ownerReferences"]);
    object::label(json, labels::MANAGED) == Some("true")
        || object::label(json, labels::OWNER).is_some()
        || owners.iter().any(|owner| object::text(owner, &["kind"]) == "ClusterServiceVersion")
}

/// Returns whether a label makes an object a component of an Operator. Users may label any object.
pub(crate) fn is_component(json: &Value) -> bool {
    object::entries(json, &["metadata", "labels"]).any(|(key, _)| key.starts_with(labels::COMPONENT))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_owners_select_relevant_objects() {
        let of = |metadata: Value| {
            let object = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata });
            (is_of_olm(&object), is_component(&object))
        };
        assert_eq!(of(json!({ "labels": { "olm.managed": "true" } })), (true, false));
        assert_eq!(of(json!({ "labels": { "olm.managed": "false" } })), (false, false));
        assert_eq!(of(json!({ "labels": { "operators.coreos.com/rose.garden": "" } })), (false, true));
        assert_eq!(
            of(json!({ "ownerReferences": [{ "kind": "ClusterServiceVersion", "name": "rose" }] })),
            (true, false)
        );
        assert_eq!(of(json!({ "ownerReferences": [{ "kind": "Deployment", "name": "rose" }] })), (false, false));
        assert_eq!(of(json!({ "labels": { "app": "rose" } })), (false, false));
    }
}
