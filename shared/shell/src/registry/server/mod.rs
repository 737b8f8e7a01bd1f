//! Serves a [`Snapshot`] over gRPC, as `opm serve` serves a catalog (olm-behaviour/opm.md#registry-protocol,
//! olm-behaviour/opm.md#serving-a-catalog).
//!
//! ```text
//!   connections   accepts connections: limits, TLS    greeting   deadline for the preface of HTTP/2
//!   metrics       counts requests; error messages for unknown methods
//!   service       api.Registry                        others     api.ExperimentalRegistry, health
//! ```
//!
//! *Guarantees.* A new snapshot is used for the next request; running responses continue with the old one. The connection of a
//! client that sends no, too much or invalid data is closed, without an effect on other clients.

mod connections;
mod greeting;
mod metrics;
mod others;
mod service;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use metrics::Metrics;
use olm_core::catalog::Snapshot;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tonic_health::pb::health_server::HealthServer;

use self::others::{AlwaysServing, Experimental};
use self::service::Service;
use super::Error;
use super::proto::DESCRIPTORS;
use super::proto::experimental_registry_server::ExperimentalRegistryServer;
use super::proto::registry_server::RegistryServer;
use crate::tls::install_crypto_provider;

/// Options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Certificate chain and key, both PEM. Without them, connections are plain text, as OLM's are.
    pub tls: Option<(Vec<u8>, Vec<u8>)>,
    /// Most open connections; further connections are closed immediately.
    pub connections: usize,
    /// Most open connections from one address.
    pub connections_of_peer: usize,
    /// Timeout of the TLS handshake, and afterwards of the preface and settings of HTTP/2.
    pub handshake_timeout: Duration,
    /// Longest time for running responses to end when the server stops.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tls: None,
            connections: 1024,
            connections_of_peer: 128,
            handshake_timeout: Duration::from_secs(10),
            grace: Duration::from_secs(2),
        }
    }
}

/// Most concurrent requests of one connection.
const REQUESTS: u32 = 100;
/// Largest request, in bytes. The largest request has three names.
const LARGEST_REQUEST: usize = 64 << 10;
/// Largest list of headers, in bytes.
const LARGEST_HEADERS: u32 = 16 << 10;
/// Interval of HTTP/2 keep-alive pings on an idle connection, and timeout of the acknowledgement.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// A running server. Dropping it stops it immediately.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    grace: Duration,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Server {
    /// Listens on an address (port 0 selects a free port) and serves the channel's newest snapshot as plain text.
    pub async fn start(address: SocketAddr, snapshots: watch::Receiver<Snapshot>) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Self::on(listener, snapshots, Options::default(), Metrics::default()).map_err(io::Error::other)
    }

    /// Serves on a listener. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The certificate or the key is invalid.
    pub fn on(
        listener: TcpListener,
        snapshots: watch::Receiver<Snapshot>,
        options: Options,
        metrics: Metrics,
    ) -> Result<Self, Error> {
        let address = listener.local_addr()?;
        let acceptor = options.tls.as_ref().map(|(chain, key)| acceptor(chain, key)).transpose()?;
        let incoming = connections::accept(listener, acceptor, &options, metrics.clone());
        let (stop, stopped) = oneshot::channel();
        let registry = RegistryServer::new(Service { snapshots: snapshots.clone() });
        let experimental = ExperimentalRegistryServer::new(Experimental { snapshots });
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET)
                .include_reflection_service(false)
        };
        let broken = |e: tonic_reflection::server::Error| io::Error::other(e);
        let serving = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(KEEP_ALIVE.0))
            .http2_keepalive_timeout(Some(KEEP_ALIVE.1))
            .max_concurrent_streams(REQUESTS)
            .concurrency_limit_per_connection(REQUESTS as usize)
            .http2_max_header_list_size(LARGEST_HEADERS)
            .layer(metrics)
            .add_service(registry.max_decoding_message_size(LARGEST_REQUEST))
            .add_service(experimental.max_decoding_message_size(LARGEST_REQUEST))
            .add_service(HealthServer::new(AlwaysServing))
            .add_service(reflection().build_v1().map_err(broken)?)
            .add_service(reflection().build_v1alpha().map_err(broken)?)
            .serve_with_incoming_shutdown(incoming, async {
                // A dropped sender stops the server as well.
                let _ = stopped.await;
            });
        Ok(Self { address, grace: options.grace, stop: Some(stop), task: tokio::spawn(serving) })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more requests, waits for running responses up to the grace period of the options, and stops.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if tokio::time::timeout(self.grace, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns a TLS acceptor with this certificate, for HTTP/2 only.
fn acceptor(chain: &[u8], key: &[u8]) -> Result<TlsAcceptor, Error> {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    install_crypto_provider();
    type Source = Box<dyn std::error::Error + Send + Sync>;
    let refused = |what| move |source: Source| Error::Certificate { what, source };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(Source::from)
        .map_err(refused("certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(Source::from).map_err(refused("key"))?;
    let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    let mut config = config.map_err(Source::from).map_err(refused("certificate and key"))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
