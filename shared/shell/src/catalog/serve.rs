//! `kubectl olm catalog serve`: catalogs over gRPC, read again when they change.
//!
//! *Guarantees.* The old content is served until the new is ready; content that cannot be read changes nothing. A broken package
//! is left out and told of, the others are served.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use jiff::Timestamp;
use notify::Watcher;
use olm_core::catalog::{Loaded, Snapshot};
use olm_core::finding::Finding;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::source::{Held, Ref, Source};
use crate::cli::signal::stopped;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::image;
use crate::listener::http;
use crate::registry::server::{self, Metrics, Server};

/// Files are read when they have not changed for so long: whoever writes them may not be done.
const QUIET: Duration = Duration::from_millis(300);
/// How often files are looked at, where their changes are not told: network drives, and folders that were replaced.
pub const SCAN: Duration = Duration::from_secs(10);

/// Folders in folders that are looked at for changes; links may lead in circles.
const DEEPEST: usize = 32;

/// What to serve, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to serve, taken together as one catalog.
    pub refs: Vec<Ref>,
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// Files with certificate chain and key, for TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Where to serve Prometheus' metrics.
    pub metrics: Option<SocketAddr>,
    /// How often the registry is asked whether an image's tag has moved; zero: never.
    pub poll: Duration,
    /// How often files are looked at, besides being told of changes: [`SCAN`].
    pub scan: Duration,
    /// How long running answers may take when the server stops.
    pub grace: Duration,
    /// How images are pulled.
    pub images: image::Options,
}

/// Serves until the process is told to stop.
///
/// # Errors
/// A source cannot be read at all, or it cannot listen.
pub fn serve(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| CliError::new(ErrorKind::Internal, format!("cannot start: {e}")))?;
    let ended = runtime.block_on(async {
        // Whoever says stop in between is heard, too.
        let mut stop = pin!(stopped());
        let serving = tokio::select! {
            serving = Serving::start(options) => serving?,
            () = &mut stop => return Ok(Outcome::Done),
        };
        for finding in serving.findings() {
            printer.warn(finding);
        }
        printer.talk(format_args!("serving {} at {}", serving.summary(), serving.address()));
        stop.await;
        serving.stop().await;
        Ok(Outcome::Done)
    });
    // A pull that is under way must not hold up the end.
    runtime.shutdown_background();
    ended
}

/// A server, and what keeps its content fresh. Dropping it ends both.
#[derive(Debug)]
pub struct Serving {
    server: Server,
    metrics: Option<SocketAddr>,
    snapshots: watch::Receiver<Snapshot>,
    findings: Vec<Finding>,
    tasks: Vec<Task>,
}

