//! Registries with failures during a push that a real one cannot be configured to show.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use olm_shell::cli::CliError;
use olm_shell::image::{Built, Limits, Options, Pushable, Recipe, Transferred, Watch, build};
use olm_tests::images::digest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The fault of a registry.
#[derive(Clone, Debug, PartialEq)]
enum Fault {
    None,
    /// Closes the connection during the second chunk, of which it stores a part.
    BreaksOff,
    /// Fails with this status at the second chunk, once.
    FailsOnce(u16),
    /// As before, and has forgotten the upload.
    Forgets,
    /// Fails with this status at every request that writes.
    Fails(u16),
    /// Accepts no chunks.
    NoChunks,
    /// Requires chunks of at least 6 MiB.
    LargeChunks,
    /// Reports that it has more bytes than were sent.
    TooMany,
    /// Stores under another digest than requested.
    OtherDigest,
    /// Names this location for uploads.
    Location(String),
    /// Expires the token after the first accepted request.
    Expires,
    /// Never responds to a chunk.
    Silent,
}

/// What the registry has received.
#[derive(Debug, Default)]
struct State {
    requests: Vec<String>,
    authorizations: Vec<(String, String)>,
    uploads: Vec<Option<Vec<u8>>>,
    blobs: BTreeMap<String, Vec<u8>>,
    manifests: BTreeMap<String, Vec<u8>>,
    faults: usize,
    tokens: usize,
}

#[derive(Clone)]
struct Registry {
    address: SocketAddr,
    fault: Fault,
    state: Arc<Mutex<State>>,
}

