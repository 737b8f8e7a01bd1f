//! Live mode and `--audit`: the controllers on a cluster.

use std::time::Duration;

use olm_core::api::object::Gvk;
use olm_core::api::status::Status;
use olm_core::listing::listed;
use olm_core::plan::{Key, Reason};
use olm_core::planner::Planner;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::audit::AuditEvent;
use super::log::{Log, NEEDS_TO_READ, Voice};
use super::packages::{self, PackagesAddress, Server};
use super::report::Report;
use super::timeline::Timeline;
use super::{Options, endpoints, guard, is_in_pod, report};
use crate::cli::connect::{Connection, connect as connection};
use crate::cli::signal::{self, Signal};
use crate::cli::table::age;
use crate::cli::{CliError, ErrorKind, Outcome, Printer, errors};
use crate::cluster::api::Api;
use crate::cluster::catalogs::Catalogs;
use crate::cluster::lease::{Denied, Lease, NAMESPACE, Pause, Permit, describe, namespace_hint};
use crate::cluster::live::{self, End, LoopOptions};
use crate::cluster::metrics::Metrics;
use crate::cluster::request_error::RequestError;
use crate::cluster::upstream_watch;
use crate::cluster::watch::resource;

/// How long `--once` waits for unreadable catalogs when nothing else is in progress: their registries may be starting.
const CATALOG_GRACE_PERIOD: Duration = Duration::from_secs(30);
/// The same with `--catalog-pods`, whose pods have to pull images first.
const CATALOG_GRACE_PERIOD_WITH_PODS: Duration = Duration::from_mins(3);

/// A run of the controllers on a cluster.
pub(super) struct Live<'a> {
    pub(super) options: &'a Options,
    pub(super) audit: bool,
    pub(super) once: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) take_over: bool,
    pub(super) lease: bool,
    pub(super) metrics: Option<std::net::SocketAddr>,
    pub(super) health: Option<std::net::SocketAddr>,
    pub(super) packages: Option<&'a PackagesAddress>,
}

impl<'a> Live<'a> {
    /// Returns a read-only run.
    pub(super) fn audit(options: &'a Options) -> Self {
        let (once, take_over, lease) = (false, false, false);
        Self {
            options,
            audit: true,
            once,
            timeout: None,
            take_over,
            lease,
            metrics: None,
            health: None,
            packages: None,
        }
    }

    pub(super) async fn run(&self, printer: &mut Printer) -> Result<Outcome, CliError> {
        let mut stop = std::pin::pin!(self.stop());
        let timeline = !self.audit && !self.options.log_lines && printer.is_read_on_a_terminal();
        let metrics = Metrics::default();
        let mut lease = None;
        let ready = tokio::select! {
            ready = self.prepare(&metrics, &mut lease) => Ok(ready?),
            stopped = &mut stop => Err(stopped),
        };
        let Ready { api, server, catalogs, _servers, packages, pause } = match ready {
            Ok(ready) => ready,
            Err(stopped) => {
                if let Some(lease) = &mut lease {
                    lease.release().await;
                }
                return self.stopped(stopped, "waiting for the API server or the Lease", &[], printer);
            }
        };
        match self.directories() {
            Some(directories) if timeline => printer.talk(directories),
            Some(directories) => tracing::info!("{directories}"),
            None => {}
        }
        let planner = Planner::measured(self.options.settings(), metrics.around());
        let voice = match (self.audit, timeline) {
            (true, _) => Voice::Audit(&mut *printer, self.options.output),
            (false, true) => {
                printer.talk(format_args!("working on {server}, until {}", self.until()));
                Voice::Timeline(Box::new(Timeline::new(&mut *printer, self.once)))
            }
            (false, false) => Voice::Lines,
        };
        let mut log = Log::new(voice, self.once, metrics.clone());
        let catalog_pods = self.options.catalog_pods;
        let options = LoopOptions {
            audit: self.audit,
            once: self.once,
            catalog_pods,
            catalog_grace_period: if catalog_pods { CATALOG_GRACE_PERIOD_WITH_PODS } else { CATALOG_GRACE_PERIOD },
            without_missing_kinds: false,
            metrics,
            catalogs: packages.as_ref().map(Server::catalogs),
        };
        let pauses = watch::Sender::new(pause);
        let permit = lease.as_ref().map_or_else(Permit::always, Lease::permit).with_pauses(pauses.subscribe());
        let mut background = JoinSet::new();
        let mut started = pauses.subscribe();
        if !self.audit {
            background.spawn(upstream_watch::pause_while_running(api.clone(), pauses));
        }
        if packages.is_none() && !self.audit && !self.once {
            background.spawn(packages::clean(api.clone(), permit.clone()));
        }
        let packages = packages.map(|server| server.start(permit.clone()));
        let mut stopped = None;
        let end = {
            let stopping = async {
                stopped = Some(tokio::select! {
                    stop = stop => stop,
                    why = upstream_started(&mut started), if self.once => Stopped::UpstreamStarted(why),
                });
            };
            let work = live::run(api, planner, catalogs, permit, &options, &mut log, stopping);
            match &mut lease {
                Some(lease) => tokio::select! {
                    end = work => end,
                    never = lease.keep() => match never {},
                },
                None => work.await,
            }
        };
        if let Some(packages) = packages {
            packages.end().await;
        }
        if let Some(lease) = &mut lease {
            lease.release().await;
        }
        let final_states = log.into_final_states();
        match end {
            End::Stopped(reasons) => {
                self.stopped(stopped.unwrap_or(Stopped::Terminated), "the controllers are working", &reasons, printer)
            }
            End::Unreadable(gvk, refusal) => Err(unreadable(&gvk, refusal).hint(NEEDS_TO_READ)),
            End::Quiet(reasons) => {
                if let Some(states) = final_states.filter(|states| !states.is_empty()) {
                    if timeline {
                        printer.line("")?;
                    }
                    printer.data(states)?;
                }
                let report = Report::from_reasons(&reasons);
                self.print_report(&report, printer)?;
                let is_done = if self.audit { !report.is_blocked } else { report.open.is_empty() };
                Ok(if is_done { Outcome::Done } else { Outcome::Negative })
            }
        }
    }

