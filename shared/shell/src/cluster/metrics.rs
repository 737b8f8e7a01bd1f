//! The metrics of the controllers in the Prometheus text format: OLM's metrics under their names, and additional ones.
//!
//! Counters are stored here. Metrics of objects ([`olm_core::metrics`]) are requested from the loop on each scrape, so that a series is
//! removed with its object, and there is no cost without scrapes.

#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use olm_core::metrics::{self, Objects, SubscriptionState};
use olm_core::plan::{Action, Controller, Key, Verb};
use olm_core::planner::{Around, Event};
use olm_core::world::{Reader, World, kind};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

pub use text::MEDIA_TYPE;

/// How long a scrape waits for the loop, which may be busy planning.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(2);

/// The time window of quantiles, as in the Go client of Prometheus.
const WINDOW: Duration = Duration::from_mins(10);

/// The maximum number of resolutions from which quantiles are computed.
const MOST_SAMPLES: usize = 4096;

/// The channel on which a scrape receives the metrics of objects.
pub(super) type Scrape = oneshot::Sender<Objects>;

/// The metrics. Cheap to clone; clones share their counters.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    ready: bool,
    paused: bool,
    actions: BTreeMap<Verb, u64>,
    refused: u64,
    unsettled: usize,
    blocked: BTreeMap<Key, usize>,
    upgrades: u64,
    warnings: u64,
    unreadable: usize,
    /// By namespace and name of the CatalogSource.
    snapshots: BTreeMap<(String, String), u64>,
    /// The labels of each Subscription when it was last counted, and the count with these labels, by namespace and name.
    syncs: BTreeMap<(String, String), (SubscriptionState, u64)>,
    /// Failed and successful resolutions.
    resolutions: [Summary; 2],
    objects: Objects,
    scrapes: Option<mpsc::UnboundedSender<Scrape>>,
}

/// A summary of durations: count, sum, and the durations in the time window.
#[derive(Default)]
struct Summary {
    count: u64,
    sum: f64,
    recent: VecDeque<(Instant, f64)>,
}

impl Summary {
    fn observe(&mut self, took: Duration) {
        let now = Instant::now();
        self.count += 1;
        self.sum += took.as_secs_f64();
        self.recent.push_back((now, took.as_secs_f64()));
        while self.recent.len() > MOST_SAMPLES {
            self.recent.pop_front();
        }
        self.forget(now);
    }

    fn forget(&mut self, now: Instant) {
        while self.recent.front().is_some_and(|(at, _)| now.duration_since(*at) > WINDOW) {
            self.recent.pop_front();
        }
    }

    /// Returns the quantiles of the durations in the time window.
    fn quantiles<const N: usize>(&mut self, parts: [f64; N]) -> [f64; N] {
        self.forget(Instant::now());
        let mut sorted: Vec<f64> = self.recent.iter().map(|(_, took)| *took).collect();
        sorted.sort_by(f64::total_cmp);
        parts.map(|part| {
            let rank = (0..sorted.len()).rev().take_while(|n| below(*n, sorted.len()) >= part).last();
            rank.and_then(|n| sorted.get(n)).copied().unwrap_or(f64::NAN)
        })
    }
}

/// Returns the fraction of `of` samples at or below the sample with the index `n`.
#[expect(clippy::cast_precision_loss, reason = "there are a few thousand at most")]
fn below(n: usize, of: usize) -> f64 {
    (n + 1) as f64 / of as f64
}

impl Metrics {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that all kinds were listed.
    pub fn ready(&self) {
        self.counts().ready = true;
    }

    /// Records whether writes are paused.
    pub(crate) fn paused(&self, is_paused: bool) {
        self.counts().paused = is_paused;
    }

