//! `kubectl olm catalog serve`: serves catalogs over gRPC, and reloads them on changes.
//!
//! *Guarantees.* The old content is served until the new content is loaded; unreadable content changes nothing. An
//! invalid package is left out with a warning, and the others are served.

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

/// How long files must be unchanged before they are read, since a writer may not be done.
const QUIET: Duration = Duration::from_millis(300);
/// How often files are scanned, to detect changes without events: on network drives, and in replaced folders.
pub const SCAN: Duration = Duration::from_secs(10);

/// The maximum depth of folders to scan; links may form cycles.
const DEEPEST: usize = 32;

/// What to serve, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to serve, merged into one catalog.
    pub refs: Vec<Ref>,
    /// The address to listen on; port 0 selects a free one.
    pub address: SocketAddr,
    /// Files with certificate chain and key, for TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The address to serve Prometheus metrics on.
    pub metrics: Option<SocketAddr>,
    /// How often to check whether the tag of an image has changed; zero never checks.
    pub poll: Duration,
    /// How often files are scanned in addition to events: [`SCAN`].
    pub scan: Duration,
    /// How long running requests may take when the server stops.
    pub grace: Duration,
    /// How images are pulled.
    pub images: image::Options,
}

/// Serves until the process is stopped.
///
/// # Errors
/// A source cannot be read, or the address not be listened on.
pub fn serve(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| CliError::new(ErrorKind::Internal, format!("cannot start: {e}")))?;
    let ended = runtime.block_on(async {
        // Handle signals during the start, too.
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
    // Do not wait for a running pull.
    runtime.shutdown_background();
    ended
}

/// A server, and the tasks that reload its content. Dropping it ends them.
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
    /// Binds the port, loads the content, and starts to serve: connections made before are served once the content is
    /// loaded.
    ///
    /// # Errors
    /// A source cannot be read, or the address not be listened on.
    pub async fn start(options: &Options) -> Result<Self, CliError> {
        let refs = options.refs.clone();
        if refs.is_empty() {
            return Err(CliError::usage("nothing to serve").hint("specify a directory, an image or an OCI layout"));
        }
        if refs.contains(&Ref::Stdin) {
            return Err(CliError::usage("standard input cannot be served, because it can be read only once"));
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
        // Read before the content, so that concurrent changes are detected.
        keeper.versions = keeper.read_versions().await;
        let (load, held) = load(&keeper.refs, &keeper.images).await?;
        let Loaded { snapshot, findings, invalid_packages } = load;
        counts.loaded(&snapshot, invalid_packages.len(), now());
        keeper.held = held;
        let (sender, snapshots) = watch::channel(snapshot);
        let settings = server::Options { tls, grace: options.grace, ..server::Options::default() };
        let server = Server::on(listener, snapshots.clone(), settings, counts)?;
        tasks.push(Task(tokio::spawn(keeper.keep(sender, options.poll, options.scan))));
        Ok(Self { server, metrics, snapshots, findings, tasks })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the address of metrics.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Returns a receiver of the served content.
    pub fn snapshots(&self) -> watch::Receiver<Snapshot> {
        self.snapshots.clone()
    }

    /// Returns the findings of the first load.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the number of packages and bundles, as text.
    pub fn summary(&self) -> String {
        let snapshot = self.snapshots.borrow();
        let bundles: std::collections::BTreeSet<_> = snapshot.entries().map(|e| (&e.package, &e.name)).collect();
        let several = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        format!("{} with {}", several(snapshot.packages().len(), "package"), several(bundles.len(), "bundle"))
    }

    /// Lets running requests finish, and stops.
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

/// Loads all sources as one catalog.
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

/// Returns the path to watch for changes; `None` for an image in a registry.
fn watched(named: &Ref) -> Option<PathBuf> {
    match named {
        Ref::Directory(path) | Ref::File(path) => Some(path.clone()),
        Ref::Layout(path) => Some(path.join("index.json")),
        Ref::Stdin | Ref::Image(_) | Ref::CatalogSource(_) | Ref::Address(_) => None,
    }
}

/// Returns a value that changes with the content: a hash of sizes and times of files, or a digest.
async fn version(named: &Ref, images: &image::Options) -> Result<String, CliError> {
    match (named, watched(named)) {
        (_, Some(path)) => blocking(move || format!("{:x}", fingerprint(&path))).await,
        (Ref::Image(reference), None) => Ok(image::resolve(&reference.parse()?, images).await?),
        (_, None) => Ok(String::new()),
    }
}

/// Returns a hash of the names, sizes and times of all files below a path, following links.
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

/// Returns the seconds since 1970.
fn now() -> f64 {
    Timestamp::now().as_duration().as_secs_f64()
}

/// Reloads the content on changes.
struct Keeper {
    refs: Vec<Ref>,
    images: image::Options,
    versions: Vec<Option<String>>,
    counts: Metrics,
    /// The images of the current content.
    held: Held,
}

impl Keeper {
    /// Returns the versions of all sources; for a source that fails, the previous one, so that its content stays.
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
            // Wait until nothing changes.
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
            Ok((Loaded { snapshot, findings, invalid_packages }, held)) => {
                for finding in findings {
                    tracing::warn!("{}", finding.one_line());
                }
                let invalid_packages = invalid_packages.len();
                tracing::info!(packages = snapshot.packages().len(), invalid_packages, "loaded new content");
                self.counts.loaded(&snapshot, invalid_packages, now());
                snapshots.send_replace(snapshot);
                self.held = held;
            }
            Err(e) => {
                tracing::warn!("the new content cannot be read, still serving the old content: {e}");
                self.counts.failed();
                // Retry with the next scan.
                self.versions.clear();
            }
        }
    }

    /// Subscribes to changes of files. Where this fails, scans detect them.
    fn watch(&self, changed: &Arc<Notify>) -> Option<notify::RecommendedWatcher> {
        let changed = changed.clone();
        let tell = move |event: notify::Result<notify::Event>| {
            // Reads are reported as events, too.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                changed.notify_one();
            }
        };
        let trouble = |e: notify::Error| tracing::info!("cannot watch files, scanning periodically: {e}");
        let mut watcher = notify::recommended_watcher(tell).map_err(trouble).ok()?;
        for path in self.refs.iter().filter_map(watched) {
            // Replacing a file changes an entry of its folder.
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
