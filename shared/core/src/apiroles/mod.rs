//! The ClusterRoles `NAME-VERSION-{admin,edit,view,crdview}` for each API that a ClusterServiceVersion provides: people get rights on
//! it through the ClusterRoles that gather them by label (reference/olm-operator.md §4.7).
//!
//! *Guarantees*: two ClusterServiceVersions that provide the same API want the same ClusterRoles. They go with the
//! CustomResourceDefinition or APIService, not with the ClusterServiceVersion; but when that gives way to another OperatorGroup, those of
//! APIs go that no other provides.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::api::cluster_service_version::is_copy;
use crate::api::object::{self, Gvk};
use crate::api::{hash, labels};
use crate::membership;
use crate::plan::{Action, Key, Plan, Propagation};
use crate::world::{IndexKey, Reader, kind};

const VERBS: [(&str, &[&str]); 3] =
    [("admin", &["*"]), ("edit", &["create", "update", "patch", "delete"]), ("view", &["get", "list", "watch"])];

/// Plans the ClusterRoles of what one ClusterServiceVersion provides, as soon as it has succeeded.
pub fn plan(world: &Reader<'_>, key: &Key) -> Plan {
    let csv = world
        .json(&kind::CLUSTER_SERVICE_VERSION, &key.namespace, &key.name)
        .filter(|csv| !is_copy(csv) && !object::is_deleting(csv));
    let Some(csv) = csv else { return Plan::nothing() };
    let status = |key| object::text(csv, &["status", key]);
    let actions = match (status("phase"), status("reason")) {
        ("Succeeded", _) => wanted(world, csv).iter().filter_map(|(_, role)| ensure(world, role)).collect(),
        ("Failed", membership::CONFLICT) => {
            let surplus = wanted(world, csv).into_iter().filter(|(api, _)| !is_provided(world, api));
            surplus.filter_map(|(_, role)| withdraw(world, &role)).collect()
        }
        _ => return Plan::nothing(),
    };
    Plan::unordered(actions)
}

/// Does a ClusterServiceVersion that has succeeded provide that API, of whatever OperatorGroup?
fn is_provided(world: &Reader<'_>, api: &str) -> bool {
    let provides = |csv: &Value| {
        object::text(csv, &["status", "phase"]) == "Succeeded" && membership::Apis::of(csv).0.contains(api)
    };
    let groups = world.indexed(IndexKey::ProvidedApi(api.to_owned()));
    groups.iter().any(|group| membership::originals(world, object::namespace(group.json())).any(provides))
}

/// Deletes a ClusterRole, if it is OLM's.
fn withdraw(world: &Reader<'_>, role: &Value) -> Option<Action> {
    let present = world.json(&kind::CLUSTER_ROLE, "", object::name(role))?;
    let is_olms =
        object::entries(role, &["metadata", "labels"]).all(|(key, value)| object::label(present, key) == Some(value));
    (is_olms && !object::is_deleting(present)).then(|| Action::delete(present, Propagation::Background))
}

/// The ClusterRoles for all that is provided and there, each with its API as `Kind.version.group`.
fn wanted(world: &Reader<'_>, csv: &Value) -> Vec<(String, Value)> {
    let mut roles = Vec::new();
    for crd in object::list(csv, &["spec", "customresourcedefinitions", "owned"]) {
        let (name, version) = (object::text(crd, &["name"]), object::text(crd, &["version"]));
        let Some((plural, group)) = name.split_once('.') else { continue };
        let Some(owner) = world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", name) else { continue };
        // OLM writes the kind in lower case: a real OLM that took over would write it again.
        let api = Api {
            gvk: Gvk::new(group, version, object::text(crd, &["kind"])),
            resource: plural,
            prefix: format!("{name}-{version}"),
            owner: owner_reference("apiextensions.k8s.io/v1", "customresourcedefinition", owner),
        };
        roles.extend(api.roles());
        let rule = json!({
            "verbs": ["get"], "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"], "resourceNames": [name],
        });
        roles.push((api.name(), api.role("crdview", "view", rule)));
    }
    for service in object::list(csv, &["spec", "apiservicedefinitions", "owned"]) {
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
    /// `Kind.version.group`
    fn name(&self) -> String {
        let Gvk { group, version, kind } = &self.gvk;
        format!("{kind}.{version}.{group}")
    }

    fn roles(&self) -> impl Iterator<Item = (String, Value)> {
        VERBS.iter().map(|(suffix, verbs)| {
            let rule = json!({ "verbs": verbs, "apiGroups": [self.gvk.group], "resources": [self.resource] });
            (self.name(), self.role(suffix, suffix, rule))
        })
    }

    /// A ClusterRole whose rule is gathered by the roles of that suffix: Kubernetes' own, and those of OperatorGroups.
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

/// Creates or mends a ClusterRole; labels and owners of others stay.
fn ensure(world: &Reader<'_>, role: &Value) -> Option<Action> {
    let Some(present) = world.json(&kind::CLUSTER_ROLE, "", object::name(role)) else {
        return Some(Action::Create(role.clone()));
    };
    let mut new = present.clone();
    for (key, value) in object::entries(role, &["metadata", "labels"]) {
        object::set_label(&mut new, key, value);
    }
    for owner in object::list(role, &["metadata", "ownerReferences"]) {
        object::set_owner_reference(&mut new, owner.clone());
    }
    let rules = object::at(role, &["rules"]);
    if !object::covers(object::at(&new, &["rules"]), rules) {
        object::map_mut(&mut new, &[]).insert("rules".to_owned(), rules.clone());
    }
    (new != *present).then_some(Action::Update(new))
}
