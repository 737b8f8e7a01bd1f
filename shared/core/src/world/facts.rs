//! What planning needs to know that is not an object: the content of catalogs and of bundle images, the server's version.

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

/// What a fact is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactKey {
    /// The catalog of this namespace and name.
    Catalog(String, String),
    /// The image of a bundle.
    Bundle(BundleImage),
    /// The API server's version.
    ServerVersion,
    /// The kinds that the API server serves in this version of a group. Known as long as a plan reads it.
    Discovery(String, String),
    /// The actions of a key's plan that the API server refused.
    Refusals(Key),
    /// Whether the custom resources of the CustomResourceDefinition of this name fit schemas of this digest. Known as long as
    /// somebody reads it.
    SchemaCheck(String, String),
}

impl FactKey {
    /// Which catalogs are known in a namespace: stands for all of them where reads are noted.
    pub fn catalogs_of(namespace: &str) -> Self {
        Self::Catalog(namespace.to_owned(), String::new())
    }

    /// Which bundle images are known for a namespace: stands for all of them where reads are noted.
    pub fn bundles_of(namespace: &str) -> Self {
        let none = String::new;
        let namespace = namespace.to_owned();
        Self::Bundle(BundleImage { namespace, catalog_namespace: none(), catalog: none(), image: none() })
    }

    /// Is the fact known only as long as a plan reads it?
    pub(crate) fn is_forgotten_unread(&self) -> bool {
        matches!(self, Self::Discovery(..) | Self::SchemaCheck(..))
    }

    /// The key that stands for this one and its like where reads are noted.
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
    /// How far the unpacking of a bundle image is.
    Bundle(Unpacking),
    /// `gitVersion`, with its `v`.
    ServerVersion(String),
    /// The kinds that the API server serves in a version of a group.
    Discovery(Discovery),
    /// Actions that were refused, and when they are tried again.
    Refusals(Vec<Refusal>),
    /// Custom resources were looked at.
    SchemaCheck(SchemaCheckResult),
}

/// What the API server's discovery says of one version of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// The kinds of the last answer, and whether their objects are in namespaces; that is unknown of kinds that only a subresource
    /// has (`Scale`, `Eviction`). Empty when the version is not served. `None` before the first answer.
    pub kinds: Option<BTreeMap<String, Option<bool>>>,
    /// Why there is no newer answer, or why it is not complete: what is not among `kinds` may be served all the same.
    pub error: Option<String>,
}

impl Discovery {
    /// An answer.
    pub fn of(kinds: BTreeMap<String, Option<bool>>) -> Self {
        Self { kinds: Some(kinds), error: None }
    }

    /// No answer.
    pub fn failed(error: impl Into<String>) -> Self {
        Self { kinds: None, error: Some(error.into()) }
    }

    /// Is the kind served? The error says why that is not known.
    ///
    /// # Errors
    /// The API server did not answer, and did not name the kind before.
    pub fn serves(&self, kind: &str) -> Result<bool, &str> {
        match (&self.kinds, &self.error) {
            (Some(kinds), _) if kinds.contains_key(kind) => Ok(true),
            (_, Some(error)) => Err(error),
            (..) => Ok(false),
        }
    }

    /// Are objects of the kind in namespaces? `None`: that is not known.
    pub fn is_namespaced(&self, kind: &str) -> Option<bool> {
        self.kinds.as_ref()?.get(kind).copied().flatten()
    }

    /// This observation after an earlier one: an attempt that failed does not take away what was known.
    pub(super) fn after(self, earlier: Option<&Self>) -> Self {
        let known = || earlier.and_then(|earlier| earlier.kinds.clone());
        Self { kinds: self.kinds.or_else(known), error: self.error }
    }
}

/// An action that the API server refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// What kind of request.
    pub verb: Verb,
    /// On what. For a create by `generateName` the name is empty.
    pub target: ObjectRef,
    /// The API server's answer.
    pub status: Status,
    /// How often in a row.
    pub attempts: u32,
    /// When it was first refused.
    pub since: Timestamp,
    /// When it is tried again.
    pub retry_at: Timestamp,
}

impl Refusal {
    /// How often in a row a stale World alone may explain a refusal: then it is tried again without a pause and without a word.
    pub const STALE_TRIES: u32 = 3;

    /// Was it refused only because the World was behind, so that planning again from what was observed meanwhile answers it?
    pub fn is_stale(&self) -> bool {
        self.attempts <= Self::STALE_TRIES && Self::tells_stale(self.verb, &self.status)
    }

    /// Does this answer to such a request say that the World was behind? A create finds nothing only when what it is to stand
    /// in is missing: that is no matter of looking again.
    pub fn tells_stale(verb: Verb, status: &Status) -> bool {
        status.is_conflict() || status.is_already_exists() || status.is_not_found() && verb != Verb::Create
    }
}

/// The state of a catalog's connection, as gRPC spells it and OLM reports it (olm-behaviour/catalogsource.md#connection-state).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionState {
    /// No connection was tried yet.
    Idle,
    /// A connection is being made.
    Connecting,
    /// Connected.
    Ready,
    /// The last attempt failed, another follows.
    TransientFailure,
    /// The client was closed.
    Shutdown,
}

impl ConnectionState {
    /// The text in `status.connectionState.lastObservedState`.
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

/// A catalog as the shell knows it.
#[derive(Clone, Debug)]
pub struct CatalogFact {
    /// What is read.
    pub target: Target,
    /// The connection's state; a local directory is always ready.
    pub state: ConnectionState,
    /// When that state was first seen; a connection that is made anew is seen anew.
    pub since: Timestamp,
    /// Is the connection one that this process has made in place of an earlier one to the same target?
    pub reconnected: bool,
    /// The last good content. It stays when the connection goes.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Why there is no (newer) content.
    pub error: Option<String>,
    /// The uid and resourceVersion of the ConfigMap that the content is of.
    pub config_map: Option<(String, String)>,
}

impl CatalogFact {
    /// Is it a directory that was given on the command line?
    pub fn is_local(&self) -> bool {
        self.target == Target::Directory
    }

    /// A directory that was given on the command line, as it was read at that time.
    pub fn local(snapshot: Arc<Snapshot>, since: Timestamp) -> Self {
        Self { snapshot: Some(snapshot), ..Self::new(Target::Directory, ConnectionState::Ready, since) }
    }

    /// A catalog in that state, without content.
    pub fn new(target: Target, state: ConnectionState, since: Timestamp) -> Self {
        Self { target, state, since, reconnected: false, snapshot: None, error: None, config_map: None }
    }
}

impl PartialEq for CatalogFact {
    /// Snapshots are compared by identity: a new one is a change, whatever is in it.
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
