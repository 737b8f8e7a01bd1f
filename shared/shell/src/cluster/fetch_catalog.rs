//! Reads the content of a CatalogSource once, for commands.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use olm_core::api::catalog_source::{self, Origin};
use olm_core::api::{kinds, object};
use olm_core::catalog::{self, Snapshot};
use serde_json::Value;

use super::api::Api;
use super::endpoints::service;
use super::error::Error;
use super::pull_secrets::PullSecrets;
use crate::image::{self, Content, Location, Requested};
use crate::registry::client::{Client, Settings};
use crate::registry::{self, dir};

/// The maximum number of concurrent requests for the parts of a catalog.
const REQUESTS: usize = 8;

/// The content of a CatalogSource.
pub(crate) enum Fetched {
    /// From a registry or a ConfigMap.
    Snapshot(Arc<Snapshot>),
    /// From an image: the directory of a file-based catalog.
    Image(Box<(Location, Content)>),
}

/// Reads the content of a CatalogSource according to its spec. `images`: options for pulling images, in addition to its pull secrets.
///
/// # Errors
/// The content cannot be read from this machine.
pub(crate) async fn fetch(api: &Api, images: &image::Options, source: &Value) -> Result<Fetched, Error> {
    let namespace = object::namespace(source);
    let mut secret_error = None;
    let fetched = match Origin::from_source(source) {
        Origin::Address(address) => dial(address).await.map(Fetched::Snapshot),
        Origin::Image(reference) => fetch_image(api, images, source, reference, &mut secret_error).await,
        Origin::ConfigMap(name) => config_map(api, namespace, name).await.map(Fetched::Snapshot),
        Origin::ConfigMaps(names) => {
            let read = config_maps(api, namespace, &names).await;
            read.map(|(snapshot, _)| Fetched::Snapshot(Arc::new(snapshot)))
        }
        Origin::Invalid(why) => Err(Error::Spec(why)),
    };
    fetched.map_err(|error| of_source(source, secret_error, error))
}

/// Adds to an error which CatalogSource cannot be read.
fn of_source(source: &Value, secret_error: Option<Error>, error: Error) -> Error {
    let (namespace, name) = (object::namespace(source).to_owned(), object::name(source).to_owned());
    Error::CatalogSource { namespace, name, secret_error: secret_error.map(Box::new), source: Box::new(error) }
}

/// Pulls the image of a CatalogSource. `secret_error` receives the reason why its pull secrets are not used.
async fn fetch_image(
    api: &Api,
    images: &image::Options,
    source: &Value,
    reference: &str,
    secret_error: &mut Option<Error>,
) -> Result<Fetched, Error> {
    let location = PullSecrets::location(reference)?;
    let secrets = catalog_source::pull_secrets(source);
    let pull_secrets = PullSecrets::new(api.clone(), images);
    let options;
    (options, *secret_error) = pull_secrets.readable_options(object::namespace(source), &secrets).await;
    let wanted = Requested::catalog(catalog_source::catalog_dir(source).as_deref());
    let content = image::pull(&location, wanted, &options).await.map_err(registry::Error::from)?;
    Ok(Fetched::Image(Box::new((location, content))))
}

/// Returns the number of packages of a CatalogSource.
///
/// # Errors
/// As for [`fetch`]; or the content cannot be parsed.
pub(crate) async fn packages(api: &Api, images: &image::Options, source: &Value) -> Result<usize, Error> {
    if let Origin::ConfigMap(name) = Origin::from_source(source) {
        let namespace = object::namespace(source);
        let counted = count_packages(api, namespace, name).await;
        return counted.map_err(|error| of_source(source, None, error));
    }
    let content = match fetch(api, images, source).await? {
        Fetched::Snapshot(snapshot) => return Ok(snapshot.packages().len()),
        Fetched::Image(image) => image.1,
    };
    let load = tokio::task::spawn_blocking(move || {
        dir::load_content(&content.root).map(|load| load.snapshot.packages().len())
    });
    Ok(load.await.map_err(registry::Error::from)??)
}

