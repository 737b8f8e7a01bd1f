//! Serving certificates: a plan describes them, and the executor of the plan issues them. Private keys are never part of a plan or of the
//! World.

use jiff::Timestamp;

use crate::api::hash::sha256_hex;

/// Key of a Secret: the certificate of the authority that signed the serving certificate. The authority's private key is not stored.
pub const AUTHORITY: &str = "olmCAKey";
/// Key of a Secret: the serving certificate.
pub const CERTIFICATE: &str = "tls.crt";
/// Key of a Secret: the private key of the serving certificate.
pub const KEY: &str = "tls.key";
/// Annotation of such a Secret, and of the Pods that use it: the hash of the authority's certificate.
pub const AUTHORITY_HASH: &str = "olmcahash";

/// A serving certificate to issue, signed by a new authority of its own (olm-behaviour/csv.md#certificates).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// DNS names of the certificate; the first is its common name.
    pub hosts: Vec<String>,
    /// Start of the validity of both certificates.
    pub not_before: Timestamp,
    /// End of the validity of both certificates.
    pub not_after: Timestamp,
}

/// An issued certificate, in PEM. It does not implement `Debug`, so that the private key is not printed.
pub struct Issued {
    /// The authority's certificate.
    pub authority: String,
    /// The serving certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// Returns the value of `olmcahash` for an authority's certificate: the SHA-256 of its PEM, in hex.
pub fn authority_hash(pem: &str) -> String {
    sha256_hex(pem)
}
