//! The permit to write until a deadline, and the writes under it whose results are unknown.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use olm_core::api::status::Status;
use tokio::sync::watch;

use super::clock::{Clock, Moment};

/// The permit to write.
#[derive(Clone, Debug)]
pub struct Permit(Option<(watch::Receiver<Option<Moment>>, Clock, Arc<Ledger>)>);

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
        Self(None)
    }

    pub(super) fn until(until: watch::Receiver<Option<Moment>>, clock: Clock, ledger: Arc<Ledger>) -> Self {
        Self(Some((until, clock, ledger)))
    }

    /// Returns whether the permit comes from a Lease, which is released only when every write has a response.
    pub(super) fn is_of_lease(&self) -> bool {
        self.0.is_some()
    }

    /// Returns how often the Lease was acquired so far. Observations before the last acquisition may be older than writes of other
    /// processes.
    pub(super) fn term(&self) -> u64 {
        self.0.as_ref().map_or(0, |(.., ledger)| ledger.terms.load(Ordering::Relaxed))
    }

    /// Records a write that is sent now.
    pub(super) fn begin(&self) -> Option<Write> {
        let (_, clock, ledger) = self.0.as_ref()?;
        ledger.under_way.send_modify(|under_way| *under_way += 1);
        Some(Write { ledger: ledger.clone(), clock: clock.clone(), is_answered: false })
    }

    /// Returns how long the permit is still valid; `None` if it is not.
    pub fn rest(&self) -> Option<Duration> {
        match &self.0 {
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
        let refusal = || Status::new(0, "NotTheWriter", "not sent because the Lease is lost");
        self.rest().map(drop).ok_or_else(refusal)
    }

    /// Resolves when the result of [`Self::is_given`] may have changed.
    pub async fn changed(&mut self) {
        let changed = match &mut self.0 {
            Some((until, ..)) => until.changed().await.is_ok(),
            None => false,
        };
        if !changed {
            std::future::pending::<()>().await;
        }
    }
}
