//! The other ClusterServiceVersions in the namespace of one.

use crate::api::cluster_service_version::Csv;
use crate::membership;
use crate::world::{Reader, kind};

/// Returns the one that a ClusterServiceVersion replaces, if it exists.
pub(super) fn replaced<'w>(world: &Reader<'w>, csv: Csv<'_>) -> Option<Csv<'w>> {
    let replaces = csv.replaces();
    if replaces.is_empty() || replaces == csv.name() {
        return None;
    }
    let json = world.json(&kind::CLUSTER_SERVICE_VERSION, csv.namespace(), replaces)?;
    Some(Csv::new(json))
}

/// Returns the ones that replace it, by name.
pub(super) fn replacements<'w>(world: &Reader<'w>, csv: Csv<'_>) -> Vec<Csv<'w>> {
    siblings(world, csv.namespace()).filter(|c| c.replaces() == csv.name() && c.name() != csv.name()).collect()
}

/// Returns the ClusterServiceVersions of a namespace that are not copies, by name.
pub(super) fn siblings<'w>(world: &Reader<'w>, namespace: &str) -> impl Iterator<Item = Csv<'w>> + use<'w> {
    membership::originals(world, namespace).map(Csv::new)
}
