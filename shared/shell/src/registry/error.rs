//! Errors of reading catalogs and bundles, and of serving catalogs.

use std::io;
use std::path::PathBuf;

use tokio::task::JoinError;

use super::share::Full;
use crate::image::PullError;

/// An error of a catalog or a bundle. The messages do not include the location: see [`Error::place`].
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum Error {
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error("cannot read: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Full(#[from] Full),
    #[error("the catalog has more than {0} values in its channels and properties")]
    TooManyValues(usize),
    #[error("cannot use the {what}: {source}")]
    Certificate { what: &'static str, source: Box<dyn std::error::Error + Send + Sync> },
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Task(#[from] JoinError),
}

impl Error {
    /// Returns the location of the error: a file or an image, if there is one.
    pub fn place(&self) -> Option<String> {
        match self {
            Self::Pull(error) => Some(error.place()),
            Self::Unreadable { path, .. } => Some(path.display().to_string()),
            _ => None,
        }
    }

    /// Returns whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Pull(error) => error.error().is_transient(),
            Self::Unreadable { .. } | Self::Io(_) | Self::Task(_) => true,
            Self::Full(_) | Self::TooManyValues(_) | Self::Certificate { .. } => false,
        }
    }
}
