//! The labels that assign objects to a package's installation (olm-behaviour/processes.md#operators-and-adoption).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{LABEL, can_be_component};
use crate::api::cluster_service_version::{Csv, is_copy};
use crate::api::object;
use crate::api::subscription::Subscription;
use crate::plan::{Action, Key, Plan};
use crate::world::{GroupKind, IndexKey, Reader, kind};

/// Plans the labels for the Subscription and the ClusterServiceVersion of that namespace and name.
pub fn plan(world: &Reader<'_>, key: &Key) -> Plan {
    let mut actions = Vec::new();
    if let Some(subscription) = world.json(&kind::SUBSCRIPTION, &key.namespace, &key.name) {
        around_subscription(world, subscription, &mut actions);
    }
    if let Some(csv) = world.json(&kind::CLUSTER_SERVICE_VERSION, &key.namespace, &key.name) {
        below_csv(world, csv, &mut actions);
    }
    Plan::unordered(actions)
}

/// Returns the name of an Operator: `PACKAGE.NAMESPACE`, truncated to the limit of a label's key.
pub fn component(package: &str, namespace: &str) -> String {
    const MAX: usize = 63;
    let whole = format!("{package}.{namespace}");
    whole[..whole.floor_char_boundary(MAX)].trim_end_matches(['.', '_', '-']).to_owned()
}

/// Labels the Subscription, what it installed, and its current InstallPlan; previous InstallPlans lose the label.
fn around_subscription(world: &Reader<'_>, subscription: &Value, actions: &mut Vec<Action>) {
    let namespace = object::namespace(subscription);
    let package = object::text(subscription, &["spec", "name"]);
    if package.is_empty() {
        return;
    }
    let operator = component(package, namespace);
    actions.extend(adopt(subscription, &operator));
    let csv = Subscription::new(subscription).installed_csv();
    if !csv.is_empty() {
        let csv = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, csv).filter(|c| !is_copy(c));
        actions.extend(csv.and_then(|csv| adopt(csv, &operator)));
    }
    let current = plan_of(subscription);
    if current.is_empty() {
        return;
    }
    actions.extend(world.json(&kind::INSTALL_PLAN, namespace, current).and_then(|plan| adopt(plan, &operator)));
    let labelled: Vec<&Value> = world.indexed(IndexKey::Component(operator.clone())).iter().map(|o| o.json()).collect();
    let past: Vec<&Value> = labelled
        .iter()
        .copied()
        .filter(|o| GroupKind::from_object(o) == kind::INSTALL_PLAN && object::namespace(o) == namespace)
        .filter(|o| object::name(o) != current)
        .collect();
    if past.is_empty() {
        return;
    }
    // Another Subscription to the same package may refer to another plan, which is current as well.
    let still: BTreeSet<&str> = world
        .in_namespace(&kind::SUBSCRIPTION, namespace)
        .map(|o| o.json())
        .filter(|s| component(object::text(s, &["spec", "name"]), namespace) == operator)
        .map(plan_of)
        .collect();
    let let_go = past.into_iter().filter(|plan| !still.contains(object::name(plan)));
    actions.extend(let_go.map(|plan| Action::label(plan, json!({ format!("{LABEL}{operator}"): null }))));
}

fn plan_of(subscription: &Value) -> &str {
    Subscription::new(subscription).plan_name()
}

/// Labels what a ClusterServiceVersion owns, by owner reference or owner labels, and the CustomResourceDefinitions that it
/// provides.
fn below_csv(world: &Reader<'_>, csv: &Value, actions: &mut Vec<Action>) {
    if is_copy(csv) || object::is_deleting(csv) {
        return;
    }
    let operators: Vec<&str> =
        object::entries(csv, &["metadata", "labels"]).filter_map(|(key, _)| key.strip_prefix(LABEL)).collect();
    if operators.is_empty() {
        return;
    }
    let mut owned = world.indexed(IndexKey::Owner(object::uid(csv).to_owned()));
    owned.extend(world.indexed(IndexKey::OwnerLabels {
        kind: object::kind(csv).to_owned(),
        namespace: object::namespace(csv).to_owned(),
        name: object::name(csv).to_owned(),
    }));
    let crds = Csv::new(csv).owned_crds();
    owned.extend(
        crds.iter().filter_map(|crd| world.object(&kind::CUSTOM_RESOURCE_DEFINITION, "", object::text(crd, &["name"]))),
    );
    let mut seen = BTreeSet::new();
    for object in owned.into_iter().map(|o| o.json()).filter(|o| can_be_component(o)) {
        if seen.insert(object::ObjectRef::from_object(object)) {
            let missing: Vec<(String, Value)> = operators
                .iter()
                .map(|operator| format!("{LABEL}{operator}"))
                .filter(|key| object::label(object, key).is_none())
                .map(|key| (key, "".into()))
                .collect();
            if !missing.is_empty() && !object::is_deleting(object) {
                let labels: serde_json::Map<String, Value> = missing.into_iter().collect();
                actions.push(Action::label(object, labels.into()));
            }
        }
    }
}

/// Labels an object as a component, unless it is labelled.
fn adopt(object: &Value, operator: &str) -> Option<Action> {
    let key = format!("{LABEL}{operator}");
    let wanted = object::label(object, &key).is_none() && !object::is_deleting(object);
    wanted.then(|| Action::label(object, json!({ key: "" })))
}
