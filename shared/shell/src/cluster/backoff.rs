//! Exponential backoff before an operation that failed or ended is retried, for the watches of controllers and of commands.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

/// The first pause.
const SHORTEST: Duration = Duration::from_millis(500);
/// The longest pause: after the cause is fixed, a user does not wait longer.
const LONGEST: Duration = Duration::from_secs(10);
/// An operation that ran this long counts as successful and resets the backoff. It is longer than [`LONGEST`], so that an operation that
/// fails soon after each start does not count.
const LASTS: Duration = Duration::from_mins(1);

/// The pauses of one task.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    since: Instant,
}

impl Backoff {
    /// Creates a backoff with the shortest pause next.
    pub(crate) fn new() -> Self {
        Self { next: SHORTEST, since: Instant::now() }
    }

    /// Returns the next pause. It doubles each time, up to 10 s, less a random quarter at most, so that operations that failed together are
    /// not retried together.
    pub(crate) fn next(&mut self) -> Duration {
        self.next_at(Instant::now())
    }

    fn next_at(&mut self, now: Instant) -> Duration {
        if now.duration_since(self.since) >= LASTS {
            self.next = SHORTEST;
        }
        let whole = self.next;
        self.next = (whole * 2).min(LONGEST);
        let jitter = u32::try_from(RandomState::new().hash_one(0) % 256).unwrap_or_default();
        let pause = whole.saturating_sub(whole / 1024 * jitter);
        self.since = now + pause;
        pause
    }

    /// Resets the backoff after a success: the next pause is the shortest.
    pub(crate) fn reset(&mut self) {
        self.next = SHORTEST;
    }

    /// Sleeps for the next pause.
    pub(crate) async fn pause(&mut self) {
        let pause = self.next();
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pauses_double_up_to_a_bound_until_something_lasts() {
        let mut backoff = Backoff::new();
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..20 {
            let pause = backoff.next_at(now);
            pauses.push(pause);
            // It fails again after five seconds.
            now += pause + Duration::from_secs(5);
        }
        let whole = (0..20).map(|n| (SHORTEST * (1 << n.min(8))).min(LONGEST));
        for (pause, whole) in pauses.iter().zip(whole) {
            assert!(*pause <= whole && *pause + Duration::from_millis(1) >= whole / 4 * 3, "{pause:?} of {whole:?}");
        }
        assert!(pauses.iter().collect::<std::collections::BTreeSet<_>>().len() > 10, "there is jitter: {pauses:?}");
        let in_all: Duration = pauses.iter().sum();
        assert!(in_all > Duration::from_mins(2), "twenty failures are bounded: {in_all:?}");
        assert!(backoff.next_at(now + LASTS) <= SHORTEST);
    }
}
