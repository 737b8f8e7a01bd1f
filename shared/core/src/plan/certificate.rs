//! Serving certificates: a plan says which, whoever executes it makes them. Private keys are never part of a plan or of the World.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Action;
use crate::api::object;

/// In a Secret of OLM's: the certificate of the authority that signed the serving certificate; its key is kept nowhere.
pub const AUTHORITY: &str = "olmCAKey";
/// In a Secret: the serving certificate.
pub const CERTIFICATE: &str = "tls.crt";
/// In a Secret: the key of the serving certificate.
pub const KEY: &str = "tls.key";
/// Annotation of such a Secret, and of the pods that serve with it: which authority signed.
pub const AUTHORITY_HASH: &str = "olmcahash";

/// A serving certificate that is to be made, and with it an authority of its own to sign it (reference/olm-operator.md §3.1).
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

impl Issued {
    /// The action with the certificate in its Secret. It is for the API server's eyes only.
    pub fn complete(self, action: &Action) -> Action {
        let mut action = action.clone();
        if let Action::Create(secret) | Action::Update(secret) = &mut action {
            object::set_annotation(secret, AUTHORITY_HASH, &authority_hash(&self.authority));
            let data = object::map_mut(secret, &["data"]);
            for (key, pem) in [(AUTHORITY, self.authority), (CERTIFICATE, self.certificate), (KEY, self.key)] {
                data.insert(key.to_owned(), Value::from(STANDARD.encode(pem)));
            }
        }
        action
    }
}

/// What `olmcahash` says of an authority's certificate: the SHA-256 of its PEM, in hex.
pub fn authority_hash(pem: &str) -> String {
    format!("{:x}", Sha256::digest(pem.as_bytes()))
}
