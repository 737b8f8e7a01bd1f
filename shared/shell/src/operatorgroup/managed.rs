//! What creating and deleting OperatorGroups have in common.

use kube::api::{DeleteParams, Preconditions};
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::membership::Group;
use serde_json::Value;

use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::{CliError, ErrorKind, Printer};
use crate::cluster::api::{Api, Resource};
use crate::observe::{self, Need, Seen};

/// So often is a decision made again because somebody else was quicker.
pub(super) const ATTEMPTS: usize = 5;

/// Looks at the groups, and what belongs to them. What decides has to be seen.
///
/// # Errors
/// OperatorGroups or ClusterServiceVersions of the namespace cannot be listed.
pub(super) async fn look(source: &SourceFlags, namespace: &str, printer: &mut Printer) -> Result<Seen, CliError> {
    let namespaces = NamespaceFlags { namespace: Some(namespace.to_owned()), all_namespaces: false };
    let seen = observe::look(source, &namespaces, &[], Need::Groups, printer).await?;
    for gap in &seen.gaps {
        let decides = ["operatorgroups.", "clusterserviceversions."].iter().any(|kind| gap.resource.starts_with(kind));
        // Where all namespaces may not be read this one was.
        if decides && gap.namespace == namespace {
            return Err(CliError::new(ErrorKind::Api, format!("{gap}, which decides"))
                .hint(format!("see what is allowed with: kubectl auth can-i list {} -n {namespace}", gap.resource)));
        }
    }
    Ok(seen)
}

/// How kubectl names a group.
pub(super) fn label(name: &str) -> String {
    format!("operatorgroup.operators.coreos.com/{name}")
}

/// `a, b and c`
pub(super) fn listed<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [others @ .., last] => {
            let others: Vec<&str> = others.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", others.join(", "), last.as_ref())
        }
    }
}

/// The names of groups, or of other objects.
pub(super) fn names(groups: &[Group<'_>]) -> String {
    listed(&groups.iter().map(|group| group.name()).collect::<Vec<_>>())
}

/// DELETE of that life of a group, as it was looked at.
pub(super) async fn delete(api: &Api, group: &Value, dry_run: bool) -> Result<(), Status> {
    let preconditions = Preconditions {
        uid: Some(object::uid(group).to_owned()),
        resource_version: Some(object::resource_version(group).to_owned()),
    };
    let params = DeleteParams { dry_run, preconditions: Some(preconditions), ..DeleteParams::default() };
    api.delete(&ObjectRef::of(group), &params).await.map(|_| ())
}

/// The objects of one of OLM's kinds in a namespace, as they are now.
pub(super) async fn list(
    api: &Api,
    version: &str,
    kind: &str,
    plural: &str,
    namespace: &str,
    labels: &str,
) -> Result<Vec<Value>, CliError> {
    let gvk = Gvk::new("operators.coreos.com", version, kind);
    let resource = Resource { gvk, plural: plural.to_owned(), namespaced: true };
    api.list_whole(&resource, namespace, labels).await.map_err(|refusal| refused(&refusal, "list", plural, namespace))
}

/// The API server refuses something.
pub(super) fn refused(refusal: &Status, verb: &str, plural: &str, namespace: &str) -> CliError {
    match refusal.code {
        0 => CliError::new(ErrorKind::Unreachable, format!("no answer from the server: {}", refusal.message))
            .hint("is the cluster up, and is this the right context? kubectl config current-context"),
        401 | 403 => CliError::new(
            ErrorKind::Api,
            format!("not allowed to {verb} {plural} in namespace {namespace}: {}", refusal.message),
        )
        .hint(format!("see what is allowed with: kubectl auth can-i {verb} {plural} -n {namespace}")),
        404 => CliError::new(ErrorKind::Api, format!("the server refused: {}", refusal.message))
            .hint(format!("is the namespace there? kubectl create namespace {namespace}")),
        _ => CliError::new(ErrorKind::Api, format!("the server refused: {}", refusal.message)),
    }
}
