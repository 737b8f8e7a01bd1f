//! `--install-crds`: installs OLM's CustomResourceDefinitions on the cluster.

use olm_core::api::crd;
use olm_core::api::object::{self, ObjectRef};

use super::{Options, guard, live};
use crate::cli::{CliError, Outcome, Printer};
use crate::cluster::request_error::RequestError;

/// Applies the CRDs and waits until the API server serves them.
pub(super) async fn install(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let (api, _) = live::connect(options).await?;
    let refused =
        |verb, status| RequestError::of_cluster(verb, "customresourcedefinitions.apiextensions.k8s.io", status);
    for crd in crd::all() {
        let target = ObjectRef::from_object(&crd);
        let before = api.get(&target).await.map_err(|status| refused("get", status))?;
        let after = api.apply(&crd).await.map_err(|status| refused("patch", status))?;
        let did = match before {
            None => "created",
            Some(before) if object::resource_version(&before) == object::resource_version(&after) => "unchanged",
            Some(_) => "configured",
        };
        printer.line(format_args!("customresourcedefinition.apiextensions.k8s.io/{} {did}", target.name))?;
    }
    guard::wait_for_crds(&api).await?;
    Ok(Outcome::Done)
}
