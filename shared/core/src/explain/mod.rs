//! Explains what an InstallPlan would do before it is executed, including a plan that does not exist yet.
//!
//! ```text
//!   Cluster --cluster_copy--> Simulation, every plan held back, settled
//!     explainer: approve the plan in question, settle --> simulated_plan: before, after
//!       objects   objects that change                  crds        effects on custom resources
//!       csvs      operators that change, and reasons   irreversible  effects that cannot be undone
//!       permissions     those gained and lost, and escalations: privileged ones
//!       images, webhooks, bundles, deprecations        object_privileges  objects with effects beyond their namespace
//!       unserved_kinds  kinds that are not served
//!     --> verdict --> Explanation (document), with the digest (hash) that approvals are bound to
//!     --> dry_run  dry runs of the writes on an API server, and the results; dry_run_filter: which writes to send
//! ```
//!
//! `installer` computes the permissions with which a ServiceAccount could execute a plan.
//!
//! The effects are those of the controllers themselves, which run on a copy of the cluster. Only permissions, images and irreversible
//! effects are derived from the objects.
//!
//! *Guarantees*: deterministic; only the copy is written. *Caveats*: in the copy Pods always start, no other clients act, and there are no
//! admission webhooks of others, whose effects only an API server can determine.

mod bundles;
mod cluster_copy;
mod crds;
mod csvs;
mod deprecations;
mod document;
mod dry_run;
mod dry_run_filter;
mod escalations;
mod explainer;
mod hash;
mod hidden;
mod identity;
mod images;
mod installer;
mod irreversible;
mod object_privileges;
mod objects;
mod permissions;
mod reasons;
mod simulated_plan;
#[cfg(test)]
mod tests;
mod unserved_kinds;
mod verdict;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

pub use self::document::*;
pub use self::dry_run::{Answer, DryRunResult, Write};
pub use self::dry_run_filter::lacks_grants;
pub use self::escalations::permission;
pub use self::explainer::{Explainer, best};
pub use self::identity::predecessors;
pub use self::installer::unlimited;
use crate::api::object::Gvk;
use crate::bundle::{Rendered, Unpacked};
use crate::catalog::Snapshot;
use crate::structural::{SchemaCheck, SchemaCheckResult};
use crate::version::Range;

/// The state of a cluster, as it was read.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// The complete objects: CustomResourceDefinitions with their schemas, and custom resources whose definition the plan changes.
    pub objects: Vec<Value>,
    /// Kinds that the cluster serves, and whether they are namespaced, if known. Built-in kinds and those of CustomResourceDefinitions are
    /// served without being listed.
    pub kinds: BTreeMap<Gvk, Option<bool>>,
    /// Whether `kinds` contains all kinds that the cluster serves.
    pub kinds_are_complete: bool,
    /// Group versions whose kinds the API server's discovery did not return, and why: an aggregated API is unavailable.
    pub undiscovered: BTreeMap<(String, String), String>,
    /// The API server's `gitVersion`; empty if unknown.
    pub server_version: String,
    /// The content of catalogs, by namespace and name.
    pub catalogs: BTreeMap<(String, String), Arc<Snapshot>>,
    /// The content of bundle images, by reference.
    pub bundles: BTreeMap<String, Unpacked>,
    /// Results of schema checks of custom resources that are not among the objects, by the name of their definition and the digest of the
    /// check.
    pub fits: BTreeMap<(String, String), SchemaCheckResult>,
    /// Resources that could not be read.
    pub unreadable: Vec<UnreadableResource>,
    /// The time at which the cluster was read.
    pub now: Timestamp,
}

/// What to explain.
#[derive(Clone, Debug)]
pub enum Subject {
    /// An existing InstallPlan.
    Plan {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The next installation or upgrade of a Subscription, with or without an existing plan.
    Subscription {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A new Subscription to a package, or the next installation or upgrade of the existing one.
    Package {
        /// The namespace of the Subscription.
        namespace: String,
        /// The package.
        package: String,
        /// The acceptable versions; `None` for any.
        range: Option<Range>,
    },
    /// The installation of a bundle, or an upgrade to it, as if a catalog contained it.
    Bundle {
        /// The namespace of the Subscription.
        namespace: String,
        /// The bundle as a catalog would contain it.
        bundle: Box<Rendered>,
    },
}

impl Subject {
    /// Returns the namespace.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Plan { namespace, .. }
            | Self::Subscription { namespace, .. }
            | Self::Package { namespace, .. }
            | Self::Bundle { namespace, .. } => namespace,
        }
    }
}

/// Requests to the cluster that would make an explanation more precise.
#[derive(Clone, Debug, Default)]
pub struct Asks {
    /// Checks of custom resources against the new schemas of their definitions.
    pub fits: Vec<SchemaCheck>,
    /// Writes to send to the API server as dry runs.
    pub writes: Vec<Write>,
}

/// Why a subject cannot be explained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The subject does not exist.
    #[error("there is no {kind} {name} in namespace {namespace}")]
    NotFound {
        /// `InstallPlan` or `Subscription`.
        kind: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// No known catalog has the package.
    #[error("{what} not found; {}", if .catalogs.is_empty() { "there are no catalogs".to_owned() } else { format!("catalogs searched: {}", .catalogs.join(", ")) })]
    NotOffered {
        /// `package etcd in versions >=1.0.0`
        what: String,
        /// The catalogs, `namespace/name`.
        catalogs: Vec<String>,
    },
}
