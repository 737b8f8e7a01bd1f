//! External facts that planning needs and that are not objects: the content of catalogs and of bundle images, the server's
//! version.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::api::catalog_source::Target;
use crate::api::object::ObjectRef;
use crate::api::status::Status;
use crate::bundle::{BundleImage, Unpacking};
use crate::catalog::Snapshot;
use crate::plan::{Key, Verb};
use crate::structural::SchemaCheckResult;

/// The subject of a fact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactKey {
    /// The catalog of this namespace and name.
    Catalog(String, String),
    /// The image of a bundle.
    Bundle(BundleImage),
    /// The API server's version.
    ServerVersion,
    /// The kinds that the API server serves in this version of a group. Stored as long as a plan reads it.
    Discovery(String, String),
    /// The actions of a key's plan that the API server refused.
    Refusals(Key),
    /// Whether the custom resources of the CustomResourceDefinition of this name match schemas of this digest. Stored as
    /// long as a plan reads it.
    SchemaCheck(String, String),
}

impl FactKey {
    /// Returns the key that stands for all catalogs of a namespace in recorded reads.
    pub fn catalogs_of(namespace: &str) -> Self {
        Self::Catalog(namespace.to_owned(), String::new())
    }

    /// Returns the key that stands for all bundle images of a namespace in recorded reads.
    pub fn bundles_of(namespace: &str) -> Self {
        let none = String::new;
        let namespace = namespace.to_owned();
        Self::Bundle(BundleImage { namespace, catalog_namespace: none(), catalog: none(), image: none() })
    }

    /// Returns whether the fact is stored only as long as a plan reads it.
    pub(crate) fn is_forgotten_unread(&self) -> bool {
        matches!(self, Self::Discovery(..) | Self::SchemaCheck(..))
    }

    /// Returns the key that stands for this one and similar ones in recorded reads.
    pub(crate) fn group(&self) -> Option<Self> {
        match self {
            Self::Catalog(namespace, _) => Some(Self::catalogs_of(namespace)),
            Self::Bundle(bundle) => Some(Self::bundles_of(&bundle.namespace)),
            Self::ServerVersion | Self::Discovery(..) | Self::Refusals(_) | Self::SchemaCheck(..) => None,
        }
    }
}

/// A fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A catalog's connection and content.
    Catalog(CatalogFact),
    /// The state of unpacking a bundle image.
    Bundle(Unpacking),
    /// `gitVersion`, with its `v`.
    ServerVersion(String),
    /// The kinds that the API server serves in a version of a group.
    Discovery(Discovery),
    /// Actions that were refused, and when they are tried again.
    Refusals(Vec<Refusal>),
    /// The result of a check of custom resources.
    SchemaCheck(SchemaCheckResult),
}

/// The API server's discovery of one version of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// The kinds of the last response, and whether they are namespaced; that is unknown for kinds that only a subresource has
    /// (`Scale`, `Eviction`). Empty when the version is not served. `None` before the first response.
    pub kinds: Option<BTreeMap<String, Option<bool>>>,
    /// Why there is no newer response, or why it is incomplete: kinds that are not in `kinds` may be served.
    pub error: Option<String>,
}

impl Discovery {
    /// Creates the fact of a response.
    pub fn new(kinds: BTreeMap<String, Option<bool>>) -> Self {
        Self { kinds: Some(kinds), error: None }
    }

    /// Creates the fact of a failed request.
    pub fn failed(error: impl Into<String>) -> Self {
        Self { kinds: None, error: Some(error.into()) }
    }

    /// Returns whether the kind is served. The error states why that is unknown.
    ///
    /// # Errors
    /// The API server did not respond, and no previous response contains the kind.
    pub fn serves(&self, kind: &str) -> Result<bool, &str> {
        match (&self.kinds, &self.error) {
            (Some(kinds), _) if kinds.contains_key(kind) => Ok(true),
            (_, Some(error)) => Err(error),
            (..) => Ok(false),
        }
    }

