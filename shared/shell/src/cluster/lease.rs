//! One writer: a Lease of `coordination.k8s.io`, held and renewed as client-go's leader election does it.
//!
//! ```text
//!   claim, keep --renew--> Lease           release: nobody holds it, at once
//!      |
//!      +--until when--> Permit <--may it write now?-- live, execute
//! ```
//!
//! *Guarantees*: a process writes only until a moment that lies well before the one from which another may take the Lease, however
//! long its requests hang or it sleeps. *Assumptions*: clocks run at the same pace; they need not show the same time. *Caveat*: a
//! request that is under way when the Lease is lost is not called back.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{info, warn};

use super::api::{Api, Resource};

/// The Lease's name.
const NAME: &str = "kubectl-olm-run";
/// So long after its last renewal a Lease is anybody's. It is what others wait for when a holder was killed.
const DURATION: SignedDuration = SignedDuration::from_secs(60);
/// So long after its last renewal its holder still writes: what is left of [`DURATION`] is for requests under way.
const VALID: SignedDuration = SignedDuration::from_secs(40);
/// How often the holder renews it: the only writes of controllers that have nothing to do.
const RENEW: Duration = Duration::from_secs(20);
/// How often others look, and how soon a renewal that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// How long a request for the Lease may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the end may wait for the release.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(1);

/// The right to write, for those who do.
#[derive(Clone, Debug)]
pub struct Permit(Option<watch::Receiver<Option<Timestamp>>>);

impl Permit {
    /// For those who need no Lease.
    pub fn always() -> Self {
        Self(None)
    }

    /// May this process write now?
    pub fn is_given(&self) -> bool {
        self.0.as_ref().is_none_or(|until| until.borrow().is_some_and(|until| Timestamp::now() < until))
    }

    /// Resolves when the answer of [`Self::is_given`] may be another.
    pub async fn changed(&mut self) {
        let changed = match &mut self.0 {
            Some(until) => until.changed().await.is_ok(),
            None => false,
        };
        if !changed {
            std::future::pending::<()>().await;
        }
    }
}

/// What a Lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty when it was released.
    pub holder: String,
    /// Since when.
    pub acquired: Option<Timestamp>,
    /// When the holder last said so.
    pub renewed: Option<Timestamp>,
    duration: SignedDuration,
    transitions: i64,
}

impl Record {
    fn of(lease: &Value) -> Self {
        let spec = object::at(lease, &["spec"]);
        let number = |field| object::at(spec, &[field]).as_i64().unwrap_or_default();
        let time = |field| object::parse_time(object::text(spec, &[field]));
        Self {
            holder: object::text(spec, &["holderIdentity"]).to_owned(),
            acquired: time("acquireTime"),
            renewed: time("renewTime"),
            duration: SignedDuration::from_secs(number("leaseDurationSeconds")),
            transitions: number("leaseTransitions"),
        }
    }

    /// The record of a holder that takes or renews it now.
    fn held(before: Option<&Self>, me: &str, now: Timestamp) -> Self {
        let mine = before.filter(|record| record.holder == me);
        Self {
            holder: me.to_owned(),
            acquired: mine.map_or(Some(now), |record| record.acquired),
            renewed: Some(now),
            duration: DURATION,
            transitions: before.map_or(0, |record| record.transitions + i64::from(mine.is_none())),
        }
    }

