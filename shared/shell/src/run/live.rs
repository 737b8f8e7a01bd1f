//! Live and `--audit`: the controllers against a cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use olm_core::api::object::Gvk;
use olm_core::api::status::Status;
use olm_core::plan::{Action, Key, Reason, Severity};
use olm_core::planner::Planner;
use tracing::{debug, info, warn};

use super::{Options, endpoints, guard};
use crate::cli::signal::stopped;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::{Api, status};
use crate::cluster::catalogs::Catalogs;
use crate::cluster::lease::{Denied, Lease, Permit, describe};
use crate::cluster::live::{self, End, LoopOptions, Observer};
use crate::cluster::metrics::Metrics;

/// What to do when a kind is forbidden.
const NEEDS_TO_READ: &str =
    "the controllers need to read this kind in all namespaces: kubectl auth whoami shows as whom you are known";

/// How the controllers run against a cluster.
pub(super) struct Live<'a> {
    pub(super) options: &'a Options,
    pub(super) audit: bool,
    pub(super) once: bool,
    pub(super) take_over: bool,
    pub(super) lease: bool,
    pub(super) metrics: Option<std::net::SocketAddr>,
    pub(super) health: Option<std::net::SocketAddr>,
}

impl<'a> Live<'a> {
    /// Looking without touching.
    pub(super) fn audit(options: &'a Options) -> Self {
        Self { options, audit: true, once: false, take_over: false, lease: false, metrics: None, health: None }
    }

    pub(super) async fn run(&self, printer: &mut Printer) -> Result<Outcome, CliError> {
        let api = connect(self.options).await?;
        guard::require_crds(&api).await?;
        if !self.audit {
            guard::require_alone(&api, self.take_over).await?;
        }
        let settings = self.options.settings();
        let images = self.options.images.options()?;
        let catalogs = Catalogs::read(&self.options.catalogs, &self.options.namespace, images)?;
        let metrics = Metrics::default();
        let _servers = endpoints::serve(self.metrics, self.health, &metrics).await?;
        let planner = Planner::measured(settings, metrics.around());
        let mut log = Log {
            audit: self.audit.then_some(printer),
            metrics: metrics.clone(),
            troubled: BTreeSet::new(),
            alone: false,
        };
        let catalog_pods = self.options.catalog_pods;
        let options = LoopOptions { audit: self.audit, once: self.once, catalog_pods, metrics };
        let mut stop = std::pin::pin!(stopped());
        let mut lease = None;
        if self.lease {
            let wanted = lease.insert(Lease::new(api.clone(), &self.options.namespace).await);
            tokio::select! {
                claimed = self.claim(wanted) => claimed?,
                () = &mut stop => return Ok(Outcome::Done),
            }
        }
        let permit = lease.as_ref().map_or_else(Permit::always, Lease::permit);
        let end = {
            let work = live::run(api, planner, catalogs, permit, &options, &mut log, &mut stop);
            match &mut lease {
                Some(lease) => tokio::select! {
                    end = work => end,
                    never = lease.keep() => match never {},
                },
                None => work.await,
            }
        };
        if let Some(lease) = &mut lease {
            lease.release().await;
        }
        let audited = log.audit;
        match end {
            End::Stopped => Ok(Outcome::Done),
            End::Unreadable(gvk, refusal) => {
                Err(guard::refused(&format!("cannot read every {}", gvk.kind), &refusal).hint(NEEDS_TO_READ))
            }
            End::Quiet(blocked) if blocked.is_empty() => Ok(Outcome::Done),
            End::Quiet(blocked) => {
                if audited.is_none() {
                    printer.talk(explain(&blocked));
                }
                Ok(Outcome::Negative)
            }
        }
    }
}

