//! Client of the OCI distribution protocol: manifests, blobs and errors.
//!
//! *Guarantees.* The size of each response is limited. Credentials are sent to the registry, and to the token service that it
//! names, which must use TLS if the registry does. They are not sent to another host after a redirect.

use std::io::{self, Read};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_RANGE, HeaderMap, HeaderValue, RANGE, WWW_AUTHENTICATE};
use oci_spec::distribution::Reference;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::challenge::Bearer;
use super::credentials::Login;
use super::manifest::{Descriptor, check_digest, digest_like, verify};
use super::{Error, Options, Used};
use crate::tls::install_crypto_provider;

/// The accepted media types of manifests.
const MANIFESTS: [&str; 4] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
/// The pause before the first retry of a request; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// Capacity of the queue between download and decompression of a layer, in chunks.
const CHUNKS: usize = 8;
/// How often a download that breaks off is continued, and the pause before.
const CONTINUED: u32 = 3;
const CONTINUED_AFTER: Duration = Duration::from_millis(200);
/// Most bytes of a response with a token. Tokens of public registries have a few thousand bytes.
const LONGEST_TOKEN: u64 = 256 << 10;
/// Most bytes of an error response.
const LONGEST_REFUSAL: u64 = 16 << 10;
/// Most redirects of one request. Public registries redirect once, to the storage of their blobs.
const REDIRECTS: usize = 5;

/// The access that is requested for a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Pull,
    Push,
}

impl Access {
    /// Returns the actions of the scope of a token.
    fn actions(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        }
    }
}

/// An image in a registry.
pub(super) struct Registry {
    pub(super) client: Client,
    pub(super) image: Reference,
    /// `https://host/v2/`
    pub(super) base: Url,
    login: Login,
    access: Access,
    /// The value of the header `Authorization`.
    pub(super) authorization: Option<HeaderValue>,
    limit: u64,
    attempts: u32,
    pub(super) stall: Duration,
    credentials: Used,
}

/// Returns whether another attempt may succeed soon.
fn is_temporary(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } => true,
        Error::Failed { code, .. } => matches!(code, 408 | 429 | 500..=599),
        Error::Refused { code, .. } => code.eq_ignore_ascii_case("TOOMANYREQUESTS"),
        _ => false,
    }
}

/// A failed request.
pub(super) struct Refusal {
    pub(super) error: Error,
    /// Whether the request may succeed with other credentials.
    pub(super) other_credentials: bool,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { error, other_credentials: false }
    }
}

impl Registry {
    /// Requests the image with each of the credentials until one is accepted. Also returns the manifest and its digest.
    pub(super) async fn open(image: &Reference, options: &Options) -> Result<(Self, Vec<u8>, String), Error> {
        if let Some(digest) = image.digest() {
            check_digest(digest)?;
        }
        let mut refused = None;
        for mut registry in Self::candidates(image, options, Access::Pull).await? {
            match registry.first().await {
                Ok((manifest, digest)) => return Ok((registry, manifest, digest)),
                Err(Refusal { error, other_credentials: false }) => return Err(error),
                Err(Refusal { error, .. }) => {
                    refused.get_or_insert(error);
                }
            }
        }
        let credentials = Used::None;
        Err(refused.unwrap_or_else(|| Error::Denied { registry: image.registry().to_owned(), credentials }))
    }

    /// Returns a client for each of the credentials, the best first; without credentials if there are none.
    pub(super) async fn candidates(image: &Reference, options: &Options, access: Access) -> Result<Vec<Self>, Error> {
        install_crypto_provider();
        let credentials = options.credentials.clone();
        let requested = image.clone();
        // Credential helpers are external programs and may block.
        let mut candidates = tokio::task::spawn_blocking(move || credentials.for_image(&requested)).await??;
        if candidates.is_empty() {
            candidates.push(Login::Anonymous);
        }
        let host = image.resolve_registry();
        let scheme = if options.plain_http.iter().any(|plain| plain == host) { "http" } else { "https" };
        let base = Url::parse(&format!("{scheme}://{host}/v2/"))
            .map_err(|source| Error::Host { host: host.to_owned(), source })?;
        let client = client(options, scheme == "https", access)?;
        let with = |login| {
            let credentials = match login {
                _ if options.withheld => Used::Withheld,
                Login::Anonymous => Used::None,
                Login::Basic(..) => Used::Found,
            };
            Self {
                client: client.clone(),
                image: image.clone(),
                base: base.clone(),
                login,
                access,
                authorization: None,
                limit: options.limits.document,
                attempts: options.limits.attempts,
                stall: options.limits.stall,
                credentials,
            }
        };
        Ok(candidates.into_iter().map(with).collect())
    }

