//! Uploads to a registry: blobs in one request, or larger ones in chunks that are resumed, and manifests.
//!
//! *Guarantees.* Temporary failures are retried a few times, with increasing pauses. Credentials are sent to the registry only, also if
//! it names another host for uploads. The digests that the registry reports are compared.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RANGE,
};
use http::{Method, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use reqwest::{Response, Url};
use tokio::time::Instant;

use super::Error;
use super::manifest::Descriptor;
use super::registry::{Refusal, Registry};
use super::transfer::{Transferred, Watch};

/// The size from which blobs are uploaded in chunks, and of a chunk. Only one chunk is repeated after a failure.
const CHUNK: u64 = 4 << 20;
/// The largest chunk, if a registry requires larger ones, and the largest blob in one request, if a registry does not accept chunks.
const LARGEST_CHUNK: u64 = 64 << 20;
/// The size of the parts of a request whose progress is reported.
const PART: usize = 64 << 10;
/// Most attempts for one blob or manifest.
const ATTEMPTS: u32 = 5;
/// The pause before the first retry; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// The header with the least size of a chunk, in bytes.
const LEAST_CHUNK: HeaderName = HeaderName::from_static("oci-chunk-min-length");
/// The header with the digest of the stored content.
const STORED_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// The content of blobs.
pub(super) trait Blobs: Sync {
    /// Reads a part of a blob.
    fn part(&self, blob: &Descriptor, offset: u64, length: u64) -> Result<Bytes, Error>;
}

/// What can be done after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing.
    GiveUp,
    /// The same request with another token or other credentials.
    Authorize,
    /// The same request later.
    Retry,
    /// A request of another form.
    OtherForm,
}

/// A failed request.
struct Failure {
    refusal: Refusal,
    next: Next,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let next = match error {
            Error::Stalled { .. } | Error::Unreachable { .. } | Error::BrokenOff { .. } => Next::Retry,
            _ => Next::GiveUp,
        };
        Self { refusal: error.into(), next }
    }
}

/// An upload that the registry has accepted.
struct Session {
    url: Url,
    /// Number of bytes that the registry has.
    received: u64,
}

/// Uploads to the repository of an image.
pub(super) struct Upload {
    registry: Registry,
    watch: Watch,
    sent: Transferred,
    /// Whether the credentials were accepted once: a later refusal is that of an expired token.
    is_accepted: bool,
}

impl Upload {
    /// Starts a push of blobs of `total` bytes.
    pub(super) async fn new(mut registry: Registry, watch: Watch, total: u64) -> Result<Self, Refusal> {
        registry.authorize().await?;
        Ok(Self { registry, watch, sent: Transferred { done: 0, total }, is_accepted: false })
    }

    /// Uploads a blob, unless the registry has it.
    pub(super) async fn blob(&mut self, blob: &Descriptor, content: &dyn Blobs) -> Result<(), Refusal> {
        let done = self.sent.done;
        let mut session = None;
        let mut chunk = (blob.size > CHUNK).then_some(CHUNK);
        let mut retries = Retries::default();
        loop {
            let failure = match self.attempt(blob, content, &mut session, &mut chunk).await {
                Ok(()) => break,
                Err(failure) => failure,
            };
            if failure.next == Next::OtherForm && chunk.is_some() {
                // Some registries do not accept several chunks.
                if blob.size > LARGEST_CHUNK {
                    let (registry, digest) = (self.registry.name(), blob.digest.clone());
                    return Err(Error::LargeBlob { registry, digest, limit: LARGEST_CHUNK }.into());
                }
                (chunk, session) = (None, None);
            } else {
                self.before_retry(failure, &mut retries).await?;
            }
            self.sent.done = done;
        }
        self.sent.done = done + blob.size;
        (self.watch)(self.sent);
        Ok(())
    }

    /// Uploads a manifest under a tag or a digest.
    pub(super) async fn manifest(
        &mut self,
        manifest: &Descriptor,
        bytes: Bytes,
        reference: &str,
    ) -> Result<(), Refusal> {
        let mut retries = Retries::default();
        loop {
            match self.put_manifest(manifest, bytes.clone(), reference).await {
                Ok(()) => return Ok(()),
                Err(failure) => self.before_retry(failure, &mut retries).await?,
            }
        }
    }

    async fn put_manifest(&mut self, manifest: &Descriptor, bytes: Bytes, reference: &str) -> Result<(), Failure> {
        let url = self.registry.url(&format!("manifests/{reference}"))?;
        let media_type =
            HeaderValue::from_str(&manifest.media_type).map_err(|_| Error::Header { what: "media type" })?;
        let headers = [(CONTENT_TYPE, media_type)].into_iter().collect();
        let response = self.send(Method::PUT, &url, headers, Some(bytes)).await?;
        self.is_accepted = true;
        self.check_digest(&response, &manifest.digest)?;
        Ok(())
    }

