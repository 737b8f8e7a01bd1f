//! Serves metrics and probes over plain HTTP/1.1.
//!
//! *Guarantees.* A client that sends no request, or sends it slowly, or does not read the response, is disconnected,
//! and does not delay other clients.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use super::Listener;

/// The maximum number of connections. A scraper and the probes of a kubelet use one each.
const CONNECTIONS: usize = 256;
/// The maximum number of connections from one address.
const CONNECTIONS_OF_PEER: usize = 16;
/// How long a client may take to send the head of a request, for each request of a connection.
const HEAD: Duration = Duration::from_secs(10);
/// The maximum duration of a connection. Scrapers reconnect.
const LONGEST: Duration = Duration::from_mins(5);
/// The maximum size of the head of a request, in bytes.
const LARGEST_HEAD: usize = 16 << 10;

/// Serves the router's routes until the future is dropped.
pub(crate) async fn serve(socket: TcpListener, router: Router) {
    serve_within(socket, router, HEAD, LONGEST).await;
}

async fn serve_within(socket: TcpListener, router: Router, head: Duration, longest: Duration) {
    let listener = Listener::new(socket, CONNECTIONS, CONNECTIONS_OF_PEER);
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (stream, peer, slot) = tokio::select! {
            accepted = listener.accept(|| ()) => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let service = TowerToHyperService::new(router.clone());
        connections.spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(LARGEST_HEAD);
            let served = http.serve_connection(TokioIo::new(stream), service);
            let ended = tokio::select! {
                served = tokio::time::timeout(longest, served) => served,
                () = slot => return,
            };
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(e)) => tracing::debug!(%peer, "the connection failed: {e}"),
                Err(_) => tracing::debug!(%peer, "the connection lasted too long"),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpSocket, TcpStream};

    use super::*;

    async fn start(head: Duration, longest: Duration) -> SocketAddr {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let router = Router::new().route("/healthz", get(async || "ok"));
        tokio::spawn(serve_within(socket, router, head, longest));
        address
    }

    async fn connect(from: &str, to: SocketAddr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
        socket.connect(to).await.unwrap()
    }

    async fn answer(mut stream: TcpStream, request: &str) -> String {
        // A server that closes the connection at once may be faster.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    const REQUEST: &str = "GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

    #[tokio::test]
    async fn silent_clients_do_not_block_others() {
        let address = start(HEAD, LONGEST).await;
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_OF_PEER {
            let mut stream = connect("127.0.0.1", address).await;
            // The response proves that the connection was accepted.
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
            stream.read_u8().await.unwrap();
            silent.push(stream);
        }
        assert_eq!(answer(connect("127.0.0.1", address).await, REQUEST).await, "", "one more of the same address");
        let other = answer(connect("127.0.0.2", address).await, REQUEST).await;
        assert!(other.starts_with("HTTP/1.1 200") && other.ends_with("ok"), "{other}");
        silent.pop();
        let mut answered = String::new();
        while answered.is_empty() {
            // The server has to notice first that the connection was closed.
            tokio::task::yield_now().await;
            answered = answer(connect("127.0.0.1", address).await, REQUEST).await;
        }
        assert!(answered.ends_with("ok"), "{answered}");
    }

    #[tokio::test]
    async fn an_incomplete_request_times_out() {
        let (soon, never) = (Duration::from_millis(20), Duration::from_hours(1));
        for (head, longest) in [(soon, never), (never, soon)] {
            let address = start(head, longest).await;
            for half in ["", "GET /healthz HTTP/1.1\r\nhost:"] {
                let answer = answer(connect("127.0.0.1", address).await, half).await;
                assert!(!answer.contains("200"), "{answer}");
            }
        }
        let address = start(never, never).await;
        let endless = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(2 * LARGEST_HEAD));
        let refused = answer(connect("127.0.0.1", address).await, &endless).await;
        assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 4"), "{refused}");
    }
}
