//! Pulls an image: reads the manifest, checks the cache, and otherwise unpacks the layers one by one.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use tokio::task::AbortHandle;

use super::cache::{self, Description, Staging};
use super::layout::Layout;
use super::manifest::{self, Descriptor, Manifest, choose};
use super::registry::Registry;
use super::transfer::{Counted, Transferred};
use super::tree::Tree;
use super::{Content, Error, Excess, Location, Options, PullError, Requested, layer};
use crate::blocking::block_on;

/// Most nested indexes between a name and its image.
const NESTED: usize = 4;

/// Pulls the folders that an image's labels name, or returns them from the cache. Must be called within a tokio runtime.
///
/// # Errors
/// The image cannot be pulled or is refused. Content that was pulled before the error is deleted. [`Error::is_transient`] returns
/// whether a retry may succeed.
pub async fn pull(location: &Location, wanted: Requested, options: &Options) -> Result<Content, PullError> {
    within(location, options, pull_unbounded(location, wanted, options)).await
}

/// Does the same as [`pull`], for callers without a runtime or on a thread that may block.
///
/// # Errors
/// As [`pull`].
pub fn pull_blocking(location: &Location, wanted: Requested, options: &Options) -> Result<Content, PullError> {
    let pulled = block_on(async { Ok::<_, Error>(pull(location, wanted, options).await) });
    pulled.map_err(|error| PullError::new(location, error))?
}

/// Resolves a location to its current digest.
///
/// # Errors
/// As [`pull`].
pub async fn resolve(location: &Location, options: &Options) -> Result<String, PullError> {
    within(location, options, Source::open(location, options)).await.map(|(_, _, digest)| digest)
}

/// Returns the platforms of an image, as `OS` and `ARCHITECTURE`: those of its index, or of its configuration.
///
/// # Errors
/// As [`pull`].
pub async fn platforms(location: &Location, options: &Options) -> Result<BTreeSet<(String, String)>, PullError> {
    let read = async {
        let (source, bytes, _) = Source::open(location, options).await?;
        let manifest = Manifest::read(&bytes)?;
        match &manifest.manifests {
            Some(manifests) => Ok(manifest::platforms(manifests)),
            None => Ok(manifest::platform(&source.document(manifest.config()?).await?)?.into_iter().collect()),
        }
    };
    within(location, options, read).await
}

/// Limits the duration of a pull, and adds the image to errors.
async fn within<T>(
    location: &Location,
    options: &Options,
    pull: impl Future<Output = Result<T, Error>>,
) -> Result<T, PullError> {
    let limit = options.limits.total;
    let pulled = tokio::time::timeout(limit, pull).await;
    pulled.unwrap_or(Err(Error::Slow(limit))).map_err(|error| PullError::new(location, error))
}

/// Returns the source of the folder names, for messages.
fn named_by(wanted: &Requested) -> &'static str {
    match wanted {
        Requested::CatalogIn(_) => "spec.grpcPodConfig.extractContent.catalogDir",
        Requested::Catalog | Requested::Bundle | Requested::BundleFiles | Requested::Any => "a label of the image",
    }
}

/// The source of manifests and blobs.
enum Source {
    Registry(Box<Registry>),
    Layout(Layout),
}

impl Source {
    /// Opens the source. Also returns the first manifest and its digest.
    async fn open(location: &Location, options: &Options) -> Result<(Self, Vec<u8>, String), Error> {
        match location {
            Location::Registry(reference) => {
                let (registry, manifest, digest) = Registry::open(reference, options).await?;
                Ok((Self::Registry(Box::new(registry)), manifest, digest))
            }
            Location::Layout { path, name } => {
                let layout = Layout::open(path, options.limits.document)?;
                let descriptor = layout.find(name.as_deref())?;
                let manifest = layout.blob_document(&descriptor)?;
                Ok((Self::Layout(layout), manifest, descriptor.digest))
            }
        }
    }

    async fn manifest(&self, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
        match self {
            Self::Registry(registry) => registry.manifest(descriptor).await,
            Self::Layout(layout) => layout.blob_document(descriptor),
        }
    }

    async fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
        match self {
            Self::Registry(registry) => registry.document(descriptor).await,
            Self::Layout(layout) => layout.blob_document(descriptor),
        }
    }

    async fn blob(&self, descriptor: &Descriptor) -> Result<(Box<dyn Read + Send>, Guard), Error> {
        match self {
            Self::Registry(registry) => {
                let download = registry.blob(descriptor).await?;
                let guard = Guard(Some(download.abort_handle()));
                Ok((Box::new(download), guard))
            }
            Self::Layout(layout) => Ok((layout.blob(descriptor)?, Guard(None))),
        }
    }
}

/// Aborts a download when the pull is cancelled, so that the thread that unpacks it ends.
struct Guard(Option<AbortHandle>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

async fn pull_unbounded(location: &Location, wanted: Requested, options: &Options) -> Result<Content, Error> {
    let (source, bytes, digest) = Source::open(location, options).await?;
    let mut image = Manifest::read(&bytes)?;
    // The cache key is the digest of the image, not of the index, because an index has one image for each platform.
    let mut key = digest.clone();
    let mut nested = 0;
    while let Some(manifests) = image.manifests.take() {
        nested += 1;
        if nested > NESTED {
            return Err(Error::NestedIndexes);
        }
        let chosen = choose(&manifests)?;
        key.clone_from(&chosen.digest);
        image = Manifest::read(&source.manifest(chosen).await?)?;
    }
    let limits = &options.limits;
    if image.layers.len() > limits.layers {
        return Err(Error::TooMuch(Excess::Layers(image.layers.len())));
    }
    let labels = manifest::labels(&source.document(image.config()?).await?)?;
    let (kind, folders) = manifest::kind(&labels, &wanted)?;
    if let Requested::CatalogIn(folder) = &wanted {
        // An image can contain several catalogs.
        key = cache::in_folder(&key, folder);
    }
    // The entries of the cache were not pulled as strictly.
    let is_strict = wanted == Requested::BundleFiles;
    let cache = options.cache.as_deref().filter(|_| !is_strict);
    if let Some(found) = cache.and_then(|cache| cache::find(cache, kind, &key)) {
        return Ok(Content { digest, ..found });
    }
    let staging = Staging::new(cache)?;
    let mut tree = Tree::new(staging.files(), &folders, named_by(&wanted), limits)?.strict(is_strict);
    let mut unpacked = limits.unpacked;
    let total = image.layers.iter().fold(0, |total: u64, layer| total.saturating_add(layer.size));
    let mut transferred = Transferred { done: 0, total };
    for layer in image.layers {
        tracing::debug!(image = %location, layer = layer.digest, size = layer.size, "pulling");
        let (blob, _guard) = source.blob(&layer).await?;
        let blob = Counted::new(blob, options.watch.clone(), transferred);
        transferred.done = transferred.done.saturating_add(layer.size);
        let applied = tokio::task::spawn_blocking(move || {
            tree.next_layer();
            let mut left = unpacked;
            layer::read(blob, &layer, &mut left, |entry, content| tree.apply(&entry, content)).map(|()| (tree, left))
        });
        (tree, unpacked) = applied.await??;
    }
    // Creating up to hundreds of thousands of small files blocks the thread.
    let cache = cache.map(Path::to_owned);
    let stored = tokio::task::spawn_blocking(move || {
        let root = staging.content();
        std::fs::create_dir_all(&root)?;
        let warnings = tree.build(&root)?;
        staging.keep(cache.as_deref(), Description::new(kind, &key, labels, warnings))
    });
    Ok(Content { digest, ..stored.await?? })
}