    /// Prepares the next attempt after a failure: with a new token, or after a pause.
    async fn before_retry(&mut self, failure: Failure, retries: &mut Retries) -> Result<(), Refusal> {
        match failure.next {
            Next::Authorize if self.is_accepted && !retries.is_authorized => {
                retries.is_authorized = true;
                self.registry.authorize().await
            }
            Next::Retry if retries.count + 1 < ATTEMPTS => {
                tracing::info!("{}; trying again", failure.refusal.error);
                tokio::time::sleep(PAUSE * 2_u32.pow(retries.count)).await;
                retries.count += 1;
                Ok(())
            }
            _ => Err(failure.refusal),
        }
    }

    /// Uploads a blob, or continues the upload of its chunks. Without `chunk` it is sent in one request.
    async fn attempt(
        &mut self,
        blob: &Descriptor,
        content: &dyn Blobs,
        session: &mut Option<Session>,
        chunk: &mut Option<u64>,
    ) -> Result<(), Failure> {
        if let Some(known) = session.take() {
            // The registry may have forgotten it.
            *session = self.received(&known.url, blob).await?;
        }
        let mut current = match session.take() {
            Some(known) => known,
            None if self.has(blob).await? => return Ok(()),
            None => self.start(chunk).await?,
        };
        let Some(chunk) = *chunk else {
            let bytes = content.part(blob, 0, blob.size)?;
            return self.finish(&current.url, blob, bytes).await;
        };
        let before = self.sent.done;
        while current.received < blob.size {
            self.sent.done = before + current.received;
            let bytes = content.part(blob, current.received, chunk.min(blob.size - current.received))?;
            match self.patch(&current, blob, bytes).await {
                Ok(next) => current = next,
                Err(failure) => {
                    *session = Some(current);
                    return Err(failure);
                }
            }
        }
        self.sent.done = before + blob.size;
        self.finish(&current.url, blob, Bytes::new()).await
    }

