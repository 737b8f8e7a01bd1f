//! Lasting reasons, each reported once.
//!
//! Most reasons are temporary: while an operator is installed, its requirements are not met yet, or its Deployment is
//! not available yet. Only lasting reasons are reported. A reason of several keys, or of repeated attempts, is one
//! cause.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use olm_core::plan::{Key, Reason, Severity};
use tokio::time::Instant;

use super::report::is_consequence;

/// Returns how long a reason must last before it is reported.
fn grace_period(severity: Severity) -> Duration {
    match severity {
        Severity::Settled => Duration::ZERO,
        Severity::Blocked => Duration::from_secs(3),
        Severity::Waiting => Duration::from_secs(10),
    }
}

/// The current reasons.
#[derive(Debug, Default)]
pub(super) struct Causes {
    /// The reasons of each key, with the time of the first occurrence of each cause.
    standing: BTreeMap<Key, Vec<(Reason, Instant)>>,
    /// Causes that were reported.
    reported: BTreeSet<String>,
}

impl Causes {
    /// Replaces the reasons of a key.
    pub(super) fn set(&mut self, key: &Key, reasons: &[Reason], now: Instant) {
        let before = self.standing.remove(key).unwrap_or_default();
        let since = |cause: &str| before.iter().find(|(reason, _)| reason.cause() == cause).map(|(_, since)| *since);
        let reasons: Vec<_> = reasons.iter().map(|r| (r.clone(), since(&r.cause()).unwrap_or(now))).collect();
        if !reasons.is_empty() {
            self.standing.insert(key.clone(), reasons);
        }
        for (reason, _) in before {
            let cause = reason.cause();
            if self.reported.contains(&cause) && !self.all().any(|(other, _)| other.cause() == cause) {
                self.reported.remove(&cause);
            }
        }
    }

    /// Returns when there is something to report, if nothing changes.
    pub(super) fn due(&self) -> Option<Instant> {
        self.unreported().map(|(reason, since)| *since + grace_period(reason.severity())).min()
    }

    /// Takes the reasons to report now.
    pub(super) fn take(&mut self, now: Instant) -> Vec<Reason> {
        let is_due = |(reason, since): &&(Reason, Instant)| *since + grace_period(reason.severity()) <= now;
        let due: Vec<Reason> = self.unreported().filter(is_due).map(|(reason, _)| reason.clone()).collect();
        let new = due.into_iter().filter(|reason| self.reported.insert(reason.cause())).collect::<Vec<_>>();
        let all: Vec<&Reason> = self.all().map(|(reason, _)| reason).collect();
        new.iter().filter(|reason| !is_consequence(reason, &all)).cloned().collect()
    }

    /// Returns whether a reason of the key contains the message.
    pub(super) fn contain(&self, key: &Key, message: &str) -> bool {
        self.reasons_of(key).any(|reason| reason.cause().contains(message))
    }

    /// Returns whether the key is waiting or blocked.
    pub(super) fn are_open(&self, key: &Key) -> bool {
        self.reasons_of(key).any(|reason| reason.severity() > Severity::Settled)
    }

    /// Returns whether any key is waiting.
    pub(super) fn is_something_under_way(&self) -> bool {
        self.all().any(|(reason, _)| reason.severity() == Severity::Waiting)
    }

    fn reasons_of(&self, key: &Key) -> impl Iterator<Item = &Reason> {
        self.standing.get(key).into_iter().flatten().map(|(reason, _)| reason)
    }

    fn all(&self) -> impl Iterator<Item = &(Reason, Instant)> {
        self.standing.values().flatten()
    }

    fn unreported(&self) -> impl Iterator<Item = &(Reason, Instant)> {
        self.all().filter(|(reason, _)| !self.reported.contains(&reason.cause()))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use olm_core::api::object::ObjectRef;
    use olm_core::plan::Controller;

    use super::*;

    fn key(name: &str) -> Key {
        Key::new(Controller::ClusterServiceVersion, "garden", name)
    }

    fn refused(attempts: u32) -> Reason {
        Reason::refused("create", &ObjectRef::default(), "no", attempts, Timestamp::UNIX_EPOCH)
    }

    #[tokio::test]
    async fn only_lasting_reasons_are_reported_and_only_once() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut causes = Causes::default();
        causes.set(&key("rose"), &[refused(3)], at(0));
        assert_eq!(causes.due(), Some(at(3)));
        assert_eq!(causes.take(at(2)), []);
        causes.set(&key("rose"), &[], at(2));
        assert_eq!((causes.due(), causes.take(at(60))), (None, vec![]), "it has passed");

        causes.set(&key("rose"), &[refused(3)], at(60));
        causes.set(&key("tulip"), &[refused(9)], at(61));
        causes.set(&key("rose"), &[refused(4)], at(62));
        assert_eq!(causes.take(at(63)), [refused(4)], "the same cause, tried again");
        assert_eq!((causes.due(), causes.take(at(90))), (None, vec![]), "another key has it, too");
        causes.set(&key("rose"), &[], at(91));
        causes.set(&key("tulip"), &[], at(91));
        causes.set(&key("tulip"), &[refused(1)], at(92));
        assert_eq!(causes.due(), Some(at(102)), "it is back, and may pass");
        assert!(causes.contain(&key("tulip"), "refused to create") && causes.are_open(&key("tulip")));
        assert!(!causes.are_open(&key("rose")));
    }
}
