//! The custom resources of an operator, and which of them are deleted with it.

use std::collections::BTreeSet;

use olm_core::api::custom_resource_definition::CustomResourceDefinition;
use olm_core::api::object;
use olm_core::removal::{OwnedCrd, Removal};
use serde_json::Value;

use crate::cli::CliError;
use crate::cluster::api::{Api, ListQuery, Page, Resource};
use crate::cluster::request_error::RequestError;

/// The custom resources of a CustomResourceDefinition.
pub(super) struct Operands {
    /// The name of the definition.
    pub(super) crd: String,
    /// The definition itself, if it is deleted, too.
    pub(super) deleted_crd: Option<Value>,
    pub(super) resource: Resource,
    /// The objects to delete.
    pub(super) objects: Vec<Value>,
    /// Number of objects that are kept.
    pub(super) kept: usize,
    /// Why the objects, all of which are kept, cannot be read.
    pub(super) unread: Option<String>,
}

impl Operands {
    /// Returns a query of all objects.
    pub(super) fn query(&self) -> ListQuery {
        ListQuery::all(&self.resource)
    }

    /// Returns the uids of the objects to delete.
    pub(super) fn uids(&self) -> BTreeSet<String> {
        self.objects.iter().map(|object| object::uid(object).to_owned()).collect()
    }
}

/// Reads the custom resources of all definitions of an operator. `targets` are the namespaces that it watches; those of other
/// namespaces belong to other operators if these own the definition, too.
///
/// # Errors
/// A definition or its objects cannot be read.
pub(super) async fn read(
    api: &Api,
    removal: &Removal,
    targets: &BTreeSet<String>,
    is_deleted: bool,
    crd_of: impl Fn(&str) -> Option<Value>,
) -> Result<Vec<Operands>, CliError> {
    let mut all = Vec::new();
    for owned in &removal.crds {
        let Some(crd) = crd_of(&owned.name) else { continue };
        let Some(resource) = resource(&crd) else { continue };
        let query = ListQuery::all(&resource);
        let mut unread = None;
        let objects = match api.list(&query).await.and_then(Page::readable) {
            Ok((objects, _)) => objects,
            Err(refusal) if refusal.is_not_found() => Vec::new(),
            // A conversion webhook of an operator that does not run, or no permission: nothing is lost.
            Err(refusal) if owned.kept.is_some() && !is_deleted => {
                unread = Some(refusal.message);
                Vec::new()
            }
            Err(refusal) => {
                let has_webhook = object::text(&crd, &["spec", "conversion", "strategy"]) == "Webhook";
                let error = CliError::from(RequestError::new("list", resource.qualified(), "", refusal))
                    .hint("without these objects it is unknown what would be lost");
                return Err(if has_webhook { error.hint(without_conversion(&owned.name)) } else { error });
            }
        };
        let count = objects.len();
        let objects: Vec<Value> = match owned {
            OwnedCrd { kept: None, .. } => objects,
            _ if !is_deleted => Vec::new(),
            OwnedCrd { other_owners, .. } if !other_owners.is_empty() && targets.contains("") => Vec::new(),
            _ => objects.into_iter().filter(|object| is_watched(object, targets)).collect(),
        };
        all.push(Operands {
            crd: owned.name.clone(),
            deleted_crd: owned.kept.is_none().then_some(crd),
            kept: count - objects.len(),
            resource,
            objects,
            unread,
        });
    }
    Ok(all)
}

/// Returns the hint for objects that cannot be read because a conversion webhook does not respond.
fn without_conversion(crd: &str) -> String {
    format!(
        "if the conversion webhook of the operator does not respond: kubectl patch crd {crd} --type=merge -p \
         '{{\"spec\":{{\"conversion\":{{\"strategy\":\"None\",\"webhook\":null}}}}}}'"
    )
}

fn is_watched(object: &Value, targets: &BTreeSet<String>) -> bool {
    targets.contains("") || targets.contains(object::namespace(object))
}

/// Returns the resource of the version in which objects are stored.
pub(super) fn resource(crd: &Value) -> Option<Resource> {
    let crd = CustomResourceDefinition::new(crd);
    let version = crd.served().find(|version| version.is_stored()).or_else(|| crd.served().next())?;
    Some(Resource::from_definition(crd, version.name()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_stored_version_is_read_if_it_is_served() {
        let version =
            |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage});
        let crd = |versions: Value| json!({"spec": {"group": "g.example.com", "scope": "Cluster", "names": {"kind": "Rose", "plural": "roses"}, "versions": versions}});
        let both = crd(json!([version("v1", true, false), version("v2", true, true)]));
        assert_eq!(resource(&both).unwrap().gvk.version, "v2");
        let unserved = crd(json!([version("v1", true, false), version("v2", false, true)]));
        assert_eq!(resource(&unserved).unwrap().gvk.version, "v1");
        assert!(resource(&crd(json!([version("v1", false, true)]))).is_none());
    }
}
