//! The OperatorCondition of a ClusterServiceVersion, with which an operator reports its state to OLM, and the permission to
//! write it (olm-behaviour/csv.md#operatorconditions).
//!
//! ```text
//!   ClusterServiceVersion -> OperatorCondition -> Role, RoleBinding for the operator's ServiceAccounts
//!                            spec.conditions   -> status.conditions
//! ```

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::api::cluster_service_version::is_copy;
use crate::api::conditions::{self, Condition, Conditions};
use crate::api::{labels, object};
use crate::plan::{Action, Key, Plan};
use crate::world::{Reader, kind};

/// Plans for the OperatorCondition of one ClusterServiceVersion.
pub fn plan(world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
    let csv = world
        .json(&kind::CLUSTER_SERVICE_VERSION, namespace, name)
        .filter(|csv| !is_copy(csv) && !object::is_deleting(csv));
    let Some(condition) = world.json(&kind::OPERATOR_CONDITION, namespace, name) else {
        return Plan::act(csv.map(|csv| Action::Create(generate(csv, None))).into_iter().collect());
    };
    if object::is_deleting(condition) {
        return Plan::nothing();
    }
    if let Some(csv) = csv {
        let wanted = generate(csv, Some(condition));
        if wanted != *condition {
            return Plan::act(vec![Action::Update(wanted)]);
        }
    }
    let writes = [role(world, condition), binding(world, condition), report(condition, now)];
    Plan::act(writes.into_iter().flatten().collect())
}

/// Returns the OperatorCondition that its ClusterServiceVersion requires; fields that are not derived are preserved.
fn generate(csv: &Value, present: Option<&Value>) -> Value {
    let mut condition = present.cloned().unwrap_or_else(|| {
        json!({
            "apiVersion": "operators.coreos.com/v2", "kind": "OperatorCondition",
            "metadata": { "name": object::name(csv), "namespace": object::namespace(csv) },
        })
    });
    object::set_owner_reference(&mut condition, object::owner_reference(csv, true));
    let spec = object::map_mut(&mut condition, &["spec"]);
    set_list(spec, "deployments", names(csv, "deployments", "name"));
    // One entry for each permission, so that an account may occur several times, as in OLM.
    let mut accounts = names(csv, "clusterPermissions", "serviceAccountName");
    accounts.extend(names(csv, "permissions", "serviceAccountName"));
    if accounts.is_empty() {
        accounts.push("default".into());
    }
    set_list(spec, "serviceAccounts", accounts);
    condition
}

/// Returns the names in one part of the install strategy; entries without a name are left out.
fn names(csv: &Value, part: &str, field: &str) -> Vec<Value> {
    let entries = object::list(csv, &["spec", "install", "spec", part]).iter();
    entries.map(|e| object::text(e, &[field])).filter(|n| !n.is_empty()).map(Value::from).collect()
}

fn set_list(map: &mut Map<String, Value>, field: &str, list: Vec<Value>) {
    if list.is_empty() {
        map.remove(field);
    } else {
        map.insert(field.to_owned(), list.into());
    }
}

/// Returns the Role that lets the operator write its OperatorCondition.
fn role(world: &Reader<'_>, condition: &Value) -> Option<Action> {
    let rules = json!([{
        "verbs": ["get", "update", "patch"],
        "apiGroups": ["operators.coreos.com"],
        "resources": ["operatorconditions"],
        "resourceNames": [object::name(condition)],
    }]);
    owned(world, condition, "Role", &[("rules", rules)])
}

/// Returns its binding to the operator's ServiceAccounts. Subjects have no namespace: that of the binding applies.
fn binding(world: &Reader<'_>, condition: &Value) -> Option<Action> {
    let subjects: Vec<Value> = object::list(condition, &["spec", "serviceAccounts"])
        .iter()
        .map(|account| json!({ "kind": "ServiceAccount", "name": account }))
        .collect();
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": object::name(condition) });
    owned(world, condition, "RoleBinding", &[("subjects", subjects.into()), ("roleRef", role)])
}

/// Creates or restores an object with the OperatorCondition's name that it owns.
fn owned(world: &Reader<'_>, condition: &Value, kind: &str, fields: &[(&str, Value)]) -> Option<Action> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let (namespace, name) = (object::namespace(condition), object::name(condition));
    let present = world.json(&kind::GroupKind::new(GROUP, kind), namespace, name);
    let mut wanted = present.cloned().unwrap_or_else(|| {
        json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": kind,
            "metadata": { "name": name, "namespace": namespace },
        })
    });
    object::set_label(&mut wanted, labels::MANAGED, "true");
    object::set_owner_reference(&mut wanted, object::owner_reference(condition, true));
    for (field, value) in fields {
        if !object::covers(object::at(&wanted, &[field]), value) {
            object::map_mut(&mut wanted, &[]).insert((*field).to_owned(), value.clone());
        }
    }
    match present {
        None => Some(Action::Create(wanted)),
        Some(present) => (*present != wanted).then_some(Action::Update(wanted)),
    }
}

/// Copies `spec.conditions`, which the operator writes, to the status, with its generation.
fn report(condition: &Value, now: Timestamp) -> Option<Action> {
    let generation = object::generation(condition);
    let mut reported = Conditions::new(condition).json().to_vec();
    for written in Conditions::from_list(object::list(condition, &["spec", "conditions"])).iter() {
        let old = Conditions::from_list(&reported).find(written.of_type());
        let same_status = old.filter(|old| old.status() == written.status());
        if same_status.is_some_and(|old| old.observed_generation() == Some(generation)) {
            continue;
        }
        let since = [same_status, Some(written)]
            .into_iter()
            .flatten()
            .map(Condition::last_transition_text)
            .find(|time| !time.is_empty());
        let new = json!({
            "type": written.of_type(),
            "status": written.status(),
            "reason": written.reason(),
            "message": written.message(),
            "observedGeneration": generation,
            "lastTransitionTime": since.map_or_else(|| object::time(now), str::to_owned),
        });
        conditions::set(&mut reported, new);
    }
    if reported == Conditions::new(condition).json() {
        return None;
    }
    let mut new = condition.clone();
    object::map_mut(&mut new, &["status"]).insert("conditions".to_owned(), reported.into());
    Some(Action::UpdateStatus(new))
}
