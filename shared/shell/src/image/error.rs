//! Errors of pulling images.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use docker_credential::CredentialRetrievalError;
use oci_spec::distribution::ParseError;
use reqwest::Url;
use tokio::task::JoinError;

use super::Requested;
use crate::causes::innermost;

/// An error of a pull or a push, with the image. The message does not include the location: see [`PullError::place`].
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct PullError {
    /// The location of the image.
    image: String,
    /// The error.
    source: Box<Error>,
}

impl PullError {
    pub(super) fn new(image: impl ToString, source: Error) -> Self {
        Self { image: image.to_string(), source: Box::new(source) }
    }

    /// Returns the error.
    pub fn error(&self) -> &Error {
        &self.source
    }

    /// Returns the location of the error: a local file, or otherwise the image.
    pub fn place(&self) -> String {
        self.source.file().map_or_else(|| format!("image {}", self.image), |file| file.display().to_string())
    }
}

/// An error of an image or a part of it. The messages do not include the location: see [`Error::file`] and [`PullError::place`].
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum Error {
    #[error("{text:?} is not an image reference: {source}")]
    Reference { text: String, source: ParseError },
    #[error("{0:?} is not a sha256 or sha512 digest")]
    Digest(String),

    #[error("{host:?} is not a registry's host: {source}")]
    Host { host: String, source: <Url as FromStr>::Err },
    #[error("{path:?} cannot be requested: {source}")]
    Path { path: String, source: <Url as FromStr>::Err },
    #[error("cannot use the certificate authorities: {}", innermost(.0))]
    Authorities(#[source] reqwest::Error),
    #[error("{registry} cannot be reached: {}", innermost(source))]
    Unreachable { registry: String, source: reqwest::Error },
    #[error("{registry} redirects in a way that is not allowed: {}", innermost(source))]
    Redirect { registry: String, source: reqwest::Error },
    #[error("{registry} accepted the request and then sent nothing")]
    Stalled { registry: String },
    #[error("layer {digest} from {registry} broke off: {}", innermost(source))]
    BrokenOff { registry: String, digest: String, source: reqwest::Error },
    #[error("{what} from {registry} is longer than {limit} bytes")]
    LongAnswer { what: &'static str, registry: String, limit: u64 },
    #[error("{digest} is longer than {limit} bytes")]
    LongDocument { digest: String, limit: u64 },
    #[error("{registry} failed with HTTP status {code}")]
    Failed { registry: String, code: u16 },
    #[error("{registry} refused with an error: {code}: {message}")]
    Refused { registry: String, code: String, message: String },
    #[error("{registry} denies pull access to the image")]
    Denied { registry: String, credentials: Used },
    #[error("{registry} denies push access to the repository")]
    PushDenied { registry: String, credentials: Used },
    #[error("{registry} has no such repository")]
    NoRepository { registry: String, by_registry: bool },
    #[error("{registry} names an upload location that is not allowed: {location:?}")]
    UploadLocation { registry: String, location: String },
    #[error("{registry} reports that it has {received} bytes of {digest}, which has {size}")]
    UploadRange { registry: String, digest: String, received: u64, size: u64 },
    #[error("{registry} stored {expected} under the digest {found}")]
    StoredDigest { registry: String, expected: String, found: String },
    #[error("the image has the digest {found}, not {expected}")]
    OtherDigest { expected: String, found: String },
    #[error("{digest} is larger than {limit} bytes, which {registry} accepts only in one part")]
    LargeBlob { registry: String, digest: String, limit: u64 },
    #[error("the image was not pushed within {} s", .0.as_secs())]
    SlowPush(Duration),
    #[error("the image consists of more than {0} manifests")]
    ManyManifests(usize),
    /// `by_registry`: whether the response is that of a registry, not of another web server.
    #[error("{registry} has no such image")]
    NoImage { registry: String, by_registry: bool },
    #[error("{registry} has the image's manifest, but not all of its layers")]
    NoLayer { registry: String },
    #[error("{registry} names the token service {realm:?}, which is not a URL: {source}")]
    TokenService { registry: String, realm: String, source: <Url as FromStr>::Err },
    #[error("{registry} names the token service {realm:?}, which does not use TLS")]
    PlainTokenService { registry: String, realm: String },
    #[error("the token service of {registry} responds without a token")]
    NoToken { registry: String },
    #[error("the {what} for the registry has characters that no header can have")]
    Header { what: &'static str },

    #[error("not a docker configuration: {source}")]
    DockerConfiguration { file: PathBuf, source: serde_json::Error },
    #[error("the credentials for {registry} are an identity token, which cannot be used")]
    IdentityToken { registry: String, file: Option<PathBuf> },
    #[error("no credentials for {registry}: {}", source.to_string().trim().replace('\n', " "))]
    Credentials { registry: String, file: Option<PathBuf>, source: CredentialRetrievalError },

    #[error("its manifest is invalid: {0}")]
    Manifest(#[source] serde_json::Error),
    #[error("its manifest has version {0}, not 2")]
    ManifestVersion(u32),
    #[error("its manifest names no configuration")]
    NoConfiguration,
    #[error("its configuration cannot be read: {0}")]
    Configuration(#[source] serde_json::Error),
    #[error("its index names no image")]
    EmptyIndex,
    #[error("its index nests too many indexes")]
    NestedIndexes,
    #[error("this image is {}", not(wanted))]
    OtherKind { wanted: Requested, labels: BTreeMap<String, String> },
    #[error("{named_by} names the folder {folder:?}, which is outside of it")]
    FolderOutside { named_by: &'static str, folder: String },
    #[error("{named_by} names the folder /{folder}, which does not exist")]
    NoFolder { named_by: &'static str, folder: String },

    #[error("{0:?} has more than 4096 bytes, which readers of images do not support")]
    LongPath(String),
    #[error("manifests with docker's media types have no annotations")]
    DockerAnnotations,
    #[error("an index of OCI has no images with docker's media types")]
    DockerIndex,
    #[error("an OCI layout has no images with docker's media types")]
    DockerLayout,

    #[error("what was delivered as {expected} has the digest {found}")]
    WrongDigest { expected: String, found: String },
    #[error("layer {digest} is longer than the {size} bytes of its manifest")]
    LongLayer { digest: String, size: u64 },
    #[error("layer {digest} broke off after {got} of {size} bytes")]
    ShortLayer { digest: String, got: u64, size: u64 },
    #[error("a layer of type {0} cannot be read")]
    LayerType(String),
    #[error("a layer is not a tar archive: {0}")]
    LayerFormat(#[source] io::Error),
    #[error("a layer has {0}")]
    LayerEntry(&'static str),
    #[error("{path} in a layer breaks off after {got} of {size} bytes")]
    ShortFile { path: String, got: u64, size: u64 },
    #[error("the image has an entry {0:?}, which leads out of the image")]
    LeadsOut(String),
    #[error("the image has {what}: {path:?}")]
    Hostile { what: &'static str, path: String },
    #[error("the image holds {0}")]
    TooMuch(Excess),
    #[error("the image was not pulled within {} s", .0.as_secs())]
    Slow(Duration),

    #[error("{problem}")]
    Layout {
        path: PathBuf,
        #[source]
        problem: LayoutError,
    },
    #[error("{source}")]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Task(#[from] JoinError),
}

impl Error {
    /// Returns the local file or folder that causes the error, if there is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::DockerConfiguration { file, .. } => Some(file),
            Self::IdentityToken { file, .. } | Self::Credentials { file, .. } => file.as_deref(),
            Self::Layout { path, .. } | Self::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Redirect { .. }
                | Self::Stalled { .. }
                | Self::BrokenOff { .. }
                | Self::Failed { .. }
                | Self::Refused { .. }
                | Self::Header { .. }
                | Self::ShortLayer { .. }
                | Self::Slow(_)
                | Self::SlowPush(_)
        ) || self.is_local()
    }

    /// Returns whether the cause is local, not the image or its registry.
    pub fn is_local(&self) -> bool {
        matches!(
            self,
            Self::File { .. }
                | Self::Io(_)
                | Self::Task(_)
                | Self::Layout { problem: LayoutError::Unreadable(_) | LayoutError::Io(_), .. }
        )
    }
}

/// The credentials that a registry has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    /// None, or those of a pull secret; the user's credentials are not used for this image.
    Withheld,
    /// None, because none were found.
    None,
    /// The credentials that were found.
    Found,
}

/// A limit that an image exceeds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum Excess {
    #[error("{0} layers")]
    Layers(usize),
    #[error("more bytes than allowed when it is unpacked")]
    Unpacked,
    #[error("a path of more than {0} folders")]
    Depth(usize),
    #[error("{path} of {size} bytes, which is more than the {most} that may be stored")]
    File { path: String, size: u64, most: u64 },
    #[error("more than {0} bytes to store")]
    Bytes(u64),
    #[error("more than {0} files to store")]
    Files(usize),
}

/// An error of an OCI layout.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum LayoutError {
    #[error("cannot read: {0}")]
    Unreadable(#[source] io::Error),
    #[error(transparent)]
    Io(io::Error),
    #[error("this is not an OCI layout")]
    Other { is_of_docker: bool },
    #[error("this is not a tar archive: {0}")]
    NotAnArchive(#[source] io::Error),
    #[error("this archive has too many members for an OCI layout")]
    TooManyMembers,
    #[error("this OCI layout has no {0}")]
    Missing(String),
    #[error("{name} is longer than {limit} bytes")]
    LongDocument { name: String, limit: u64 },
    #[error("the directory is not empty, and not an OCI layout")]
    OtherContent,
    #[error("its index.json is invalid: {0}")]
    Index(#[source] serde_json::Error),
    #[error("its index.json is invalid: manifests is not a list")]
    NoList,
    #[error("this OCI layout has no image")]
    Empty,
    #[error("this OCI layout has {images} images")]
    Ambiguous { images: usize, names: Vec<String> },
    #[error("this OCI layout has no image {name:?}")]
    NoImage { name: String, names: Vec<String> },
}

impl LayoutError {
    pub(super) fn at(self, path: &Path) -> Error {
        Error::Layout { path: path.to_owned(), problem: self }
    }
}

fn not(wanted: &Requested) -> &'static str {
    match wanted {
        Requested::Catalog | Requested::CatalogIn(_) => "no catalog",
        Requested::Bundle | Requested::BundleFiles => "no bundle",
        Requested::Any => "neither a catalog nor a bundle",
    }
}
