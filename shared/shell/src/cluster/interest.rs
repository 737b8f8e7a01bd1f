//! Which objects of the kinds that everybody uses concern us: those that OLM made, and those that are components of an operator.

use olm_core::api::{labels, object};
use serde_json::Value;

/// Did OLM make it? By its labels, or because a ClusterServiceVersion owns it: versions of OLM before the label left it out.
pub(crate) fn is_ours(json: &Value) -> bool {
    let owners = object::list(json, &["metadata", "ownerReferences"]);
    object::label(json, labels::MANAGED) == Some("true")
        || object::label(json, labels::OWNER).is_some()
        || owners.iter().any(|owner| object::text(owner, &["kind"]) == "ClusterServiceVersion")
}

/// Does a label make it a component of an Operator? Users may label what they like.
pub(crate) fn is_component(json: &Value) -> bool {
    object::entries(json, &["metadata", "labels"]).any(|(key, _)| key.starts_with(labels::COMPONENT))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_owners_say_what_concerns_us() {
        let of = |metadata: Value| {
            let object = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata });
            (is_ours(&object), is_component(&object))
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
