//! Reads a catalog over gRPC, with one connection that is reestablished when it is lost, and the states that OLM reports.
//!
//! *Guarantees.* The catalog is read each time the connection becomes ready, and on [`Client::refresh`]. The last complete snapshot
//! is retained until a newer one was read. An open connection is not polled: it counts as lost when its socket is closed, when TCP
//! keep-alive fails, or when the caller calls [`Client::reconnect`].
//!
//! *Caveat.* The connection is plain text, as OLM's is.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hyper_util::rt::TokioIo;
use olm_core::budget::{CATALOG_MESSAGES, MESSAGE_BYTES};
use olm_core::catalog::{Builder, Snapshot};
pub use olm_core::world::ConnectionState;
use socket2::TcpKeepalive;
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint, Uri};

use super::convert;
use super::proto::registry_client::RegistryClient;
use super::proto::{GetPackageRequest, ListBundlesRequest};
use super::share::{Full, Share};
use crate::causes::innermost;

/// Limits and delays of a client.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Timeout of a connection attempt.
    pub connect_timeout: Duration,
    /// Timeout of reading the whole catalog; by default one minute, as in OLM.
    pub read_timeout: Duration,
    /// Pause after the first failed connection. It doubles after each further failure, up to `max_pause`.
    pub pause: Duration,
    /// Longest pause between two attempts.
    pub max_pause: Duration,
    /// Longest pause after the catalog exceeded a limit. An attempt is then expensive, and the next one will probably fail, too.
    pub max_pause_over_limit: Duration,
    /// Largest accepted message, in bytes. A message has one bundle with its objects.
    pub max_message: usize,
    /// Most bytes of memory for all messages of one catalog.
    pub max_catalog: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_mins(1),
            pause: Duration::from_millis(200),
            max_pause: Duration::from_secs(5),
            max_pause_over_limit: Duration::from_mins(5),
            max_message: MESSAGE_BYTES,
            max_catalog: CATALOG_MESSAGES,
        }
    }
}

/// The state of a client and its catalog.
#[derive(Clone, Debug)]
pub struct Observation {
    /// State of the connection.
    pub state: ConnectionState,
    /// Number of connections that were established.
    pub connections: u64,
    /// Number of attempts to read the catalog.
    pub reads: u64,
    /// The last complete content.
    pub snapshot: Option<Arc<Snapshot>>,
    /// The memory of the snapshot, if it is limited. It is given back when the last reference is dropped.
    pub share: Option<Arc<Share>>,
    /// The reason why there is no connection or no newer content, with OLM's text where OLM has one.
    pub error: Option<String>,
}

/// Detects an unreachable host within 20 seconds. TCP keep-alive is used because gRPC servers in Go, such as opm, close the connection
/// of clients that send HTTP/2 pings more often than every five minutes, or without a running request.
const KEEP_ALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(3)).with_retries(3);

/// An error of reading a catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The server refused the list of bundles.
    #[error("failed to list bundles: {0}")]
    List(String),
    /// The list ended with an error.
    #[error("error encountered while listing bundles: {0}")]
    Broken(String),
    /// The timeout has expired.
    #[error("the catalog was not read within {0:?}")]
    Timeout(Duration),
    /// The catalog exceeds [`Settings::max_catalog`].
    #[error("the catalog has more than {0} bytes of bundles and packages; divide it, or ask its author to check it")]
    TooLarge(usize),
    /// The catalog exceeds its share of the memory.
    #[error(transparent)]
    Full(#[from] Full),
}

impl ReadError {
    /// Returns whether the catalog exceeded a limit of size or time.
    fn is_over_limit(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::TooLarge(_) | Self::Full(_))
    }
}

/// An error of connecting.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    #[error("{address:?} is not an address of the form host:port: {source}")]
    Address { address: String, source: http::Error },
    #[error("{}", innermost(.0))]
    Failed(#[from] tonic::transport::Error),
}