    async fn first(&mut self) -> Result<(Vec<u8>, String), Refusal> {
        self.authorize().await?;
        let manifest = self.pull_manifest(self.image.digest().or_else(|| self.image.tag()).unwrap_or("latest")).await?;
        let digest = digest_like(self.image.digest().unwrap_or("sha256:"), &manifest);
        if let Some(expected) = self.image.digest() {
            verify(&manifest, expected)?;
        }
        Ok((manifest, digest))
    }

    /// Requests a token, if the registry requires one. It expires after some minutes.
    pub(super) async fn authorize(&mut self) -> Result<(), Refusal> {
        self.authorization = self.authorization_for(&self.login).await?;
        Ok(())
    }

    /// Returns the value of the header `Authorization`: the credentials, or the token that the token service issues for them.
    async fn authorization_for(&self, auth: &Login) -> Result<Option<HeaderValue>, Refusal> {
        let mut attempt = 1;
        let response = loop {
            match self.send(self.base.clone(), HeaderMap::new()).await {
                Ok(response) => break response,
                Err(error) => self.before_retry(error.into(), attempt).await?,
            }
            attempt += 1;
        };
        let challenges = response.headers().get_all(WWW_AUTHENTICATE);
        let challenge = challenges.iter().filter_map(|c| c.to_str().ok()).find_map(Bearer::from_header);
        let basic = match auth {
            Login::Basic(user, password) => Some(basic(user, password)?),
            Login::Anonymous => None,
        };
        let Some(Bearer { realm, service }) = challenge else {
            let is_challenged = response.headers().contains_key(WWW_AUTHENTICATE);
            return Ok(basic.filter(|_| is_challenged));
        };
        let registry = self.name();
        let mut url = match Url::parse(&realm) {
            Ok(url) => url,
            Err(source) => return Err(Error::TokenService { registry, realm, source }.into()),
        };
        // Credentials for an encrypted registry must not be sent unencrypted.
        if url.scheme() != "https" && url.scheme() != self.base.scheme() {
            return Err(Error::PlainTokenService { registry, realm }.into());
        }
        let scope = format!("repository:{}:{}", self.image.repository(), self.access.actions());
        url.query_pairs_mut().append_pair("scope", &scope);
        if let Some(service) = service {
            url.query_pairs_mut().append_pair("service", &service);
        }
        let headers = basic.map(|basic| (AUTHORIZATION, basic)).into_iter().collect();
        let response = self.send(url, headers).await?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(match status.as_u16() {
                400..=499 => self.denied(),
                code => self.failed(code),
            });
        }
        let body = self.body(response, LONGEST_TOKEN, "the response of the token service").await?;
        let token = serde_json::from_slice::<serde_json::Value>(&body).ok().and_then(|response| {
            ["token", "access_token"].iter().find_map(|key| Some(response.get(key)?.as_str()?.to_owned()))
        });
        Ok(Some(bearer(&token.ok_or(Error::NoToken { registry })?)?))
    }

    pub(super) fn name(&self) -> String {
        self.image.registry().to_owned()
    }

    /// Pulls a manifest of an index.
    pub(super) async fn manifest(&self, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
        let manifest = self.pull_manifest(&descriptor.digest).await.map_err(|refusal| refusal.error)?;
        verify(&manifest, &descriptor.digest)?;
        Ok(manifest)
    }

    async fn pull_manifest(&self, reference: &str) -> Result<Vec<u8>, Refusal> {
        let accepted = HeaderValue::from_str(&MANIFESTS.join(", ")).map(|value| (ACCEPT, value));
        let response = self.get(&format!("manifests/{reference}"), accepted.into_iter().collect()).await?;
        Ok(self.body(response, self.limit, "the manifest").await?)
    }

    /// Requests a resource of the repository.
    async fn get(&self, path: &str, mut headers: HeaderMap) -> Result<Response, Refusal> {
        headers.extend(self.authorization.clone().map(|value| (AUTHORIZATION, value)));
        let mut attempt = 1;
        loop {
            let refusal = match self.send(self.url(path)?, headers.clone()).await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) => self.refusal(response).await,
                Err(error) => error.into(),
            };
            self.before_retry(refusal, attempt).await?;
            attempt += 1;
        }
    }

    /// Returns the URL of a resource of the repository.
    pub(super) fn url(&self, path: &str) -> Result<Url, Error> {
        let url = self.base.join(&format!("{}/{path}", self.image.repository()));
        url.map_err(|source| Error::Path { path: path.to_owned(), source })
    }

    async fn send(&self, url: Url, headers: HeaderMap) -> Result<Response, Error> {
        let request = self.client.get(url).headers(headers);
        let request = match self.access {
            Access::Pull => request,
            // The client has no timeout for reading, and responses during a push are small.
            Access::Push => request.timeout(self.stall),
        };
        request.send().await.map_err(|e| self.broken_off(e))
    }

    /// Reads a body of at most `limit` bytes.
    async fn body(&self, mut response: Response, limit: u64, what: &'static str) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| self.broken_off(e))? {
            if body.len() as u64 + chunk.len() as u64 > limit {
                return Err(Error::LongAnswer { what, registry: self.name(), limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Waits before the next attempt of a request; returns an error that another attempt would not change, or the last one.
    async fn before_retry(&self, refusal: Refusal, attempt: u32) -> Result<(), Refusal> {
        if attempt >= self.attempts || !is_temporary(&refusal.error) {
            return Err(refusal);
        }
        tracing::info!("{}; trying again", refusal.error);
        tokio::time::sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
        Ok(())
    }

    pub(super) fn broken_off(&self, source: reqwest::Error) -> Error {
        let registry = self.name();
        match source {
            source if source.is_redirect() => Error::Redirect { registry, source },
            source if source.is_timeout() => Error::Stalled { registry },
            source => Error::Unreachable { registry, source },
        }
    }

    /// Pulls a small blob into memory.
    pub(super) async fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
        let limit = self.limit;
        let mut blob = self.blob(descriptor).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = blob.chunks.recv().await {
            bytes.extend_from_slice(&chunk?);
            if bytes.len() as u64 > limit {
                return Err(Error::LongDocument { digest: descriptor.digest.clone(), limit });
            }
        }
        verify(&bytes, &descriptor.digest)?;
        Ok(bytes)
    }

    /// Streams a blob. The reader must verify its digest. A download that breaks off is continued if the registry supports ranges.
    pub(super) async fn blob(&self, descriptor: &Descriptor) -> Result<Download, Error> {
        let path = format!("blobs/{}", descriptor.digest);
        let rest =
            Rest { client: self.client.clone(), url: self.url(&path)?, authorization: self.authorization.clone() };
        let response = self.get(&path, HeaderMap::new()).await;
        let mut response = response.map_err(|refusal| refusal.error)?;
        let (sender, chunks) = mpsc::channel(CHUNKS);
        let (registry, digest, stall) = (self.name(), descriptor.digest.clone(), self.stall);
        let task = tokio::spawn(async move {
            let (mut received, mut continued) = (0, 0);
            loop {
                let chunk = match tokio::time::timeout(stall, response.chunk()).await {
                    Ok(Ok(None)) => return,
                    Ok(Ok(Some(bytes))) => {
                        received += bytes.len() as u64;
                        Ok(bytes)
                    }
                    Ok(Err(source)) if !source.is_timeout() => {
                        if continued < CONTINUED
                            && let Some(rest) = rest.after(received).await
                        {
                            continued += 1;
                            response = rest;
                            continue;
                        }
                        Err(Error::BrokenOff { registry: registry.clone(), digest: digest.clone(), source })
                    }
                    Ok(Err(_)) | Err(_) => Err(Error::Stalled { registry: registry.clone() }),
                };
                let last = chunk.is_err();
                if sender.send(chunk).await.is_err() || last {
                    return;
                }
            }
        });
        Ok(Download { chunks, current: Bytes::new(), task: task.abort_handle() })
    }

    /// Returns the error for credentials without access.
    fn denied(&self) -> Refusal {
        let (registry, credentials) = (self.name(), self.credentials);
        let error = match self.access {
            Access::Pull => Error::Denied { registry, credentials },
            Access::Push => Error::PushDenied { registry, credentials },
        };
        Refusal { error, other_credentials: true }
    }

    fn no_image(&self, by_registry: bool) -> Refusal {
        let registry = self.name();
        let error = match self.access {
            Access::Pull => Error::NoImage { registry, by_registry },
            Access::Push => Error::NoRepository { registry, by_registry },
        };
        Refusal { error, other_credentials: true }
    }

    fn failed(&self, code: u16) -> Refusal {
        Error::Failed { registry: self.name(), code }.into()
    }

    /// Converts an error response.
    pub(super) async fn refusal(&self, response: Response) -> Refusal {
        let status = response.status().as_u16();
        let body = self.body(response, LONGEST_REFUSAL, "the error response").await.unwrap_or_default();
        let document: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = |path: &str| document.pointer(path).and_then(serde_json::Value::as_str).unwrap_or_default();
        match text("/errors/0/code").to_ascii_uppercase().as_str() {
            "UNAUTHORIZED" | "DENIED" => self.denied(),
            "MANIFEST_UNKNOWN" | "NAME_UNKNOWN" | "NOT_FOUND" => self.no_image(true),
            "BLOB_UNKNOWN" => Error::NoLayer { registry: self.name() }.into(),
            "" => match status {
                401 | 403 => self.denied(),
                404 => self.no_image(false),
                code => self.failed(code),
            },
            code => {
                let message = text("/errors/0/message").chars().take(300).collect();
                Error::Refused { registry: self.name(), code: code.to_owned(), message }.into()
            }
        }
    }
}

fn basic(user: &str, password: &str) -> Result<HeaderValue, Error> {
    let encoded = STANDARD.encode(format!("{user}:{password}"));
    secret(&format!("Basic {encoded}"), "credentials")
}

fn bearer(token: &str) -> Result<HeaderValue, Error> {
    secret(&format!("Bearer {token}"), "token")
}

fn secret(text: &str, what: &'static str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(text).map_err(|_| Error::Header { what })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns a client with timeouts. It does not follow redirects from TLS to plain HTTP, and sends credentials to no other host.
fn client(options: &Options, is_encrypted: bool, access: Access) -> Result<Client, Error> {
    let mut authorities = Vec::new();
    for authority in pem_blocks(&options.certificate_authorities) {
        authorities.push(reqwest::Certificate::from_pem(authority.as_bytes()).map_err(Error::Authorities)?);
    }
    let redirects = Policy::custom(move |attempt| {
        if attempt.previous().len() > REDIRECTS {
            return attempt.error(format!("more than {REDIRECTS} times"));
        }
        if is_encrypted && attempt.url().scheme() != "https" {
            return attempt.error("from TLS to plain HTTP");
        }
        attempt.follow()
    });
    let builder = Client::builder();
    let builder = match access {
        Access::Pull => builder.read_timeout(options.limits.stall),
        // This time would include that for sending a body, which is measured separately.
        Access::Push => builder,
    };
    builder
        .tls_certs_merge(authorities)
        .connect_timeout(options.limits.connect)
        .redirect(redirects)
        .referer(false)
        .user_agent(concat!("kubectl-olm/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(Error::Authorities)
}

fn pem_blocks(pem: &[u8]) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = String::from_utf8_lossy(pem);
    text.split_inclusive(END).filter(|block| block.contains(END)).map(str::to_owned).collect()
}

/// Requests the rest of a blob whose download broke off.
struct Rest {
    client: Client,
    url: Url,
    authorization: Option<HeaderValue>,
}

impl Rest {
    /// Returns the response with the bytes from this offset; none if there is no such response.
    async fn after(&self, offset: u64) -> Option<Response> {
        tokio::time::sleep(CONTINUED_AFTER).await;
        let mut request = self.client.get(self.url.clone()).header(RANGE, format!("bytes={offset}-"));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let response = request.send().await.ok()?;
        let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
        let is_rest =
            response.status() == StatusCode::PARTIAL_CONTENT && range.starts_with(&format!("bytes {offset}-"));
        is_rest.then_some(response)
    }
}

/// A running download of a blob. Dropping it ends the request.
pub(super) struct Download {
    chunks: mpsc::Receiver<Result<Bytes, Error>>,
    current: Bytes,
    task: AbortHandle,
}

impl Download {
    /// Returns a handle that ends the request; the reader then reaches the end of the data.
    pub(super) fn abort_handle(&self) -> AbortHandle {
        self.task.clone()
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Read for Download {
    /// Blocks until data has arrived. Must not be called on a thread of the async runtime.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.chunks.blocking_recv() {
                Some(Ok(bytes)) => self.current = bytes,
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(0),
            }
        }
        let length = self.current.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.current.split_to(length));
        Ok(length)
    }
}
