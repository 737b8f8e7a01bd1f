//! Uids, generated names and addresses in the formats of Kubernetes, all derived from the seed.

use sha2::{Digest, Sha256};

/// The characters of generated names: no vowels, to avoid words, and no characters that are easily confused.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of the random part of a generated name.
const SUFFIX: usize = 5;
/// Longest base of a generated name: the whole stays a DNS label (63).
const LONGEST_BASE: usize = 63 - SUFFIX;

/// A source of ids: the n-th id is derived from the seed and n.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    seed: u64,
    count: u64,
}

impl Ids {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, count: 0 }
    }

    fn next(&mut self) -> [u8; 32] {
        self.count += 1;
        Sha256::new().chain_update(self.seed.to_be_bytes()).chain_update(self.count.to_be_bytes()).finalize().into()
    }

    /// Returns a version 4 UUID.
    pub(super) fn uid(&mut self) -> String {
        let mut bytes = self.next();
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = format!("{:032x}", bytes[..16].iter().fold(0_u128, |n, b| n << 8 | u128::from(*b)));
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// Returns five characters, as `generateName` appends them.
    pub(super) fn suffix(&mut self) -> String {
        letters(&self.next(), SUFFIX)
    }

    /// Returns a name for `generateName`.
    pub(super) fn name(&mut self, base: &str) -> String {
        let end = (0..=base.len().min(LONGEST_BASE)).rev().find(|end| base.is_char_boundary(*end)).unwrap_or_default();
        format!("{}{}", &base[..end], self.suffix())
    }

    /// Returns an address in 10.0.0.0/16, the range of Services, but never the first, which is the API server's.
    pub(super) fn service_address(&mut self) -> String {
        let bytes = self.next();
        format!("10.0.{}.{}", bytes[0], bytes[1].clamp(2, 254))
    }

    /// Returns a port in the range of node ports.
    pub(super) fn node_port(&mut self) -> u32 {
        let bytes = self.next();
        30_000 + (u32::from(bytes[0]) << 8 | u32::from(bytes[1])) % 2768
    }
}

fn letters(bytes: &[u8], count: usize) -> String {
    bytes.iter().take(count).map(|b| char::from(ALPHABET[usize::from(*b) % ALPHABET.len()])).collect()
}

/// Returns ten characters derived from the text, as in the names of ReplicaSets.
pub(super) fn hash(text: &str) -> String {
    letters(&Sha256::digest(text), 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_the_seed() {
        let (mut a, mut b, mut c) = (Ids::new(7), Ids::new(7), Ids::new(8));
        let uid = a.uid();
        assert_eq!(uid, b.uid());
        assert_ne!(uid, c.uid());
        assert_ne!(uid, a.uid());
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
    }

    #[test]
    fn generated_names_have_a_suffix_of_five_letters_and_are_labels() {
        let mut ids = Ids::new(1);
        let name = ids.name("install-");
        assert!(name.starts_with("install-") && name.len() == 13, "{name}");
        assert!(name[8..].bytes().all(|b| ALPHABET.contains(&b)), "{name}");
        assert_eq!(ids.name(&"x".repeat(80)).len(), 63);
    }
}
