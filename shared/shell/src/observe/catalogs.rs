//! Reads catalogs: directories that replace CatalogSources, and the content of CatalogSources of a cluster.

use std::path::PathBuf;
use std::sync::Arc;

use olm_core::api::catalog_source::{self, Origin, Target};
use olm_core::api::object;
use olm_core::catalog::Snapshot;
use olm_core::world::{CatalogFact, ConnectionState, Fact, FactKey, Reader, kind};
use serde_json::Value;

use super::error::Error;
use super::read_failure::ReadFailure;
use super::state::ClusterState;
use super::{Warn, files};
use crate::cluster::fetch_catalog::{self, Fetched};
use crate::registry::local::{CatalogDirectory, first_findings};
use crate::{cluster, image, registry};
use olm_core::settings::Settings;

/// A directory, and the CatalogSource that it replaces.
pub(super) struct StandIn {
    namespace: String,
    name: String,
    directory: PathBuf,
    /// Whether the user named this directory itself.
    is_named: bool,
}

/// Returns the directories that the user named, and those inside named directories: `catalogs/NAME/`.
pub(super) fn given(
    paths: &[PathBuf],
    catalogs: &[CatalogDirectory],
    settings: &Settings,
) -> Result<Vec<StandIn>, Error> {
    let global = || settings.global_catalog_namespace.clone();
    let mut found = Vec::new();
    for folder in paths.iter().filter(|path| path.is_dir()) {
        let inside = files::catalogs_in(folder)?.into_iter();
        found.extend(inside.map(|(name, directory)| StandIn { namespace: global(), name, directory, is_named: false }));
    }
    found.extend(catalogs.iter().map(|CatalogDirectory { name, namespace, directory }| StandIn {
        namespace: namespace.clone().unwrap_or_else(global),
        name: name.clone(),
        directory: directory.clone(),
        is_named: true,
    }));
    Ok(found)
}

impl StandIn {
    /// Reads the content into the World.
    pub(super) fn load_into(self, seen: &mut ClusterState, warn: Warn<'_>) -> Result<(), Error> {
        let Self { namespace, name, directory, is_named } = self;
        let load = if is_named { registry::dir::load } else { registry::dir::load_content };
        let loaded = load(&directory)?;
        first_findings(&directory, &loaded.findings).for_each(warn);
        let fact = CatalogFact::local(Arc::new(loaded.snapshot), seen.at);
        seen.world.learn(FactKey::Catalog(namespace, name), Some(Fact::Catalog(fact)));
        Ok(())
    }
}

impl ClusterState {
    /// Reads the content of the CatalogSources that are available in a namespace and are not replaced by a directory. Content that cannot
    /// be read is a read failure. `doing` receives progress messages.
    pub async fn read_catalogs(&mut self, namespace: &str, images: &image::Options, doing: &(dyn Fn(String) + Sync)) {
        let Some(api) = self.api().cloned() else { return };
        let sources: Vec<Value> = {
            let world = Reader::new(&self.world);
            let global = self.settings.global_catalog_namespace.as_str();
            let namespaces = std::collections::BTreeSet::from([namespace, global]);
            let all = namespaces.into_iter().flat_map(|n| world.in_namespace(&kind::CATALOG_SOURCE, n));
            let of = |source: &Value| {
                let is_known = world.catalog(object::namespace(source), object::name(source)).is_some();
                !is_known && !matches!(Origin::from_source(source), Origin::Invalid(_))
            };
            all.map(|o| o.json()).filter(|source| of(source)).cloned().collect()
        };
        for source in &sources {
            let (namespace, name) = (object::namespace(source).to_owned(), object::name(source).to_owned());
            doing(format!("reading catalog {namespace}/{name}"));
            let read = match fetch_catalog::fetch(&api, images, source).await {
                Ok(fetched) => content(fetched).await.map_err(cluster::Error::from),
                Err(error) => Err(error),
            };
            let fact = match read {
                Ok(snapshot) => CatalogFact {
                    snapshot: Some(snapshot),
                    ..CatalogFact::new(target(source), ConnectionState::Ready, self.at)
                },
                Err(error) => {
                    self.read_failures.push(ReadFailure::catalog(&namespace, &name, error.text()));
                    CatalogFact {
                        error: Some(error.text()),
                        ..CatalogFact::new(target(source), ConnectionState::TransientFailure, self.at)
                    }
                }
            };
            self.world.learn(FactKey::Catalog(namespace, name), Some(Fact::Catalog(fact)));
        }
    }
}

async fn content(fetched: Fetched) -> Result<Arc<Snapshot>, registry::Error> {
    let folder = match fetched {
        Fetched::Snapshot(snapshot) => return Ok(snapshot),
        Fetched::Image(image) => image.1,
    };
    let load = tokio::task::spawn_blocking(move || registry::dir::load_image(folder));
    Ok(Arc::new(load.await??.snapshot))
}

/// Returns the source of the content of a CatalogSource.
fn target(source: &Value) -> Target {
    match Origin::from_source(source) {
        Origin::Address(address) => Target::Address(address.to_owned()),
        Origin::Image(image) => Target::Image {
            reference: image.to_owned(),
            catalog_dir: catalog_source::catalog_dir(source),
            secrets: catalog_source::pull_secrets(source),
        },
        Origin::ConfigMap(name) => Target::ConfigMap(name.to_owned()),
        Origin::ConfigMaps(names) => Target::config_maps(&names),
        Origin::Invalid(_) => Target::Directory,
    }
}
