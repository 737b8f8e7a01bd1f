//! The controllers on a real cluster: release builds, measured from outside.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{AsyncBufReadExt, StreamExt};
use jiff::{SignedDuration, Timestamp};
use kube::config::{KubeConfigOptions, Kubeconfig};
use olm_core::api::object::ObjectRef;
use olm_core::api::{crd, object};
use olm_shell::cluster::api::{Api, Depth, ListQuery, Resource, WatchEvent};
use olm_shell::tls::install_crypto_provider;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::control_plane::{ControlPlane, Options};

/// The log message of the controllers after the initial sync.
const STARTED: &str = "read the cluster";
const ADMINISTRATORS: &str = "system:masters";
/// The users of benchmarks and controllers, which distinguish their requests in the audit log.
const BENCH: &str = "bench";
/// The controllers.
pub const OLM: &str = "olm";
/// Timeout of every measurement.
const LONG: Duration = Duration::from_mins(4);
/// The number of requests that the controllers have in flight for the copies of five operators.
const AT_A_TIME: usize = 40;
const COPIES: &str = "olm.copiedFrom";
const ORIGINALS: &str = "!olm.copiedFrom";
/// kube-apiserver logs every request after its response, with user and time.
const AUDIT: &str = r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived","ResponseStarted"],
"rules":[{"level":"Metadata"}]}"#;

/// A control plane with OLM's CRDs, the namespace olm, and a client.
pub struct Cluster {
    runtime: Runtime,
    api: Api,
    client: kube::Client,
    plane: ControlPlane,
    audit: TempDir,
}

