//! Stops and starts the Deployments of upstream OLM.

use std::collections::BTreeSet;

use futures::StreamExt;
use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::distribution::transfer;
use serde_json::Value;

use super::api::{Api, ListQuery, Resource, WatchEvent};
use super::installed::upstream_controllers;
use super::request_error::RequestError;

/// The status code of a watch that starts at a resourceVersion that is too old.
const GONE: u16 = 410;

/// Returns the Deployments of upstream OLM that are not scaled to zero.
pub(crate) async fn running(api: &Api) -> Result<Vec<Value>, RequestError> {
    let mut deployments = upstream_controllers(api).await?;
    deployments.retain(|deployment| !transfer::is_stopped(deployment) && !object::is_deleting(deployment));
    Ok(deployments)
}

/// Scales a Deployment to zero, and records its number of replicas. Returns false if it is stopped already.
pub(crate) async fn stop(api: &Api, deployment: &Value) -> Result<bool, RequestError> {
    patch(api, deployment, transfer::stop(deployment)).await
}

/// Scales a Deployment to the recorded number of replicas. Returns false if it is not stopped.
pub(crate) async fn start(api: &Api, deployment: &Value) -> Result<bool, RequestError> {
    patch(api, deployment, transfer::start(deployment)).await
}

async fn patch(api: &Api, deployment: &Value, patch: Option<Value>) -> Result<bool, RequestError> {
    let Some(patch) = patch else { return Ok(false) };
    let target = ObjectRef::from_object(deployment);
    match api.merge(&target, &patch).await {
        Ok(_) => Ok(true),
        Err(refusal) => Err(RequestError::new("patch", "deployments.apps", &target.namespace, refusal)),
    }
}

/// Returns the label selector of the pods of a Deployment; `None` if it selects none, or cannot be written as one.
pub(crate) fn pod_selector(deployment: &Value) -> Option<String> {
    let selector = object::at(deployment, &["spec", "selector"]);
    let mut terms: Vec<String> =
        object::entries(selector, &["matchLabels"]).map(|(key, value)| format!("{key}={value}")).collect();
    for expression in object::list(selector, &["matchExpressions"]) {
        let key = object::text(expression, &["key"]);
        let values: Vec<&str> = object::list(expression, &["values"]).iter().filter_map(Value::as_str).collect();
        terms.push(match object::text(expression, &["operator"]) {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    Some(terms.join(",")).filter(|selector| !selector.is_empty())
}

/// Returns whether containers of a pod may run: also while it terminates, but not after it has ended, for example by an eviction.
fn may_run(pod: &Value) -> bool {
    !["Succeeded", "Failed"].contains(&object::text(pod, &["status", "phase"]))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_selected_as_by_the_deployment() {
        let of = |selector: Value| pod_selector(&json!({ "spec": { "selector": selector } }));
        let expressions = json!([
            { "key": "a", "operator": "In", "values": ["b", "c"] }, { "key": "d", "operator": "NotIn", "values": ["e"] },
            { "key": "f", "operator": "Exists" }, { "key": "g", "operator": "DoesNotExist" },
        ]);
        for (selector, expected) in [
            (json!({ "matchLabels": { "app": "olm" } }), Some("app=olm")),
            (json!({ "matchExpressions": expressions }), Some("a in (b,c),d notin (e),f,!g")),
            (json!({ "matchExpressions": [{ "key": "a", "operator": "Like" }] }), None),
            (json!({}), None),
            (json!("app"), None),
        ] {
            assert_eq!(of(selector.clone()).as_deref(), expected, "{selector}");
        }
    }

    #[test]
    fn a_pod_that_has_ended_is_not_awaited() {
        for (phase, expected) in
            [("Running", true), ("Pending", true), ("Unknown", true), ("Failed", false), ("Succeeded", false)]
        {
            assert_eq!(may_run(&json!({ "status": { "phase": phase } })), expected, "{phase}");
        }
    }
}
