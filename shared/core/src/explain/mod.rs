//! What an InstallPlan would do, before it does it: also one that does not exist yet.
//!
//! ```text
//!   objects, catalogs --copy--> Simulation --hold every plan back, settle--> before
//!                                          --approve the one asked about, settle--> after
//!   before, after, what happened between --> Explanation
//! ```
//!
//! The controllers themselves decide, on a copy: nothing here knows better than they what would happen. Only what they do not say
//! in so many words is worked out from the objects: rights, images, what does not come back.

mod document;
mod hash;

pub use document::*;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::bundle::{BundleContent, Unpacked};
use crate::catalog::Snapshot;
use crate::sim::ResourceKind;
use crate::version::Range;

/// A cluster as it was read.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// The objects, whole: CustomResourceDefinitions with their schemas, custom resources only where a plan changes their definition.
    pub objects: Vec<Value>,
    /// The kinds that the cluster serves, as its discovery lists them; `None` when nobody asked: then Kubernetes' own, and those of
    /// the CustomResourceDefinitions.
    pub kinds: Option<Vec<ResourceKind>>,
    /// The API server's `gitVersion`; empty when it is not known.
    pub server_version: String,
    /// The content of catalogs, by namespace and name.
    pub catalogs: BTreeMap<(String, String), Arc<Snapshot>>,
    /// What is in the images of bundles, by reference.
    pub bundles: BTreeMap<String, Unpacked>,
    /// What could not be read: `list secrets in namespace garden`.
    pub unread: Vec<String>,
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
    /// What installing a bundle would do, or upgrading to it.
    Bundle {
        /// Where.
        namespace: String,
        /// Its image or directory, as people know it.
        reference: String,
        /// Its objects.
        content: BundleContent,
    },
}
