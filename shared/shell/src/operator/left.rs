//! Proves that nothing is left of a removed operator.

use std::collections::{BTreeMap, BTreeSet};

use olm_core::api::kinds;
use olm_core::api::object::{self, Gvk, ObjectRef};
use serde_json::Value;

use super::deletion::gone;
use super::steps::{OWNED, SETTLES, Steps};
use crate::cli::{CliError, Printer};
use crate::cluster::api::{Depth, ListQuery, Page, Resource};
use crate::cluster::request_error::RequestError;

/// Kinds that no operator owns and of which there are many, or whose objects are views of others.
const SKIPPED: [&str; 3] = ["Event", "PodMetrics", "PackageManifest"];

/// Returns what exists of the operator after the removal. The garbage collector is given time to delete what the
/// ClusterServiceVersions owned: all kinds of the namespace are read, because a bundle can contain any of them.
///
/// # Errors
/// Objects that OLM creates cannot be read, or the wait was interrupted.
pub(super) async fn left(steps: &Steps<'_>, printer: &mut Printer) -> Result<Vec<String>, CliError> {
    let csvs: Vec<&ObjectRef> = steps.removal.csvs.iter().chain(&steps.removal.replaced).collect();
    let mut found = Vec::new();
    for kind in &OWNED {
        let mut uids = BTreeSet::new();
        for csv in &csvs {
            uids.extend(steps.owned(kind, csv).await?.iter().map(|object| object::uid(object).to_owned()));
        }
        found.push((ListQuery::all(&Resource::from(kind)), uids));
    }
    let mut unread = Vec::new();
    for resource in namespaced(steps, printer).await? {
        let query = ListQuery::all(&resource).within(&steps.removal.namespace);
        match steps.api.list(&query.clone().depth(Depth::Metadata)).await.and_then(Page::readable) {
            Ok((objects, _)) => {
                let owned = objects.iter().filter(|object| is_owned(object, &csvs));
                found.push((query, owned.map(|object| object::uid(object).to_owned()).collect()));
            }
            Err(refusal) if refusal.is_forbidden() => unread.push(resource.qualified()),
            // It cannot be listed, or its API does not respond.
            Err(refusal) if matches!(refusal.code, 404 | 405 | 503) => {}
            Err(refusal) => return Err(RequestError::about("list", &resource, &query.namespace, refusal).into()),
        }
    }
    let mut left = Vec::new();
    for (query, uids) in found.into_iter().filter(|(_, uids)| !uids.is_empty()) {
        let kind = query.resource.gvk.kind.clone();
        let remaining = gone(steps.api, query, &uids, Some(SETTLES), printer).await?;
        left.extend(remaining.values().map(|(name, _)| format!("{kind} {name}")));
    }
    if !unread.is_empty() {
        printer.warn(format_args!("not checked, because they may not be listed: {}", unread.join(", ")));
    }
    Ok(left)
}

/// Returns a resource for each namespaced kind that the API server serves.
async fn namespaced(steps: &Steps<'_>, printer: &mut Printer) -> Result<Vec<Resource>, CliError> {
    let (all, stale) =
        steps.api.discover().await.map_err(|refusal| RequestError::of_cluster("get", "/apis", refusal))?;
    for (group, version) in stale {
        printer.warn(format_args!("not checked, because its server does not respond: {group}/{version}"));
    }
    let is_checked = |resource: &Resource| {
        let Gvk { group, kind, .. } = &resource.gvk;
        let is_csv = (group.as_str(), kind.as_str()) == (kinds::OLM_GROUP, kinds::CLUSTER_SERVICE_VERSION.kind);
        resource.namespaced && !resource.plural.contains('/') && !SKIPPED.contains(&kind.as_str()) && !is_csv
    };
    let mut kinds = BTreeMap::new();
    for resource in all.into_iter().filter(is_checked) {
        kinds.entry((resource.gvk.group.clone(), resource.gvk.kind.clone())).or_insert(resource);
    }
    Ok(kinds.into_values().collect())
}

/// Returns whether one of the ClusterServiceVersions owns the object.
fn is_owned(object: &Value, csvs: &[&ObjectRef]) -> bool {
    object::list(object, &["metadata", "ownerReferences"]).iter().any(|owner| {
        object::text(owner, &["kind"]) == kinds::CLUSTER_SERVICE_VERSION.kind
            && csvs.iter().any(|csv| csv.name == object::text(owner, &["name"]))
    })
}
