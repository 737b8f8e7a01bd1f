//! `kubectl olm hand-back`: removes this project's controllers from the cluster, and starts upstream OLM in their place.
//!
//! ```text
//!   preflight --> confirm --> delete the Deployment --> acquire the Lease --> start upstream OLM --> delete account and permissions
//! ```
//! The Lease ensures that no other process runs the controllers.

use std::time::Duration;

use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::distribution::installation::Installation;
use olm_core::distribution::{CONTROLLERS, Distribution, RELEASE, Release, transfer};
use serde_json::Value;

use super::transfer::{acquire, held, remove};
use super::wait::{self, End, Waiting};
use crate::blocking::block_on;
use crate::cli::connect::connect;
use crate::cli::flags::{ClusterFlags, DryRun};
use crate::cli::output::qualified;
use crate::cli::prompt::confirm;
use crate::cli::table::age;
use crate::cli::{CliError, ErrorKind, Outcome, Printer, signal};
use crate::cluster::api::Api;
use crate::cluster::installed::{HeldLease, held_leases, installed, list, upstream_controllers};
use crate::cluster::lease::Lease;
use crate::cluster::upstream;
use crate::run::preflight::{self, Agreement};
use crate::run::{self, Mode};

/// Whether to hand back, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// Whether to proceed if the controllers would still change objects.
    pub allow_changes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// Whether to skip the prompt.
    pub yes: bool,
    /// How long to wait until upstream OLM is ready.
    pub timeout: Duration,
}

/// Hands the cluster back to upstream OLM. The outcome is negative if the controllers would still change objects, the user declines, or
/// upstream OLM is not ready in time.
///
/// # Errors
/// The cluster has no upstream OLM, another process writes to it, or the server refuses a request.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Some(change) = block_on(Change::read(options))? else {
        printer.talk("upstream OLM is running, without controllers of kubectl-olm: nothing to hand back");
        return Ok(Outcome::Done);
    };
    let namespace = &change.upstream.namespace;
    let audit = run::Options::new(Mode::Audit { once: true, timeout: None }, options.cluster.clone(), namespace);
    if let Agreement::Ended(outcome) = preflight::check(&audit, "hand back", options.allow_changes, printer)? {
        return Ok(outcome);
    }
    if options.dry_run != DryRun::None {
        return change.print(options.dry_run, printer);
    }
    let upstream = Installation { stopped: false, ..change.upstream.clone() }.describe();
    let question = if change.added.is_empty() {
        format!("Start {upstream}?")
    } else {
        format!("Remove the controllers of kubectl-olm, and start {upstream}?")
    };
    if !confirm(printer, &question, options.yes)? {
        printer.talk("nothing was changed");
        return Ok(Outcome::Negative);
    }
    block_on(change.execute(options, &upstream, printer))
}

/// What is changed.
struct Change {
    upstream: Installation,
    /// The stopped Deployments of upstream OLM.
    stopped: Vec<Value>,
    /// The objects of this project's controllers.
    added: Vec<ObjectRef>,
}

impl Change {
    /// Reads what is to be changed; `None` if nothing is.
    async fn read(options: &Options) -> Result<Option<Self>, CliError> {
        let api = connect(&options.cluster).await?.api;
        let deployments = upstream_controllers(&api).await?;
        let found = installed(&api).await?;
        let is_upstream = |found: &&Installation| found.distribution == Distribution::Upstream;
        let Some(upstream) = found.iter().filter(is_upstream).find(|found| !found.controllers.is_empty()) else {
            return Err(no_upstream(&found, &held_leases(&api).await?));
        };
        let mut added = Vec::new();
        for kind in [&kinds::DEPLOYMENT, &kinds::CLUSTER_ROLE_BINDING, &kinds::CLUSTER_ROLE, &kinds::SERVICE_ACCOUNT] {
            added.extend(own_objects(&api, kind, &upstream.namespace).await?);
        }
        let has_deployment = added.iter().any(|target| target.gvk.kind == kinds::DEPLOYMENT.kind);
        if let Some(lease) = held_leases(&api).await?.first().filter(|_| !has_deployment) {
            return Err(held(lease));
        }
        let is_of_upstream = |deployment: &Value| object::namespace(deployment) == upstream.namespace;
        let is_changed = |deployment: &Value| transfer::start(deployment).is_some();
        let stopped: Vec<Value> =
            deployments.into_iter().filter(|deployment| is_of_upstream(deployment) && is_changed(deployment)).collect();
        let change = Self { upstream: upstream.clone(), stopped, added };
        Ok((!change.stopped.is_empty() || !change.added.is_empty()).then_some(change))
    }

    fn print(&self, dry_run: DryRun, printer: &mut Printer) -> Result<Outcome, CliError> {
        let note = dry_run.note();
        // In the order of the transfer.
        let (deployments, access) = self.parts();
        for target in deployments {
            printer.line(format_args!("{} deleted{note}", qualified(&target.to_object())))?;
        }
        for deployment in &self.stopped {
            printer.line(format_args!("{} scaled up{note}", qualified(deployment)))?;
        }
        for target in access {
            printer.line(format_args!("{} deleted{note}", qualified(&target.to_object())))?;
        }
        Ok(Outcome::Done)
    }

