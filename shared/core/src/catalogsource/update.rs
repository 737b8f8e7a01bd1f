//! Detects whether an image's tag has moved, when pods serve the catalog: another pod of the image is started next to the
//! serving one, and replaces it when its image differs (olm-behaviour/catalogsource.md#catalog-polling).

use serde_json::{Value, json};

use super::Work;
use super::manifest::CATALOG;
use crate::api::conditions::{Conditions, READY};
use crate::api::object;
use crate::plan::{Action, Propagation, Reason};
use crate::world::{Reader, kind};

/// The label of a pod that may take over; its value is the CatalogSource, and empty once the pod has taken over.
const UPDATE: &str = "catalogsource.operators.coreos.com/update";

/// Returns the pods that a label assigns to the CatalogSource, without those being deleted.
pub(super) fn labelled<'w>(world: &Reader<'w>, source: &Value, label: &str) -> impl Iterator<Item = &'w Value> {
    let pods = world.in_namespace(&kind::POD, object::namespace(source)).map(|pod| pod.json());
    pods.filter(move |pod| object::label(pod, label) == Some(object::name(source)) && !object::is_deleting(pod))
}

/// Starts such a pod when polling is due, and decides about an existing one. `wanted` is the serving pod.
pub(super) fn plan(world: &Reader<'_>, work: &mut Work<'_>, wanted: &Value) {
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
            waits(work, format!("pod {}, which checks for a newer image, is {state}", object::name(pod)));
        } else if !is_ready(pod) {
            waits(work, format!("pod {}, which checks for a newer image, is not ready yet", object::name(pod)));
        } else if serving.iter().any(|old| is_another_image(old, pod)) {
            // The new pod is labelled first: the next plan deletes one of two, should this one be interrupted.
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

/// Returns the state of a pod that will not become ready.
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
    Conditions::new(pod).is_true(READY)
}

/// Returns whether the images of both pods are known and differ.
fn is_another_image(old: &Value, new: &Value) -> bool {
    image_id(old).zip(image_id(new)).is_some_and(|(old, new)| old != new)
}

/// Returns the image of the catalog that a pod runs: that of its second init container when opm is extracted, else of its
/// only container.
fn image_id(pod: &Value) -> Option<&str> {
    let of = |field| object::list(pod, &["status", field]);
    let statuses = (of("initContainerStatuses"), of("containerStatuses"));
    let (([_, container], [_]) | ([], [container])) = statuses else { return None };
    Some(object::text(container, &["imageID"])).filter(|id| !id.is_empty())
}