impl Registry {
    async fn start(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let registry = Self { address: listener.local_addr().unwrap(), fault, state: Arc::default() };
        let serving = registry.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                // A client that disconnects is part of the test.
                tokio::spawn(async move { drop(serving.answer(stream).await) });
            }
        });
        registry
    }

    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let header = |wanted: &str| {
            head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
            })
        };
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        let is_second = method == "PATCH" && !header("content-range").unwrap().starts_with("0-");
        let mut body = vec![0; length];
        if is_second && self.fault == Fault::BreaksOff && self.first_time() {
            stream.read_exact(&mut body[..1 << 20]).await?;
            let mut state = self.state.lock().unwrap();
            let upload = state.uploads.last_mut().unwrap().as_mut().unwrap();
            upload.extend_from_slice(&body[..1 << 20]);
            return Ok(());
        }
        stream.read_exact(&mut body).await?;
        if self.fault == Fault::Silent && method == "PATCH" {
            return std::future::pending().await;
        }
        let (status, headers, content) = self.respond(&method, &target, &header, body, is_second);
        let mut response = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n", content.len());
        for (name, value) in headers {
            response += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{response}\r\n{content}").as_bytes()).await
    }

    /// Returns whether the fault has not occurred yet.
    fn first_time(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.faults += 1;
        state.faults == 1
    }

    fn respond(
        &self,
        method: &str,
        target: &str,
        header: &dyn Fn(&str) -> Option<String>,
        body: Vec<u8>,
        is_second: bool,
    ) -> (u16, Vec<(&'static str, String)>, String) {
        let plain = |status| (status, Vec::new(), String::new());
        let path = target.split('?').next().unwrap();
        if is_second {
            match self.fault {
                Fault::FailsOnce(status) if self.first_time() => return plain(status),
                Fault::Forgets if self.first_time() => {
                    *self.state.lock().unwrap().uploads.last_mut().unwrap() = None;
                    return plain(500);
                }
                _ => {}
            }
        }
        let mut state = self.state.lock().unwrap();
        state.requests.push(format!("{method} {}", path.rsplit('/').nth(1).unwrap()));
        let authorization = header("authorization").unwrap_or_default();
        state.authorizations.push((target.to_owned(), authorization.clone()));
        if self.fault == Fault::Expires {
            if path == "/token" {
                state.tokens += 1;
                return (200, Vec::new(), format!(r#"{{"token":"{}"}}"#, state.tokens));
            }
            let is_expired = authorization == "Bearer 1" && state.requests.iter().any(|r| r.starts_with("PUT"));
            if authorization.is_empty() || is_expired {
                let challenge = format!("Bearer realm=\"http://{}/token\",service=\"garden\"", self.address);
                return (401, vec![("WWW-Authenticate", challenge)], String::new());
            }
        }
        if let (Fault::Fails(status), true) = (&self.fault, method != "GET" && method != "HEAD") {
            return plain(*status);
        }
        let stored = |bytes: &[u8]| {
            let found = if self.fault == Fault::OtherDigest { digest(b"other") } else { digest(bytes) };
            vec![("Docker-Content-Digest", found)]
        };
        let last = path.rsplit('/').next().unwrap().to_owned();
        match (method, path) {
            ("GET", "/v2/") => plain(200),
            ("HEAD", _) => plain(if state.blobs.contains_key(&last) { 200 } else { 404 }),
            ("POST", _) => {
                state.uploads.push(Some(Vec::new()));
                let location = format!("/v2/garden/rose/blobs/uploads/{}?state=a%3D", state.uploads.len() - 1);
                let location = if let Fault::Location(other) = &self.fault { other.clone() } else { location };
                let mut headers = vec![("Location", location)];
                if self.fault == Fault::LargeChunks {
                    headers.push(("OCI-Chunk-Min-Length", (6 << 20).to_string()));
                }
                (202, headers, String::new())
            }
            ("PUT", _) if path.contains("/manifests/") => {
                let headers = stored(&body);
                state.manifests.insert(last, body);
                (201, headers, String::new())
            }
            ("PATCH", _) if self.fault == Fault::NoChunks => plain(405),
            _ => {
                let number: usize = last.parse().unwrap();
                let Some(upload) = state.uploads[number].as_mut() else { return plain(404) };
                if let Some(range) = header("content-range") {
                    let start: usize = range.split('-').next().unwrap().parse().unwrap();
                    if start != upload.len() {
                        return plain(416);
                    }
                }
                upload.extend(body);
                let upload = upload.clone();
                if method != "PUT" {
                    let more = if self.fault == Fault::TooMany { 1 << 30 } else { 0 };
                    let end = (upload.len() + more).saturating_sub(1);
                    let headers = vec![("Location", target.to_owned()), ("Range", format!("0-{end}"))];
                    return (if method == "GET" { 204 } else { 202 }, headers, String::new());
                }
                assert!(target.contains("?state=a%3D&digest=sha256%3A"), "{target}");
                let digest = digest(&upload);
                if !target.ends_with(digest.trim_start_matches("sha256:")) {
                    return plain(400);
                }
                let headers = stored(&upload);
                state.blobs.insert(digest, upload);
                (201, headers, String::new())
            }
        }
    }
}

/// Returns an image with a layer of several chunks: bytes that cannot be compressed.
fn image() -> Built {
    let mut state = 1_u64;
    let bytes = (0..10 << 20).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    });
    let files = [("manifests/a.yaml".to_owned(), bytes.collect())].into();
    build(&Recipe { files, ..Recipe::default() }).unwrap()
}

