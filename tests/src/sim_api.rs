//! A simulated cluster behind HTTP, for clients that only know the address of an API server: the plugins.
//!
//! ```text
//!   kubectl-olm-… ── http, no credentials ──▶ SimApi ──▶ Simulation, as a user: its clock and its controllers are stopped
//! ```
//!
//! *Assumptions*: a single user with all permissions, or with none. Lists are not paginated, and a watch returns the writes made
//! while this server runs.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Result;
use futures::future::ready;
use futures::stream::{self, BoxStream, StreamExt};
use http::request::Parts;
use http::{Request, Response, header};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::sim::{
    ApiServer, Patch, Preconditions, Propagation, ResourceKind, SERVER_VERSION, Simulation, WatchEvent,
};
use olm_shell::cli::selector::LabelQuery;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::faulty_api::{Call, read, refusal};

/// How often Kubernetes' own controllers check for work.
const PERIOD: Duration = Duration::from_millis(20);

/// A server that listens on loopback until it is stopped or dropped.
pub struct SimApi {
    // Dropped first, so that no further request is served.
    runtime: Runtime,
    folder: TempDir,
    cluster: Arc<Cluster>,
}

struct Cluster {
    simulation: Mutex<Simulation>,
    /// Whether requests for objects are refused. Discovery is not.
    is_forbidden: bool,
    /// Notifies watches of writes.
    written: watch::Sender<()>,
}

impl Cluster {
    fn lock(&self) -> MutexGuard<'_, Simulation> {
        self.simulation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimApi {
    /// Serves a simulated cluster.
    ///
    /// # Errors
    /// There is no free port, or the kubeconfig cannot be written.
    pub fn start(simulation: Simulation) -> Result<Self> {
        Self::serve(simulation, false)
    }

    /// Serves a simulated cluster to a user who has no permissions, and can only read its version and what it serves.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn start_without_permissions(simulation: Simulation) -> Result<Self> {
        Self::serve(simulation, true)
    }

    fn serve(simulation: Simulation, is_forbidden: bool) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let folder = tempfile::tempdir()?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "sim",
            "clusters": [{"name": "sim", "cluster": {"server": format!("http://{}", listener.local_addr()?)}}],
            "contexts": [{"name": "sim", "context": {"cluster": "sim", "user": "sim"}}],
            "users": [{"name": "sim", "user": {}}],
        });
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string())?;
        let cluster =
            Arc::new(Cluster { simulation: Mutex::new(simulation), is_forbidden, written: watch::Sender::new(()) });
        let served = Arc::clone(&cluster);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&served)));
            }
        });
        Ok(Self { runtime, folder, cluster })
    }

    /// Runs Kubernetes' own controllers from now on, by the clock of this machine: CRDs are established, pods run, objects
    /// without an owner are garbage collected.
    #[must_use]
    pub fn with_kubernetes(self) -> Self {
        let cluster = Arc::clone(&self.cluster);
        self.runtime.spawn(async move {
            loop {
                {
                    let mut simulation = cluster.lock();
                    let before = simulation.happenings().len();
                    simulation.sleep_until(Timestamp::now());
                    simulation.establish();
                    if simulation.happenings().len() > before {
                        cluster.written.send_replace(());
                    }
                }
                tokio::time::sleep(PERIOD).await;
            }
        });
        self
    }

    /// Executes a request of a user directly on the simulation.
    pub fn ask<T>(&self, request: impl FnOnce(&mut Simulation) -> T) -> T {
        let answer = request(&mut self.cluster.lock());
        self.cluster.written.send_replace(());
        answer
    }

    /// Waits until a condition holds, checking it after every write.
    ///
    /// # Errors
    /// It does not hold within a minute.
    pub fn wait_until(&self, mut is_so: impl FnMut(&Simulation) -> bool) -> Result<()> {
        let mut written = self.cluster.written.subscribe();
        self.runtime.block_on(async {
            let waiting = async {
                while !is_so(&self.cluster.lock()) {
                    written.changed().await?;
                }
                Ok(())
            };
            tokio::time::timeout(Duration::from_mins(1), waiting).await?
        })
    }

    /// Returns a kubeconfig for clients.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Returns the cluster in its final state.
    pub fn stop(self) -> Simulation {
        self.runtime.shutdown_background();
        self.cluster.lock().clone()
    }
}

