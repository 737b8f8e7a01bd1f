//! The TLS provider of this process.

/// Makes ring the TLS provider of this process; calling it twice is harmless.
pub fn install_crypto_provider() {
    // An error says that a provider is installed already.
    rustls::crypto::ring::default_provider().install_default().ok();
}
