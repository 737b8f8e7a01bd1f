//! The ClusterRoles `NAME-VERSION-{admin,edit,view,crdview}` for each API that a ClusterServiceVersion provides: users get
//! permissions through the ClusterRoles that aggregate them by label (olm-behaviour/operatorgroup.md#clusterroles).
//!
//! *Guarantees*: two ClusterServiceVersions that provide the same API require the same ClusterRoles. These are owned by the
//! CustomResourceDefinition or APIService, not by the ClusterServiceVersion.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::metadata::Metadata;
use crate::api::object::{self, Gvk};
use crate::api::{hash, labels};
use crate::membership;
use crate::plan::{Action, Key, Plan};
use crate::world::{Reader, kind};

const VERBS: [(&str, &[&str]); 3] =
    [("admin", &["*"]), ("edit", &["create", "update", "patch", "delete"]), ("view", &["get", "list", "watch"])];

/// Plans the ClusterRoles of what one ClusterServiceVersion provides, once it has succeeded.
pub fn plan(world: &Reader<'_>, key: &Key) -> Plan {
    let csv = world
        .json(&kind::CLUSTER_SERVICE_VERSION, &key.namespace, &key.name)
        .filter(|csv| Csv::new(csv).phase() == Phase::Succeeded)
        .filter(|csv| !membership::is_copy(csv) && !object::is_deleting(csv));
    let Some(csv) = csv else { return Plan::nothing() };
    let actions = desired(world, csv).iter().filter_map(|role| ensure(world, role)).collect();
    Plan::unordered(actions)
}

/// Returns the ClusterRoles for all existing provided APIs.
fn desired(world: &Reader<'_>, csv: &Value) -> Vec<Value> {
    let mut roles = Vec::new();
    for crd in Csv::new(csv).owned_crds() {
        let (name, version) = (object::text(crd, &["name"]), object::text(crd, &["version"]));
        let Some((plural, group)) = name.split_once('.') else { continue };
        let Some(owner) = world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", name) else { continue };
        // OLM writes the kind in lower case: OLM would write it again after a takeover.
        let api = Api {
            gvk: Gvk::new(group, version, object::kind(crd)),
            resource: plural,
            prefix: format!("{name}-{version}"),
            owner: owner_reference("apiextensions.k8s.io/v1", "customresourcedefinition", owner),
        };
        roles.extend(api.roles());
        let rule = json!({
            "verbs": ["get"], "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"], "resourceNames": [name],
        });
        roles.push(api.role("crdview", "view", rule));
    }
    for service in Csv::new(csv).owned_api_services() {
        let text = |field: &str| object::text(service, &[field]);
        let (group, version) = (text("group"), text("version"));
        let Some(owner) = world.json(&kind::API_SERVICE, "", &format!("{version}.{group}")) else { continue };
        let api = Api {
            gvk: Gvk::new(group, version, text("kind")),
            resource: text("name"),
            prefix: format!("{}-{version}", text("name")),
            owner: owner_reference("apiregistration.k8s.io/v1", "APIService", owner),
        };
        roles.extend(api.roles());
    }
    roles
}

struct Api<'a> {
    gvk: Gvk,
    resource: &'a str,
    prefix: String,
    owner: Value,
}

impl Api<'_> {
    fn roles(&self) -> impl Iterator<Item = Value> {
        VERBS.iter().map(|(suffix, verbs)| {
            let rule = json!({ "verbs": verbs, "apiGroups": [self.gvk.group], "resources": [self.resource] });
            self.role(suffix, suffix, rule)
        })
    }

    /// Returns a ClusterRole whose rule is aggregated by the roles of that suffix: those of Kubernetes and of
    /// OperatorGroups.
    fn role(&self, name: &str, gathered_by: &str, rule: Value) -> Value {
        let hash = hash::gvk_hash(&self.gvk);
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {
                "name": format!("{}-{name}", self.prefix),
                "labels": {
                    labels::MANAGED: "true",
                    format!("rbac.authorization.k8s.io/aggregate-to-{gathered_by}"): "true",
                    format!("olm.opgroup.permissions/aggregate-to-{hash}-{gathered_by}"): "true",
                },
                "ownerReferences": [self.owner],
            },
            "rules": [rule],
        })
    }
}

fn owner_reference(api_version: &str, kind: &str, owner: &Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "name": object::name(owner), "uid": object::uid(owner),
        "controller": false, "blockOwnerDeletion": false,
    })
}

/// Creates or restores a ClusterRole; labels and owners of others are preserved.
fn ensure(world: &Reader<'_>, role: &Value) -> Option<Action> {
    let Some(present) = world.json(&kind::CLUSTER_ROLE, "", object::name(role)) else {
        return Some(Action::Create(role.clone()));
    };
    let mut new = present.clone();
    for (key, value) in object::entries(role, &["metadata", "labels"]) {
        object::set_label(&mut new, key, value);
    }
    for owner in Metadata::new(role).owner_references() {
        object::set_owner_reference(&mut new, owner.clone());
    }
    let rules = object::at(role, &["rules"]);
    if !object::covers(object::at(&new, &["rules"]), rules) {
        object::map_mut(&mut new, &[]).insert("rules".to_owned(), rules.clone());
    }
    (new != *present).then_some(Action::Update(new))
}
