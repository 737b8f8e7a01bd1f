//! One writer: a Lease of `coordination.k8s.io`, whose holder renews it only when somebody asks whether it is still there.
//!
//! ```text
//!   holder:  claim, keep --look--> Lease --asked?--> renew     release: nobody holds it, at once
//!               |                    ^
//!               +--until when--> Permit <--may it write now?-- live, execute
//!   others:  claim, keep --ask-------+--no answer--> take it
//! ```
//!
//! client-go's leader election renews for ever; controllers that have nothing to do shall write nothing, so here the question is
//! written instead of the answer, and there is none while nobody else wants the Lease.
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
pub const NAME: &str = "kubectl-olm-run";
/// Who asks whether the holder is still there; the holder takes it away when it answers.
const ASKED_BY: &str = "kubectl-olm/asked-by";
/// So long after a question without an answer a Lease is anybody's. It is what others wait for when a holder was killed.
const DURATION: SignedDuration = SignedDuration::from_secs(60);
/// So long after it last looked its holder still writes: what is left of [`DURATION`] is for requests under way.
const VALID: SignedDuration = SignedDuration::from_secs(40);
/// How often the holder looks whether somebody asks.
const LOOK: Duration = Duration::from_secs(20);
/// How often others look, and how soon a look that failed is tried again.
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
    /// Who has asked since; empty when nobody did.
    pub asked_by: String,
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
            asked_by: object::annotation(lease, ASKED_BY).unwrap_or_default().to_owned(),
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
            asked_by: String::new(),
            duration: DURATION,
            transitions: before.map_or(0, |record| record.transitions + i64::from(mine.is_none())),
        }
    }

    /// The record after its holder has let it go.
    fn released(&self, now: Timestamp) -> Self {
        let (holder, asked_by, duration) = (String::new(), String::new(), SignedDuration::from_secs(1));
        Self { holder, acquired: Some(now), renewed: Some(now), asked_by, duration, ..self.clone() }
    }

    /// Writes the record into a Lease.
    fn write(&self, lease: &mut Value) {
        lease["spec"] = self.spec();
        let asked_by = if self.asked_by.is_empty() { Value::Null } else { json!(self.asked_by) };
        json_patch::merge(lease, &json!({ "metadata": { "annotations": { ASKED_BY: asked_by } } }));
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

    /// What `me` may do with it. `seen` is when it was first seen to be like this, by the clock of `now`, if it was seen before: the
    /// times that it says itself are of another clock.
    fn next(&self, me: &str, seen: Option<Timestamp>, now: Timestamp) -> Next {
        let has_stood = |duration| seen.is_some_and(|seen| seen + duration <= now);
        match (self.holder.as_str(), self.asked_by.is_empty()) {
            (holder, true) if holder == me => Next::Keep,
            (holder, _) if holder.is_empty() || holder == me => Next::Take,
            (_, false) if has_stood(self.duration) => Next::Take,
            (_, true) if seen.is_none() || has_stood(DURATION) => Next::Ask,
            _ => Next::Wait,
        }
    }
}

/// What one may do with a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It is mine, and nobody asks.
    Keep,
    /// Take it, or say that it is mine.
    Take,
    /// Ask its holder.
    Ask,
    /// Its holder was asked, or has answered.
    Wait,
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
        let seen = self.seen.as_ref().map(|(known, seen)| if *known == record { *seen } else { now });
        let next = record.next(&self.me, seen, now);
        self.seen = Some((record.clone(), seen.unwrap_or(now)));
        let mut new = lease;
        match next {
            Next::Keep => return Ok(()),
            Next::Wait => return Err(Denied::Held(record)),
            Next::Take => Record::held(Some(&record), &self.me, now).write(&mut new),
            Next::Ask => Record { asked_by: self.me.clone(), ..record.clone() }.write(&mut new),
        }
        // Its resourceVersion lets only one of two win that find it free.
        let written = self.api.update(&new, None).await.map_err(Denied::Refused)?;
        match next {
            Next::Ask => Err(Denied::Held(Record::of(&written))),
            _ => Ok(()),
        }
    }

    /// Takes it, if nobody who is alive has it: waits only until its holder has answered, or did not.
    pub async fn claim_abandoned(&mut self) -> Result<(), Denied> {
        let mut told = false;
        loop {
            match self.claim().await {
                Err(Denied::Held(record)) if !record.asked_by.is_empty() => {
                    if !told {
                        info!(lease = self.name(), "asking {} whether it is still there", describe(&record));
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
        let mut pause = if permit.is_given() { LOOK } else { Duration::ZERO };
        let mut told: Option<String> = None;
        loop {
            tokio::time::sleep(pause).await;
            let was_given = permit.is_given();
            let denied = match self.claim().await {
                Ok(()) => {
                    if told.take().is_some() || !was_given {
                        info!(lease = self.name(), "this process writes from now on");
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
                record.released(Timestamp::now()).write(&mut lease);
                self.api.update(&lease, None).await?;
            }
            Ok::<_, Status>(())
        };
        if !matches!(tokio::time::timeout(PATIENCE_AT_THE_END, released).await, Ok(Ok(()))) {
            warn!(
                lease = self.name(),
                "the Lease could not be released; whoever wants it waits {} s for an answer",
                DURATION.as_secs()
            );
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
    fn its_holder_is_asked_and_loses_it_when_it_does_not_answer() {
        let held = Record::held(None, "them", at(0));
        // Their clock may be wrong: what counts is when we first saw it.
        assert_eq!(held.next("me", None, at(5000)), Next::Ask);
        assert_eq!(held.next("them", None, at(5000)), Next::Keep);
        let asked = Record { asked_by: "me".to_owned(), ..held };
        assert_eq!(asked.next("me", Some(at(1000)), at(1059)), Next::Wait);
        assert_eq!(asked.next("me", Some(at(1000)), at(1060)), Next::Take);
        assert_eq!(asked.next("third", None, at(5000)), Next::Wait);
        assert_eq!(asked.next("them", None, at(5000)), Next::Take);
        let answered = Record::held(Some(&asked), "them", at(20));
        assert_eq!(answered.next("me", Some(at(1000)), at(1059)), Next::Wait);
        assert_eq!(answered.next("me", Some(at(1000)), at(1060)), Next::Ask);
        assert_eq!(asked.released(at(5)).next("me", None, at(5)), Next::Take);
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
        for record in [Record { asked_by: "them".to_owned(), ..record.clone() }, record] {
            let mut lease = json!({ "metadata": { "name": NAME, "annotations": { ASKED_BY: "somebody" } } });
            record.write(&mut lease);
            assert_eq!(lease["spec"]["renewTime"], "2026-11-18T11:06:40.000000Z");
            assert_eq!(Record::of(&lease), record);
        }
        assert_eq!(Record::of(&json!({})).holder, "");
    }

    #[test]
    fn a_process_stops_writing_before_others_may_start() {
        let look = SignedDuration::try_from(LOOK + PATIENCE + RETRY).unwrap();
        assert!(look < VALID, "a look may fail once without harm");
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
