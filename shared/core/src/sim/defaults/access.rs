//! Defaults of roles and their bindings.

use serde_json::Value;

use super::{child, each, set};
use crate::api::kinds::RBAC_GROUP;

pub(super) fn apply(kind: &str, object: &mut Value) {
    match kind {
        "Role" | "ClusterRole" => set(object, "rules", Value::Null),
        "RoleBinding" | "ClusterRoleBinding" => {
            set(child(object, "roleRef"), "apiGroup", RBAC_GROUP);
            each(object, "subjects", |subject| {
                if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
                    set(subject, "apiGroup", RBAC_GROUP);
                }
            });
        }
        _ => {}
    }
}
