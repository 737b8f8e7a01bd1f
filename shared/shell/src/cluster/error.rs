//! Errors of reading catalogs and bundles that objects of a cluster refer to.

use std::io;
use std::time::Duration;

use olm_core::api::status::Status;
use olm_core::bundle::Unpacked;

use crate::{image, registry};

/// An error of reading a catalog or a bundle. The messages do not contain the place: see [`Error::place`].
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum Error {
    #[error(transparent)]
    Registry(#[from] registry::Error),
    #[error(transparent)]
    Image(#[from] image::Error),
    #[error("{0:?} is not an image reference")]
    Reference(String),
    #[error("cannot read pull secret {namespace}/{name}: {status}")]
    PullSecret {
        namespace: String,
        name: String,
        #[source]
        status: Status,
    },
    #[error("its spec is invalid: {0}")]
    Spec(String),
    #[error("cannot read configmap {namespace}/{name}: {status}")]
    ConfigMap {
        namespace: String,
        name: String,
        #[source]
        status: Status,
    },
    #[error("cannot read configmap {namespace}/{name}: it does not exist")]
    NoConfigMap { namespace: String, name: String },
    #[error("{why}")]
    Content { namespace: String, name: String, why: String },
    #[error("the address {0} resolves only inside its cluster")]
    AddressOfCluster(String),
    #[error("the address {address} cannot be resolved: {source}")]
    Address { address: String, source: io::Error },
    #[error("no catalog at {address}: {why}")]
    NoCatalog { address: String, why: String },
    #[error("no catalog at {address}: no answer within {} s", .within.as_secs())]
    Silent { address: String, within: Duration },
    #[error("the connection to the registry ended")]
    Ended,
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// `secret_error`: the reason why a pull secret was not used.
    #[error("{source}{}", secret_error.as_ref().map(|why| format!("; {why}")).unwrap_or_default())]
    CatalogSource { namespace: String, name: String, secret_error: Option<Box<Self>>, source: Box<Self> },
}

/// A panic of a task, with its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it failed inside kubectl-olm: {0}")]
pub struct Panicked(pub(super) String);

/// Returns the hint for an error, for messages in the status of an object, which have room for one hint.
pub type Hint = fn(&Error) -> Option<String>;

impl Error {
    /// Returns the object, file or image that the error is about, if any.
    pub fn place(&self) -> Option<String> {
        match self {
            Self::Registry(error) => error.place(),
            Self::Image(error) => error.file().map(|file| file.display().to_string()),
            Self::Content { namespace, name, .. } => Some(format!("configmap/{namespace}/{name}")),
            Self::CatalogSource { namespace, name, source, .. } => {
                let inner = source.place().map(|place| format!(": {place}")).unwrap_or_default();
                Some(format!("catalogsource/{namespace}/{name}{inner}"))
            }
            _ => None,
        }
    }

    /// Returns whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Registry(error) => error.is_transient(),
            Self::Image(error) => error.is_transient(),
            Self::CatalogSource { source, .. } => source.is_transient(),
            Self::Reference(_) | Self::Spec(_) | Self::Content { .. } => false,
            _ => true,
        }
    }

    /// Returns the message with its place.
    pub fn text(&self) -> String {
        match self.place() {
            Some(place) => format!("{place}: {self}"),
            None => self.to_string(),
        }
    }

    /// Returns the error as one sentence for the status of an object.
    pub fn status_message(&self, hint: Hint) -> String {
        with_hint(self.text(), hint(self))
    }

    /// Returns the error as the result of an attempt to unpack a bundle image. The message does not contain the image, which the reader
    /// knows.
    pub fn unpacked(&self, hint: Hint) -> Unpacked {
        let message = with_hint(self.to_string(), hint(self));
        if self.is_transient() { Unpacked::Later(message) } else { Unpacked::Refused(message) }
    }
}

fn with_hint(message: String, hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("{message} ({hint})"),
        None => message,
    }
}
