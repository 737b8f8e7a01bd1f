//! What `take-over` and `hand-back` share: the Lease, and the removal of the controllers.

use kube::api::DeleteParams;
use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::ObjectRef;

use crate::cli::output::qualified;
use crate::cli::{CliError, ErrorKind, Printer};
use crate::cluster::api::Api;
use crate::cluster::installed::{HeldLease, get, held_leases};
use crate::cluster::lease::{self, Denied, Lease};
use crate::cluster::request_error::RequestError;
use crate::cluster::upstream;

/// Returns the error for a process that holds the Lease.
pub(super) fn held(lease: &HeldLease) -> CliError {
    let HeldLease { namespace, name, holder_identity, .. } = lease;
    CliError::new(ErrorKind::Api, format!("another process writes to this cluster: {holder_identity} holds the Lease {namespace}/{name}"))
        .hint("stop it: kubectl olm run releases the Lease when it ends; if it was killed, remove the Lease: kubectl delete lease -n olm kubectl-olm-run")
}

/// Acquires the Lease: no other process may write, or transfer the cluster.
pub(super) async fn acquire(api: &Api, lease: &mut Lease) -> Result<(), CliError> {
    match lease.claim_abandoned().await {
        Ok(()) => Ok(()),
        Err(Denied::Held(_)) => Err(held_leases(api).await?.first().map_or_else(
            || {
                CliError::new(ErrorKind::Api, "another process has just acquired and released the Lease")
                    .hint("run the command again")
            },
            held,
        )),
        // Without the namespace of the Lease no process can hold it.
        Err(Denied::Refused(refusal)) if refusal.is_not_found() => Ok(()),
        Err(Denied::Refused(refusal)) => {
            let error = RequestError::new("update", "leases.coordination.k8s.io", lease::NAMESPACE, refusal);
            Err(CliError::from(error)
                .while_doing("cannot acquire the Lease, which ensures that no other process writes"))
        }
    }
}

/// Deletes objects, Deployments first, and waits until the pods of Deployments have ended.
pub(super) async fn remove(api: &Api, targets: &[ObjectRef], printer: &mut Printer) -> Result<(), CliError> {
    let (deployments, others): (Vec<_>, Vec<_>) =
        targets.iter().partition(|target| target.gvk.kind == kinds::DEPLOYMENT.kind);
    for target in deployments.into_iter().chain(others) {
        let Some(object) = get(api, target).await? else { continue };
        match api.delete(target, &DeleteParams::foreground()).await {
            Ok(_) => printer.line(format_args!("{} deleted", qualified(&object)))?,
            Err(refusal) if refusal.is_not_found() => {}
            Err(refusal) => {
                let resource =
                    kinds::find(&target.gvk.group, &target.gvk.kind).map_or_else(String::new, Kind::resource);
                return Err(RequestError::new("delete", resource, &target.namespace, refusal).into());
            }
        }
        if target.gvk.kind == kinds::DEPLOYMENT.kind {
            printer.flush()?;
            let name = qualified(&object);
            upstream::wait_until_stopped(api, &object, |pods| {
                printer.talk(format_args!("waiting until the pods of {name} have ended: {}", pods.join(", ")));
            })
            .await?;
        }
    }
    Ok(())
}
