//! The state of a cluster, or of files, read once and left as it is, as a World.
//!
//! ```text
//!   files     YAML and JSON: what somebody wrote down, a must-gather   --+
//!   strict    fields that no API server knows are refused              --+
//!   cluster   lists, as far as the rights to read go                   --+--> state: ClusterState { world, served, gaps }
//!   catalogs  directories, and CatalogSources, as facts                --+
//!   scope     which kinds are read, for which purpose; list: each of them, page by page
//!   served    which kinds the API server knows, as far as that is known
//!   gap       what could not be read; error: why nothing can be read
//!   follow    what happens to a cluster afterwards, for those who wait for something
//! ```
//!
//! *Guarantees*: nothing is ever written. What may not be read is a [`Gap`], and an error only where nothing can be said without it.

mod catalogs;
mod cluster;
mod error;
pub(crate) mod files;
mod follow;
mod gap;
mod list;
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
pub use self::gap::Gap;
pub(crate) use self::gap::STALE;
pub(crate) use self::list::list;
pub use self::scope::ReadScope;
pub use self::served::Served;
pub use self::state::ClusterState;
use crate::cluster::api::Api;
use crate::registry::local::CatalogDirectory;

/// Takes warnings, a sentence each.
pub type Warn<'a> = &'a mut (dyn FnMut(String) + Send);

/// What is given on top of what is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overlay<'a> {
    /// Files that count as if they had been applied.
    pub on_top: &'a [PathBuf],
    /// Directories that stand in for CatalogSources.
    pub catalogs: &'a [CatalogDirectory],
    /// The namespace whose catalogs every namespace sees; without one it is found out.
    pub catalog_namespace: Option<&'a str>,
}

/// Reads a cluster: one namespace, or (without a name) all.
///
/// # Errors
/// Files cannot be read, nobody answers, or not with OLM's kinds; or a kind without which nothing can be said may not be listed.
pub async fn read_cluster(
    api: Api,
    namespace: Option<String>,
    scope: ReadScope,
    overlay: &Overlay<'_>,
    warn: Warn<'_>,
) -> Result<ClusterState, Error> {
    complete(cluster::read(api, namespace, scope, overlay.catalog_namespace).await?, &[], overlay, warn)
}

/// Reads files and folders in place of a cluster: without any, nothing is there but the catalogs that are given.
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
    for files::Given { mut object, place, .. } in files::read(on_top)? {
        seen.place(&mut object);
        seen.served.add_object(&object);
        seen.on_top.push(ObjectRef::from_object(&object));
        seen.places.insert(ObjectRef::from_object(&object), place);
        let there = Reader::new(&seen.world).json(
            &GroupKind::from_object(&object),
            object::namespace(&object),
            object::name(&object),
        );
        let object = applied(there, object, seen.at);
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

/// What comes of applying an object: what others wrote into the one that is there stays.
fn applied(there: Option<&Value>, mut object: Value, now: Timestamp) -> Value {
    let metadata = object::map_mut(&mut object, &["metadata"]);
    // It is newer than whatever was seen.
    metadata.remove("resourceVersion");
    metadata.insert("managedFields".to_owned(), json!([{ "time": object::time(now) }]));
    let Some(there) = there else { return object };
    for field in ["uid", "creationTimestamp"] {
        object["metadata"][field] = there["metadata"][field].clone();
    }
    for field in ["labels", "annotations"] {
        let mut all: Map<String, Value> = there["metadata"][field].as_object().cloned().unwrap_or_default();
        all.extend(object["metadata"][field].as_object().cloned().unwrap_or_default());
        if !all.is_empty() {
            object["metadata"][field] = all.into();
        }
    }
    if object["status"].is_null() && !there["status"].is_null() {
        object["status"] = there["status"].clone();
    }
    object
}

/// The namespace that has CatalogSources and is known to be OLM's.
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
        let what = if n == 1 { "1 file holds".to_owned() } else { format!("{n} files hold") };
        warn(format!(
            "{what} no Kubernetes objects that can be read, and what is in there is left out: {}",
            first.text()
        ));
    }
    strict::check(&gathered.given, &mut Strict::default(), warn)?;
    let mut seen = ClusterState {
        world: World::new(),
        namespace,
        served: Served::default(),
        places: BTreeMap::new(),
        gaps: Vec::new(),
        settings: Settings::default(),
        at: Timestamp::now(),
        on_top: Vec::new(),
        lists: Vec::new(),
        api: None,
    };
    gathered.discovery.iter().for_each(|list| seen.served.add_discovery(list));
    for files::Given { mut object, place, .. } in gathered.given {
        seen.place(&mut object);
        seen.places.insert(ObjectRef::from_object(&object), place);
        seen.served.add_object(&object);
        seen.world.apply(object);
    }
    Ok(seen)
}

#[cfg(test)]
mod tests;
