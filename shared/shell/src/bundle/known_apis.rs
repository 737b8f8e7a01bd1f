//! The kinds behind the resources of rules: those that a cluster serves, and those that the bundles of catalogs provide.

use olm_core::api::names::guess_plural;
use olm_core::bundle::synthesis::KnownApis;

use crate::blocking::block_on;
use crate::catalog::Ref;
use crate::catalog::source::OpenCatalog;
use crate::cli::connect::connect;
use crate::cli::flags::ClusterFlags;
use crate::cli::{CliError, Printer};
use crate::cluster::request_error::RequestError;
use crate::image;

/// Reads the APIs of the cluster, if a flag selects one, and of the catalogs.
pub(super) fn read(
    cluster: &ClusterFlags,
    catalogs: &[Ref],
    images: &image::Options,
    printer: &mut Printer,
) -> Result<KnownApis, CliError> {
    let mut known = KnownApis::default();
    if !catalogs.is_empty() {
        let catalog = OpenCatalog::read(catalogs, images, printer)?;
        for gvk in catalog.load.snapshot.entries().flat_map(|entry| entry.provided_apis.iter()) {
            // The registry protocol carries no plurals.
            known.add(gvk.clone(), &guess_plural(&gvk.kind));
        }
    }
    if cluster.is_given() {
        let (resources, stale) = block_on::<_, CliError>(async {
            let connection = connect(cluster).await?;
            connection.api.discover().await.map_err(|status| RequestError::of_cluster("get", "/apis", status).into())
        })?;
        for (group, version) in stale {
            printer.warn(format_args!("the API server does not currently know the kinds of {group}/{version}"));
        }
        for resource in resources {
            known.add(resource.gvk, &resource.plural);
        }
    }
    Ok(known)
}
