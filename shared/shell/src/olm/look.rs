//! What is installed on a cluster.

use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::distribution::installation::{Installation, installations};
use olm_core::distribution::{PACKAGE_SERVER, RELEASE};
use serde_json::Value;

use crate::cli::CliError;
use crate::cluster::api::{Api, ListQuery, Resource};
use crate::cluster::lease;
use crate::cluster::request_error::RequestError;

/// The label selector of the Deployments of upstream OLM, in any namespace.
const UPSTREAM: &str = "app in (olm-operator,catalog-operator)";

/// Lists objects in all namespaces, or in one; none if the kind is not served.
pub(super) async fn list(
    api: &Api,
    kind: &Kind,
    query: impl FnOnce(ListQuery) -> ListQuery,
) -> Result<Vec<Value>, CliError> {
    let resource = Resource::from(kind);
    let query = query(ListQuery::all(&resource));
    match api.list(&query).await {
        Ok(page) => Ok(page.objects),
        Err(refusal) if refusal.code == 404 => Ok(Vec::new()),
        Err(refusal) => Err(RequestError::about("list", &resource, &query.namespace, refusal).into()),
    }
}

/// Reads an object; `None` if it does not exist or its kind is not served.
pub(super) async fn get(api: &Api, target: &ObjectRef) -> Result<Option<Value>, CliError> {
    match api.get(target).await {
        Ok(found) => Ok(found),
        Err(refusal) if refusal.code == 404 => Ok(None),
        Err(refusal) => {
            let resource = kinds::find(&target.gvk.group, &target.gvk.kind)
                .map_or_else(|| target.gvk.kind.to_lowercase(), Kind::resource);
            let error = RequestError::new("get", resource, &target.namespace, refusal);
            let place = crate::cluster::request_error::Place::Cluster;
            Err(if target.namespace.is_empty() { RequestError { place, ..error } } else { error }.into())
        }
    }
}

/// Returns a query with a field selector for the name.
pub(super) fn named(name: &str) -> impl FnOnce(ListQuery) -> ListQuery {
    let fields = format!("metadata.name={name}");
    move |query| ListQuery { fields, ..query }
}

/// Returns the installations of OLM on the cluster.
pub(super) async fn installed(api: &Api) -> Result<Vec<Installation>, CliError> {
    let mut deployments = list(api, &kinds::DEPLOYMENT, |query| query.labelled(UPSTREAM)).await?;
    let labelled = list(api, &kinds::DEPLOYMENT, |query| query.labelled(RELEASE)).await?;
    for deployment in labelled {
        if !deployments.iter().any(|known| object::uid(known) == object::uid(&deployment)) {
            deployments.push(deployment);
        }
    }
    let csvs = list(api, &kinds::CLUSTER_SERVICE_VERSION, named(PACKAGE_SERVER)).await?;
    Ok(installations(&deployments, &csvs))
}

/// Returns the holders of Leases of `kubectl olm run`, with the namespace of the Lease.
pub(super) async fn holders(api: &Api) -> Result<Vec<(String, String)>, CliError> {
    let leases = list(api, &kinds::LEASE, named(lease::NAME)).await?;
    let held = leases.iter().map(|lease| {
        (object::namespace(lease).to_owned(), object::text(lease, &["spec", "holderIdentity"]).to_owned())
    });
    Ok(held.filter(|(_, holder)| !holder.is_empty()).collect())
}
