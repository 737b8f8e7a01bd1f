//! The credentials with which images of a cluster are pulled.

use olm_core::api::kinds;

use super::api::Api;
use super::error::Error;
use crate::image::{self, Credentials, Location};

/// Reads the pull secrets with which images are pulled that objects of a cluster refer to.
#[derive(Clone)]
pub(crate) struct PullSecrets {
    api: Api,
    options: image::Options,
}

impl PullSecrets {
    /// `options` contain the credentials that apply if no pull secret matches; the user's own credentials are used
    /// only if the user permits it.
    pub(crate) fn new(api: Api, options: &image::Options) -> Self {
        Self { api, options: options.for_others() }
    }

    /// Parses an image reference. Only images in registries are permitted, because objects of a cluster must not refer to local files.
    pub(crate) fn location(reference: &str) -> Result<Location, Error> {
        match reference.parse::<Location>()? {
            location @ Location::Registry(_) => Ok(location),
            Location::Layout { .. } => Err(Error::Reference(reference.to_owned())),
        }
    }

    /// Returns the options to pull with pull secrets of a namespace in their current state, then with the user's own credentials if
    /// permitted. A missing secret is no error, because it may be created later.
    pub(crate) async fn options(&self, namespace: &str, secrets: &[String]) -> Result<image::Options, Error> {
        let mut found = Vec::new();
        for name in secrets {
            let target = kinds::SECRET.object(namespace, name);
            match self.api.get(&target).await {
                Ok(Some(secret)) => found.push(secret),
                Ok(None) => tracing::info!("pull secret {namespace}/{name} does not exist"),
                Err(status) => {
                    let (namespace, name) = (namespace.to_owned(), name.clone());
                    return Err(Error::PullSecret { namespace, name, status });
                }
            }
        }
        let (credentials, problems) = Credentials::of_secrets(&found);
        for problem in problems {
            tracing::warn!("{problem}");
        }
        let credentials = credentials.and(self.options.credentials.clone());
        Ok(image::Options { credentials, ..self.options.clone() })
    }

    /// Returns the same options for callers that may lack the permission to read the pull secrets: in this case without them, with the
    /// error.
    pub(crate) async fn readable_options(
        &self,
        namespace: &str,
        secrets: &[String],
    ) -> (image::Options, Option<Error>) {
        match self.options(namespace, secrets).await {
            Ok(options) => (options, None),
            Err(error) => (self.options.clone(), Some(error)),
        }
    }
}