#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Serving {
    /// Takes the port, reads everything, and serves then: whoever connects before is answered when the content is there.
    ///
    /// # Errors
    /// A source cannot be read at all, or it cannot listen.
    pub async fn start(options: &Options) -> Result<Self, CliError> {
        let refs = options.refs.clone();
        if refs.is_empty() {
            return Err(
                CliError::usage("there is nothing to serve").hint("name a directory, an image or an OCI layout")
            );
        }
        if refs.contains(&Ref::Stdin) {
            return Err(CliError::usage("standard input cannot be served: it can be read once only"));
        }
        let file = |path: &PathBuf| std::fs::read(path).map_err(|e| CliError::from(e).at(path.display()));
        let tls = match &options.tls {
            Some((chain, key)) => Some((file(chain)?, file(key)?)),
            None => None,
        };
        let listener = listen(options.address).await?;
        let counts = Metrics::default();
        let mut tasks = Vec::new();
        let metrics = match options.metrics {
            Some(address) => {
                let listener = listen(address).await?;
                let bound = listener.local_addr()?;
                tasks.push(Task(tokio::spawn(serve_metrics(listener, counts.clone()))));
                Some(bound)
            }
            None => None,
        };
        let mut keeper = Keeper {
            refs,
            images: options.images.clone(),
            versions: Vec::new(),
            counts: counts.clone(),
            held: Held::default(),
        };
        // Before the content, so that what changes meanwhile is read again.
        keeper.versions = keeper.read_versions().await;
        let (load, held) = load(&keeper.refs, &keeper.images).await?;
        let Loaded { snapshot, findings, set_aside } = load;
        counts.loaded(&snapshot, set_aside.len(), now());
        keeper.held = held;
        let (sender, snapshots) = watch::channel(snapshot);
        let settings = server::Options { tls, grace: options.grace, ..server::Options::default() };
        let server = Server::on(listener, snapshots.clone(), settings, counts)?;
        tasks.push(Task(tokio::spawn(keeper.keep(sender, options.poll, options.scan))));
        Ok(Self { server, metrics, snapshots, findings, tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Where metrics are served.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// What is served, now and from now on.
    pub fn snapshots(&self) -> watch::Receiver<Snapshot> {
        self.snapshots.clone()
    }

    /// What was wrong with the content when it was first read.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How much is served, for people.
    pub fn summary(&self) -> String {
        let snapshot = self.snapshots.borrow();
        let bundles: std::collections::BTreeSet<_> = snapshot.entries().map(|e| (&e.package, &e.name)).collect();
        let several = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        format!("{} with {}", several(snapshot.packages().len(), "package"), several(bundles.len(), "bundle"))
    }

    /// Lets running answers end, and closes.
    pub async fn stop(self) {
        drop(self.tasks);
        self.server.stop().await;
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, CliError> {
    let refused = |e: std::io::Error| {
        CliError::new(ErrorKind::Io, format!("cannot listen: {e}")).at(address).hint("choose another port with --port")
    };
    TcpListener::bind(address).await.map_err(refused)
}

async fn serve_metrics(listener: TcpListener, counts: Metrics) {
    let text = async move || ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0")], counts.text());
    let router = Router::new().route("/metrics", get(text)).route("/healthz", get(async || "ok"));
    http::serve(listener, router).await;
}

/// Reads everything as one catalog.
async fn load(refs: &[Ref], images: &image::Options) -> Result<(Loaded, Held), CliError> {
    let (refs, images) = (refs.to_vec(), images.clone());
    blocking(move || {
        let (catalog, held) = Source::read(&refs, &images)?.into_parts();
        Ok((catalog.load(), held))
    })
    .await?
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, CliError> {
    tokio::task::spawn_blocking(work).await.map_err(|e| CliError::new(ErrorKind::Internal, e.to_string()))
}

/// The files that tell of changes when they change; none for an image in a registry.
fn watched(named: &Ref) -> Option<PathBuf> {
    match named {
        Ref::Directory(path) | Ref::File(path) => Some(path.clone()),
        Ref::Layout(path) => Some(path.join("index.json")),
        Ref::Stdin | Ref::Image(_) | Ref::CatalogSource(_) | Ref::Address(_) => None,
    }
}

/// What changes when the content does: sizes and times of files, or a digest.
async fn version(named: &Ref, images: &image::Options) -> Result<String, CliError> {
    match (named, watched(named)) {
        (_, Some(path)) => blocking(move || format!("{:x}", fingerprint(&path))).await,
        (Ref::Image(reference), None) => image::resolve(&reference.parse()?, images).await,
        (_, None) => Ok(String::new()),
    }
}

/// A hash of the names, sizes and times of all files below a path, links followed.
fn fingerprint(path: &Path) -> u64 {
    fn add(path: &Path, depth: usize, hasher: &mut DefaultHasher) {
        path.hash(hasher);
        let Ok(metadata) = path.metadata() else { return };
        (metadata.len(), metadata.modified().ok()).hash(hasher);
        if metadata.is_dir() && depth < DEEPEST {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            let sorted: BTreeSet<PathBuf> = entries.map(|e| e.path()).collect();
            for entry in &sorted {
                add(entry, depth + 1, hasher);
            }
        }
    }
    let mut hasher = DefaultHasher::new();
    add(path, 0, &mut hasher);
    hasher.finish()
}

/// Seconds since 1970.
fn now() -> f64 {
    Timestamp::now().as_duration().as_secs_f64()
}

/// Keeps content fresh.
struct Keeper {
    refs: Vec<Ref>,
    images: image::Options,
    versions: Vec<Option<String>>,
    counts: Metrics,
    /// The images that the content of now was read from.
    held: Held,
}

impl Keeper {
    /// The versions of all sources; none of those that give no answer, whose content stays as it is.
    async fn read_versions(&self) -> Vec<Option<String>> {
        let mut versions = Vec::new();
        for (place, named) in self.refs.iter().enumerate() {
            versions.push(match version(named, &self.images).await {
                Ok(version) => Some(version),
                Err(e) => {
                    tracing::warn!("{e}");
                    self.versions.get(place).cloned().flatten()
                }
            });
        }
        versions
    }

    async fn keep(mut self, snapshots: watch::Sender<Snapshot>, poll: Duration, scan: Duration) {
        let changed = Arc::new(Notify::new());
        let _watcher = self.watch(&changed);
        let has_files = self.refs.iter().any(|r| watched(r).is_some());
        let has_images = !poll.is_zero() && self.refs.iter().any(|r| watched(r).is_none());
        let mut poll = tokio::time::interval(poll.max(Duration::from_secs(1)));
        let mut scan = tokio::time::interval(scan);
        poll.reset();
        scan.reset();
        loop {
            tokio::select! {
                () = changed.notified() => {}
                _ = scan.tick(), if has_files => {}
                _ = poll.tick(), if has_images => {}
            }
            let mut versions = self.read_versions().await;
            if versions == self.versions {
                continue;
            }
            // Until nothing changes any more.
            loop {
                tokio::time::sleep(QUIET).await;
                let later = self.read_versions().await;
                if later == versions {
                    break;
                }
                versions = later;
            }
            self.versions = versions;
            self.load(&snapshots).await;
        }
    }

    async fn load(&mut self, snapshots: &watch::Sender<Snapshot>) {
        match load(&self.refs, &self.images).await {
            Ok((Loaded { snapshot, findings, set_aside }, held)) => {
                for finding in findings {
                    tracing::warn!("{}", finding.one_line());
                }
                let set_aside = set_aside.len();
                tracing::info!(packages = snapshot.packages().len(), set_aside, "the content has changed");
                self.counts.loaded(&snapshot, set_aside, now());
                snapshots.send_replace(snapshot);
                self.held = held;
            }
            Err(e) => {
                tracing::warn!("the content cannot be read, what was read before is served: {e}");
                self.counts.failed();
                // It is tried again with the next look.
                self.versions.clear();
            }
        }
    }

    /// Has changes of files told. Where that is not possible they are found by looking.
    fn watch(&self, changed: &Arc<Notify>) -> Option<notify::RecommendedWatcher> {
        let changed = changed.clone();
        let tell = move |event: notify::Result<notify::Event>| {
            // Reading files is an event as well.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                changed.notify_one();
            }
        };
        let trouble = |e: notify::Error| tracing::info!("changes are looked for from time to time: {e}");
        let mut watcher = notify::recommended_watcher(tell).map_err(trouble).ok()?;
        for path in self.refs.iter().filter_map(watched) {
            // Whoever replaces a file replaces an entry of its folder.
            let (path, mode) = if path.is_dir() {
                (path, notify::RecursiveMode::Recursive)
            } else {
                let parent =
                    path.parent().filter(|p| !p.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Into::into);
                (parent, notify::RecursiveMode::NonRecursive)
            };
            let _ = watcher.watch(&path, mode).map_err(trouble);
        }
        Some(watcher)
    }
}
