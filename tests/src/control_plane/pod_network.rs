//! The network between the API server and pods. Nothing inside a pod runs here, so a server of this process answers in its place.
//!
//! ```text
//!   kube-apiserver --CONNECT--> PodNetwork: TLS with the certificate in the Secret SERVICE-cert of OLM
//!                                           GET /apis/GROUP/VERSION[/RESOURCE] --> the resources of APIS, all of them empty
//!                                           POST AdmissionReview  --> allowed, unless the object has the annotation DENY
//!                                           POST ConversionReview --> the objects in the other version, with the annotation CONVERTED
//! ```
//!
//! The API server connects through the socket because of its egress selector configuration. It verifies the certificate with the
//! caBundle of the APIService, the webhook configuration or the CustomResourceDefinition, so that it gets an answer only if the
//! certificate, its Secret and the caBundle match. What is answered shows in objects which Service and path were called.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::Acceptor;

use crate::faulty_api::read;

/// The file of the API server's configuration, in its working folder.
pub(crate) const CONFIGURATION_FILE: &str = "egress-selector.yaml";
/// Maximum size of the request for a connection, in bytes.
const LONGEST_REQUEST: usize = 8 << 10;
/// How long a connection may last.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The annotation of objects that a webhook denies: its `SERVICE.NAMESPACE.svc` and path.
pub const DENY: &str = "pods.example.com/deny";
/// The annotation with the `SERVICE.NAMESPACE.svc`, the path and the versions of the last conversion of an object.
pub const CONVERTED: &str = "pods.example.com/converted";

/// A resource: its name and kind, and whether it is namespaced.
type Resource = (&'static str, &'static str, bool);

/// The APIs that pods serve: group and version, and the resources.
const APIS: [(&str, &[Resource]); 1] =
    [("metrics.k8s.io/v1beta1", &[("nodes", "NodeMetrics", false), ("pods", "PodMetrics", true)])];

/// The network. Dropping it ends it.
pub(crate) struct PodNetwork {
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl PodNetwork {
    /// Starts the network of the control plane in this folder, and writes the API server's configuration.
    pub(crate) fn start(folder: &Path, kubeconfig: &Path) -> Result<Self> {
        let socket = folder.join("pods.sock");
        let configuration = json!({
            "apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
            "egressSelections": [{ "name": "cluster", "connection": {
                "proxyProtocol": "HTTPConnect", "transport": { "uds": { "udsName": socket } },
            } }],
        });
        fs::write(folder.join(CONFIGURATION_FILE), configuration.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(async { UnixListener::bind(&socket) }).context("cannot listen for pods")?;
        let (stop, stopped) = oneshot::channel::<Infallible>();
        let kubeconfig = kubeconfig.to_owned();
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, kubeconfig) => {}
                    _ = stopped => {}
                }
            });
        };
        Ok(Self { stop: Some(stop), thread: Some(std::thread::spawn(serve)) })
    }
}

impl Drop for PodNetwork {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported when it happened.
            drop(thread.join());
        }
    }
}

async fn accept(listener: UnixListener, kubeconfig: PathBuf) {
    while let Ok((stream, _)) = listener.accept().await {
        let kubeconfig = kubeconfig.clone();
        // A connection that fails is an API that is not available, which the API server reports.
        tokio::spawn(async move { drop(tokio::time::timeout(TIMEOUT, serve(stream, &kubeconfig)).await) });
    }
}

/// Serves one connection in the place of a pod.
async fn serve(mut stream: UnixStream, kubeconfig: &Path) -> Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        ensure!(request.len() < LONGEST_REQUEST, "the request for a connection is too long");
        request.push(stream.read_u8().await?);
    }
    ensure!(request.starts_with(b"CONNECT "), "not a request for a connection");
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
    let name = start.client_hello().server_name().unwrap_or_default().to_owned();
    let config = identity(&name, kubeconfig).await?;
    let stream = start.into_stream(Arc::new(config)).await?;
    let answer = service_fn(move |request| answer(name.clone(), request));
    http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await?;
    Ok(())
}

/// Returns the TLS configuration of a Service `NAME.NAMESPACE.svc`, with the certificate that OLM generated for it.
async fn identity(name: &str, kubeconfig: &Path) -> Result<ServerConfig> {
    let mut parts = name.split('.');
    let (service, namespace) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &options).await?;
    let secrets: Api<Secret> = Api::namespaced(kube::Client::try_from(config)?, namespace);
    let data = secrets.get(&format!("{service}-cert")).await?.data.unwrap_or_default();
    let pem = |key: &str| data.get(key).map(|value| value.0.as_slice()).unwrap_or_default();
    let certificates = CertificateDer::pem_slice_iter(pem("tls.crt")).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(pem("tls.key"))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    Ok(builder.with_safe_default_protocol_versions()?.with_no_client_auth().with_single_cert(certificates, key)?)
}

