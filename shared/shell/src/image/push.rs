//! Pushes an image to a registry: its blobs first, then its manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bytes::Bytes;
use oci_spec::distribution::Reference;

use super::build::{Blob, Built, BuiltIndex, INDEX_TYPE};
use super::layout::Layout;
use super::manifest::{self, Descriptor, Manifest, check_digest};
use super::registry::{Access, Refusal, Registry};
use super::transfer::Watch;
use super::upload::{Blobs, Upload};
use super::{Error, LayoutError, Location, Options, PullError, Requested, layer};

/// Most manifests of an image: of an index with one image for each platform.
const MANIFESTS: usize = 64;
/// Media types of manifests that do not state it.
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// An image that was built, or a bundle image whose digests were verified, ready to be pushed.
pub struct Pushable {
    /// Children before the indexes that refer to them; the last one is the image's.
    manifests: Vec<(Descriptor, Bytes)>,
    blobs: Vec<Descriptor>,
    content: Content,
}

/// The content of the blobs.
enum Content {
    Built(Vec<Blob>),
    Layout(Layout),
}

/// A manifest or a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The media type.
    pub media_type: String,
    /// The digest.
    pub digest: String,
    /// The size, in bytes.
    pub size: u64,
}

impl From<&Descriptor> for Part {
    fn from(descriptor: &Descriptor) -> Self {
        let Descriptor { media_type, digest, size, .. } = descriptor.clone();
        Self { media_type, digest, size }
    }
}

impl From<Built> for Pushable {
    fn from(built: Built) -> Self {
        let Built { manifest, config, layer, .. } = built;
        Self::built(vec![manifest], vec![config, layer])
    }
}

impl From<BuiltIndex> for Pushable {
    fn from(built: BuiltIndex) -> Self {
        let (mut manifests, mut blobs) = (Vec::new(), Vec::new());
        for Built { manifest, config, layer, .. } in built.images {
            manifests.push(manifest);
            blobs.extend([config, layer]);
        }
        manifests.push(built.index);
        Self::built(manifests, blobs)
    }
}

impl Blobs for Content {
    fn part(&self, blob: &Descriptor, offset: u64, length: u64) -> Result<Bytes, Error> {
        match self {
            Self::Layout(layout) => layout.part(blob, offset, length).map(Bytes::from),
            Self::Built(built) => {
                let found = built.iter().find(|known| known.digest == blob.digest);
                let bytes = found.map(|found| found.bytes.as_slice()).unwrap_or_default();
                let range = usize::try_from(offset).ok().zip(usize::try_from(offset.saturating_add(length)).ok());
                let part = range.and_then(|(from, to)| bytes.get(from..to));
                let (digest, size) = (blob.digest.clone(), blob.size);
                part.map(Bytes::copy_from_slice).ok_or(Error::ShortLayer { digest, got: bytes.len() as u64, size })
            }
        }
    }
}

/// Adds an image after the images of its index. `seen` bounds the recursion by the number of manifests.
fn children_first(
    digest: &str,
    children: &BTreeMap<String, Vec<String>>,
    seen: &mut BTreeSet<String>,
    order: &mut Vec<String>,
) {
    if seen.insert(digest.to_owned()) {
        children.get(digest).into_iter().flatten().for_each(|child| children_first(child, children, seen, order));
        order.push(digest.to_owned());
    }
}

impl Pushable {
    fn built(manifests: Vec<Blob>, blobs: Vec<Blob>) -> Self {
        let descriptor = |blob: &Blob| Descriptor::new(blob.media_type, &blob.digest, blob.bytes.len() as u64);
        let descriptors = blobs.iter().map(descriptor).collect();
        let manifests = manifests.into_iter().map(|blob| (descriptor(&blob), Bytes::from(blob.bytes))).collect();
        Self { manifests, blobs: descriptors, content: Content::Built(blobs) }
    }

    /// Reads a bundle image from an OCI layout or an archive, and verifies all its digests. Blocks while it reads.
    ///
    /// # Errors
    /// The layout is invalid or incomplete, or the image is not a bundle.
    pub fn read(location: &Location, options: &Options) -> Result<Self, PullError> {
        let read = match location {
            Location::Layout { path, name } => Self::read_layout(path, name.as_deref(), options),
            Location::Registry(reference) => {
                let path = Path::new(&reference.to_string()).to_owned();
                Err(LayoutError::Other { is_of_docker: false }.at(&path))
            }
        };
        read.map_err(|error| PullError::new(location, error))
    }

