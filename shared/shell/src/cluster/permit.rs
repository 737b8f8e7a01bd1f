//! The right to write, until a moment; and what was written with it of which nobody knows yet what became.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use olm_core::api::status::Status;
use tokio::sync::watch;

use super::clock::{Clock, Moment};

/// The right to write, for those who do.
#[derive(Clone, Debug)]
pub struct Permit(Option<(watch::Receiver<Option<Moment>>, Clock, Arc<Ledger>)>);

/// What the holder of a Lease has to know of what was done with it.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// How often it was taken from somebody else, or from nobody.
    terms: AtomicU64,
    /// Writes that were sent and are not answered.
    under_way: watch::Sender<usize>,
    /// When a write was last given up without an answer, by the steady clock.
    lost: Mutex<Option<Duration>>,
}

impl Ledger {
    /// The Lease was taken: others may have written before.
    pub(super) fn taken(&self) {
        self.terms.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until all writes that were sent are answered, or given up.
    pub(super) async fn settled(&self) {
        // The sender lives as long as this.
        drop(self.under_way.subscribe().wait_for(|under_way| *under_way == 0).await);
    }

    /// When a write was last given up without an answer.
    pub(super) fn lost(&self) -> Option<Duration> {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write that was sent.
#[derive(Debug)]
pub(super) struct Write {
    ledger: Arc<Ledger>,
    clock: Clock,
    is_answered: bool,
}

impl Write {
    /// It is known what became of it.
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
    /// For those who need no Lease.
    pub fn always() -> Self {
        Self(None)
    }

    pub(super) fn until(until: watch::Receiver<Option<Moment>>, clock: Clock, ledger: Arc<Ledger>) -> Self {
        Self(Some((until, clock, ledger)))
    }

    /// Is there a Lease, which is let go only when every write is answered?
    pub(super) fn is_of_lease(&self) -> bool {
        self.0.is_some()
    }

    /// How often the Lease was taken until now. What was seen before it was taken last may be older than what others wrote.
    pub(super) fn term(&self) -> u64 {
        self.0.as_ref().map_or(0, |(.., ledger)| ledger.terms.load(Ordering::Relaxed))
    }

    /// Takes note of a write that is sent now.
    pub(super) fn begin(&self) -> Option<Write> {
        let (_, clock, ledger) = self.0.as_ref()?;
        ledger.under_way.send_modify(|under_way| *under_way += 1);
        Some(Write { ledger: ledger.clone(), clock: clock.clone(), is_answered: false })
    }

    /// How long this process may still write; `None`: it may not.
    pub fn rest(&self) -> Option<Duration> {
        match &self.0 {
            None => Some(Duration::MAX),
            Some((until, clock, _)) => until.borrow().and_then(|until| clock.now().until(until)),
        }
    }

    /// May this process write now?
    pub fn is_given(&self) -> bool {
        self.rest().is_some()
    }

    /// A refusal when it may not.
    pub(super) fn require(&self) -> Result<(), Status> {
        let refusal = || Status::new(0, "NotTheWriter", "the Lease that lets this process write is lost");
        self.rest().map(drop).ok_or_else(refusal)
    }

    /// Resolves when the answer of [`Self::is_given`] may be another.
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
