//! Bundles that exist only as images: which are asked for, and what is known of getting them.

use jiff::Timestamp;

use super::{Bundle, BundleContent, File};
use crate::finding::Finding;

/// The image of a bundle, and for whom it is unpacked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleImage {
    /// Namespace of the Subscriptions that it is for.
    pub namespace: String,
    /// Namespace of the catalog that names it.
    pub catalog_namespace: String,
    /// Name of that catalog.
    pub catalog: String,
    /// Reference of the image.
    pub image: String,
}

/// How far the unpacking of an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacking {
    /// The pull secrets it is pulled with, in the catalog's namespace.
    pub secrets: Vec<String>,
    /// When the first of these attempts began: the deadline counts from here.
    pub since: Timestamp,
    /// How many attempts there were since then.
    pub attempts: u32,
    /// Is the last of them under way?
    pub running: bool,
    /// When the last attempt that ended did so, and what came of it.
    pub ended: Option<(Timestamp, Unpacked)>,
}

impl Unpacking {
    /// The same when its attempt has ended.
    #[must_use]
    pub fn end(self, at: Timestamp, unpacked: Unpacked) -> Self {
        Self { running: false, ended: Some((at, unpacked)), ..self }
    }
}

/// What came of an attempt to unpack an image. Errors are sentences without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpacked {
    /// The objects.
    Content(BundleContent),
    /// It failed, and the same may succeed later: the registry does not answer.
    Later(String),
    /// It failed, and trying again alone will not help: there is no such image, or it is no bundle.
    Refused(String),
    /// Nothing stands for the image, and nothing will: what would have to be given to the simulation.
    NotGiven(String),
}

impl Unpacked {
    /// From the files of a bundle image, or of a bundle directory: `manifests/NAME` and `metadata/NAME`.
    pub fn of_files(files: &[File]) -> Self {
        match Bundle::unpack(files) {
            Ok(content) => Self::Content(content),
            Err(Finding { file, line, message, .. }) if line > 0 => Self::Refused(format!("{file}:{line}: {message}")),
            Err(finding) => Self::Refused(finding.message),
        }
    }
}
