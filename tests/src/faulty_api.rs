//! A proxy in front of a real API server, for answers that it gives only when something is sick: between it and its clients, or in it.
//!
//! ```text
//!   client ── http, no credentials ──▶ FaultyApi ── asks its judge about every call ──▶ a fault, or
//!                                          └── with the administrator's certificate ──▶ kube-apiserver
//! ```

use std::error::Error;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll, ready};

use anyhow::{Context, Result};
use http::request::Parts;
use http::{HeaderName, Method, Request, Response, header};
use hyper::body::{Body as _, Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use olm_core::api::status::Status;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What becomes of a call instead of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused, and does not reach the API server.
    Refused {
        /// HTTP status code.
        code: u16,
        /// Kubernetes' word for it.
        reason: String,
        /// The sentence.
        message: String,
    },
    /// Nobody answers.
    Silence {
        /// Does the API server execute it all the same?
        reached: bool,
    },
    /// The connection ends.
    Drop {
        /// Does the API server execute it all the same?
        reached: bool,
    },
    /// It is refused for now, and is to come back after so many seconds.
    Busy {
        /// `Retry-After`
        seconds: u32,
    },
    /// Nobody answers, and it reaches the API server when [`FaultyApi::let_go`] says so, whether somebody waits for it still or not.
    Held,
    /// It is answered; what of the answer comes later than its head waits for [`FaultyApi::let_go`]. Of a watch that are its events.
    Late,
}

/// A request to the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// As RBAC has it: `create`, `update`, `patch`, `delete`, `get`, `list`, `watch`. Empty when it is about no object.
    pub verb: &'static str,
    /// The plural of the kind.
    pub resource: String,
    /// Empty when it is about no object in a namespace.
    pub namespace: String,
    /// Name, or the beginning of one that the API server makes up.
    pub name: String,
    /// `status`, or another; empty when it is about the object itself.
    pub subresource: String,
}

impl Call {
    /// Does it change something?
    pub fn writes(&self) -> bool {
        matches!(self.verb, "create" | "update" | "patch" | "delete")
    }

    /// Is it about objects of that kind?
    pub fn is_of(&self, kind: &str) -> bool {
        let kind = kind.to_lowercase();
        let plural = match kind.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if kind.ends_with('s') => kind + "es",
            None => kind + "s",
        };
        self.resource == plural
    }

    /// What a request is about, by its path and body.
    pub(crate) fn of(request: &Parts, body: &[u8]) -> Self {
        let mut path = request.uri.path().split('/').filter(|part| !part.is_empty());
        let is_of_group = match path.next() {
            Some("api") => false,
            Some("apis") => true,
            _ => return Self::default(),
        };
        if is_of_group {
            path.next();
        }
        // The version.
        path.next();
        let parts: Vec<&str> = path.collect();
        let (namespace, parts) = match parts[..] {
            // Of a namespace, not in one.
            ["namespaces", _, "status" | "finalize"] => ("", &parts[..]),
            ["namespaces", namespace, _, ..] => (namespace, &parts[2..]),
            _ => ("", &parts[..]),
        };
        let part = |n: usize| parts.get(n).copied().unwrap_or_default().to_owned();
        let mut call = Self {
            resource: part(0),
            namespace: namespace.to_owned(),
            name: part(1),
            subresource: part(2),
            ..Self::default()
        };
        let is_watch =
            request.uri.query().unwrap_or_default().split('&').any(|p| matches!(p, "watch=true" | "watch=1"));
        call.verb = match request.method {
            _ if call.resource.is_empty() => "",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ if is_watch => "watch",
            _ if call.name.is_empty() => "list",
            _ => "get",
        };
        if call.verb == "create" {
            let object: Value = serde_json::from_slice(body).unwrap_or_default();
            let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
            call.name = text("name").or_else(|| text("generateName")).unwrap_or_default();
        }
        call
    }
}

/// Says what becomes of a call; `None`: what the API server makes of it.
type Judge = dyn FnMut(&Call) -> Option<Fault> + Send;

/// A proxy that listens on loopback until it is dropped.
pub struct FaultyApi {
    folder: TempDir,
    listens: JoinHandle<()>,
    gate: watch::Sender<bool>,
}

impl FaultyApi {
    /// Starts a proxy in front of the kubeconfig's API server, on the runtime that calls it. `judge` is asked about every call.
    pub async fn start(kubeconfig: &Path, judge: impl FnMut(&Call) -> Option<Fault> + Send + 'static) -> Result<Self> {
        let mut known = Kubeconfig::read_from(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(known.clone(), &KubeConfigOptions::default()).await?;
        // Nothing is hidden from the judge.
        config.default_retry = false;
        let client = kube::Client::try_from(config)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        for cluster in known.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = Some(format!("http://{address}"));
        }
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("kubeconfig"), serde_yaml::to_string(&known)?).context("kubeconfig")?;
        let judge: Arc<Mutex<Judge>> = Arc::new(Mutex::new(judge));
        let gate = watch::Sender::new(false);
        let opens = gate.subscribe();
        let listens = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, client.clone(), judge.clone(), opens.clone()));
            }
        });
        Ok(Self { folder, listens, gate })
    }

    /// What is held back goes on, and nothing is held back any more.
    pub fn let_go(&self) {
        self.gate.send_replace(true);
    }

    /// A kubeconfig for clients, who have an administrator's rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}

impl Drop for FaultyApi {
    fn drop(&mut self) {
        self.listens.abort();
    }
}

