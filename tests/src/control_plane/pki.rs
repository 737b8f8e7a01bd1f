//! The control plane's certificates and kubeconfigs: one certificate authority for the server, its clients and the front proxy.

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::json;

/// The certificate authority of one control plane.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

/// A certificate and its private key, in PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Result<Self> {
        let mut params = CertificateParams::new([]).context("authority")?;
        params.distinguished_name.push(DnType::CommonName, "olm-tests");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    /// Returns the authority's own certificate, in PEM.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the API server's identity, for loopback and for its name inside the cluster.
    pub(crate) fn server(&self) -> Result<Identity> {
        let names = ["127.0.0.1", "10.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
        let params = CertificateParams::new(names)?;
        self.issue(params, "kube-apiserver", ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Returns the client identity of `user`, in `group` if given and always in `system:authenticated`.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut params = CertificateParams::new([])?;
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        self.issue(params, user, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// Returns a private key and its public key, in PEM, which sign and verify ServiceAccount tokens.
    pub(crate) fn key_pair() -> Result<(String, String)> {
        let key = KeyPair::generate()?;
        Ok((key.serialize_pem(), key.public_key_pem()))
    }

    fn issue(&self, mut params: CertificateParams, name: &str, usage: ExtendedKeyUsagePurpose) -> Result<Identity> {
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer).with_context(|| format!("certificate of {name}"))?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// Returns a kubeconfig with which `client` connects to the server at `url`.
    pub(crate) fn kubeconfig(&self, url: &str, client: &Identity) -> Result<String> {
        let base64 = |text: &str| STANDARD.encode(text);
        Ok(serde_yaml::to_string(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority-data": base64(&self.certificate)}}],
            "users": [{"name": "test", "user": {
                "client-certificate-data": base64(&client.certificate),
                "client-key-data": base64(&client.key),
            }}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }))?)
    }
}
