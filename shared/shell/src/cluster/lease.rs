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
//! long its requests hang or it sleeps. The times that a Lease says are of other clocks and decide nothing: what counts is since when it
//! is seen to be as it is, by a clock that does not jump. A Lease that is deleted is put back by whoever knew it, as held by its holder,
//! who answers or has the usual time to stop. Who ends lets it go only when every write of its is answered; and who takes it looks at
//! everything anew before it writes. *Assumptions*: clocks run at the same pace; they need not show the same time. *Caveats*: a request
//! that is under way when the Lease is lost is not called back. A process that starts in the moment in which somebody deletes the Lease knows
//! of no holder; the holder sees the deletion in its watch.

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::api::{Api, Resource};
use super::clock::{Clock, Moment};
use super::follow::{Sight, follow};
use super::permit::Ledger;
pub use super::permit::Permit;

/// The Lease's namespace. There is one Lease for a cluster, whichever namespace `--namespace` says the global catalogs are in: who writes
/// writes everywhere.
pub const NAMESPACE: &str = "olm";
/// The Lease's name.
pub const NAME: &str = "kubectl-olm-run";
/// Who asks whether the holder is still there; the holder takes it away when it answers.
const ASKED_BY: &str = "kubectl-olm/asked-by";
/// The holder of a Lease that was deleted, for those who have not seen who had it last.
const NOBODY_KNOWS: &str = "whoever held it before it was deleted";
/// So long after a question without an answer a Lease is anybody's. It is what others wait for when a holder was killed.
const DURATION: Duration = Duration::from_mins(1);
/// So long after it last looked its holder still writes: what is left of [`DURATION`] is for requests under way.
const VALID: Duration = Duration::from_secs(40);
/// How often the holder looks whether somebody asks, if no watch tells it before.
const LOOK: Duration = Duration::from_secs(20);
/// How often others look, and how soon a look that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// How long a request for the Lease may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the end may wait for answers to what was written.
const PATIENCE_FOR_ANSWERS: Duration = Duration::from_secs(1);
/// How long the end may wait for the release.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(3);