async fn serve(stream: TcpStream, client: kube::Client, judge: Arc<Mutex<Judge>>, gate: watch::Receiver<bool>) {
    let service = service_fn(|request| answer(request, &client, &judge, gate.clone()));
    // That a connection breaks is what this is for.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The answer; an error ends the connection without one.
async fn answer(
    request: Request<Incoming>,
    client: &kube::Client,
    judge: &Mutex<Judge>,
    mut gate: watch::Receiver<bool>,
) -> Result<Response<Gated>, Box<dyn Error + Send + Sync>> {
    let (mut parts, body) = request.into_parts();
    let body = read(body).await?;
    let call = Call::of(&parts, &body);
    let fault = judge.lock().unwrap_or_else(PoisonError::into_inner)(&call);
    let refused = match &fault {
        Some(Fault::Refused { code, reason, message }) => Some(refusal(&Status::new(*code, reason, message))),
        Some(Fault::Busy { seconds }) => {
            let mut busy = refusal(&Status::new(429, "TooManyRequests", "busy"));
            busy["details"] = json!({ "retryAfterSeconds": seconds });
            Some(busy)
        }
        _ => None,
    };
    if let Some(refusal) = refused {
        let code = refusal["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or(500_u16);
        let answer = Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
        return Ok(answer.body(Body::from(refusal.to_string().into_bytes()).into())?);
    }
    if fault == Some(Fault::Held) {
        let client = client.clone();
        for name in HOP_BY_HOP {
            parts.headers.remove(name);
        }
        let request = Request::from_parts(parts, Body::from(body));
        // Not by this task, which ends with the connection.
        tokio::spawn(async move {
            if gate.wait_for(|open| *open).await.is_ok() {
                drop(client.send(request).await);
            }
        });
        return std::future::pending().await;
    }
    let reached = !matches!(fault, Some(Fault::Silence { reached: false } | Fault::Drop { reached: false }));
    let answer = if reached {
        for name in HOP_BY_HOP {
            parts.headers.remove(name);
        }
        Some(client.send(Request::from_parts(parts, Body::from(body))).await?)
    } else {
        None
    };
    match (fault, answer) {
        (fault @ (None | Some(Fault::Late)), Some(mut answer)) => {
            for name in HOP_BY_HOP {
                answer.headers_mut().remove(name);
            }
            Ok(answer.map(|body| if fault.is_some() { Gated::late(body, gate) } else { body.into() }))
        }
        (Some(Fault::Silence { .. }), _) => std::future::pending().await,
        _ => Err("dropped".into()),
    }
}

/// A body that comes when it may.
struct Gated {
    body: Body,
    /// What is waited for; `None`: nothing.
    opens: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl From<Body> for Gated {
    fn from(body: Body) -> Self {
        Self { body, opens: None }
    }
}

impl Gated {
    fn late(body: Body, mut gate: watch::Receiver<bool>) -> Self {
        // The gate is gone only when nobody listens any more.
        Self { body, opens: Some(Box::pin(async move { drop(gate.wait_for(|open| *open).await) })) }
    }
}

impl hyper::body::Body for Gated {
    type Data = Bytes;
    type Error = kube::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, kube::Error>>> {
        if let Some(opens) = &mut self.opens {
            ready!(opens.as_mut().poll(context));
            self.opens = None;
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}

/// A refusal as an API server says it. One that is busy says when to come back.
pub(crate) fn refusal(Status { code, reason, message }: &Status) -> Value {
    let mut refusal = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "reason": reason, "message": message, "code": code,
    });
    if *code == 429 {
        refusal["details"] = json!({ "retryAfterSeconds": 1 });
    }
    refusal
}

/// The whole body of a request.
pub(crate) async fn read(mut body: Incoming) -> hyper::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}

/// What is about one connection, not about what is said on it.
const HOP_BY_HOP: [HeaderName; 3] = [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING];

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: Method, uri: &str, body: &str) -> [String; 5] {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let Call { verb, resource, namespace, name, subresource } = Call::of(&request.into_parts().0, body.as_bytes());
        [verb.to_owned(), resource, namespace, name, subresource]
    }

    #[test]
    fn calls_are_known_by_their_path() {
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        assert_eq!(call(Method::GET, "/version", ""), ["", "", "", "", ""]);
        assert_eq!(call(Method::GET, "/apis/apps/v1", ""), ["", "", "", "", ""]);
        assert_eq!(call(Method::GET, "/api/v1/pods?limit=5", ""), ["list", "pods", "", "", ""]);
        assert_eq!(call(Method::GET, "/api/v1/pods?limit=5&watch=true", ""), ["watch", "pods", "", "", ""]);
        assert_eq!(
            call(Method::PATCH, &format!("{crds}/r/status"), ""),
            ["patch", "customresourcedefinitions", "", "r", "status"]
        );
        assert_eq!(call(Method::PUT, "/api/v1/namespaces/a", ""), ["update", "namespaces", "", "a", ""]);
        assert_eq!(
            call(Method::PUT, "/api/v1/namespaces/a/finalize", ""),
            ["update", "namespaces", "", "a", "finalize"]
        );
        assert_eq!(
            call(Method::DELETE, "/apis/apps/v1/namespaces/a/deployments/b", ""),
            ["delete", "deployments", "a", "b", ""]
        );
        let created = |body| call(Method::POST, "/api/v1/namespaces/a/secrets", body);
        assert_eq!(created(r#"{"metadata":{"name":"b"}}"#), ["create", "secrets", "a", "b", ""]);
        assert_eq!(created(r#"{"metadata":{"generateName":"b-"}}"#), ["create", "secrets", "a", "b-", ""]);
        let policy = Call { resource: "networkpolicies".to_owned(), ..Call::default() };
        assert!(policy.is_of("NetworkPolicy") && !policy.is_of("Network"));
    }
}
