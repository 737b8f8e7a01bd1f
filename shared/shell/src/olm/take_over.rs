//! `kubectl olm take-over`: stops upstream OLM, and runs this project's controllers in the cluster in its place.
//!
//! ```text
//!   installed --preflight--> confirm --> account, permissions --> stop upstream OLM --> Deployment --healthy--> done
//!                                                                                          |
//!                                       delete, start upstream OLM <--cannot become ready--+
//! ```
//! CRDs, operators and catalogs remain as they are. The command can be repeated, for example with another image.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::distribution::installation::Installation;
use olm_core::distribution::{Distribution, Release, Stage, stage};
use serde_json::Value;

use super::install::{apply, foreseen, not_installed};
use super::release::{ControllerImageFlags, Purpose};
use super::transfer::{self, acquire, held};
use super::wait::{self, End, Waiting};
use crate::blocking::block_on;
use crate::cli::connect::connect;
use crate::cli::flags::{ClusterFlags, DryRun};
use crate::cli::output::qualified;
use crate::cli::prompt::confirm;
use crate::cli::table::age;
use crate::cli::{CliError, ErrorKind, Outcome, Printer, signal};
use crate::cluster::api::Api;
use crate::cluster::installed::{get, held_leases, installed};
use crate::cluster::lease::Lease;
use crate::cluster::upstream;
use crate::run::preflight::{self, Agreement};
use crate::run::{self, Mode};

/// How long unanswered requests are repeated that start upstream OLM again.
const RESTORE_TIMEOUT: Duration = Duration::from_mins(1);
/// The pause between them.
const PAUSE: Duration = Duration::from_secs(2);
/// The hint for a cluster on which upstream OLM is stopped.
const RETURN: &str = "to continue, run the command again; to return to upstream OLM: kubectl olm hand-back";

/// Whether to take over, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// The images.
    pub images: ControllerImageFlags,
    /// Whether to proceed if the controllers would change objects at once.
    pub allow_changes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// Whether to skip the prompt.
    pub yes: bool,
    /// How long to wait until the controllers are ready.
    pub timeout: Duration,
}

/// Takes over from upstream OLM. The outcome is negative if the controllers would change objects, the user declines, or the controllers
/// are not ready in time: then upstream OLM runs again.
///
/// # Errors
/// The cluster has no upstream OLM, another process writes to it, or the server refuses a request.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let change = block_on(Change::read(options))?;
    let mut writes = 0;
    if !change.running.is_empty() {
        let namespace = &change.release.namespace;
        let audit = run::Options::new(Mode::Audit { once: true, timeout: None }, options.cluster.clone(), namespace);
        match preflight::check(&audit, "take over", options.allow_changes, printer)? {
            Agreement::Ended(outcome) => return Ok(outcome),
            Agreement::Changes(number) => writes = number,
        }
    }
    if options.dry_run != DryRun::None {
        return block_on(change.dry_run(options, printer));
    }
    let from = change.upstream.describe();
    let question = if change.running.is_empty() {
        format!("Run the controllers of kubectl-olm in place of {from}?")
    } else {
        format!("Stop {from}, and run the controllers of kubectl-olm in its place{}?", preflight::with_changes(writes))
    };
    if !confirm(printer, &question, options.yes)? {
        printer.talk("nothing was changed");
        return Ok(Outcome::Negative);
    }
    block_on(change.execute(options, printer))
}

/// What is changed.
struct Change {
    upstream: Installation,
    /// Its Deployments that are running.
    running: Vec<Value>,
    /// The objects to add.
    release: Release,
    /// The objects to add that do not exist.
    missing: Vec<ObjectRef>,
}

impl Change {
    async fn read(options: &Options) -> Result<Self, CliError> {
        let api = connect(&options.cluster).await?.api;
        let mut found = installed(&api).await?;
        found.retain(|found| found.distribution == Distribution::Upstream && !found.controllers.is_empty());
        let upstream = match &found[..] {
            [upstream] => upstream.clone(),
            [] => return Err(no_upstream(&installed(&api).await?)),
            [first, second, ..] => {
                let both =
                    format!("the cluster has several installations: {}; {}", first.describe(), second.describe());
                return Err(CliError::new(ErrorKind::Api, both).hint("remove one of them first"));
            }
        };
        if upstream.is_openshift() {
            return Err(preflight::openshift(&upstream.describe()));
        }
        preflight::require_crds(&api).await?;
        let release = options.images.own(Some(upstream.namespace.clone()), Purpose::TakeOver)?.only_controllers();
        let mut missing = Vec::new();
        for target in release.objects.iter().map(ObjectRef::from_object) {
            if get(&api, &target).await?.is_none() {
                missing.push(target);
            }
        }
        let mut running = upstream::running(&api).await?;
        running.retain(|deployment| object::namespace(deployment) == upstream.namespace);
        let change = Self { upstream, running, release, missing };
        change.require_free_lease(&api).await?;
        Ok(change)
    }

