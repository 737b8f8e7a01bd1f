//! A serving certificate and the CA that signed it, as in a Secret: their owner and their validity
//! (olm-behaviour/csv.md#certificates).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;

use crate::api::object;
use crate::plan::certificate::{self, AUTHORITY, AUTHORITY_HASH, CERTIFICATE};

/// Validity of CA and certificate.
pub(super) const LIFETIME: SignedDuration = SignedDuration::from_hours(730 * 24);
/// How long before their expiry they are renewed.
const MARGIN: SignedDuration = SignedDuration::from_hours(24);

/// The public part of a Secret with a serving certificate.
#[derive(Debug, PartialEq, Eq)]
pub struct ServingCertificate<'w> {
    /// The CA certificate as in webhooks and APIServices: PEM in base64.
    pub bundle: &'w str,
    /// Its hash, the value of `olmcahash`.
    pub hash: String,
    /// Since when both are valid.
    pub not_before: Timestamp,
    /// Until when both are valid.
    pub not_after: Timestamp,
    /// When they are renewed.
    pub rotates_at: Timestamp,
}

impl<'w> ServingCertificate<'w> {
    /// Reads them. `None` if they have to be created: a part is missing or unreadable, or the certificate is not of that CA
    /// or not for these hosts. The issuer's name identifies the CA, because CA names are random; clients verify signatures.
    pub(super) fn read(secret: &'w Value, hosts: &[String]) -> Option<Self> {
        let bundle = object::text(secret, &["data", AUTHORITY]);
        let pem = STANDARD.decode(bundle).ok()?;
        let authority = X509::read(&pem)?;
        let serving = X509::read(&STANDARD.decode(object::text(secret, &["data", CERTIFICATE])).ok()?)?;
        let hash = certificate::authority_hash(std::str::from_utf8(&pem).ok()?);
        let good = serving.issuer == authority.subject
            && hosts.iter().all(|host| serving.hosts.contains(host))
            && object::annotation(secret, AUTHORITY_HASH).is_none_or(|recorded| recorded == hash);
        let not_after = authority.not_after.min(serving.not_after);
        good.then_some(Self {
            bundle,
            hash,
            not_before: authority.not_before.max(serving.not_before),
            not_after,
            rotates_at: not_after.checked_sub(MARGIN).unwrap_or(not_after),
        })
    }

    /// Returns whether they have to be renewed.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        now >= self.rotates_at || now < self.not_before
    }
}

/// The fields that are read from a certificate.
struct X509 {
    subject: Vec<u8>,
    issuer: Vec<u8>,
    not_before: Timestamp,
    not_after: Timestamp,
    hosts: Vec<String>,
}

impl X509 {
    fn read(pem: &[u8]) -> Option<Self> {
        let (_, pem) = parse_x509_pem(pem).ok()?;
        let certificate = pem.parse_x509().ok()?;
        let hosts = certificate.subject_alternative_name().ok()?.map_or_else(Vec::new, |names| {
            let dns = |name: &GeneralName<'_>| match name {
                GeneralName::DNSName(name) => Some((*name).to_owned()),
                _ => None,
            };
            names.value.general_names.iter().filter_map(dns).collect()
        });
        Some(Self {
            subject: certificate.subject().as_raw().to_vec(),
            issuer: certificate.issuer().as_raw().to_vec(),
            not_before: Timestamp::from_second(certificate.validity().not_before.timestamp()).ok()?,
            not_after: Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()?,
            hosts,
        })
    }
}
