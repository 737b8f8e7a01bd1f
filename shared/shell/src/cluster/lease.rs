//! Leader election with one Lease of `coordination.k8s.io`, which its holder renews only on request of another process.
//!
//! ```text
//!   holder:  claim, keep --read--> Lease --requested?--> renew     release: the Lease is free at once
//!               |                    ^
//!               +--valid until--> Permit <--checked before each write-- live, execute
//!   others:  claim, keep --request---+--no response--> acquire
//! ```
//!
//! Leader election of client-go renews the Lease periodically. Idle controllers must not write, so here a candidate requests a sign of
//! life, and the holder renews the Lease only in response. There are no writes while no other process wants the Lease.
//!
//! *Guarantees*: The permit of a process expires well before another process may acquire the Lease, regardless of hanging requests and of
//! suspension of the machine. The timestamps in the Lease come from other clocks and are not evaluated: what counts is how long the Lease
//! was observed unchanged, on a monotonic clock. A process that finds a known Lease deleted creates it again with its last holder, which
//! then responds or has the usual time to stop. The Lease is released only when every write has a response. A process that acquires the
//! Lease lists all objects again before it writes. *Assumptions*: Clocks run at the same rate; they need not show the same time. *Caveats*:
//! A request in flight when the Lease is lost is not cancelled at the server. A process that starts at the moment in which the Lease is
//! deleted does not know the holder; the holder observes the deletion in its watch.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::distribution::REQUESTED_BY;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::api::{Api, Resource};
use super::clock::{Clock, Moment};
use super::follow::{Sight, follow};
use super::permit::Ledger;
pub use super::permit::{Pause, Permit};

/// The namespace of the Lease. There is one Lease per cluster, regardless of `--namespace` (the namespace of the global catalogs), because
/// the controllers write in all namespaces.
pub const NAMESPACE: &str = "olm";
/// The name of the Lease.
pub const NAME: &str = "kubectl-olm-run";
/// The holder that is written into a Lease that is created again by a process that did not see its last holder.
const UNKNOWN_HOLDER: &str = "an unknown process";
/// How long a request to the holder may stay without a response until another process may acquire the Lease. Other processes wait this long
/// after the holder was killed.
const DURATION: Duration = Duration::from_mins(1);
/// How long the holder may write after it last read the Lease. The rest of [`DURATION`] is for requests in flight.
const VALID: Duration = Duration::from_secs(40);
/// The interval at which the holder reads the Lease if the watch reports no change.
const LOOK: Duration = Duration::from_secs(20);
/// The interval at which other processes read the Lease, and the pause before a failed read is retried.
const RETRY: Duration = Duration::from_secs(2);
/// The timeout of a request for the Lease.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a process that ends waits for responses to its writes.
const RESPONSES_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a process that ends waits for the release of the Lease.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// The content of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The identity of the holder; empty after a release.
    pub holder: String,
    /// When the holder acquired the Lease.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed the Lease. `None`: another process created the Lease again after its deletion, and may not have known
    /// the last holder.
    pub renewed: Option<Timestamp>,
    /// The process that has requested a sign of life since; empty if there is none.
    pub requested_by: String,
    duration: Duration,
    transitions: i64,
}

impl Record {
    fn from_lease(lease: &Value) -> Self {
        let spec = object::at(lease, &["spec"]);
        let number = |field| object::at(spec, &[field]).as_i64().unwrap_or_default();
        let time = |field| object::parse_time(object::text(spec, &[field]));
        Self {
            holder: object::text(spec, &["holderIdentity"]).to_owned(),
            acquired: time("acquireTime"),
            renewed: time("renewTime"),
            requested_by: object::annotation(lease, REQUESTED_BY).unwrap_or_default().to_owned(),
            duration: Duration::from_secs(number("leaseDurationSeconds").try_into().unwrap_or_default()),
            transitions: number("leaseTransitions"),
        }
    }

    /// Returns the record of a process that acquires or renews the Lease now.
    fn held(before: Option<&Self>, me: &str, now: Timestamp) -> Self {
        let mine = before.filter(|record| record.holder == me);
        Self {
            holder: me.to_owned(),
            acquired: mine.map_or(Some(now), |record| record.acquired),
            renewed: Some(now),
            requested_by: String::new(),
            duration: DURATION,
            transitions: before.map_or(0, |record| record.transitions + i64::from(mine.is_none())),
        }
    }

