//! Operator objects, which list everything that belongs to an installed package
//! (olm-behaviour/processes.md#operators-and-adoption).
//!
//! ```text
//!   adoption: Subscription -> its ClusterServiceVersion and InstallPlan -> objects that those own
//!             by the label operators.coreos.com/PACKAGE.NAMESPACE
//!   plan:     objects with that label -> status.components of Operator PACKAGE.NAMESPACE
//! ```

mod adoption;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

pub use self::adoption::{component, plan as plan_adoption};
use crate::api::cluster_service_version::is_copy;
use crate::api::conditions::Conditions;
use crate::api::labels::COMPONENT as LABEL;
use crate::api::names::{LONGEST_SUBDOMAIN, is_subdomain};
use crate::api::object;
use crate::plan::{Action, Key, Plan};
use crate::world::{GroupKind, IndexKey, Reader, kind};

/// The kinds of objects that can be components. Webhook configurations are not included.
const KINDS: [GroupKind; 16] = [
    kind::DEPLOYMENT,
    kind::SERVICE,
    kind::NAMESPACE,
    kind::API_SERVICE,
    kind::CUSTOM_RESOURCE_DEFINITION,
    kind::SUBSCRIPTION,
    kind::INSTALL_PLAN,
    kind::CLUSTER_SERVICE_VERSION,
    kind::OPERATOR_CONDITION,
    kind::SECRET,
    kind::CONFIG_MAP,
    kind::SERVICE_ACCOUNT,
    kind::ROLE,
    kind::ROLE_BINDING,
    kind::CLUSTER_ROLE,
    kind::CLUSTER_ROLE_BINDING,
];

/// Returns whether this object can be a component. Copies of ClusterServiceVersions cannot.
fn can_be_component(json: &Value) -> bool {
    let gk = GroupKind::from_object(json);
    KINDS.contains(&gk) && !(gk == kind::CLUSTER_SERVICE_VERSION && is_copy(json))
}

/// Plans for one Operator. It is created with the first component and never deleted here.
pub fn plan(world: &Reader<'_>, key: &Key) -> Plan {
    let mut components: Vec<&Value> = world
        .indexed(IndexKey::Component(key.name.clone()))
        .into_iter()
        .map(|o| o.json())
        .filter(|o| can_be_component(o))
        .collect();
    let Some(operator) = world.json(&kind::OPERATOR, "", &key.name) else {
        if components.is_empty() || !is_name(&key.name) {
            return Plan::nothing();
        }
        return Plan::act(vec![Action::Create(json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "Operator",
            "metadata": { "name": key.name }, "spec": {},
        }))]);
    };
    if object::is_deleting(operator) {
        return Plan::nothing();
    }
    components
        .sort_by_key(|o| (object::kind(o), object::text(o, &["apiVersion"]), object::namespace(o), object::name(o)));
    let mut wanted = json!({
        "labelSelector": { "matchExpressions": [{ "key": format!("{LABEL}{}", key.name), "operator": "Exists" }] },
    });
    if !components.is_empty() {
        let references: Vec<Value> = components.into_iter().map(reference).collect();
        object::map_mut(&mut wanted, &[]).insert("refs".to_owned(), references.into());
    }
    if *object::at(operator, &["status", "components"]) == wanted {
        return Plan::nothing();
    }
    let mut new = operator.clone();
    object::map_mut(&mut new, &["status"]).insert("components".to_owned(), wanted);
    Plan::act(vec![Action::UpdateStatus(new)])
}

/// Returns a reference to a component, with its conditions.
fn reference(component: &Value) -> Value {
    let mut reference = json!({
        "apiVersion": object::text(component, &["apiVersion"]),
        "kind": object::kind(component),
        "name": object::name(component),
    });
    let fields = object::map_mut(&mut reference, &[]);
    if !object::namespace(component).is_empty() {
        fields.insert("namespace".to_owned(), object::namespace(component).into());
    }
    let conditions = conditions(component);
    if !conditions.is_empty() {
        fields.insert("conditions".to_owned(), conditions.into());
    }
    reference
}

/// Returns the conditions of a component; a ClusterServiceVersion's phase is represented as a condition.
fn conditions(component: &Value) -> Vec<Value> {
    if GroupKind::from_object(component) != kind::CLUSTER_SERVICE_VERSION {
        return Conditions::new(component).json().iter().map(condition).collect();
    }
    let status = object::at(component, &["status"]);
    let phase = object::text(status, &["phase"]);
    if phase.is_empty() {
        return Vec::new();
    }
    let mut synthetic = condition(status);
    let fields = object::map_mut(&mut synthetic, &[]);
    fields.insert("type".to_owned(), phase.into());
    fields.insert("status".to_owned(), "True".into());
    vec![synthetic]
}

/// Returns the fields that all conditions have in common.
fn condition(source: &Value) -> Value {
    const FIELDS: [&str; 6] = ["type", "status", "reason", "message", "lastUpdateTime", "lastTransitionTime"];
    let fields = FIELDS.iter().filter_map(|field| {
        let value = object::at(source, &[field]).as_str().filter(|text| !text.is_empty())?;
        Some(((*field).to_owned(), value.into()))
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Returns whether an object of that name can exist. Labels allow more than names.
fn is_name(name: &str) -> bool {
    name.len() <= LONGEST_SUBDOMAIN && is_subdomain(name)
}
