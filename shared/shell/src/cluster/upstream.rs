//! Stops and starts the Deployments of upstream OLM.

use std::collections::BTreeSet;

use futures::StreamExt;
use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::distribution::transfer;
use olm_core::health::workload::{may_run, pod_selector};
use serde_json::Value;

use super::api::{Api, ListQuery, Resource, WatchEvent};
use super::installed::{get, upstream_controllers};
use super::request_error::RequestError;

/// The status code of a watch that starts at a resourceVersion that is too old.
const GONE: u16 = 410;

/// Returns the Deployments of upstream OLM that are not scaled to zero.
pub(crate) async fn running(api: &Api) -> Result<Vec<Value>, RequestError> {
    let mut deployments = upstream_controllers(api).await?;
    deployments.retain(transfer::is_running);
    Ok(deployments)
}

/// Scales a Deployment to zero, and records its number of replicas. Returns false if it is stopped already.
pub(crate) async fn stop(api: &Api, deployment: &Value) -> Result<bool, RequestError> {
    patch(api, deployment, transfer::stop).await
}

/// Scales a Deployment to the recorded number of replicas. Returns false if it is not stopped.
pub(crate) async fn start(api: &Api, deployment: &Value) -> Result<bool, RequestError> {
    patch(api, deployment, transfer::start).await
}

/// Patches a Deployment as it was read. If it has changed since, the patch is computed again: otherwise a number of replicas that another
/// client has set or recorded meanwhile would be lost.
async fn patch(api: &Api, deployment: &Value, patch: impl Fn(&Value) -> Option<Value>) -> Result<bool, RequestError> {
    let target = ObjectRef::from_object(deployment);
    let mut known = deployment.clone();
    loop {
        let Some(mut patch) = patch(&known) else { return Ok(false) };
        object::map_mut(&mut patch, &["metadata"])
            .insert("resourceVersion".to_owned(), object::resource_version(&known).into());
        match api.merge(&target, &patch).await {
            Ok(_) => return Ok(true),
            Err(refusal) if refusal.is_conflict() => match get(api, &target).await? {
                Some(now) => known = now,
                None => return Ok(false),
            },
            Err(refusal) => return Err(RequestError::new("patch", "deployments.apps", &target.namespace, refusal)),
        }
    }
}

/// Waits until no pod of a Deployment runs: a pod that terminates may still write. `report` gets the names of those that are awaited.
pub(crate) async fn wait_until_stopped(
    api: &Api,
    deployment: &Value,
    mut report: impl FnMut(&[&str]),
) -> Result<(), RequestError> {
    let namespace = object::namespace(deployment);
    let Some(selector) = pod_selector(deployment) else {
        let name = object::name(deployment);
        let refusal = Status::new(0, "Invalid", format!("the selector of Deployment {namespace}/{name} is not valid"));
        return Err(RequestError::new("list", "pods", namespace, refusal));
    };
    let pods = Resource::from(&kinds::POD);
    let query = ListQuery::all(&pods).within(namespace).labelled(&selector);
    let refused = |verb| move |refusal| RequestError::new(verb, "pods", namespace, refusal);
    loop {
        let page = api.list(&query).await.map_err(refused("list"))?;
        let running: Vec<&Value> = page.objects.iter().filter(|pod| may_run(pod)).collect();
        if running.is_empty() {
            return Ok(());
        }
        report(&running.iter().map(|pod| object::name(pod)).collect::<Vec<_>>());
        let mut left: BTreeSet<String> = running.iter().map(|pod| object::uid(pod).to_owned()).collect();
        let events = api.watch(&query, &page.resource_version).await.map_err(refused("watch"))?;
        let mut events = std::pin::pin!(events);
        while !left.is_empty() {
            match events.next().await {
                Some(Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod))) if may_run(&pod) => {
                    left.insert(object::uid(&pod).to_owned());
                }
                Some(Ok(WatchEvent::Modified(pod) | WatchEvent::Deleted(pod))) => {
                    left.remove(object::uid(&pod));
                }
                Some(Ok(_)) => {}
                Some(Err(refusal)) if refusal.code != GONE => return Err(refused("watch")(refusal)),
                Some(Err(_)) | None => break,
            }
        }
        // The next list confirms it, and continues a watch that has ended.
    }
}
