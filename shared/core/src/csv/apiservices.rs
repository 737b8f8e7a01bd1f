//! APIs that an operator serves itself: their APIServices, the owners of these, and their availability
//! (olm-behaviour/csv.md#serving-checks,
//! olm-behaviour/csv.md#apiservices).

use serde_json::{Value, json};

use super::config::Config;
use super::overlay::overlay;
use super::serving::{self, Server};
use crate::api::cluster_service_version::{Csv, GROUP_PRIORITY, Phase, VERSION_PRIORITY};
use crate::api::conditions::{AVAILABLE, Conditions};
use crate::api::{labels, object};
use crate::plan::certificate::AUTHORITY_HASH;
use crate::plan::{Action, Key, Propagation};
use crate::world::{GroupKind, IndexKey, Reader, kind};

/// Returns the name of the APIService of a description.
pub(super) fn name(description: &Value) -> String {
    format!("{}.{}", object::text(description, &["version"]), object::text(description, &["group"]))
}

fn live<'w>(world: &Reader<'w>, description: &Value) -> Option<&'w Value> {
    world.json(&kind::API_SERVICE, "", &name(description))
}

/// Returns an APIService that this ClusterServiceVersion declares and must not take over: it belongs neither to OLM nor to
/// this CSV.
pub(super) fn unadoptable(world: &Reader<'_>, csv: Csv<'_>) -> Option<String> {
    let taken = |d: &&Value| live(world, d).is_some_and(|service| !is_adoptable(world, csv, service));
    csv.owned_api_services().iter().find(taken).map(name)
}

/// Returns whether it belongs to this ClusterServiceVersion, to the one that it replaces, or to one that is being deleted.
fn is_adoptable(world: &Reader<'_>, csv: Csv<'_>, service: &Value) -> bool {
    let label = |key| object::label(service, key).unwrap_or_default();
    let (owner, namespace) = (label(labels::OWNER), label(labels::OWNER_NAMESPACE));
    if owner.is_empty() || label(labels::OWNER_KIND) != "ClusterServiceVersion" {
        return false;
    }
    if namespace == csv.namespace() && [csv.name(), csv.replaces()].contains(&owner) {
        return true;
    }
    let owner = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, owner).map(Csv::new);
    owner.is_none_or(|owner| matches!(owner.phase(), Phase::Replacing | Phase::Deleting))
}

/// Returns the writes that create or update the APIServices. Servers without a certificate are left out.
pub(super) fn install(world: &Reader<'_>, csv: Csv<'_>) -> Vec<Action> {
    let wanted = csv.owned_api_services().iter().filter_map(|description| {
        let server = Server::named(csv, description)?;
        let pair = server.pair(world)?;
        let live = live(world, description);
        let mut service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": { "name": name(description), "labels": { labels::MANAGED: "true" } },
            "spec": {
                "group": object::text(description, &["group"]),
                "version": object::text(description, &["version"]),
                "service": reference(csv, server, description),
                "caBundle": pair.bundle,
            },
        });
        if live.is_none() {
            service["spec"]["groupPriorityMinimum"] = GROUP_PRIORITY.into();
            service["spec"]["versionPriority"] = VERSION_PRIORITY.into();
            for (key, value) in Config::find(world, csv).iter().flat_map(|config| config.annotations()) {
                object::set_annotation(&mut service, key, value);
            }
        }
        labels::set_owner(&mut service, csv.json);
        overlay(live, service)
    });
    wanted.collect()
}

fn reference(csv: Csv<'_>, server: Server<'_>, description: &Value) -> Value {
    json!({ "namespace": csv.namespace(), "name": server.service(), "port": serving::port(description) })
}

