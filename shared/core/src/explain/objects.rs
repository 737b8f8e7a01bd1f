//! The objects that a plan writes and deletes, and what comes of it: before and after.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::trial::Trial;
use super::{By, Change, Object};
use crate::api::cluster_service_version::is_copy;
use crate::api::labels;
use crate::api::object::{self, Gvk, ObjectRef};
use crate::installplan::kind_made;
use crate::plan::Controller;
use crate::sim::{Actor, Happening, Simulation, WatchEvent};

/// Group, kind, namespace (empty when it has none) and name: an object, in whatever version it is read.
type Id = (String, String, String, String);

/// The objects of the steps in their order, then the others that are written or deleted, by kind and name.
pub(super) fn changes(trial: &Trial) -> Vec<Object> {
    let mut touched = touched(&trial.happenings);
    let mut objects = Vec::new();
    let done = object::list(trial.done(), &["status", "plan"]);
    for (index, step) in trial.steps().iter().enumerate() {
        let gvk = kind_made(step);
        let id = id(trial, &gvk, object::text(step, &["resource", "name"]));
        let by_us = touched.remove(&id).is_some();
        let mut told = compared(trial, &gvk, &id);
        object::text(step, &["resolving"]).clone_into(&mut told.csv);
        told.by = By::Step;
        let status = done.get(index).map_or("", |s| object::text(s, &["status"]));
        if told.change == Change::Unchanged && !by_us {
            (told.change, told.message) = outcome(trial, &gvk, &id, status);
        }
        if told.change == Change::Unchanged {
            (told.before, told.after) = (Value::Null, Value::Null);
        }
        if !objects.iter().any(|known: &Object| same(known, &told)) {
            objects.push(told);
        }
    }
    for (id, by) in touched {
        let (group, kind, ..) = &id;
        let versions = [&trial.before, &trial.after].map(|simulation| stored(simulation, &id));
        let Some(version) = versions.iter().flatten().map(|o| object::gvk(o).version).next() else { continue };
        let is_ours = versions.iter().flatten().any(|o| is_bookkeeping(o));
        if is_ours || by == By::GarbageCollection && versions[1].is_some() {
            continue;
        }
        let told = Object { by, ..compared(trial, &Gvk::new(group, &version, kind), &id) };
        if told.change != Change::Unchanged {
            objects.push(told);
        }
    }
    objects
}

fn same(a: &Object, b: &Object) -> bool {
    (&a.gvk.group, &a.gvk.kind, &a.namespace, &a.name) == (&b.gvk.group, &b.gvk.kind, &b.namespace, &b.name)
}

fn id(trial: &Trial, gvk: &Gvk, name: &str) -> Id {
    let kind = [&trial.after, &trial.before].into_iter().find_map(|s| s.api().kind(&gvk.group, &gvk.kind));
    let namespaced = kind.is_none_or(|kind| kind.namespaced);
    let namespace = if namespaced { trial.namespace.clone() } else { String::new() };
    (gvk.group.clone(), gvk.kind.clone(), namespace, name.to_owned())
}

fn stored<'s>(simulation: &'s Simulation, (group, kind, namespace, name): &Id) -> Option<&'s Value> {
    simulation.api().find(group, kind, namespace, name)
}

/// Who changed what. What Kubernetes does by itself counts only where it collects garbage.
fn touched(happenings: &[Happening]) -> BTreeMap<Id, By> {
    let mut touched = BTreeMap::new();
    for Happening { actor, change, .. } in happenings {
        let by = match (actor, change) {
            (Actor::Controller(key), _) if key.controller == Controller::InstallPlan => By::Step,
            (Actor::Controller(_), _) => By::Olm,
            (Actor::Kubernetes, WatchEvent::Deleted(_)) => By::GarbageCollection,
            (Actor::Kubernetes | Actor::User, _) => continue,
        };
        let ObjectRef { gvk, namespace, name } = ObjectRef::of(change.object());
        let known = touched.entry((gvk.group, gvk.kind, namespace, name)).or_insert(by);
        *known = by.min(*known);
    }
    touched
}

/// Is it something that OLM or Kubernetes write down for themselves?
fn is_bookkeeping(json: &Value) -> bool {
    match object::text(json, &["kind"]) {
        // Subscriptions are shown where a step makes them.
        "Subscription" | "ReplicaSet" | "Pod" | "Event" | "Endpoints" | "EndpointSlice" | "Lease" | "InstallPlan"
        | "Operator" | "OLMConfig" | "CatalogSource" => true,
        "ClusterServiceVersion" | "Role" | "RoleBinding" => is_copy(json),
        _ => false,
    }
}

