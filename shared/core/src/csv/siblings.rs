//! The ClusterServiceVersions that stand beside one in its namespace.

use crate::api::cluster_service_version::Csv;
use crate::membership;
use crate::world::{Reader, kind};

/// The one that a ClusterServiceVersion replaces, if it is there.
pub(super) fn replaced<'w>(world: &Reader<'w>, csv: Csv<'_>) -> Option<Csv<'w>> {
    let replaces = csv.replaces();
    if replaces.is_empty() || replaces == csv.name() {
        return None;
    }
    let json = world.json(&kind::CLUSTER_SERVICE_VERSION, csv.namespace(), replaces)?;
    Some(Csv::of(json))
}

/// The ones that replace it, by name.
pub(super) fn replacements<'w>(world: &Reader<'w>, csv: Csv<'_>) -> Vec<Csv<'w>> {
    siblings(world, csv.namespace()).filter(|c| c.replaces() == csv.name() && c.name() != csv.name()).collect()
}

/// The ClusterServiceVersions of a namespace that are not copies, by name.
pub(super) fn siblings<'w>(world: &Reader<'w>, namespace: &str) -> impl Iterator<Item = Csv<'w>> + use<'w> {
    membership::originals(world, namespace).map(Csv::of)
}