    /// Returns that other commands do not know the catalogs in directories; `None` without such catalogs, or if nothing is installed from
    /// them later.
    fn directories(&self) -> Option<String> {
        if self.audit || self.once || self.options.catalogs.is_empty() {
            return None;
        }
        let names: Vec<String> = self
            .options
            .catalogs
            .iter()
            .map(|catalog| {
                let namespace = catalog.namespace.as_deref().unwrap_or(&self.options.namespace);
                format!("{namespace}/{}", catalog.name)
            })
            .collect();
        Some(format!(
            "the content of {} is known only to this process, as there is no CatalogSource: pass the same --catalog to kubectl olm \
             operator install, outdated and upgrade",
            listed(&names)
        ))
    }

    /// Prints what is open: an audit on stdout, as all its output.
    fn print_report(&self, report: &Report, printer: &mut Printer) -> Result<(), CliError> {
        if let Some(format) = self.options.output.filter(|_| self.audit) {
            let causes = report.open.iter().chain(&report.notes);
            return causes.map(AuditEvent::of_cause).try_for_each(|event| event.print(format, printer));
        }
        for line in report::lines(&report.open) {
            if self.audit {
                printer.line(line)?;
            } else {
                printer.reason(line);
            }
        }
        report::lines(&report.notes).for_each(|line| printer.talk(line));
        Ok(())
    }

    /// Resolves when the run has to end early.
    async fn stop(&self) -> Stopped {
        let signalled = async {
            match signal::received().await {
                Signal::Interrupt => Stopped::Interrupted,
                Signal::Terminate => Stopped::Terminated,
            }
        };
        match self.timeout {
            Some(timeout) => tokio::select! {
                stopped = signalled => stopped,
                () = tokio::time::sleep(timeout) => Stopped::OutOfTime(timeout),
            },
            None => signalled.await,
        }
    }

    /// Returns the outcome of a run that ended early.
    fn stopped(
        &self,
        stopped: Stopped,
        waiting_for: &str,
        reasons: &[(Key, Vec<Reason>)],
        printer: &mut Printer,
    ) -> Result<Outcome, CliError> {
        match stopped {
            Stopped::Terminated => Ok(Outcome::Done),
            Stopped::Interrupted => Ok(Outcome::Interrupted),
            Stopped::UpstreamStarted(why) => {
                Err(CliError::new(ErrorKind::Api, format!("{why}: nothing more is written"))
                    .hint("scale its Deployments to zero, and run the command again"))
            }
            Stopped::OutOfTime(timeout) => {
                self.print_report(&Report::from_reasons(reasons), printer)?;
                let message = format!("not done after {}: {waiting_for}", age(timeout));
                printer.error(
                    &CliError::new(ErrorKind::Api, message)
                        .hint("run the command again to continue, or use a longer --timeout"),
                );
                Ok(Outcome::Negative)
            }
        }
    }

