//! As whom images are pulled for a cluster, and what is told of those that cannot be.

use olm_core::api::kinds;

use super::api::Api;
use super::error::Error;
use crate::image::{self, Credentials, Location};

/// Pulls images that objects of a cluster name.
#[derive(Clone)]
pub(crate) struct Puller {
    api: Api,
    options: image::Options,
}

impl Puller {
    /// `options`: how, and as whom when there are no pull secrets, or they do not fit: with the user's own credentials only if they are lent.
    pub(crate) fn new(api: Api, options: &image::Options) -> Self {
        Self { api, options: options.for_others() }
    }

    /// Where an image is: in a registry, for nobody but the user of this machine may have its files read.
    pub(crate) fn location(reference: &str) -> Result<Location, Error> {
        match reference.parse::<Location>()? {
            location @ Location::Registry(_) => Ok(location),
            Location::Layout { .. } => Err(Error::Reference(reference.to_owned())),
        }
    }

    /// How to pull with pull secrets of a namespace: with what they say now, then with the user's own credentials if they are lent. A secret that is
    /// missing may come later.
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

    /// The same for those who may not be allowed to read the pull secrets: then without them, and why.
    pub(crate) async fn options_as_far_as(
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
