//! The pause before a refused action is retried.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::SignedDuration;

use crate::plan::Key;

/// The first pause.
const SHORTEST: SignedDuration = SignedDuration::from_millis(200);
/// The longest pause: a user who fixes the cause should not have to wait longer.
pub const LONGEST: SignedDuration = SignedDuration::from_secs(30);

/// Returns the pause after the `attempts`-th consecutive refusal: it doubles from 200 ms to 30 s, and is shortened by up to a quarter, so
/// that keys that failed together are not retried together. The jitter is a hash of key and attempt, so no randomness is needed.
pub fn pause(key: &Key, attempts: u32) -> SignedDuration {
    let doubled = SHORTEST.saturating_mul(1 << attempts.saturating_sub(1).min(10));
    let whole = doubled.min(LONGEST);
    let mut hasher = DefaultHasher::new();
    (key, attempts).hash(&mut hasher);
    let jitter = i32::try_from(hasher.finish() % 256).unwrap_or_default();
    whole - whole / 1024 * jitter
}
