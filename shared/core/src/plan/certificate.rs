//! Serving certificates: a plan says which, whoever executes it makes them. Private keys are never part of a plan or of the World.

use jiff::Timestamp;

use crate::api::hash::sha256_hex;

/// In a Secret of OLM's: the certificate of the authority that signed the serving certificate; its key is kept nowhere.
pub const AUTHORITY: &str = "olmCAKey";
/// In a Secret: the serving certificate.
pub const CERTIFICATE: &str = "tls.crt";
/// In a Secret: the key of the serving certificate.
pub const KEY: &str = "tls.key";
/// Annotation of such a Secret, and of the pods that serve with it: which authority signed.
pub const AUTHORITY_HASH: &str = "olmcahash";

/// A serving certificate that is to be made, and with it an authority of its own to sign it (olm-behaviour/csv.md#certificates).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// DNS names that it is for; the first is its common name.
    pub hosts: Vec<String>,
    /// From when on both are valid.
    pub not_before: Timestamp,
    /// Until when.
    pub not_after: Timestamp,
}

/// A certificate that was made, in PEM. What is secret in it cannot be printed: there is no `Debug`.
pub struct Issued {
    /// The authority's certificate.
    pub authority: String,
    /// The serving certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// What `olmcahash` says of an authority's certificate: the SHA-256 of its PEM, in hex.
pub fn authority_hash(pem: &str) -> String {
    sha256_hex(pem)
}
