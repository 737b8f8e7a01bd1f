//! Catalog and bundle images, from a registry, an OCI layout or an archive, and bundle images written to these.
//!
//! ```text
//!   pull         a location --> Content, through the cache
//!     registry      client of the OCI distribution protocol
//!     challenge, credentials   authentication at a registry
//!     layout        a directory or a tar archive
//!     manifest      selection of an image of an index; its labels and layers
//!     layer         the entries of a layer, with verified digest and limited size
//!     tree          the folders that the labels name, with whiteouts and links resolved
//!     error         the errors of pulls
//!     cache         content by digest, in the user's cache directory
//!
//!   build        files --> Built, an image that is reproducible to the byte, or BuiltIndex, one for several platforms
//!   store        Built --> an OCI layout, or an archive of one
//!   push         Built, or an image of a layout --> a registry
//!     upload        blobs, in chunks and with retries, and manifests
//! ```
//!
//! *Guarantees.* Only the folders that the labels name are stored, on disk; other content is read and discarded. Content is used
//! only after its digest was verified. No path of an image resolves to a place outside of the returned folder.

mod build;
mod cache;
mod challenge;
mod credentials;
mod error;
mod layer;
mod layout;
mod manifest;
mod pull;
mod push;
mod registry;
mod store;
mod transfer;
mod tree;
mod upload;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

pub use build::{Assembled, Blob, Built, BuiltIndex, MediaTypes, Platform, Process, Recipe, build, build_index};
pub use cache::default_cache;
pub use credentials::Credentials;
pub use error::{Error, Excess, LayoutError, PullError, Used};
pub(crate) use layer::{ZSTD, unpack_zstd as zstd};
pub use layout::is_layout;
pub use oci_spec::distribution::Reference;
use olm_core::budget::CATALOG_BYTES;
pub use pull::{platforms, pull, pull_blocking, resolve};
pub use push::{Part, Pushable};
pub use store::{write_archive, write_layout};
pub use transfer::{PullWatch, Transferred, Watch};

/// The label of a catalog image that names the directory of its file-based catalog.
pub const CATALOG_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// The label of a bundle image with the format of the bundle.
pub const MEDIA_TYPE_LABEL: &str = "operators.operatorframework.io.bundle.mediatype.v1";
/// The label that marks a bundle image, with the package's name.
pub const BUNDLE_LABEL: &str = "operators.operatorframework.io.bundle.package.v1";
/// The label of a bundle image that names the directory of its manifests.
pub const MANIFESTS_LABEL: &str = "operators.operatorframework.io.bundle.manifests.v1";
/// The label of a bundle image that names the directory of its metadata.
pub const METADATA_LABEL: &str = "operators.operatorframework.io.bundle.metadata.v1";
/// The label of a bundle image with the channels of the bundle, separated by commas.
pub const CHANNELS_LABEL: &str = "operators.operatorframework.io.bundle.channels.v1";
/// The label of a bundle image with the default channel of the package.
pub const DEFAULT_CHANNEL_LABEL: &str = "operators.operatorframework.io.bundle.channel.default.v1";
/// The label of a bundle image that names the directory of its tests.
pub const TESTS_LABEL: &str = "operators.operatorframework.io.test.config.v1";
/// The label of catalog images with a SQLite database, a deprecated format.
pub(crate) const DATABASE_LABEL: &str = "operators.operatorframework.io.index.database.v1";

/// Most attempts of a request for a command.
const ATTEMPTS: u32 = 3;

/// The location of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a registry.
    Registry(Reference),
    /// In an OCI layout: a directory, or a tar archive of one.
    Layout {
        /// The directory or file.
        path: PathBuf,
        /// The name of one of several images in it, as in the annotation `org.opencontainers.image.ref.name`.
        name: Option<String>,
    },
}

impl FromStr for Location {
    type Err = Error;

    /// Parses `docker://REF`, `REF`, `oci:PATH[:NAME]` and `oci-archive:PATH[:NAME]`.
    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(path) = text.strip_prefix("oci:").or_else(|| text.strip_prefix("oci-archive:")) {
            return Ok(Self::layout(path));
        }
        let reference = text.strip_prefix("docker://").unwrap_or(text);
        reference.parse().map(Self::Registry).map_err(|source| Error::Reference { text: text.to_owned(), source })
    }
}

