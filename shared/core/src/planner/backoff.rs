//! How long to wait before a refused action is tried again.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::SignedDuration;

use crate::plan::Key;

/// The first pause.
const SHORTEST: SignedDuration = SignedDuration::from_millis(200);
/// The longest pause: a person who mends the cause should not have to wait longer.
pub const LONGEST: SignedDuration = SignedDuration::from_secs(30);

/// The pause after the `attempts`-th refusal in a row: doubling from 200 ms to 30 s, shortened by up to a quarter so that
/// keys that failed together do not try again together. The jitter is a hash of key and attempt: no randomness is needed.
pub fn pause(key: &Key, attempts: u32) -> SignedDuration {
    let doubled = SHORTEST.saturating_mul(1 << attempts.saturating_sub(1).min(10));
    let whole = doubled.min(LONGEST);
    let mut hasher = DefaultHasher::new();
    (key, attempts).hash(&mut hasher);
    let jitter = i32::try_from(hasher.finish() % 256).unwrap_or_default();
    whole - whole / 1024 * jitter
}
