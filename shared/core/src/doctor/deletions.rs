//! Finds namespaces and objects whose deletion does not end.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Context;
use super::rule::{STUCK_DELETION, STUCK_NAMESPACE};
use crate::api::cluster_service_version::FINALIZER;
use crate::api::conditions::Conditions;
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::distribution::removal::waits_for_controllers;
use crate::distribution::state::remaining;
use crate::finding::Severity;
use crate::lint::{Change, Problem};
use crate::listing::{count, listed, shortened};
use crate::visible::word;
use crate::world::{GroupKind, kind};

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Problem>) {
    found.extend(context.all(&kind::NAMESPACE).filter_map(|namespace| stuck_namespace(context, namespace)));
    for gk in [kind::CLUSTER_SERVICE_VERSION, kind::SUBSCRIPTION, kind::CUSTOM_RESOURCE_DEFINITION] {
        found.extend(context.all(&gk).filter_map(|object| stuck_object(context, object)));
    }
    let mut kinds = BTreeSet::new();
    for crd in context.all(&kind::CUSTOM_RESOURCE_DEFINITION) {
        let view = CustomResourceDefinition::new(crd);
        let gk = GroupKind::new(view.group(), view.kind());
        // OLM's own kinds are checked above.
        let is_own = [kind::CLUSTER_SERVICE_VERSION, kind::SUBSCRIPTION].contains(&gk);
        if !is_own && kinds.insert(gk.clone()) {
            found.extend(custom_resources(context, crd, &gk));
        }
    }
}

fn deleted_since(object: &Value) -> &str {
    object::text(object, &["metadata", "deletionTimestamp"])
}

/// Returns whether the deletion of an object is to be reported.
fn is_stuck(context: &Context<'_>, object: &Value) -> bool {
    object::is_deleting(object) && context.lasts(object::parse_time(deleted_since(object)))
}

/// Returns the command that removes the finalizers of ClusterServiceVersions.
fn release(namespace: &str) -> Change {
    Change::Command(format!("kubectl olm run --release-finalizers {}", word(namespace)))
}

fn stuck_namespace(context: &Context<'_>, namespace: &Value) -> Option<Problem> {
    if !is_stuck(context, namespace) {
        return None;
    }
    let (name, reported) = (object::name(namespace), remaining(namespace));
    let mut message = format!("it is being deleted since {}", deleted_since(namespace));
    if !reported.is_empty() {
        message += &format!(": {reported}");
    }
    let problem = Problem::new(&STUCK_NAMESPACE, namespace, message);
    let discovery = Conditions::new(namespace).is_true("NamespaceDeletionDiscoveryFailure");
    Some(if discovery {
        problem.advise(format!(
            "first repair or delete the APIServices that do not respond ({})",
            super::rule::STALE_API_SERVICE.code
        ))
    } else if reported.contains(FINALIZER) && context.controllers != Some(true) {
        problem
            .propose("remove the finalizers of its ClusterServiceVersions, which no controller removes", release(name))
    } else if reported.is_empty() {
        problem.advise("check that the kube-controller-manager runs, which deletes the content of namespaces")
    } else {
        problem.advise("run the controllers that remove these finalizers, or remove the objects themselves")
    })
}

fn stuck_object(context: &Context<'_>, json: &Value) -> Option<Problem> {
    if !is_stuck(context, json) {
        return None;
    }
    let since = format!("it is being deleted since {}", deleted_since(json));
    if !waits_for_controllers(json) {
        let reported = remaining(json);
        let message = if reported.is_empty() { since } else { format!("{since}: {reported}") };
        return Some(
            Problem::new(&STUCK_DELETION, json, message).advise("run the controllers that remove its finalizers"),
        );
    }
    let problem = |severity, why: &str| {
        let message = format!("{since} and has the finalizer {FINALIZER}, which {why}");
        Problem::new(&STUCK_DELETION, json, message).severity(severity)
    };
    let namespace = object::namespace(json);
    Some(match context.controllers {
        Some(true) => problem(Severity::Warning, "the controllers of OLM have not removed")
            .advise("check the log of the controllers of OLM for the reason"),
        Some(false) => problem(Severity::Error, "no controllers of OLM remove, because none run")
            .propose("finish its deletion without controllers", release(namespace)),
        None => problem(Severity::Warning, "the controllers of OLM have not removed")
            .propose("finish its deletion without controllers, unless these run", release(namespace)),
    })
}

/// Reports the custom resources of a definition that are being deleted in one problem: there may be thousands.
fn custom_resources(context: &Context<'_>, crd: &Value, gk: &GroupKind) -> Option<Problem> {
    let mut names = Vec::new();
    let mut finalizers: BTreeMap<&str, usize> = BTreeMap::new();
    for json in context.world.all(gk).map(|object| object.json()).filter(|object| is_stuck(context, object)) {
        let (namespace, name) = (object::namespace(json), object::name(json));
        names.push(if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") });
        for finalizer in Metadata::new(json).finalizers().iter().filter_map(Value::as_str) {
            *finalizers.entry(finalizer).or_default() += 1;
        }
    }
    if names.is_empty() {
        return None;
    }
    let finalizers: Vec<String> = finalizers.iter().map(|(finalizer, n)| format!("{finalizer} ({n})")).collect();
    let waits =
        if finalizers.is_empty() { String::new() } else { format!(", with the finalizers {}", listed(&finalizers)) };
    let message =
        format!("the deletion of {} does not end{waits}: {}", count(names.len(), "custom resource"), shortened(&names));
    let owner = context.csvs().find(|csv| csv.owned_crd_names().any(|name| name == object::name(crd)));
    let problem = Problem::new(&STUCK_DELETION, crd, message);
    Some(match owner {
        Some(csv) => {
            let [name, namespace] = [csv.name(), csv.namespace()].map(word);
            let change = Change::Command(format!("kubectl olm operator describe {name} -n {namespace}"));
            problem.propose("check that the operator works, which removes the finalizers", change)
        }
        None => problem.advise(
            "no installed operator owns the definition: install it again, or remove the finalizers, which skips what they protect",
        ),
    })
}
