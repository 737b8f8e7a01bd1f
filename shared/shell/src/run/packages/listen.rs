//! Connections and requests, over TLS and HTTP/1.1, with limits on their number and duration.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use http::{HeaderMap, HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use olm_core::api::status::Status;
use olm_core::packages::serve::front_proxy::{Attributes, common_name};
use olm_core::packages::serve::request::Target;
use olm_core::packages::serve::watch::Watch;
use olm_core::packages::serve::{Item, Reply, Response as Answer, Store, error, reply};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::access::Access;
use crate::listener::Listener;

/// The maximum number of connections. The API server uses one for each request and each watch at a time.
const CONNECTIONS: usize = 512;
/// The maximum number of connections from one address.
const CONNECTIONS_OF_PEER: usize = 384;
/// The maximum number of watches.
const WATCHES: usize = 256;
/// The maximum number of other requests at a time.
const REQUESTS: usize = 64;
/// The maximum number of icons that are read at a time.
const ICONS: usize = 4;
/// How long the TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a request may take, with its response, and how long a connection may be idle: longer than the API server waits.
const REQUEST: Duration = Duration::from_mins(2);
/// The maximum size of the head of a request, in bytes: it names all groups of a user.
const LARGEST_HEAD: usize = 64 << 10;
/// Smaller parts of a response are joined: the size of a TLS record.
const SMALL: usize = 16 << 10;
/// How often a watch without changes reports its revision.
const BOOKMARK: Duration = Duration::from_mins(1);

/// What all requests use.
pub(super) struct Shared {
    store: watch::Receiver<Store>,
    access: Access,
    watches: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    icons: Semaphore,
}

impl Shared {
    pub(super) fn new(store: watch::Receiver<Store>, access: Access) -> Arc<Self> {
        let [watches, requests] = [WATCHES, REQUESTS].map(|most| Arc::new(Semaphore::new(most)));
        Arc::new(Self { store, access, watches, requests, icons: Semaphore::new(ICONS) })
    }
}

