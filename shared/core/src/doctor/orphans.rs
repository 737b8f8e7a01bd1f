//! Finds what belongs to nothing: definitions, Subscriptions, ClusterServiceVersions and permissions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Context;
use super::rule::{ORPHAN, UNOWNED_DEFINITION};
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::kinds;
use crate::api::labels::{COMPONENT, INSTALLED_ALONGSIDE, MANAGED};
use crate::api::object::{self, ObjectRef};
use crate::api::subscription::Subscription;
use crate::distribution::PACKAGE_SERVER;
use crate::finding::Severity;
use crate::lint::{Change, Problem};
use crate::visible::word;
use crate::world::{Reader, kind};

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Problem>) {
    let owned = owned_definitions(&context.world);
    found.extend(context.living(&kind::CUSTOM_RESOURCE_DEFINITION).filter_map(|crd| unowned(context, crd, &owned)));
    found.extend(
        context
            .living(&kind::SUBSCRIPTION)
            .filter_map(|subscription| without_csv(context, Subscription::new(subscription))),
    );
    let subscribed: BTreeSet<(&str, &str)> = context
        .living(&kind::SUBSCRIPTION)
        .map(Subscription::new)
        .flat_map(|s| [(s.namespace(), s.installed_csv()), (s.namespace(), s.current_csv())])
        .collect();
    for csv in context.csvs().filter(|csv| !object::is_deleting(csv.json)) {
        if !subscribed.contains(&(csv.namespace(), csv.name())) {
            found.extend(without_subscription(context, csv));
        }
    }
    for gk in [kind::CLUSTER_ROLE, kind::CLUSTER_ROLE_BINDING] {
        found.extend(context.living(&gk).filter_map(|object| permissions(context, object)));
    }
}

/// Returns the names of the CustomResourceDefinitions that ClusterServiceVersions own.
pub(super) fn owned_definitions(world: &Reader<'_>) -> BTreeSet<String> {
    let csvs = world.all(&kind::CLUSTER_SERVICE_VERSION).map(|object| Csv::new(object.json()));
    csvs.filter(|csv| !csv.is_copy()).flat_map(Csv::owned_crd_names).map(str::to_owned).collect()
}

/// Returns whether OLM has installed a CustomResourceDefinition for an operator (olm-behaviour/processes.md#labels).
pub(super) fn is_of_operators(crd: &Value) -> bool {
    let has = |map, prefix: &str| object::entries(crd, &["metadata", map]).any(|(key, _)| key.starts_with(prefix));
    let is_marked = object::label(crd, MANAGED) == Some("true")
        || has("labels", COMPONENT)
        || has("annotations", INSTALLED_ALONGSIDE);
    is_marked && CustomResourceDefinition::new(crd).group() != kinds::OLM_GROUP
}

fn unowned(context: &Context<'_>, crd: &Value, owned: &BTreeSet<String>) -> Option<Problem> {
    let is_unowned = is_of_operators(crd)
        && !owned.contains(object::name(crd))
        && context.is_old(crd)
        && context.input.known.all(&kind::CLUSTER_SERVICE_VERSION);
    // An InstallPlan creates definitions before the ClusterServiceVersion; the annotation names that.
    let mut alongside = object::entries(crd, &["metadata", "annotations"])
        .filter(|(key, _)| key.starts_with(INSTALLED_ALONGSIDE))
        .filter_map(|(_, value)| value.split_once('/'));
    if !is_unowned || alongside.any(|(namespace, csv)| context.is_on_its_way(namespace, csv)) {
        return None;
    }
    let packages: BTreeSet<&str> =
        object::entries(crd, &["metadata", "labels"]).filter_map(|(key, _)| key.strip_prefix(COMPONENT)).collect();
    let of = match packages.first() {
        Some(first) => format!("it was installed for {first}, and "),
        None => String::new(),
    };
    let message = format!("{of}no ClusterServiceVersion owns it");
    let change = Change::Delete(vec![ObjectRef::from_object(crd)]);
    let what = "install the operator again; the deletion of the definition deletes all its custom resources";
    Some(Problem::new(&UNOWNED_DEFINITION, crd, message).propose(what, change))
}

fn without_csv(context: &Context<'_>, subscription: Subscription<'_>) -> Option<Problem> {
    let (namespace, csv) = (subscription.namespace(), subscription.installed_csv());
    let is_missing = !csv.is_empty()
        && context.input.known.has_none(context.input.world, &kind::CLUSTER_SERVICE_VERSION, namespace, csv)
        && !is_replaced(context, namespace, csv);
    if !is_missing {
        return None;
    }
    let message = format!("its installed ClusterServiceVersion {csv} does not exist, and is not installed again");
    let [name, place] = [subscription.name(), namespace].map(word);
    let change = Change::Command(format!("kubectl olm operator uninstall {name} -n {place}"));
    let what = "remove what is left, definitions and custom resources are retained, and install it again";
    let csv = kinds::CLUSTER_SERVICE_VERSION.object(namespace, csv);
    let problem = Problem::new(&ORPHAN, subscription.json, message).severity(Severity::Error);
    Some(problem.also([csv]).propose(what, change))
}

/// Returns whether another ClusterServiceVersion has replaced it: the status of the Subscription follows.
fn is_replaced(context: &Context<'_>, namespace: &str, name: &str) -> bool {
    let mut all = context.world.in_namespace(&kind::CLUSTER_SERVICE_VERSION, namespace);
    all.any(|object| {
        let csv = Csv::new(object.json());
        csv.replaces() == name && !context.lasts(csv.last_transition())
    })
}

fn without_subscription(context: &Context<'_>, csv: Csv<'_>) -> Option<Problem> {
    let is_alone = csv.name() != PACKAGE_SERVER
        && context.is_old(csv.json)
        && context.input.known.within(&kind::SUBSCRIPTION, csv.namespace())
        && !matches!(csv.phase(), Phase::Replacing | Phase::Deleting);
    // One that replaces it belongs to the Subscription.
    let mut others = context.world.in_namespace(&kind::CLUSTER_SERVICE_VERSION, csv.namespace());
    if !is_alone || others.any(|other| Csv::new(other.json()).replaces() == csv.name()) {
        return None;
    }
    let message = "no Subscription installs it: it is not updated";
    let what = "create a Subscription of its package, with startingCSV, or uninstall it";
    Some(Problem::new(&ORPHAN, csv.json, message).severity(Severity::Info).advise(what))
}

fn permissions(context: &Context<'_>, object: &Value) -> Option<Problem> {
    let owner = context.lost_owner(object)?;
    let message =
        format!("it belongs to ClusterServiceVersion {}/{}, which does not exist", owner.namespace, owner.name);
    let change = Change::Delete(vec![ObjectRef::from_object(object)]);
    Some(Problem::new(&ORPHAN, object, message).also([owner]).fix("delete it", change))
}