impl Cluster {
    /// Starts a cluster.
    pub fn start() -> Result<Self> {
        let audit = tempfile::tempdir()?;
        fs::write(audit.path().join("policy.json"), AUDIT)?;
        let flag = |name: &str, file: &str| format!("--audit-{name}={}", audit.path().join(file).display());
        let apiserver_flags = vec![flag("policy-file", "policy.json"), flag("log-path", "log")];
        let plane = ControlPlane::start_with(Options { apiserver_flags, crds: crd::all(), ..Options::default() })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        install_crypto_provider();
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig_for(BENCH, Some(ADMINISTRATORS))?)?;
        let (api, client) = runtime.block_on(async {
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
            let client = kube::Client::try_from(config)?;
            let api = Api::new(client.clone());
            api.create(&namespace("olm")).await?;
            anyhow::Ok((api, client))
        })?;
        Ok(Self { runtime, api, client, plane, audit })
    }

    /// Subscribes to a package of the catalog `main` in a new namespace, and returns the time until the operator's
    /// ClusterServiceVersion was Succeeded.
    pub fn install(&self, name: &str, package: &str, channel: &str) -> Result<Duration> {
        self.runtime.block_on(async {
            self.api.create(&namespace(name)).await?;
            let group = json!({
                "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
                "metadata": { "name": name, "namespace": name }, "spec": { "targetNamespaces": [name] },
            });
            self.api.create(&group).await?;
            let csvs = resource("ClusterServiceVersion", "clusterserviceversions");
            let from = self.api.page(&ListQuery::all(&csvs), "").await?.resource_version;
            let subscription = json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
                "metadata": { "name": package, "namespace": name },
                "spec": { "name": package, "source": "main", "sourceNamespace": "olm", "channel": channel },
            });
            let began = Instant::now();
            self.api.create(&subscription).await?;
            let events = self.api.watch(&ListQuery::all(&csvs), &from).await?;
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                if let WatchEvent::Added(csv) | WatchEvent::Modified(csv) = event?
                    && object::namespace(&csv) == name
                    && object::text(&csv, &["status", "phase"]) == "Succeeded"
                {
                    return Ok(began.elapsed());
                }
            }
            bail!("the watch ended")
        })
    }

    /// Returns a kubeconfig of an administrator, whose requests are those of [`OLM`] in the audit log.
    pub fn kubeconfig(&self) -> Result<PathBuf> {
        self.plane.kubeconfig_for(OLM, Some(ADMINISTRATORS))
    }

    /// Returns the response to a GET.
    pub fn get(&self, path: &str, accept: &str) -> Result<String> {
        let request = http::Request::get(path).header(http::header::ACCEPT, accept).body(Vec::new())?;
        Ok(self.runtime.block_on(self.client.request_text(request))?)
    }

    /// Starts a watch and returns after its first events.
    pub fn watch(&self, path: &str, events: usize) -> Result<()> {
        self.runtime.block_on(async {
            let request = http::Request::get(path).body(Vec::new())?;
            let mut lines = std::pin::pin!(self.client.request_stream(request).await?.lines());
            for _ in 0..events {
                lines.next().await.context("the watch ended")??;
            }
            Ok(())
        })
    }

    /// Creates an object.
    pub fn create(&self, object: &Value) -> Result<()> {
        self.runtime.block_on(self.api.create(object))?;
        Ok(())
    }

    /// Calls `act` and waits until `originals` ClusterServiceVersions are Succeeded and `copies` copies of them were created
    /// and updated once. Returns both times. Earlier events count, too.
    pub fn offered(&self, originals: usize, copies: usize, act: impl FnOnce() -> Result<()>) -> Result<[Duration; 2]> {
        let csvs = resource("ClusterServiceVersion", "clusterserviceversions");
        let from = self.runtime.block_on(self.api.page(&ListQuery::all(&csvs).labelled(COPIES), ""))?.resource_version;
        let began = Instant::now();
        act()?;
        self.runtime.block_on(async {
            let mut events = std::pin::pin!(self.api.watch(&ListQuery::all(&csvs).labelled(ORIGINALS), &from).await?);
            let mut of_copies =
                std::pin::pin!(self.api.watch(&ListQuery::all(&csvs).labelled(COPIES).depth(Depth::Metadata), &from).await?);
            let (mut succeeded, mut told) = (BTreeSet::new(), BTreeSet::new());
            let [mut all_succeeded, mut all_told] = [Duration::ZERO; 2];
            let deadline = tokio::time::Instant::from_std(began) + LONG;
            let mut seen = [from.clone(), from.clone()];
            while succeeded.len() < originals || told.len() < copies {
                tokio::select! {
                    event = events.next() => match event {
                        Some(event) => {
                            if let WatchEvent::Added(csv) | WatchEvent::Modified(csv) = event? {
                                object::resource_version(&csv).clone_into(&mut seen[0]);
                                if object::text(&csv, &["status", "phase"]) == "Succeeded"
                                    && succeeded.insert(ObjectRef::from_object(&csv))
                                {
                                    all_succeeded = began.elapsed();
                                }
                            }
                        }
                        // The API server ends a watch that is too slow.
                        None => events.set(self.api.watch(&ListQuery::all(&csvs).labelled(ORIGINALS), &seen[0]).await?),
                    },
                    event = of_copies.next() => match event {
                        Some(event) => {
                            let event = event?;
                            if let WatchEvent::Added(copy) | WatchEvent::Modified(copy) = &event {
                                object::resource_version(copy).clone_into(&mut seen[1]);
                            }
                            if let WatchEvent::Modified(copy) = event && told.insert(ObjectRef::from_object(&copy)) {
                                all_told = began.elapsed();
                            }
                        }
                        None => of_copies.set(self.api.watch(&ListQuery::all(&csvs).labelled(COPIES).depth(Depth::Metadata), &seen[1]).await?),
                    },
                    () = tokio::time::sleep_until(deadline) => {
                        bail!("only {} are Succeeded and {} copies were reported after {LONG:?}", succeeded.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "), told.len())
                    }
                }
            }
            Ok([all_succeeded, all_told])
        })
    }

    /// Returns how many copies of ClusterServiceVersions have the status of a Succeeded original, and how many exist.
    pub fn copies(&self) -> Result<(usize, usize)> {
        self.runtime.block_on(async {
            let csvs = resource("ClusterServiceVersion", "clusterserviceversions");
            let (mut good, mut all, mut next) = (0, 0, String::new());
            loop {
                let page = self.api.page(&ListQuery::all(&csvs).labelled(COPIES).limit(50), &next).await?;
                let says = |copy: &&Value, field: &str, text: &str| object::text(copy, &["status", field]) == text;
                good += page
                    .objects
                    .iter()
                    .filter(|copy| says(copy, "phase", "Succeeded") && says(copy, "reason", "Copied"))
                    .count();
                all += page.objects.len();
                next = page.next;
                if next.is_empty() {
                    return Ok((good, all));
                }
            }
        })
    }

    /// Returns the copies of ClusterServiceVersions in a namespace.
    pub fn copies_in(&self, namespace: &str) -> Result<Vec<Value>> {
        let csvs = resource("ClusterServiceVersion", "clusterserviceversions");
        let copies = ListQuery::all(&csvs).within(namespace).labelled(COPIES);
        Ok(self.runtime.block_on(self.api.list(&copies))?.objects)
    }

    /// Creates `count` objects like the samples, with their status, in as many namespaces as needed, and returns the time that
    /// it took.
    pub fn write_copies(&self, samples: &[Value], count: usize) -> Result<Duration> {
        let began = Instant::now();
        self.runtime.block_on(async {
            let namespaces = self.api.list(&ListQuery::all(&namespaces())).await?.objects;
            let places =
                namespaces.iter().flat_map(|namespace| samples.iter().map(move |s| (object::name(namespace), s)));
            let mut written = futures::stream::iter(places.take(count))
                .map(|(namespace, sample)| async move {
                    let mut copy = sample.clone();
                    let metadata = object::map_mut(&mut copy, &["metadata"]);
                    metadata.retain(|field, _| ["name", "labels", "annotations"].contains(&field.as_str()));
                    metadata.insert("namespace".to_owned(), namespace.into());
                    let mut created = self.api.create(&copy).await?;
                    object::map_mut(&mut created, &[]).remove("spec");
                    self.api.update(&created, Some("status")).await
                })
                .buffer_unordered(AT_A_TIME);
            while let Some(result) = written.next().await {
                result?;
            }
            Ok(began.elapsed())
        })
    }

    /// Returns the number of namespaces.
    pub fn namespaces(&self) -> Result<usize> {
        Ok(self.runtime.block_on(self.api.list(&ListQuery::all(&namespaces())))?.objects.len())
    }

    /// Returns the completed requests to kube-apiserver, in the order of their arrival.
    pub fn requests(&self) -> Result<Vec<Request>> {
        let log = fs::read_to_string(self.audit.path().join("log"))?;
        let mut requests =
            log.lines().map(|line| Request::read(&serde_json::from_str(line)?)).collect::<Result<Vec<_>>>()?;
        requests.sort_by_key(|request| request.at);
        Ok(requests)
    }

    /// Waits without sending any request.
    pub fn idle(&self, time: Duration) {
        self.runtime.block_on(async { tokio::time::timeout(time, std::future::pending::<()>()).await.ok() });
    }
}

