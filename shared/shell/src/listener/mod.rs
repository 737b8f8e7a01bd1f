//! Listening sockets with a limit on connections, and a lower one for each address, so that no client can exhaust them.
//!
//! ```text
//!   Listener --accept--> (stream, peer, Slot) --> registry::server   gRPC
//!                                             --> http               metrics and probes
//! ```
//!
//! *Guarantees.* A connection above a limit is closed at once; the others are served. If all slots are in use, a new
//! connection replaces the oldest one of the address with the most connections, if that has more than its own address:
//! few addresses cannot block others.

pub(crate) mod http;

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// The pause after a failure to accept, as happens if the process has too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// A listening socket with limits on its connections.
pub(crate) struct Listener {
    socket: TcpListener,
    connections: Arc<Mutex<Connections>>,
}

impl Listener {
    /// Returns a listener with at most `connections` at a time, of which `connections_of_peer` from one address.
    pub(crate) fn new(socket: TcpListener, connections: usize, connections_of_peer: usize) -> Self {
        let connections =
            Connections { most: connections, most_of_peer: connections_of_peer, ..Connections::default() };
        Self { socket, connections: Arc::new(Mutex::new(connections)) }
    }

    /// Accepts the next connection within the limits. Calls `refused` for each that is closed because of them.
    pub(crate) async fn accept(&self, refused: impl Fn()) -> (TcpStream, SocketAddr, Slot) {
        loop {
            let (stream, peer) = match self.socket.accept().await {
                Ok(accepted) => accepted,
                Err(e) => {
                    tracing::warn!("cannot accept a connection: {e}");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            if let Some(slot) = Slot::take(&self.connections, peer.ip()) {
                return (stream, peer, slot);
            }
            refused();
            tracing::warn!(%peer, "too many connections, closing this one");
        }
    }
}

/// The open connections.
#[derive(Debug, Default)]
struct Connections {
    most: usize,
    most_of_peer: usize,
    all: usize,
    next: u64,
    /// The connections by address, oldest first, each with a number. Dropping the sender ends the connection.
    peers: BTreeMap<IpAddr, VecDeque<(u64, oneshot::Sender<()>)>>,
}

impl Connections {
    /// Registers a connection of that address. Returns its number, and a receiver that reports when it has to end.
    fn take(&mut self, peer: IpAddr) -> Option<(u64, oneshot::Receiver<()>)> {
        let own = self.peers.get(&peer).map_or(0, VecDeque::len);
        if own >= self.most_of_peer {
            return None;
        }
        if self.all >= self.most {
            let greediest = self.peers.values_mut().max_by_key(|connections| connections.len())?;
            if greediest.len() <= own + 1 {
                return None;
            }
            greediest.pop_front();
            self.all -= 1;
        }
        let (sender, ended) = oneshot::channel();
        let number = self.next;
        self.next += 1;
        self.all += 1;
        self.peers.entry(peer).or_default().push_back((number, sender));
        Some((number, ended))
    }

    fn give_back(&mut self, peer: IpAddr, number: u64) {
        let Some(connections) = self.peers.get_mut(&peer) else { return };
        let before = connections.len();
        connections.retain(|(of, _)| *of != number);
        self.all -= before - connections.len();
        if connections.is_empty() {
            self.peers.remove(&peer);
        }
    }
}

/// A slot for one connection, freed on drop. As a future, it resolves when another connection takes the slot.
#[derive(Debug)]
pub(crate) struct Slot {
    connections: Arc<Mutex<Connections>>,
    peer: IpAddr,
    number: u64,
    ended: oneshot::Receiver<()>,
}

impl Slot {
    fn take(connections: &Arc<Mutex<Connections>>, peer: IpAddr) -> Option<Self> {
        let (number, ended) = connections.lock().unwrap_or_else(PoisonError::into_inner).take(peer)?;
        Some(Self { connections: connections.clone(), peer, number, ended })
    }
}

impl Future for Slot {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // The slot may be polled again after it resolved; the channel must not be.
        if self.ended.is_terminated() {
            return Poll::Ready(());
        }
        Pin::new(&mut self.ended).poll(cx).map(drop)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).give_back(self.peer, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(most: usize, most_of_peer: usize) -> Arc<Mutex<Connections>> {
        Arc::new(Mutex::new(Connections { most, most_of_peer, ..Connections::default() }))
    }

    #[test]
    fn a_slot_is_free_again_when_its_connection_ends() {
        let all = connections(9, 2);
        let [one, other] = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().unwrap());
        let first = Slot::take(&all, one).unwrap();
        let _second = Slot::take(&all, one).unwrap();
        assert!(Slot::take(&all, one).is_none() && Slot::take(&all, other).is_some());
        drop(first);
        assert!(Slot::take(&all, one).is_some());
        let all = all.lock().unwrap();
        assert_eq!((all.peers.len(), all.all), (1, 1), "an address without connections is forgotten");
    }

    #[tokio::test]
    async fn few_addresses_cannot_block_others() {
        let all = connections(4, 3);
        let [one, two, three] = [1, 2, 3].map(|n| IpAddr::from([192, 0, 2, n]));
        let mut slots: Vec<Slot> = [one, one, one, two].iter().map(|ip| Slot::take(&all, *ip).unwrap()).collect();
        let newcomer = Slot::take(&all, three).unwrap();
        assert!(slots[1].ended.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        (&mut slots[0]).await;
        (&mut slots[0]).await;
        assert_eq!(all.lock().unwrap().all, 4);
        drop(slots.remove(0));
        assert_eq!(all.lock().unwrap().all, 4, "its slot was taken by the new connection");
        assert!(Slot::take(&all, two).is_none(), "it has one, and no address has more than one more");
        drop((slots, newcomer));
        let all = all.lock().unwrap();
        assert_eq!((all.peers.len(), all.all), (0, 0));
    }
}
