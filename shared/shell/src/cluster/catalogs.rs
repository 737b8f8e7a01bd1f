//! The catalogs of the live cluster: local directories, and connections to registries.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use olm_core::catalog::Snapshot;
use olm_core::planner::Event;
use olm_core::world::{CatalogFact, ConnectionState, Fact, FactKey};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::cli::CliError;
use crate::registry;
use crate::registry::client::{Client, Observation, Settings};
use crate::run::CatalogDirectory;

/// Catalogs before the loop starts: the local directories, read.
pub struct Catalogs {
    local: Vec<(FactKey, Arc<Snapshot>)>,
}

impl Catalogs {
    /// Reads the directories of `--catalog`. A catalog without a namespace is one of the global namespace.
    pub fn read(directories: &[CatalogDirectory], global: &str) -> Result<Self, CliError> {
        let mut local = Vec::new();
        for CatalogDirectory { name, namespace, directory } in directories {
            let loaded = registry::dir::load(directory)?;
            for finding in &loaded.findings {
                tracing::warn!("{finding}");
            }
            let namespace = namespace.as_deref().unwrap_or(global);
            local.push((FactKey::Catalog(namespace.to_owned(), name.clone()), Arc::new(loaded.snapshot)));
        }
        Ok(Self { local })
    }

    /// Tells the planner of the local catalogs, and makes connections from now on.
    pub(super) fn start(self, events: mpsc::UnboundedSender<Event>) -> Connections {
        for (key, snapshot) in self.local {
            let fact = CatalogFact {
                address: String::new(),
                state: ConnectionState::Ready,
                since: Timestamp::now(),
                snapshot: Some(snapshot),
                error: None,
            };
            // The receiver is gone only when the process stops.
            let _ = events.send(Event::Learned(key, Some(Fact::Catalog(fact))));
        }
        Connections { events, clients: BTreeMap::new() }
    }
}

/// Connections to registries, by the namespace and name of their CatalogSource.
pub(super) struct Connections {
    events: mpsc::UnboundedSender<Event>,
    clients: BTreeMap<(String, String), Connection>,
}

struct Connection {
    client: Client,
    reporter: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reporter.abort();
    }
}

impl Connections {
    /// Connects to an address, in place of another that the catalog had before.
    pub(super) fn connect(&mut self, namespace: &str, name: &str, address: &str) {
        let client = Client::start(address, Settings::default());
        let key = FactKey::Catalog(namespace.to_owned(), name.to_owned());
        let reporter = tokio::spawn(report(client.observe(), key, address.to_owned(), self.events.clone()));
        self.clients.insert((namespace.to_owned(), name.to_owned()), Connection { client, reporter });
    }

    /// Closes the connection and forgets the catalog.
    pub(super) fn disconnect(&mut self, namespace: &str, name: &str) {
        self.clients.remove(&(namespace.to_owned(), name.to_owned()));
        let _ = self.events.send(Event::Learned(FactKey::Catalog(namespace.to_owned(), name.to_owned()), None));
    }

    /// Has every connection either delivered its content or failed?
    pub(super) fn are_settled(&self) -> bool {
        self.clients.values().all(|connection| {
            let seen = connection.client.observe();
            let seen = seen.borrow();
            seen.snapshot.is_some() || seen.error.is_some()
        })
    }
}

/// Turns what a client sees into facts, until nobody listens.
async fn report(
    mut seen: watch::Receiver<Observation>,
    key: FactKey,
    address: String,
    events: mpsc::UnboundedSender<Event>,
) {
    let mut last: Option<(ConnectionState, Timestamp)> = None;
    loop {
        let Observation { state, snapshot, error } = seen.borrow_and_update().clone();
        let since = match last {
            Some((known, since)) if known == state => since,
            _ => Timestamp::now(),
        };
        last = Some((state, since));
        let fact = CatalogFact { address: address.clone(), state, since, snapshot, error };
        if events.send(Event::Learned(key.clone(), Some(Fact::Catalog(fact)))).is_err() || seen.changed().await.is_err()
        {
            return;
        }
    }
}
