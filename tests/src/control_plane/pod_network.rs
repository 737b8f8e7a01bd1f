//! The network between the API server and pods. Nothing inside a pod runs here, so a server of this process answers in its place.
//!
//! ```text
//!   kube-apiserver --CONNECT--> PodNetwork: TLS with the certificate in the Secret SERVICE-cert of OLM
//!                                           GET /apis/GROUP/VERSION --> an APIResourceList without resources
//! ```
//!
//! The API server connects through the socket because of its egress selector configuration. It verifies the certificate with the
//! caBundle of the APIService, so that an API is available only if its certificate, its Secret and its caBundle match.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::Acceptor;

/// The file of the API server's configuration, in its working folder.
pub(crate) const CONFIGURATION_FILE: &str = "egress-selector.yaml";
/// Maximum size of the request for a connection, in bytes.
const LONGEST_REQUEST: usize = 8 << 10;
/// How long a connection may last.
const TIMEOUT: Duration = Duration::from_secs(30);

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
    http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await?;
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

/// Answers as an API without resources.
async fn answer(request: Request<Incoming>) -> Result<Response<String>, io::Error> {
    let group_version = request.uri().path().strip_prefix("/apis/").unwrap_or_default();
    let (code, body) = if group_version.split('/').count() == 2 {
        (
            StatusCode::OK,
            json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": [] }),
        )
    } else {
        (StatusCode::NOT_FOUND, json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404 }))
    };
    let response = Response::builder().status(code).header("content-type", "application/json").body(body.to_string());
    response.map_err(io::Error::other)
}