/// Answers a request to a host name.
async fn answer(host: String, request: Request<Incoming>) -> Result<Response<String>, io::Error> {
    let path = request.uri().path().to_owned();
    let body = if request.method() == Method::POST {
        let body = read(request.into_body()).await.map_err(io::Error::other)?;
        serde_json::from_slice(&body).ok().and_then(|review: Value| reviewed(&format!("{host}{path}"), &review))
    } else {
        resources(&path)
    };
    let (code, body) = match body {
        Some(body) => (StatusCode::OK, body),
        None => {
            let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404 });
            (StatusCode::NOT_FOUND, status)
        }
    };
    let response = Response::builder().status(code).header("content-type", "application/json").body(body.to_string());
    response.map_err(io::Error::other)
}

/// Returns the resources of a group and version, or an empty list of one of them. The API server uses this form of discovery because
/// the newer one, at `/apis`, does not exist.
fn resources(path: &str) -> Option<Value> {
    let path = path.strip_prefix("/apis/")?;
    let mut parts = path.splitn(3, '/');
    let (group, version) = (parts.next()?, parts.next()?);
    let group_version = format!("{group}/{version}");
    let known = APIS.iter().find(|(known, _)| *known == group_version).map_or(&[][..], |(_, resources)| *resources);
    let Some(rest) = parts.next() else {
        let resources: Vec<Value> = known
            .iter()
            .map(|(name, kind, is_namespaced)| {
                json!({ "name": name, "singularName": "", "kind": kind, "namespaced": is_namespaced, "verbs": ["get", "list"] })
            })
            .collect();
        return Some(json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
        }));
    };
    let (_, kind, _) = known.iter().find(|(name, ..)| rest == *name || rest.ends_with(&format!("/{name}")))?;
    Some(json!({ "kind": format!("{kind}List"), "apiVersion": group_version, "metadata": {}, "items": [] }))
}

/// Returns the review with its response.
fn reviewed(place: &str, review: &Value) -> Option<Value> {
    let request = &review["request"];
    let mut response = json!({ "uid": request["uid"] });
    match review["kind"].as_str()? {
        "AdmissionReview" => {
            let is_denied = request["object"]["metadata"]["annotations"][DENY] == place;
            response["allowed"] = (!is_denied).into();
            if is_denied {
                response["status"] = json!({ "code": 403, "message": format!("denied by {place}") });
            }
        }
        "ConversionReview" => {
            let desired = request["desiredAPIVersion"].as_str()?;
            let objects = request["objects"].as_array()?.iter();
            response["convertedObjects"] =
                objects.map(|object| converted(place, object, desired)).collect::<Option<_>>()?;
            response["result"] = json!({ "status": "Success" });
        }
        _ => return None,
    }
    Some(json!({ "kind": review["kind"], "apiVersion": review["apiVersion"], "response": response }))
}

/// Returns the object in another version. Of its metadata a conversion may change labels and annotations.
fn converted(place: &str, object: &Value, desired: &str) -> Option<Value> {
    let mut object = object.clone();
    let note = format!("{place} {} -> {desired}", object["apiVersion"].as_str()?);
    object["apiVersion"] = desired.into();
    let metadata = object["metadata"].as_object_mut()?;
    let annotations = metadata.entry("annotations").or_insert_with(|| Map::new().into());
    annotations.as_object_mut()?.insert(CONVERTED.to_owned(), note.into());
    Some(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_are_answered_by_their_object() {
        let review = |object: Value| json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": { "uid": "u", "object": object } });
        let denied = json!({ "metadata": { "annotations": { DENY: "rose.garden.svc/mutate" } } });
        let answers = [("/mutate", false), ("/validate", true)].map(|(path, allowed)| {
            let answer = reviewed(&format!("rose.garden.svc{path}"), &review(denied.clone())).unwrap();
            (answer["response"]["allowed"] == allowed, answer["response"]["uid"] == "u")
        });
        assert_eq!(answers, [(true, true); 2]);
        assert_eq!(reviewed("rose.garden.svc/", &json!({ "kind": "Rose" })), None);
    }

    #[test]
    fn conversions_change_the_version_and_an_annotation() {
        let object =
            json!({ "apiVersion": "example.com/v1", "kind": "Rose", "metadata": { "name": "red" }, "spec": 1 });
        let request = json!({ "uid": "u", "desiredAPIVersion": "example.com/v2", "objects": [object] });
        let review = json!({ "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request });
        let answer = reviewed("rose.garden.svc/", &review).unwrap();
        let note = "rose.garden.svc/ example.com/v1 -> example.com/v2";
        let expected = json!({ "apiVersion": "example.com/v2", "kind": "Rose", "spec": 1,
            "metadata": { "name": "red", "annotations": { CONVERTED: note } } });
        assert_eq!(
            answer["response"],
            json!({ "uid": "u", "convertedObjects": [expected], "result": { "status": "Success" } })
        );
    }

    #[test]
    fn apis_list_their_resources() {
        let listed = resources("/apis/metrics.k8s.io/v1beta1").unwrap();
        assert_eq!(listed["resources"][0]["kind"], "NodeMetrics");
        assert_eq!(resources("/apis/example.com/v1").unwrap()["resources"], json!([]));
        assert_eq!(resources("/apis/metrics.k8s.io/v1beta1/nodes").unwrap()["kind"], "NodeMetricsList");
        assert_eq!(resources("/apis/metrics.k8s.io/v1beta1/namespaces/a/pods").unwrap()["kind"], "PodMetricsList");
        assert_eq!(resources("/apis"), None);
    }
}
