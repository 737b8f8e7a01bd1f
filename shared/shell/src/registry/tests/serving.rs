//! The server besides api.Registry: reflection, health, TLS, misbehaving clients, changing content, metrics.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use futures::TryStreamExt;
use olm_core::catalog::Snapshot;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tonic::transport::Channel;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::{v1, v1alpha};

use super::super::dir;
use super::super::proto::ExperimentalListPackageCustomSchemasRequest;
use super::super::proto::experimental_registry_client::ExperimentalRegistryClient;
use super::super::proto::registry_client::RegistryClient;
use super::super::proto::{GetBundleRequest, GetPackageRequest, ListBundlesRequest};
use super::super::server::{Metrics, Options, Server};
use super::{sample, serve};
use crate::catalog::serve as command;
use crate::catalog::serve::Serving;

async fn channel(address: SocketAddr) -> Channel {
    Channel::builder(format!("http://{address}").parse().unwrap()).connect().await.unwrap()
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// A server with other options.
async fn served(options: Options, metrics: Metrics) -> (Server, watch::Sender<Snapshot>) {
    let (sender, receiver) = watch::channel(dir::load(&sample()).unwrap().snapshot);
    (Server::on(listener().await, receiver, options, metrics).unwrap(), sender)
}

const SERVICES: [&str; 5] = [
    "api.ExperimentalRegistry",
    "api.Registry",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

#[tokio::test]
async fn reflection_lists_what_opm_lists_in_both_versions() {
    let (server, _sender) = serve(Snapshot::default()).await;
    let channel = channel(server.address()).await;
    let request = v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1::server_reflection_request::MessageRequest::ListServices(String::new())),
    };
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel.clone());
    let answers = client.server_reflection_info(tokio_stream(request)).await.unwrap().into_inner();
    let answers: Vec<_> = answers.try_collect().await.unwrap();
    let Some(v1::server_reflection_response::MessageResponse::ListServicesResponse(list)) =
        answers[0].message_response.clone()
    else {
        panic!("{answers:?}")
    };
    let mut names: Vec<_> = list.service.into_iter().map(|s| s.name).collect();
    names.sort();
    assert_eq!(names, SERVICES);

    let request = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1alpha::server_reflection_request::MessageRequest::FileContainingSymbol(
            "api.Registry".to_owned(),
        )),
    };
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
    let answers = client.server_reflection_info(tokio_stream(request)).await.unwrap().into_inner();
    let answers: Vec<_> = answers.try_collect().await.unwrap();
    let Some(v1alpha::server_reflection_response::MessageResponse::FileDescriptorResponse(files)) =
        answers[0].message_response.clone()
    else {
        panic!("{answers:?}")
    };
    let text = String::from_utf8_lossy(&files.file_descriptor_proto[0]).into_owned();
    for method in ["ListPackages", "GetBundleThatReplaces", "GetDefaultBundleThatProvides", "ListBundles"] {
        assert!(text.contains(method), "{method}");
    }
}

fn tokio_stream<T: Send + 'static>(item: T) -> impl futures::Stream<Item = T> + Send + 'static {
    futures::stream::iter([item])
}

#[tokio::test]
async fn every_service_is_healthy_and_unknown_ones_are_named() {
    let (server, _sender) = serve(Snapshot::default()).await;
    let channel = channel(server.address()).await;
    let mut health = HealthClient::new(channel.clone());
    for service in ["", "api.Registry", "anything"] {
        let answer = health.check(HealthCheckRequest { service: service.to_owned() }).await.unwrap();
        assert_eq!(answer.into_inner().status, 1, "{service}");
    }
    let watching = health.watch(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(watching.code(), Code::Unimplemented);
    for (path, message) in [
        ("/api.Registry/NoSuchMethod", "unknown method NoSuchMethod for service api.Registry"),
        ("/api.NoSuchService/GetPackage", "unknown service api.NoSuchService"),
    ] {
        let mut grpc = tonic::client::Grpc::new(channel.clone());
        grpc.ready().await.unwrap();
        let codec = tonic_prost::ProstCodec::<GetPackageRequest, super::super::proto::Package>::default();
        let request = Request::new(GetPackageRequest::default());
        let refused = grpc.unary(request, path.parse().unwrap(), codec).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::Unimplemented, message));
    }
}

