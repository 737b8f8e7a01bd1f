//! Determines what may still change when nothing is left to plan, which decides when `--once` exits.

use std::collections::BTreeSet;

use super::Planner;
use crate::api::cluster_service_version::{Csv, Phase, reason};
use crate::plan::{Controller, Key, Reason, Severity, Wait};
use crate::world::{Reader, kind};

/// What may still change without any action of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pending {
    /// Nothing changes: blocked keys remain blocked.
    Nothing,
    /// A catalog cannot be read, and may or may not become readable.
    Catalog,
    /// An operation is in progress, and ends within bounded time.
    Progress,
}

impl Planner {
    /// Returns what may still change, over all keys.
    pub fn pending(&self) -> Pending {
        let all = self.reasons.keys().map(|key| self.pending_for(key, &mut BTreeSet::new()));
        all.max().unwrap_or(Pending::Nothing)
    }

    /// Returns the reasons that are not settled, by key.
    pub fn open(&self) -> Vec<(Key, Vec<Reason>)> {
        let is_open = |reason: &&Reason| reason.severity() > Severity::Settled;
        let open = self.reasons.iter().map(|(key, all)| (key, all.iter().filter(is_open).cloned().collect::<Vec<_>>()));
        open.filter(|(_, reasons)| !reasons.is_empty()).map(|(key, reasons)| (key.clone(), reasons)).collect()
    }

    /// Returns what may still change for one key. A key that waits for another makes progress when that one does. `seen` are the keys that
    /// wait for this one, to detect cycles.
    fn pending_for(&self, key: &Key, seen: &mut BTreeSet<Key>) -> Pending {
        if !seen.insert(key.clone()) {
            return Pending::Nothing;
        }
        let pending = |reason: &Reason| match reason.waits_for() {
            Wait::Nothing | Wait::Change => Pending::Nothing,
            // It has timed out before, and is only retried.
            Wait::Progress if self.overdue.contains(key) => Pending::Nothing,
            Wait::Progress => Pending::Progress,
            Wait::Catalog => Pending::Catalog,
            Wait::Csv { namespace, name } => {
                self.pending_for(&Key::new(Controller::ClusterServiceVersion, namespace, name), seen)
            }
        };
        self.reasons.get(key).into_iter().flatten().map(pending).max().unwrap_or(Pending::Nothing)
    }