/// Deletes what OLM created for owned APIServices when it named objects after these instead of their Deployments, once the
/// APIServices use the new names. Only objects with the labels of this ClusterServiceVersion are deleted.
pub(super) fn clear_old_names(world: &Reader<'_>, csv: Csv<'_>) -> Vec<Action> {
    let old = csv.owned_api_services().iter().flat_map(|description| {
        let (name, service) = (name(description), Server::named(csv, description).map(Server::service));
        let old_service = name.replace('.', "-");
        // An API `service` of a group with its Deployment's name: the old name equals the new one.
        let is_new = service.is_none_or(|service| service == old_service);
        let cert = format!("{name}-cert");
        let here = csv.namespace();
        let old = [
            (kind::SERVICE, here, old_service),
            (kind::SECRET, here, cert.clone()),
            (kind::ROLE, here, cert.clone()),
            (kind::ROLE_BINDING, here, cert),
            (kind::CLUSTER_ROLE_BINDING, "", format!("{name}-system:auth-delegator")),
            (kind::ROLE_BINDING, serving::KUBE_SYSTEM, format!("{name}-auth-reader")),
        ];
        old.into_iter().filter(move |_| !is_new)
    });
    let found = old.filter_map(|(kind, namespace, name)| world.json(&kind, namespace, &name));
    let ours = found.filter(|object| labels::is_owner(object, csv.json) && !object::is_deleting(object));
    ours.map(|object| Action::delete(object, Propagation::Background)).collect()
}

/// Returns what is wrong with the APIServices and with what serves them, in OLM's words; empty when nothing is.
pub(super) fn problems(world: &Reader<'_>, csv: Csv<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    for description in csv.owned_api_services() {
        let name = name(description);
        let Some(service) = live(world, description) else {
            problems.push(format!("apiservice.apiregistration.k8s.io {name:?} not found"));
            continue;
        };
        if !is_adoptable(world, csv, service) {
            problems.push(format!("{name} is unadoptable"));
            continue;
        }
        let Some(server) = Server::named(csv, description) else { continue };
        problems.extend(server.problems(world));
        if !object::covers(object::at(service, &["spec", "service"]), &reference(csv, server, description)) {
            problems.push("found APIService and service reference mismatch".to_owned());
        }
        let Some(pair) = server.pair(world) else {
            problems.push(format!("secret {:?} not found", server.secret()));
            continue;
        };
        if object::text(service, &["spec", "caBundle"]) != pair.bundle {
            problems.push(format!("secret {} CA cert hash does not match expected", server.secret()));
        }
        let deployment = world.json(&kind::DEPLOYMENT, csv.namespace(), server.name());
        let mounted =
            |d| object::text(d, &["spec", "template", "metadata", "annotations", AUTHORITY_HASH]) == pair.hash;
        match deployment {
            None => problems.push(format!("deployment.apps {:?} not found", server.name())),
            Some(deployment) if !mounted(deployment) => {
                problems.push(format!("deployment {} CA cert hash does not match expected", server.name()));
            }
            Some(_) => {}
        }
    }
    problems.dedup();
    problems
}

/// Returns why an owned API does not exist or does not respond.
pub(super) fn unavailable(world: &Reader<'_>, csv: Csv<'_>) -> Option<String> {
    csv.owned_api_services().iter().find_map(|description| {
        let Some(service) = live(world, description) else {
            return Some(format!("APIService {} does not exist", name(description)));
        };
        let available = Conditions::new(service).find(AVAILABLE);
        match available {
            Some(c) if c.is_true() => None,
            Some(c) => Some(format!("APIService {} is not available: {}", name(description), c.message())),
            None => Some(format!("APIService {} is not available yet", name(description))),
        }
    })
}

/// Deletes the APIServices of a deleted ClusterServiceVersion: its finalizer was removed by hand
/// (olm-behaviour/csv.md#deletion).
pub(super) fn orphans(world: &Reader<'_>, key: &Key) -> Vec<Action> {
    let owned = world.indexed(IndexKey::OwnerLabels {
        kind: "ClusterServiceVersion".to_owned(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    });
    owned
        .iter()
        .map(|o| o.json())
        .filter(|o| GroupKind::from_object(o) == kind::API_SERVICE && !object::is_deleting(o))
        .map(|o| Action::delete(o, Propagation::Background))
        .collect()
}