/// Serves until the future is dropped.
pub(super) async fn serve(socket: TcpListener, tls: watch::Receiver<Arc<ServerConfig>>, shared: Arc<Shared>) {
    let listener = Listener::new(socket, CONNECTIONS, CONNECTIONS_OF_PEER);
    let mut connections = JoinSet::new();
    loop {
        let (stream, peer, slot) = tokio::select! {
            accepted = listener.accept(|| ()) => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let (config, shared) = (tls.borrow().clone(), shared.clone());
        connections.spawn(async move {
            let ended = tokio::select! {
                ended = connection(stream, config, shared) => ended,
                () = slot => return,
            };
            if let Err(why) = ended {
                tracing::debug!(%peer, "the connection failed: {why}");
            }
        });
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn connection(stream: TcpStream, config: Arc<ServerConfig>, shared: Arc<Shared>) -> Result<(), Failure> {
    // A part of a response does not wait until the API server has acknowledged the previous one, which takes up to 40 ms.
    stream.set_nodelay(true)?;
    let stream = tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await??;
    // The certificate was verified: the configuration requires one.
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let name: Arc<str> = certificate.and_then(|certificate| common_name(certificate)).unwrap_or_default().into();
    let (deadline, until) = watch::channel(Instant::now() + REQUEST);
    let answer = service_fn(move |request: Request<Incoming>| {
        let (shared, name, deadline) = (shared.clone(), name.clone(), deadline.clone());
        async move { Ok::<_, Infallible>(respond(&shared, &name, &deadline, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST).max_buf_size(LARGEST_HEAD);
    let served = http.serve_connection(TokioIo::new(stream), answer);
    tokio::select! {
        served = served => Ok(served?),
        () = expired(until) => Err("the client does not read the response, or sends no request".into()),
    }
}

/// Resolves at the deadline, which requests move.
async fn expired(mut deadline: watch::Receiver<Instant>) {
    loop {
        let at = *deadline.borrow_and_update();
        tokio::select! {
            () = tokio::time::sleep_until(at) => return,
            // The sender lives as long as the connection.
            Ok(()) = deadline.changed() => {}
        }
    }
}

/// Returns the response to a request.
async fn respond(
    shared: &Arc<Shared>,
    name: &str,
    deadline: &watch::Sender<Instant>,
    request: Request<Incoming>,
) -> Response<Body> {
    deadline.send_replace(Instant::now() + REQUEST);
    let (parts, _) = request.into_parts();
    match attempt(shared, name, deadline, &parts).await {
        Ok(response) => response,
        Err(status) => body(error(&status), None),
    }
}

async fn attempt(
    shared: &Arc<Shared>,
    name: &str,
    deadline: &watch::Sender<Instant>,
    request: &http::request::Parts,
) -> Result<Response<Body>, Status> {
    let user = shared.access.user(name, &request.headers)?;
    let (method, path, query) = (request.method.as_str(), request.uri.path(), request.uri.query().unwrap_or_default());
    let busy =
        |_| Status::new(429, "TooManyRequests", "too many requests for PackageManifests, please try again later");
    let slot = shared.requests.clone().try_acquire_owned().map_err(busy)?;
    let target = Target::from_path(path);
    if let Some(attributes) = Attributes::from_request(method, path, &target, query) {
        shared.access.require(user, attributes).await?;
    }
    let known = text(&request.headers, &header::IF_NONE_MATCH);
    let store = shared.store.borrow().clone();
    match reply(&store, method, &target, query, text(&request.headers, &header::ACCEPT), Timestamp::now())? {
        Reply::Response(answer) => Ok(body(answer.unless_known(known), Some(slot))),
        Reply::Icon(item) => Ok(body(icon(shared, item).await?.unless_known(known), Some(slot))),
        Reply::Watch(watch) => {
            let slot = shared.watches.clone().try_acquire_owned().map_err(busy)?;
            let end = Instant::now() + Duration::from_secs(watch.seconds());
            deadline.send_replace(end + REQUEST);
            let parts = events(watch, shared.store.clone(), end, slot);
            let mut response = Response::new(Body::from_stream(parts));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Ok(response)
        }
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

async fn icon(shared: &Shared, item: Arc<Item>) -> Result<Answer, Status> {
    // The semaphore is never closed.
    let _slot = shared.icons.acquire().await;
    let read = spawn_blocking(move || item.icon()).await;
    let internal = |_| Status::new(500, "InternalError", "Internal error occurred: the icon cannot be read");
    Ok(Answer::icon(read.map_err(internal)?))
}

/// Returns the HTTP response. The slot is in use until the body was sent.
fn body(answer: Answer, slot: Option<OwnedSemaphorePermit>) -> Response<Body> {
    let Answer { code, headers, body } = answer;
    let length: usize = body.iter().map(|part| part.len()).sum();
    let parts = stream::iter(joined(body)).map(move |part| {
        let _slot = &slot;
        Ok::<_, Infallible>(part)
    });
    let mut response = Response::new(Body::from_stream(parts));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    if code != 304 {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Joins small parts, each of which would be encrypted and sent separately. Large ones are shared with other responses.
fn joined(parts: Vec<Arc<[u8]>>) -> Vec<Bytes> {
    let (mut all, mut small) = (Vec::new(), Vec::new());
    for part in parts {
        if part.len() < SMALL {
            small.extend_from_slice(&part);
        } else {
            all.extend((!small.is_empty()).then(|| Bytes::from(std::mem::take(&mut small))));
            all.push(Bytes::from_owner(part));
        }
        if small.len() >= SMALL {
            all.push(Bytes::from(std::mem::take(&mut small)));
        }
    }
    all.extend((!small.is_empty()).then(|| Bytes::from(small)));
    all
}

/// Returns the events of a watch until its end.
fn events(
    watch: Watch,
    store: watch::Receiver<Store>,
    end: Instant,
    slot: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let next = move |state: Option<(Watch, watch::Receiver<Store>, OwnedSemaphorePermit)>| async move {
        let (mut watch, mut store, slot) = state?;
        loop {
            let current = store.borrow_and_update().clone();
            let event = match watch.next(&current, Timestamp::now()) {
                Err(last) => return Some((last, None)),
                Ok(event) if event.is_empty() => tokio::select! {
                    changed = store.changed() => match changed {
                        Ok(()) => continue,
                        // The server ends.
                        Err(_) => return None,
                    },
                    () = tokio::time::sleep_until(end) => return None,
                    () = tokio::time::sleep(BOOKMARK) => match watch.bookmark() {
                        Some(mark) => mark,
                        None => continue,
                    },
                },
                Ok(event) => event,
            };
            return Some((event, Some((watch, store, slot))));
        }
    };
    let events = stream::unfold(Some((watch, store, slot)), next);
    events.flat_map(|parts| stream::iter(joined(parts)).map(Ok))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_are_joined_in_order() {
        let part = |byte: u8, length: usize| Arc::from(vec![byte; length]);
        let parts = [part(1, 3), part(2, 4), part(3, SMALL), part(4, SMALL - 1), part(5, 2), part(6, 1)];
        let joined = joined(parts.to_vec());
        assert_eq!(joined.iter().map(Bytes::len).collect::<Vec<_>>(), [7, SMALL, SMALL + 1, 1]);
        assert_eq!(joined.concat(), parts.concat());
        assert!(super::joined(Vec::new()).is_empty());
    }
}
