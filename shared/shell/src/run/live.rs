//! Live and `--audit`: the controllers against a cluster.

use olm_core::api::object::Gvk;
use olm_core::api::status::Status;
use olm_core::plan::{Action, Key, Reason, Severity};
use olm_core::planner::{Planner, Work};
use olm_core::settings::Settings;
use tracing::{debug, info, warn};

use super::{Options, endpoints, guard};
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::{Api, status};
use crate::cluster::catalogs::Catalogs;
use crate::cluster::live::{self, End, LoopOptions, Observer};

/// How the controllers run against a cluster.
pub(super) struct Live<'a> {
    pub(super) options: &'a Options,
    pub(super) audit: bool,
    pub(super) once: bool,
    pub(super) take_over: bool,
    pub(super) metrics: Option<std::net::SocketAddr>,
    pub(super) health: Option<std::net::SocketAddr>,
}

impl<'a> Live<'a> {
    /// Looking without touching.
    pub(super) fn audit(options: &'a Options) -> Self {
        Self { options, audit: true, once: false, take_over: false, metrics: None, health: None }
    }

    pub(super) async fn run(&self, printer: &mut Printer) -> Result<Outcome, CliError> {
        let api = connect(self.options).await?;
        guard::require_crds(&api).await?;
        if !self.audit {
            guard::require_alone(&api, self.take_over).await?;
        }
        let settings = Settings { global_catalog_namespace: self.options.namespace.clone(), ..Settings::default() };
        let catalogs = Catalogs::read(&self.options.catalogs, &self.options.namespace)?;
        let state = endpoints::State::default();
        let _servers = endpoints::serve(self.metrics, self.health, &state).await?;
        let mut log = Log { audit: self.audit.then_some(printer), state };
        let options = LoopOptions { audit: self.audit, once: self.once };
        let end = live::run(api, Planner::new(settings), catalogs, &options, &mut log, stopped()).await;
        let audited = log.audit;
        match end {
            End::Stopped => Ok(Outcome::Done),
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

/// A client for the cluster that the flags name.
pub(super) async fn connect(options: &Options) -> Result<Api, CliError> {
    let config = options.cluster.config().await?;
    let server = config.cluster_url.to_string();
    let client = kube::Client::try_from(config).map_err(status).map_err(|s| unreachable(&s, &server))?;
    let api = Api::new(client);
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

/// Resolves when the process is asked to stop.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        // Without handlers the default action of a signal ends the process, which leaves the cluster as clean.
        _ => std::future::pending().await,
    }
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
    state: endpoints::State,
}

impl Observer for Log<'_> {
    fn started(&mut self, objects: usize) {
        info!(objects, "the cluster is known, planning starts");
        self.state.ready();
    }

    fn worked(&mut self, work: &Work, refusals: &[Status]) {
        for action in work.actions.iter().filter(|a| a.writes()) {
            let line = format!("{} {}", action.verb().as_str(), action.target());
            match &mut self.audit {
                Some(printer) => {
                    // A reader that left ends the audit by the broken pipe of a later flush.
                    printer.line(format_args!("would {line}{}  (for {})", detail(action), work.key)).ok();
                }
                None => debug!(key = %work.key, "{line}{}", detail(action)),
            }
        }
        for action in &work.actions {
            if let Action::Emit(emit) = action
                && self.audit.is_none()
            {
                info!(object = %action.target(), reason = emit.reason, "{}", emit.message);
            }
        }
        self.state.worked(&work.actions, refusals.len());
        for refusal in refusals.iter().filter(|r| !r.is_conflict() && !r.is_already_exists() && !r.is_not_found()) {
            warn!(key = %work.key, code = refusal.code, reason = refusal.reason, "refused: {}", refusal.message);
        }
        if let Some(printer) = &mut self.audit {
            printer.flush().ok();
        }
    }

    fn trouble(&mut self, gvk: &Gvk, refusal: &Status) {
        let hint = if refusal.is_forbidden() {
            "the controllers need to read this kind in all namespaces"
        } else {
            "it is tried again"
        };
        warn!(kind = gvk.kind, group = gvk.group, hint, "cannot watch: {}", refusal.message);
    }

    fn reasons(&mut self, key: &Key, reasons: &[Reason]) {
        self.state.reasons(key, reasons.iter().filter(|r| r.severity() == Severity::Blocked).count());
        for reason in reasons {
            let hint = reason.hint();
            match (&mut self.audit, reason.severity()) {
                (Some(printer), Severity::Blocked) => {
                    printer.line(format_args!("blocked: {reason}")).ok();
                }
                (None, Severity::Blocked) => warn!(key = %key, hint, "{reason}"),
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
        _ => String::new(),
    }
}