#[tokio::test]
async fn blobs_of_other_schemas_are_returned_if_the_client_acknowledges() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = "{\"schema\":\"olm.package\",\"name\":\"rose\",\"defaultChannel\":\"a\"}\n\
        {\"schema\":\"garden.note\",\"package\":\"rose\",\"name\":\"n\",\"lines\":[1,\"two\",null,true,{\"x\":1.5}]}\n\
        {\"schema\":\"garden.note\",\"package\":\"tulip\",\"name\":\"other\"}\n";
    fs::write(folder.path().join("catalog.json"), blobs).unwrap();
    let (server, _sender) = serve(dir::load(folder.path()).unwrap().snapshot).await;
    let mut client = ExperimentalRegistryClient::new(channel(server.address()).await);
    let mut ask = async |schema: &str, package: &str, acknowledge: bool| {
        let mut request = Request::new(ExperimentalListPackageCustomSchemasRequest {
            schema: schema.to_owned(),
            package_name: package.to_owned(),
        });
        if acknowledge {
            request.metadata_mut().insert("x-acknowledge-experimental", "true".parse().unwrap());
        }
        let blobs = client.experimental_list_package_custom_schemas(request).await?.into_inner();
        blobs.try_collect::<Vec<_>>().await
    };
    let found = ask("garden.note", "rose", true).await.unwrap();
    assert_eq!(found.len(), 1);
    let name = found[0].fields["name"].kind.clone();
    assert_eq!(name, Some(prost_types::value::Kind::StringValue("n".to_owned())));
    assert_eq!(found[0].fields.len(), 4);
    assert!(ask("garden.note", "rose", false).await.unwrap().is_empty());
    assert!(ask("garden.other", "rose", true).await.unwrap().is_empty());
    assert_eq!(ask("", "rose", true).await.unwrap_err().message(), "schema is required");
    assert_eq!(ask("../x", "rose", true).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn only_misbehaving_clients_lose_their_connection() {
    let options = Options { connections: 3, handshake_timeout: Duration::from_millis(200), ..Options::default() };
    let metrics = Metrics::default();
    let (server, _sender) = served(options, metrics.clone()).await;
    let mut good = RegistryClient::new(channel(server.address()).await);
    // Sends nothing: closed after the timeout.
    let mut silent = TcpStream::connect(server.address()).await.unwrap();
    closes(&mut silent).await;
    // Sends invalid data.
    let mut garbage = TcpStream::connect(server.address()).await.unwrap();
    garbage.write_all(&[b'x'; 4096]).await.unwrap();
    closes(&mut garbage).await;
    // Opens too many connections: closed immediately.
    let mut many = Vec::new();
    for _ in 0..20 {
        many.push(TcpStream::connect(server.address()).await.unwrap());
    }
    for stream in &mut many {
        closes(stream).await;
    }
    // Sends a request that is too large.
    let name = "n".repeat(1 << 20);
    let refused = good.get_package(GetPackageRequest { name }).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    let answer = good.get_package(GetPackageRequest { name: "rose".to_owned() }).await.unwrap();
    assert_eq!(answer.into_inner().name, "rose");
    let text = metrics.text();
    let refused = text.lines().find(|l| l.starts_with("olm_registry_connections_refused_total")).unwrap();
    assert!(refused.rsplit(' ').next().unwrap().parse::<u64>().unwrap() >= 15, "{refused}");
}

/// A connection without a complete greeting is closed, and the number of connections from one address is limited.
#[tokio::test]
async fn connections_that_do_not_greet_are_closed() {
    const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64";
    let options = Options {
        connections: 100,
        connections_of_peer: 3,
        handshake_timeout: Duration::from_millis(200),
        ..Options::default()
    };
    let metrics = Metrics::default();
    let (server, _sender) = served(options, metrics.clone()).await;
    for received in [1, 24, 24 + 9, GREETING.len() - 1] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(&GREETING[..received]).await.unwrap();
        closes(&mut stream).await;
    }
    // A connection with a complete greeting stays open.
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(GREETING).await.unwrap();
        let mut settings = [0; 9];
        stream.read_exact(&mut settings).await.unwrap();
        assert_eq!(settings[3], 4);
        held.push(stream);
    }
    let mut fourth = TcpStream::connect(server.address()).await.unwrap();
    assert_eq!(closes(&mut fourth).await, 0);
    let text = metrics.text();
    assert!(text.contains("olm_registry_connections_refused_total 1"), "{text}");
}

