//! Determines what may still change when nothing is left to plan, which decides when `--once` exits.

use std::collections::BTreeSet;

use super::Planner;
use crate::api::cluster_service_version::{Csv, Phase};
use crate::plan::{Controller, Key, Reason, Severity, Wait};
use crate::world::{Reader, kind};

/// What may still change without any action of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outlook {
    /// Nothing: blocked keys stay blocked.
    Still,
    /// A catalog cannot be read, and may or may not become readable.
    Catalog,
    /// An operation is in progress, and ends within bounded time.
    Progress,
}

impl Planner {
    /// Returns what may still change, over all keys.
    pub fn outlook(&self) -> Outlook {
        let outlooks = self.reasons.keys().map(|key| self.outlook_of(key, &mut BTreeSet::new()));
        outlooks.max().unwrap_or(Outlook::Still)
    }

    /// Returns the reasons that are not settled, by key.
    pub fn open(&self) -> Vec<(Key, Vec<Reason>)> {
        let is_open = |reason: &&Reason| reason.severity() > Severity::Settled;
        let open = self.reasons.iter().map(|(key, all)| (key, all.iter().filter(is_open).cloned().collect::<Vec<_>>()));
        open.filter(|(_, reasons)| !reasons.is_empty()).map(|(key, reasons)| (key.clone(), reasons)).collect()
    }

    /// Returns what may still change for one key. A key that waits for another makes progress when that one does. `seen` are the keys that
    /// wait for this one, to detect cycles.
    fn outlook_of(&self, key: &Key, seen: &mut BTreeSet<Key>) -> Outlook {
        if !seen.insert(key.clone()) {
            return Outlook::Still;
        }
        let outlook = |reason: &Reason| match reason.waits_for() {
            Wait::Nothing | Wait::Change => Outlook::Still,
            // It has timed out before, and is only retried.
            Wait::Progress if self.overdue.contains(key) => Outlook::Still,
            Wait::Progress => Outlook::Progress,
            Wait::Catalog => Outlook::Catalog,
            Wait::Csv { namespace, name } => {
                self.outlook_of(&Key::new(Controller::ClusterServiceVersion, namespace, name), seen)
            }
        };
        self.reasons.get(key).into_iter().flatten().map(outlook).max().unwrap_or(Outlook::Still)
    }

    /// Notes that the installation of a ClusterServiceVersion has timed out. OLM then retries it without end.
    pub(super) fn note_overdue(&mut self, key: &Key, reasons: &[Reason]) {
        if reasons.iter().any(|r| matches!(r, Reason::CsvFailed { why, .. } if why == "InstallCheckFailed")) {
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
            why: "InstallCheckFailed".to_owned(),
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

    fn outlook(lists: &[&[(&str, Reason)]]) -> Outlook {
        outlook_after(lists, |_| false, &[])
    }

    fn outlook_after(
        before: &[&[(&str, Reason)]],
        between: impl Fn(&mut Planner) -> bool,
        after: &[&[(&str, Reason)]],
    ) -> Outlook {
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
        planner.outlook()
    }

    #[test]
    fn operations_in_progress_are_awaited_and_blocked_ones_are_not() {
        assert_eq!(outlook(&[&[]]), Outlook::Still);
        assert_eq!(outlook(&[&[("rose.v1", misses("rose.v1"))]]), Outlook::Still);
        let both = [("rose.v1", unhealthy("rose.v1")), ("rose.v2", misses("rose.v2"))];
        assert_eq!(outlook(&[&both]), Outlook::Progress);
    }

    #[test]
    fn a_key_that_waits_for_a_blocked_one_is_blocked() {
        let upgrade = |new: Reason| [("rose.v1", waits("rose.v1", "rose.v2")), ("rose.v2", new)];
        assert_eq!(outlook(&[&upgrade(misses("rose.v2"))]), Outlook::Still);
        assert_eq!(outlook(&[&upgrade(unhealthy("rose.v2"))]), Outlook::Progress);
        assert_eq!(outlook(&[&upgrade(waits("rose.v2", "rose.v1"))]), Outlook::Still, "a cycle");
        assert_eq!(outlook(&[&[("rose.v2", waits("rose.v2", "rose.v1"))]]), Outlook::Still, "it blocks the upgrade");
    }

    #[test]
    fn an_unavailable_catalog_is_awaited_unless_its_content_is_known() {
        assert_eq!(outlook(&[&[("market", away(false))]]), Outlook::Catalog);
        assert_eq!(outlook(&[&[("market", away(true))]]), Outlook::Still);
        let both = [("market", away(false)), ("rose.v1", unhealthy("rose.v1"))];
        assert_eq!(outlook(&[&both]), Outlook::Progress);
    }

    #[test]
    fn an_installation_that_timed_out_is_not_awaited_again_until_it_succeeds() {
        let (installing, timeout) = ([("rose.v1", unhealthy("rose.v1"))], [("rose.v1", failed("rose.v1"))]);
        assert_eq!(outlook(&[&installing, &timeout, &installing]), Outlook::Still);
        assert_eq!(outlook(&[&installing, &timeout, &[], &installing]), Outlook::Still, "between two attempts");
        let succeeded = |planner: &mut Planner| planner.observe(Event::Applied(csv("rose.v1", "2", "Succeeded")));
        assert_eq!(outlook_after(&[&installing, &timeout], succeeded, &[&[], &installing]), Outlook::Progress);
    }
}
