//! Hashes as text: SHA-256 in hexadecimal digits, and the hashes that OLM uses in names and labels.
//!
//! All hashes of OLM except [`gvk_hash`] are the base 62 digits of a SHA-224: of Go's JSON encoding of a value
//! ([`deep_hash`], [`plain_hash`]) or of a text ([`text_hash`]). Source: olm-behaviour/processes.md#hashes-and-names.

use serde_json::Value;
use sha2::{Digest, Sha224, Sha256};

use super::go_json::GoType;
use super::object::Gvk;

/// Returns bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns OLM's DeepHash: of the Go JSON encoding and a newline. Used for `olm.deployment-spec-hash`, `olm.pod-spec-hash`,
/// webhook descriptions, and the hashes in the names of Roles.
pub fn deep_hash(go_type: GoType, value: &Value) -> String {
    text_hash(&(go_type.encode(value) + "\n"))
}

/// Returns the hash of the Go JSON encoding without a newline: `olm.permissions.hash`.
pub fn plain_hash(go_type: GoType, value: &Value) -> String {
    text_hash(&go_type.encode(value))
}

/// Returns the base 62 digits of the SHA-224 of a text.
pub fn text_hash(text: &str) -> String {
    base62(&Sha224::digest(text.as_bytes()))
}

/// Returns a big-endian number in base 62, digits `0-9a-zA-Z`, without leading zeros.
pub fn base62(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut number = bytes.to_vec();
    let mut digits = Vec::new();
    while number.iter().any(|b| *b != 0) {
        let mut remainder = 0_usize;
        for byte in &mut number {
            let part = remainder * 256 + usize::from(*byte);
            *byte = (part / 62) as u8;
            remainder = part % 62;
        }
        digits.push(char::from(DIGITS[remainder]));
    }
    if digits.is_empty() {
        digits.push('0');
    }
    digits.into_iter().rev().collect()
}

/// Returns the 64-bit FNV-1a hash of a text in lower-case hexadecimal digits, without padding.
pub fn fnv64a(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:x}")
}

/// Returns the hash of a provided API in labels of ClusterRoles: of `Kind.version.group`.
pub fn gvk_hash(Gvk { group, version, kind }: &Gvk) -> String {
    fnv64a(&format!("{kind}.{version}.{group}"))
}

/// Returns a name of the form `base-hash`.
///
/// The base is truncated to a total of 63 characters only when base and hash without the dash exceed 63: a sum of exactly
/// 63 gives a name of 64 characters, as in OLM (olm-behaviour/processes.md#hashes-and-names).
pub fn generate_name(base: &str, hash: &str) -> String {
    const MAX: usize = 63;
    let keep = if base.len() + hash.len() > MAX { MAX.saturating_sub(hash.len() + 1) } else { base.len() };
    format!("{}-{hash}", &base[..base.floor_char_boundary(keep)])
}

#[cfg(test)]
mod tests;