    /// Returns the Deployment to delete first, and the account with its permissions, which is deleted last.
    fn parts(&self) -> (Vec<ObjectRef>, Vec<ObjectRef>) {
        self.added.iter().cloned().partition(|target| target.gvk.kind == kinds::DEPLOYMENT.kind)
    }

    async fn execute(&self, options: &Options, upstream: &str, printer: &mut Printer) -> Result<Outcome, CliError> {
        let api = connect(&options.cluster).await?.api;
        let mut lease = Lease::new(api.clone()).await;
        let mut waiting = Waiting::default();
        let limit = if options.timeout.is_zero() { Duration::MAX } else { options.timeout };
        let ended = tokio::select! {
            ended = tokio::time::timeout(limit, self.transfer(&api, &mut lease, &mut waiting, printer)) => Some(ended),
            _ = signal::received() => None,
        };
        lease.release().await;
        let Some(ended) = ended else {
            printer.warn(format_args!(
                "{upstream} may be stopped, without other controllers: run the command again to continue"
            ));
            return Ok(Outcome::Interrupted);
        };
        let causes: Vec<String> = match ended {
            Ok(Ok(End::Healthy)) => {
                printer.talk(format_args!("{upstream} is running; kubectl olm take-over returns to kubectl-olm"));
                return Ok(Outcome::Done);
            }
            Ok(Ok(End::Failed(causes))) => causes,
            Ok(Err(error)) => return Err(error),
            Err(_) => waiting.lines().chain([format!("not ready after {}", age(options.timeout))]).collect(),
        };
        for cause in &causes {
            printer.reason(cause);
        }
        printer.error(
            &CliError::new(ErrorKind::Api, format!("{upstream} is not ready"))
                .hint("correct the cause, and run the command again")
                .hint("kubectl olm take-over runs the controllers of kubectl-olm in its place"),
        );
        Ok(Outcome::Negative)
    }

    async fn transfer(
        &self,
        api: &Api,
        lease: &mut Lease,
        waiting: &mut Waiting,
        printer: &mut Printer,
    ) -> Result<End, CliError> {
        let (deployments, access) = self.parts();
        remove(api, &deployments, printer).await?;
        acquire(api, lease).await?;
        for deployment in &self.stopped {
            if upstream::start(api, deployment).await? {
                printer.line(format_args!("{} scaled up", qualified(deployment)))?;
            }
        }
        printer.flush()?;
        let release = Release {
            distribution: Distribution::Upstream,
            version: self.upstream.version.clone().unwrap_or_default(),
            namespace: self.upstream.namespace.clone(),
            objects: upstream_controllers(api).await?,
        };
        let ended = wait::healthy(api, &release, waiting, printer).await?;
        remove(api, &access, printer).await?;
        Ok(ended)
    }
}

/// Returns the error for a cluster without upstream OLM, with the way to it.
fn no_upstream(found: &[Installation], leases: &[HeldLease]) -> CliError {
    let error = CliError::new(ErrorKind::Api, "the cluster has no upstream OLM to hand back to");
    if !found.is_empty() {
        return error.hint("to replace the controllers by upstream OLM: kubectl olm uninstall --keep-crds, and then kubectl olm install --version VERSION");
    }
    match leases.first() {
        Some(lease) => error.hint(format!(
            "to replace kubectl olm run on {} by upstream OLM: stop it, and then kubectl olm install --version VERSION",
            lease.holder_identity
        )),
        None => error
            .hint("no controllers are installed: kubectl olm install --version VERSION installs upstream OLM")
            .hint("kubectl olm run runs the controllers of kubectl-olm on this machine"),
    }
}

/// Returns the objects of a kind that belong to this project's controllers in a namespace.
async fn own_objects(api: &Api, kind: &Kind, namespace: &str) -> Result<Vec<ObjectRef>, CliError> {
    let labelled = list(api, kind, |query| query.labelled(RELEASE)).await?;
    // A tenant can create objects with this name and label.
    let is_own =
        |object: &&Value| object::name(object) == CONTROLLERS && ["", namespace].contains(&object::namespace(object));
    Ok(labelled.iter().filter(is_own).map(ObjectRef::from_object).collect())
}

#[cfg(test)]
mod tests {
    use olm_core::distribution::installation::installations;
    use serde_json::json;

    use super::*;

    #[test]
    fn without_upstream_olm_the_hint_depends_on_what_runs() {
        let own = json!({ "metadata": { "name": CONTROLLERS, "namespace": "olm", "labels": { RELEASE: "v1.0.0" } } });
        let lease = HeldLease {
            namespace: "olm".to_owned(),
            name: "kubectl-olm-run".to_owned(),
            holder_identity: "desk_1_0a".to_owned(),
            acquire_time: None,
        };
        let hint = |found: &[Installation], leases: &[HeldLease]| no_upstream(found, leases).hints.swap_remove(0);
        let lease = [lease];
        assert!(hint(&installations(&[own], &[]), &lease).contains("kubectl olm uninstall --keep-crds"));
        assert!(hint(&[], &lease).starts_with("to replace kubectl olm run on desk_1_0a by upstream OLM: stop it"));
        assert!(hint(&[], &[]).starts_with("no controllers are installed: kubectl olm install --version"));
    }
}