/// A bundle whose objects cannot be read is not served without them.
#[tokio::test]
async fn a_bundle_without_its_content_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.json");
    let padding = "x".repeat(5 << 20);
    let blobs = [
        json!({ "schema": "olm.package", "name": "rose", "defaultChannel": "c", "description": padding }),
        json!({ "schema": "olm.channel", "package": "rose", "name": "c", "entries": [{ "name": "rose.v1" }] }),
        json!({ "schema": "olm.bundle", "package": "rose", "name": "rose.v1", "properties": [
            { "type": "olm.package", "value": { "packageName": "rose", "version": "1.0.0" } },
            { "type": "olm.bundle.object", "value": { "data": "eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIn0=" } },
        ] }),
    ];
    std::fs::write(&file, blobs.map(|blob| blob.to_string()).join("\n")).unwrap();
    let (server, _sender) = serve(dir::load(folder.path()).unwrap().snapshot).await;
    let mut client = RegistryClient::new(channel(server.address()).await);
    let request = || GetBundleRequest {
        pkg_name: "rose".to_owned(),
        channel_name: "c".to_owned(),
        csv_name: "rose.v1".to_owned(),
    };
    assert_eq!(client.get_bundle(request()).await.unwrap().into_inner().object.len(), 1);
    std::fs::remove_file(&file).unwrap();
    let gone = client.get_bundle(request()).await.unwrap_err();
    assert!(gone.code() == Code::Unavailable && gone.message().contains("rose.v1"), "{gone}");
    let mut list = client.list_bundles(ListBundlesRequest {}).await.unwrap().into_inner();
    assert_eq!(list.message().await.unwrap_err().code(), Code::Unavailable);
}

/// Waits until the server closes the connection. Returns the number of bytes that it sent before.
async fn closes(stream: &mut TcpStream) -> usize {
    let mut bytes = Vec::new();
    let reading = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut bytes)).await;
    // A reset connection counts as closed.
    reading.expect("it is not closed").unwrap_or_default()
}

#[tokio::test]
async fn connections_may_be_encrypted() {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let tls = Some((certificate.pem().into_bytes(), key.serialize_pem().into_bytes()));
    let (server, _sender) = served(Options { tls, ..Options::default() }, Metrics::default()).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let mut config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let address = server.address();
    let connect = tower::service_fn(move |_: http::Uri| {
        let connector = connector.clone();
        async move {
            let stream = TcpStream::connect(address).await?;
            let tls = connector.connect("localhost".try_into().unwrap(), stream).await?;
            Ok::<_, std::io::Error>(hyper_util::rt::TokioIo::new(tls))
        }
    });
    let endpoint = Channel::builder("http://localhost".parse().unwrap());
    let mut client = RegistryClient::new(endpoint.connect_with_connector(connect).await.unwrap());
    let bundles: Vec<_> =
        client.list_bundles(ListBundlesRequest {}).await.unwrap().into_inner().try_collect().await.unwrap();
    assert_eq!(bundles.len(), 5);
    let wrong = Options { tls: Some((b"no certificate".to_vec(), Vec::new())), ..Options::default() };
    let (_sender, receiver) = watch::channel(Snapshot::default());
    let refused = Server::on(listener().await, receiver, wrong, Metrics::default()).unwrap_err();
    assert!(matches!(refused, crate::registry::Error::Certificate { .. }), "{refused}");
}

