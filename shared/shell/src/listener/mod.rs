//! Listening sockets that no client can exhaust: a limit on connections, and a lower one for each address.
//!
//! ```text
//!   Listener --accept--> (stream, peer, Slot) --> registry::server   gRPC
//!                                             --> http               metrics and probes
//! ```
//!
//! *Guarantee.* A connection above a limit is closed at once; the others are served.

pub(crate) mod http;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A pause after accepting failed, which it does when the process has too many files open.
const PAUSE: Duration = Duration::from_millis(100);

/// A listening socket with limits on its connections.
pub(crate) struct Listener {
    socket: TcpListener,
    slots: Arc<Semaphore>,
    peers: Peers,
    connections_of_peer: usize,
}

/// The right to one connection, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Slot {
    _slot: OwnedSemaphorePermit,
    _peer: PeerSlot,
}

impl Listener {
    /// At most `connections` at a time, and `connections_of_peer` of them from one address.
    pub(crate) fn new(socket: TcpListener, connections: usize, connections_of_peer: usize) -> Self {
        let slots = Arc::new(Semaphore::new(connections));
        Self { socket, slots, peers: Peers::default(), connections_of_peer }
    }

    /// The next connection within the limits. Calls `refused` for each that is closed because of them.
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
            let Ok(slot) = self.slots.clone().try_acquire_owned() else {
                refused();
                tracing::warn!(%peer, "too many connections: this one is closed");
                continue;
            };
            let Some(place) = PeerSlot::take(&self.peers, peer.ip(), self.connections_of_peer) else {
                refused();
                tracing::warn!(%peer, "too many connections of one address: this one is closed");
                continue;
            };
            return (stream, peer, Slot { _slot: slot, _peer: place });
        }
    }
}

/// How many connections each address has.
type Peers = Arc<Mutex<BTreeMap<IpAddr, usize>>>;

/// One of the connections that an address may have.
#[derive(Debug)]
struct PeerSlot {
    peers: Peers,
    peer: IpAddr,
}

impl PeerSlot {
    fn take(peers: &Peers, peer: IpAddr, most: usize) -> Option<Self> {
        let mut counts = peers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(peer).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Self { peers: peers.clone(), peer })
    }
}

impl Drop for PeerSlot {
    fn drop(&mut self) {
        let mut counts = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_again_when_its_connection_ends() {
        let peers = Peers::default();
        let [one, other] = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().unwrap());
        let first = PeerSlot::take(&peers, one, 2).unwrap();
        let _second = PeerSlot::take(&peers, one, 2).unwrap();
        assert!(PeerSlot::take(&peers, one, 2).is_none() && PeerSlot::take(&peers, other, 2).is_some());
        drop(first);
        assert!(PeerSlot::take(&peers, one, 2).is_some());
        assert_eq!(peers.lock().unwrap().len(), 1, "an address without connections is forgotten");
    }
}
