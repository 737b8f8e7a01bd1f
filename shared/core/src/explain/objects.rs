//! The objects that a plan and its consequences write and delete, before and after.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::{By, Change, Object, Optional, Unshown};
use super::escalations::Own;
use super::object_privileges;
use super::simulated_plan::{self, SimulatedPlan};
use crate::api::cluster_service_version::is_copy;
use crate::api::install_plan::{self, Phase, StepStatus};
use crate::api::labels;
use crate::api::metadata::Metadata;
use crate::api::object::{self, Gvk, ObjectRef};
use crate::installplan::kind_made;
use crate::plan::Controller;
use crate::sim::{Actor, Happening, Simulation, WatchEvent};

/// Group, kind, namespace (empty if cluster-scoped) and name of an object, independent of its version.
type Id = (String, String, String, String);

/// Returns the objects of the steps in their order, then the other objects that are written or deleted, by kind and name.
pub(super) fn changes(simulated: &SimulatedPlan, unshown: &Unshown) -> Vec<Object> {
    let mut touched = touched(&simulated.happenings);
    let mut objects = Vec::new();
    let done = install_plan::InstallPlan::new(simulated.done()).steps_json();
    let operators = simulated.operators();
    let own = Own::from_plan(simulated);
    for (index, step) in simulated.steps().iter().enumerate() {
        let gvk = kind_made(step);
        let id = id(simulated, &gvk, install_plan::Step::new(step).name());
        let by_us = touched.remove(&id).is_some();
        let mut object = compared(simulated, unshown, &gvk, &id);
        install_plan::Step::new(step).resolving().clone_into(&mut object.csv);
        object.by = By::Step;
        let status = done.get(index).map_or(StepStatus::Unknown, |step| install_plan::Step::new(step).status());
        if object.change == Change::Unchanged && !by_us {
            (object.change, object.message) = outcome(simulated, &gvk, &id, status);
        }
        if object.change == Change::Unchanged {
            (object.before, object.after) = (Value::Null, Value::Null);
        }
        match operators.iter().find(|(new, _)| object.gvk.kind == CSV && object::name(new) == object.name) {
            Some((new, old)) => object_privileges::mark_csv(&mut object, new, *old, &own),
            None => object_privileges::mark(&mut object, simulated_plan::manifest(step).as_ref()),
        }
        if !objects.iter().any(|known: &Object| same(known, &object)) {
            objects.push(object);
        }
    }
    for (id, by) in touched {
        let (group, kind, ..) = &id;
        let versions = [&simulated.before, &simulated.after].map(|simulation| stored(simulation, &id));
        let Some(version) = versions.iter().flatten().map(|o| object::gvk(o).version).next() else { continue };
        let is_ours = versions.iter().flatten().any(|o| is_bookkeeping(o));
        if is_ours || by == By::GarbageCollection && versions[1].is_some() {
            continue;
        }
        let mut object = Object { by, ..compared(simulated, unshown, &Gvk::new(group, &version, kind), &id) };
        object_privileges::mark(&mut object, None);
        if object.change != Change::Unchanged {
            objects.push(object);
        }
    }
    objects
}

fn same(a: &Object, b: &Object) -> bool {
    (&a.gvk.group, &a.gvk.kind, &a.namespace, &a.name) == (&b.gvk.group, &b.gvk.kind, &b.namespace, &b.name)
}

fn id(simulated: &SimulatedPlan, gvk: &Gvk, name: &str) -> Id {
    let kind = [&simulated.after, &simulated.before].into_iter().find_map(|s| s.api().kind(&gvk.group, &gvk.kind));
    let namespaced = kind.is_none_or(|kind| kind.namespaced);
    let namespace = if namespaced { simulated.namespace.clone() } else { String::new() };
    (gvk.group.clone(), gvk.kind.clone(), namespace, name.to_owned())
}

fn stored<'s>(simulation: &'s Simulation, (group, kind, namespace, name): &Id) -> Option<&'s Value> {
    simulation.api().find(group, kind, namespace, name)
}

