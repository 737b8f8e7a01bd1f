//! Reads the state of a cluster or of files once into a World, without changing it.
//!
//! ```text
//!   files         YAML and JSON: manifests, a must-gather                  --+
//!   strict        refuses unknown fields                                   --+
//!   cluster       lists the kinds that the user may read                   --+--> state: ClusterState { world, served, read_failures }
//!   catalogs      directories and CatalogSources, as facts                 --+
//!   scope         the kinds that are read for each purpose; list: lists them, page by page
//!   served        the kinds that the API server serves, as far as known
//!   read_failure  what could not be read; error: why nothing can be read
//!   follow        later changes of the cluster, for commands that wait
//! ```
//!
//! *Guarantees*: Nothing is written. Data that the user may not read is a [`ReadFailure`]; it is an error only if there is no result
//! without it.

mod catalogs;
mod cluster;
mod error;
pub(crate) mod files;
mod follow;
mod list;
mod read_failure;
pub(crate) mod scope;
mod served;
mod state;
pub(crate) mod strict;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use olm_core::api::object::{self, ObjectRef};
use olm_core::settings::Settings;
use olm_core::sim::Strict;
use olm_core::world::{GroupKind, Reader, World, kind};
use serde_json::{Map, Value, json};

pub use self::error::Error;
pub(crate) use self::list::{Reduced, copy, list, reduced};
pub use self::read_failure::ReadFailure;
pub(crate) use self::read_failure::STALE;
pub use self::scope::ReadScope;
pub use self::served::Served;
pub use self::state::ClusterState;
use crate::cluster::api::Api;
use crate::registry::local::CatalogDirectory;

/// Receives warnings of one sentence each.
pub type Warn<'a> = &'a mut (dyn FnMut(String) + Send);

/// The input that is added to the state that is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overlay<'a> {
    /// Files whose objects count as applied.
    pub on_top: &'a [PathBuf],
    /// Directories that replace CatalogSources.
    pub catalogs: &'a [CatalogDirectory],
    /// The namespace of the global catalogs; detected if it is missing.
    pub catalog_namespace: Option<&'a str>,
}

/// Reads a cluster: one namespace, or all namespaces if there is no name.
///
/// # Errors
/// Files cannot be read, the API server does not respond or does not serve OLM's kinds, or a required kind cannot be listed.
pub async fn read_cluster(
    api: Api,
    namespace: Option<String>,
    scope: ReadScope,
    overlay: &Overlay<'_>,
    warn: Warn<'_>,
) -> Result<ClusterState, Error> {
    complete(cluster::read(api, namespace, scope, overlay.catalog_namespace).await?, &[], overlay, warn)
}

/// Reads files and directories instead of a cluster. Without any, the state contains only the given catalogs.
///
/// # Errors
/// Files cannot be read.
pub fn read_files(
    paths: &[PathBuf],
    namespace: Option<String>,
    overlay: &Overlay<'_>,
    warn: Warn<'_>,
) -> Result<ClusterState, Error> {
    complete(of_files(paths, namespace, warn)?, paths, overlay, warn)
}

fn complete(
    mut seen: ClusterState,
    paths: &[PathBuf],
    overlay: &Overlay<'_>,
    warn: Warn<'_>,
) -> Result<ClusterState, Error> {
    let Overlay { on_top, catalogs, catalog_namespace } = *overlay;
    for files::InputObject { mut object, place, .. } in files::read(on_top)? {
        seen.place(&mut object);
        seen.served.add_object(&object);
        seen.on_top.push(ObjectRef::from_object(&object));
        seen.places.insert(ObjectRef::from_object(&object), place);
        let existing = Reader::new(&seen.world).json(
            &GroupKind::from_object(&object),
            object::namespace(&object),
            object::name(&object),
        );
        let object = applied(existing, object, seen.at);
        seen.world.apply(object);
    }
    let global = catalog_namespace.map(str::to_owned).or_else(|| global(&seen.world));
    if let Some(global) = global {
        seen.settings.global_catalog_namespace = global;
    }
    for catalog in catalogs::given(paths, catalogs, &seen.settings)? {
        catalog.load_into(&mut seen, warn)?;
    }
    Ok(seen)
}

/// Returns the result of applying an object: fields of other writers in the existing object are preserved.
fn applied(existing: Option<&Value>, mut object: Value, now: Timestamp) -> Value {
    let metadata = object::map_mut(&mut object, &["metadata"]);
    // It is newer than any observed version.
    metadata.remove("resourceVersion");
    metadata.insert("managedFields".to_owned(), json!([{ "time": object::time(now) }]));
    let Some(existing) = existing else { return object };
    for field in ["uid", "creationTimestamp"] {
        object["metadata"][field] = existing["metadata"][field].clone();
    }
    for field in ["labels", "annotations"] {
        let mut all: Map<String, Value> = existing["metadata"][field].as_object().cloned().unwrap_or_default();
        all.extend(object["metadata"][field].as_object().cloned().unwrap_or_default());
        if !all.is_empty() {
            object["metadata"][field] = all.into();
        }
    }
    if object["status"].is_null() && !existing["status"].is_null() {
        object["status"] = existing["status"].clone();
    }
    object
}

/// Returns the first of OLM's default namespaces that has CatalogSources.
fn global(world: &World) -> Option<String> {
    let world = Reader::new(world);
    cluster::GLOBAL
        .into_iter()
        .find(|name| world.in_namespace(&kind::CATALOG_SOURCE, name).next().is_some())
        .map(str::to_owned)
}

fn of_files(paths: &[PathBuf], namespace: Option<String>, warn: Warn<'_>) -> Result<ClusterState, Error> {
    let gathered = files::gather(paths)?;
    if let [first, ..] = &gathered.left_out[..] {
        let n = gathered.left_out.len();
        let what = if n == 1 { "1 file contains".to_owned() } else { format!("{n} files contain") };
        warn(format!("{what} documents that are not Kubernetes objects, which are ignored: {}", first.text()));
    }
    strict::check(&gathered.given, &mut Strict::default(), warn)?;
    let mut seen = ClusterState {
        world: World::new(),
        namespace,
        served: Served::default(),
        places: BTreeMap::new(),
        read_failures: Vec::new(),
        settings: Settings::default(),
        at: Timestamp::now(),
        on_top: Vec::new(),
        lists: Vec::new(),
        api: None,
    };
    gathered.discovery.iter().for_each(|list| seen.served.add_discovery(list));
    for files::InputObject { mut object, place, .. } in gathered.given {
        seen.place(&mut object);
        seen.places.insert(ObjectRef::from_object(&object), place);
        seen.served.add_object(&object);
        seen.world.apply(object);
    }
    Ok(seen)
}

#[cfg(test)]
mod tests;