impl Live<'_> {
    /// Takes the Lease. When it is somebody else's, those that go on wait for it later, and those that end do not begin.
    async fn claim(&self, lease: &mut Lease) -> Result<(), CliError> {
        let claimed = if self.once { lease.claim_abandoned().await } else { lease.claim().await };
        let name = lease.name();
        match claimed {
            Err(Denied::Refused(refusal)) if refusal.is_forbidden() => {
                let what = format!("cannot hold the Lease {name}, which keeps two of these from writing at a time");
                let namespace = &self.options.namespace;
                Err(guard::refused(&what, &refusal).hint(format!(
                    "get, create and update of leases in namespace {namespace} are needed; --no-lease goes without, if nothing else writes"
                )))
            }
            Err(Denied::Held(record)) if self.once => {
                let message =
                    format!("another process writes to this cluster: {} holds the Lease {name}", describe(&record));
                Err(CliError::new(ErrorKind::Api, message).hint("stop it, or leave out --once to wait for it"))
            }
            Err(Denied::Refused(refusal)) if self.once => {
                let error = guard::refused(&format!("cannot hold the Lease {name}"), &refusal);
                Err(if refusal.is_not_found() { error.hint(lease.namespace_hint()) } else { error })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// A client for the cluster that the flags name.
pub(super) async fn connect(options: &Options) -> Result<Api, CliError> {
    let mut config = options.cluster.config().await?;
    // It is about requests: a watch in which nothing happens goes on.
    config.read_timeout = None;
    let server = config.cluster_url.to_string();
    let client = kube::Client::try_from(config).map_err(status).map_err(|s| unreachable(&s, &server))?;
    let mut api = Api::new(client);
    if let Some(limit) = options.cluster.request_timeout {
        api = api.with_patience(if limit.is_zero() { Duration::MAX } else { limit });
    }
    match api.version().await {
        Ok(_) => Ok(api),
        Err(refusal) => Err(unreachable(&refusal, &server)),
    }
}

fn unreachable(refusal: &Status, server: &str) -> CliError {
    let (kind, hint) = match refusal.code {
        0 => (ErrorKind::Unreachable, "kubectl cluster-info shows whether the API server can be reached"),
        _ => (ErrorKind::Api, "kubectl auth whoami shows as whom you are known there"),
    };
    CliError::new(kind, refusal.message.clone()).at(server).hint(hint)
}

/// The sentences for what blocks, with hints.
pub(super) fn explain(blocked: &[(Key, Vec<Reason>)]) -> String {
    let mut lines = Vec::new();
    for reason in blocked.iter().flat_map(|(_, reasons)| reasons).filter(|r| r.severity() == Severity::Blocked) {
        lines.push(format!("blocked: {reason}"));
        lines.extend(reason.hint().map(|hint| format!("  hint: {hint}")));
    }
    lines.dedup();
    lines.join("\n")
}

/// Tells what the loop does: log lines, or (audit) what would be done, on stdout.
struct Log<'p> {
    audit: Option<&'p mut Printer>,
    metrics: Metrics,
    /// Kinds that cannot be watched now.
    troubled: BTreeSet<Gvk>,
    /// Was it told that the API server does not answer?
    alone: bool,
}

impl Observer for Log<'_> {
    fn started(&mut self, objects: usize) {
        info!(objects, "the cluster is known");
        self.metrics.ready();
    }

    fn worked(&mut self, key: &Key, actions: &[Action], refusals: &[Status]) {
        for action in actions.iter().filter(|a| a.writes()) {
            let line = format!("{} {}", action.verb().as_str(), action.target());
            match &mut self.audit {
                Some(printer) => {
                    // A reader that left ends the audit by the broken pipe of a later flush.
                    printer.line(format_args!("would {line}{}  (for {key})", detail(action))).ok();
                }
                None => debug!(%key, "{line}{}", detail(action)),
            }
        }
        for action in actions {
            if let Action::Emit(emit) = action
                && self.audit.is_none()
            {
                if emit.warning {
                    warn!(object = %action.target(), reason = emit.reason, "{}", emit.message);
                } else {
                    info!(object = %action.target(), reason = emit.reason, "{}", emit.message);
                }
            }
        }
        self.metrics.worked(actions, refusals.len());
        for refusal in refusals {
            // When somebody else was quicker, planning again is all there is to it.
            if refusal.is_conflict() || refusal.is_already_exists() || refusal.is_not_found() {
                debug!(%key, code = refusal.code, reason = refusal.reason, "refused: {}", refusal.message);
            } else {
                warn!(%key, code = refusal.code, reason = refusal.reason, "refused: {}", refusal.message);
            }
        }
        if let Some(printer) = &mut self.audit {
            printer.flush().ok();
        }
    }

    fn trouble(&mut self, gvk: &Gvk, refusal: &Status) {
        self.troubled.insert(gvk.clone());
        if refusal.code == 0 {
            // All kinds have it at a time.
            if !std::mem::replace(&mut self.alone, true) {
                warn!("the API server does not answer, it is tried again: {}", refusal.message);
            }
            return;
        }
        let hint = if refusal.is_forbidden() { NEEDS_TO_READ } else { "it is tried again" };
        warn!(kind = gvk.kind, group = gvk.group, hint, "cannot watch: {}", refusal.message);
    }

    fn better(&mut self, gvk: &Gvk) {
        self.troubled.remove(gvk);
        if self.troubled.is_empty() && std::mem::take(&mut self.alone) {
            info!("the API server answers again");
        }
    }

    fn unsettled(&mut self, keys: usize) {
        self.metrics.unsettled(keys);
    }

    fn reasons(&mut self, key: &Key, reasons: &[Reason]) {
        self.metrics.blocked(key, reasons.iter().filter(|r| r.severity() == Severity::Blocked).count());
        for reason in reasons {
            let hint = reason.hint();
            match (&mut self.audit, reason.severity()) {
                (Some(printer), Severity::Blocked) => {
                    printer.line(format_args!("blocked: {reason}")).ok();
                }
                (None, Severity::Blocked) => warn!(key = %key, hint, "{reason}"),
                (None, Severity::Settled) => info!(key = %key, hint, "{reason}"),
                _ => debug!(key = %key, hint, "{reason}"),
            }
        }
    }
}

/// What of an update is news, in few words.
fn detail(action: &Action) -> String {
    let phase = |object: &serde_json::Value| {
        let text = |field| olm_core::api::object::text(object, &["status", field]).to_owned();
        match (text("phase"), text("state")) {
            (phase, _) if !phase.is_empty() => format!(" to {phase}"),
            (_, state) if !state.is_empty() => format!(" to {state}"),
            _ => String::new(),
        }
    };
    match action {
        Action::UpdateStatus(object) => phase(object),
        Action::Patch { patch, .. } => format!(": {patch}"),
        Action::As(account, action) => format!("{} as {}", detail(action), account.user()),
        _ => String::new(),
    }
}
