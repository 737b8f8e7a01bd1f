//! Certificates for the simulated cluster: well-formed, but with keys that are not usable.
//!
//! The DER is written here, because real certificates need randomness: equal requests produce equal certificates.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::api::hash::hex;
use crate::plan::{Certificate, Issued};

// ASN.1 tags.
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const UTF8: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;

// Object identifiers.
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// Issues a certificate with the contents of a real one, apart from keys and signatures.
pub(crate) fn issue(wanted: &Certificate) -> Issued {
    let seed = Sha256::digest(format!("{:?} {}", wanted.hosts, wanted.not_before.as_nanosecond()));
    let authority = hex(&seed[..8]);
    let authority = format!("olm-selfsigned-{authority}");
    let host = wanted.hosts.first().map_or("", String::as_str);
    Issued {
        certificate: certificate(wanted, &seed, &authority, host, &wanted.hosts),
        authority: certificate(wanted, &seed, &authority, &authority, &[]),
        key: pem("PRIVATE KEY", b"nothing is encrypted in a simulation"),
    }
}

fn certificate(wanted: &Certificate, seed: &[u8], issuer: &str, subject: &str, hosts: &[String]) -> String {
    let algorithm = der(SEQUENCE, &[der(OID, &[ECDSA_WITH_SHA256])]);
    let name = |text: &str| {
        let attribute = der(SEQUENCE, &[der(OID, &[COMMON_NAME]), der(UTF8, &[text])]);
        der(SEQUENCE, &[der(SET, &[attribute])])
    };
    let point = [[0x00, 0x04].as_slice(), seed, seed].concat();
    let key =
        der(SEQUENCE, &[der(SEQUENCE, &[der(OID, &[EC_PUBLIC_KEY]), der(OID, &[P256])]), der(BIT_STRING, &[point])]);
    let mut parts = vec![
        der(VERSION, &[der(INTEGER, &[[2]])]),
        der(INTEGER, &[[[1].as_slice(), &seed[..7]].concat()]),
        algorithm.clone(),
        name(issuer),
        der(SEQUENCE, &[time(wanted.not_before), time(wanted.not_after)]),
        name(subject),
        key,
    ];
    if !hosts.is_empty() {
        let names: Vec<Vec<u8>> = hosts.iter().map(|host| der(DNS_NAME, &[host])).collect();
        let extension = der(SEQUENCE, &[der(OID, &[ALTERNATIVE_NAMES]), der(OCTET_STRING, &[der(SEQUENCE, &names)])]);
        parts.push(der(EXTENSIONS, &[der(SEQUENCE, &[extension])]));
    }
    pem("CERTIFICATE", &der(SEQUENCE, &[der(SEQUENCE, &parts), algorithm, der(BIT_STRING, &[[0, 0]])]))
}

fn time(at: Timestamp) -> Vec<u8> {
    der(UTC_TIME, &[at.strftime("%y%m%d%H%M%SZ").to_string()])
}

/// Encodes a value: its tag, its length and its parts.
fn der(tag: u8, parts: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let content: Vec<u8> = parts.iter().flat_map(AsRef::as_ref).copied().collect();
    let length = content.len();
    let mut out = match length {
        0..0x80 => vec![tag, length as u8],
        0x80..0x100 => vec![tag, 0x81, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    out.extend(content);
    out
}

fn pem(label: &str, content: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(content))
}
