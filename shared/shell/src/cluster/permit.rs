//! The permit to write: until a deadline, except during pauses. Records the writes under it whose results are unknown.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use olm_core::api::status::Status;
use tokio::sync::watch;

use super::clock::{Clock, Moment};

/// The permit to write.
#[derive(Clone, Debug, Default)]
pub struct Permit {
    /// The validity of the Lease, for processes that hold one.
    lease: Option<(watch::Receiver<Option<Moment>>, Clock, Arc<Ledger>)>,
    pause: Option<watch::Receiver<Pause>>,
}

/// An interval in which a process must not write, also if it holds the Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// The reason; `None` while the process may write.
    why: Option<String>,
    /// How often it has begun.
    count: u64,
}

impl Pause {
    /// Begins a pause, or replaces its reason.
    pub(crate) fn begin(&mut self, why: String) {
        self.count += u64::from(self.why.is_none());
        self.why = Some(why);
    }

    /// Ends the pause.
    pub(crate) fn end(&mut self) {
        self.why = None;
    }

    /// Returns the reason of the current pause.
    pub(crate) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

/// The writes of a holder of a Lease.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// How often the Lease was acquired, from another holder or free.
    terms: AtomicU64,
    /// The number of writes in flight.
    under_way: watch::Sender<usize>,
    /// When a write was last abandoned without a response, on the monotonic clock.
    lost: Mutex<Option<Duration>>,
}

impl Ledger {
    /// Records that the Lease was acquired: other processes may have written before.
    pub(super) fn taken(&self) {
        self.terms.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until every write has a response or was abandoned.
    pub(super) async fn settled(&self) {
        // The sender lives as long as `self`.
        drop(self.under_way.subscribe().wait_for(|under_way| *under_way == 0).await);
    }

    /// Returns when a write was last abandoned without a response.
    pub(super) fn lost(&self) -> Option<Duration> {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write in flight.
#[derive(Debug)]
pub(super) struct Write {
    ledger: Arc<Ledger>,
    clock: Clock,
    is_answered: bool,
}

impl Write {
    /// Records that the result of the write is known.
    pub(super) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        if !self.is_answered {
            *self.ledger.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.clock.now().steady);
        }
        self.ledger.under_way.send_modify(|under_way| *under_way -= 1);
    }
}

impl Permit {
    /// Returns a permit that is always valid, for processes that need no Lease.
    pub fn always() -> Self {
        Self::default()
    }

    pub(super) fn until(until: watch::Receiver<Option<Moment>>, clock: Clock, ledger: Arc<Ledger>) -> Self {
        Self { lease: Some((until, clock, ledger)), pause: None }
    }

    /// Returns the same permit, which is not valid during these pauses.
    pub(crate) fn with_pauses(self, pause: watch::Receiver<Pause>) -> Self {
        Self { pause: Some(pause), ..self }
    }

    /// Returns the reason of the current pause.
    pub(crate) fn paused(&self) -> Option<String> {
        self.pause.as_ref().and_then(|pause| pause.borrow().why.clone())
    }

    /// Returns whether the permit comes from a Lease, which is released only when every write has a response.
    pub(super) fn is_of_lease(&self) -> bool {
        self.lease.is_some()
    }

    /// Returns how often another process may have written so far: before the Lease was acquired, and in pauses. Earlier observations may be
    /// older than those writes.
    pub(super) fn term(&self) -> u64 {
        let acquired = self.lease.as_ref().map_or(0, |(.., ledger)| ledger.terms.load(Ordering::Relaxed));
        acquired + self.pause.as_ref().map_or(0, |pause| pause.borrow().count)
    }

    /// Records a write that is sent now.
    pub(super) fn begin(&self) -> Option<Write> {
        let (_, clock, ledger) = self.lease.as_ref()?;
        ledger.under_way.send_modify(|under_way| *under_way += 1);
        Some(Write { ledger: ledger.clone(), clock: clock.clone(), is_answered: false })
    }

    /// Returns how long the permit is still valid; `None` if it is not. The result of a write that is sent before a pause begins is
    /// awaited.
    pub fn rest(&self) -> Option<Duration> {
        if self.pause.as_ref().is_some_and(|pause| pause.borrow().why.is_some()) {
            return None;
        }
        match &self.lease {
            None => Some(Duration::MAX),
            Some((until, clock, _)) => until.borrow().and_then(|until| clock.now().until(until)),
        }
    }

    /// Returns whether this process may write now.
    pub fn is_given(&self) -> bool {
        self.rest().is_some()
    }

    /// Returns a refusal if this process may not write now.
    pub(super) fn require(&self) -> Result<(), Status> {
        if self.is_given() {
            return Ok(());
        }
        let why = self.paused().unwrap_or_else(|| "the Lease is lost".to_owned());
        Err(Status::new(0, "NotTheWriter", format!("not sent because {why}")))
    }

    /// Resolves when the result of [`Self::is_given`] may have changed.
    pub async fn changed(&mut self) {
        let Self { lease, pause } = self;
        let lease = async {
            match lease {
                Some((until, ..)) => until.changed().await.is_ok(),
                None => false,
            }
        };
        let pause = async {
            match pause {
                Some(pause) => pause.changed().await.is_ok(),
                None => false,
            }
        };
        tokio::select! {
            true = lease => {}
            true = pause => {}
            else => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_write_is_sent_in_a_pause_and_a_new_term_begins_with_it() {
        let pauses = watch::Sender::new(Pause::default());
        let mut permit = Permit::always().with_pauses(pauses.subscribe());
        assert!(permit.is_given() && permit.term() == 0 && permit.paused().is_none());
        pauses.send_modify(|pause| pause.begin("another process writes".to_owned()));
        permit.changed().await;
        assert_eq!(permit.require().unwrap_err().message, "not sent because another process writes");
        assert_eq!((permit.rest(), permit.term()), (None, 1));
        pauses.send_modify(|pause| pause.begin("others write".to_owned()));
        assert_eq!((permit.paused().as_deref(), permit.term()), (Some("others write"), 1));
        pauses.send_modify(Pause::end);
        permit.changed().await;
        assert!(permit.is_given() && permit.term() == 1);
        pauses.send_modify(|pause| pause.begin("again".to_owned()));
        assert_eq!(permit.term(), 2);
        // Without pauses and Leases it does not change.
        drop(pauses);
        let unchanged = tokio::time::timeout(Duration::from_millis(20), async {
            permit.changed().await;
            permit.changed().await;
        });
        assert!(unchanged.await.is_err());
    }
}
