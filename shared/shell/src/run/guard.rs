//! Checks before the controllers write to a cluster: OLM's CRDs exist, and no other OLM is running.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use olm_core::api::conditions::ESTABLISHED;
use olm_core::api::custom_resource_definition::CustomResourceDefinition;
use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use serde_json::Value;
use tracing::info;

use crate::cli::{CliError, ErrorKind};
use crate::cluster::api::{Api, ListQuery, Resource, WatchEvent};
use crate::cluster::request_error::RequestError;
use crate::cluster::upstream;

/// The kinds that planning requires.
const NEEDED: [&Kind; 8] = [
    &kinds::CATALOG_SOURCE,
    &kinds::CLUSTER_SERVICE_VERSION,
    &kinds::INSTALL_PLAN,
    &kinds::SUBSCRIPTION,
    &kinds::OLM_CONFIG,
    &kinds::OPERATOR,
    &kinds::OPERATOR_GROUP,
    &kinds::OPERATOR_CONDITION,
];

/// Returns an error if the API server does not serve OLM's kinds.
pub(crate) async fn require_crds(api: &Api) -> Result<(), CliError> {
    let mut missing = Vec::new();
    for kind in NEEDED {
        match api.resource(&kind.gvk()).await {
            Ok(_) => {}
            Err(refusal) if refusal.is_not_found() => missing.push(format!("{} ({})", kind.kind, kind.version)),
            Err(refusal) => return Err(RequestError::of_cluster("get", "/apis", refusal).into()),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let message = if missing.len() == NEEDED.len() {
        "the cluster does not have OLM's CustomResourceDefinitions".to_owned()
    } else {
        format!("the cluster lacks CustomResourceDefinitions of OLM: {}", missing.join(", "))
    };
    Err(CliError::new(ErrorKind::Api, message).hint("install them with kubectl olm run --install-crds"))
}

/// Waits until the API server serves all of OLM's kinds.
pub(super) async fn wait_for_crds(api: &Api) -> Result<(), CliError> {
    let crds = Resource::from(&kinds::CUSTOM_RESOURCE_DEFINITION);
    let established = |crd: &Value| CustomResourceDefinition::new(crd).conditions().is_true(ESTABLISHED);
    let cannot = |verb: &'static str| {
        move |status| RequestError::of_cluster(verb, "customresourcedefinitions.apiextensions.k8s.io", status)
    };
    let query = ListQuery::all(&crds);
    let page = api.list(&query).await.map_err(cannot("list"))?;
    let mut waiting: BTreeSet<String> = page
        .objects
        .iter()
        .filter(|crd| CustomResourceDefinition::new(crd).group() == kinds::OLM_GROUP && !established(crd))
        .map(|crd| object::name(crd).to_owned())
        .collect();
    let events = api.watch(&query, &page.resource_version).await.map_err(cannot("watch"))?;
    let mut events = std::pin::pin!(events);
    while !waiting.is_empty() {
        match events.next().await {
            Some(Ok(WatchEvent::Added(crd) | WatchEvent::Modified(crd))) if established(&crd) => {
                waiting.remove(object::name(&crd));
            }
            Some(Ok(_)) => {}
            Some(Err(refusal)) => return Err(cannot("watch")(refusal).into()),
            None => return Err(cannot("watch")(Status::new(0, "NoAnswer", "the watch ended")).into()),
        }
    }
    Ok(())
}

fn runs_here(running: &[Value]) -> CliError {
    let names: Vec<String> = running.iter().map(|deployment| ObjectRef::from_object(deployment).to_string()).collect();
    CliError::new(ErrorKind::Api, format!("OLM is already running on the cluster: {}", names.join(", ")))
}

/// Returns an error if a real OLM is running, which releases finalizers itself.
pub(super) async fn require_none(api: &Api) -> Result<(), CliError> {
    match &upstream::running(api).await?[..] {
        [] => Ok(()),
        running => Err(runs_here(running).hint(
            "it removes the finalizer itself; if it does not, scale it to zero first: kubectl scale --replicas 0",
        )),
    }
}

/// How long the pods of a real OLM may take to end.
const STOP_TIMEOUT: Duration = Duration::from_mins(5);

/// Returns the Deployments of a real OLM that is running, for a process that waits until it is stopped; an error for others.
pub(super) async fn require_alone(api: &Api, waits: bool) -> Result<Vec<Value>, CliError> {
    let running = upstream::running(api).await?;
    if waits || running.is_empty() {
        return Ok(running);
    }
    Err(runs_here(&running)
        .hint("--audit prints what would be done; --take-over stops that OLM and takes over, kubectl olm hand-back starts it again"))
}

/// Stops a real OLM if it is running, and waits until its pods have ended.
pub(super) async fn stop(api: &Api) -> Result<(), CliError> {
    let running = upstream::running(api).await?;
    for deployment in &running {
        let target = ObjectRef::from_object(deployment);
        upstream::stop(api, deployment)
            .await
            .map_err(|error| CliError::from(error).while_doing(format_args!("cannot scale {target} to zero")))?;
        info!(deployment = %target, "scaled to zero to take over; kubectl olm hand-back starts it again");
    }
    for deployment in &running {
        let mut awaited = String::new();
        let wait = upstream::wait_until_stopped(api, deployment, |pods| {
            awaited = pods.join(", ");
            info!(pods = awaited, "waiting until they have ended");
        });
        let ended = tokio::time::timeout(STOP_TIMEOUT, wait).await;
        ended.map_err(|_| {
            let minutes = STOP_TIMEOUT.as_secs() / 60;
            CliError::new(ErrorKind::Api, format!("pods of OLM have not ended after {minutes} minutes: {awaited}"))
                .hint("end them, and run the command again")
        })??;
    }
    Ok(())
}
