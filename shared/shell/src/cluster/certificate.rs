//! Serving certificates as OLM issues them: ECDSA on P-256, each signed by its own authority whose key is discarded at once
//! (olm-behaviour/csv.md#certificates).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use olm_core::plan::{Certificate, Issued};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, Error, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SerialNumber, date_time_ymd,
};
use sha2::{Digest, Sha256};

/// The organization in OLM's certificates.
const ORGANIZATION: &str = "Red Hat, Inc.";

/// Issues an authority and a certificate.
pub(crate) fn issue(wanted: &Certificate) -> Result<Issued, Error> {
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

/// Returns the base64-encoded certificate of a throwaway authority that passes the validation of an API server. It must not be stored.
pub(crate) fn any_authority() -> String {
    let now = Timestamp::now();
    let wanted = Certificate { hosts: Vec::new(), not_before: now, not_after: now };
    issue(&wanted).map(|issued| STANDARD.encode(issued.authority)).unwrap_or_default()
}

/// Returns the parameters that both certificates share. The serial number is derived from the random key; it is positive and fits in 63
/// bits.
fn params(wanted: &Certificate, key: &KeyPair, hosts: Vec<String>) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name.push(DnType::OrganizationName, ORGANIZATION);
    let date = |at: Timestamp| date_time_ymd(1970, 1, 1) + Duration::from_secs(at.as_second().unsigned_abs());
    params.not_before = date(wanted.not_before);
    params.not_after = date(wanted.not_after);
    let mut serial = Sha256::digest(key.public_key_pem())[..8].to_vec();
    serial[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from(serial));
    Ok(params)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::crypto::ring;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
    use rustls::{RootCertStore, ServerConfig};

    use super::*;

    #[test]
    fn the_authority_verifies_the_server_for_its_hosts_and_validity() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let later: Timestamp = "2028-11-20T12:00:00Z".parse().unwrap();
        let hosts = ["gate-service.garden", "gate-service.garden.svc"].map(str::to_owned).to_vec();
        let Issued { authority, certificate, key } =
            issue(&Certificate { hosts, not_before: now, not_after: later }).unwrap();
        let provider = Arc::new(ring::default_provider());
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(der(&authority)).unwrap();
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
        let trusts = |host: &str, second: i64| {
            let name = ServerName::try_from(host.to_owned()).unwrap();
            let at = UnixTime::since_unix_epoch(Duration::from_secs(second.unsigned_abs()));
            verifier.verify_server_cert(&der(&certificate), &[], &name, &[], at).is_ok()
        };
        let (from, until) = (now.as_second(), later.as_second());
        assert!(trusts("gate-service.garden.svc", from) && trusts("gate-service.garden", until));
        assert!(!trusts("gate-service.field.svc", from), "another host");
        assert!(!trusts("gate-service.garden.svc", from - 1) && !trusts("gate-service.garden.svc", until + 1));
        // This fails if the key belongs to another certificate.
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        config.with_no_client_auth().with_single_cert(vec![der(&certificate)], key).unwrap();
    }
}
