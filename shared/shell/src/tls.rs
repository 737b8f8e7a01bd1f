//! The TLS provider of the process.

/// Installs ring as the TLS provider of the process. Calling it twice has no effect.
pub fn install_crypto_provider() {
    // An error means that a provider is already installed.
    rustls::crypto::ring::default_provider().install_default().ok();
}
