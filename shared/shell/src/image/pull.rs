//! From a location to content: finds the manifest, looks into the cache, and else unpacks layer by layer.

use std::io::Read;

use tokio::task::AbortHandle;

use super::cache::{self, Description, Staging};
use super::layer::{self, too_much};
use super::layout::Layout;
use super::manifest::{self, Descriptor, Manifest, choose};
use super::registry::Registry;
use super::tree::Tree;
use super::{Content, Location, Options, Wanted};
use crate::blocking::block_on;
use crate::error::{CliError, ErrorKind};

/// Most indexes between a name and its image.
const NESTED: usize = 4;

/// Pulls what an image's labels name, or finds it in the cache. Must be called within a tokio runtime.
///
/// # Errors
/// Name the image, what is wrong and what to try; whatever was pulled until then is deleted. [`ErrorKind::Unreachable`]: the same
/// may succeed later.
pub async fn pull(location: &Location, wanted: Wanted, options: &Options) -> Result<Content, CliError> {
    let within = options.limits.total;
    let pulled = tokio::time::timeout(within, pull_unbounded(location, wanted, options)).await;
    placed(location, pulled.unwrap_or_else(|_| Err(too_slow(within))))
}

/// [`pull`], for those who have no runtime, or are on a thread that may block.
///
/// # Errors
/// As [`pull`].
pub fn pull_blocking(location: &Location, wanted: Wanted, options: &Options) -> Result<Content, CliError> {
    block_on(pull(location, wanted, options))
}

/// The digest that a location stands for now.
///
/// # Errors
/// As [`pull`].
pub async fn resolve(location: &Location, options: &Options) -> Result<String, CliError> {
    let within = options.limits.total;
    let opened = tokio::time::timeout(within, Source::open(location, options)).await;
    placed(location, opened.unwrap_or_else(|_| Err(too_slow(within)))).map(|(_, _, digest)| digest)
}

fn too_slow(within: std::time::Duration) -> CliError {
    CliError::new(ErrorKind::Unreachable, format!("the image was not pulled within {} s", within.as_secs()))
        .hint("the registry or the network is slow: try again later")
}

/// Errors without a place are about the image.
fn placed<T>(location: &Location, result: Result<T, CliError>) -> Result<T, CliError> {
    result.map_err(|e| if e.location.is_none() { e.at(format_args!("image {location}")) } else { e })
}

/// What names the folders that are kept.
fn named_by(wanted: &Wanted) -> &'static str {
    match wanted {
        Wanted::CatalogIn(_) => "spec.grpcPodConfig.extractContent.catalogDir",
        Wanted::Catalog | Wanted::Bundle | Wanted::Any => "a label of the image",
    }
}

/// Where manifests and blobs come from.
enum Source {
    Registry(Box<Registry>),
    Layout(Layout),
}

impl Source {
    /// The source, and the first manifest with its digest.
    async fn open(location: &Location, options: &Options) -> Result<(Self, Vec<u8>, String), CliError> {
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

    async fn manifest(&self, descriptor: &Descriptor) -> Result<Vec<u8>, CliError> {
        match self {
            Self::Registry(registry) => registry.manifest(descriptor).await,
            Self::Layout(layout) => layout.blob_document(descriptor),
        }
    }

    async fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, CliError> {
        match self {
            Self::Registry(registry) => registry.document(descriptor).await,
            Self::Layout(layout) => layout.blob_document(descriptor),
        }
    }

    async fn blob(&self, descriptor: &Descriptor) -> Result<(Box<dyn Read + Send>, Guard), CliError> {
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

/// Ends a download when the pull is given up, so that the thread that unpacks it ends as well.
struct Guard(Option<AbortHandle>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

async fn pull_unbounded(location: &Location, wanted: Wanted, options: &Options) -> Result<Content, CliError> {
    let (source, bytes, digest) = Source::open(location, options).await?;
    let mut image = Manifest::read(&bytes)?;
    // One index has different images for different machines.
    let mut key = digest.clone();
    let mut nested = 0;
    while let Some(manifests) = image.manifests.take() {
        nested += 1;
        if nested > NESTED {
            return Err(CliError::input("its index names indexes without end"));
        }
        let chosen = choose(&manifests)?;
        key.clone_from(&chosen.digest);
        image = Manifest::read(&source.manifest(chosen).await?)?;
    }
    let limits = &options.limits;
    if image.layers.len() > limits.layers {
        return Err(too_much(&format!("{} layers", image.layers.len())));
    }
    let labels = manifest::labels(&source.document(image.config()?).await?)?;
    let (kind, folders) = manifest::kind(&labels, &wanted)?;
    if let Wanted::CatalogIn(folder) = &wanted {
        // One image may hold several catalogs.
        key = cache::in_folder(&key, folder);
    }
    let cache = options.cache.as_deref();
    if let Some(found) = cache.and_then(|cache| cache::find(cache, kind, &key)) {
        return Ok(Content { digest, ..found });
    }
    let staging = Staging::new(cache)?;
    let mut tree = Tree::new(staging.files(), &folders, named_by(&wanted), limits)?;
    let mut unpacked = limits.unpacked;
    for layer in image.layers {
        tracing::debug!(image = %location, layer = layer.digest, size = layer.size, "pulling");
        let (blob, _guard) = source.blob(&layer).await?;
        let applied = tokio::task::spawn_blocking(move || {
            tree.next_layer();
            let mut left = unpacked;
            layer::read(blob, &layer, &mut left, |entry, content| tree.apply(&entry, content)).map(|()| (tree, left))
        });
        (tree, unpacked) = applied.await.map_err(|e| CliError::new(ErrorKind::Internal, e.to_string()))??;
    }
    // Hundreds of thousands of small files take their time.
    let cache = options.cache.clone();
    let kept = tokio::task::spawn_blocking(move || {
        let root = staging.content();
        std::fs::create_dir_all(&root)?;
        let warnings = tree.build(&root)?;
        staging.keep(cache.as_deref(), Description::new(kind, &key, labels, warnings))
    });
    let kept = kept.await.map_err(|e| CliError::new(ErrorKind::Internal, e.to_string()))??;
    Ok(Content { digest, ..kept })
}
