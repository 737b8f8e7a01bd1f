//! OLM's metrics about the objects of a cluster (olm-behaviour/processes.md#metrics): the time series and their labels. They are derived
//! from the World at each scrape, so a series disappears with its object.

use serde_json::Value;

use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::object;
use crate::api::subscription::Subscription;
use crate::membership;
use crate::world::{ConnectionState, Reader, kind};

/// The version label of a ClusterServiceVersion without a version.
const NO_VERSION: &str = "0.0.0";

/// The objects of a cluster that are exported as metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// For `csv_succeeded` and `csv_abnormal`, and their number for `csv_count`. Copies are excluded.
    pub csvs: Vec<CsvState>,
    /// `install_plan_count`
    pub install_plans: usize,
    /// For `subscription_count` and the labels of `subscription_sync_total`.
    pub subscriptions: Vec<SubscriptionState>,
    /// For `catalogsource_ready`, and their number for `catalog_source_count`.
    pub catalog_sources: Vec<CatalogState>,
}

/// The state of a ClusterServiceVersion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvState {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `spec.version`; `0.0.0` if there is none.
    pub version: String,
    /// `status.phase`
    pub phase: String,
    /// `status.reason`
    pub reason: String,
}

impl CsvState {
    /// Reports whether the phase is `Succeeded`. Every other phase is abnormal, including those of an upgrade.
    pub fn is_succeeded(&self) -> bool {
        self.phase == Phase::Succeeded.as_str()
    }
}

/// The labels of a Subscription, with its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubscriptionState {
    /// Its namespace, which is not a label.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `status.installedCSV`
    pub installed: String,
    /// `spec.channel`
    pub channel: String,
    /// `spec.name`
    pub package: String,
    /// `spec.installPlanApproval`
    pub approval: String,
}

impl SubscriptionState {
    /// Returns the current labels of a Subscription.
    pub fn from_object(subscription: &Value) -> Self {
        let subscription = Subscription::new(subscription);
        Self {
            namespace: subscription.namespace().to_owned(),
            name: subscription.name().to_owned(),
            installed: subscription.installed_csv().to_owned(),
            channel: subscription.channel().to_owned(),
            package: subscription.package().to_owned(),
            approval: subscription.approval_text().to_owned(),
        }
    }
}

/// The state of a CatalogSource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogState {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether it can be read.
    pub ready: bool,
}

/// Returns the objects of a World that are exported as metrics.
pub fn objects(world: &Reader<'_>) -> Objects {
    // Iterates over names, so that copies, of which there may be tens of thousands, are not read.
    let names = world.names(&kind::CLUSTER_SERVICE_VERSION);
    let csvs = names.filter_map(|(namespace, name)| world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name));
    let csvs = csvs.filter(|csv| !membership::is_copy(csv));
    let catalog = |source: &Value| {
        let (namespace, name) = (object::namespace(source), object::name(source));
        let ready = world.catalog(namespace, name).is_some_and(|fact| fact.state == ConnectionState::Ready);
        CatalogState { namespace: namespace.to_owned(), name: name.to_owned(), ready }
    };
    Objects {
        csvs: csvs.map(csv).collect(),
        install_plans: world.all(&kind::INSTALL_PLAN).count(),
        subscriptions: world.all(&kind::SUBSCRIPTION).map(|o| SubscriptionState::from_object(o.json())).collect(),
        catalog_sources: world.all(&kind::CATALOG_SOURCE).map(|o| catalog(o.json())).collect(),
    }
}

fn csv(csv: &Value) -> CsvState {
    let csv = Csv::new(csv);
    let version = Some(csv.version()).filter(|version| !version.is_empty());
    CsvState {
        namespace: csv.namespace().to_owned(),
        name: csv.name().to_owned(),
        version: version.unwrap_or(NO_VERSION).to_owned(),
        phase: csv.phase_text().to_owned(),
        reason: csv.reason().to_owned(),
    }
}

/// Reports whether a ClusterServiceVersion is being replaced.
pub fn is_replacing(csv: &Value) -> bool {
    Csv::new(csv).phase() == Phase::Replacing
}

