//! The content of a CatalogSource, read once: for commands that look and go.

use std::sync::Arc;
use std::time::Duration;

use olm_core::api::catalog_source::{self, Origin};
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::catalog::{self, Snapshot};
use serde_json::Value;

use super::api::Api;
use super::endpoints::service;
use super::puller::{Puller, status_message};
use crate::error::{CliError, ErrorKind};
use crate::image::{self, Content, Location, Wanted};
use crate::registry::client::{Client, Settings};
use crate::registry::dir;

/// What was read.
pub(crate) enum Fetched {
    /// From a registry or a ConfigMap.
    Snapshot(Arc<Snapshot>),
    /// From an image: the folder of a file-based catalog.
    Image(Box<(Location, Content)>),
}

/// Reads the content of a CatalogSource, as its spec says. `images` says how images are pulled, besides its pull secrets.
///
/// # Errors
/// Say why its content cannot be had from here, and what to try.
pub(crate) async fn fetch(api: &Api, images: &image::Options, source: &Value) -> Result<Fetched, CliError> {
    let namespace = object::namespace(source);
    let place = format!("catalogsource/{namespace}/{}", object::name(source));
    let fetched = match Origin::of(source) {
        Origin::Address(address) => dial(address).await.map(Fetched::Snapshot),
        Origin::Image(reference) => {
            let location = Puller::location(reference)?;
            let secrets = catalog_source::pull_secrets(source);
            let (options, unread) = Puller::new(api.clone(), images).options_as_far_as(namespace, &secrets).await;
            let wanted = Wanted::catalog(catalog_source::catalog_dir(source).as_deref());
            let content = image::pull(&location, wanted, &options).await.map_err(|e| {
                let mut e = CliError::from(e);
                if let Some(unread) = unread {
                    e.message = format!("{}; {unread}", e.message);
                }
                match e.location.clone() {
                    Some(image) => e.at(format_args!("{place}: {image}")),
                    None => e.at(&place),
                }
            })?;
            return Ok(Fetched::Image(Box::new((location, content))));
        }
        Origin::ConfigMap(name) => config_map(api, namespace, name).await.map(Fetched::Snapshot),
        Origin::Invalid(why) => {
            Err(CliError::input(format!("its spec is invalid: {why}")).hint("correct the CatalogSource"))
        }
    };
    fetched.map_err(|e| if e.location.is_none() { e.at(place) } else { e })
}

/// How many packages a CatalogSource has; or, in a sentence, why nobody can tell.
pub(crate) async fn packages(api: &Api, images: &image::Options, source: &Value) -> Result<usize, String> {
    let content = match fetch(api, images, source).await.map_err(|e| status_message(&e))? {
        Fetched::Snapshot(snapshot) => return Ok(snapshot.packages().len()),
        Fetched::Image(image) => image.1,
    };
    let load = tokio::task::spawn_blocking(move || {
        dir::load_content(&content.root).map(|load| load.snapshot.packages().len())
    });
    load.await.map_err(|e| e.to_string())?.map_err(|e| status_message(&e))
}

async fn config_map(api: &Api, namespace: &str, name: &str) -> Result<Arc<Snapshot>, CliError> {
    let gvk = Gvk::new("", "v1", "ConfigMap");
    let target = ObjectRef { gvk, namespace: namespace.to_owned(), name: name.to_owned() };
    let refused =
        |message| CliError::new(ErrorKind::Api, format!("cannot read configmap {namespace}/{name}: {message}"));
    let found = api.get(&target).await.map_err(|refusal| refused(refusal.message))?;
    let found = found.ok_or_else(|| refused("it does not exist".to_owned()))?;
    let (read, _) =
        catalog::config_map(&found).map_err(|e| CliError::input(e).at(format_args!("configmap/{namespace}/{name}")))?;
    Ok(Arc::new(read))
}

/// Reads the catalog that a registry serves at `host:port`.
///
/// # Errors
/// Nobody answers there, or with something else; or the address is known in a cluster only.
pub(crate) async fn dial(address: &str) -> Result<Arc<Snapshot>, CliError> {
    if let Err(e) = tokio::net::lookup_host(address).await {
        return Err(match service(address) {
            Some((namespace, service, port)) => {
                CliError::new(ErrorKind::Unreachable, format!("the address {address} is known in its cluster only"))
                    .hint(format!(
                        "run kubectl port-forward -n {namespace} service/{service} {port}:{port}, and name grpc://localhost:{port}"
                    ))
            }
            None => CliError::new(ErrorKind::Unreachable, format!("the address {address} cannot be resolved: {e}"))
                .hint("an address is written as host:port"),
        });
    }
    let settings = Settings::default();
    let client = Client::start(address, settings);
    let mut seen = client.observe();
    let limit = settings.connect_timeout + settings.read_timeout + Duration::from_secs(1);
    let seen = seen.wait_for(|o| o.snapshot.is_some() || o.error.is_some());
    let seen = tokio::time::timeout(limit, seen).await.ok().and_then(Result::ok).map(|o| o.clone());
    let failed = |why: String| {
        CliError::new(ErrorKind::Unreachable, format!("no catalog at {address}: {why}"))
            .hint("is a registry served there? kubectl olm catalog serve and opm serve do")
    };
    match seen.map(|o| (o.snapshot, o.error)) {
        Some((Some(snapshot), _)) => Ok(snapshot),
        Some((None, error)) => Err(failed(error.unwrap_or_default())),
        None => Err(failed(format!("no answer within {} s", limit.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_only_the_cluster_knows_is_refused_with_a_way() {
        let error = dial("market.olm.svc.cluster.local.invalid:50051").await.unwrap_err();
        assert!(error.message.contains("in its cluster only"), "{error}");
        assert!(error.hints.join("; ").contains("kubectl port-forward -n olm service/market 50051:50051"));
        let error = dial("127.0.0.1:1").await.unwrap_err();
        assert!(error.message.starts_with("no catalog at 127.0.0.1:1: "), "{error}");
    }
}
