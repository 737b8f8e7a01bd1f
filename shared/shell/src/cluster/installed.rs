//! What is installed on a cluster: OLM, and the controllers of `kubectl olm run` that hold a Lease.

use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::distribution::installation::{Installation, installations, retain_permitted};
use olm_core::distribution::{self, PACKAGE_SERVER, RELEASE};
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
    found(api.get(target).await, target)
}

/// Reads the metadata and the status of an object, which suffice for its state if there is no manifest to compare it with. The rest of a
/// CustomResourceDefinition is large.
pub(crate) async fn get_status(api: &Api, target: &ObjectRef) -> Result<Option<Value>, RequestError> {
    found(api.get_without_spec(target).await, target)
}

fn found(answer: Result<Option<Value>, Status>, target: &ObjectRef) -> Result<Option<Value>, RequestError> {
    match answer {
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

/// Returns the Deployments of the controllers of upstream OLM. A tenant can create Deployments with their names and labels, but not
/// the permissions of OLM.
pub(crate) async fn upstream_controllers(api: &Api) -> Result<Vec<Value>, RequestError> {
    let mut found = list(api, &kinds::DEPLOYMENT, |query| query.labelled(UPSTREAM)).await?;
    found.retain(|deployment| distribution::UPSTREAM.contains(&object::name(deployment)));
    permitted(api, found, distribution::UPSTREAM_ROLE, Some(distribution::NAMESPACE)).await
}

/// Returns the Deployments of this project's controllers.
pub(crate) async fn own_controllers(api: &Api) -> Result<Vec<Value>, RequestError> {
    let mut found = list(api, &kinds::DEPLOYMENT, |query| query.labelled(RELEASE)).await?;
    found.retain(|deployment| object::name(deployment) == distribution::CONTROLLERS);
    permitted(api, found, distribution::CONTROLLERS, None).await
}

/// Returns the Deployments in namespaces whose ServiceAccounts have this ClusterRole, or in `also`. Without permission to list
/// ClusterRoleBindings all are returned.
async fn permitted(
    api: &Api,
    mut deployments: Vec<Value>,
    role: &str,
    also: Option<&str>,
) -> Result<Vec<Value>, RequestError> {
    if deployments.iter().all(|deployment| also == Some(object::namespace(deployment))) {
        return Ok(deployments);
    }
    let bindings = match list(api, &kinds::CLUSTER_ROLE_BINDING, |query| query).await {
        Ok(bindings) => bindings,
        Err(error) if error.status.is_forbidden() => return Ok(deployments),
        Err(error) => return Err(error),
    };
    retain_permitted(&mut deployments, &bindings, role, also);
    Ok(deployments)
}

/// Returns the installations of OLM on the cluster.
pub(crate) async fn installed(api: &Api) -> Result<Vec<Installation>, RequestError> {
    let packages = list(api, &kinds::CLUSTER_SERVICE_VERSION, named(PACKAGE_SERVER));
    let (upstream, own, csvs) = futures::join!(upstream_controllers(api), own_controllers(api), packages);
    Ok(installations(&[upstream?, own?].concat(), &csvs?))
}

/// Returns the held Leases of `kubectl olm run`.
pub(crate) async fn held_leases(api: &Api) -> Result<Vec<HeldLease>, RequestError> {
    let named = named(lease::NAME);
    let leases = list(api, &kinds::LEASE, |query| named(query.within(lease::NAMESPACE))).await?;
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

/// Returns the held Lease if `kubectl olm run` holds it outside of the cluster, where it can have catalogs in directories. `None` also if
/// that cannot be read: the answer is only part of a hint.
pub(crate) async fn held_outside(api: &Api) -> Option<HeldLease> {
    let lease = held_leases(api).await.ok()?.into_iter().next()?;
    own_controllers(api).await.ok()?.is_empty().then_some(lease)
}

impl HeldLease {
    /// Returns the hint about catalogs that only the holder knows.
    pub(crate) fn directories_hint(&self) -> String {
        format!(
            "if kubectl olm run on {} has catalogs in directories (--catalog NAME=DIR), they have no CatalogSource: pass the same --catalog to the commands that use them",
            self.holder_identity
        )
    }
}