/// Returns a Namespace.
pub fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

fn namespaces() -> Resource {
    Resource { gvk: object::Gvk::new("", "v1", "Namespace"), plural: "namespaces".to_owned(), namespaced: false }
}

fn resource(kind: &str, plural: &str) -> Resource {
    let gvk = object::Gvk::new("operators.coreos.com", "v1alpha1", kind);
    Resource { gvk, plural: plural.to_owned(), namespaced: true }
}

/// A request to kube-apiserver.
#[derive(Clone, Debug)]
pub struct Request {
    /// Time of arrival.
    pub at: Timestamp,
    /// Duration until the response.
    pub took: SignedDuration,
    /// The client: [`OLM`], or the name that a program sets.
    pub who: String,
    /// `create`, `update`, `patch`, `delete`, `get`, `list`, `watch`.
    pub verb: String,
    /// `resource/subresource`.
    pub resource: String,
    /// Namespace, empty if there is none.
    pub namespace: String,
    /// Name, empty if the name is generated or the request is for several objects.
    pub name: String,
    /// HTTP status code of the response.
    pub code: u64,
}

impl Request {
    /// Reads an event of the audit log.
    fn read(event: &Value) -> Result<Self> {
        let text = |path: &[&str]| object::text(event, path).to_owned();
        let (at, end) = (text(&["requestReceivedTimestamp"]).parse()?, text(&["stageTimestamp"]).parse::<Timestamp>()?);
        let user = text(&["user", "username"]);
        let who = match user.as_str() {
            OLM | BENCH => user,
            _ => text(&["userAgent"]).split('/').next().unwrap_or_default().to_owned(),
        };
        let (resource, subresource) = (text(&["objectRef", "resource"]), text(&["objectRef", "subresource"]));
        Ok(Self {
            at,
            took: end.duration_since(at),
            who,
            verb: text(&["verb"]),
            resource: if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") },
            namespace: text(&["objectRef", "namespace"]),
            name: text(&["objectRef", "name"]),
            code: event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default(),
        })
    }

    /// Returns whether it is a write.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

/// `kubectl olm run`. Dropping it ends the process.
pub struct Controllers {
    process: Child,
    /// Time until the initial sync and the first plan.
    pub start: Duration,
}

impl Controllers {
    /// Starts them with the catalog `main` in a directory, and returns after the initial sync.
    pub fn start(binary: &Path, cluster: &Cluster, catalog: &Path) -> Result<Self> {
        Self::start_with(binary, cluster, catalog, &[])
    }

    /// Does the same with further arguments.
    pub fn start_with(binary: &Path, cluster: &Cluster, catalog: &Path, arguments: &[&str]) -> Result<Self> {
        let began = Instant::now();
        let mut process = Command::new(binary)
            .args(["--catalog", &format!("main={}", catalog.display())])
            .args(arguments)
            .env("KUBECONFIG", cluster.kubeconfig()?)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = BufReader::new(process.stderr.take().context("no stderr")?);
        let mut controllers = Self { process, start: Duration::ZERO };
        let mut log = File::create(cluster.plane.logs().join("kubectl-olm-run.log"))?;
        let (started, wait) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if line.contains(STARTED) {
                    started.send(()).ok();
                }
                writeln!(log, "{line}").ok();
            }
        });
        wait.recv().with_context(|| format!("{} ended before it planned", binary.display()))?;
        controllers.start = began.elapsed();
        Ok(controllers)
    }

    /// Returns the current resident memory in MB.
    pub fn memory(&self) -> Result<f64> {
        self.status("VmRSS:")
    }

    /// Returns the peak resident memory in MB.
    pub fn peak_memory(&self) -> Result<f64> {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> Result<f64> {
        let status = self.proc("status")?;
        let line = status.lines().find_map(|l| l.strip_prefix(field)).with_context(|| format!("no {field}"))?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1000.0)
    }

    /// Returns user and system time so far. Linux counts it in ticks of 10 ms.
    pub fn cpu(&self) -> Result<Duration> {
        let stat = self.proc("stat")?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |n: usize| Ok::<u64, anyhow::Error>(fields.get(n).context("no times")?.parse()?);
        Ok(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
    }

    fn proc(&self, file: &str) -> Result<String> {
        Ok(fs::read_to_string(PathBuf::from(format!("/proc/{}/{file}", self.process.id())))?)
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
