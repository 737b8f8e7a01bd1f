//! `--install-crds`: installs OLM's CustomResourceDefinitions, and the namespace of the Lease, on the cluster.

use olm_core::api::crd;
use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};

use serde_json::json;

use super::{Options, guard, live};
use crate::cli::{CliError, Outcome, Printer};
use crate::cluster::lease;
use crate::cluster::request_error::RequestError;

/// Applies the CRDs, creates the namespace of the Lease, and waits until the API server serves the CRDs.
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
    let namespace = kinds::NAMESPACE.object("", lease::NAMESPACE);
    let refused = |verb, status| CliError::from(RequestError::of_cluster(verb, "namespaces", status));
    let did = match api.get(&namespace).await.map_err(|status| refused("get", status))? {
        Some(_) => "unchanged",
        None => {
            let manifest = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": lease::NAMESPACE } });
            match api.create(&manifest).await {
                Ok(_) => "created",
                Err(status) if status.is_already_exists() => "unchanged",
                Err(status) => {
                    let error = refused("create", status).while_doing("the CRDs are installed");
                    return Err(error.hint(lease::namespace_hint()));
                }
            }
        }
    };
    printer.line(format_args!("namespace/{} {did}", lease::NAMESPACE))?;
    guard::wait_for_crds(&api).await?;
    Ok(Outcome::Done)
}
