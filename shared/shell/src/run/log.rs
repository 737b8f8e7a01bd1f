//! The output of controllers on a cluster: a timeline on a terminal, log lines elsewhere, and planned actions in
//! audits.

use std::collections::BTreeSet;
use std::time::Duration;

use olm_core::api::install_plan::InstallPlan;
use olm_core::api::object::Gvk;
use olm_core::api::status::Status;
use olm_core::api::subscription::Subscription;
use olm_core::plan::{Action, Key, Reason, Severity};
use olm_core::sim::WatchEvent;
use olm_core::world::{Unreadable, World};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::audit::AuditEvent;
use super::causes::Causes;
use super::final_states;
use super::timeline::Timeline;
use crate::cli::Printer;
use crate::cli::flags::DataFormat;
use crate::cli::table::Table;
use crate::cluster::live::Observer;
use crate::cluster::metrics::Metrics;

/// The hint for a forbidden kind.
pub(super) const NEEDS_TO_READ: &str =
    "the controllers need permission to read this kind in all namespaces; to see your user: kubectl auth whoami";

/// The hint for a cluster on which upstream OLM was started.
pub(super) const STOP_UPSTREAM: &str =
    "scale its Deployments to zero, or end this process to leave the cluster to upstream OLM: kubectl olm hand-back";

/// With more objects than this, the final table contains only those that changed or are not settled.
const MANY: usize = 40;

/// How long the controllers must be idle before this is reported.
const REST: Duration = Duration::from_secs(4);

/// The form of the output.
pub(super) enum Voice<'p> {
    /// Planned actions on stdout, as text or documents.
    Audit(&'p mut Printer, Option<DataFormat>),
    /// A timeline on stdout.
    Timeline(Box<Timeline<'p>>),
    /// Log lines.
    Lines,
}

/// The output, and the state of the endpoints.
pub(super) struct Log<'p> {
    voice: Voice<'p>,
    /// Whether a final report lists what is open.
    reports: bool,
    metrics: Metrics,
    causes: Causes,
    /// Kinds that cannot be watched now.
    troubled: BTreeSet<Gvk>,
    /// Whether it was reported that the API server does not respond.
    alone: bool,
    /// Since when the controllers are idle.
    idle: Option<Instant>,
    /// The final state of the objects.
    final_states: Option<Table>,
}

impl<'p> Log<'p> {
    pub(super) fn new(voice: Voice<'p>, reports: bool, metrics: Metrics) -> Self {
        Self {
            voice,
            reports,
            metrics,
            causes: Causes::default(),
            troubled: BTreeSet::new(),
            alone: false,
            idle: None,
            final_states: None,
        }
    }

    /// The final state of the objects.
    pub(super) fn into_final_states(self) -> Option<Table> {
        self.final_states
    }

    /// Returns when to report that the controllers are idle.
    fn rests_at(&self) -> Option<Instant> {
        let Voice::Timeline(timeline) = &self.voice else { return None };
        self.idle.filter(|_| timeline.is_busy() && !self.causes.is_something_under_way()).map(|since| since + REST)
    }

    fn say_event(&mut self, key: &Key, action: &Action) {
        let Action::Emit(emit) = action else { return };
        let (object, reason) = (action.target(), &emit.reason);
        // A problem is also a reason, which is reported if it lasts.
        if self.causes.contain(key, &emit.message) {
            debug!(%object, reason, "{}", emit.message);
        } else if emit.warning && !self.causes.are_open(key) {
            warn!(%object, reason, "{}", emit.message);
        } else {
            info!(%object, reason, "{}", emit.message);
        }
    }
}