/// Reports whether the replacement of a ClusterServiceVersion, whose previous state is `before`, starts. Each start counts as an upgrade.
pub fn is_upgrade(before: Option<&Value>, now: &Value) -> bool {
    is_replacing(now) && before.is_some_and(|before| !is_replacing(before))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::api::catalog_source::Target;
    use crate::world::{CatalogFact, Fact, FactKey, World};

    fn object(kind: &str, name: &str, rest: Value) -> Value {
        let mut object = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": kind,
            "metadata": { "name": name, "namespace": "garden", "uid": name },
        });
        json_patch::merge(&mut object, &rest);
        object
    }

    fn measured(objects: Vec<Value>, facts: &[(&str, ConnectionState)]) -> Objects {
        let mut world = World::new();
        for object in objects {
            world.apply(object);
        }
        for (name, state) in facts {
            let fact = CatalogFact::new(Target::Address("a:1".to_owned()), *state, Timestamp::UNIX_EPOCH);
            world.learn(FactKey::Catalog("garden".to_owned(), (*name).to_owned()), Some(Fact::Catalog(fact)));
        }
        super::objects(&Reader::new(&world))
    }

    #[test]
    fn operators_are_measured_but_not_their_copies() {
        let csv = |name: &str, rest: Value| object("ClusterServiceVersion", name, rest);
        let rose = csv(
            "rose.v1",
            json!({ "spec": { "version": "1.0.0" }, "status": { "phase": "Succeeded", "reason": "InstallSucceeded" } }),
        );
        let tulip = csv("tulip", json!({ "status": { "phase": "Failed", "reason": "UnsupportedOperatorGroup" } }));
        let copy = json!({ "metadata": { "labels": { "olm.copiedFrom": "field" } }, "status": { "phase": "Succeeded", "reason": "Copied" } });
        let all = measured(vec![rose.clone(), tulip, csv("copy", copy)], &[]);
        let state =
            |c: &CsvState| (c.name.clone(), c.version.clone(), c.phase.clone(), c.reason.clone(), c.is_succeeded());
        let told = |texts: [&str; 4], succeeded| {
            let [name, version, phase, reason] = texts.map(str::to_owned);
            (name, version, phase, reason, succeeded)
        };
        assert_eq!(
            all.csvs.iter().map(state).collect::<Vec<_>>(),
            [
                told(["rose.v1", "1.0.0", "Succeeded", "InstallSucceeded"], true),
                told(["tulip", "0.0.0", "Failed", "UnsupportedOperatorGroup"], false),
            ]
        );
        assert_eq!(measured(vec![rose], &[]).csvs.len(), 1, "the series of the other CSV are gone");
        assert_eq!(measured(vec![], &[]), Objects::default());
    }

    #[test]
    fn catalogs_plans_and_subscriptions_are_counted() {
        let catalog = |name| object("CatalogSource", name, json!({ "spec": { "sourceType": "grpc" } }));
        let subscription = json!({
            "spec": { "name": "rose", "channel": "stable", "installPlanApproval": "Manual" },
            "status": { "installedCSV": "rose.v1" },
        });
        let all = measured(
            vec![
                catalog("up"),
                catalog("down"),
                catalog("invalid"),
                object("Subscription", "rose", subscription),
                object("InstallPlan", "install-1", json!({})),
                object("InstallPlan", "install-2", json!({})),
            ],
            // A fact without a CatalogSource is ignored.
            &[
                ("up", ConnectionState::Ready),
                ("down", ConnectionState::TransientFailure),
                ("gone", ConnectionState::Ready),
            ],
        );
        let catalogs: Vec<(&str, bool)> = all.catalog_sources.iter().map(|c| (c.name.as_str(), c.ready)).collect();
        assert_eq!(catalogs, [("down", false), ("invalid", false), ("up", true)]);
        assert_eq!(all.install_plans, 2);
        let labels =
            |s: &SubscriptionState| [&s.name, &s.installed, &s.channel, &s.package, &s.approval].map(Clone::clone);
        let labels: Vec<_> = all.subscriptions.iter().map(labels).collect();
        assert_eq!(labels, [["rose", "rose.v1", "stable", "rose", "Manual"].map(str::to_owned)]);
    }

    #[test]
    fn an_upgrade_counts_when_it_begins() {
        let csv = |phase: &str| object("ClusterServiceVersion", "rose.v1", json!({ "status": { "phase": phase } }));
        assert!(is_upgrade(Some(&csv("Succeeded")), &csv("Replacing")));
        assert!(!is_upgrade(Some(&csv("Replacing")), &csv("Replacing")));
        assert!(!is_upgrade(Some(&csv("Replacing")), &csv("Deleting")));
        assert!(!is_upgrade(None, &csv("Replacing")), "it started before");
    }
}