    /// The record after its holder has let it go.
    fn released(&self, now: Timestamp) -> Self {
        let (holder, duration) = (String::new(), SignedDuration::from_secs(1));
        Self { holder, acquired: Some(now), renewed: Some(now), duration, ..self.clone() }
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

    /// May `me` take it? `seen` is when it was first seen to be like this, by the clock of `now`: the times that it says itself are
    /// of another clock.
    fn is_free(&self, me: &str, seen: Timestamp, now: Timestamp) -> bool {
        self.holder.is_empty() || self.holder == me || seen + self.duration <= now
    }

    /// Would it be free already, if all clocks were right?
    fn looks_abandoned(&self, now: Timestamp) -> bool {
        self.renewed.is_none_or(|renewed| renewed + self.duration <= now)
    }
}

/// Why a Lease is not held.
#[derive(Clone, Debug)]
pub enum Denied {
    /// Somebody else holds it.
    Held(Record),
    /// The API server refused, or did not answer.
    Refused(Status),
}

/// The Lease, for one process that wants it.
pub struct Lease {
    api: Api,
    target: ObjectRef,
    me: String,
    /// The record of somebody else, and when it was first seen to be like this.
    seen: Option<(Record, Timestamp)>,
    until: watch::Sender<Option<Timestamp>>,
}

impl Lease {
    /// The Lease of a namespace.
    pub async fn new(api: Api, namespace: &str) -> Self {
        let gvk = Gvk::new("coordination.k8s.io", "v1", "Lease");
        api.know(Resource { gvk: gvk.clone(), plural: "leases".to_owned(), namespaced: true }).await;
        let target = ObjectRef { gvk, namespace: namespace.to_owned(), name: NAME.to_owned() };
        Self { api, target, me: identity(), seen: None, until: watch::Sender::new(None) }
    }

    /// `NAMESPACE/NAME`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.target.namespace, self.target.name)
    }

    /// The right to write that comes with holding it.
    pub fn permit(&self) -> Permit {
        Permit(Some(self.until.subscribe()))
    }

    /// Tries once to take or renew it.
    pub async fn claim(&mut self) -> Result<(), Denied> {
        let now = Timestamp::now();
        let answer = tokio::time::timeout(PATIENCE, self.attempt(now)).await;
        let taken =
            answer.unwrap_or_else(|_| Err(Denied::Refused(Status::new(0, "NoAnswer", "the server does not answer"))));
        match &taken {
            Ok(()) => {
                self.seen = None;
                self.until.send_replace(Some(now + VALID));
            }
            Err(Denied::Held(_)) => {
                self.until.send_replace(None);
            }
            // What was valid stays so until its time has come.
            Err(Denied::Refused(_)) => {}
        }
        taken
    }

