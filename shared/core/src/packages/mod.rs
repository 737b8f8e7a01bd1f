//! PackageManifests: the packages of all catalogs as objects of the API `packages.operators.coreos.com/v1`, which OLM's
//! `packageserver` serves and consoles read (olm-behaviour/processes.md#packageserver).
//!
//! ```text
//!   World --catalogs--> Catalog { info, snapshot } --convert--> PackageManifest
//!                                                  --icon-----> the icon of a package, which manifests leave out
//!                   --schema-> the description of its fields
//!   PackageManifest --serve--> the responses of the aggregated API
//! ```
//!
//! *Guarantee.* A package of a valid catalog always has a manifest: what a bundle's ClusterServiceVersion does not contain,
//! because it is missing or invalid, is taken from the catalog's index.

mod convert;
pub mod forms;
mod manifest;
pub mod schema;
pub mod serve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub use self::convert::{Icon, icon, manifest};
pub use self::manifest::{
    AppLink, CatalogEntry, Channel, Deprecation, Description, Maintainer, Metadata, PackageManifest, Status,
};
use crate::api::catalog_source::CatalogSource;
use crate::api::object;
use crate::catalog::Snapshot;
use crate::world::{Reader, World, kind};

/// The API group of PackageManifests.
pub const GROUP: &str = "packages.operators.coreos.com";
/// The version of PackageManifests that is served.
pub const VERSION: &str = "v1";
/// The kind.
pub const KIND: &str = "PackageManifest";
/// The plural, as in URLs.
pub const PLURAL: &str = "packagemanifests";
/// The singular, as kubectl accepts it.
pub const SINGULAR: &str = "packagemanifest";

/// Returns the `apiVersion` of PackageManifests.
pub fn api_version() -> String {
    format!("{GROUP}/{VERSION}")
}

/// The catalog of PackageManifests, as they describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogInfo {
    /// Namespace of the CatalogSource; empty if there is none.
    pub namespace: String,
    /// Name of the CatalogSource; empty if there is none.
    pub name: String,
    /// `spec.displayName`
    pub display_name: String,
    /// `spec.publisher`
    pub publisher: String,
    /// `spec.priority`
    pub priority: i64,
    /// When the CatalogSource was created, as in its metadata; empty if unknown.
    pub created: String,
    /// Labels of the CatalogSource.
    pub labels: BTreeMap<String, String>,
}

impl CatalogInfo {
    /// Reads a CatalogSource.
    pub fn from_source(source: &Value) -> Self {
        let view = CatalogSource::new(source);
        let text = |field: &str| object::text(source, &["spec", field]).to_owned();
        let labels = object::entries(source, &["metadata", "labels"]);
        Self {
            namespace: view.namespace().to_owned(),
            name: view.name().to_owned(),
            display_name: text("displayName"),
            publisher: text("publisher"),
            priority: view.priority(),
            created: view.metadata().created().to_owned(),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        }
    }

    /// Returns a catalog without a CatalogSource, such as a directory.
    pub fn named(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned(), ..Self::default() }
    }
}

/// A catalog of a cluster.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Its CatalogSource.
    pub info: CatalogInfo,
    /// Its content.
    pub snapshot: Arc<Snapshot>,
}

/// Snapshots are compared by identity: a new one is a change.
impl PartialEq for Catalog {
    fn eq(&self, other: &Self) -> bool {
        self.info == other.info && Arc::ptr_eq(&self.snapshot, &other.snapshot)
    }
}

/// Returns the catalogs that were read, by namespace and name: those of CatalogSources, and local directories.
pub fn catalogs(world: &World) -> Vec<Catalog> {
    let reader = Reader::new(world);
    let mut known = BTreeMap::new();
    for source in reader.all(&kind::CATALOG_SOURCE) {
        let info = CatalogInfo::from_source(source.json());
        if let Some(snapshot) = reader.catalog(&info.namespace, &info.name).and_then(|fact| fact.snapshot.clone()) {
            known.insert((info.namespace.clone(), info.name.clone()), Catalog { info, snapshot });
        }
    }
    for (namespace, name, fact) in world.catalogs().filter(|(.., fact)| fact.is_local()) {
        let Some(snapshot) = &fact.snapshot else { continue };
        known.entry((namespace.to_owned(), name.to_owned())).or_insert_with(|| {
            let info = CatalogInfo { created: object::time(fact.since), ..CatalogInfo::named(namespace, name) };
            Catalog { info, snapshot: snapshot.clone() }
        });
    }
    known.into_values().collect()
}
