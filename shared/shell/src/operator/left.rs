//! Proves that nothing is left of a removed operator.

use std::collections::{BTreeMap, BTreeSet};

use olm_core::api::kinds;
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::removal::Removal;
use serde_json::Value;

use super::deletion::gone;
use super::steps::{OWNED, SETTLES, Steps, owned};
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
            uids.extend(owned(steps.api, kind, csv).await?.iter().map(|object| object::uid(object).to_owned()));
        }
        found.push((ListQuery::all(&Resource::from(kind)), uids));
    }
    let (mut unread, mut queries) = (Vec::new(), Vec::new());
    let mut dependents = Dependents::new(steps.removal);
    for resource in namespaced(steps, printer).await? {
        let query = ListQuery::all(&resource).within(&steps.removal.namespace);
        match steps.api.list(&query.clone().depth(Depth::Metadata)).await.and_then(Page::readable) {
            Ok((objects, _)) => {
                for object in &objects {
                    dependents.add(queries.len(), object);
                }
                queries.push(query);
            }
            Err(refusal) if refusal.is_forbidden() => unread.push(resource.qualified()),
            // It cannot be listed, or its API does not respond.
            Err(refusal) if matches!(refusal.code, 404 | 405 | 503) => {}
            Err(refusal) => return Err(RequestError::about("list", &resource, &query.namespace, refusal).into()),
        }
    }
    found.extend(queries.into_iter().zip(dependents.into_uids()));
    let mut left = Vec::new();
    for (query, uids) in found.into_iter().filter(|(_, uids)| !uids.is_empty()) {
        let kind = query.resource.gvk.kind.clone();
        let remaining = gone(steps.api, query, &uids, Some(SETTLES), printer).await?;
        left.extend(remaining.values().map(|blocked| format!("{kind} {}", blocked.name)));
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

/// The objects of a namespace that the garbage collector deletes with an operator: all of their owners are deleted. Until then
/// they are components of the operator, for which OLM creates the Operator object again.
struct Dependents {
    /// Kind and name of what is deleted. Their objects may no longer exist, so that their uids are unknown.
    deleted: BTreeSet<(&'static str, String)>,
    /// Objects with owners: the index of their kind, their uid, and kind, name and uid of their owners.
    owned: Vec<(usize, String, Vec<[String; 3]>)>,
}

impl Dependents {
    fn new(removal: &Removal) -> Self {
        let csvs = removal.csvs.iter().chain(&removal.replaced);
        // The OperatorCondition has the name of the ClusterServiceVersion, and owns permissions.
        let kinds = [kinds::CLUSTER_SERVICE_VERSION.kind, kinds::OPERATOR_CONDITION.kind];
        let deleted = csvs.flat_map(|csv| kinds.map(|kind| (kind, csv.name.clone())));
        let recorded = removal.interrupted.iter().flat_map(|record| record.names.iter().cloned());
        let subscriptions = removal.subscription.iter().map(|target| target.name.clone()).chain(recorded);
        let subscriptions = subscriptions.map(|name| (kinds::SUBSCRIPTION.kind, name));
        Self { deleted: deleted.chain(subscriptions).collect(), owned: Vec::new() }
    }

    fn add(&mut self, index: usize, object: &Value) {
        let owners = object::list(object, &["metadata", "ownerReferences"]).iter();
        let owners: Vec<[String; 3]> =
            owners.map(|owner| ["kind", "name", "uid"].map(|field| object::text(owner, &[field]).to_owned())).collect();
        if !owners.is_empty() {
            self.owned.push((index, object::uid(object).to_owned(), owners));
        }
    }

    /// Returns the uids of the objects of each kind, in the order of their indices.
    fn into_uids(mut self) -> impl Iterator<Item = BTreeSet<String>> {
        let mut uids: BTreeSet<String> = BTreeSet::new();
        let mut by_kind: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        loop {
            let is_deleted = |[kind, name, uid]: &[String; 3]| {
                uids.contains(uid) || self.deleted.iter().any(|(deleted, of)| deleted == kind && of == name)
            };
            let (found, rest): (Vec<_>, Vec<_>) =
                self.owned.into_iter().partition(|(_, _, owners)| owners.iter().all(is_deleted));
            self.owned = rest;
            if found.is_empty() {
                break;
            }
            for (index, uid, _) in found {
                uids.insert(uid.clone());
                by_kind.entry(index).or_default().insert(uid);
            }
        }
        (0..).map(move |index| by_kind.remove(&index).unwrap_or_default())
    }
}
