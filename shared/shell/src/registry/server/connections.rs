//! Accepts connections, with a limit in total and for each address, and a deadline for the TLS handshake and the HTTP/2 preface.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tonic::transport::server::Connected;

use super::greeting::{Greeted, Greeting};
use super::{Metrics, Options};
use crate::listener::{Listener, Slot};

/// Most connections that wait to be served.
const BACKLOG: usize = 32;

/// Accepts the connections of a listener until the returned stream is dropped.
pub(super) fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    options: &Options,
    metrics: Metrics,
) -> impl Stream<Item = io::Result<Connection>> + use<> {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    let listener = Listener::new(listener, options.connections, options.connections_of_peer);
    let timeout = options.handshake_timeout;
    tokio::spawn(async move {
        loop {
            let (stream, peer, slot) = tokio::select! {
                () = sender.closed() => return,
                accepted = listener.accept(|| metrics.refused()) => accepted,
            };
            let (acceptor, sender, metrics) = (acceptor.clone(), sender.clone(), metrics.clone());
            // In a task of its own, so that a slow handshake does not delay other connections.
            tokio::spawn(async move {
                match tokio::time::timeout(timeout, greet(stream, acceptor)).await {
                    Ok(Ok(io)) => {
                        metrics.connected();
                        let greeting = Some((Greeting::default(), Box::pin(tokio::time::sleep(timeout))));
                        // The receiver is closed when the server stops.
                        let _ = sender.send(Ok(Connection { io, greeting, metrics, slot })).await;
                    }
                    Ok(Err(e)) => tracing::debug!(%peer, "the connection failed: {e}"),
                    Err(_) => tracing::debug!(%peer, "the handshake took too long"),
                }
            });
        }
    });
    futures::stream::unfold(receiver, async |mut receiver| receiver.recv().await.map(|c| (c, receiver)))
}

async fn greet(stream: TcpStream, acceptor: Option<TlsAcceptor>) -> io::Result<Box<dyn Io>> {
    // With Nagle's algorithm, a response of several frames waits 40 ms for the client's acknowledgement.
    stream.set_nodelay(true)?;
    Ok(match acceptor {
        Some(acceptor) => Box::new(acceptor.accept(stream).await?),
        None => Box::new(stream),
    })
}

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection. It is counted as open until it is dropped.
pub(super) struct Connection {
    io: Box<dyn Io>,
    /// The received part of the greeting, and its deadline; none when the greeting is complete.
    greeting: Option<(Greeting, Pin<Box<Sleep>>)>,
    metrics: Metrics,
    slot: Slot,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.metrics.disconnected();
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) -> Self::ConnectInfo {}
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if Pin::new(&mut self.slot).poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        let Some((greeting, deadline)) = &mut self.greeting else { return read };
        match greeting.take(&buf.filled()[before..]) {
            Greeted::Whole => self.greeting = None,
            Greeted::Wrong => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            Greeted::Not if deadline.as_mut().poll(cx).is_ready() => {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            Greeted::Not => {}
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