/// Pushes the image. Returns the result, what the registry has received, and the reported progress.
async fn pushed(registry: &Registry) -> (Result<String, CliError>, Vec<Transferred>) {
    let limits = Limits { stall: Duration::from_millis(500), ..Limits::default() };
    let options = Options { plain_http: vec![registry.address.to_string()], limits, ..Options::default() };
    let progress: Arc<Mutex<Vec<Transferred>>> = Arc::default();
    let seen = progress.clone();
    let watch: Watch = Arc::new(move |sent| seen.lock().unwrap().push(sent));
    let target = format!("{}/garden/rose:1", registry.address).parse().unwrap();
    let result = Pushable::from(image()).push(&target, &options, &watch).await;
    let progress = progress.lock().unwrap().clone();
    (result.map_err(CliError::from), progress)
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_uploads_are_resumed() {
    let built = image();
    for (fault, patches, posts) in [
        (Fault::None, 3, 2),
        (Fault::BreaksOff, 3, 2),
        (Fault::FailsOnce(500), 3, 2),
        (Fault::FailsOnce(429), 3, 2),
        (Fault::FailsOnce(416), 3, 2),
        (Fault::Forgets, 4, 3),
        (Fault::LargeChunks, 2, 2),
        (Fault::NoChunks, 1, 3),
        (Fault::TooMany, 1, 3),
        (Fault::Expires, 3, 3),
    ] {
        let registry = Registry::start(fault.clone()).await;
        let (result, progress) = pushed(&registry).await;
        assert_eq!(result.as_ref().ok(), Some(&built.manifest.digest), "{fault:?}: {result:?}");
        {
            let state = registry.state.lock().unwrap();
            assert_eq!(state.manifests["1"], built.manifest.bytes);
            assert_eq!(state.blobs[&built.layer.digest], built.layer.bytes, "{fault:?}");
            assert_eq!(state.blobs[&built.config.digest], built.config.bytes);
            let count = |method: &str| state.requests.iter().filter(|request| request.starts_with(method)).count();
            // Broken-off requests are not among them.
            assert_eq!((count("PATCH"), count("POST")), (patches, posts), "{fault:?}: {:?}", state.requests);
            let total = (built.layer.bytes.len() + built.config.bytes.len()) as u64;
            assert_eq!(progress.last(), Some(&Transferred { done: total, total }), "{fault:?}");
            assert!(progress.iter().all(|sent| sent.total == total && sent.done <= total), "{fault:?}");
            assert!(progress.len() > 100, "{fault:?}: {}", progress.len());
        }
        // A second push sends no blobs.
        registry.state.lock().unwrap().requests.clear();
        pushed(&registry).await.0.unwrap();
        let state = registry.state.lock().unwrap();
        assert!(!state.requests.iter().any(|request| request.starts_with("POST")), "{fault:?}: {:?}", state.requests);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lasting_faults_end_with_a_message_and_in_time() {
    for (fault, words) in [
        (Fault::Fails(403), "denies push access"),
        (Fault::Fails(404), "has no such repository"),
        (Fault::Fails(400), "HTTP status 400"),
        (Fault::Fails(503), "HTTP status 503"),
        (Fault::OtherDigest, "under the digest"),
        (Fault::Silent, "sent nothing"),
        (Fault::Location("ftp://example.com/a".to_owned()), "upload location that is not allowed"),
        (Fault::Location("http://[".to_owned()), "upload location that is not allowed"),
        (Fault::Location(String::new()), "upload location that is not allowed"),
    ] {
        let registry = Registry::start(fault.clone()).await;
        let (result, _) = pushed(&registry).await;
        let told = result.unwrap_err().render();
        assert!(told.contains(words), "{fault:?}: {told}");
        let state = registry.state.lock().unwrap();
        assert!(
            state.requests.len() < 40 && (state.manifests.is_empty() || fault == Fault::OtherDigest),
            "{fault:?}: {:?}",
            state.requests
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_not_sent_to_another_host_of_uploads() {
    let other = Registry::start(Fault::None).await;
    other.state.lock().unwrap().uploads.push(Some(Vec::new()));
    let location = format!("http://{}/v2/garden/rose/blobs/uploads/0?state=a%3D", other.address);
    let registry = Registry::start(Fault::Location(location)).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("auth.json");
    let auths = serde_json::json!({ "auths": { registry.address.to_string(): { "auth": "dXNlcjpwYXNz" } } });
    std::fs::write(&file, auths.to_string()).unwrap();
    let options = Options {
        plain_http: vec![registry.address.to_string()],
        credentials: olm_shell::image::Credentials::of_file(file),
        ..Options::default()
    };
    let watch: Watch = Arc::new(|_| {});
    let target = format!("{}/garden/rose:1", registry.address).parse().unwrap();
    // All uploads share a session of the other host, so that only the first one succeeds.
    let _ = Pushable::from(image()).push(&target, &options, &watch).await;
    let seen = other.state.lock().unwrap().authorizations.clone();
    assert!(!seen.is_empty() && seen.iter().all(|(_, authorization)| authorization.is_empty()), "{seen:?}");
}
