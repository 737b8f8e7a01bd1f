//! Whether an image's tag has moved, when pods serve it: another pod of the image is started beside the one that serves, and takes its
//! place when the image that it runs is another one (olm-behaviour/catalogsource.md#catalog-polling).

use serde_json::{Value, json};

use super::Work;
use super::manifest::CATALOG;
use crate::api::conditions::{Conditions, READY};
use crate::api::object;
use crate::plan::{Action, Propagation, Reason};
use crate::world::{Reader, kind};

/// Names the CatalogSource on a pod that may take over, and is empty when it has.
const UPDATE: &str = "catalogsource.operators.coreos.com/update";

/// The pods that a label says to be of the CatalogSource, without those that are going.
pub(super) fn labelled<'w>(world: &Reader<'w>, source: &Value, label: &str) -> impl Iterator<Item = &'w Value> {
    let pods = world.in_namespace(&kind::POD, object::namespace(source)).map(|pod| pod.json());
    pods.filter(move |pod| object::label(pod, label) == Some(object::name(source)) && !object::is_deleting(pod))
}

/// Starts such a pod when it is time, and decides about one that is there. `wanted` is the pod that serves.
pub(super) fn look(world: &Reader<'_>, work: &mut Work<'_>, wanted: &Value) {
    let candidates: Vec<&Value> = labelled(world, work.source, UPDATE).collect();
    if candidates.is_empty() && work.due {
        let mut pod = wanted.clone();
        let labels = object::map_mut(&mut pod, &["metadata", "labels"]);
        labels.insert(CATALOG.to_owned(), "".into());
        labels.insert(UPDATE.to_owned(), object::name(work.source).into());
        work.actions.push(Action::Create(pod));
        work.polled();
        return;
    }
    let serving: Vec<&Value> = labelled(world, work.source, CATALOG).collect();
    for pod in candidates {
        if let Some(state) = broken(pod) {
            work.actions.push(Action::delete(pod, Propagation::Background));
            waits(work, format!("the pod {} that looks for a newer image is {state}", object::name(pod)));
        } else if !is_ready(pod) {
            waits(work, format!("the pod {} that looks for a newer image is not ready yet", object::name(pod)));
        } else if serving.iter().any(|old| is_another_image(old, pod)) {
            // It first: one of two is deleted by the next plan, should this one end here.
            let labels = json!({ CATALOG: object::name(work.source), UPDATE: "" });
            work.actions.push(Action::label(pod, labels));
            work.actions.extend(serving.iter().map(|old| Action::delete(old, Propagation::Background)));
        } else {
            work.actions.push(Action::delete(pod, Propagation::Background));
        }
    }
}

fn waits(work: &mut Work<'_>, state: String) {
    let (namespace, name) = (object::namespace(work.source).to_owned(), object::name(work.source).to_owned());
    work.reasons.push(Reason::CatalogNotReady { namespace, name, state });
}

/// What a pod is in that will not become ready.
fn broken(pod: &Value) -> Option<&str> {
    let phase = object::text(pod, &["status", "phase"]);
    if matches!(phase, "Failed" | "Unknown") {
        return Some(phase);
    }
    let of = |field| object::list(pod, &["status", field]);
    let mut containers = of("initContainerStatuses").iter().chain(of("containerStatuses"));
    let reason = |container| object::text(container, &["state", "waiting", "reason"]);
    containers.find(|container| reason(container) == "CrashLoopBackOff").map(reason)
}

fn is_ready(pod: &Value) -> bool {
    Conditions::of(pod).is_true(READY)
}

/// Do both say which image they run, and is it not the same?
fn is_another_image(old: &Value, new: &Value) -> bool {
    image_id(old).zip(image_id(new)).is_some_and(|(old, new)| old != new)
}

/// The image of the catalog that a pod runs: of its second init container when opm is extracted into it, else of its only one.
fn image_id(pod: &Value) -> Option<&str> {
    let of = |field| object::list(pod, &["status", field]);
    let statuses = (of("initContainerStatuses"), of("containerStatuses"));
    let (([_, container], [_]) | ([], [container])) = statuses else { return None };
    Some(object::text(container, &["imageID"])).filter(|id| !id.is_empty())
}
