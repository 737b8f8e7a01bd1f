//! A hostile registry: one image, and responses that a real registry never sends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::images::Image;

/// The response of the registry that is hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The response to `/v2/`.
    Version,
    /// The response of the token service.
    Token,
    /// The manifest.
    Manifest,
    /// The image's configuration.
    Config,
    /// The first layer.
    Layer,
}

/// The hostile behaviour of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hostility {
    /// None.
    None,
    /// An endless body with a huge `Content-Length`.
    Endless,
    /// An endless chunked body without a length.
    EndlessChunks,
    /// Every byte is delayed.
    Slow,
    /// The body ends before its `Content-Length`.
    Truncated,
    /// An error with this status and an endless body.
    EndlessRefusal(u16),
    /// These bytes instead of the real ones.
    Instead(Vec<u8>),
    /// Other bytes of the same length.
    Changed,
    /// A redirect to this address.
    Redirect(String),
    /// A redirect to itself.
    RedirectLoop,
    /// An endless header.
    EndlessHeader,
}

/// The requests of clients.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// The requested paths with their counts.
    pub paths: BTreeMap<String, usize>,
    /// The `Authorization` headers.
    pub authorizations: Vec<String>,
}

/// A hostile registry on loopback that runs as long as the runtime.
#[derive(Clone, Debug)]
pub struct Registry {
    address: SocketAddr,
    asked: Arc<Mutex<Requests>>,
    sent: Arc<AtomicU64>,
}

impl Registry {
    /// Serves an image with one hostile response. With `login` it requires a token and credentials.
    ///
    /// # Errors
    /// It cannot listen.
    pub async fn start(image: Image, answer: Answer, hostility: Hostility, login: bool) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let registry = Self { address, asked: Arc::default(), sent: Arc::default() };
        let serving = Serving { registry: registry.clone(), image, answer, hostility, login };
        let serving = Arc::new(serving);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                // A client that disconnects is the expected case.
                tokio::spawn(async move { drop(serving.serve(stream).await) });
            }
        });
        Ok(registry)
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Requests {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how many bytes of endless bodies were sent, including those buffered by sockets and in flight.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

struct Serving {
    registry: Registry,
    image: Image,
    answer: Answer,
    hostility: Hostility,
    login: bool,
}

impl Serving {
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await?);
        }
        let request = String::from_utf8_lossy(&request).into_owned();
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let authorization = request.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("authorization").then(|| value.trim().to_owned())
        });
        {
            let mut asked = self.registry.asked.lock().unwrap_or_else(PoisonError::into_inner);
            *asked.paths.entry(path.clone()).or_default() += 1;
            asked.authorizations.extend(authorization.clone());
        }
        let (kind, body) = self.answer_to(&path);
        let challenge = match (kind, self.login) {
            (Some(Answer::Version), true) => {
                format!(
                    "WWW-Authenticate: Bearer realm=\"http://{}/token\",service=\"garden\"\r\n",
                    self.registry.address
                )
            }
            _ => String::new(),
        };
        let hostility = if kind == Some(self.answer) { &self.hostility } else { &Hostility::None };
        let head = |status: &str, length: Option<u64>| {
            let length = length
                .map_or_else(|| "Transfer-Encoding: chunked\r\n".to_owned(), |n| format!("Content-Length: {n}\r\n"));
            format!(
                "HTTP/1.1 {status}\r\nContent-Type: {}\r\nConnection: close\r\n{challenge}{length}",
                self.image.media_type
            )
        };
        let whole =
            |status: &str, body: &[u8]| [head(status, Some(body.len() as u64)).as_bytes(), b"\r\n", body].concat();
        let Some(_) = kind else { return stream.write_all(&whole("404 Not Found", b"")).await };
        match hostility {
            Hostility::None => stream.write_all(&whole("200 OK", &body)).await,
            Hostility::Instead(other) => stream.write_all(&whole("200 OK", other)).await,
            Hostility::Changed => {
                let changed: Vec<u8> = body.iter().map(|byte| !byte).collect();
                stream.write_all(&whole("200 OK", &changed)).await
            }
            Hostility::Truncated => {
                stream.write_all(format!("{}\r\n", head("200 OK", Some(body.len() as u64))).as_bytes()).await?;
                stream.write_all(&body[..body.len() / 2]).await
            }
            Hostility::Slow => {
                stream.write_all(format!("{}\r\n", head("200 OK", Some(1 << 20))).as_bytes()).await?;
                loop {
                    stream.write_all(b" ").await?;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Hostility::Endless => {
                stream.write_all(format!("{}\r\n", head("200 OK", Some(1 << 40))).as_bytes()).await?;
                self.endless(&mut stream, &vec![b' '; 64 << 10]).await
            }
            Hostility::EndlessRefusal(status) => {
                stream.write_all(format!("{}\r\n", head(&format!("{status} No"), Some(1 << 40))).as_bytes()).await?;
                self.endless(&mut stream, &vec![b' '; 64 << 10]).await
            }
            Hostility::EndlessChunks => {
                stream.write_all(format!("{}\r\n", head("200 OK", None)).as_bytes()).await?;
                let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 64 << 10], b"\r\n"].concat();
                self.endless(&mut stream, &chunk).await
            }
            Hostility::EndlessHeader => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nX: ").await?;
                self.endless(&mut stream, &vec![b'x'; 64 << 10]).await
            }
            Hostility::Redirect(to) => self.redirect(&mut stream, &format!("{to}{path}")).await,
            Hostility::RedirectLoop => self.redirect(&mut stream, &path).await,
        }
    }

    async fn redirect(&self, stream: &mut TcpStream, to: &str) -> std::io::Result<()> {
        let head = format!("HTTP/1.1 307 There\r\nLocation: {to}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).await
    }

    async fn endless(&self, stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
        loop {
            self.registry.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            stream.write_all(bytes).await?;
        }
    }

    fn answer_to(&self, path: &str) -> (Option<Answer>, Vec<u8>) {
        let path = path.split('?').next().unwrap_or_default();
        let digest = path.rsplit('/').next().unwrap_or_default();
        let is_layer = self.image.manifest["layers"][0]["digest"] == digest;
        match path {
            "/v2/" => (Some(Answer::Version), b"{}".to_vec()),
            "/token" => (Some(Answer::Token), br#"{"token":"given"}"#.to_vec()),
            _ if path.contains("/manifests/") => match self.image.blobs.get(digest) {
                Some(blob) => (Some(Answer::Manifest), blob.clone()),
                None => (Some(Answer::Manifest), self.image.bytes()),
            },
            _ => match self.image.blobs.get(digest) {
                Some(blob) if is_layer => (Some(Answer::Layer), blob.clone()),
                Some(blob) => (Some(Answer::Config), blob.clone()),
                None => (None, Vec::new()),
            },
        }
    }
}
