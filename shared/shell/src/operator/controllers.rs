//! Whether controllers of OLM run on a cluster: without them nothing that is created takes effect.

use olm_core::api::kinds;
use olm_core::api::object;

use crate::cli::{CliError, Printer};
use crate::cluster::api::Api;
use crate::cluster::installed::{get, held_leases, installed};

/// Warns if no controllers run. Without permission to read that, it is unknown, and there is no warning.
pub(super) async fn warn_if_none(api: &Api, printer: &mut Printer) {
    if let Ok(false) = are_running(api).await {
        printer.warn("no controllers of OLM run on this cluster: nothing is installed until they do");
        printer
            .talk("hint: kubectl olm run runs them on this machine; kubectl olm install installs OLM in the cluster");
    }
}

/// Returns whether a Deployment of controllers is not scaled to zero, or a process holds the Lease of `kubectl olm run`.
async fn are_running(api: &Api) -> Result<bool, CliError> {
    if !held_leases(api).await?.is_empty() {
        return Ok(true);
    }
    for installation in installed(api).await? {
        // Their absence is no finding: OLM of OpenShift is known by its package server, too.
        if installation.controllers.is_empty() {
            return Ok(true);
        }
        for name in &installation.controllers {
            let found = get(api, &kinds::DEPLOYMENT.object(&installation.namespace, name)).await?;
            if found.is_some_and(|found| object::at(&found, &["spec", "replicas"]).as_i64().unwrap_or(1) > 0) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