/// Returns the changed objects, and what changed them. Of the changes of Kubernetes only garbage collection counts.
fn touched(happenings: &[Happening]) -> BTreeMap<Id, By> {
    let mut touched = BTreeMap::new();
    for Happening { actor, change, .. } in happenings {
        let by = match (actor, change) {
            (Actor::Controller(key), _) if key.controller == Controller::InstallPlan => By::Step,
            (Actor::Controller(_), _) => By::Olm,
            (Actor::Kubernetes, WatchEvent::Deleted(_)) => By::GarbageCollection,
            (Actor::Kubernetes | Actor::User, _) => continue,
        };
        let ObjectRef { gvk, namespace, name } = ObjectRef::from_object(change.object());
        let known = touched.entry((gvk.group, gvk.kind, namespace, name)).or_insert(by);
        *known = by.min(*known);
    }
    touched
}

/// Reports whether OLM or Kubernetes maintain the object for themselves.
fn is_bookkeeping(json: &Value) -> bool {
    match object::kind(json) {
        // Subscriptions are shown only if a step creates them.
        "Subscription" | "ReplicaSet" | "Pod" | "Event" | "Endpoints" | "EndpointSlice" | "Lease" | "InstallPlan"
        | "Operator" | "OLMConfig" | "CatalogSource" => true,
        "ClusterServiceVersion" | "Role" | "RoleBinding" => is_copy(json),
        _ => false,
    }
}

fn compared(simulated: &SimulatedPlan, unshown: &Unshown, gvk: &Gvk, id: &Id) -> Object {
    let [before, after] = [&simulated.before, &simulated.after].map(|simulation| stored(simulation, id));
    let [before, after] = unshown.shown(before, after);
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

/// Returns the result of a step whose object does not exist or did not change.
fn outcome(simulated: &SimulatedPlan, gvk: &Gvk, (group, kind, _, name): &Id, status: StepStatus) -> (Change, String) {
    let refusal = || {
        let is_it = |target: &ObjectRef| {
            (&target.gvk.group, &target.gvk.kind, &target.name) == (group, kind, name) && target.gvk == *gvk
        };
        simulated.refusals.iter().find(|(target, _)| is_it(target)).map(|(_, status)| status.message.clone())
    };
    match status {
        StepStatus::Created | StepStatus::Present => (Change::Unchanged, String::new()),
        StepStatus::NotCreated => (Change::Skipped, refusal().unwrap_or_default()),
        StepStatus::UnsupportedResource => (Change::Refused, format!("InstallPlans do not support kind {kind}")),
        _ if simulated.phase() == Phase::Complete => (Change::Unchanged, String::new()),
        _ => match refusal() {
            Some(message) => (Change::Refused, message),
            None => (Change::NotReached, String::new()),
        },
    }
}

/// Returns the ClusterServiceVersion that owns an object, by owner reference or labels; empty if there is none.
fn owner(json: &Value) -> &str {
    let owners = Metadata::new(json).owner_references();
    let is_csv = |o: &&Value| object::kind(o) == CSV;
    if let Some(owner) = owners.iter().find(is_csv) {
        return object::text(owner, &["name"]);
    }
    match (object::label(json, labels::OWNER_KIND), object::label(json, labels::OWNER)) {
        (Some(CSV), Some(name)) => name,
        _ => "",
    }
}

const CSV: &str = "ClusterServiceVersion";

/// Returns the steps that are marked as optional.
pub(super) fn optional(simulated: &SimulatedPlan, objects: &[Object]) -> Vec<Optional> {
    let marked = simulated.steps().iter().filter(|s| install_plan::Step::new(s).is_optional());
    let optional = marked.map(|step| {
        let (gvk, name) = (kind_made(step), install_plan::Step::new(step).name());
        let found = objects.iter().find(|o| o.gvk == gvk && o.name == name);
        Optional {
            gvk,
            name: name.to_owned(),
            csv: install_plan::Step::new(step).resolving().to_owned(),
            skipped: found.is_some_and(|o| o.change == Change::Skipped),
            message: found.map(|o| o.message.clone()).unwrap_or_default(),
        }
    });
    optional.collect()
}
