//! The objects that serve a catalog to other clients as OLM does: they are created, restored, and replaced when their
//! content changes
//! (olm-behaviour/catalogsource.md#catalog-pods, olm-behaviour/catalogsource.md#catalog-pod-spec,
//! olm-behaviour/catalogsource.md#catalog-polling, olm-behaviour/catalogsource.md#configmap-catalogs).

use serde_json::{Value, json};

use super::manifest::{CATALOG, MANAGED, Manifests, POD_HASH, PORT, REVISION, SERVICE_HASH, Served, has_images};
use super::{Work, update};
use crate::api::catalog_source::{CatalogSource, Origin, Target};
use crate::api::conditions::Conditions;
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::plan::{Action, Plan, Propagation};
use crate::settings::CatalogPods;
use crate::world::{GroupKind, Reader, kind};

/// Plans the objects. Returns the target to connect to, or the whole plan when the target does not exist yet.
pub(super) fn serve(pods: &CatalogPods, world: &Reader<'_>, work: &mut Work<'_>) -> Result<Target, Plan> {
    let source = work.source;
    let namespace = object::namespace(source);
    // The ConfigMap is read directly as well, so its revision is known once it has been read.
    let config_map = match Origin::from_source(source) {
        Origin::ConfigMap(name) => match work.fact.and_then(|fact| fact.config_map.as_ref()) {
            Some((_, revision)) => Some((name, revision.as_str())),
            None => return Ok(Target::ConfigMap(name.to_owned())),
        },
        _ => None,
    };
    let served = match config_map {
        Some((name, revision)) => Served::ConfigMap { name, revision },
        None => Served::Image(CatalogSource::new(source).image()),
    };
    let manifests = Manifests { source, served, pods };
    for policy in manifests.network_policies() {
        // An additional rule would allow more traffic: rules must be equal.
        let differs = |known: &Value| known["spec"] != policy["spec"] || misses_label(known, &policy);
        ensure(world, work, &kind::NETWORK_POLICY, policy.clone(), differs);
    }
    for access in manifests.access() {
        ensure(world, work, &GroupKind::from_object(&access), access.clone(), |_| false);
    }
    let wanted = manifests.service_account();
    let Some(account) = world.json(&kind::SERVICE_ACCOUNT, namespace, object::name(&wanted)) else {
        // Other clients may add pull secrets to the account, which the pod inherits: the pod waits for the created account.
        work.actions.push(Action::Create(wanted));
        return Err(take(work).finish(true));
    };
    work.actions.extend(restore_account(account, source));
    let restricted = world
        .json(&kind::NAMESPACE, "", namespace)
        .and_then(|n| object::label(n, "pod-security.kubernetes.io/enforce"))
        .is_some_and(|enforced| enforced == "restricted");
    let pod = manifests.pod(account, restricted);
    let replaced = replace_pods(world, work, &pod);
    if !replaced && matches!(manifests.served, Served::Image(_)) {
        update::plan(world, work, &pod);
    }
    let service = manifests.service();
    let hash = object::label(&service, SERVICE_HASH).map(str::to_owned);
    let spec = service["spec"].clone();
    let differs = |known: &Value| {
        // OLM only compares the hash, which does not change when the spec is edited.
        let leads_elsewhere = known["spec"]["selector"] != spec["selector"] || !object::covers(&known["spec"], &spec);
        object::label(known, SERVICE_HASH).map(str::to_owned) != hash || leads_elsewhere
    };
    ensure(world, work, &kind::SERVICE, service, differs);
    let name = manifests.service_name();
    let known = object::at(source, &["status", "registryService"]);
    let wanted =
        json!({ "protocol": "grpc", "serviceName": name, "serviceNamespace": namespace, "port": PORT.to_string() });
    if replaced || !object::covers(known, &wanted) {
        let mut service = wanted;
        service["createdAt"] = object::time(work.now).into();
        work.status.insert("registryService".to_owned(), service);
    }
    Ok(match config_map {
        Some((name, _)) => Target::ConfigMap(name.to_owned()),
        None => Target::Address(format!("{name}.{namespace}.svc:{PORT}")),
    })
}

/// Takes the work so far, to finish it.
fn take<'w>(work: &mut Work<'w>) -> Work<'w> {
    let empty = Work::new(work.source, work.fact, work.now);
    std::mem::replace(work, empty)
}

/// Creates a missing object. An object that differs is deleted and recreated.
fn ensure(world: &Reader<'_>, work: &mut Work<'_>, kind: &GroupKind, wanted: Value, differs: impl Fn(&Value) -> bool) {
    match world.json(kind, object::namespace(&wanted), object::name(&wanted)) {
        None => work.actions.push(Action::Create(wanted)),
        Some(known) if differs(known) => {
            work.actions.push(Action::delete(known, Propagation::Background));
            work.actions.push(Action::Create(wanted));
        }
        Some(_) => {}
    }
}

/// Restores the label of a ServiceAccount that the CatalogSource owns. Its pull secrets may be edited by others. An account
/// that existed before the CatalogSource is not changed: deleting the CatalogSource must not delete the account.
fn restore_account(account: &Value, source: &Value) -> Option<Action> {
    let owners = Metadata::new(account).owner_references();
    let is_owned = owners.iter().any(|owner| object::text(owner, &["uid"]) == object::uid(source));
    let is_restored = !is_owned || object::label(account, MANAGED) == Some("true");
    (!is_restored).then(|| Action::label(account, json!({ MANAGED: "true" })))
}

fn misses_label(known: &Value, wanted: &Value) -> bool {
    object::entries(wanted, &["metadata", "labels"]).any(|(key, value)| object::label(known, key) != Some(value))
}

/// Replaces all other pods by the expected one. Returns whether a pod was created.
fn replace_pods(world: &Reader<'_>, work: &mut Work<'_>, wanted: &Value) -> bool {
    let live = update::labelled(world, work.source, CATALOG);
    let is_right = |pod: &Value| {
        let same = |label| object::label(pod, label) == object::label(wanted, label);
        same(POD_HASH) && same(REVISION) && has_images(pod, wanted)
    };
    // A pod on a lost node is not deleted by itself.
    let is_dead = |pod: &Value| Conditions::new(pod).is_true("DisruptionTarget");
    let (mut good, mut bad): (Vec<&Value>, Vec<&Value>) = live.partition(|pod| is_right(pod) && !is_dead(pod));
    // The pod that has taken over is the younger one.
    good.sort_by_key(|pod| Metadata::new(pod).created());
    bad.extend(good.drain(..good.len().saturating_sub(1)));
    if good.is_empty() {
        // The new pod is created first: the old ones serve until it exists.
        work.actions.push(Action::Create(wanted.clone()));
    }
    work.actions.extend(bad.into_iter().map(|pod| Action::delete(pod, Propagation::Background)));
    good.is_empty()
}