/// A body that is sent in parts.
struct Answer(BoxStream<'static, Bytes>);

impl From<&Value> for Answer {
    fn from(value: &Value) -> Self {
        Self(stream::once(ready(value.to_string().into())).boxed())
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_next_unpin(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

async fn serve(stream: TcpStream, cluster: Arc<Cluster>) {
    let service = service_fn(|request| answer(request, &cluster));
    // A client that disconnects is no error of the server.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, cluster: &Arc<Cluster>) -> Result<Response<Answer>> {
    let (parts, body) = request.into_parts();
    let body = read(body).await?;
    let (code, answer) = match Asked::from_request(&parts, &body).and_then(|asked| asked.answer(cluster)) {
        Ok(answer) => (200, answer),
        Err(status) => (status.code, Answer::from(&refusal(&status))),
    };
    Ok(Response::builder().status(code).header(header::CONTENT_TYPE, "application/json").body(answer)?)
}

/// A request.
struct Asked {
    path: Vec<String>,
    call: Call,
    /// Group and version of its objects.
    of: (String, String),
    query: Vec<(String, String)>,
    accept: String,
    content_type: String,
    body: Value,
}

fn unknown() -> Status {
    Status::new(404, "NotFound", "the server could not find the requested resource")
}

/// Returns the refusal of a request without permission, as the API server words it.
fn forbidden(call: &Call, group: &str) -> Status {
    let Call { verb, resource, namespace, name, .. } = call;
    let qualified = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
    let object = if name.is_empty() { qualified } else { format!("{qualified} {name:?}") };
    let place = match namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    let what = format!("cannot {verb} resource {resource:?} in API group {group:?} {place}");
    Status::new(403, "Forbidden", format!("{object} is forbidden: User \"sim\" {what}"))
}

fn bad_request(error: impl ToString) -> Status {
    Status::new(400, "BadRequest", error.to_string())
}

impl Asked {
    fn from_request(parts: &Parts, body: &[u8]) -> Result<Self, Status> {
        let header =
            |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let path: Vec<String> = parts.uri.path().split('/').filter(|part| !part.is_empty()).map(decoded).collect();
        let part = |at: usize| path.get(at).cloned().unwrap_or_default();
        let of = if part(0) == "api" { (String::new(), part(1)) } else { (part(1), part(2)) };
        let query = parts.uri.query().unwrap_or_default().split('&').map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key), decoded(value))
        });
        Ok(Self {
            call: Call::from_request(parts, body),
            of,
            query: query.collect(),
            accept: header(header::ACCEPT),
            content_type: header(header::CONTENT_TYPE),
            body: if body.is_empty() { Value::Null } else { serde_json::from_slice(body).map_err(bad_request)? },
            path,
        })
    }

    fn option(&self, name: &str) -> &str {
        self.query.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    fn is_dry_run(&self) -> bool {
        self.option("dryRun") == "All" || self.body["dryRun"] == json!(["All"])
    }

    fn answer(&self, cluster: &Arc<Cluster>) -> Result<Answer, Status> {
        let mut simulation = cluster.lock();
        if self.call.verb.is_empty() {
            return Ok(Answer::from(&self.discovery(simulation.api())?));
        }
        let (group, version) = &self.of;
        if cluster.is_forbidden {
            return Err(forbidden(&self.call, group));
        }
        let kind = simulation.api().kind_by_plural(group, &self.call.resource).cloned().ok_or_else(unknown)?;
        if !kind.versions.iter().any(|served| served.served && served.name == *version) {
            return Err(unknown());
        }
        let meant = Meant { asked: self, gvk: Gvk::new(group, version, &kind.kind), kind };
        if self.call.verb == "watch" {
            return meant.watch(cluster);
        }
        let answer = if self.call.writes() && self.is_dry_run() {
            meant.perform(&mut simulation.api().clone(), simulation.now())
        } else {
            simulation.ask(|api, now| meant.perform(api, now))
        };
        drop(simulation);
        cluster.written.send_replace(());
        Ok(Answer::from(&answer?))
    }

    /// Returns the discovery documents of the API server.
    fn discovery(&self, api: &ApiServer) -> Result<Value, Status> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match path[..] {
            ["version"] => {
                let unsaid =
                    ["major", "minor", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"];
                let mut version: Value = unsaid.into_iter().map(|field| (field.to_owned(), json!(""))).collect();
                version["gitVersion"] = SERVER_VERSION.into();
                Ok(version)
            }
            ["api"] if !self.accept.contains(AGGREGATED) => Ok(json!({"kind": "APIVersions", "versions": ["v1"]})),
            ["apis"] if !self.accept.contains(AGGREGATED) => {
                let kinds: Vec<&ResourceKind> = api.kinds().collect();
                let mut groups: Vec<&str> = kinds.iter().map(|kind| kind.group.as_str()).collect();
                groups.retain(|group| !group.is_empty());
                groups.sort_unstable();
                groups.dedup();
                let groups: Vec<Value> = groups.into_iter().map(|group| versions_of(group, &kinds)).collect();
                Ok(json!({"apiVersion": "v1", "kind": "APIGroupList", "groups": groups}))
            }
            [root @ ("api" | "apis")] => {
                let kinds: Vec<&ResourceKind> =
                    api.kinds().filter(|kind| kind.group.is_empty() == (root == "api")).collect();
                let mut groups: Vec<&str> = kinds.iter().map(|kind| kind.group.as_str()).collect();
                groups.sort_unstable();
                groups.dedup();
                let groups: Vec<Value> = groups.into_iter().map(|group| described(group, &kinds)).collect();
                Ok(json!({
                    "apiVersion": "apidiscovery.k8s.io/v2", "kind": "APIGroupDiscoveryList", "metadata": {}, "items": groups,
                }))
            }
            ["api", _] | ["apis", _, _] => {
                let (group, version) = &self.of;
                let mut resources = api.discovery(group, version);
                if resources.is_empty() {
                    return Err(unknown());
                }
                for resource in &mut resources {
                    resource["singularName"] = "".into();
                    resource["verbs"] = json!(VERBS);
                }
                let version = Gvk::new(group, version, "").api_version();
                Ok(json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources}))
            }
            _ => Err(unknown()),
        }
    }
}

