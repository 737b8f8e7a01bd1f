//! What is installed on a cluster: OLM, and the controllers of `kubectl olm run` that hold a Lease.

use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::distribution::installation::{Installation, installations};
use olm_core::distribution::{PACKAGE_SERVER, RELEASE};
use serde::Serialize;
use serde_json::Value;

use super::api::{Api, ListQuery, Resource};
use super::lease;
use super::request_error::{Place, RequestError};

/// The label selector of the Deployments of upstream OLM, in any namespace.
pub(crate) const UPSTREAM: &str = "app in (olm-operator,catalog-operator)";

/// A Lease of `kubectl olm run`, and its holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldLease {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The process that holds it: host, process id, and a number.
    pub holder_identity: String,
    /// When it was acquired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquire_time: Option<String>,
}

/// Lists objects in all namespaces, or in one; none if the kind is not served.
pub(crate) async fn list(
    api: &Api,
    kind: &Kind,
    query: impl FnOnce(ListQuery) -> ListQuery,
) -> Result<Vec<Value>, RequestError> {
    let resource = Resource::from(kind);
    let query = query(ListQuery::all(&resource));
    match api.list(&query).await {
        Ok(page) => Ok(page.objects),
        Err(refusal) if refusal.is_not_found() => Ok(Vec::new()),
        Err(refusal) => Err(RequestError::about("list", &resource, &query.namespace, refusal)),
    }
}

/// Reads an object; `None` if it does not exist or its kind is not served.
pub(crate) async fn get(api: &Api, target: &ObjectRef) -> Result<Option<Value>, RequestError> {
    match api.get(target).await {
        Ok(found) => Ok(found),
        Err(refusal) if refusal.is_not_found() => Ok(None),
        Err(refusal) => {
            let resource = kinds::find(&target.gvk.group, &target.gvk.kind)
                .map_or_else(|| target.gvk.kind.to_lowercase(), Kind::resource);
            let error = RequestError::new("get", resource, &target.namespace, refusal);
            Err(if target.namespace.is_empty() { RequestError { place: Place::Cluster, ..error } } else { error })
        }
    }
}

/// Returns a query with a field selector for the name.
fn named(name: &str) -> impl FnOnce(ListQuery) -> ListQuery {
    let fields = format!("metadata.name={name}");
    move |query| ListQuery { fields, ..query }
}

/// Returns the Deployments of the controllers of upstream OLM.
pub(crate) async fn upstream_controllers(api: &Api) -> Result<Vec<Value>, RequestError> {
    list(api, &kinds::DEPLOYMENT, |query| query.labelled(UPSTREAM)).await
}

/// Returns the installations of OLM on the cluster.
pub(crate) async fn installed(api: &Api) -> Result<Vec<Installation>, RequestError> {
    let mut deployments = upstream_controllers(api).await?;
    let labelled = list(api, &kinds::DEPLOYMENT, |query| query.labelled(RELEASE)).await?;
    for deployment in labelled {
        if !deployments.iter().any(|known| object::uid(known) == object::uid(&deployment)) {
            deployments.push(deployment);
        }
    }
    let csvs = list(api, &kinds::CLUSTER_SERVICE_VERSION, named(PACKAGE_SERVER)).await?;
    Ok(installations(&deployments, &csvs))
}

/// Returns the held Leases of `kubectl olm run`.
pub(crate) async fn held_leases(api: &Api) -> Result<Vec<HeldLease>, RequestError> {
    let leases = list(api, &kinds::LEASE, named(lease::NAME)).await?;
    let held = leases.iter().filter_map(|lease| {
        let text = |field| Some(object::text(lease, &["spec", field]).to_owned()).filter(|text| !text.is_empty());
        Some(HeldLease {
            holder_identity: text("holderIdentity")?,
            acquire_time: text("acquireTime"),
            namespace: object::namespace(lease).to_owned(),
            name: object::name(lease).to_owned(),
        })
    });
    Ok(held.collect())
}
