//! Serving certificates as OLM makes them: ECDSA on P-256, each signed by an authority of its own whose key is forgotten at once
//! (reference/olm-operator.md §3.1).

use std::time::Duration;

use jiff::Timestamp;
use olm_core::plan::{Certificate, Issued};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, Error, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SerialNumber, date_time_ymd,
};
use sha2::{Digest, Sha256};

/// What OLM's certificates say they are of.
const ORGANIZATION: &str = "Red Hat, Inc.";

/// Makes an authority and a certificate.
pub(super) fn issue(wanted: &Certificate) -> Result<Issued, Error> {
    let authority_key = KeyPair::generate()?;
    let mut authority = params(wanted, &authority_key, Vec::new())?;
    let serial: String =
        authority.serial_number.iter().flat_map(SerialNumber::to_bytes).map(|b| format!("{b:02x}")).collect();
    authority.distinguished_name.push(DnType::CommonName, format!("olm-selfsigned-{}", serial.trim_start_matches('0')));
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let key = KeyPair::generate()?;
    let mut serving = params(wanted, &key, wanted.hosts.clone())?;
    serving.distinguished_name.push(DnType::CommonName, wanted.hosts.first().map_or("", String::as_str));
    serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = serving.signed_by(&key, &Issuer::new(authority, authority_key))?.pem();
    Ok(Issued { authority: authority_pem, certificate, key: key.serialize_pem() })
}

/// What both have in common. The serial number is as random as the key that it is taken from; it is positive and fits in 63 bits.
fn params(wanted: &Certificate, key: &KeyPair, hosts: Vec<String>) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name.push(DnType::OrganizationName, ORGANIZATION);
    let date = |at: Timestamp| date_time_ymd(1970, 1, 1) + Duration::from_secs(at.as_second().unsigned_abs());
    params.not_before = date(wanted.not_before);
    params.not_after = date(wanted.not_after);
    let mut serial = Sha256::digest(key.public_key_der())[..8].to_vec();
    serial[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from(serial));
    Ok(params)
}