impl Location {
    fn layout(text: &str) -> Self {
        let whole = PathBuf::from(text);
        if whole.exists() {
            return Self::Layout { path: whole, name: None };
        }
        // A name can contain colons, as in registry.example.com:5000/rose:1.0.0.
        let mut splits = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let existing = splits.find(|(path, _)| Path::new(path).exists());
        match existing.or_else(|| text.rsplit_once(':')) {
            Some((path, name)) => Self::Layout { path: path.into(), name: Some(name.to_owned()) },
            None => Self::Layout { path: whole, name: None },
        }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Registry(reference) => write!(f, "{reference}"),
            Self::Layout { path, name: None } => write!(f, "{}", path.display()),
            Self::Layout { path, name: Some(name) } => write!(f, "{}:{name}", path.display()),
        }
    }
}

/// The required kind of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    /// A file-based catalog.
    Catalog,
    /// A file-based catalog in this folder of the image, regardless of its labels.
    CatalogIn(String),
    /// A bundle.
    Bundle,
    /// A bundle with all its files, under their names in the image, including tests. An image with links, devices, absolute paths or
    /// duplicate paths is refused, and the cache is not used.
    BundleFiles,
    /// A catalog or a bundle.
    Any,
}

impl Requested {
    /// The catalog in this folder, by default in the folder that the image's label names.
    pub(crate) fn catalog(folder: Option<&str>) -> Self {
        folder.map_or(Self::Catalog, |folder| Self::CatalogIn(folder.to_owned()))
    }
}

/// The kind of an image, according to its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Kind {
    /// [`Content::root`] is the root of a file-based catalog.
    Catalog,
    /// [`Content::root`] has the folders `manifests` and `metadata`.
    Bundle,
}

/// Options of a pull.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Credentials for registries.
    pub credentials: Credentials,
    /// Whether the credentials are also used for images that objects of a cluster or catalogs name. If so, every client that may
    /// write a CatalogSource can read every image that the user may pull.
    pub lends: bool,
    /// Whether there were credentials that are not used for these images.
    pub withheld: bool,
    /// Certificates (PEM) of authorities that are trusted in addition to those of the system.
    pub certificate_authorities: Vec<u8>,
    /// Registries (`host[:port]`) that are accessed without TLS.
    pub plain_http: Vec<String>,
    /// Limits on size and time.
    pub limits: Limits,
    /// The folder of the cache. Without a cache, each image is pulled into a temporary folder.
    pub cache: Option<PathBuf>,
    /// Receives the progress.
    pub watch: PullWatch,
}

impl Options {
    /// Returns the options with a receiver of progress.
    #[must_use]
    pub fn watched(&self, watch: Watch) -> Self {
        Self { watch: PullWatch(Some(watch)), ..self.clone() }
    }

    /// Returns options with the user's credentials and cache, with retries, for commands.
    pub fn of_user() -> Self {
        let limits = Limits { attempts: ATTEMPTS, ..Limits::default() };
        Self { credentials: Credentials::of_user(), cache: default_cache(), limits, ..Self::default() }
    }

    /// Returns the options for images that objects of a cluster or catalogs name: without the credentials, unless
    /// [`Options::lends`] is set.
    #[must_use]
    pub fn for_others(&self) -> Self {
        if self.lends || self.withheld {
            return self.clone();
        }
        Self { credentials: Credentials::default(), withheld: true, ..self.clone() }
    }
}

/// Limits of a pull. The defaults are ten times what the largest public catalogs need. The limits of the content of a catalog and a
/// bundle are in [`olm_core::budget`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Timeout of a connection attempt.
    pub connect: Duration,
    /// Longest time without data from the registry.
    pub stall: Duration,
    /// Longest duration of a pull.
    pub total: Duration,
    /// Largest manifest or image configuration, in bytes.
    pub document: u64,
    /// Most layers of an image.
    pub layers: usize,
    /// Most bytes of all layers, decompressed, including content that is not stored.
    pub unpacked: u64,
    /// Most bytes that are stored.
    pub kept: u64,
    /// Most files, folders and links that are stored.
    pub entries: usize,
    /// Most attempts of a request that a registry cannot answer for now. Controllers retry whole pulls instead.
    pub attempts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            total: Duration::from_mins(15),
            document: 8 << 20,
            layers: 256,
            unpacked: 16 << 30,
            kept: CATALOG_BYTES,
            entries: 500_000,
            attempts: 1,
        }
    }
}

/// The content of a pulled image.
#[derive(Debug)]
pub struct Content {
    /// The folder with the content that the labels name.
    pub root: PathBuf,
    /// The kind of the image.
    pub kind: Kind,
    /// The digest that the location resolves to: of the index if there is one, otherwise of the manifest.
    pub digest: String,
    /// The image's labels.
    pub labels: BTreeMap<String, String>,
    /// Size of all files, in bytes.
    pub bytes: u64,
    /// Entries of the labelled folders that were left out, with the reason.
    pub warnings: Vec<String>,
    /// Protects the folder from deletion until this value is dropped.
    _held: cache::Held,
}
