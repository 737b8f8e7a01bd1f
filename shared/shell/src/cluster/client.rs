//! The HTTP client of commands: all requests share one connection.
//!
//! `kube::Client` uses HTTP/1.1, so each concurrent request needs a connection with a TLS handshake. This client negotiates HTTP/2, as
//! kubectl does, and connects once:
//!
//! ```text
//!   request --> pool: is there a connection? --yes--> a stream of it
//!                 no --> SerialConnector: connects; other requests wait, and get a stream of the new connection from the pool
//!                           the server does not know HTTP/2: they connect, too, as kube::Client does
//! ```

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::client::{Body, ConfigExt};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tower::{BoxError, Service, ServiceBuilder};

/// The target under which `kube::Client` logs requests, methods and addresses, and so does this client.
pub(crate) const REQUESTS: &str = "kube_client::client::builder";

/// When an idle connection is checked, and how long the response may take, as in kubectl.
const IDLE: Duration = Duration::from_secs(30);
const PING: Duration = Duration::from_secs(15);

/// How long a request waits for the pool to hand it another request's connection before it connects itself. The pool does so at once.
const HAND_OVER: Duration = Duration::from_secs(1);

/// Returns a client of the API server for a command that sends several requests. Callers limit the time of their requests: of the limits
/// of the configuration only that of connecting applies.
///
/// # Errors
/// The configuration is invalid.
pub(crate) fn client(config: kube::Config) -> Result<kube::Client, kube::Error> {
    let is_secure = config.cluster_url.scheme_str() == Some("https");
    if !is_secure || config.proxy_url.is_some() {
        return kube::Client::try_from(config);
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    // A small request must not wait for the acknowledgement of the handshake.
    tcp.set_nodelay(true);
    let mut tls = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_only();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone());
        let name = name.map_err(|error| kube::Error::Service(format!("invalid TLS server name: {error}").into()))?;
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let connector = SerialConnector::new(
        tls.enable_all_versions().wrap_connector(tcp),
        config.connect_timeout.unwrap_or(Duration::MAX),
    );
    let http = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(IDLE)
        .http2_keep_alive_timeout(PING)
        .build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_request(|request: Request<Body>| {
            tracing::debug!(target: REQUESTS, method = %request.method(), url = %request.uri(), "requesting");
            request
        })
        .map_err(BoxError::from)
        .service(http);
    Ok(kube::Client::new(service, config.default_namespace))
}

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// Requests share a connection.
    Http2,
    /// Each concurrent request needs a connection. This is also assumed of a server that accepted none.
    Http1,
}

/// Connects one by one, as long as it is unknown whether a connection can be shared.
#[derive(Clone)]
struct SerialConnector<C> {
    connector: C,
    /// The limit of a connection, including the time to wait for another one.
    limit: Duration,
    /// Locked while a request connects that others wait for.
    protocol: Arc<Mutex<Option<Protocol>>>,
}

impl<C> SerialConnector<C> {
    fn new(connector: C, limit: Duration) -> Self {
        Self { connector, limit, protocol: Arc::default() }
    }
}

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

impl Service<Uri> for SerialConnector<HttpsConnector<HttpConnector>> {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (connecting, protocol, limit) = (self.connector.call(to), self.protocol.clone(), self.limit);
        Box::pin(async move {
            let connected = tokio::time::timeout(limit, connect_serially(connecting, &protocol)).await;
            connected.map_err(|_| BoxError::from(io::Error::from(io::ErrorKind::TimedOut)))?
        })
    }
}

/// Connects while no other request does, unless the server is known to need a connection for each.
async fn connect_serially(
    connecting: impl Future<Output = Result<Stream, BoxError>>,
    protocol: &Mutex<Option<Protocol>>,
) -> Result<Stream, BoxError> {
    let mut known = match protocol.try_lock() {
        Ok(known) => known,
        Err(_) => {
            let known = protocol.lock().await;
            if *known == Some(Protocol::Http2) {
                drop(known);
                tokio::time::sleep(HAND_OVER).await;
                protocol.lock().await
            } else {
                known
            }
        }
    };
    if *known == Some(Protocol::Http1) {
        drop(known);
        return connecting.await;
    }
    let connected = connecting.await;
    let is_http2 = connected.as_ref().is_ok_and(|stream| stream.connected().is_negotiated_h2());
    *known = Some(if is_http2 { Protocol::Http2 } else { Protocol::Http1 });
    connected
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use http::Response;
    use hyper::body::Incoming;
    use hyper::server::conn::{http1, http2};
    use hyper::service::service_fn;
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// A server with these protocols. Returns how to connect to it, and the number of its TLS connections.
    async fn server(protocols: &[&[u8]]) -> (kube::Config, Arc<AtomicUsize>) {
        crate::tls::install_crypto_provider();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let tls = rustls::ServerConfig::builder().with_no_client_auth();
        let mut tls = tls.with_single_cert(vec![certificate.der().clone()], private).unwrap();
        tls.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let (acceptor, connections) = (TlsAcceptor::from(Arc::new(tls)), Arc::<AtomicUsize>::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counter = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, counter) = (acceptor.clone(), counter.clone());
                tokio::spawn(async move {
                    let stream = acceptor.accept(stream).await.unwrap();
                    counter.fetch_add(1, Ordering::SeqCst);
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    let echo = service_fn(|request: Request<Incoming>| async move {
                        Ok::<_, Infallible>(Response::new(request.uri().path().to_owned()))
                    });
                    let stream = TokioIo::new(stream);
                    if is_http2 {
                        http2::Builder::new(TokioExecutor::new()).serve_connection(stream, echo).await.ok();
                    } else {
                        http1::Builder::new().serve_connection(stream, echo).await.ok();
                    }
                });
            }
        });
        let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
        config.root_cert = Some(vec![certificate.der().to_vec()]);
        config.tls_server_name = Some("localhost".to_owned());
        (config, connections)
    }

    /// Sends concurrent requests, and returns the number of connections.
    async fn connections(protocols: &[&[u8]]) -> usize {
        let (config, connections) = server(protocols).await;
        let client = client(config).unwrap();
        let requests = (0..20).map(|n| {
            let (client, path) = (client.clone(), format!("/request/{n}"));
            async move {
                let request = Request::get(&path).body(Vec::new()).unwrap();
                assert_eq!(client.request_text(request).await.unwrap(), path);
            }
        });
        join_all(requests).await;
        connections.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn concurrent_requests_share_one_connection() {
        assert_eq!(connections(&[b"h2", b"http/1.1"]).await, 1);
    }

    #[tokio::test]
    async fn a_server_without_http2_gets_a_connection_for_each_concurrent_request() {
        assert!(connections(&[b"http/1.1"]).await > 1);
        assert!(connections(&[]).await > 1);
    }

    #[tokio::test]
    async fn a_server_that_does_not_accept_is_reported_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (mut config, _) = server(&[]).await;
        config.cluster_url = format!("https://{}", listener.local_addr().unwrap()).parse().unwrap();
        config.connect_timeout = Some(Duration::from_millis(300));
        let client = client(config).unwrap();
        let began = std::time::Instant::now();
        let requests = (0..5).map(|_| client.request_text(Request::get("/").body(Vec::new()).unwrap()));
        let answers = join_all(requests).await;
        assert!(answers.iter().all(Result::is_err));
        assert!(began.elapsed() < Duration::from_secs(5), "the requests wait at the same time");
    }
}