    /// Returns whether the Deployment of the controllers does not exist yet.
    fn is_new(&self) -> bool {
        let is_missing = |object: &Value| self.missing.contains(&ObjectRef::from_object(object));
        self.release.stage(Stage::Workloads).any(is_missing)
    }

    /// Returns an error if a process outside of the cluster holds the Lease: the controllers would wait for it.
    async fn require_free_lease(&self, api: &Api) -> Result<(), CliError> {
        if !self.is_new() {
            return Ok(());
        }
        match held_leases(api).await?.first() {
            Some(lease) => Err(held(lease)),
            None => Ok(()),
        }
    }

    async fn dry_run(&self, options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
        let api = connect(&options.cluster).await?.api;
        let note = options.dry_run.note();
        // In the order of the transfer.
        let (workloads, access): (Vec<&Value>, Vec<&Value>) =
            self.release.objects.iter().partition(|object| stage(object) >= Stage::Workloads);
        for object in access {
            printer.line(format_args!(
                "{} {}{note}",
                qualified(object),
                foresee(&api, object, options.dry_run).await?
            ))?;
        }
        for deployment in &self.running {
            printer.line(format_args!("{} scaled to zero{note}", qualified(deployment)))?;
        }
        for object in workloads {
            printer.line(format_args!(
                "{} {}{note}",
                qualified(object),
                foresee(&api, object, options.dry_run).await?
            ))?;
        }
        Ok(Outcome::Done)
    }

    /// Takes over. If the controllers do not become ready, upstream OLM is started again.
    async fn execute(&self, options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
        let api = connect(&options.cluster).await?.api;
        let mut lease = Lease::new(api.clone()).await;
        self.hold(&api, &mut lease).await?;
        let ended = self.execute_alone(options, &api, &mut lease, printer).await;
        lease.release().await;
        ended
    }

    async fn execute_alone(
        &self,
        options: &Options,
        api: &Api,
        lease: &mut Lease,
        printer: &mut Printer,
    ) -> Result<Outcome, CliError> {
        let mut waiting = Waiting::default();
        let limit = if options.timeout.is_zero() { Duration::MAX } else { options.timeout };
        let ended = tokio::select! {
            ended = tokio::time::timeout(limit, self.transfer(api, lease, &mut waiting, printer)) => ended.ok(),
            _ = signal::received() => {
                self.restore(api, printer).await?;
                return Ok(Outcome::Interrupted);
            }
        };
        let causes: Vec<String> = match ended {
            Some(Ok(End::Healthy)) => {
                printer.talk(format_args!(
                    "the controllers of kubectl-olm run in place of {}; kubectl olm hand-back returns to it",
                    Installation { stopped: false, ..self.upstream.clone() }.describe()
                ));
                return Ok(Outcome::Done);
            }
            Some(Ok(End::Failed(causes))) => causes,
            Some(Err(error)) => {
                self.restore(api, printer).await?;
                return Err(error);
            }
            None => waiting.lines().chain([format!("not ready after {}", age(options.timeout))]).collect(),
        };
        for cause in &causes {
            printer.reason(cause);
        }
        self.restore(api, printer).await?;
        let message = "the controllers of kubectl-olm are not ready";
        let error = CliError::new(ErrorKind::Api, message).hint("correct the cause, and run the command again");
        printer.error(&if self.running.is_empty() {
            error.hint("kubectl olm hand-back returns to upstream OLM")
        } else {
            error
        });
        Ok(Outcome::Negative)
    }

    async fn transfer(
        &self,
        api: &Api,
        lease: &mut Lease,
        waiting: &mut Waiting,
        printer: &mut Printer,
    ) -> Result<End, CliError> {
        for object in self.release.objects.iter().filter(|object| stage(object) < Stage::Workloads) {
            self.apply(api, object, printer).await?;
        }
        if self.is_new() {
            tokio::select! {
                stopped = self.stop(api, printer) => stopped?,
                never = lease.keep() => match never {},
            }
            lease.release().await;
        } else {
            self.stop(api, printer).await?;
        }
        for object in self.release.stage(Stage::Workloads) {
            self.apply(api, object, printer).await?;
        }
        printer.flush()?;
        wait::healthy(api, &self.release, waiting, printer).await
    }