    /// Returns whether the kind is namespaced; `None` if unknown.
    pub fn is_namespaced(&self, kind: &str) -> Option<bool> {
        self.kinds.as_ref()?.get(kind).copied().flatten()
    }

    /// Merges this observation with an earlier one: a failed attempt does not remove known kinds.
    pub(super) fn after(self, earlier: Option<&Self>) -> Self {
        let known = || earlier.and_then(|earlier| earlier.kinds.clone());
        Self { kinds: self.kinds.or_else(known), error: self.error }
    }
}

/// An action that the API server refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The kind of request.
    pub verb: Verb,
    /// The object. For a create with `generateName` the name is empty.
    pub target: ObjectRef,
    /// The API server's response.
    pub status: Status,
    /// Number of consecutive refusals.
    pub attempts: u32,
    /// Time of the first refusal.
    pub since: Timestamp,
    /// Time of the next attempt.
    pub retry_at: Timestamp,
}

impl Refusal {
    /// Number of consecutive refusals that a stale World alone may explain: these are retried immediately and not reported.
    pub const STALE_TRIES: u32 = 3;

    /// Returns whether it was refused only because the World was stale, so that planning again from newer observations
    /// resolves it.
    pub fn is_stale(&self) -> bool {
        self.attempts <= Self::STALE_TRIES && Self::means_stale(self.verb, &self.status)
    }

    /// Returns whether this response to such a request means that the World was stale. A create returns "not found" only
    /// when its namespace is missing, which a new observation does not resolve.
    pub fn means_stale(verb: Verb, status: &Status) -> bool {
        status.is_conflict() || status.is_already_exists() || status.is_not_found() && verb != Verb::Create
    }
}

/// The state of a catalog's connection, in the terms of gRPC, as OLM reports it
/// (olm-behaviour/catalogsource.md#connection-state).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionState {
    /// No connection was attempted yet.
    Idle,
    /// A connection is being made.
    Connecting,
    /// Connected.
    Ready,
    /// The last attempt failed, and is retried.
    TransientFailure,
    /// The client was closed.
    Shutdown,
}

impl ConnectionState {
    /// Returns the text in `status.connectionState.lastObservedState`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::Connecting => "CONNECTING",
            Self::Ready => "READY",
            Self::TransientFailure => "TRANSIENT_FAILURE",
            Self::Shutdown => "SHUTDOWN",
        }
    }
}

/// The state of a catalog.
#[derive(Clone, Debug)]
pub struct CatalogFact {
    /// The source that is read.
    pub target: Target,
    /// The connection's state; a local directory is always ready.
    pub state: ConnectionState,
    /// When that state was first observed; a reconnection is a new observation.
    pub since: Timestamp,
    /// Whether this process replaced an earlier connection to the same target.
    pub reconnected: bool,
    /// The last valid content. It is retained when the connection is lost.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Why there is no (newer) content.
    pub error: Option<String>,
    /// The uid and resourceVersion of the ConfigMap that contains the content.
    pub config_map: Option<(String, String)>,
}

impl CatalogFact {
    /// Returns whether it is a directory given on the command line.
    pub fn is_local(&self) -> bool {
        self.target == Target::Directory
    }

    /// Creates the state of a directory given on the command line, as read at that time.
    pub fn local(snapshot: Arc<Snapshot>, since: Timestamp) -> Self {
        Self { snapshot: Some(snapshot), ..Self::new(Target::Directory, ConnectionState::Ready, since) }
    }

    /// Creates the state of a catalog without content.
    pub fn new(target: Target, state: ConnectionState, since: Timestamp) -> Self {
        Self { target, state, since, reconnected: false, snapshot: None, error: None, config_map: None }
    }
}

impl PartialEq for CatalogFact {
    /// Snapshots are compared by identity: a new one is a change, even with equal content.
    fn eq(&self, other: &Self) -> bool {
        let same_snapshot = match (&self.snapshot, &other.snapshot) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        same_snapshot
            && (&self.target, self.state, self.since, self.reconnected, &self.error, &self.config_map)
                == (&other.target, other.state, other.since, other.reconnected, &other.error, &other.config_map)
    }
}
