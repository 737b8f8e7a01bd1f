//! The catalogs of the live cluster: local directories, connections to registries, and images and ConfigMaps that are read directly.
//!
//! *Guarantee.* Content that was read completely stays until there is newer content, even if its source fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::catalog_source::Target;
use olm_core::api::{kinds, object};
use olm_core::catalog::{self, Snapshot};
use olm_core::planner::Event;
use olm_core::world::{CatalogFact, ConnectionState, Fact, FactKey};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use super::api::{Api, ListQuery, Resource, WatchEvent};
use super::endpoints;
use super::error::{Error, Hint};
use super::fetch_catalog;
use super::metrics::Metrics;
use super::pull_secrets::PullSecrets;
use super::supervise::{guarded, supervised};
use super::watcher::{Step, Watcher};
use crate::image::{self, Content, Location};
use crate::registry;
use crate::registry::client::{Client, Observation, Settings};
use crate::registry::image::CatalogImage;
use crate::registry::local::{CatalogDirectory, first_findings};
use crate::registry::share::{Quota, Share, Shares};

/// The maximum number of CatalogSources that are read in each namespace except the global one: each takes a connection and thus a file
/// descriptor.
const MOST_CATALOGS: usize = 100;

/// The first and the longest pause after a failed pull of an image.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));

/// The catalogs before the loop starts, with the content of the local directories.
pub struct Catalogs {
    local: Vec<(FactKey, Arc<Snapshot>)>,
    /// The namespace of the global catalogs.
    global: String,
    images: image::Options,
    hint: Hint,
}

impl Catalogs {
    /// Reads the directories of `--catalog`. A catalog without a namespace belongs to the global namespace. `images`: options for pulling
    /// catalog images.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn read(
        directories: &[CatalogDirectory],
        global: &str,
        images: image::Options,
        hint: Hint,
    ) -> Result<Self, registry::Error> {
        let mut local = Vec::new();
        for CatalogDirectory { name, namespace, directory } in directories {
            let loaded = registry::dir::load(directory)?;
            first_findings(directory, &loaded.findings).for_each(|line| tracing::warn!("{line}"));
            let namespace = namespace.as_deref().unwrap_or(global);
            local.push((FactKey::Catalog(namespace.to_owned(), name.clone()), Arc::new(loaded.snapshot)));
        }
        Ok(Self { local, global: global.to_owned(), images, hint })
    }

    /// Returns the function that returns hints for errors.
    pub(super) fn hint(&self) -> Hint {
        self.hint
    }

    /// Returns the reader of pull secrets for bundle images, with the options of catalog images.
    pub(super) fn pull_secrets(&self, api: &Api) -> PullSecrets {
        PullSecrets::new(api.clone(), &self.images)
    }

    /// Sends the local catalogs to the planner and returns the manager of connections.
    pub(super) fn start(self, api: Api, events: mpsc::UnboundedSender<Event>, metrics: Metrics) -> Connections {
        for (key, snapshot) in self.local {
            let fact = CatalogFact::local(snapshot, Timestamp::now());
            // The receiver is dropped only when the process stops.
            let _ = events.send(Event::Learned(key, Some(Fact::Catalog(fact))));
        }
        let Self { global, images, hint, .. } = self;
        let (tenants, connected, reading) = (Quota::new(), BTreeMap::new(), TenantRuntime::default());
        Connections { api, global, images, hint, tenants, events, metrics, reading, connected }
    }
}

/// The connections of CatalogSources, by namespace and name.
pub(super) struct Connections {
    api: Api,
    global: String,
    images: image::Options,
    hint: Hint,
    /// The quota of the catalogs of all namespaces except the global one.
    tenants: Quota,
    events: mpsc::UnboundedSender<Event>,
    metrics: Metrics,
    reading: TenantRuntime,
    connected: BTreeMap<(String, String), Connection>,
}

/// The thread that parses the catalogs of tenants, so that large catalogs do not delay the thread of the watches. Requests to the API
/// server stay on that thread: otherwise a shared connection could depend on this one.
#[derive(Default)]
struct TenantRuntime(Option<Runtime>);

impl TenantRuntime {
    /// Returns the runtime for the tasks: the caller's, if no thread can be started.
    fn handle(&mut self) -> Handle {
        let begin = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        if self.0.is_none() {
            self.0 = begin().inspect_err(|e| tracing::warn!("cannot start a thread for catalogs: {e}")).ok();
        }
        self.0.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
    }
}