    /// Returns whether the registry has a blob.
    async fn has(&self, blob: &Descriptor) -> Result<bool, Failure> {
        let url = self.registry.url(&format!("blobs/{}", blob.digest))?;
        let response = self.request(Method::HEAD, &url, HeaderMap::new(), None).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(false),
            status if status.is_success() => Ok(true),
            _ => Err(self.failure(response).await),
        }
    }

    /// Starts an upload.
    async fn start(&mut self, chunk: &mut Option<u64>) -> Result<Session, Failure> {
        let url = self.registry.url("blobs/uploads/")?;
        let response = self.send(Method::POST, &url, HeaderMap::new(), Some(Bytes::new())).await?;
        self.is_accepted = true;
        let least = response.headers().get(LEAST_CHUNK).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if let (Some(chunk), Some(least)) = (chunk, least) {
            *chunk = least.clamp(*chunk, LARGEST_CHUNK);
        }
        Ok(Session { url: self.location(&url, &response)?, received: 0 })
    }

    /// Sends a chunk.
    async fn patch(&self, session: &Session, blob: &Descriptor, bytes: Bytes) -> Result<Session, Failure> {
        let end = session.received + bytes.len() as u64;
        let range = format!("{}-{}", session.received, end - 1);
        let range = HeaderValue::from_str(&range).map_err(|_| Error::Header { what: "range" })?;
        let octets = HeaderValue::from_static("application/octet-stream");
        let headers = [(CONTENT_RANGE, range), (CONTENT_TYPE, octets)].into_iter().collect();
        let response = self.send(Method::PATCH, &session.url, headers, Some(bytes)).await?;
        let received = received(&response).unwrap_or(end);
        if received <= session.received || received > end {
            return Err(self.range(blob, received));
        }
        Ok(Session { url: self.location(&session.url, &response)?, received })
    }

    /// Requests the state of an upload; none if the registry does not have it any more.
    async fn received(&self, url: &Url, blob: &Descriptor) -> Result<Option<Session>, Failure> {
        let response = self.request(Method::GET, url, HeaderMap::new(), None).await?;
        if response.status().is_server_error() || response.status() == StatusCode::UNAUTHORIZED {
            return Err(self.failure(response).await);
        }
        if !response.status().is_success() {
            return Ok(None);
        }
        // An upload without any byte has the range 0-0 as well.
        let received = received(&response).filter(|received| *received > 1).unwrap_or(0);
        if received > blob.size {
            return Err(self.range(blob, received));
        }
        let url = self.location(url, &response).unwrap_or_else(|_| url.clone());
        Ok(Some(Session { url, received }))
    }

    /// Ends an upload, with the last bytes.
    async fn finish(&self, url: &Url, blob: &Descriptor, bytes: Bytes) -> Result<(), Failure> {
        let mut url = url.clone();
        url.query_pairs_mut().append_pair("digest", &blob.digest);
        let octets = HeaderValue::from_static("application/octet-stream");
        let headers = [(CONTENT_TYPE, octets)].into_iter().collect();
        let response = self.send(Method::PUT, &url, headers, Some(bytes)).await?;
        self.check_digest(&response, &blob.digest)?;
        Ok(())
    }

    /// Returns the URL of the next request of an upload.
    fn location(&self, url: &Url, response: &Response) -> Result<Url, Error> {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let registry = self.registry.name();
        let refused = || Error::UploadLocation { registry, location: location.chars().take(300).collect() };
        match url.join(location) {
            Ok(next)
                if !location.is_empty()
                    && (next.scheme() == "https" || next.scheme() == self.registry.base.scheme()) =>
            {
                Ok(next)
            }
            _ => Err(refused()),
        }
    }

    fn range(&self, blob: &Descriptor, received: u64) -> Failure {
        let (registry, digest, size) = (self.registry.name(), blob.digest.clone(), blob.size);
        let refusal = Error::UploadRange { registry, digest, received, size }.into();
        Failure { refusal, next: Next::OtherForm }
    }

    fn check_digest(&self, response: &Response, expected: &str) -> Result<(), Error> {
        match response.headers().get(STORED_DIGEST).and_then(|value| value.to_str().ok()) {
            Some(found) if found != expected => {
                let (registry, expected) = (self.registry.name(), expected.to_owned());
                Err(Error::StoredDigest { registry, expected, found: found.chars().take(200).collect() })
            }
            _ => Ok(()),
        }
    }

    /// Sends a request that must succeed.
    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, Failure> {
        let response = self.request(method, url, headers, body).await?;
        if response.status().is_success() { Ok(response) } else { Err(self.failure(response).await) }
    }

    async fn request(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, Error> {
        let registry = &self.registry;
        let mut request = registry.client.request(method, url.clone()).headers(headers);
        if url.origin() == registry.base.origin()
            && let Some(authorization) = &registry.authorization
        {
            request = request.header(AUTHORIZATION, authorization);
        }
        let active = Active::default();
        if let Some(bytes) = body {
            let feed = Feed { left: bytes, active: active.clone(), watch: self.watch.clone(), sent: self.sent };
            request = request.header(CONTENT_LENGTH, feed.left.len()).body(reqwest::Body::wrap(feed));
        }
        tokio::select! {
            response = request.send() => response.map_err(|e| registry.broken_off(e)),
            () = active.stalled(registry.stall) => Err(Error::Stalled { registry: registry.name() }),
        }
    }

    /// Converts an error response.
    async fn failure(&self, response: Response) -> Failure {
        let status = response.status();
        let next = match status.as_u16() {
            401 => Next::Authorize,
            // 416: the range of a chunk is wrong, because the registry has more or less than expected.
            408 | 416 | 425 | 429 | 500..=599 => Next::Retry,
            _ => Next::OtherForm,
        };
        let stall = self.registry.stall;
        match tokio::time::timeout(stall, self.registry.refusal(response)).await {
            Ok(refusal) => Failure { refusal, next },
            Err(_) => Error::Stalled { registry: self.registry.name() }.into(),
        }
    }
}

/// Returns how many bytes the registry has, from the header `Range`: `0-1023`, or `bytes=0-1023`.
fn received(response: &Response) -> Option<u64> {
    let range = response.headers().get(RANGE)?.to_str().ok()?;
    let (_, last) = range.rsplit_once('-')?;
    last.trim().parse::<u64>().ok()?.checked_add(1)
}

/// The attempts for one blob or manifest.
#[derive(Default)]
struct Retries {
    count: u32,
    is_authorized: bool,
}

/// The time of the last progress of a request.
#[derive(Clone)]
struct Active(Arc<Mutex<Instant>>);

impl Default for Active {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Active {
    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progressed(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Resolves when there was no progress for this time.
    async fn stalled(&self, stall: Duration) {
        loop {
            let last = self.last();
            tokio::time::sleep_until(last + stall).await;
            if self.last() == last {
                return;
            }
        }
    }
}

/// The body of a request, which reports its progress.
struct Feed {
    left: Bytes,
    active: Active,
    watch: Watch,
    sent: Transferred,
}

impl Body for Feed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.left.len().min(PART);
        let part = self.left.split_to(length);
        self.active.progressed();
        self.sent.done = self.sent.total.min(self.sent.done + length as u64);
        (self.watch)(self.sent);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}
