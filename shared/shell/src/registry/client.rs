//! Reads a catalog over gRPC: one connection that is made again whenever it is lost, with the states that OLM reports.
//!
//! *Guarantees.* Each time the connection becomes ready, and on [`Client::refresh`], the catalog is read anew; the last
//! snapshot that was read whole stays until there is a newer one. Nothing is polled while the connection stands: it is known
//! to be lost when its socket is closed or answers no keep-alive of TCP, or when somebody who knows says so ([`Client::reconnect`]).
//!
//! *Caveat.* The connection is plain-text, as OLM's is.

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
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// How long reading the whole catalog may take; a minute, as in OLM.
    pub read_timeout: Duration,
    /// Pause after the first failed connection; it doubles up to `max_pause`.
    pub pause: Duration,
    /// Longest pause between two attempts.
    pub max_pause: Duration,
    /// Longest pause after the catalog exceeded a limit. Reading it costs as much as the limit allows, and the next attempt
    /// will most likely end in the same way.
    pub max_pause_over_limit: Duration,
    /// Largest message that is accepted, in bytes: one bundle with its objects.
    pub max_message: usize,
    /// Most bytes of all messages that are read of one catalog, with what they take in memory.
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

/// What a client sees of its catalog.
#[derive(Clone, Debug)]
pub struct Observation {
    /// State of the connection.
    pub state: ConnectionState,
    /// How many connections were made until now.
    pub connections: u64,
    /// How often the catalog was asked for until now.
    pub reads: u64,
    /// The last content that was read whole.
    pub snapshot: Option<Arc<Snapshot>>,
    /// The memory that it has taken, for as long as it is kept.
    pub share: Option<Arc<Share>>,
    /// Why there is no connection or no newer content, in OLM's words where it has some.
    pub error: Option<String>,
}

/// A host that is gone is noticed in twenty seconds. It is TCP that asks: servers in Go, as opm is, hang up on clients that ping over HTTP/2
/// more often than every five minutes, or without a request under way.
const KEEP_ALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(3)).with_retries(3);

/// Why a catalog could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The server refused the list of bundles.
    #[error("failed to list bundles: {0}")]
    List(String),
    /// The list broke off.
    #[error("error encountered while listing bundles: {0}")]
    Broken(String),
    /// It took too long.
    #[error("the catalog was not read within {0:?}")]
    Timeout(Duration),
    /// The catalog carries more than the client keeps.
    #[error(
        "the catalog has more than {0} bytes of bundles and packages; divide it, or ask its author what it contains"
    )]
    TooLarge(usize),
    /// Others need the memory.
    #[error(transparent)]
    Full(#[from] Full),
}

impl ReadError {
    /// Did the catalog exceed a limit of size or time?
    fn is_over_limit(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::TooLarge(_) | Self::Full(_))
    }
}

/// Why there is no connection.
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
    /// Begins to connect to `host:port`. Must be called within a tokio runtime.
    pub fn start(address: &str, settings: Settings) -> Self {
        Self::start_sharing(address, settings, || None)
    }

    /// The same, of a catalog whose memory is limited by what others have: `share` is asked for before each time that it is read.
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

    /// What the client sees, now and from now on.
    pub fn observe(&self) -> watch::Receiver<Observation> {
        self.observed.clone()
    }

    /// Asks for the catalog to be read again, now or as soon as there is a connection.
    pub fn refresh(&self) {
        self.refresh.notify_one();
    }

    /// Connects anew, without a pause: who serves at the address is somebody else now.
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
        // It holds for the catalog, over whichever connection it is read.
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
                    // A server that hangs up at once must not be dialled in a loop.
                }
                Err(error) => self.state(ConnectionState::TransientFailure, Some(error.to_string())),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(max_pause),
                () = self.reconnect.notified() => pause = first_pause,
            }
        }
    }

    /// Reads the catalog, again whenever asked to or when that failed, until the connection is lost. `over_limit`: the pause since it
    /// exceeded a limit.
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
                // The sender is dropped with the connection, so this is an error always.
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
            // An equal snapshot is no news to those who compare by identity.
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

/// A connection, and a channel that is closed when the connection is.
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
        // One connection for one channel: a second attempt finds the guard taken and fails.
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

/// Reads a whole catalog: the list of bundles, then each package, as OLM's resolver does.
pub async fn read(channel: Channel, settings: &Settings) -> Result<Snapshot, ReadError> {
    read_sharing(channel, settings, None).await
}

async fn read_sharing(channel: Channel, settings: &Settings, share: Option<&mut Share>) -> Result<Snapshot, ReadError> {
    let timeout = settings.read_timeout;
    tokio::time::timeout(timeout, read_all(channel, settings, share)).await.map_err(|_| ReadError::Timeout(timeout))?
}

async fn read_all(channel: Channel, settings: &Settings, mut share: Option<&mut Share>) -> Result<Snapshot, ReadError> {
    // A message is there as a whole before it is known what is in it.
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
            // OLM leaves the package out as well.
            Err(e) => tracing::warn!("package {name}: the catalog does not describe it: {}", e.message()),
        }
    }
    if let Some(share) = share {
        share.give_back(settings.max_message);
    }
    Ok(builder.build())
}

/// A connection that takes its guard along when it is closed.
struct Guarded {
    stream: TcpStream,
    _guard: oneshot::Sender<()>,
}

mod guarded {
    //! Reading and writing, passed through.

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
