//! The right to write, until a moment.

use std::time::Duration;

use olm_core::api::status::Status;
use tokio::sync::watch;

use super::clock::{Clock, Moment};

/// The right to write, for those who do.
#[derive(Clone, Debug)]
pub struct Permit(Option<(watch::Receiver<Option<Moment>>, Clock)>);

impl Permit {
    /// For those who need no Lease.
    pub fn always() -> Self {
        Self(None)
    }

    pub(super) fn until(until: watch::Receiver<Option<Moment>>, clock: Clock) -> Self {
        Self(Some((until, clock)))
    }

    /// How long this process may still write; `None`: it may not.
    pub fn rest(&self) -> Option<Duration> {
        match &self.0 {
            None => Some(Duration::MAX),
            Some((until, clock)) => until.borrow().and_then(|until| clock.now().until(until)),
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
            Some((until, _)) => until.changed().await.is_ok(),
            None => false,
        };
        if !changed {
            std::future::pending::<()>().await;
        }
    }
}
