//! Finds objects that OLM created for owners that no longer exist.

use std::collections::BTreeSet;

use serde_json::Value;

use super::LintContext;
use super::problem::{Change, Problem};
use super::rule::{ORPHANED_COPY, ORPHANED_GROUP_ROLE, ORPHANED_PERMISSIONS};
use crate::api::cluster_service_version::Csv;
use crate::api::install_plan::{InstallPlan, Phase};
use crate::api::kinds;
use crate::api::labels::{COPIED_FROM, owner};
use crate::api::object::{self, ObjectRef};
use crate::api::subscription::Subscription;
use crate::listing::shortened;
use crate::membership;
use crate::world::{GroupKind, Reader, kind};

/// The kinds that grant permissions.
const RBAC: [GroupKind; 4] = [kind::CLUSTER_ROLE, kind::CLUSTER_ROLE_BINDING, kind::ROLE, kind::ROLE_BINDING];

pub(super) fn check(context: &LintContext<'_>, found: &mut Vec<Problem>) {
    for csv in context.world.all(&kind::CLUSTER_SERVICE_VERSION).map(|o| o.json()) {
        if let Some(source) = Csv::new(csv).copied_from().filter(|_| !object::is_deleting(csv)) {
            found.extend(copy(context, csv, source));
        }
    }
    for gk in &RBAC {
        for object in context.world.all(gk).map(|o| o.json()).filter(|o| !object::is_deleting(o)) {
            found.extend(permissions(context, object));
        }
    }
}

fn delete(rule: &'static super::Rule, object: &Value, message: String) -> Problem {
    Problem::new(rule, object, message).fix("delete it", Change::Delete(vec![ObjectRef::from_object(object)]))
}

fn copy(context: &LintContext<'_>, copy: &Value, source: &str) -> Option<Problem> {
    let name = object::name(copy);
    if context.is_missing(&kind::CLUSTER_SERVICE_VERSION, source, name) {
        let message = format!("it is a copy of {source}/{name}, which does not exist");
        return Some(delete(&ORPHANED_COPY, copy, message));
    }
    let original = context.world.json(&kind::CLUSTER_SERVICE_VERSION, source, name)?;
    // Uses the group's status: until it is written, the spec has no effect.
    let group = membership::group_of(&context.world, original)?;
    let targets = group.targets();
    if targets.contains("") || targets.contains(object::namespace(copy)) {
        return None;
    }
    let (namespace, group) = (object::namespace(copy), group.name());
    let message =
        format!("it is a copy of {source}/{name}, whose OperatorGroup {group} does not target namespace {namespace}");
    Some(delete(&ORPHANED_COPY, copy, message).also([ObjectRef::from_object(original)]))
}

/// Returns the namespaces of missing ClusterServiceVersions for which roles or bindings exist.
pub(super) fn owners(world: &Reader<'_>) -> BTreeSet<String> {
    let all = RBAC.into_iter().flat_map(|gk| world.all(&gk)).map(|o| o.json());
    let missing = all.filter_map(|object| match owner(object)? {
        ("ClusterServiceVersion", namespace, csv) => {
            world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, csv).is_none().then(|| namespace.to_owned())
        }
        _ => None,
    });
    missing.collect()
}

/// Returns the problem of a role or binding whose owner does not exist.
fn permissions(context: &LintContext<'_>, object: &Value) -> Option<Problem> {
    let (kind, namespace, owner) = owner(object)?;
    match kind {
        "OperatorGroup" if object::kind(object) == "ClusterRole" => {
            let is_gone = context.is_missing(&kind::OPERATOR_GROUP, namespace, owner);
            is_gone.then(|| of_group(context, object, namespace, owner))
        }
        "ClusterServiceVersion" => of_csv(context, object, namespace, owner),
        _ => None,
    }
}

fn group_ref(namespace: &str, name: &str) -> ObjectRef {
    let gvk = kinds::OPERATOR_GROUP.gvk();
    ObjectRef { gvk, namespace: namespace.to_owned(), name: name.to_owned() }
}

fn of_group(context: &LintContext<'_>, role: &Value, namespace: &str, group: &str) -> Problem {
    let message = format!("it belongs to OperatorGroup {namespace}/{group}, which does not exist");
    let also = group_ref(namespace, group);
    let bound = bound(context, object::name(role));
    if bound.is_empty() {
        return delete(&ORPHANED_GROUP_ROLE, role, message).also([also]);
    }
    let what = format!("delete it, and its bindings: {}", shortened(bound.iter().map(ToString::to_string)));
    let change = Change::Delete(bound.into_iter().chain([ObjectRef::from_object(role)]).collect());
    Problem::new(&ORPHANED_GROUP_ROLE, role, message).also([also]).propose(what, change)
}

/// Returns the bindings of a ClusterRole.
fn bound(context: &LintContext<'_>, role: &str) -> Vec<ObjectRef> {
    let binds = |binding: &&Value| {
        object::text(binding, &["roleRef", "kind"]) == "ClusterRole"
            && object::text(binding, &["roleRef", "name"]) == role
    };
    let all = [kind::CLUSTER_ROLE_BINDING, kind::ROLE_BINDING];
    all.iter()
        .flat_map(|gk| context.world.all(gk))
        .map(|o| o.json())
        .filter(binds)
        .map(ObjectRef::from_object)
        .collect()
}

fn of_csv(context: &LintContext<'_>, object: &Value, namespace: &str, csv: &str) -> Option<Problem> {
    let gk = GroupKind::from_object(object);
    let is_of_cluster = gk == kind::CLUSTER_ROLE || gk == kind::CLUSTER_ROLE_BINDING;
    let is_copied = object::label(object, COPIED_FROM).is_some();
    // Kubernetes garbage-collects all others with the ClusterServiceVersion that owns them.
    let is_olms = is_of_cluster || is_copied;
    if !is_olms
        || !context.is_missing(&kind::CLUSTER_SERVICE_VERSION, namespace, csv)
        || is_on_its_way(context, namespace, csv)
    {
        return None;
    }
    let message = format!("it belongs to ClusterServiceVersion {namespace}/{csv}, which does not exist");
    Some(delete(&ORPHANED_PERMISSIONS, object, message).also([csv_ref(namespace, csv)]))
}

fn csv_ref(namespace: &str, name: &str) -> ObjectRef {
    let gvk = kinds::CLUSTER_SERVICE_VERSION.gvk();
    ObjectRef { gvk, namespace: namespace.to_owned(), name: name.to_owned() }
}

/// Reports whether the ClusterServiceVersion is about to be created. An InstallPlan may create its roles first.
fn is_on_its_way(context: &LintContext<'_>, namespace: &str, csv: &str) -> bool {
    let subscribed = context.world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|o| o.json());
    let current: BTreeSet<&str> = subscribed.map(|s| Subscription::new(s).current_csv()).collect();
    let plans = context.world.in_namespace(&kind::INSTALL_PLAN, namespace).map(|o| o.json());
    let mut open = plans.filter(|plan| InstallPlan::new(plan).phase() != Phase::Complete);
    let names = |plan: &Value| InstallPlan::new(plan).csv_names().any(|name| name == csv);
    current.contains(csv) || open.any(names)
}