impl Observer for Log<'_> {
    fn started(&mut self, world: &World) {
        let objects = world.objects().count();
        match &mut self.voice {
            Voice::Timeline(timeline) => timeline.started(world),
            Voice::Audit(..) | Voice::Lines => info!(objects, "read the cluster"),
        }
        self.metrics.ready();
    }

    fn worked(&mut self, key: &Key, actions: &[Action], refusals: &[Status]) {
        for action in actions.iter().filter(|a| a.writes()) {
            let line = format!("{} {}", action.verb().as_str(), action.target());
            match &mut self.voice {
                Voice::Audit(printer, Some(format)) => drop(AuditEvent::action(key, action).print(*format, printer)),
                Voice::Audit(printer, None) => {
                    // A closed pipe ends the audit at a later flush.
                    printer.line(format_args!("would {line}{}  (for {key})", detail(action))).ok();
                }
                Voice::Timeline(_) | Voice::Lines => debug!(%key, "{line}{}", detail(action)),
            }
        }
        match &mut self.voice {
            Voice::Lines => actions.iter().for_each(|action| self.say_event(key, action)),
            Voice::Audit(printer, _) => drop(printer.flush()),
            Voice::Timeline(_) => {}
        }
        self.metrics.worked(actions, refusals.len());
        // A repeated refusal is a reason. A conflict with another client only needs a new plan.
        for refusal in refusals {
            debug!(%key, code = refusal.code, reason = refusal.reason, "refused: {}", refusal.message);
        }
    }

    fn trouble(&mut self, gvk: &Gvk, refusal: &Status) {
        self.troubled.insert(gvk.clone());
        if refusal.code == 0 {
            // All kinds are affected at the same time.
            if !std::mem::replace(&mut self.alone, true) {
                warn!("the API server does not respond, retrying: {}", refusal.message);
            }
            return;
        }
        let hint = if refusal.is_forbidden() { NEEDS_TO_READ } else { "retrying" };
        warn!(kind = gvk.kind, group = gvk.group, hint, "cannot watch: {}", refusal.message);
    }

    fn recovered(&mut self, gvk: &Gvk) {
        self.troubled.remove(gvk);
        if self.troubled.is_empty() && std::mem::take(&mut self.alone) {
            match &mut self.voice {
                Voice::Timeline(timeline) => timeline.report_sentence("the API server responds again".to_owned()),
                Voice::Audit(..) | Voice::Lines => info!("the API server responds again"),
            }
        }
    }

    fn unreadable(&mut self, object: &Unreadable) {
        if let Voice::Audit(printer, Some(format)) = &mut self.voice {
            let reason = Reason::Unreadable { object: object.name(), message: object.why.clone() };
            drop(AuditEvent::reason(&reason).print(*format, printer));
            return;
        }
        warn!(object = object.name(), "cannot be read and is ignored: {}", object.why);
    }

    fn paused(&mut self, why: Option<&str>) {
        self.metrics.paused(why.is_some());
        match (why, &mut self.voice) {
            (Some(why), _) => warn!(hint = STOP_UPSTREAM, "{why}; nothing is written until it is stopped"),
            (None, Voice::Timeline(timeline)) => {
                timeline.report_sentence("upstream OLM was stopped; continuing".to_owned());
            }
            (None, _) => info!("upstream OLM was stopped; continuing"),
        }
    }

    fn unsettled(&mut self, keys: usize) {
        self.metrics.unsettled(keys);
        self.idle = (keys == 0).then(|| self.idle.unwrap_or_else(Instant::now));
    }

    fn reasons(&mut self, key: &Key, reasons: &[Reason]) {
        self.metrics.blocked(key, reasons.iter().filter(|r| r.severity() == Severity::Blocked).count());
        for reason in reasons {
            debug!(%key, hint = reason.hint(), "{reason}");
        }
        self.causes.set(key, reasons, Instant::now());
    }

    fn wants_changes(&self) -> bool {
        matches!(self.voice, Voice::Timeline(_))
    }

    fn changed(&mut self, by: Option<&Key>, change: WatchEvent) {
        if let Voice::Timeline(timeline) = &mut self.voice {
            timeline.changed(by, change);
        }
    }

    fn due(&self) -> Option<Instant> {
        let timeline = match &self.voice {
            Voice::Timeline(timeline) => timeline.due(),
            Voice::Audit(..) | Voice::Lines => None,
        };
        [timeline, self.causes.due(), self.rests_at()].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Instant) {
        for reason in self.causes.take(now) {
            let (severity, hint) = (reason.severity(), reason.hint());
            match &mut self.voice {
                // The report contains it.
                _ if self.reports && severity != Severity::Waiting => {}
                Voice::Timeline(timeline) => timeline.report_reason(&reason),
                Voice::Audit(printer, Some(format)) => drop(AuditEvent::reason(&reason).print(*format, printer)),
                Voice::Audit(printer, None) if severity == Severity::Blocked => {
                    printer.line(format_args!("blocked: {reason}")).ok();
                    printer.flush().ok();
                }
                Voice::Audit(_, None) => {}
                Voice::Lines if severity == Severity::Blocked => warn!(hint, "{reason}"),
                Voice::Lines => info!(hint, "{reason}"),
            }
        }
        let rests = self.rests_at().is_some_and(|at| at <= now);
        if let Voice::Timeline(timeline) = &mut self.voice {
            if rests {
                timeline.report_idle();
            }
            timeline.tick(now);
        }
    }

    fn ended(&mut self, world: &World) {
        let mut changed = BTreeSet::new();
        if let Voice::Timeline(timeline) = &mut self.voice {
            timeline.end();
            changed = std::mem::take(&mut timeline.changed);
        }
        self.final_states = (self.reports && !matches!(self.voice, Voice::Audit(..)))
            .then(|| final_states::table(world, MANY, &changed));
    }
}

/// Returns the change of an action in few words.
fn detail(action: &Action) -> String {
    let phase = |object: &serde_json::Value| {
        // InstallPlans and ClusterServiceVersions have a phase, Subscriptions a state.
        match (InstallPlan::new(object).phase_text(), Subscription::new(object).state_text()) {
            (phase, _) if !phase.is_empty() => format!(" to {phase}"),
            (_, state) if !state.is_empty() => format!(" to {state}"),
            _ => String::new(),
        }
    };
    match action {
        Action::UpdateStatus(object) => phase(object),
        Action::Patch { target, .. } if target.gvk.kind == "Secret" => String::new(),
        Action::Patch { patch, .. } => format!(": {patch}"),
        Action::As(account, action) => format!("{} as {}", detail(action), account.user()),
        _ => String::new(),
    }
}