/// The verbs of every kind.
const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

/// What a client accepts that reads aggregated discovery.
const AGGREGATED: &str = "APIGroupDiscoveryList";

/// Returns the served versions of a group.
fn served_versions<'k>(group: &str, kinds: &[&'k ResourceKind]) -> Vec<&'k str> {
    let of_group = kinds.iter().filter(|kind| kind.group == group);
    let served = of_group.flat_map(|kind| kind.versions.iter().filter(|version| version.served));
    let mut versions: Vec<&str> = served.map(|version| version.name.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

/// Returns a group of an `APIGroupList`.
fn versions_of(group: &str, kinds: &[&ResourceKind]) -> Value {
    let version = |name: &str| json!({"groupVersion": format!("{group}/{name}"), "version": name});
    let versions: Vec<Value> = served_versions(group, kinds).into_iter().map(version).collect();
    json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
}

/// Returns a group of aggregated discovery, with all its versions.
fn described(group: &str, kinds: &[&ResourceKind]) -> Value {
    let of_group = || kinds.iter().filter(|kind| kind.group == group);
    let versions = served_versions(group, kinds).into_iter().map(|version| {
        let served = of_group().filter(|kind| kind.versions.iter().any(|v| v.served && v.name == version));
        let resources: Vec<Value> = served
            .map(|kind| {
                json!({
                    "resource": kind.plural, "singularResource": "", "verbs": VERBS,
                    "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
                    "responseKind": {"group": group, "version": version, "kind": kind.kind},
                })
            })
            .collect();
        json!({"version": version, "resources": resources})
    });
    let metadata = if group.is_empty() { json!({}) } else { json!({ "name": group }) };
    json!({"metadata": metadata, "versions": versions.collect::<Vec<_>>()})
}

/// A request for objects of a kind.
struct Meant<'a> {
    asked: &'a Asked,
    gvk: Gvk,
    kind: ResourceKind,
}

