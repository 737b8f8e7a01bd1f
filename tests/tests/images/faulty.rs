//! Registries with failures that a real one cannot be configured to show: they stall, send wrong content, disconnect or never
//! end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use olm_shell::cli::ErrorKind;
use olm_shell::image::{Limits, Options};
use olm_tests::images::Image;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{expected, files, pull, refused, small};

/// The fault of a registry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    None,
    /// Accepts the connection and never responds.
    Silent,
    /// Sends half of a layer, and stalls.
    Stalls,
    /// Sends half of a layer, and disconnects.
    BreaksOff,
    /// Sends half of a layer, and disconnects; sends the rest on request.
    BreaksOffOnce,
    /// Sends different bytes of the same length.
    Lies,
    /// Sends an endless body.
    NeverEnds,
    /// Returns a manifest with another digest than the requested one.
    OtherManifest,
    /// Returns an error.
    Fails,
    /// Returns an error to the first two requests.
    FailsAtFirst,
    /// Is a web server.
    Html,
}

/// Starts a registry with one image on loopback that runs as long as the test's runtime.
pub(super) async fn faulty(image: Image, fault: Fault) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let image = Arc::new(image);
    tokio::spawn(async move {
        let mut requests = 0;
        while let Ok((stream, _)) = listener.accept().await {
            let image = image.clone();
            requests += 1;
            let fault = match fault {
                Fault::FailsAtFirst if requests > 2 => Fault::None,
                fault => fault,
            };
            // A client that disconnects is part of the test.
            tokio::spawn(async move { drop(answer(stream, &image, fault).await) });
        }
    });
    address
}

async fn answer(mut stream: TcpStream, image: &Image, fault: Fault) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let digest = path.rsplit('/').next().unwrap_or_default();
    let (mut body, is_layer) = match image.blobs.get(digest) {
        Some(blob) => (blob.clone(), path.contains("/blobs/") && image.manifest["layers"][0]["digest"] == digest),
        None if path.contains("/manifests/") => (image.bytes(), false),
        None => (Vec::new(), false),
    };
    let mut status = "200 OK";
    let mut range = String::new();
    let rest = request.lines().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("range: bytes=")?.strip_suffix('-')?.parse::<usize>().ok()
    });
    let is_cut = fault == Fault::BreaksOff || fault == Fault::BreaksOffOnce && rest.is_none();
    if let (Fault::BreaksOffOnce, Some(from)) = (fault, rest) {
        range = format!("Content-Range: bytes {from}-{}/{}\r\n", body.len() - 1, body.len());
        body.drain(..from);
        status = "206 Partial Content";
    }
    match fault {
        Fault::Silent => return std::future::pending().await,
        Fault::Fails if path.contains("/manifests/") => status = "503 Service Unavailable",
        Fault::FailsAtFirst => status = "429 Too Many Requests",
        Fault::Html => body = b"<html>welcome</html>".to_vec(),
        Fault::OtherManifest if path.contains("/manifests/") => body = Image::catalog(&[("other", "o")]).bytes(),
        Fault::Lies if is_layer => body.iter_mut().for_each(|b| *b = !*b),
        _ => {}
    }
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\n{range}Connection: close\r\nContent-Length: {}\r\n\r\n",
        image.media_type,
        if fault == Fault::NeverEnds && is_layer { u64::MAX / 2 } else { body.len() as u64 }
    );
    stream.write_all(head.as_bytes()).await?;
    let half = body.len() / 2;
    match fault {
        Fault::Stalls if is_layer => {
            stream.write_all(&body[..half]).await?;
            std::future::pending().await
        }
        _ if is_cut && is_layer => stream.write_all(&body[..half]).await,
        Fault::NeverEnds if is_layer => loop {
            stream.write_all(&body).await?;
        },
        _ => stream.write_all(&body).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_ends_with_a_message_and_in_time() {
    let limits = Limits { stall: Duration::from_millis(300), ..small() };
    let image = Image::catalog(&[("catalog.yaml", "some content that is long enough to be cut into two halves")]);
    for (fault, words, kind) in [
        (Fault::Silent, ["sent nothing", "try again"], ErrorKind::Unreachable),
        (Fault::Stalls, ["sent nothing", "try again"], ErrorKind::Unreachable),
        (Fault::BreaksOff, ["broke off", "try again"], ErrorKind::Unreachable),
        (Fault::Lies, ["has the digest", "push it again"], ErrorKind::Input),
        (Fault::NeverEnds, ["longer than", "sha256:"], ErrorKind::Input),
        (Fault::OtherManifest, ["has the digest", "push it again"], ErrorKind::Input),
        (Fault::Fails, ["503", "try again"], ErrorKind::Unreachable),
        (Fault::Html, ["", "sha256"], ErrorKind::Input),
    ] {
        let address = faulty(image.clone(), fault).await;
        let options = Options { plain_http: vec![address.to_string()], limits, ..Options::default() };
        let name = format!("{address}/garden/catalog@{}", image.digest());
        let error = refused(pull(&name, &options).await, &words);
        assert_eq!(error.kind, kind, "{error}");
    }
    for fault in [Fault::None, Fault::BreaksOffOnce] {
        let address = faulty(image.clone(), fault).await;
        let options = Options { plain_http: vec![address.to_string()], limits, ..Options::default() };
        let content = pull(&format!("{address}/garden/catalog:1"), &options).await.unwrap();
        assert_eq!(files(&content.root).len(), 1, "{fault:?}");
    }
}

/// The first two requests are those for the API of the registry and for the manifest.
#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_is_busy_is_asked_again() {
    let image = Image::catalog(&[("catalog.yaml", "c")]);
    for (attempts, is_pulled) in [(1, false), (3, true)] {
        let address = faulty(image.clone(), Fault::FailsAtFirst).await;
        let limits = Limits { attempts, ..small() };
        let options = Options { plain_http: vec![address.to_string()], limits, ..Options::default() };
        let pulled = pull(&format!("{address}/garden/catalog:1"), &options).await;
        if is_pulled {
            assert_eq!(files(&pulled.unwrap().root).len(), 1);
        } else {
            refused(pulled, &["429", "try again"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_pull_leaves_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let image = Image::catalog(&[("catalog.yaml", "c")]);
    let address = faulty(image, Fault::Stalls).await;
    let limits = Limits { total: Duration::from_millis(300), ..small() };
    let options = Options {
        plain_http: vec![address.to_string()],
        limits,
        cache: Some(cache.path().to_owned()),
        ..Options::default()
    };
    let error = refused(pull(&format!("{address}/garden/catalog:1"), &options).await, &["was not pulled within"]);
    assert_eq!(error.kind, ErrorKind::Unreachable);
    let closed_port = "127.0.0.1:1/garden/catalog:1";
    refused(pull(closed_port, &options).await, &["cannot be reached"]);
    assert_eq!(files(cache.path()), expected(&[]));
}