    /// Returns whether all kinds were listed, and writes are not paused.
    ///
    /// # Errors
    /// Contains what is awaited.
    pub fn readiness(&self) -> Result<(), &'static str> {
        let counts = self.counts();
        match (counts.paused, counts.ready) {
            (true, _) => Err("paused while upstream OLM is running"),
            (false, false) => Err("listing the cluster"),
            (false, true) => Ok(()),
        }
    }

    /// Records executed actions and the number of refused ones.
    pub fn worked(&self, actions: &[Action], refused: usize) {
        let mut counts = self.counts();
        for action in actions {
            *counts.actions.entry(action.verb()).or_default() += 1;
        }
        counts.refused += refused as u64;
    }

    /// Records the number of keys that are in progress or retried soon.
    pub fn unsettled(&self, keys: usize) {
        self.counts().unsettled = keys;
    }

    /// Records the number of reasons that block a key.
    pub fn blocked(&self, key: &Key, reasons: usize) {
        let mut counts = self.counts();
        if reasons == 0 {
            counts.blocked.remove(key);
        } else {
            counts.blocked.insert(key.clone(), reasons);
        }
    }

    /// Adds to the number of reads of the content of a CatalogSource.
    pub(super) fn snapshots(&self, namespace: &str, name: &str, more: u64) {
        *self.counts().snapshots.entry((namespace.to_owned(), name.to_owned())).or_default() += more;
    }

    /// Records the number of objects that cannot be decoded.
    pub(super) fn unreadable(&self, objects: usize) {
        self.counts().unreadable = objects;
    }

    /// Records a warning of the API server about a step of an InstallPlan.
    pub(super) fn warned(&self) {
        self.counts().warnings += 1;
    }

    /// Counts an event before it is applied to the World.
    pub(super) fn observe(&self, world: &World, event: &Event) {
        if let Event::Applied(object) = event
            && object["kind"] == *kind::CLUSTER_SERVICE_VERSION.kind
            && metrics::is_replacing(object)
        {
            let reader = Reader::new(world);
            let (namespace, name) = (text(object, "namespace"), text(object, "name"));
            let before = reader.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name);
            self.counts().upgrades += u64::from(metrics::is_upgrade(before, object));
        }
    }

    /// Returns the wrapper of plans that measures the resolutions of namespaces.
    pub fn around(&self) -> Around {
        let metrics = self.clone();
        Arc::new(move |world, key, plan| {
            if key.controller != Controller::Resolution {
                return plan();
            }
            let began = Instant::now();
            let planned = plan();
            metrics.resolved(world, key, began.elapsed());
            planned
        })
    }

    /// Records a resolution of the Subscriptions of a namespace.
    fn resolved(&self, world: &Reader<'_>, key: &Key, took: Duration) {
        let mut counts = self.counts();
        if let Some(succeeded) = world.resolution() {
            counts.resolutions[usize::from(succeeded)].observe(took);
        }
        for subscription in world.in_namespace(&kind::SUBSCRIPTION, &key.name) {
            let now = SubscriptionState::from_object(subscription.json());
            let known =
                counts.syncs.entry((now.namespace.clone(), now.name.clone())).or_insert_with(|| (now.clone(), 0));
            if known.0 != now {
                *known = (now, 0);
            }
            known.1 += 1;
        }
    }

    /// Returns the receiver of scrapes for the loop.
    pub(super) fn scrapes(&self) -> mpsc::UnboundedReceiver<Scrape> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.counts().scrapes = Some(sender);
        receiver
    }

    /// Returns all metrics in the text format. If the loop does not respond, the metrics of objects are those of the last scrape.
    pub async fn text(&self) -> String {
        let (sender, answer) = oneshot::channel();
        let asked = self.counts().scrapes.as_ref().is_some_and(|scrapes| scrapes.send(sender).is_ok());
        if asked && let Ok(Ok(objects)) = tokio::time::timeout(SCRAPE_TIMEOUT, answer).await {
            self.counts().register(objects);
        }
        text::render(&mut self.counts())
    }
}

impl Counts {
    /// Updates the metrics of objects and removes the series of deleted objects.
    fn register(&mut self, objects: Objects) {
        let is = |namespace: &str, name: &str, key: &(String, String)| key.0 == namespace && key.1 == name;
        self.snapshots.retain(|key, _| objects.catalog_sources.iter().any(|c| is(&c.namespace, &c.name, key)));
        for catalog in &objects.catalog_sources {
            self.snapshots.entry((catalog.namespace.clone(), catalog.name.clone())).or_default();
        }
        let subscriptions: std::collections::BTreeSet<&SubscriptionState> = objects.subscriptions.iter().collect();
        // With other labels it is another series, which starts at the next resolution.
        self.syncs.retain(|_, (known, _)| subscriptions.contains(known));
        self.objects = objects;
    }
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    olm_core::api::object::text(object, &["metadata", field])
}