fn compared(trial: &Trial, gvk: &Gvk, id: &Id) -> Object {
    let [before, after] = [&trial.before, &trial.after].map(|simulation| stored(simulation, id).map(told));
    let change = match (&before, &after) {
        (None, None) => Change::Unchanged,
        (None, Some(_)) => Change::Create,
        (Some(_), None) => Change::Delete,
        (Some(before), Some(after)) if before == after => Change::Unchanged,
        (Some(_), Some(_)) => Change::Update,
    };
    let csv = after.as_ref().or(before.as_ref()).map_or("", owner).to_owned();
    let (_, _, namespace, name) = id;
    let [before, after] = match change {
        Change::Unchanged => [None, None],
        _ => [before, after],
    };
    Object {
        gvk: gvk.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
        change,
        csv,
        before: before.unwrap_or_default(),
        after: after.unwrap_or_default(),
        ..Object::default()
    }
}

/// What became of a step whose object is not there, or as it was.
fn outcome(trial: &Trial, gvk: &Gvk, (group, kind, _, name): &Id, status: &str) -> (Change, String) {
    let refusal = || {
        let is_it = |target: &ObjectRef| {
            (&target.gvk.group, &target.gvk.kind, &target.name) == (group, kind, name) && target.gvk == *gvk
        };
        trial.refusals.iter().find(|(target, _)| is_it(target)).map(|(_, status)| status.message.clone())
    };
    match status {
        "Created" | "Present" => (Change::Unchanged, String::new()),
        "NotCreated" => (Change::Skipped, refusal().unwrap_or_default()),
        "UnsupportedResource" => (Change::Refused, format!("no InstallPlan can make a {kind}")),
        _ if trial.phase() == "Complete" => (Change::Unchanged, String::new()),
        _ => match refusal() {
            Some(message) => (Change::Refused, message),
            None => (Change::NotReached, String::new()),
        },
    }
}

/// The ClusterServiceVersion that an object says it belongs to; empty when it says none.
fn owner(json: &Value) -> &str {
    let owners = object::list(json, &["metadata", "ownerReferences"]);
    let is_csv = |o: &&Value| object::text(o, &["kind"]) == CSV;
    if let Some(owner) = owners.iter().find(is_csv) {
        return object::text(owner, &["name"]);
    }
    match (object::label(json, labels::OWNER_KIND), object::label(json, labels::OWNER)) {
        (Some(CSV), Some(name)) => name,
        _ => "",
    }
}

const CSV: &str = "ClusterServiceVersion";

/// What of metadata the API server writes.
const OF_THE_SERVER: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
    "deletionGracePeriodSeconds",
];

/// Annotations that Kubernetes, or OLM with every new certificate, writes.
const OF_CONTROLLERS: [&str; 3] = ["deployment.kubernetes.io/revision", "olmcahash", "olm.certificate-hash"];

/// Stands for what is made anew each time.
const GENERATED: &str = "(generated)";

/// The object as it is told: without status and what the server writes, and without secrets.
pub(super) fn told(json: &Value) -> Value {
    let mut told = json.clone();
    let kind = object::text(json, &["kind"]).to_owned();
    let map = object::map_mut(&mut told, &[]);
    map.remove("status");
    let metadata = object::map_mut(&mut told, &["metadata"]);
    for field in OF_THE_SERVER {
        metadata.remove(field);
    }
    for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
        owner.as_object_mut().map(|owner| owner.remove("uid"));
    }
    if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
        // The hash is another one for every certificate.
        labels.retain(|key, _| !key.starts_with(labels::COMPONENT) && key != labels::DEPLOYMENT_SPEC_HASH);
    }
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.retain(|key, _| !OF_CONTROLLERS.contains(&key.as_str()));
    }
    for part in ["labels", "annotations"] {
        if metadata.get(part).is_some_and(|part| part.as_object().is_some_and(Map::is_empty)) {
            metadata.remove(part);
        }
    }
    match kind.as_str() {
        "Secret" => hide(&mut told),
        "Service" => {
            let spec = object::map_mut(&mut told, &["spec"]);
            if spec.get("clusterIP").is_some_and(|ip| ip != "None") {
                spec.remove("clusterIP");
                spec.remove("clusterIPs");
            }
        }
        _ => {}
    }
    generated(&mut told);
    told
}

/// Hides the values of a Secret: whether they are the same can still be seen.
fn hide(secret: &mut Value) {
    let is_certificate = object::text(secret, &["type"]) == "kubernetes.io/tls";
    for part in ["data", "stringData"] {
        let Some(Value::Object(values)) = secret.get_mut(part) else { continue };
        for (key, value) in values.iter_mut() {
            let digest = Sha256::digest(value.as_str().unwrap_or_default());
            let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            let made = is_certificate || key == "olmCAKey";
            *value = if made { GENERATED.into() } else { format!("(hidden, sha256 {hex}…)").into() };
        }
    }
}

/// Leaves out the certificates that OLM makes.
fn generated(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(text) if key == "caBundle" && !text.is_empty() => *value = GENERATED.into(),
                    Value::String(_) if OF_CONTROLLERS[1..].contains(&key.as_str()) => *value = GENERATED.into(),
                    value => generated(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(generated),
        _ => {}
    }
}