    /// Returns the record after a release by its holder.
    fn released(&self, now: Timestamp) -> Self {
        let (holder, requested_by, duration) = (String::new(), String::new(), Duration::from_secs(1));
        Self { holder, acquired: Some(now), renewed: Some(now), requested_by, duration, ..self.clone() }
    }

    /// Writes the record to a Lease.
    fn write(&self, lease: &mut Value) {
        lease["spec"] = self.spec();
        let requested_by = if self.requested_by.is_empty() { Value::Null } else { json!(self.requested_by) };
        json_patch::merge(lease, &json!({ "metadata": { "annotations": { REQUESTED_BY: requested_by } } }));
    }

    fn spec(&self) -> Value {
        let time = |at: Option<Timestamp>| at.map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string());
        json!({
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration.as_secs(),
            "acquireTime": time(self.acquired),
            "renewTime": time(self.renewed),
            "leaseTransitions": self.transitions,
        })
    }

    /// Returns how long the Lease stays with a holder that does not respond.
    fn expires_after(&self) -> Duration {
        self.duration.max(DURATION)
    }

    /// Returns whether the record was written by this holder itself.
    fn is_of(&self, me: &str) -> bool {
        self.holder == me && self.renewed.is_some()
    }

    /// Returns what the process `me` may do; `holds` is whether it holds the Lease. `seen` is when this record was first observed, on the
    /// monotonic clock of `now`, if it was observed before: its own timestamps come from another clock.
    fn next(&self, me: &str, holds: bool, seen: Option<Duration>, now: Duration) -> Next {
        let is_mine = self.is_of(me) || self.holder == me && holds;
        let has_passed = |duration| seen.is_some_and(|seen| seen + duration <= now);
        match (self.holder.as_str(), self.requested_by.is_empty()) {
            (_, true) if is_mine => Next::Keep,
            (holder, _) if holder.is_empty() || is_mine => Next::Take,
            (_, false) if has_passed(self.expires_after()) => Next::Take,
            (_, true) if seen.is_none() || has_passed(DURATION) => Next::Ask,
            _ => Next::Wait,
        }
    }
}

/// What a process may do with a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing: this process holds it, and no other process requests it.
    Keep,
    /// Acquire or renew it.
    Take,
    /// Request a sign of life from its holder.
    Ask,
    /// Wait: a request to its holder is pending, or the holder has responded.
    Wait,
}

/// Why a Lease is not held.
#[derive(Clone, Debug)]
pub enum Denied {
    /// Another process holds it.
    Held(Record),
    /// The API server refused the request or did not respond.
    Refused(Status),
}

/// The Lease, as seen by one process that wants to hold it.
pub struct Lease {
    api: Api,
    target: ObjectRef,
    me: String,
    /// The record of another process, and when it was first observed, on the monotonic clock.
    seen: Option<(Record, Duration)>,
    /// The record that was read or written last.
    last: Option<Record>,
    until: watch::Sender<Option<Moment>>,
    ledger: Arc<Ledger>,
    clock: Clock,
}

impl Lease {
    /// Creates a client of the Lease of the cluster. Sends no request.
    pub async fn new(api: Api) -> Self {
        Self::with(api, Clock::system()).await
    }

    async fn with(api: Api, clock: Clock) -> Self {
        api.register(Resource::from(&kinds::LEASE)).await;
        let target = kinds::LEASE.object(NAMESPACE, NAME);
        let (seen, last, until) = (None, None, watch::Sender::new(None));
        Self { api, target, me: identity(), seen, last, until, ledger: Arc::default(), clock }
    }

