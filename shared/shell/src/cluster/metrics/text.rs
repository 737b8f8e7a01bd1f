//! Encodes the metrics as text.
//!
//! OLM's metrics predate OpenMetrics: a counter is named `csv_upgrade_count`, and a summary has quantiles. Therefore the text has the older
//! Prometheus format, which every scraper supports: counters have exactly the name that they are registered with.

use std::collections::BTreeMap;
use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use olm_core::metrics;

use super::Counts;

/// The media type of the text.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const RESOLUTIONS: &str = "olm_resolution_duration_seconds";
const QUANTILES: [f64; 3] = [0.9, 0.95, 0.99];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Named {
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Installed {
    namespace: String,
    name: String,
    version: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Abnormal {
    namespace: String,
    name: String,
    version: String,
    phase: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Sync {
    name: String,
    installed: String,
    channel: String,
    package: String,
    approval: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, EncodeLabelSet)]
struct Quantile {
    outcome: &'static str,
    quantile: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Action {
    verb: String,
}

/// The series of one name.
#[derive(Debug)]
enum Family {
    One(u64),
    Named(Vec<(Named, u64)>),
    Installed(Vec<(Installed, u64)>),
    Abnormal(Vec<(Abnormal, u64)>),
    Sync(Vec<(Sync, u64)>),
    Action(Vec<(Action, u64)>),
    /// Sum, count and quantiles, by outcome.
    Summary(Vec<(&'static str, f64, u64, [f64; QUANTILES.len()])>),
}

#[derive(Debug)]
struct Metric {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    family: Family,
}

/// Returns the current metrics as text.
pub(super) fn render(counts: &mut Counts) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Exposition(metrics(counts))));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = prometheus_client::encoding::text::encode_registry(&mut text, &registry);
    // The crate does not support summaries.
    text.replacen(&format!("# TYPE {RESOLUTIONS} histogram"), &format!("# TYPE {RESOLUTIONS} summary"), 1)
}

fn metrics(counts: &mut Counts) -> Vec<Metric> {
    let resolutions: Vec<_> = ["failed", "succeeded"]
        .into_iter()
        .zip(&mut counts.resolutions)
        .filter(|(_, summary)| summary.count > 0)
        .map(|(outcome, summary)| (outcome, summary.sum, summary.count, summary.quantiles(QUANTILES)))
        .collect();
    let objects = &counts.objects;
    let gauge = |name, help, family| Metric { name, help, kind: MetricType::Gauge, family };
    let counter = |name, help, family| Metric { name, help, kind: MetricType::Counter, family };
    let one = |number: usize| Family::One(number as u64);
    let named = |namespace: &str, name: &str| Named { namespace: namespace.to_owned(), name: name.to_owned() };
    let ready = objects.catalog_sources.iter().map(|c| (named(&c.namespace, &c.name), u64::from(c.ready)));
    let snapshots = counts.snapshots.iter().map(|((namespace, name), n)| (named(namespace, name), *n));
    let succeeded = objects.csvs.iter().map(|csv| {
        let (namespace, name, version) = (csv.namespace.clone(), csv.name.clone(), csv.version.clone());
        (Installed { namespace, name, version }, u64::from(csv.is_succeeded()))
    });
    let abnormal = objects.csvs.iter().filter(|csv| !csv.is_succeeded()).cloned().map(|csv| {
        let metrics::CsvState { namespace, name, version, phase, reason } = csv;
        (Abnormal { namespace, name, version, phase, reason }, 1)
    });
    // Subscriptions of one name in several namespaces share a series, because the namespace is not a label.
    let mut syncs: BTreeMap<Sync, u64> = BTreeMap::new();
    for (known, n) in counts.syncs.values() {
        let metrics::SubscriptionState { namespace: _, name, installed, channel, package, approval } = known.clone();
        *syncs.entry(Sync { name, installed, channel, package, approval }).or_default() += n;
    }
    let actions = counts.actions.iter().map(|(verb, n)| (Action { verb: format!("{verb:?}").to_lowercase() }, *n));
    vec![
        gauge("csv_count", "Number of CSVs successfully registered", one(objects.csvs.len())),
        gauge("csv_succeeded", "Successful CSV install", Family::Installed(succeeded.collect())),
        gauge("csv_abnormal", "CSV is not installed", Family::Abnormal(abnormal.collect())),
        counter("csv_upgrade_count", "Monotonic count of CSV upgrades", Family::One(counts.upgrades)),
        gauge("install_plan_count", "Number of install plans", one(objects.install_plans)),
        gauge("subscription_count", "Number of subscriptions", one(objects.subscriptions.len())),
        gauge("catalog_source_count", "Number of catalog sources", one(objects.catalog_sources.len())),
        gauge(
            "catalogsource_ready",
            "State of a CatalogSource: 1 indicates that it is READY, 0 that it is not",
            Family::Named(ready.collect()),
        ),
        counter(
            "catalog_source_snapshots_total",
            "Number of times the content of a catalog source was requested",
            Family::Named(snapshots.collect()),
        ),
        counter(
            "subscription_sync_total",
            "Monotonic count of subscription syncs",
            Family::Sync(syncs.into_iter().collect()),
        ),
        Metric {
            name: RESOLUTIONS,
            help: "The duration of a dependency resolution attempt",
            kind: MetricType::Histogram,
            family: Family::Summary(resolutions),
        },
        counter(
            "installplan_warnings_total",
            "Monotonic count of resources that generated warnings when applied as part of an InstallPlan",
            Family::One(counts.warnings),
        ),
        counter("kubectl_olm_actions_total", "Actions executed, by verb", Family::Action(actions.collect())),
        counter("kubectl_olm_refused_total", "Actions the API server refused", Family::One(counts.refused)),
        gauge(
            "kubectl_olm_unsettled",
            "Reconcile keys (controller and object) that are queued, running, or retried soon after a refusal",
            // Before the first list nothing was planned.
            one(counts.unsettled + usize::from(!counts.ready)),
        ),
        gauge(
            "kubectl_olm_unreadable_objects",
            "Objects that kubectl-olm cannot decode and does not change",
            one(counts.unreadable),
        ),
        gauge(
            "kubectl_olm_blocked",
            "Reconcile keys (controller and object) that are blocked until a user acts",
            one(counts.blocked.len()),
        ),
    ]
}

/// A collector of the current metrics.
#[derive(Debug)]
struct Exposition(Vec<Metric>);

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let metrics = &self.0;
        // Metrics without series are omitted.
        metrics.iter().filter(|metric| !metric.family.is_empty()).try_for_each(|metric| {
            let encoder = encoder.encode_descriptor(metric.name, metric.help, None, metric.kind)?;
            metric.family.encode(encoder)
        })
    }
}