    async fn attempt(&mut self, now: Timestamp) -> Result<(), Denied> {
        let Some(lease) = self.api.get(&self.target).await.map_err(Denied::Refused)? else {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": { "name": self.target.name, "namespace": self.target.namespace },
                "spec": Record::held(None, &self.me, now).spec(),
            });
            return self.api.create(&lease).await.map(drop).map_err(Denied::Refused);
        };
        let record = Record::of(&lease);
        let seen = match &self.seen {
            Some((known, seen)) if *known == record => *seen,
            _ => now,
        };
        self.seen = Some((record.clone(), seen));
        if !record.is_free(&self.me, seen, now) {
            return Err(Denied::Held(record));
        }
        let mut new = lease;
        new["spec"] = Record::held(Some(&record), &self.me, now).spec();
        // Its resourceVersion lets only one of two win that find it free.
        self.api.update(&new, None).await.map(drop).map_err(Denied::Refused)
    }

    /// Takes it, if nobody who is alive has it: waits only for one that seems to have been left behind.
    pub async fn claim_abandoned(&mut self) -> Result<(), Denied> {
        let mut told = false;
        loop {
            match self.claim().await {
                Err(Denied::Held(record)) if record.looks_abandoned(Timestamp::now()) => {
                    if !told {
                        info!(lease = self.name(), "{} seems to be gone; its Lease runs out soon", describe(&record));
                    }
                    told = true;
                }
                Err(Denied::Refused(refusal)) if refusal.is_conflict() || refusal.is_already_exists() => {}
                answer => return answer,
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Holds it for ever, or waits for it.
    pub async fn keep(&mut self) -> Infallible {
        let permit = self.permit();
        let mut pause = if permit.is_given() { RENEW } else { Duration::ZERO };
        let mut told: Option<String> = None;
        loop {
            tokio::time::sleep(pause).await;
            let was_given = permit.is_given();
            let denied = match self.claim().await {
                Ok(()) => {
                    if told.take().is_some() || !was_given {
                        info!(lease = self.name(), "this process writes from now on");
                    }
                    pause = RENEW;
                    continue;
                }
                Err(denied) => denied,
            };
            pause = RETRY;
            let (why, hint) = match &denied {
                Denied::Held(record) => (format!("{} holds the Lease", describe(record)), None),
                Denied::Refused(refusal) => {
                    let hint = refusal.is_not_found().then(|| self.namespace_hint());
                    (format!("the Lease cannot be held: {}", refusal.message), hint)
                }
            };
            let then = if permit.is_given() { "it is tried again" } else { "nothing is written meanwhile" };
            let words = format!("{why}; {then}");
            if told.as_ref() != Some(&words) {
                warn!(lease = self.name(), hint, "{words}");
            }
            told = Some(words);
        }
    }

    /// What to do when its namespace does not exist.
    pub fn namespace_hint(&self) -> String {
        format!("kubectl create namespace {}, or name another with --namespace", self.target.namespace)
    }

    /// Lets it go, so that others need not wait.
    pub async fn release(&mut self) {
        self.until.send_replace(None);
        let released = async {
            let Some(mut lease) = self.api.get(&self.target).await? else { return Ok(()) };
            let record = Record::of(&lease);
            if record.holder == self.me {
                lease["spec"] = record.released(Timestamp::now()).spec();
                self.api.update(&lease, None).await?;
            }
            Ok::<_, Status>(())
        };
        // Whoever comes next waits until it has run out.
        if !matches!(tokio::time::timeout(PATIENCE_AT_THE_END, released).await, Ok(Ok(()))) {
            warn!(lease = self.name(), "the Lease could not be released; it runs out after {} s", DURATION.as_secs());
        }
    }
}

/// Who holds it and since when, for people.
pub fn describe(record: &Record) -> String {
    let since = record.acquired.map(|at| format!(" (since {})", object::time(at))).unwrap_or_default();
    format!("{}{since}", record.holder)
}

/// A name for this process that no other has: with its host, so that people find it.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::env::var("HOSTNAME"));
    let host = host.map_or_else(|_| "unknown-host".to_owned(), |host| host.trim().to_owned());
    let process = std::process::id();
    format!("{host}_{process}_{:08x}", RandomState::new().hash_one(process) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_795_000_000 + seconds).unwrap()
    }

    #[test]
    fn a_lease_is_free_when_it_was_released_or_has_not_changed_for_its_duration() {
        let theirs = Record::held(None, "them", at(0));
        // Their clock may be wrong: what counts is when we first saw it.
        assert!(!theirs.is_free("me", at(1000), at(1059)));
        assert!(theirs.is_free("me", at(1000), at(1060)));
        assert!(theirs.is_free("them", at(1000), at(1000)));
        assert!(theirs.released(at(5)).is_free("me", at(5), at(5)));
        assert!(!theirs.looks_abandoned(at(59)));
        assert!(theirs.looks_abandoned(at(60)));
    }

    #[test]
    fn its_holder_keeps_since_when_and_another_counts_as_a_transition() {
        let first = Record::held(None, "them", at(0));
        let renewed = Record::held(Some(&first), "them", at(20));
        assert_eq!((renewed.acquired, renewed.renewed, renewed.transitions), (Some(at(0)), Some(at(20)), 0));
        let taken = Record::held(Some(&renewed.released(at(30))), "me", at(40));
        assert_eq!((taken.acquired, taken.renewed, taken.transitions), (Some(at(40)), Some(at(40)), 1));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let record = Record::held(None, "me", at(0));
        let spec = record.spec();
        assert_eq!(spec["renewTime"], "2026-11-18T11:06:40.000000Z");
        assert_eq!(Record::of(&json!({ "spec": spec })), record);
        assert_eq!(Record::of(&json!({})).holder, "");
    }

    #[test]
    fn a_process_stops_writing_before_others_may_start() {
        let renewal = SignedDuration::try_from(RENEW + PATIENCE + RETRY).unwrap();
        assert!(renewal < VALID, "a renewal may fail once without harm");
        assert!(VALID < DURATION);
    }

    #[test]
    fn a_permit_ends_by_itself() {
        let until = watch::Sender::new(None);
        let permit = Permit(Some(until.subscribe()));
        assert!(!permit.is_given());
        until.send_replace(Some(Timestamp::now() + DURATION));
        assert!(permit.is_given());
        until.send_replace(Some(Timestamp::now()));
        assert!(!permit.is_given());
        assert!(Permit::always().is_given());
    }

    #[test]
    fn no_two_processes_have_one_name() {
        assert_ne!(identity(), identity());
    }
}