impl Meant<'_> {
    fn perform(&self, api: &mut ApiServer, now: Timestamp) -> Result<Value, Status> {
        let Asked { call, body, .. } = self.asked;
        let target = ObjectRef { gvk: self.gvk.clone(), namespace: call.namespace.clone(), name: call.name.clone() };
        let part = (!call.subresource.is_empty()).then_some(call.subresource.as_str());
        let view = self.view()?;
        let one = |object: &Value| view.show(object);
        match call.verb {
            "get" => {
                let object = api.get(&target).map(&one);
                object.ok_or_else(|| Status::not_found(&self.kind.resource(), &target.name))
            }
            "list" => {
                let namespace = Some(call.namespace.as_str()).filter(|namespace| !namespace.is_empty());
                let objects = api.list(&self.gvk.group, &self.gvk.kind, namespace);
                let items: Vec<Value> = objects.filter(|object| view.selects(object)).map(one).collect();
                Ok(json!({
                    "apiVersion": self.gvk.api_version(), "kind": format!("{}List", self.gvk.kind),
                    "metadata": {"resourceVersion": api.resource_version().to_string()}, "items": items,
                }))
            }
            "create" => {
                let mut object = body.clone();
                if self.kind.namespaced {
                    object::map_mut(&mut object, &["metadata"])
                        .insert("namespace".into(), call.namespace.clone().into());
                }
                api.create(object, now).as_ref().map(one).map_err(Clone::clone)
            }
            "update" => api.update(body.clone(), part, now).as_ref().map(one).map_err(Clone::clone),
            "patch" => api.patch(&target, self.patch()?, part, now).as_ref().map(one).map_err(Clone::clone),
            "delete" => {
                let text = |path: &[&str]| Some(object::text(body, path)).filter(|text| !text.is_empty());
                let preconditions = Preconditions {
                    uid: text(&["preconditions", "uid"]).map(str::to_owned),
                    resource_version: text(&["preconditions", "resourceVersion"]).map(str::to_owned),
                };
                let propagation = match text(&["propagationPolicy"]) {
                    Some("Foreground") => Propagation::Foreground,
                    Some("Orphan") => Propagation::Orphan,
                    _ => Propagation::Background,
                };
                let left = api.delete(&target, &preconditions, propagation, now)?;
                Ok(left.as_ref().map_or_else(
                    || json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success"}),
                    one,
                ))
            }
            _ => Err(unknown()),
        }
    }

    fn patch(&self) -> Result<Patch, Status> {
        let body = self.asked.body.clone();
        match self.asked.content_type.as_str() {
            "application/merge-patch+json" => Ok(Patch::Merge(body)),
            "application/json-patch+json" => Ok(Patch::Json(body)),
            "application/strategic-merge-patch+json" => Ok(Patch::Strategic(body)),
            "application/apply-patch+yaml" => Ok(Patch::Apply {
                object: body,
                manager: self.asked.option("fieldManager").to_owned(),
                force: self.asked.option("force") == "true",
            }),
            other => Err(Status::new(415, "UnsupportedMediaType", format!("{other} is no patch"))),
        }
    }

    fn view(&self) -> Result<View, Status> {
        let asked = self.asked;
        Ok(View {
            gvk: self.gvk.clone(),
            namespace: asked.call.namespace.clone(),
            labels: asked.option("labelSelector").parse().map_err(bad_request)?,
            name: asked.option("fieldSelector").strip_prefix("metadata.name=").map(str::to_owned),
            metadata_only: asked.accept.contains("as=PartialObjectMetadata"),
        })
    }

    /// Returns an endless stream of the writes since the version of the request.
    fn watch(&self, cluster: &Arc<Cluster>) -> Result<Answer, Status> {
        let from = self.asked.option("resourceVersion").parse().unwrap_or(0);
        let begun = (self.view()?, Arc::clone(cluster), cluster.written.subscribe(), from);
        let pieces = stream::unfold(begun, async |(view, cluster, mut written, mut seen)| {
            loop {
                let lines = view.changes(&cluster.lock(), &mut seen);
                if !lines.is_empty() {
                    return Some((Bytes::from(lines), (view, cluster, written, seen)));
                }
                written.changed().await.ok()?;
            }
        });
        Ok(Answer(pieces.boxed()))
    }
}

/// The objects of a request, and the form in which they are returned.
struct View {
    gvk: Gvk,
    namespace: String,
    labels: LabelQuery,
    name: Option<String>,
    metadata_only: bool,
}

impl View {
    fn selects(&self, object: &Value) -> bool {
        let gvk = object::gvk(object);
        (gvk.group, gvk.kind) == (self.gvk.group.clone(), self.gvk.kind.clone())
            && [object::namespace(object), ""].contains(&self.namespace.as_str())
            && self.labels.selects(object)
            && self.name.as_ref().is_none_or(|name| name == object::name(object))
    }

    fn show(&self, object: &Value) -> Value {
        if self.metadata_only {
            return json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"],
            });
        }
        let mut shown = object.clone();
        shown["apiVersion"] = self.gvk.api_version().into();
        shown
    }

    /// Returns the events after the last version, one per line.
    fn changes(&self, simulation: &Simulation, seen: &mut u64) -> String {
        let mut lines = String::new();
        for happening in simulation.happenings() {
            let object = happening.change.object();
            let version = object::resource_version(object).parse().unwrap_or(0);
            if version <= *seen {
                continue;
            }
            *seen = version;
            if self.selects(object) {
                let what = match happening.change {
                    WatchEvent::Added(_) => "ADDED",
                    WatchEvent::Modified(_) => "MODIFIED",
                    WatchEvent::Deleted(_) => "DELETED",
                };
                lines += &format!("{}\n", json!({"type": what, "object": self.show(object)}));
            }
        }
        lines
    }
}

