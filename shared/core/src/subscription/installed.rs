//! The ClusterServiceVersions of a namespace, as input of the resolver (olm-behaviour/subscription.md#installed-csvs).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::status::Draft;
use crate::api::cluster_service_version::{Csv, Phase, reason};
use crate::api::install_plan::{self, InstallPlan};
use crate::api::object;
use crate::membership;
use crate::resolver::{Broken, Installed};
use crate::world::Reader;

/// The ClusterServiceVersions of a namespace that are not copies, by name.
pub(super) struct Namespace<'w> {
    csvs: BTreeMap<&'w str, &'w Value>,
}

impl<'w> Namespace<'w> {
    pub(super) fn read(world: &Reader<'w>, namespace: &str) -> Self {
        Self { csvs: membership::originals(world, namespace).map(|csv| (object::name(csv), csv)).collect() }
    }

    /// Returns the existing CSVs that the CSV of that name replaces, directly or indirectly.
    fn predecessors(&self, name: &str) -> BTreeSet<&'w str> {
        let mut found = BTreeSet::new();
        let mut next = self.csvs.get(name).map(|c| Csv::new(c).replaces());
        while let Some((older, csv)) = next.and_then(|n| self.csvs.get_key_value(n))
            && *older != name
            && found.insert(*older)
        {
            next = Some(Csv::new(csv).replaces());
        }
        found
    }

    /// Returns the CSVs that are about to be deleted because the CSV of that name replaces them. There are none while one
    /// of them or the InstallPlan has failed, unless the namespace fails forward.
    pub(super) fn leaving(&self, name: &str, plan: Option<&Value>, fail_forward: bool) -> BTreeSet<&'w str> {
        let predecessors = self.predecessors(name);
        let failed = |name: &str| self.csvs.get(name).is_some_and(|c| Csv::new(c).phase() == Phase::Failed);
        let stuck = plan.is_some_and(|p| InstallPlan::new(p).phase() == install_plan::Phase::Failed)
            || failed(name)
            || predecessors.iter().any(|p| failed(p));
        if stuck && !fail_forward { BTreeSet::new() } else { predecessors }
    }

    /// Returns the CSVs that a failed upgrade left behind: those being replaced whose last successor has failed.
    /// Fail-forward continues without them.
    pub(super) fn left_behind(&self) -> BTreeSet<&'w str> {
        let ends = self.csvs.iter().filter(|(name, csv)| {
            let is_replaced = |c: &Value| Csv::new(c).replaces() == **name;
            Csv::new(csv).phase() == Phase::Failed && !self.csvs.values().any(|c| is_replaced(c))
        });
        let predecessors = ends.flat_map(|(name, _)| self.predecessors(name));
        predecessors
            .filter(|name| self.csvs.get(name).is_some_and(|c| Csv::new(c).phase() == Phase::Replacing))
            .collect()
    }

    /// Returns whether the CSV of that name is still being installed, or what it replaces still exists.
    ///
    /// OLM starts the next upgrade as soon as a CSV exists, stops halfway with an unsatisfiable resolution, and continues at
    /// its next resync. Here the next upgrade waits.
    pub(super) fn is_busy(&self, name: &str, plan: Option<&Value>, fail_forward: bool) -> bool {
        let Some(csv) = self.csvs.get(name) else { return false };
        let csv = Csv::new(csv);
        let starting = match csv.phase() {
            Phase::None | Phase::InstallReady | Phase::Installing | Phase::Replacing | Phase::Deleting => true,
            Phase::Pending => matches!(csv.reason(), "" | reason::REQUIREMENTS_UNKNOWN),
            Phase::Succeeded | Phase::Failed | Phase::Unknown | Phase::Other => false,
        };
        let installing = plan.is_some_and(|p| {
            matches!(InstallPlan::new(p).phase(), install_plan::Phase::None | install_plan::Phase::Installing)
        });
        let failed = csv.phase() == Phase::Failed;
        starting || installing || !failed && !self.leaving(name, plan, fail_forward).is_empty()
    }

    /// Returns whether the last upgrade of each Subscription is in progress, and the CSVs that are about to be deleted.
    pub(super) fn under_way(
        &self,
        subscriptions: &[Draft<'_>],
        plans: &[&Value],
        fail_forward: bool,
    ) -> (Vec<bool>, BTreeSet<&'w str>) {
        let mut leaving = if fail_forward { self.left_behind() } else { BTreeSet::new() };
        let mut busy = Vec::new();
        for subscription in subscriptions {
            let plan = plans.iter().copied().find(|p| object::name(p) == subscription.planned().plan_name());
            let installed = subscription.planned().installed_csv();
            let is_busy = self.is_busy(installed, plan, fail_forward);
            if is_busy {
                leaving.extend(self.leaving(installed, plan, fail_forward));
            }
            busy.push(is_busy);
        }
        (busy, leaving)
    }

    /// Returns whether a CSV of that name exists.
    pub(super) fn has(&self, name: &str) -> bool {
        self.csvs.contains_key(name)
    }

    /// Returns the CSVs as input of the resolver, without those that are about to be deleted. A CSV that cannot be read, or
    /// a number of OperatorGroups other than one, prevents every resolution, as an unusable catalog does.
    pub(super) fn installed<'n>(
        &self,
        namespace: &'n str,
        groups: usize,
        subscriptions: &[Draft<'_>],
        leaving: &BTreeSet<&str>,
    ) -> Result<Vec<Installed>, Broken<'n>> {
        if groups != 1 {
            return Err(Broken::existing(namespace, format!("found {groups} operatorGroups, expected 1")));
        }
        let mut installed = Vec::new();
        for (name, csv) in &self.csvs {
            let linked = || subscriptions.iter().filter(|s| s.planned().installed_csv() == *name);
            let subscribed = linked().next().is_some();
            if leaving.contains(name) && !subscribed {
                continue;
            }
            let packages: BTreeSet<&str> = linked().map(|s| s.view.package()).collect();
            let package = match packages.len() {
                1 => packages.first().copied(),
                _ => None,
            };
            let read = Installed::from_csv(csv, package, subscribed);
            installed.push(read.map_err(|why| Broken::existing(namespace, why))?);
        }
        Ok(installed)
    }
}
