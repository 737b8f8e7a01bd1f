//! How much memory and disk space the catalogs of tenants may take together.
//!
//! *Guarantees*: all together never have more than there is, and nobody keeps others from having any: an owner may have as much as is
//! left for others. So one owner alone gets half of it, each of two gets a third, and so on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use olm_core::budget::{TENANTS_FILES, TENANTS_MEMORY};
use tokio::sync::Notify;

/// Memory and disk space for the catalogs of all namespaces but the global one.
#[derive(Clone, Debug)]
pub struct Quota {
    memory: Pool,
    disk: Pool,
}

/// What one catalog has taken of a [`Quota`].
#[derive(Debug)]
pub struct Shares {
    /// Of the memory.
    pub memory: Share,
    /// Of the disk.
    pub disk: Share,
}

impl Quota {
    /// The limits of [`olm_core::budget`], of which nothing is taken yet.
    pub fn new() -> Self {
        Self { memory: Pool::new(TENANTS_MEMORY, "memory"), disk: Pool::new(TENANTS_FILES, "disk space") }
    }

    /// The shares of the next catalog of a namespace, of which it has taken nothing yet.
    pub fn shares(&self, namespace: &str) -> Shares {
        Shares { memory: self.memory.share(namespace), disk: self.disk.share(namespace) }
    }
}

impl Default for Quota {
    fn default() -> Self {
        Self::new()
    }
}

/// An amount of something that several owners share.
#[derive(Clone, Debug)]
struct Pool {
    most: usize,
    what: &'static str,
    used: Arc<Mutex<BTreeMap<String, usize>>>,
    /// Wakes those who wait for something to be given back.
    freed: Arc<Notify>,
}

/// What an owner wants is more than its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the catalogs of its namespace take more than their share of the {most} bytes of {what} that tenants' catalogs have together"
)]
pub struct Full {
    /// How much all have together.
    pub most: usize,
    /// Of what.
    pub what: &'static str,
}

impl Pool {
    /// So many bytes, of which nobody has any yet.
    fn new(most: usize, what: &'static str) -> Self {
        Self { most, what, used: Arc::default(), freed: Arc::default() }
    }

    /// The share of an owner's next catalog, of which it has taken nothing yet.
    fn share(&self, owner: &str) -> Share {
        Share { pool: self.clone(), owner: owner.to_owned(), taken: 0 }
    }
}

/// What one catalog has taken. It is given back when this is dropped.
#[derive(Debug)]
pub struct Share {
    pool: Pool,
    owner: String,
    taken: usize,
}

impl Share {
    /// Takes so much more.
    ///
    /// # Errors
    /// Less than that is left for others.
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

    /// Takes so much as soon as others, and other catalogs of the same owner, leave it.
    ///
    /// # Errors
    /// They do not within that time.
    pub async fn reserve(&mut self, bytes: usize, within: Duration) -> Result<(), Full> {
        let freed = self.pool.freed.clone();
        let deadline = tokio::time::Instant::now() + within;
        loop {
            // What is given back between the two lines wakes it, too.
            let mut next = std::pin::pin!(freed.notified());
            next.as_mut().enable();
            let taken = self.take(bytes);
            if taken.is_ok() || tokio::time::timeout_at(deadline, next).await.is_err() {
                return taken;
            }
        }
    }

    /// Gives so much back.
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
        assert_eq!(pool.share("a").take(1), Err(full), "also in another catalog");
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
    async fn who_waits_gets_what_is_given_back() {
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
    fn all_together_never_have_more_than_there_is() {
        let pool = Pool::new(1 << 20, "memory");
        let mut shares: Vec<Share> = (0..50).map(|n| pool.share(&format!("owner-{}", n % 10))).collect();
        for round in 0..100 {
            for share in &mut shares {
                // Who gets none asks again.
                let _ = share.take(1 << (round % 16));
            }
            assert!(pool.used.lock().unwrap().values().sum::<usize>() < 1 << 20);
        }
        assert!(pool.share("late").take(1000).is_ok());
    }
}