    /// Notes that the installation of a ClusterServiceVersion has timed out. OLM then retries it without end.
    pub(super) fn note_overdue(&mut self, key: &Key, reasons: &[Reason]) {
        if reasons.iter().any(
            |r| matches!(r, Reason::CsvFailed { failure_reason, .. } if failure_reason == reason::INSTALL_CHECK_FAILED),
        ) {
            self.overdue.insert(key.clone());
        } else if self.overdue.contains(key) {
            // Between two attempts it has no reasons for a moment.
            let csv = Reader::new(&self.world).json(&kind::CLUSTER_SERVICE_VERSION, &key.namespace, &key.name);
            if csv.is_none_or(|csv| Csv::new(csv).phase() == Phase::Succeeded) {
                self.overdue.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use jiff::Timestamp;

    use super::*;
    use crate::plan::Plan;
    use crate::planner::Event;
    use crate::world::{Fact, FactKey};

    fn waits(name: &str, other: &str) -> Reason {
        Reason::WaitsForCsv {
            namespace: "garden".to_owned(),
            name: name.to_owned(),
            other: other.to_owned(),
            message: "it is Installing".to_owned(),
        }
    }

    fn unhealthy(name: &str) -> Reason {
        let (namespace, message) = ("garden".to_owned(), "waiting for deployment".to_owned());
        Reason::NotHealthy { namespace, name: name.to_owned(), message }
    }

    fn failed(name: &str) -> Reason {
        Reason::CsvFailed {
            namespace: "garden".to_owned(),
            name: name.to_owned(),
            failure_reason: "InstallCheckFailed".to_owned(),
            message: "install timeout".to_owned(),
        }
    }

    fn misses(name: &str) -> Reason {
        let missing = vec!["CustomResourceDefinition pots: it does not exist".to_owned()];
        Reason::RequirementsNotMet { namespace: "garden".to_owned(), name: name.to_owned(), missing }
    }

    fn away(stale: bool) -> Reason {
        let (namespace, name) = ("olm".to_owned(), "market".to_owned());
        Reason::CatalogUnavailable { namespace, name, error: "connection refused".to_owned(), stale }
    }

    /// Returns a ClusterServiceVersion in that phase.
    fn csv(name: &str, version: &str, phase: &str) -> serde_json::Value {
        serde_json::json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": name, "namespace": "garden", "uid": name, "resourceVersion": version },
            "status": { "phase": phase },
        })
    }

    fn pending(lists: &[&[(&str, Reason)]]) -> Pending {
        pending_after(lists, |_| false, &[])
    }

    fn pending_after(
        before: &[&[(&str, Reason)]],
        between: impl Fn(&mut Planner) -> bool,
        after: &[&[(&str, Reason)]],
    ) -> Pending {
        let reasons: Arc<Mutex<Vec<(String, Reason)>>> = Arc::default();
        let planned = reasons.clone();
        let mut planner = Planner::with(Arc::new(move |reader, key: &Key, _| {
            // Every key reads this fact, so that it is planned again with each list.
            reader.fact(FactKey::ServerVersion);
            let planned = planned.lock().unwrap();
            let reason = planned.iter().find(|(name, _)| *name == key.name).map(|(_, reason)| reason.clone());
            reason
                .filter(|_| key.controller == Controller::ClusterServiceVersion)
                .map_or_else(Plan::nothing, Plan::wait)
        }));
        for name in ["rose.v1", "rose.v2", "market"] {
            planner.observe(Event::Applied(csv(name, "1", "Installing")));
        }
        for (turn, list) in before.iter().chain(after).enumerate() {
            if turn == before.len() {
                between(&mut planner);
            }
            *reasons.lock().unwrap() = list.iter().map(|(name, r)| ((*name).to_owned(), r.clone())).collect();
            planner.observe(Event::Learned(FactKey::ServerVersion, Some(Fact::ServerVersion(turn.to_string()))));
            assert_eq!(planner.next(Timestamp::UNIX_EPOCH), None);
        }
        planner.pending()
    }

    #[test]
    fn operations_in_progress_are_awaited_and_blocked_ones_are_not() {
        assert_eq!(pending(&[&[]]), Pending::Nothing);
        assert_eq!(pending(&[&[("rose.v1", misses("rose.v1"))]]), Pending::Nothing);
        let both = [("rose.v1", unhealthy("rose.v1")), ("rose.v2", misses("rose.v2"))];
        assert_eq!(pending(&[&both]), Pending::Progress);
    }

    #[test]
    fn a_key_that_waits_for_a_blocked_one_is_blocked() {
        let upgrade = |new: Reason| [("rose.v1", waits("rose.v1", "rose.v2")), ("rose.v2", new)];
        assert_eq!(pending(&[&upgrade(misses("rose.v2"))]), Pending::Nothing);
        assert_eq!(pending(&[&upgrade(unhealthy("rose.v2"))]), Pending::Progress);
        assert_eq!(pending(&[&upgrade(waits("rose.v2", "rose.v1"))]), Pending::Nothing, "a cycle");
        assert_eq!(pending(&[&[("rose.v2", waits("rose.v2", "rose.v1"))]]), Pending::Nothing, "it blocks the upgrade");
    }

    #[test]
    fn an_unavailable_catalog_is_awaited_unless_its_content_is_known() {
        assert_eq!(pending(&[&[("market", away(false))]]), Pending::Catalog);
        assert_eq!(pending(&[&[("market", away(true))]]), Pending::Nothing);
        let both = [("market", away(false)), ("rose.v1", unhealthy("rose.v1"))];
        assert_eq!(pending(&[&both]), Pending::Progress);
    }

    #[test]
    fn an_installation_that_timed_out_is_not_awaited_again_until_it_succeeds() {
        let (installing, timeout) = ([("rose.v1", unhealthy("rose.v1"))], [("rose.v1", failed("rose.v1"))]);
        assert_eq!(pending(&[&installing, &timeout, &installing]), Pending::Nothing);
        assert_eq!(pending(&[&installing, &timeout, &[], &installing]), Pending::Nothing, "between two attempts");
        let succeeded = |planner: &mut Planner| planner.observe(Event::Applied(csv("rose.v1", "2", "Succeeded")));
        assert_eq!(pending_after(&[&installing, &timeout], succeeded, &[&[], &installing]), Pending::Progress);
    }
}
