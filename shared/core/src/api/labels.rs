//! The labels by which OLM marks what it made, and for whom (reference/olm-operator.md §7.1).

use serde_json::Value;

use super::object;

/// `olm.managed: "true"` is on everything OLM makes.
pub const MANAGED: &str = "olm.managed";
/// Name of the owner.
pub const OWNER: &str = "olm.owner";
/// Namespace of the owner.
pub const OWNER_NAMESPACE: &str = "olm.owner.namespace";
/// Kind of the owner.
pub const OWNER_KIND: &str = "olm.owner.kind";
/// On Roles and bindings made for a permission: the hash of what they grant, or to whom.
pub const PERMISSIONS_HASH: &str = "olm.permissions.hash";
/// On Deployments: the hash of the spec that is wanted.
pub const DEPLOYMENT_SPEC_HASH: &str = "olm.deployment-spec-hash";
/// What the keys of labels start with that make an object a component of an Operator.
pub const COMPONENT: &str = "operators.coreos.com/";
/// On copies of ClusterServiceVersions and of their RBAC: the namespace of the original.
pub const COPIED_FROM: &str = "olm.copiedFrom";

/// Sets the three owner labels.
pub fn set_owner(object: &mut Value, owner: &Value) {
    object::set_label(object, OWNER, object::name(owner));
    object::set_label(object, OWNER_NAMESPACE, object::namespace(owner));
    object::set_label(object, OWNER_KIND, object::text(owner, &["kind"]));
}

/// Do the three owner labels name this owner?
pub fn is_owner(object: &Value, owner: &Value) -> bool {
    object::label(object, OWNER) == Some(object::name(owner))
        && object::label(object, OWNER_NAMESPACE) == Some(object::namespace(owner))
        && object::label(object, OWNER_KIND) == Some(object::text(owner, &["kind"]))
}
