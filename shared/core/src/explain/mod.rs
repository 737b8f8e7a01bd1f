//! What an InstallPlan would do, before it does it: also one that does not exist yet.
//!
//! ```text
//!   Cluster --cluster_copy--> Simulation, every plan held back, settled
//!     explainer: approve the plan in question, settle --> trial: before, after
//!       objects   what is written and deleted          rights      what accounts may do then, and escalations: what reaches far
//!       csvs      which operators come, and reasons    crds        what custom resources become of it
//!       images, webhooks, bundles, deprecations        powers      which objects reach out of their namespace by what they are
//!       unserved_kinds  kinds that nobody serves       irreversible  what stays
//!     --> verdict --> Explanation (document), with the digest (hash) that approvals are bound to
//!     --> dry_run  the writes for an API server to try, and what it answers; dry_run_filter: which it makes sense to ask about
//! ```
//!
//! `installer` says with which rights a ServiceAccount could carry a plan out.
//!
//! The controllers themselves decide, on a copy: nothing here knows better than they what would happen. Only what they do not say
//! in so many words is worked out from the objects: rights, images, what does not come back.
//!
//! *Guarantees*: deterministic; nothing is written anywhere but in the copy. *Caveats*: in the copy Pods always start, nobody else
//! acts, and admission webhooks of others do not exist: what those say an API server has to be asked.

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
mod images;
mod installer;
mod irreversible;
mod objects;
mod powers;
mod reasons;
mod rights;
#[cfg(test)]
mod tests;
mod trial;
mod unserved_kinds;
mod verdict;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

pub use self::document::*;
pub use self::dry_run::{Answer, Heard, Write};
pub use self::dry_run_filter::lacks_grants;
pub use self::explainer::{Explainer, best};
pub use self::installer::unlimited;
use crate::api::object::Gvk;
use crate::bundle::{Rendered, Unpacked};
use crate::catalog::Snapshot;
use crate::structural::{SchemaCheck, SchemaCheckResult};
use crate::version::Range;

/// A cluster as it was read.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// The objects, whole: CustomResourceDefinitions with their schemas, and custom resources where a plan changes their definition.
    pub objects: Vec<Value>,
    /// Kinds that the cluster serves, and whether their objects are in namespaces, where that is known. Kubernetes' own and those of
    /// CustomResourceDefinitions go without saying.
    pub kinds: BTreeMap<Gvk, Option<bool>>,
    /// Are these all that it serves?
    pub kinds_are_complete: bool,
    /// Versions of groups of which the API server's discovery did not name the kinds, and why: an aggregated API that is away.
    pub undiscovered: BTreeMap<(String, String), String>,
    /// The API server's `gitVersion`; empty when it is not known.
    pub server_version: String,
    /// The content of catalogs, by namespace and name.
    pub catalogs: BTreeMap<(String, String), Arc<Snapshot>>,
    /// What is in the images of bundles, by reference.
    pub bundles: BTreeMap<String, Unpacked>,
    /// What was found of custom resources that are not among the objects, by the name of their definition and the question's
    /// digest.
    pub fits: BTreeMap<(String, String), SchemaCheckResult>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// When it was read.
    pub now: Timestamp,
}

/// What is asked about.
#[derive(Clone, Debug)]
pub enum Subject {
    /// An InstallPlan that is there.
    Plan {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// What a Subscription installs or upgrades next, whether there is a plan for it or not.
    Subscription {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// What subscribing to a package would do, or what comes next for the Subscription that there is.
    Package {
        /// Where.
        namespace: String,
        /// The package.
        package: String,
        /// The versions that will do; `None`: any.
        range: Option<Range>,
    },
    /// What installing a bundle would do, or upgrading to it, as if a catalog had it.
    Bundle {
        /// Where.
        namespace: String,
        /// The bundle as a catalog would have it.
        bundle: Box<Rendered>,
    },
}

impl Subject {
    /// The namespace that it is about.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Plan { namespace, .. }
            | Self::Subscription { namespace, .. }
            | Self::Package { namespace, .. }
            | Self::Bundle { namespace, .. } => namespace,
        }
    }
}

/// What would make an explanation better, asked of the cluster itself.
#[derive(Clone, Debug, Default)]
pub struct Asks {
    /// Whether custom resources fit the schemas that their definitions get.
    pub fits: Vec<SchemaCheck>,
    /// Whether the API server would take what is written.
    pub writes: Vec<Write>,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// What is asked about is not there.
    #[error("there is no {kind} {name} in namespace {namespace}")]
    NotFound {
        /// `InstallPlan` or `Subscription`.
        kind: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// No catalog that is known has the package.
    #[error("no known catalog has {what}{}", if .catalogs.is_empty() { ": there are no catalogs".to_owned() } else { format!(" ({})", .catalogs.join(", ")) })]
    NotOffered {
        /// `package etcd in versions >=1.0.0`
        what: String,
        /// The catalogs, `namespace/name`.
        catalogs: Vec<String>,
    },
}