impl Family {
    fn is_empty(&self) -> bool {
        match self {
            Self::One(_) => false,
            Self::Named(series) => series.is_empty(),
            Self::Installed(series) => series.is_empty(),
            Self::Abnormal(series) => series.is_empty(),
            Self::Sync(series) => series.is_empty(),
            Self::Action(series) => series.is_empty(),
            Self::Summary(series) => series.is_empty(),
        }
    }

    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), Error> {
        match self {
            Self::One(value) => encoder.encode_gauge(value),
            Self::Named(series) => each(&mut encoder, series),
            Self::Installed(series) => each(&mut encoder, series),
            Self::Abnormal(series) => each(&mut encoder, series),
            Self::Sync(series) => each(&mut encoder, series),
            Self::Action(series) => each(&mut encoder, series),
            Self::Summary(series) => series.iter().try_for_each(|&(outcome, sum, count, values)| {
                for (quantile, value) in QUANTILES.into_iter().zip(values) {
                    encoder.encode_family(&Quantile { outcome, quantile })?.encode_gauge(&value)?;
                }
                let outcome = Outcome { outcome };
                encoder.encode_family(&outcome)?.encode_histogram::<NoLabelSet>(sum, count, &[], None)
            }),
        }
    }
}

/// Encodes series. Counters are encoded as gauges, which adds no suffix to their names.
fn each<L: EncodeLabelSet>(encoder: &mut MetricEncoder<'_>, series: &[(L, u64)]) -> Result<(), Error> {
    series.iter().try_for_each(|(labels, value)| encoder.encode_family(labels)?.encode_gauge(value))
}
