//! Bundles that exist only as images: the requested ones, and the state of unpacking them.

use jiff::Timestamp;

use super::{Bundle, BundleContent, File};
use crate::finding::Finding;

/// The image of a bundle, and the catalog and namespace that it is unpacked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleImage {
    /// Namespace of the Subscriptions that need it.
    pub namespace: String,
    /// Namespace of the catalog that references it.
    pub catalog_namespace: String,
    /// Name of the catalog.
    pub catalog: String,
    /// Image reference.
    pub image: String,
}

/// The state of unpacking an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacking {
    /// The pull secrets, in the catalog's namespace.
    pub secrets: Vec<String>,
    /// Start of the first of these attempts, which is the start of the deadline.
    pub since: Timestamp,
    /// Number of attempts since then.
    pub attempts: u32,
    /// Whether the last of them is in progress.
    pub running: bool,
    /// End and result of the last attempt that ended.
    pub ended: Option<(Timestamp, Unpacked)>,
}

impl Unpacking {
    /// Returns the state after the end of the attempt.
    #[must_use]
    pub fn end(self, at: Timestamp, unpacked: Unpacked) -> Self {
        Self { running: false, ended: Some((at, unpacked)), ..self }
    }
}

/// The result of an attempt to unpack an image. Errors are sentences without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpacked {
    /// The objects.
    Content(BundleContent),
    /// A transient error, such as a registry that does not respond.
    Later(String),
    /// A permanent error: the image does not exist, or is not a bundle.
    Refused(String),
    /// No content was given for the image, and none will arrive: what has to be given to the simulation.
    NotGiven(String),
}

impl Unpacked {
    /// Reads the files of a bundle image, or of a bundle directory: `manifests/NAME` and `metadata/NAME`.
    pub fn of_files(files: &[File]) -> Self {
        match Bundle::unpack(files) {
            Ok(content) => Self::Content(content),
            Err(Finding { file, line, message, .. }) if line > 0 => Self::Refused(format!("{file}:{line}: {message}")),
            Err(finding) => Self::Refused(finding.message),
        }
    }
}
