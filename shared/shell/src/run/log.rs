//! What the controllers say while they run on a cluster: a timeline on a terminal, log lines elsewhere, and planned actions when they
//! only look.

use std::collections::BTreeSet;
use std::time::Duration;

use olm_core::api::object::Gvk;
use olm_core::api::status::Status;
use olm_core::plan::{Action, Key, Reason, Severity};
use olm_core::sim::WatchEvent;
use olm_core::world::{Unreadable, World};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::audit::AuditEvent;
use super::causes::Causes;
use super::ends;
use super::timeline::Timeline;
use crate::cli::Printer;
use crate::cli::flags::DataFormat;
use crate::cli::table::Table;
use crate::cluster::live::Observer;
use crate::cluster::metrics::Metrics;

/// What to do when a kind is forbidden.
pub(super) const NEEDS_TO_READ: &str =
    "the controllers need to read this kind in all namespaces: kubectl auth whoami shows as whom you are known";

/// Of more objects than that only those are in the final table that have changed or are not settled.
const MANY: usize = 40;

/// How long nothing has to be left to do before that is said.
const REST: Duration = Duration::from_secs(4);

/// How it is said.
pub(super) enum Voice<'p> {
    /// As actions that would be taken, on stdout: lines for people, or documents.
    Audit(&'p mut Printer, Option<DataFormat>),
    /// As what happens, on stdout.
    Timeline(Box<Timeline<'p>>),
    /// As log lines.
    Lines,
}

/// What is said, and what the endpoints tell.
pub(super) struct Log<'p> {
    voice: Voice<'p>,
    /// Does a report at the end say what is open?
    reports: bool,
    metrics: Metrics,
    causes: Causes,
    /// Kinds that cannot be watched now.
    troubled: BTreeSet<Gvk>,
    /// Was it said that the API server does not answer?
    alone: bool,
    /// Since when nothing is left to do.
    idle: Option<Instant>,
    /// Where everything has ended.
    ends: Option<Table>,
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
            ends: None,
        }
    }

    /// Where everything has ended.
    pub(super) fn into_ends(self) -> Option<Table> {
        self.ends
    }

    /// When it is to be said that nothing is left to do.
    fn rests_at(&self) -> Option<Instant> {
        let Voice::Timeline(timeline) = &self.voice else { return None };
        self.idle.filter(|_| timeline.is_busy() && !self.causes.is_something_under_way()).map(|since| since + REST)
    }

    fn say_event(&mut self, key: &Key, action: &Action) {
        let Action::Emit(emit) = action else { return };
        let (object, reason) = (action.target(), &emit.reason);
        // What is wrong is a reason as well, which is told if it lasts.
        if self.causes.say(key, &emit.message) {
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
            Voice::Audit(..) | Voice::Lines => info!(objects, "the cluster is known"),
        }
        self.metrics.ready();
    }

    fn worked(&mut self, key: &Key, actions: &[Action], refusals: &[Status]) {
        for action in actions.iter().filter(|a| a.writes()) {
            let line = format!("{} {}", action.verb().as_str(), action.target());
            match &mut self.voice {
                Voice::Audit(printer, Some(format)) => drop(AuditEvent::action(key, action).print(*format, printer)),
                Voice::Audit(printer, None) => {
                    // A reader that left ends the audit by the broken pipe of a later flush.
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
        // What is refused again and again is a reason. When another client was quicker, planning again is all there is to it.
        for refusal in refusals {
            debug!(%key, code = refusal.code, reason = refusal.reason, "refused: {}", refusal.message);
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

    fn recovered(&mut self, gvk: &Gvk) {
        self.troubled.remove(gvk);
        if self.troubled.is_empty() && std::mem::take(&mut self.alone) {
            match &mut self.voice {
                Voice::Timeline(timeline) => timeline.sentence("the API server answers again".to_owned()),
                Voice::Audit(..) | Voice::Lines => info!("the API server answers again"),
            }
        }
    }

    fn unreadable(&mut self, object: &Unreadable) {
        warn!(object = object.name(), "cannot be read, and is left alone: {}", object.why);
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
                // The report says it.
                _ if self.reports && severity != Severity::Waiting => {}
                Voice::Timeline(timeline) => timeline.say(&reason),
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
                timeline.rest();
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
        self.ends =
            (self.reports && !matches!(self.voice, Voice::Audit(..))).then(|| ends::table(world, MANY, &changed));
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
        Action::Patch { target, .. } if target.gvk.kind == "Secret" => String::new(),
        Action::Patch { patch, .. } => format!(": {patch}"),
        Action::As(account, action) => format!("{} as {}", detail(action), account.user()),
        _ => String::new(),
    }
}