/// A client of one catalog. Dropping it closes the connection.
#[derive(Debug)]
pub struct Client {
    observed: watch::Receiver<Observation>,
    refresh: Arc<Notify>,
    reconnect: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Client {
    /// Starts to connect to `host:port`. Must be called within a tokio runtime.
    pub fn start(address: &str, settings: Settings) -> Self {
        Self::start_sharing(address, settings, || None)
    }

    /// Does the same for a catalog whose memory is limited. `share` is called before each attempt to read the catalog.
    pub fn start_sharing(
        address: &str,
        settings: Settings,
        share: impl Fn() -> Option<Share> + Send + Sync + 'static,
    ) -> Self {
        let (state, snapshot, share_of_it, error) = (ConnectionState::Idle, None, None, None);
        let idle = Observation { state, connections: 0, reads: 0, snapshot, share: share_of_it, error };
        let (observations, observed) = watch::channel(idle);
        let (refresh, reconnect) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let connection = Connection {
            address: address.to_owned(),
            settings,
            observations,
            refresh: refresh.clone(),
            reconnect: reconnect.clone(),
            share: Box::new(share),
        };
        Self { observed, refresh, reconnect, task: tokio::spawn(connection.run()) }
    }

    /// Returns the current and the following observations.
    pub fn observe(&self) -> watch::Receiver<Observation> {
        self.observed.clone()
    }

    /// Requests that the catalog is read again, as soon as there is a connection.
    pub fn refresh(&self) {
        self.refresh.notify_one();
    }

    /// Reconnects without a pause. To be called when the server at the address has changed.
    pub fn reconnect(&self) {
        self.reconnect.notify_one();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Connection {
    address: String,
    settings: Settings,
    observations: watch::Sender<Observation>,
    refresh: Arc<Notify>,
    reconnect: Arc<Notify>,
    share: Box<dyn Fn() -> Option<Share> + Send + Sync>,
}

impl Connection {
    async fn run(self) {
        let Settings { pause: first_pause, max_pause, .. } = self.settings;
        let mut pause = first_pause;
        // The pause applies to the catalog, not to a connection.
        let mut over_limit = None;
        loop {
            self.state(ConnectionState::Connecting, None);
            let connected = tokio::select! {
                connected = connect(&self.address, &self.settings) => connected,
                () = self.reconnect.notified() => continue,
            };
            match connected {
                Ok((channel, lost)) => {
                    let since = Instant::now();
                    self.observations.send_modify(|o| o.connections += 1);
                    self.state(ConnectionState::Ready, None);
                    tokio::select! {
                        () = self.serve(channel, lost, &mut over_limit) => {}
                        () = self.reconnect.notified() => pause = Duration::ZERO,
                    }
                    self.state(ConnectionState::Idle, None);
                    if pause.is_zero() || since.elapsed() > max_pause {
                        pause = first_pause;
                        continue;
                    }
                    // Pauses, so that a server that closes connections immediately does not cause a loop.
                }
                Err(error) => self.state(ConnectionState::TransientFailure, Some(error.to_string())),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(max_pause),
                () = self.reconnect.notified() => pause = first_pause,
            }
        }
    }

    /// Reads the catalog until the connection is lost: once, after each refresh and after each failure. `over_limit` is the pause
    /// after the catalog exceeded a limit.
    async fn serve(&self, channel: Channel, mut lost: oneshot::Receiver<()>, over_limit: &mut Option<Duration>) {
        let mut pause = self.settings.pause;
        if let Some(pause) = *over_limit {
            tokio::select! {
                _ = &mut lost => return,
                () = self.refresh.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        loop {
            self.observations.send_modify(|o| o.reads += 1);
            let mut share = (self.share)();
            let read = tokio::select! {
                // The sender is dropped with the connection and never sends, so this is always an error.
                _ = &mut lost => return,
                read = read_sharing(channel.clone(), &self.settings, share.as_mut()) => read,
            };
            let failed = match &read {
                Ok(_) => {
                    *over_limit = None;
                    false
                }
                Err(e) if e.is_over_limit() => {
                    let longest = self.settings.max_pause_over_limit;
                    pause = over_limit.map_or(pause, |before| (before * 2).min(longest));
                    *over_limit = Some(pause);
                    true
                }
                Err(_) => true,
            };
            self.observe(read, share);
            tokio::select! {
                _ = &mut lost => return,
                () = self.refresh.notified() => {}
                () = tokio::time::sleep(pause), if failed => {}
            }
            pause = if failed { (pause * 2).min(self.settings.max_pause) } else { self.settings.pause };
        }
    }

    fn observe(&self, read: Result<Snapshot, ReadError>, share: Option<Share>) {
        let known = self.observations.borrow().snapshot.clone();
        let (news, error) = match read {
            // An equal snapshot is not replaced, because readers compare snapshots by identity.
            Ok(snapshot) => ((known.as_deref() != Some(&snapshot)).then(|| Arc::new(snapshot)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        self.observations.send_modify(|o| {
            if news.is_some() {
                o.share = share.map(Arc::new);
            }
            o.snapshot = news.or(known);
            o.error = error;
        });
    }

    fn state(&self, state: ConnectionState, error: Option<String>) {
        self.observations.send_modify(|o| {
            o.state = state;
            if error.is_some() || state == ConnectionState::Ready {
                o.error = error;
            }
        });
    }
}

/// Connects to an address. The receiver is closed when the connection is lost.
async fn connect(address: &str, settings: &Settings) -> Result<(Channel, oneshot::Receiver<()>), ConnectError> {
    let uri = Uri::builder()
        .scheme("http")
        .authority(address)
        .path_and_query("/")
        .build()
        .map_err(|source| ConnectError::Address { address: address.to_owned(), source })?;
    let (guard, lost) = oneshot::channel::<()>();
    let guard = Arc::new(std::sync::Mutex::new(Some(guard)));
    let target = address.to_owned();
    let connector = tower::service_fn(move |_: Uri| {
        // Each channel has one connection: a second attempt fails because the guard is already taken.
        let guard = guard.lock().ok().and_then(|mut guard| guard.take());
        let target = target.clone();
        async move {
            let guard = guard.ok_or_else(|| std::io::Error::other("the connection was lost"))?;
            let stream = TcpStream::connect(&target).await?;
            stream.set_nodelay(true)?;
            socket2::SockRef::from(&stream).set_tcp_keepalive(&KEEP_ALIVE)?;
            Ok::<_, std::io::Error>(TokioIo::new(Guarded { stream, _guard: guard }))
        }
    });
    let endpoint = Endpoint::from(uri).connect_timeout(settings.connect_timeout);
    let channel = endpoint.connect_with_connector(connector).await?;
    Ok((channel, lost))
}

/// Reads a whole catalog: first the list of bundles, then each package, as OLM's resolver does.
pub async fn read(channel: Channel, settings: &Settings) -> Result<Snapshot, ReadError> {
    read_sharing(channel, settings, None).await
}

async fn read_sharing(channel: Channel, settings: &Settings, share: Option<&mut Share>) -> Result<Snapshot, ReadError> {
    let timeout = settings.read_timeout;
    tokio::time::timeout(timeout, read_all(channel, settings, share)).await.map_err(|_| ReadError::Timeout(timeout))?
}

async fn read_all(channel: Channel, settings: &Settings, mut share: Option<&mut Share>) -> Result<Snapshot, ReadError> {
    // A message is received completely before its content is charged, so the memory of the largest message is reserved.
    if let Some(share) = &mut share {
        share.take(settings.max_message)?;
    }
    let mut client = RegistryClient::new(channel).max_decoding_message_size(settings.max_message);
    let mut builder = Builder::default();
    let mut packages = std::collections::BTreeSet::new();
    let mut size = 0_usize;
    let mut charge = |bytes: usize| {
        size = size.saturating_add(bytes);
        if size > settings.max_catalog {
            return Err(ReadError::TooLarge(settings.max_catalog));
        }
        share.as_mut().map_or(Ok(()), |share| share.take(bytes)).map_err(ReadError::Full)
    };
    let bundles = client.list_bundles(ListBundlesRequest {}).await;
    let mut bundles = bundles.map_err(|e| ReadError::List(e.message().to_owned()))?.into_inner();
    while let Some(bundle) = bundles.next().await {
        let bundle = bundle.map_err(|e| ReadError::Broken(e.message().to_owned()))?;
        charge(convert::size_of_bundle(&bundle))?;
        packages.insert(bundle.package_name.clone());
        builder.bundle(convert::message(bundle));
    }
    for name in packages {
        match client.get_package(GetPackageRequest { name: name.clone() }).await {
            Ok(package) => {
                let package = package.into_inner();
                charge(convert::size_of_package(&package))?;
                builder.package(convert::package_of(package));
            }
            // OLM also omits the package.
            Err(e) => {
                tracing::warn!("package {name} is omitted, because the catalog does not return it: {}", e.message());
            }
        }
    }
    if let Some(share) = share {
        share.give_back(settings.max_message);
    }
    Ok(builder.build())
}

/// A connection with a guard that is dropped when the connection is closed.
struct Guarded {
    stream: TcpStream,
    _guard: oneshot::Sender<()>,
}

mod guarded {
    //! Implementations of [`AsyncRead`] and [`AsyncWrite`] that delegate to the stream.

    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    use super::Guarded;

    impl AsyncRead for Guarded {
        fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(cx, buf)
        }
    }

    impl AsyncWrite for Guarded {
        fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.stream).poll_write(cx, buf)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(cx)
        }
    }
}