    fn until(&self) -> &'static str {
        if self.once { "nothing is left to do" } else { "Ctrl-C" }
    }

    /// Prepares the loop: checks the cluster, reads catalogs, serves endpoints and acquires the Lease.
    async fn prepare(&self, metrics: &Metrics, lease: &mut Option<Lease>) -> Result<Ready, CliError> {
        let (api, server) = connect(self.options).await?;
        guard::require_crds(&api).await?;
        let mut pause = Pause::default();
        if !self.audit && !self.take_over {
            let running = guard::require_alone(&api, !self.once && is_in_pod()).await?;
            if !running.is_empty() {
                pause.begin(upstream_watch::why(&running));
            }
        }
        let images = self.options.images()?;
        let catalogs = Catalogs::read(&self.options.catalogs, &self.options.namespace, images, errors::hint)?;
        let servers = endpoints::serve(self.metrics, self.health, metrics).await?;
        let packages = match self.packages {
            Some(address) => Some(Server::prepare(&api, &server, &self.options.namespace, address).await?),
            None => None,
        };
        if self.lease {
            self.claim(lease.insert(Lease::new(api.clone()).await)).await?;
        }
        if self.take_over {
            // Last, because nothing may prevent these controllers from running when OLM is stopped.
            guard::stop(&api).await?;
        }
        Ok(Ready { api, server, catalogs, _servers: servers, packages, pause })
    }
}

/// The inputs of the loop.
struct Ready {
    api: Api,
    /// The address of the API server.
    server: String,
    catalogs: Catalogs,
    /// The servers end when this is dropped.
    _servers: JoinSet<()>,
    packages: Option<Server>,
    /// The state of pauses because of upstream OLM.
    pause: Pause,
}

/// Resolves with the reason when a pause begins.
async fn upstream_started(pauses: &mut watch::Receiver<Pause>) -> String {
    match pauses.wait_for(|pause| pause.why().is_some()).await {
        Ok(pause) => pause.why().unwrap_or_default().to_owned(),
        Err(_) => std::future::pending().await,
    }
}

/// Why a run ends early.
enum Stopped {
    /// Ctrl-C.
    Interrupted,
    /// SIGTERM.
    Terminated,
    /// Upstream OLM was started, for this reason of a pause.
    UpstreamStarted(String),
    /// The `--timeout` expired.
    OutOfTime(Duration),
}

impl Live<'_> {
    /// Acquires the Lease. If another process holds it, a run that continues waits for it later, and one with `--once`
    /// fails. Without the namespace of the Lease both fail: nothing creates it later.
    async fn claim(&self, lease: &mut Lease) -> Result<(), CliError> {
        // OLM must not be stopped while another process holds the Lease.
        let is_required = self.once || self.take_over;
        let claimed = if is_required { lease.claim_abandoned().await } else { lease.claim().await };
        let name = lease.name();
        match claimed {
            Err(Denied::Refused(refusal)) if refusal.is_forbidden() => {
                let what = format!(
                    "cannot acquire the Lease {name}, which prevents two instances from writing at the same time"
                );
                Err(lease_refused(refusal).while_doing(what).hint(format!(
                    "permissions to get, create and update leases in namespace {NAMESPACE} are required; --no-lease runs without the Lease, if no other instance writes"
                )))
            }
            Err(Denied::Held(record)) if is_required => {
                let message =
                    format!("another process writes to this cluster: {} holds the Lease {name}", describe(&record));
                let hint = if self.once { "stop it, or leave out --once to wait for it" } else { "stop it" };
                Err(CliError::new(ErrorKind::Api, message).hint(hint))
            }
            Err(Denied::Refused(refusal)) if is_required || refusal.is_not_found() => {
                let is_missing = refusal.is_not_found();
                let error = lease_refused(refusal).while_doing(format_args!("cannot acquire the Lease {name}"));
                Err(if is_missing { error.hint(namespace_hint()) } else { error })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Connects to the cluster, and returns a client and the address of the API server.
pub(super) async fn connect(options: &Options) -> Result<(Api, String), CliError> {
    let Connection { api, server, .. } = connection(&options.cluster).await?;
    match api.version().await {
        Ok(_) => Ok((api, server)),
        Err(refusal) => Err(RequestError::of_cluster("get", "/version", refusal).into()),
    }
}

/// Returns the error for an unreadable kind that planning requires.
pub(super) fn unreadable(gvk: &Gvk, status: Status) -> CliError {
    match resource(gvk) {
        Some(resource) => RequestError::about("list", &resource, "", status).into(),
        None => RequestError::new("list", &gvk.kind, "", status).into(),
    }
}

/// Returns the error for a Lease that cannot be acquired.
pub(super) fn lease_refused(status: Status) -> CliError {
    RequestError::new("update", "leases.coordination.k8s.io", NAMESPACE, status).into()
}
