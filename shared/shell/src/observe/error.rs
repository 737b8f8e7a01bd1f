//! Errors of reading the state of a cluster or of files.

use std::io;
use std::path::{Path, PathBuf};

use olm_core::api::object::ObjectRef;
use olm_core::yaml;

use crate::cluster::request_error::RequestError;
use crate::registry;

/// An error of reading a cluster or a file. The messages do not contain the place: see [`Error::place`].
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum Error {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Registry(#[from] registry::Error),
    #[error("cannot read: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}", .error.message)]
    Syntax { file: PathBuf, error: yaml::Error },
    #[error("this is not a Kubernetes object")]
    NotAnObject { place: String },
    #[error("this object has no apiVersion or no kind")]
    NoKind { place: String },
    #[error("this {kind} has no metadata.name")]
    NoName { kind: String, place: String },
    /// `instead`: a known field that may have been meant.
    #[error("unknown field {field:?} in {object}")]
    UnknownField { field: String, object: Box<ObjectRef>, instead: Option<String>, place: String },
    #[error("{first}")]
    Several { first: Box<Self>, others: Vec<Self> },
}

impl Error {
    /// Returns the file that the error is about, with its line if known.
    pub fn place(&self) -> Option<String> {
        match self {
            Self::Request(_) => None,
            Self::Registry(error) => error.place(),
            Self::Unreadable { path, .. } => Some(path.display().to_string()),
            Self::Syntax { file, error } => Some(format!("{}:{}", file.display(), error.line)),
            Self::NotAnObject { place }
            | Self::NoKind { place }
            | Self::NoName { place, .. }
            | Self::UnknownField { place, .. } => Some(place.clone()),
            Self::Several { first, .. } => first.place(),
        }
    }

    /// Returns all errors as one, if there are any.
    ///
    /// # Errors
    /// There is at least one error.
    pub(super) fn all(errors: impl IntoIterator<Item = Self>) -> Result<(), Self> {
        let mut errors = errors.into_iter();
        let Some(first) = errors.next() else { return Ok(()) };
        let others: Vec<Self> = errors.collect();
        if others.is_empty() { Err(first) } else { Err(Self::Several { first: Box::new(first), others }) }
    }

    pub(super) fn unreadable(path: &Path, source: io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), source }
    }

    /// Returns the message with its place.
    pub(super) fn text(&self) -> String {
        match self.place() {
            Some(place) => format!("{place}: {self}"),
            None => self.to_string(),
        }
    }
}
