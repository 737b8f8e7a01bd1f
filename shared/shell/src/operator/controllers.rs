//! Whether controllers of OLM are running on a cluster: without them nothing that is created takes effect.

use jiff::Timestamp;
use olm_core::api::kinds;
use olm_core::distribution::installation::are_running;

use crate::cli::Printer;
use crate::cluster::api::{Api, ListQuery, Resource};
use crate::cluster::installed::UPSTREAM;
use crate::cluster::lease;

/// Warns if no controllers are running. If that cannot be read there is no warning.
pub(super) async fn warn_if_none(api: &Api, printer: &mut Printer) {
    if running(api).await == Some(false) {
        printer.warn("no controllers of OLM run on this cluster: nothing is installed until they do");
        printer
            .talk("hint: kubectl olm run runs them on this machine; kubectl olm install installs OLM in the cluster");
    }
}

/// Returns whether controllers are running; `None` if that is unknown.
pub(super) async fn running(api: &Api) -> Option<bool> {
    let deployments = ListQuery::all(&Resource::from(&kinds::DEPLOYMENT)).labelled(UPSTREAM);
    let leases = ListQuery::all(&Resource::from(&kinds::LEASE));
    let leases = ListQuery { fields: format!("metadata.name={}", lease::NAME), ..leases };
    let (deployments, leases) = futures::future::join(api.list(&deployments), api.list(&leases)).await;
    are_running(&deployments.ok()?.objects, &leases.ok()?.objects, Timestamp::now())
}
