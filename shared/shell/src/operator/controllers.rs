//! Whether controllers of OLM are running on a cluster.

use jiff::Timestamp;
use olm_core::api::kinds;
use olm_core::distribution::installation::are_running;

use crate::cluster::api::{Api, ListQuery, Resource};
use crate::cluster::lease;

/// The label selector of the Deployments of upstream OLM, in any namespace.
const UPSTREAM: &str = "app in (olm-operator,catalog-operator)";

/// Returns whether controllers are running; `None` if that cannot be read.
pub(super) async fn running(api: &Api) -> Option<bool> {
    let deployments = ListQuery::all(&Resource::from(&kinds::DEPLOYMENT)).labelled(UPSTREAM);
    let leases = ListQuery::all(&Resource::from(&kinds::LEASE));
    let leases = ListQuery { fields: format!("metadata.name={}", lease::NAME), ..leases };
    let (deployments, leases) = futures::future::join(api.list(&deployments), api.list(&leases)).await;
    Some(are_running(&deployments.ok()?.objects, &leases.ok()?.objects, Timestamp::now()))
}