#[tokio::test]
async fn a_running_response_ends_before_the_server_stops() {
    let (server, _sender) = serve(dir::load(&sample()).unwrap().snapshot).await;
    let mut client = RegistryClient::new(channel(server.address()).await);
    let mut running = client.list_bundles(ListBundlesRequest {}).await.unwrap().into_inner();
    let stopping = tokio::spawn(server.stop());
    let mut read = 0;
    while running.message().await.unwrap().is_some() {
        read += 1;
    }
    assert_eq!(read, 5);
    stopping.await.unwrap();
}

fn options(sources: &[&Path]) -> command::Options {
    command::Options {
        refs: sources.iter().map(|path| path.display().to_string().parse().unwrap()).collect(),
        address: ([127, 0, 0, 1], 0).into(),
        tls: None,
        metrics: Some(([127, 0, 0, 1], 0).into()),
        poll: Duration::ZERO,
        scan: Duration::from_millis(100),
        grace: Duration::from_secs(2),
        images: crate::image::Options::default(),
    }
}

fn package(folder: &Path, name: &str) {
    let text = format!(
        "schema: olm.package\nname: {name}\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: {name}\nname: stable\n\
         entries: [{{name: {name}.v1.0.0}}]\n---\nschema: olm.bundle\npackage: {name}\nname: {name}.v1.0.0\n\
         image: registry.example.com/{name}@sha256:{}\nproperties:\n- type: olm.package\n  value: {{packageName: {name}, version: 1.0.0}}\n",
        "0".repeat(64)
    );
    fs::create_dir_all(folder.join(name)).unwrap();
    fs::write(folder.join(name).join("catalog.yaml"), text).unwrap();
}

async fn until(snapshots: &mut watch::Receiver<Snapshot>, expected: &[&str]) {
    let names = |s: &Snapshot| s.packages().keys().cloned().collect::<Vec<_>>();
    let waiting = tokio::time::timeout(Duration::from_mins(1), snapshots.wait_for(|s| names(s) == expected)).await;
    let are_served = waiting.is_ok();
    drop(waiting);
    assert!(are_served, "{expected:?} are not served, but {:?}", names(&snapshots.borrow()));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_sources_are_served_and_read_again_when_they_change() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    package(first.path(), "rose");
    package(second.path(), "tulip");
    let serving = Serving::start(&options(&[first.path(), second.path()])).await.unwrap();
    assert!(serving.findings().is_empty(), "{:?}", serving.findings());
    assert_eq!(serving.summary(), "2 packages with 2 bundles");
    let mut snapshots = serving.snapshots();
    // One package is added and another becomes invalid: the valid ones are served.
    package(second.path(), "pot");
    fs::write(second.path().join("tulip/catalog.yaml"), "schema: olm.package\nname: tulip\n").unwrap();
    until(&mut snapshots, &["pot", "rose"]).await;
    // A source that cannot be read changes nothing, and is read again when it is available.
    let away = second.path().with_extension("away");
    fs::rename(second.path(), &away).unwrap();
    let mut client = RegistryClient::new(channel(serving.address()).await);
    let metrics = |text: String| text.contains("olm_registry_loads_total{result=\"failure\"}");
    let address = serving.metrics().unwrap();
    while !metrics(scrape(address).await) {
        tokio::task::yield_now().await;
    }
    client.get_package(GetPackageRequest { name: "pot".to_owned() }).await.unwrap();
    package(&away, "tulip");
    fs::rename(&away, second.path()).unwrap();
    until(&mut snapshots, &["pot", "rose", "tulip"]).await;
    let text = scrape(address).await;
    for line in ["olm_registry_packages 3", "olm_registry_packages_set_aside 0", "code=\"Ok\"} 1"] {
        assert!(text.contains(line), "no {line} in:\n{text}");
    }
    serving.stop().await;
}

/// Requests the metrics.
async fn scrape(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn sources_that_cannot_be_served_are_refused() {
    for (sources, words) in [
        (vec![], "nothing to serve"),
        (vec!["/does/not/exist"], "cannot read"),
        (vec!["registry.example.com/Not An Image"], "not an image reference"),
    ] {
        let sources: Vec<&Path> = sources.into_iter().map(Path::new).collect();
        let refused = Serving::start(&options(&sources)).await.unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
}