async fn config_map(api: &Api, namespace: &str, name: &str) -> Result<Arc<Snapshot>, Error> {
    let found = get_config_map(api, namespace, name).await?;
    let read = catalog::config_map(&found).map_err(|why| invalid(namespace, name, why));
    read.map(|(snapshot, _)| Arc::new(snapshot))
}

/// Returns the number of packages of the catalog in a ConfigMap.
async fn count_packages(api: &Api, namespace: &str, name: &str) -> Result<usize, Error> {
    let found = get_config_map(api, namespace, name).await?;
    catalog::count_packages(&found).map_err(|why| invalid(namespace, name, why))
}

fn invalid(namespace: &str, name: &str, why: String) -> Error {
    Error::Content { namespace: namespace.to_owned(), name: name.to_owned(), why }
}

async fn get_config_map(api: &Api, namespace: &str, name: &str) -> Result<Value, Error> {
    let found = api.get(&kinds::CONFIG_MAP.object(namespace, name)).await;
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    match found {
        Err(status) => Err(Error::ConfigMap { namespace, name, status }),
        Ok(None) => Err(Error::NoConfigMap { namespace, name }),
        Ok(Some(found)) => Ok(found),
    }
}

/// Reads the catalog whose blobs are in ConfigMaps. Also returns its approximate size in memory, in bytes.
///
/// # Errors
/// A ConfigMap cannot be read, or has no part of a catalog.
pub(super) async fn config_maps(
    api: &Api,
    namespace: &str,
    names: &[impl AsRef<str>],
) -> Result<(Snapshot, usize), Error> {
    let mut found = Vec::new();
    for names in names.chunks(REQUESTS) {
        let requests: Vec<_> = names.iter().map(|name| get_config_map(api, namespace, name.as_ref())).collect();
        found.extend(try_join_all(requests).await?);
    }
    let all = names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(",");
    let parsed = tokio::task::spawn_blocking(move || catalog::parts::join(&found)).await;
    let parsed = parsed.map_err(registry::Error::from)?;
    parsed.map_err(|why| Error::Content { namespace: namespace.to_owned(), name: all, why })
}

/// Reads the catalog that a registry serves at `host:port`.
///
/// # Errors
/// The address resolves only inside the cluster, does not respond, or does not serve a catalog.
pub(crate) async fn dial(address: &str) -> Result<Arc<Snapshot>, Error> {
    if let Err(source) = tokio::net::lookup_host(address).await {
        let is_of_cluster = service(address).is_some();
        let address = address.to_owned();
        return Err(if is_of_cluster { Error::AddressOfCluster(address) } else { Error::Address { address, source } });
    }
    let settings = Settings::default();
    let client = Client::start(address, settings);
    let mut seen = client.observe();
    let limit = settings.connect_timeout + settings.read_timeout + Duration::from_secs(1);
    let seen = seen.wait_for(|o| o.snapshot.is_some() || o.error.is_some());
    let seen = tokio::time::timeout(limit, seen).await.ok().and_then(Result::ok).map(|o| o.clone());
    let address = address.to_owned();
    match seen.map(|o| (o.snapshot, o.error)) {
        Some((Some(snapshot), _)) => Ok(snapshot),
        Some((None, error)) => Err(Error::NoCatalog { address, why: error.unwrap_or_default() }),
        None => Err(Error::Silent { address, within: limit }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_inside_the_cluster_is_refused_with_a_hint() {
        let error = dial("market.olm.svc.cluster.local.invalid:50051").await.unwrap_err();
        let error = crate::cli::CliError::from(error);
        assert!(error.message.contains("only inside its cluster"), "{error}");
        assert!(error.hints.join("; ").contains("kubectl port-forward -n olm service/market 50051:50051"));
        let error = dial("127.0.0.1:1").await.unwrap_err();
        assert!(error.to_string().starts_with("no catalog at 127.0.0.1:1: "), "{error}");
    }
}