    /// Acquires the Lease, so that no other process starts or stops controllers meanwhile, unless the controllers already run in the
    /// cluster and hold it. Then checks again that upstream OLM is in the state that was read.
    async fn hold(&self, api: &Api, lease: &mut Lease) -> Result<(), CliError> {
        if !self.is_new() {
            return Ok(());
        }
        acquire(api, lease).await?;
        let known: BTreeSet<&str> = self.running.iter().map(object::uid).collect();
        let running = upstream::running(api).await?;
        if running.iter().map(object::uid).all(|uid| known.contains(uid)) {
            return Ok(());
        }
        lease.release().await;
        Err(CliError::new(ErrorKind::Api, "upstream OLM has been started by another client meanwhile")
            .hint("run the command again"))
    }

    /// Stops upstream OLM, and waits until its pods have ended.
    async fn stop(&self, api: &Api, printer: &mut Printer) -> Result<(), CliError> {
        for deployment in &self.running {
            if upstream::stop(api, deployment).await? {
                printer.line(format_args!("{} scaled to zero", qualified(deployment)))?;
            }
        }
        printer.flush()?;
        for deployment in &self.running {
            let name = qualified(deployment);
            upstream::wait_until_stopped(api, deployment, |pods| {
                printer.talk(format_args!("waiting until the pods of {name} have ended: {}", pods.join(", ")));
            })
            .await?;
        }
        Ok(())
    }

    async fn apply(&self, api: &Api, object: &Value, printer: &mut Printer) -> Result<(), CliError> {
        let (_, what) = apply(api, object, false).await?;
        printer.line(format_args!("{} {what}", qualified(object)))
    }

    /// Starts upstream OLM again if this command has stopped it, after the controllers in its place have ended. Reports what could not be
    /// done.
    async fn restore(&self, api: &Api, printer: &mut Printer) -> Result<(), CliError> {
        if self.running.is_empty() {
            printer.warn(format_args!("{} remains stopped; {RETURN}", self.upstream.describe()));
            return Ok(());
        }
        let end = Instant::now() + RESTORE_TIMEOUT;
        while let Err(error) = self.restart(api, printer).await {
            if error.kind == ErrorKind::Unreachable && Instant::now() < end {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            printer.error(
                &error
                    .while_doing(format_args!("{} is stopped, and cannot be started", self.upstream.describe()))
                    .hint(RETURN),
            );
            return Ok(());
        }
        printer.talk(format_args!("{} runs as before", self.upstream.describe()));
        let access = self.missing.iter().filter(|target| target.gvk.kind != kinds::DEPLOYMENT.kind);
        if let Err(error) = transfer::remove(api, &access.cloned().collect::<Vec<_>>(), printer).await {
            printer.warn(format_args!("permissions of the controllers remain: {error}"));
        }
        printer.flush()
    }

    /// Deletes the Deployment of the controllers, and starts those of upstream OLM.
    async fn restart(&self, api: &Api, printer: &mut Printer) -> Result<(), CliError> {
        let deployments = self.missing.iter().filter(|target| target.gvk.kind == kinds::DEPLOYMENT.kind);
        transfer::remove(api, &deployments.cloned().collect::<Vec<_>>(), printer).await?;
        let mut failed = None;
        for deployment in &self.running {
            let started = async {
                match get(api, &ObjectRef::from_object(deployment)).await? {
                    Some(now) => upstream::start(api, &now).await,
                    None => Ok(false),
                }
            };
            match started.await {
                Ok(true) => printer.line(format_args!("{} scaled up again", qualified(deployment)))?,
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Returns what applying an object would do: as the server foresees it in its dry run.
async fn foresee(api: &Api, object: &Value, dry_run: DryRun) -> Result<&'static str, CliError> {
    if dry_run == DryRun::Server { Ok(apply(api, object, true).await?.1) } else { foreseen(api, object).await }
}

fn no_upstream(found: &[Installation]) -> CliError {
    match found.first() {
        Some(found) => CliError::new(
            ErrorKind::Api,
            format!("the cluster has no controllers of upstream OLM, but {}", found.describe()),
        )
        .hint("kubectl olm status shows what is installed"),
        None => not_installed(),
    }
}

#[cfg(test)]
mod tests {
    use olm_core::distribution::installation::installations;

    use super::*;

    #[test]
    fn what_cannot_be_taken_over_is_explained() {
        let deployment = serde_json::json!({
            "metadata": { "name": "kubectl-olm-run", "namespace": "olm", "labels": { "kubectl-olm/release": "v1.0.0" } },
        });
        let found = installations(&[deployment], &[]);
        assert_eq!(
            no_upstream(&found).message,
            "the cluster has no controllers of upstream OLM, but kubectl-olm v1.0.0 in namespace olm"
        );
        assert_eq!(no_upstream(&[]).message, "OLM is not installed on this cluster");
    }
}