    /// Returns `NAMESPACE/NAME`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.target.namespace, self.target.name)
    }

    /// Returns the permit to write, which is valid while this process holds the Lease.
    pub fn permit(&self) -> Permit {
        Permit::until(self.until.subscribe(), self.clock.clone(), self.ledger.clone())
    }

    /// Tries once to acquire or renew the Lease.
    pub async fn claim(&mut self) -> Result<(), Denied> {
        // The validity starts before the request is sent.
        let now = self.clock.now();
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, self.attempt(now)).await;
        let taken =
            answer.unwrap_or_else(|_| Err(Denied::Refused(Status::new(0, "NoAnswer", "the server does not answer"))));
        match &taken {
            Ok(()) => {
                self.seen = None;
                self.until.send_replace(Some(now.after(VALID)));
            }
            Err(Denied::Held(_)) => {
                self.until.send_replace(None);
            }
            // A valid permit stays valid until it expires.
            Err(Denied::Refused(_)) => {}
        }
        taken
    }

    async fn attempt(&mut self, now: Moment) -> Result<(), Denied> {
        let Some(lease) = self.api.get(&self.target).await.map_err(Denied::Refused)? else {
            return self.make(now).await;
        };
        let record = Record::from_lease(&lease);
        self.last = Some(record.clone());
        let seen = self.seen.as_ref().map(|(known, seen)| if *known == record { *seen } else { now.steady });
        let next = record.next(&self.me, self.permit().is_given(), seen, now.steady);
        self.seen = Some((record.clone(), seen.unwrap_or(now.steady)));
        let mut new = lease;
        match next {
            Next::Keep => return Ok(()),
            Next::Wait => return Err(Denied::Held(record)),
            Next::Take => Record::held(Some(&record), &self.me, now.wall).write(&mut new),
            Next::Ask => Record { requested_by: self.me.clone(), ..record.clone() }.write(&mut new),
        }
        // The resourceVersion ensures that only one of several concurrent candidates succeeds.
        let written = self.api.update(&new, None).await.map_err(Denied::Refused)?;
        match next {
            Next::Ask => Err(Denied::Held(Record::from_lease(&written))),
            _ => {
                if !record.is_of(&self.me) {
                    self.ledger.taken();
                }
                self.last = Some(Record::from_lease(&written));
                Ok(())
            }
        }
    }

    /// Creates the Lease if it does not exist. A process that knows an earlier Lease and does not hold it restores that Lease with a
    /// request to its holder, which then responds or has its time to stop.
    async fn make(&mut self, now: Moment) -> Result<(), Denied> {
        let holds = self.permit().is_given();
        // Another process may create it first: this process must not write until the result is known.
        self.until.send_replace(None);
        let record = match self.last.clone() {
            Some(last) if !holds => {
                let is_known = !last.holder.is_empty() && last.holder != self.me;
                let holder = if is_known { last.holder } else { UNKNOWN_HOLDER.to_owned() };
                Record { holder, renewed: None, requested_by: self.me.clone(), duration: DURATION, ..last }
            }
            last => Record::held(last.as_ref(), &self.me, now.wall),
        };
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": self.target.name, "namespace": self.target.namespace },
        });
        record.write(&mut lease);
        let record = Record::from_lease(&self.api.create(&lease).await.map_err(Denied::Refused)?);
        self.last = Some(record.clone());
        if record.holder == self.me {
            self.ledger.taken();
            return Ok(());
        }
        self.seen = Some((record.clone(), now.steady));
        Err(Denied::Held(record))
    }

    /// Acquires the Lease unless a live process holds it. Waits only until its holder has responded or the time for a response is over.
    pub async fn claim_abandoned(&mut self) -> Result<(), Denied> {
        let mut is_logged = false;
        loop {
            match self.claim().await {
                Err(Denied::Held(record)) if !record.requested_by.is_empty() => {
                    if !is_logged {
                        info!(lease = self.name(), "requesting a sign of life from {}", describe(&record));
                    }
                    is_logged = true;
                }
                Err(Denied::Refused(refusal)) if refusal.is_conflict() || refusal.is_already_exists() => {}
                answer => return answer,
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Acquires the Lease, waiting for it if necessary, and keeps it until the future is dropped.
    pub async fn keep(&mut self) -> Infallible {
        let permit = self.permit();
        let mut pause = if permit.is_given() { LOOK } else { Duration::ZERO };
        let mut logged: Option<String> = None;
        let mut sights = Some(follow(&self.api, self.target.clone()));
        loop {
            // A jump of the wall clock ends the permit early; the Lease is read again without the full pause.
            let pause_now = permit.rest().map_or_else(|| pause.min(RETRY), |rest| rest.min(pause));
            tokio::select! {
                () = tokio::time::sleep(pause_now) => {}
                () = changed(&mut sights) => {}
            }
            let was_given = permit.is_given();
            let denied = match self.claim().await {
                Ok(()) => {
                    if logged.take().is_some() || !was_given {
                        info!(lease = self.name(), "acquired the Lease");
                    }
                    pause = LOOK;
                    continue;
                }
                Err(denied) => denied,
            };
            pause = RETRY;
            let (why, hint) = match &denied {
                Denied::Held(record) => (format!("{} holds the Lease", describe(record)), None),
                Denied::Refused(refusal) => {
                    let hint = refusal.is_not_found().then(namespace_hint);
                    (format!("cannot acquire or renew the Lease: {}", refusal.message), hint)
                }
            };
            let then =
                if permit.is_given() { "retrying" } else { "this process does not write until it acquires the Lease" };
            let message = format!("{why}; {then}");
            if logged.as_ref() != Some(&message) {
                warn!(lease = self.name(), hint, "{message}");
            }
            logged = Some(message);
        }
    }

    /// Releases the Lease so that other processes need not wait. A write without a response may still take effect: then other processes
    /// wait as for a holder that does not respond.
    pub async fn release(&mut self) {
        self.until.send_replace(None);
        let settled = tokio::time::timeout(RESPONSES_TIMEOUT, self.ledger.settled()).await;
        let still = DURATION.saturating_sub(VALID);
        let is_lost = self.ledger.lost().is_some_and(|lost| lost + still > self.clock.now().steady);
        let is_settled = settled.is_ok() && !is_lost;
        let released = async {
            let Some(mut lease) = self.api.get(&self.target).await? else { return Ok(()) };
            let record = Record::from_lease(&lease);
            if record.is_of(&self.me) {
                let left = if is_settled {
                    record.released(self.clock.now().wall)
                } else {
                    Record { requested_by: self.me.clone(), ..record }
                };
                left.write(&mut lease);
                self.api.update(&lease, None).await?;
            }
            Ok::<_, Status>(())
        };
        let released = matches!(tokio::time::timeout(RELEASE_TIMEOUT, released).await, Ok(Ok(())));
        if released && !is_settled {
            warn!(
                lease = self.name(),
                "a write got no response and may still take effect; another process can acquire the Lease after {} s",
                DURATION.as_secs()
            );
        }
        if !released {
            warn!(
                lease = self.name(),
                "cannot release the Lease; another process can acquire it after {} s",
                DURATION.as_secs()
            );
        }
    }
}

/// Returns the hint for the case that the namespace of the Lease does not exist.
pub fn namespace_hint() -> String {
    format!(
        "kubectl create namespace {NAMESPACE}: it contains the Lease, regardless of --namespace; --no-lease runs without it, if no other \
         process writes to the cluster"
    )
}

/// Returns the holder and the time of acquisition for messages.
pub fn describe(record: &Record) -> String {
    let since = record.acquired.map(|at| format!(" (since {})", object::time(at))).unwrap_or_default();
    format!("{}{since}", record.holder)
}

/// Resolves when the Lease has changed; never without the permission to watch it, in which case it is polled.
async fn changed(sights: &mut Option<mpsc::UnboundedReceiver<Sight>>) {
    while let Some(open) = sights {
        match open.recv().await {
            Some(Ok(_)) => return,
            // The watch retries by itself.
            Some(Err(_)) => {}
            None => *sights = None,
        }
    }
    std::future::pending::<()>().await;
}

/// Returns a unique identity for this process: host name, process ID and a random suffix.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::env::var("HOSTNAME"));
    let host = host.map_or_else(|_| "unknown-host".to_owned(), |host| host.trim().to_owned());
    let process = std::process::id();
    format!("{host}_{process}_{:08x}", RandomState::new().hash_one(process) & 0xffff_ffff)
}

#[cfg(test)]
mod tests;
