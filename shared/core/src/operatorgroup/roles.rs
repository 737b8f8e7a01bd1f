//! The three ClusterRoles of an OperatorGroup. Kubernetes aggregates permissions on the provided APIs into them
//! (olm-behaviour/operatorgroup.md#clusterroles). Their `rules` are managed by Kubernetes and never written here.

use serde_json::{Value, json};

use crate::api::{hash, labels, object};
use crate::membership::{Apis, Group};
use crate::plan::{Action, Key, Propagation};
use crate::world::{IndexKey, Reader, kind};

const SUFFIXES: [&str; 3] = ["admin", "edit", "view"];

/// Returns `olm.og.NAME.SUFFIX-HASH`, with the name truncated to the limit of 253 characters.
pub(super) fn name(group: Group<'_>, suffix: &str) -> String {
    const PREFIX: &str = "olm.og.";
    const SEPARATORS: usize = ".-".len();
    let (namespace, name) = (group.namespace(), group.name());
    let hash = hash::text_hash(&format!("{namespace}/{name}/{suffix}"));
    let room = 253 - PREFIX.len() - SEPARATORS - suffix.len() - hash.len();
    let name = &name[..name.floor_char_boundary(room)];
    format!("{PREFIX}{name}.{suffix}-{hash}")
}

/// Creates the roles, and restores their owner and aggregation rule.
pub(super) fn ensure(world: &Reader<'_>, group: Group<'_>, apis: &Apis) -> Vec<Action> {
    SUFFIXES.iter().filter_map(|suffix| ensure_one(world, group, suffix, &aggregation(apis, suffix))).collect()
}

fn ensure_one(world: &Reader<'_>, group: Group<'_>, suffix: &str, rule: &Value) -> Option<Action> {
    let name = name(group, suffix);
    let present = world.json(&kind::CLUSTER_ROLE, "", &name);
    let mut role = present.cloned().unwrap_or_else(|| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": name, "labels": { labels::MANAGED: "true" } },
            "rules": null,
        })
    });
    labels::set_owner(&mut role, group.json);
    let fields = object::map_mut(&mut role, &[]);
    if rule.is_null() {
        fields.remove("aggregationRule");
    } else {
        fields.insert("aggregationRule".to_owned(), rule.clone());
    }
    match present {
        None => Some(Action::Create(role)),
        Some(present) => (*present != role).then_some(Action::Update(role)),
    }
}

/// Selects the ClusterRoles of each API; `null` when there are none.
fn aggregation(apis: &Apis, suffix: &str) -> Value {
    let mut keys: Vec<String> = apis
        .0
        .iter()
        .map(|api| format!("olm.opgroup.permissions/aggregate-to-{}-{suffix}", hash::fnv64a(api)))
        .collect();
    if keys.is_empty() {
        return Value::Null;
    }
    keys.sort();
    let selectors: Vec<Value> = keys.into_iter().map(|key| json!({ "matchLabels": { key: "true" } })).collect();
    json!({ "clusterRoleSelectors": selectors })
}

/// Deletes the roles of a deleted group.
pub(super) fn cleanup(world: &Reader<'_>, key: &Key) -> Vec<Action> {
    let owned = world.indexed(IndexKey::OwnerLabels {
        kind: kind::OPERATOR_GROUP.kind.into_owned(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    });
    let roles = owned.iter().map(|o| o.json()).filter(|o| object::kind(o) == "ClusterRole");
    roles.filter(|r| !object::is_deleting(r)).map(|r| Action::delete(r, Propagation::Background)).collect()
}