    fn read_layout(path: &Path, name: Option<&str>, options: &Options) -> Result<Self, Error> {
        let layout = Layout::open(path, options.limits.document)?;
        let root = layout.find(name)?;
        let mut waiting = vec![root.clone()];
        let (mut manifests, mut blobs, mut known) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        let mut children: BTreeMap<String, Vec<String>> = BTreeMap::new();
        while let Some(descriptor) = waiting.pop() {
            if !known.insert(descriptor.digest.clone()) {
                continue;
            }
            if known.len() > MANIFESTS {
                return Err(Error::ManyManifests(MANIFESTS));
            }
            let bytes = layout.blob_document(&descriptor)?;
            let manifest = Manifest::read(&bytes)?;
            let is_index = manifest.manifests.is_some();
            let stated = [&manifest.media_type, &descriptor.media_type].into_iter().find(|text| !text.is_empty());
            let default = if is_index { INDEX_TYPE } else { MANIFEST_TYPE };
            let media_type = stated.map_or(default, String::as_str);
            let described = Descriptor::new(media_type, &descriptor.digest, bytes.len() as u64);
            manifests.insert(descriptor.digest.clone(), (described, Bytes::from(bytes)));
            if let Some(found) = manifest.manifests {
                let digests = found.iter().map(|child| child.digest.clone()).collect();
                children.insert(descriptor.digest, digests);
                waiting.extend(found);
                continue;
            }
            if manifest.layers.len() > options.limits.layers {
                return Err(Error::TooMuch(super::Excess::Layers(manifest.layers.len())));
            }
            let config = manifest.config()?.clone();
            manifest::kind(&manifest::labels(&layout.blob_document(&config)?)?, &Requested::Bundle)?;
            for blob in manifest.layers.into_iter().chain([config]) {
                if !blobs.iter().any(|known: &Descriptor| known.digest == blob.digest) {
                    layer::verify(layout.blob(&blob)?, &blob)?;
                    blobs.push(blob);
                }
            }
        }
        // Registries require that the manifests of an index exist.
        let mut order = Vec::new();
        children_first(&root.digest, &children, &mut BTreeSet::new(), &mut order);
        let manifests = order.iter().filter_map(|digest| manifests.remove(digest)).collect();
        Ok(Self { manifests, blobs, content: Content::Layout(layout) })
    }

    /// Returns the manifest of the image, or its index.
    pub fn manifest(&self) -> Option<Part> {
        self.manifests.last().map(|(descriptor, _)| descriptor.into())
    }

    /// Returns configurations and layers.
    pub fn blobs(&self) -> Vec<Part> {
        self.blobs.iter().map(Part::from).collect()
    }

    /// Pushes the image and returns its digest.
    ///
    /// # Errors
    /// The registry cannot be reached or refuses the image. Blobs that were pushed before stay in the registry, which deletes them
    /// if no manifest refers to them. A later push continues with those that are missing.
    pub async fn push(&self, target: &Reference, options: &Options, watch: &Watch) -> Result<String, PullError> {
        let limit = options.limits.total;
        let pushed = tokio::time::timeout(limit, self.push_unbounded(target, options, watch)).await;
        pushed.unwrap_or(Err(Error::SlowPush(limit))).map_err(|error| PullError::new(target, error))
    }

    async fn push_unbounded(&self, target: &Reference, options: &Options, watch: &Watch) -> Result<String, Error> {
        let Some((last, _)) = self.manifests.last() else { return Err(Error::EmptyIndex) };
        if let Some(expected) = target.digest() {
            check_digest(expected)?;
            if expected != last.digest {
                return Err(Error::OtherDigest { expected: expected.to_owned(), found: last.digest.clone() });
            }
        }
        let mut refused = None;
        for registry in Registry::candidates(target, options, Access::Push).await? {
            match self.push_to(registry, target, watch).await {
                Ok(()) => return Ok(last.digest.clone()),
                Err(Refusal { error, other_credentials: false }) => return Err(error),
                Err(Refusal { error, .. }) => {
                    refused.get_or_insert(error);
                }
            }
        }
        let (registry, credentials) = (target.registry().to_owned(), super::Used::None);
        Err(refused.unwrap_or(Error::PushDenied { registry, credentials }))
    }

    async fn push_to(&self, registry: Registry, target: &Reference, watch: &Watch) -> Result<(), Refusal> {
        let total = self.blobs.iter().fold(0_u64, |sum, blob| sum.saturating_add(blob.size));
        let mut upload = Upload::new(registry, watch.clone(), total).await?;
        for blob in &self.blobs {
            upload.blob(blob, &self.content).await?;
        }
        for (n, (manifest, bytes)) in self.manifests.iter().enumerate() {
            let is_last = n + 1 == self.manifests.len();
            let tag = target.tag().filter(|_| is_last);
            upload.manifest(manifest, bytes.clone(), tag.unwrap_or(&manifest.digest)).await?;
        }
        Ok(())
    }
}
