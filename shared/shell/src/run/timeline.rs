//! A timeline of a cluster as it changes, for a terminal.
//!
//! *Guarantee.* Writes of this process are attributed to it, even if the watch reports them before the response:
//! changes are printed only after the response had time to arrive.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::kinds::OLM_GROUP;
use olm_core::api::labels;
use olm_core::api::object::{self, ObjectRef};
use olm_core::plan::{Key, Reason, Severity};
use olm_core::sim::{Actor, Happening, WatchEvent};
use olm_core::world::World;
use tokio::time::Instant;

use super::change_log::ChangeLog;
use crate::cli::Printer;
use crate::cluster::object_filter::{is_component, is_of_olm};

/// How long the response to a request may arrive after the watch event.
const ECHO: Duration = Duration::from_millis(400);
/// How long to wait for similar changes.
const PAUSE: Duration = Duration::from_millis(800);

/// Prints changes on stdout.
pub(super) struct Timeline<'p> {
    printer: &'p mut Printer,
    change_log: ChangeLog,
    began: Timestamp,
    /// Whether times are relative to the start. A run without an end prints the time of day.
    is_short: bool,
    /// Changes that may still turn out to be writes of this process.
    fresh: Vec<(Instant, Happening)>,
    /// When something was last added to the change log.
    last: Instant,
    /// Whether something was reported since the controllers were last reported idle.
    is_busy: bool,
    /// The changed objects.
    pub(super) changed: BTreeSet<ObjectRef>,
}

impl<'p> Timeline<'p> {
    pub(super) fn new(printer: &'p mut Printer, is_short: bool) -> Self {
        let began = Timestamp::now();
        Self {
            printer,
            change_log: ChangeLog::of_cluster(began),
            began,
            is_short,
            fresh: Vec::new(),
            last: Instant::now(),
            is_busy: true,
            changed: BTreeSet::new(),
        }
    }

    /// Records the initial state of the cluster.
    pub(super) fn started(&mut self, world: &World) {
        world.objects().for_each(|object| self.change_log.add_existing(object.json()));
    }

    /// Records a change of an object, by the work on a key or by another client.
    pub(super) fn changed(&mut self, by: Option<&Key>, change: WatchEvent) {
        let actor = match by {
            Some(key) => {
                let actor = Actor::Controller(key.clone());
                if let Some((_, seen)) = self.fresh.iter_mut().find(|(_, seen)| is_echo(seen, &change)) {
                    seen.actor = actor;
                    return;
                }
                actor
            }
            None => match other(&change) {
                Some(actor) => actor,
                None => return,
            },
        };
        let happening = Happening { at: Timestamp::now(), actor, change };
        self.fresh.push((Instant::now(), happening));
    }

    /// Reports a reason.
    pub(super) fn report_reason(&mut self, reason: &Reason) {
        let word = match reason.severity() {
            Severity::Blocked => "blocked",
            Severity::Waiting => "waits",
            Severity::Settled => "note",
        };
        let hint = reason.hint().map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
        self.report_sentence(format!("{word}: {reason}{hint}"));
    }

    /// Returns whether to report that the controllers are idle. A run that ends by itself reports it by ending.
    pub(super) fn is_busy(&self) -> bool {
        self.is_busy && !self.is_short
    }

    /// Reports that the controllers are idle.
    pub(super) fn report_idle(&mut self) {
        self.report_sentence("nothing is left to do, waiting for changes".to_owned());
        self.is_busy = false;
    }

    /// Reports a sentence.
    pub(super) fn report_sentence(&mut self, sentence: String) {
        self.settle(None);
        self.change_log.add_sentence(Timestamp::now(), sentence);
        self.last = Instant::now();
        self.is_busy = true;
    }

    /// Returns when there is something to print.
    pub(super) fn due(&self) -> Option<Instant> {
        let fresh = self.fresh.first().map(|(at, _)| *at + ECHO);
        let unprinted = self.change_log.has_entries().then(|| self.last + PAUSE);
        fresh.into_iter().chain(unprinted).min()
    }

    /// Prints what is due.
    pub(super) fn tick(&mut self, now: Instant) {
        self.settle(Some(now));
        let all = now >= self.last + PAUSE;
        self.print(all);
    }

    /// Prints what is left.
    pub(super) fn end(&mut self) -> &mut Printer {
        self.settle(None);
        self.print(true);
        self.printer
    }

    /// Moves changes into the change log: those whose response is overdue, or all.
    fn settle(&mut self, now: Option<Instant>) {
        let is_settled = |(at, _): &&(Instant, Happening)| now.is_none_or(|now| *at + ECHO <= now);
        let settled = self.fresh.iter().take_while(is_settled).count();
        let happenings: Vec<Happening> = self.fresh.drain(..settled).map(|(_, happening)| happening).collect();
        if happenings.is_empty() {
            return;
        }
        self.changed.extend(happenings.iter().map(|happening| ObjectRef::from_object(happening.change.object())));
        self.change_log.record(happenings);
        self.is_busy = true;
        self.last = now.unwrap_or_else(Instant::now);
    }

    fn print(&mut self, all: bool) {
        let (began, is_short) = (self.began, self.is_short);
        let text = self.change_log.take(all, |at| if is_short { since(began, at) } else { time_of_day(at) });
        if !text.is_empty() {
            // A closed pipe ends the run at a later flush.
            self.printer.data(text).ok();
            self.printer.flush().ok();
        }
    }
}

