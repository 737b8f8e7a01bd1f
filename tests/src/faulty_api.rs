//! A proxy in front of a real API server that injects failures of the server or the network.
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

/// An injected failure of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call is refused and does not reach the API server.
    Refused {
        /// HTTP status code.
        code: u16,
        /// Kubernetes' reason.
        reason: String,
        /// The message.
        message: String,
    },
    /// There is no response.
    Silence {
        /// Whether the API server executes the call.
        reached: bool,
    },
    /// The connection is closed.
    Drop {
        /// Whether the API server executes the call.
        reached: bool,
    },
    /// The call is refused, to be retried after some seconds.
    Busy {
        /// `Retry-After`
        seconds: u32,
    },
    /// There is no response, and the call reaches the API server only after [`FaultyApi::let_go`], even if the client no longer
    /// waits.
    Held,
    /// The body of the response is delayed until [`FaultyApi::let_go`], for example the events of a watch.
    Late,
}

/// A request to the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// As in RBAC: `create`, `update`, `patch`, `delete`, `get`, `list`, `watch`. Empty if the request is not for objects.
    pub verb: &'static str,
    /// The plural of the kind.
    pub resource: String,
    /// Empty if the request is not for namespaced objects.
    pub namespace: String,
    /// Name, or the prefix of a generated name.
    pub name: String,
    /// `status` or another subresource; empty for the object itself.
    pub subresource: String,
}

impl Call {
    /// Returns whether it is a write.
    pub fn writes(&self) -> bool {
        matches!(self.verb, "create" | "update" | "patch" | "delete")
    }

    /// Returns whether it is for objects of this kind.
    pub fn is_of(&self, kind: &str) -> bool {
        let kind = kind.to_lowercase();
        let plural = match kind.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if kind.ends_with('s') => kind + "es",
            None => kind + "s",
        };
        self.resource == plural
    }

    /// Determines from path and body what a request is for.
    pub(crate) fn from_request(request: &Parts, body: &[u8]) -> Self {
        let mut path = request.uri.path().split('/').filter(|part| !part.is_empty());
        let is_of_group = match path.next() {
            Some("api") => false,
            Some("apis") => true,
            _ => return Self::default(),
        };
        if is_of_group {
            path.next();
        }
        // The API version.
        path.next();
        let parts: Vec<&str> = path.collect();
        let (namespace, parts) = match parts[..] {
            // The subresource of a namespace, not an object in one.
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

/// Decides about a call; `None` passes it to the API server.
type Judge = dyn FnMut(&Call) -> Option<Fault> + Send;

/// A proxy that listens on loopback until it is dropped.
pub struct FaultyApi {
    folder: TempDir,
    listens: JoinHandle<()>,
    gate: watch::Sender<bool>,
}

impl FaultyApi {
    /// Starts a proxy in front of the kubeconfig's API server, on the runtime of the caller. `judge` decides about every call.
    pub async fn start(kubeconfig: &Path, judge: impl FnMut(&Call) -> Option<Fault> + Send + 'static) -> Result<Self> {
        let mut known = Kubeconfig::read_from(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(known.clone(), &KubeConfigOptions::default()).await?;
        // Retries would hide failures from the judge.
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

    /// Releases everything that is held back, now and in future.
    pub fn let_go(&self) {
        self.gate.send_replace(true);
    }

    /// Returns a kubeconfig for clients, with an administrator's permissions.
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
    // Broken connections are expected.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Returns the response; an error closes the connection without one.
async fn answer(
    request: Request<Incoming>,
    client: &kube::Client,
    judge: &Mutex<Judge>,
    mut gate: watch::Receiver<bool>,
) -> Result<Response<Gated>, Box<dyn Error + Send + Sync>> {
    let (mut parts, body) = request.into_parts();
    let body = read(body).await?;
    let call = Call::from_request(&parts, &body);
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
        // In a separate task, because this one ends with the connection.
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

/// A body that is held back until it is released.
struct Gated {
    body: Body,
    /// The release to wait for, if any.
    opens: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl From<Body> for Gated {
    fn from(body: Body) -> Self {
        Self { body, opens: None }
    }
}

impl Gated {
    fn late(body: Body, mut gate: watch::Receiver<bool>) -> Self {
        // The gate is dropped only when there are no listeners left.
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

/// Returns an error as the API server formats it, with `retryAfterSeconds` if it is busy.
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

/// Reads the complete body of a request.
pub(crate) async fn read(mut body: Incoming) -> hyper::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}

/// Headers of the connection, not of the message.
const HOP_BY_HOP: [HeaderName; 3] = [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING];

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: Method, uri: &str, body: &str) -> [String; 5] {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let Call { verb, resource, namespace, name, subresource } =
            Call::from_request(&request.into_parts().0, body.as_bytes());
        [verb.to_owned(), resource, namespace, name, subresource]
    }

    #[test]
    fn calls_are_identified_by_their_path() {
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
