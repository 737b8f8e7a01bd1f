//! `--install-crds`: installs OLM's CustomResourceDefinitions, and the namespace of the Lease, on the cluster.
//!
//! *Guarantees*: the CRDs of an upstream OLM, running or stopped, are not changed without `--allow-changes`: the cluster can be handed
//! back to it without a change.

use olm_core::api::crd;
use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::distribution::installation::installations;
use olm_core::listing::count;
use serde_json::json;

use super::{Options, guard, live};
use crate::cli::{CliError, Outcome, Printer};
use crate::cluster::api::Api;
use crate::cluster::installed::upstream_controllers;
use crate::cluster::lease;
use crate::cluster::request_error::RequestError;

fn are(crds: usize) -> String {
    format!("{} {}", count(crds, "existing CustomResourceDefinition"), if crds == 1 { "is" } else { "are" })
}

/// Returns whose CRDs those of the cluster are, if they must not be changed.
async fn owner(api: &Api) -> Result<Option<String>, CliError> {
    match upstream_controllers(api).await {
        Ok(deployments) => {
            Ok(installations(&deployments, &[]).first().map(|found| format!("the cluster has {}", found.describe())))
        }
        Err(error) if error.status.is_forbidden() => Ok(Some(format!("upstream OLM may be installed ({error})"))),
        Err(error) => Err(error.into()),
    }
}

/// Applies the CRDs, creates the namespace of the Lease, and waits until the API server serves the CRDs.
pub(super) async fn install(
    options: &Options,
    allow_changes: bool,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let (api, _) = live::connect(options).await?;
    let owner = if allow_changes { None } else { owner(&api).await? };
    let mut retained = 0;
    let refused =
        |verb, status| RequestError::of_cluster(verb, "customresourcedefinitions.apiextensions.k8s.io", status);
    for crd in crd::all() {
        let target = ObjectRef::from_object(&crd);
        let before = api.get(&target).await.map_err(|status| refused("get", status))?;
        if before.is_some() && owner.is_some() {
            retained += 1;
            printer.line(format_args!("customresourcedefinition.apiextensions.k8s.io/{} unchanged", target.name))?;
            continue;
        }
        let after = api.apply(&crd).await.map_err(|status| refused("patch", status))?;
        let did = match before {
            None => "created",
            Some(before) if object::resource_version(&before) == object::resource_version(&after) => "unchanged",
            Some(_) => "configured",
        };
        printer.line(format_args!("customresourcedefinition.apiextensions.k8s.io/{} {did}", target.name))?;
    }
    if let Some(owner) = owner.filter(|_| retained > 0) {
        printer.warn(format_args!("{owner}: {} not updated", are(retained)));
        printer.talk("hint: to update them to those of this version, pass --allow-changes");
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
