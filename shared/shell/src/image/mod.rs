//! Images: catalogs and bundles that a registry, an OCI layout or an archive holds.
//!
//! ```text
//!   pull         a location --> Content, through the cache
//!     registry      the OCI distribution protocol    challenge, credentials  as whom
//!     layout        a directory or a tar archive
//!     manifest      which image of an index, its labels and layers
//!     layer         a layer's entries, checked and bounded
//!     tree          what of them the labels name, whiteouts and links considered
//!     error        what was refused, and whether the same may succeed later
//!     cache         by digest, in the user's cache directory
//! ```
//!
//! *Guarantees.* Only what the labels name is kept, on disk; the rest streams by. Nothing is used before the digest of every
//! byte was checked. No path of an image leads anywhere but below the folder that is returned.

mod cache;
mod challenge;
mod credentials;
mod error;
mod layer;
mod layout;
mod manifest;
mod pull;
mod registry;
mod tree;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub use cache::default_cache;
pub use credentials::Credentials;
pub use error::{Error, Excess, LayoutError, PullError, Used};
pub(crate) use layer::{ZSTD, unpack_zstd as zstd};
pub use layout::is_layout;
use oci_spec::distribution::Reference;
use olm_core::budget::CATALOG_BYTES;
pub use pull::{pull, pull_blocking, resolve};

/// The label of a catalog image that names the directory of its file-based catalog.
pub const CATALOG_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// The label that marks a bundle image, with the package's name.
pub const BUNDLE_LABEL: &str = "operators.operatorframework.io.bundle.package.v1";
/// The label of a bundle image that names the directory of its manifests.
pub const MANIFESTS_LABEL: &str = "operators.operatorframework.io.bundle.manifests.v1";
/// The label of a bundle image that names the directory of its metadata.
pub const METADATA_LABEL: &str = "operators.operatorframework.io.bundle.metadata.v1";
/// The label of catalog images that hold a database, which nobody makes any more.
pub(crate) const DATABASE_LABEL: &str = "operators.operatorframework.io.index.database.v1";

/// Where an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a registry.
    Registry(Reference),
    /// In an OCI layout: a directory, or a tar archive of one.
    Layout {
        /// The directory or file.
        path: PathBuf,
        /// The name of one of several images in it: `org.opencontainers.image.ref.name`.
        name: Option<String>,
    },
}

impl FromStr for Location {
    type Err = Error;

    /// `docker://REF` or REF; `oci:PATH[:NAME]` and `oci-archive:PATH[:NAME]`.
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
        match text.rsplit_once(':') {
            Some((path, name)) if !whole.exists() => Self::Layout { path: path.into(), name: Some(name.to_owned()) },
            _ => Self::Layout { path: whole, name: None },
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

/// What an image has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A file-based catalog.
    Catalog,
    /// A file-based catalog in this folder of the image, whatever its labels say.
    CatalogIn(String),
    /// A bundle.
    Bundle,
    /// Either of them.
    Any,
}

impl Wanted {
    /// The catalog in that folder, or else in the one that the image's label names.
    pub(crate) fn catalog(folder: Option<&str>) -> Self {
        folder.map_or(Self::Catalog, |folder| Self::CatalogIn(folder.to_owned()))
    }
}

/// What an image is, by its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Kind {
    /// [`Content::root`] is the root of a file-based catalog.
    Catalog,
    /// [`Content::root`] has the folders `manifests` and `metadata`.
    Bundle,
}

/// How images are pulled.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// As whom registries are asked.
    pub credentials: Credentials,
    /// Are the credentials also for images that others name: objects of a cluster, and catalogs? Who may write a CatalogSource could
    /// read every image that the user may.
    pub lends: bool,
    /// Were there credentials that are not for these images?
    pub withheld: bool,
    /// Certificates (PEM) of authorities that are trusted besides those of the system.
    pub certificate_authorities: Vec<u8>,
    /// Registries (`host[:port]`) that are asked without TLS.
    pub plain_http: Vec<String>,
    /// What is too much.
    pub limits: Limits,
    /// The folder of the cache; without one every image is pulled into a temporary folder.
    pub cache: Option<PathBuf>,
}

impl Options {
    /// As the user: with the user's credentials and cache.
    pub fn of_user() -> Self {
        Self { credentials: Credentials::of_user(), cache: default_cache(), ..Self::default() }
    }

    /// The same, for images that objects of a cluster name, or catalogs.
    #[must_use]
    pub fn for_others(&self) -> Self {
        if self.lends || self.withheld {
            return self.clone();
        }
        Self { credentials: Credentials::default(), withheld: true, ..self.clone() }
    }
}

/// What is too much of an image, and too long. The defaults are ten times what the largest public catalogs need; what a catalog and a
/// bundle may have is said in [`olm_core::budget`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a registry may take to accept a connection.
    pub connect: Duration,
    /// How long a registry may send nothing.
    pub stall: Duration,
    /// How long a pull may take.
    pub total: Duration,
    /// Most bytes of a manifest or an image configuration.
    pub document: u64,
    /// Most layers.
    pub layers: usize,
    /// Most bytes of all layers when they are unpacked, whether they are kept or not.
    pub unpacked: u64,
    /// Most bytes that are kept.
    pub kept: u64,
    /// Most files, folders and links that are kept.
    pub entries: usize,
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
        }
    }
}

/// What was pulled.
#[derive(Debug)]
pub struct Content {
    /// The folder with what the labels name.
    pub root: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// The digest that the location stands for: of the index if there is one, else of the manifest.
    pub digest: String,
    /// The image's labels.
    pub labels: BTreeMap<String, String>,
    /// Bytes of all files.
    pub bytes: u64,
    /// What of the labelled folders was left out, and why.
    pub warnings: Vec<String>,
    /// Keeps the folder for as long as this value lives.
    _held: cache::Held,
}
