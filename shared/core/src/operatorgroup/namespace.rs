//! The label `olm.operatorgroup.uid/UID` on each namespace that an OperatorGroup targets by name or selector
//! (olm-behaviour/operatorgroup.md#namespace-labels).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::api::object;
use crate::plan::{Action, Key, Plan};
use crate::world::{IndexKey, Reader, kind};

const PREFIX: &str = "olm.operatorgroup.uid/";

/// Plans the labels of one namespace.
pub fn plan(world: &Reader<'_>, key: &Key) -> Plan {
    let Some(namespace) = world.json(&kind::NAMESPACE, "", &key.name).filter(|n| !object::is_deleting(n)) else {
        return Plan::nothing();
    };
    let groups = world.indexed(IndexKey::Target(key.name.clone()));
    let wanted: BTreeSet<String> = groups.iter().map(|g| format!("{PREFIX}{}", object::uid(g.json()))).collect();
    let present: BTreeSet<String> = object::entries(namespace, &["metadata", "labels"])
        .map(|(key, _)| key.to_owned())
        .filter(|key| key.starts_with(PREFIX))
        .collect();
    let stale = present.difference(&wanted).map(|key| (key.clone(), Value::Null));
    let missing = wanted.difference(&present).map(|key| (key.clone(), Value::from("")));
    let changes: BTreeMap<String, Value> = stale.chain(missing).collect();
    if changes.is_empty() {
        return Plan::nothing();
    }
    Plan::act(vec![Action::label(namespace, changes.into_iter().collect::<serde_json::Map<_, _>>().into())])
}