/// Returns whether a response is about a write that the watch has already reported.
fn is_echo(seen: &Happening, answer: &WatchEvent) -> bool {
    let (seen_object, object) = (seen.change.object(), answer.object());
    !matches!(seen.actor, Actor::Controller(_))
        && ObjectRef::from_object(seen_object) == ObjectRef::from_object(object)
        && match (&seen.change, answer) {
            (WatchEvent::Deleted(_), WatchEvent::Deleted(_)) => true,
            // The update removed the last finalizer, so the API server deleted the object.
            (WatchEvent::Deleted(_), WatchEvent::Modified(released)) => object::is_released(released),
            (WatchEvent::Deleted(_), _) | (_, WatchEvent::Deleted(_)) => false,
            _ => object::resource_version(seen_object) == object::resource_version(object),
        }
}

/// Returns who else changed an object, if it is relevant: any client writes Roles and Secrets.
fn other(change: &WatchEvent) -> Option<Actor> {
    let object = change.object();
    // They are deleted with their ClusterServiceVersion.
    let is_collected = matches!(change, WatchEvent::Deleted(_)) && object::gvk(object).kind == "OperatorCondition";
    if is_collected {
        return Some(Actor::Kubernetes);
    }
    if object::gvk(object).group == OLM_GROUP {
        // Only controllers create copies.
        return object::label(object, labels::COPIED_FROM).is_none().then_some(Actor::User);
    }
    (is_of_olm(object) || is_component(object)).then_some(Actor::Kubernetes)
}

/// Formats a time as `2.140s`, as in simulations.
fn since(began: Timestamp, at: Timestamp) -> String {
    let time = at.duration_since(began);
    format!("{}.{:03}s", time.as_secs(), time.subsec_millis().max(0))
}

/// Formats a time as `14:02:11Z`.
fn time_of_day(at: Timestamp) -> String {
    at.strftime("%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use olm_core::plan::Controller;
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::cli::streams::Buffer;

    fn subscription(version: &str, state: &str) -> Arc<Value> {
        Arc::new(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": { "name": "rose", "namespace": "garden", "resourceVersion": version },
            "status": { "state": state, "currentCSV": "rose.v1" },
        }))
    }

    /// Returns the output without times.
    fn printed(report: impl FnOnce(&mut Timeline<'_>)) -> Vec<String> {
        let out = Buffer::default();
        let mut printer = Printer::to(out.clone(), Buffer::default());
        let mut timeline = Timeline::new(&mut printer, true);
        report(&mut timeline);
        timeline.end();
        let after_time = |line: &str| line.split_once("s  ").map_or_else(|| line.trim(), |(_, rest)| rest).to_owned();
        out.text().lines().map(after_time).collect()
    }

    #[test]
    fn writes_of_this_process_are_attributed_to_it() {
        let key = Key::new(Controller::Resolution, "", "garden");
        let lines = printed(|timeline| {
            timeline.changed(None, WatchEvent::Added(subscription("1", "")));
            timeline.changed(None, WatchEvent::Modified(subscription("2", "UpgradePending")));
            timeline.changed(Some(&key), WatchEvent::Modified(subscription("2", "UpgradePending")));
        });
        assert_eq!(
            lines,
            [
                "other clients",
                "created Subscription garden/rose",
                "Resolution (namespace garden)",
                "Subscription garden/rose: UpgradePending rose.v1",
            ]
        );
    }

    #[test]
    fn removing_the_last_finalizer_deletes_the_object() {
        let csv = |finalizers: &[&str]| {
            Arc::new(json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
                "metadata": {
                    "name": "rose", "namespace": "garden", "resourceVersion": "7", "finalizers": finalizers,
                    "deletionTimestamp": "2026-01-01T00:00:00Z",
                },
            }))
        };
        let key = Key::new(Controller::ClusterServiceVersion, "garden", "rose");
        let lines = printed(|timeline| {
            timeline.changed(None, WatchEvent::Deleted(csv(&["last"])));
            timeline.changed(Some(&key), WatchEvent::Modified(csv(&[])));
        });
        assert_eq!(lines, ["ClusterServiceVersion garden/rose", "deleted ClusterServiceVersion garden/rose"]);
    }

    #[test]
    fn irrelevant_changes_are_not_reported() {
        let role = |labels: Value| {
            let metadata = json!({ "name": "reader", "namespace": "garden", "labels": labels });
            Arc::new(json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata }))
        };
        let lines = printed(|timeline| {
            timeline.changed(None, WatchEvent::Added(role(json!({}))));
            timeline.changed(None, WatchEvent::Deleted(role(json!({ "olm.managed": "true" }))));
            timeline.report_sentence("blocked: it is".to_owned());
        });
        assert_eq!(lines, ["Kubernetes", "deleted Role garden/reader", "blocked: it is"]);
    }

    #[test]
    fn a_scene_is_printed_when_the_next_begins_or_after_a_pause() {
        let out = Buffer::default();
        let mut printer = Printer::to(out.clone(), Buffer::default());
        let mut timeline = Timeline::new(&mut printer, true);
        assert_eq!(timeline.due(), None);
        timeline.changed(None, WatchEvent::Added(subscription("1", "")));
        let due = timeline.due().unwrap();
        timeline.tick(due);
        assert_eq!(out.text(), "", "more of the same may come");
        let due = timeline.due().unwrap();
        timeline.tick(due);
        assert!(out.text().contains("created Subscription"), "{}", out.text());
        assert_eq!(timeline.due(), None);
    }
}