/// What a Lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty when it was released.
    pub holder: String,
    /// Since when.
    pub acquired: Option<Timestamp>,
    /// When the holder last said so. `None`: somebody else put it back after it was deleted, and may not have known who held it last.
    pub renewed: Option<Timestamp>,
    /// Who has asked since; empty when nobody did.
    pub asked_by: String,
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
            asked_by: object::annotation(lease, ASKED_BY).unwrap_or_default().to_owned(),
            duration: Duration::from_secs(number("leaseDurationSeconds").try_into().unwrap_or_default()),
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
        let (holder, asked_by, duration) = (String::new(), String::new(), Duration::from_secs(1));
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

    /// For how long it is held by a holder of whom nothing is heard.
    fn stands(&self) -> Duration {
        self.duration.max(DURATION)
    }

    /// Is it that of this holder, who has said so itself?
    fn is_of(&self, me: &str) -> bool {
        self.holder == me && self.renewed.is_some()
    }

    /// What `me` may do with it, who `holds` it or not. `seen` is when it was first seen to be like this, by the steady clock of `now`, if it
    /// was seen before: the times that it says itself are of another clock.
    fn next(&self, me: &str, holds: bool, seen: Option<Duration>, now: Duration) -> Next {
        let is_mine = self.is_of(me) || self.holder == me && holds;
        let has_stood = |duration| seen.is_some_and(|seen| seen + duration <= now);
        match (self.holder.as_str(), self.asked_by.is_empty()) {
            (_, true) if is_mine => Next::Keep,
            (holder, _) if holder.is_empty() || is_mine => Next::Take,
            (_, false) if has_stood(self.stands()) => Next::Take,
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
    /// The record of somebody else, and when it was first seen to be like this, by the steady clock.
    seen: Option<(Record, Duration)>,
    /// The record that was seen or written last.
    last: Option<Record>,
    until: watch::Sender<Option<Moment>>,
    ledger: Arc<Ledger>,
    clock: Clock,
}

impl Lease {
    /// The Lease of the cluster.
    pub async fn new(api: Api) -> Self {
        Self::with(api, Clock::system()).await
    }

    async fn with(api: Api, clock: Clock) -> Self {
        api.know(Resource::from(&kinds::LEASE)).await;
        let target = kinds::LEASE.object(NAMESPACE, NAME);
        let (seen, last, until) = (None, None, watch::Sender::new(None));
        Self { api, target, me: identity(), seen, last, until, ledger: Arc::default(), clock }
    }

    /// `NAMESPACE/NAME`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.target.namespace, self.target.name)
    }

    /// The right to write that comes with holding it.
    pub fn permit(&self) -> Permit {
        Permit::until(self.until.subscribe(), self.clock.clone(), self.ledger.clone())
    }

    /// Tries once to take or renew it.
    pub async fn claim(&mut self) -> Result<(), Denied> {
        // What is valid is so from before it was asked for.
        let now = self.clock.now();
        let answer = tokio::time::timeout(PATIENCE, self.attempt(now)).await;
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
            // What was valid stays so until its time has come.
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
            Next::Ask => Record { asked_by: self.me.clone(), ..record.clone() }.write(&mut new),
        }
        // Its resourceVersion lets only one of two win that find it free.
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

    /// Makes the Lease, where there is none. Who knows that there was one, and does not hold it, puts back what was there, and asks: whoever
    /// held it answers, or has its time to stop.
    async fn make(&mut self, now: Moment) -> Result<(), Denied> {
        let holds = self.permit().is_given();
        // Whoever comes first makes it: until that is known nothing is written.
        self.until.send_replace(None);
        let record = match self.last.clone() {
            Some(last) if !holds => {
                let is_known = !last.holder.is_empty() && last.holder != self.me;
                let holder = if is_known { last.holder } else { NOBODY_KNOWS.to_owned() };
                Record { holder, renewed: None, asked_by: self.me.clone(), duration: DURATION, ..last }
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
        let mut sights = Some(follow(&self.api, self.target.clone()));
        loop {
            // A clock that has jumped ends the permit early, and is no reason to wait.
            let pause_now = permit.rest().map_or_else(|| pause.min(RETRY), |rest| rest.min(pause));
            tokio::select! {
                () = tokio::time::sleep(pause_now) => {}
                () = changed(&mut sights) => {}
            }
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
        format!(
            "kubectl create namespace {NAMESPACE}: the cluster's Lease is there, whatever --namespace says; --no-lease goes without, if \
             nothing else writes"
        )
    }

    /// Lets it go, so that others need not wait. A write without an answer may still happen: then they wait as for a holder that does not
    /// answer.
    pub async fn release(&mut self) {
        self.until.send_replace(None);
        let settled = tokio::time::timeout(PATIENCE_FOR_ANSWERS, self.ledger.settled()).await;
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
                    Record { asked_by: self.me.clone(), ..record }
                };
                left.write(&mut lease);
                self.api.update(&lease, None).await?;
            }
            Ok::<_, Status>(())
        };
        let released = matches!(tokio::time::timeout(PATIENCE_AT_THE_END, released).await, Ok(Ok(())));
        if released && !is_settled {
            warn!(
                lease = self.name(),
                "a write was not answered and may still happen; whoever wants the Lease waits {} s",
                DURATION.as_secs()
            );
        }
        if !released {
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

/// Resolves when the Lease has changed. Who may not watch it looks at it from time to time.
async fn changed(sights: &mut Option<mpsc::UnboundedReceiver<Sight>>) {
    while let Some(open) = sights {
        match open.recv().await {
            Some(Ok(_)) => return,
            // What is in trouble is tried again.
            Some(Err(_)) => {}
            None => *sights = None,
        }
    }
    std::future::pending::<()>().await;
}

/// A name for this process that no other has: with its host, so that people find it.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::env::var("HOSTNAME"));
    let host = host.map_or_else(|_| "unknown-host".to_owned(), |host| host.trim().to_owned());
    let process = std::process::id();
    format!("{host}_{process}_{:08x}", RandomState::new().hash_one(process) & 0xffff_ffff)
}

#[cfg(test)]
mod tests;
