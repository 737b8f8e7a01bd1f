//! Limits of the memory and disk space that the catalogs of tenants take.
//!
//! *Guarantees.* The sum never exceeds the limit, and no owner can take everything: an owner may take as much as it leaves for
//! others. A single owner gets at most half, each of two owners a third, each of three a quarter.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use olm_core::budget::{TENANTS_FILES, TENANTS_MEMORY};
use tokio::sync::Notify;

/// Memory and disk space for the catalogs of all namespaces except the global one.
#[derive(Clone, Debug)]
pub struct Quota {
    memory: Pool,
    disk: Pool,
}

/// The parts of a [`Quota`] that one catalog has taken.
#[derive(Debug)]
pub struct Shares {
    /// The share of the memory.
    pub memory: Share,
    /// The share of the disk space.
    pub disk: Share,
}

impl Quota {
    /// Returns an unused quota with the limits of [`olm_core::budget`].
    pub fn new() -> Self {
        Self { memory: Pool::new(TENANTS_MEMORY, "memory"), disk: Pool::new(TENANTS_FILES, "disk space") }
    }

    /// Returns empty shares for the next catalog of a namespace.
    pub fn shares(&self, namespace: &str) -> Shares {
        Shares { memory: self.memory.share(namespace), disk: self.disk.share(namespace) }
    }
}

impl Default for Quota {
    fn default() -> Self {
        Self::new()
    }
}

/// An amount of a resource that several owners share.
#[derive(Clone, Debug)]
struct Pool {
    most: usize,
    what: &'static str,
    used: Arc<Mutex<BTreeMap<String, usize>>>,
    /// Wakes waiting tasks when a part is given back.
    freed: Arc<Notify>,
}

/// An owner has requested more than its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the catalogs of its namespace take more than their share of the {most} bytes of {what} for the catalogs of all tenants"
)]
pub struct Full {
    /// The limit for all owners, in bytes.
    pub most: usize,
    /// The name of the resource.
    pub what: &'static str,
}

impl Pool {
    /// Returns an unused pool of `most` bytes.
    fn new(most: usize, what: &'static str) -> Self {
        Self { most, what, used: Arc::default(), freed: Arc::default() }
    }

    /// Returns an empty share for an owner's next catalog.
    fn share(&self, owner: &str) -> Share {
        Share { pool: self.clone(), owner: owner.to_owned(), taken: 0 }
    }
}

/// The part that one catalog has taken. It is given back when the share is dropped.
#[derive(Debug)]
pub struct Share {
    pool: Pool,
    owner: String,
    taken: usize,
}

impl Share {
    /// Takes `bytes` more.
    ///
    /// # Errors
    /// The owner would then have more than it leaves for others.
    pub fn take(&mut self, bytes: usize) -> Result<(), Full> {
        let mut used = self.pool.used.lock().unwrap_or_else(PoisonError::into_inner);
        let all = used.values().fold(bytes, |all, used| all.saturating_add(*used));
        let own = used.get(&self.owner).copied().unwrap_or_default().saturating_add(bytes);
        let Pool { most, what, .. } = self.pool;
        if own > most.saturating_sub(all) {
            return Err(Full { most, what });
        }
        used.insert(self.owner.clone(), own);
        self.taken += bytes;
        Ok(())
    }

    /// Takes `bytes` more, and waits up to `within` until other catalogs have given back enough.
    ///
    /// # Errors
    /// The bytes are not available within this time.
    pub async fn reserve(&mut self, bytes: usize, within: Duration) -> Result<(), Full> {
        let freed = self.pool.freed.clone();
        let deadline = tokio::time::Instant::now() + within;
        loop {
            // Registers first, so that bytes that are given back after `take` wake the task.
            let mut next = std::pin::pin!(freed.notified());
            next.as_mut().enable();
            let taken = self.take(bytes);
            if taken.is_ok() || tokio::time::timeout_at(deadline, next).await.is_err() {
                return taken;
            }
        }
    }

    /// Gives back `bytes`, at most the bytes that were taken.
    pub fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.taken);
        if bytes == 0 {
            return;
        }
        self.taken -= bytes;
        let mut used = self.pool.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = used.get_mut(&self.owner) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                used.remove(&self.owner);
            }
        }
        drop(used);
        self.pool.freed.notify_waiters();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_may_have_as_much_as_is_left() {
        let pool = Pool::new(1200, "memory");
        let full = Full { most: 1200, what: "memory" };
        let mut first = pool.share("a");
        assert_eq!(first.take(600), Ok(()));
        assert_eq!(pool.share("a").take(1), Err(full), "for another catalog of the owner");
        let mut second = pool.share("b");
        assert_eq!((second.take(300), second.take(1)), (Ok(()), Err(full)));
        first.give_back(200);
        assert_eq!((second.take(100), first.take(1).is_err()), (Ok(()), true));
        drop(first);
        assert_eq!((second.take(200), second.take(1).is_err()), (Ok(()), true));
        drop(second);
        assert_eq!((pool.share("c").take(usize::MAX).is_err(), pool.used.lock().unwrap().len()), (true, 0));
    }

    #[tokio::test]
    async fn a_waiting_catalog_gets_the_bytes_that_are_given_back() {
        let pool = Pool::new(1000, "disk space");
        let mut first = pool.share("a");
        first.take(500).unwrap();
        let mut second = pool.share("a");
        let full = Full { most: 1000, what: "disk space" };
        assert_eq!(second.reserve(300, Duration::ZERO).await, Err(full));
        let waiting = tokio::spawn(async move { second.reserve(300, Duration::from_hours(1)).await });
        tokio::task::yield_now().await;
        first.give_back(400);
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }

    #[test]
    fn the_sum_never_exceeds_the_limit() {
        let pool = Pool::new(1 << 20, "memory");
        let mut shares: Vec<Share> = (0..50).map(|n| pool.share(&format!("owner-{}", n % 10))).collect();
        for round in 0..100 {
            for share in &mut shares {
                // Some are refused, and try again in the next round.
                let _ = share.take(1 << (round % 16));
            }
            assert!(pool.used.lock().unwrap().values().sum::<usize>() < 1 << 20);
        }
        assert!(pool.share("late").take(1000).is_ok());
    }
}