impl Drop for TenantRuntime {
    fn drop(&mut self) {
        // A task must not block until the runtime has ended.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

struct Connection {
    observed: watch::Receiver<Observed>,
    refresh: Arc<Notify>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The observed state of a catalog.
#[derive(Clone, Debug)]
struct Observed {
    state: ConnectionState,
    /// The number of connections so far.
    connections: u64,
    /// The number of reads of the content so far.
    reads: u64,
    snapshot: Option<Arc<Snapshot>>,
    /// The share of the memory quota that the content takes.
    share: Option<Arc<Share>>,
    error: Option<String>,
    config_map: Option<(String, String)>,
}

impl Connections {
    /// Reads a target instead of the catalog's previous one, whose content stays until there is new content.
    pub(super) fn connect(&mut self, namespace: &str, name: &str, target: &Target) {
        let key = (namespace.to_owned(), name.to_owned());
        let before = self.connected.remove(&key).map(|c| c.observed.borrow().clone());
        let (snapshot, share) = before.map(|o| (o.snapshot, o.share)).unwrap_or_default();
        let idle = Observed {
            state: ConnectionState::Idle,
            connections: 0,
            reads: 0,
            snapshot,
            share,
            error: None,
            config_map: None,
        };
        let (sender, observed) = watch::channel(idle);
        let tenant = (namespace != self.global).then(|| self.tenants.clone());
        let others = self.connected.keys().filter(|(of, _)| of == namespace).count();
        if tenant.is_some() && others >= MOST_CATALOGS {
            failed(
                &sender,
                format!("namespace {namespace} has more than {MOST_CATALOGS} CatalogSources: this one is not read"),
            );
        }
        let refresh = Arc::new(Notify::new());
        let reader = match target {
            // It was read at the start of the process.
            Target::Directory => return,
            // The sender must stay alive so that the error is reported.
            _ if tenant.is_some() && others >= MOST_CATALOGS => tokio::spawn(async move { sender.closed().await }),
            Target::Address(address) => {
                let (api, address, refresh) = (self.api.clone(), address.clone(), refresh.clone());
                let tenant = tenant.map(|quota| (quota, namespace.to_owned()));
                let runtime = if tenant.is_some() { self.reading.handle() } else { Handle::current() };
                tokio::spawn(supervised(
                    {
                        let sender = sender.clone();
                        move || {
                            let (api, address, tenant) = (api.clone(), address.clone(), tenant.clone());
                            dial(api, address, tenant, runtime.clone(), refresh.clone(), sender.clone())
                        }
                    },
                    move |error| failed(&sender, error.to_string()),
                ))
            }
            Target::Image { reference, catalog_dir, secrets } => {
                let reader = ImageReader {
                    pull_secrets: PullSecrets::new(self.api.clone(), &self.images),
                    namespace: namespace.to_owned(),
                    tenant,
                    catalog_dir: catalog_dir.clone(),
                    secrets: secrets.clone(),
                    refresh: refresh.clone(),
                    sender,
                    hint: self.hint,
                    held: None,
                };
                tokio::spawn(reader.run(reference.clone()))
            }
            Target::ConfigMaps(names) => {
                let (api, namespace, names) = (self.api.clone(), namespace.to_owned(), names.clone());
                let refresh = refresh.clone();
                tokio::spawn(supervised(
                    {
                        let sender = sender.clone();
                        move || {
                            let place = (api.clone(), namespace.clone(), names.clone());
                            parts(place, tenant.clone(), refresh.clone(), sender.clone())
                        }
                    },
                    move |error| failed(&sender, error.to_string()),
                ))
            }
            Target::ConfigMap(config_map) => {
                let (api, namespace, name) = (self.api.clone(), namespace.to_owned(), config_map.clone());
                let runtime = if tenant.is_some() { self.reading.handle() } else { Handle::current() };
                tokio::spawn(supervised(
                    {
                        let sender = sender.clone();
                        move || {
                            let (api, namespace, name) = (api.clone(), namespace.clone(), name.clone());
                            follow(api, namespace, name, tenant.clone(), runtime.clone(), sender.clone())
                        }
                    },
                    move |error| failed(&sender, error.to_string()),
                ))
            }
        };
        let fact_key = FactKey::Catalog(namespace.to_owned(), name.to_owned());
        let (seen, target, events) = (observed.clone(), target.clone(), self.events.clone());
        let metrics = self.metrics.clone();
        let begin = move || report(seen.clone(), fact_key.clone(), target.clone(), events.clone(), metrics.clone());
        // `guarded` logs the error; there is no other place to report it.
        let reporter = tokio::spawn(supervised(begin, |_| ()));
        self.connected.insert(key, Connection { observed, refresh, tasks: vec![reader, reporter] });
    }

    /// Checks for new content.
    pub(super) fn refresh(&self, namespace: &str, name: &str) {
        if let Some(connection) = self.connected.get(&(namespace.to_owned(), name.to_owned())) {
            connection.refresh.notify_one();
        }
    }

    /// Closes the connection and removes the catalog.
    pub(super) fn disconnect(&mut self, namespace: &str, name: &str) {
        self.connected.remove(&(namespace.to_owned(), name.to_owned()));
        let _ = self.events.send(Event::Learned(FactKey::Catalog(namespace.to_owned(), name.to_owned()), None));
    }

    /// Returns whether every catalog has either delivered its content or failed.
    pub(super) fn are_settled(&self) -> bool {
        self.connected.values().all(|connection| {
            let seen = connection.observed.borrow();
            seen.snapshot.is_some() || seen.error.is_some()
        })
    }
}

/// Records why there is no newer content.
fn failed(sender: &watch::Sender<Observed>, error: String) {
    sender.send_modify(|o| {
        o.state = ConnectionState::TransientFailure;
        o.error = Some(error);
    });
}

/// Reads a registry until the task is aborted.
async fn dial(
    cluster: Api,
    address: String,
    tenant: Option<(Quota, String)>,
    runtime: Handle,
    refresh: Arc<Notify>,
    sender: watch::Sender<Observed>,
) -> Result<(), Error> {
    let share = move || tenant.as_ref().map(|(quota, namespace)| quota.shares(namespace).memory);
    let client = {
        let _entered = runtime.enter();
        Client::start_sharing(&address, Settings::default(), share)
    };
    let mut seen = client.observe();
    let mut backends = endpoints::Watch::new(cluster, &address);
    loop {
        let Observation { state, connections, reads, snapshot, share, error } = seen.borrow_and_update().clone();
        sender.send_modify(|o| {
            o.state = state;
            o.connections = connections;
            o.reads = reads;
            o.error = error;
            if snapshot.is_some() {
                (o.snapshot, o.share) = (snapshot, share);
            }
        });
        tokio::select! {
            // The client ends only on a failure.
            changed = seen.changed() => changed.map_err(|_| Error::Ended)?,
            () = refresh.notified() => client.refresh(),
            () = backends.replaced() => client.reconnect(),
        }
    }
}

/// Reads an image, and again on request or after a failure.
struct ImageReader {
    pull_secrets: PullSecrets,
    namespace: String,
    /// Its quota, unless it belongs to the global namespace.
    tenant: Option<Quota>,
    catalog_dir: Option<String>,
    secrets: Vec<String>,
    refresh: Arc<Notify>,
    sender: watch::Sender<Observed>,
    hint: Hint,
    /// The image of the current content, whose files may be read later.
    held: Option<(Content, Option<Share>)>,
}

impl ImageReader {
    async fn run(mut self, reference: String) {
        let location = match PullSecrets::location(&reference) {
            Ok(location) => location,
            Err(e) => return self.failed(&e),
        };
        let mut pause = PAUSES.0;
        loop {
            self.sender.send_if_modified(|o| {
                o.reads += 1;
                let first = o.snapshot.is_none() && o.error.is_none();
                o.state = if first { ConnectionState::Connecting } else { o.state };
                first
            });
            match guarded(self.read(&location)).await.map_err(Error::from).flatten() {
                Ok(()) => {
                    pause = PAUSES.0;
                    self.refresh.notified().await;
                }
                Err(e) => {
                    self.failed(&e);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.refresh.notified() => {}
                    }
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    fn failed(&self, error: &Error) {
        failed(&self.sender, error.status_message(self.hint));
    }

    async fn read(&mut self, location: &Location) -> Result<(), Error> {
        let options = self.pull_secrets.options(&self.namespace, &self.secrets).await?;
        let known = self.held.as_ref().map(|(content, _)| content.digest.as_str());
        if known.is_some()
            && known == Some(image::resolve(location, &options).await.map_err(registry::Error::from)?.as_str())
        {
            self.sender.send_modify(|o| (o.state, o.error) = (ConnectionState::Ready, None));
            return Ok(());
        }
        let shares = self.tenant.as_ref().map(|quota| quota.shares(&self.namespace));
        let image = registry::image::load(location, self.catalog_dir.as_deref(), &options, shares).await?;
        let CatalogImage { loaded, content, shares } = image;
        for finding in &loaded.findings {
            tracing::warn!(namespace = self.namespace, image = %location, "{}", finding.one_line());
        }
        let (memory, disk) = shares.map(|Shares { memory, disk }| (memory, disk)).unzip();
        self.sender.send_modify(|o| {
            o.state = ConnectionState::Ready;
            o.error = None;
            (o.snapshot, o.share) = (Some(Arc::new(loaded.snapshot)), memory.map(Arc::new));
        });
        self.held = Some((content, disk));
        Ok(())
    }
}

/// Reads a ConfigMap, and again after every change.
async fn follow(
    api: Api,
    namespace: String,
    name: String,
    tenant: Option<Quota>,
    runtime: Handle,
    sender: watch::Sender<Observed>,
) -> Result<(), Error> {
    let resource = Resource::from(&kinds::CONFIG_MAP);
    let query = ListQuery::one(&resource, &kinds::CONFIG_MAP.object(&namespace, &name));
    let mut watcher = Watcher::new(api, query);
    let missing = || format!("configmaps \"{name}\" not found");
    let failed = |error: String| failed(&sender, error);
    loop {
        let config_map = match watcher.next().await {
            Step::Page(page) => match page.readable() {
                Ok((objects, _)) => objects.into_iter().next(),
                Err(refusal) => {
                    failed(refusal.message);
                    continue;
                }
            },
            Step::Event(WatchEvent::Added(config_map) | WatchEvent::Modified(config_map)) => Some(config_map),
            Step::Event(WatchEvent::Deleted(_)) => None,
            Step::Event(WatchEvent::Unreadable(object)) => {
                failed(object.why.clone());
                continue;
            }
            Step::Event(WatchEvent::Bookmark(_) | WatchEvent::Error(_)) | Step::Watching => continue,
            Step::Failed(refusal) => {
                failed(refusal.message);
                continue;
            }
        };
        let Some(config_map) = config_map else {
            failed(missing());
            continue;
        };
        let revision = (object::uid(&config_map).to_owned(), object::resource_version(&config_map).to_owned());
        let parsed = runtime.spawn(async move { catalog::config_map(&config_map) }).await;
        let read = parsed.unwrap_or_else(|e| Err(e.to_string())).and_then(|(snapshot, bytes)| {
            let mut share = tenant.as_ref().map(|quota| quota.shares(&namespace).memory);
            // The current content keeps its share until the new content replaces it.
            share.as_mut().map_or(Ok(()), |share| share.take(bytes)).map_err(|full| full.to_string())?;
            Ok((snapshot, share.map(Arc::new)))
        });
        match read {
            Ok((snapshot, share)) => sender.send_modify(|o| {
                *o = Observed {
                    state: ConnectionState::Ready,
                    connections: o.connections,
                    reads: o.reads + 1,
                    snapshot: Some(Arc::new(snapshot)),
                    share,
                    error: None,
                    config_map: Some(revision),
                };
            }),
            Err(e) => failed(e),
        }
    }
}

/// Reads ConfigMaps whose content does not change, and again on request. A failure ends it, and it is started again.
async fn parts(
    (api, namespace, names): (Api, String, Vec<String>),
    tenant: Option<Quota>,
    refresh: Arc<Notify>,
    sender: watch::Sender<Observed>,
) -> Result<(), Error> {
    loop {
        let (snapshot, bytes) = fetch_catalog::config_maps(&api, &namespace, &names).await?;
        let mut share = tenant.as_ref().map(|quota| quota.shares(&namespace).memory);
        // The current content keeps its share until the new content replaces it.
        share.as_mut().map_or(Ok(()), |share| share.take(bytes)).map_err(|full| Error::Content {
            namespace: namespace.clone(),
            name: names.join(","),
            why: full.to_string(),
        })?;
        sender.send_modify(|o| {
            o.state = ConnectionState::Ready;
            o.reads += 1;
            o.error = None;
            (o.snapshot, o.share) = (Some(Arc::new(snapshot)), share.map(Arc::new));
        });
        refresh.notified().await;
    }
}

/// Sends observations as facts until the receiver is dropped.
async fn report(
    mut seen: watch::Receiver<Observed>,
    key: FactKey,
    target: Target,
    events: mpsc::UnboundedSender<Event>,
    metrics: Metrics,
) -> Result<(), Error> {
    let (mut last, mut counted) = (None, 0);
    loop {
        let Observed { state, connections, reads, snapshot, error, config_map, .. } = seen.borrow_and_update().clone();
        if let FactKey::Catalog(namespace, name) = &key {
            metrics.snapshots(namespace, name, reads.saturating_sub(counted));
            counted = reads;
        }
        let since = match last {
            Some((known, since)) if known == (state, connections) => since,
            _ => Timestamp::now(),
        };
        last = Some(((state, connections), since));
        let (target, reconnected) = (target.clone(), connections > 1);
        let fact = CatalogFact { target, state, since, reconnected, snapshot, error, config_map };
        if events.send(Event::Learned(key.clone(), Some(Fact::Catalog(fact)))).is_err() || seen.changed().await.is_err()
        {
            return Ok(());
        }
    }
}