/// Decodes a percent-encoded text of a URL.
fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let code = piece.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(b'%'));
        bytes.extend_from_slice(if code.is_some() { &piece.as_bytes()[2..] } else { piece.as_bytes() });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use kube::api::DeleteParams;
    use kube::config::{Config, KubeConfigOptions, Kubeconfig};
    use olm_core::api::object;
    use olm_core::settings::Settings;
    use olm_shell::cluster::api::{Api, Depth, ListQuery, Page, WatchEvent};

    use super::*;

    fn config_map(name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default", "labels": {"is": name}}, "data": {"is": name},
        })
    }

    #[test]
    fn the_client_of_the_plugins_is_served() {
        let began: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let server = ApiServer::with_stock_objects(1, began);
        let served = SimApi::start(Simulation::new(server, Settings::default(), began)).unwrap();
        let kubeconfig = served.kubeconfig();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
            used(&Api::new(kube::Client::try_from(config).unwrap())).await;
        });
        let left = served.stop();
        let left: Vec<&str> = left.api().list("", "ConfigMap", Some("default")).map(object::name).collect();
        assert_eq!(left, ["b"]);
    }

    async fn used(api: &Api) {
        assert_eq!(api.version().await.unwrap(), SERVER_VERSION);
        assert!(api.discover().await.unwrap().0.iter().any(|found| found.plural == "deployments" && found.namespaced));
        let gvk = Gvk::new("", "v1", "ConfigMap");
        let resource = api.resource(&gvk).await.unwrap();
        let all = ListQuery::all(&resource).within("default");
        let (there, version) = api.list(&all).await.and_then(Page::readable).unwrap();
        assert!(there.is_empty());
        let mut events = std::pin::pin!(api.watch(&all, &version).await.unwrap());

        api.dry_run_create(&config_map("a")).await.unwrap();
        assert_eq!(api.get(&ObjectRef::from_object(&config_map("a"))).await.unwrap(), None, "a dry run");
        let a = api.create(&config_map("a")).await.unwrap();
        assert!(api.create(&config_map("a")).await.unwrap_err().is_already_exists());
        api.create(&config_map("b")).await.unwrap();
        let changed = api.merge(&ObjectRef::from_object(&a), &json!({"data": {"more": "yes"}})).await.unwrap();
        assert_eq!(changed["data"], json!({"is": "a", "more": "yes"}));
        let selected = api.list(&all.clone().labelled("is in (b)")).await.unwrap().objects;
        assert_eq!(selected.iter().map(object::name).collect::<Vec<_>>(), ["b"]);
        let page =
            api.page(&ListQuery::all(&resource).labelled("is!=b").depth(Depth::Metadata).limit(1), "").await.unwrap();
        assert!(page.objects.iter().all(|object| object["data"].is_null() && object::name(object) == "a"));
        let one = api.list(&ListQuery::one(&resource, &ObjectRef::from_object(&a))).await.unwrap().objects.pop();
        assert_eq!(one.as_ref(), Some(&changed));

        let outdated = kube::api::Preconditions {
            uid: Some(object::uid(&a).to_owned()),
            resource_version: Some(object::resource_version(&a).to_owned()),
        };
        let stale = DeleteParams { preconditions: Some(outdated), ..DeleteParams::default() };
        assert!(api.delete(&ObjectRef::from_object(&a), &stale).await.unwrap_err().is_conflict());
        let rehearsed = DeleteParams { dry_run: true, ..DeleteParams::default() };
        api.delete(&ObjectRef::from_object(&a), &rehearsed).await.unwrap();
        assert_eq!(api.delete(&ObjectRef::from_object(&a), &DeleteParams::default()).await, Ok(None));
        assert!(api.resource(&Gvk::new("tea.example.com", "v1", "Pot")).await.unwrap_err().is_not_found());

        let mut seen = Vec::new();
        while seen.len() < 4 {
            seen.push(match events.next().await.unwrap().unwrap() {
                WatchEvent::Added(object) => format!("added {}", object::name(&object)),
                WatchEvent::Modified(object) => format!("modified {}", object::name(&object)),
                WatchEvent::Deleted(object) => format!("deleted {}", object::name(&object)),
                WatchEvent::Unreadable(_) | WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {
                    "something else".to_owned()
                }
            });
        }
        assert_eq!(seen, ["added a", "added b", "modified a", "deleted a"]);
    }
}
