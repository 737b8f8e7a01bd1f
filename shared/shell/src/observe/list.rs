//! Lists of a cluster, into a World.

use futures::future::join_all;
use futures::{StreamExt, stream};
use olm_core::api::kinds::{self, Kind};
use olm_core::api::labels;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::membership;
use olm_core::world::kind::COPIED_CSV;
use olm_core::world::{GroupKind, World, trim};
use serde_json::{Value, json};

use super::gap::{Gap, is_lack_of_rights};
use super::scope::ReadScope;
use crate::cluster::api::{Api, Depth, ListQuery, Page, Resource};
use crate::cluster::request_error::RequestError;

/// How many requests are under way at a time.
const REQUESTS: usize = 16;

/// What was listed, and when.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) query: ListQuery,
    pub(super) version: String,
}

/// Lists what is needed into the World, in one namespace or (when it is empty) in all. What has to be seen of all namespaces is
/// listed in the one where that is not allowed.
///
/// # Errors
/// A kind without which nothing can be said cannot be listed.
pub(crate) async fn list(
    api: &Api,
    namespace: &str,
    scope: ReadScope,
    world: &mut World,
) -> Result<Vec<Gap>, RequestError> {
    Ok(list_all(api, namespace, scope, world).await?.0)
}

/// The same, with the lists from which on what happens can be watched.
pub(super) async fn list_all(
    api: &Api,
    namespace: &str,
    scope: ReadScope,
    world: &mut World,
) -> Result<(Vec<Gap>, Vec<Listed>), RequestError> {
    let mut lists = Vec::new();
    let mut wanted: Vec<&Kind> = scope.kinds().collect();
    let mut gaps = Vec::new();
    let places = if scope.is_wide() && !namespace.is_empty() { vec!["", namespace] } else { vec![namespace] };
    for (at, place) in places.iter().enumerate() {
        let answers = join_all(wanted.iter().map(|kind| list_kind(api, kind, place))).await;
        let mut narrower = Vec::new();
        for (kind, answer) in wanted.into_iter().zip(answers) {
            match answer {
                Ok((list, page)) => {
                    lists.push(list);
                    gaps.extend(page.unreadable.iter().map(|object| Gap::unreadable(kind, object)));
                    for object in page.objects {
                        take(object, scope.is_wide(), world);
                    }
                }
                Err(refusal) if at + 1 < places.len() && kind.namespaced && is_lack_of_rights(&refusal) => {
                    gaps.push(Gap::list(kind, place, &refusal));
                    narrower.push(kind);
                }
                Err(refusal) if !is_fatal(&refusal, kind, scope) => gaps.push(Gap::list(kind, place, &refusal)),
                Err(refusal) => return Err(RequestError::about("list", &Resource::from(kind), place, refusal)),
            }
        }
        wanted = narrower;
    }
    if matches!(scope, ReadScope::Tenancy | ReadScope::Offers) {
        for place in places {
            match list_copies(api, place, world).await {
                Ok(list) => {
                    lists.push(list);
                    break;
                }
                // Of a namespace whose copies are not known it is not known what there is not.
                Err(refusal) => {
                    let gap = Gap::list(&kinds::CLUSTER_SERVICE_VERSION, place, &refusal);
                    if !gaps.contains(&gap) {
                        gaps.push(gap);
                    }
                }
            }
        }
    }
    Ok((gaps, lists))
}

/// Takes an object in; `are_many`: only what tells of it.
pub(super) fn take(mut object: Value, are_many: bool, world: &mut World) {
    if are_many && GroupKind::kept_as(&object) == COPIED_CSV {
        object = copy(&object);
    } else if are_many {
        let changed = changed(&object);
        trim(&mut object);
        object["metadata"]["managedFields"] = json!(changed.map(|time| [json!({ "time": time })]));
    }
    world.apply(object);
}

/// When an object was changed last: of its `managedFields`, which are long, nothing else is kept.
fn changed(object: &Value) -> Option<String> {
    let fields = object::list(object, &["metadata", "managedFields"]);
    fields.iter().map(|entry| object::text(entry, &["time"])).max().map(str::to_owned)
}

/// Lists the copies of ClusterServiceVersions in one namespace or (when it is empty) in all, page by page, for they can be ten thousands,
/// and keeps of each whose it is.
async fn list_copies(api: &Api, namespace: &str, world: &mut World) -> Result<Listed, Status> {
    let resource = Resource::from(&kinds::CLUSTER_SERVICE_VERSION);
    let query = ListQuery::all(&resource).within(namespace).labelled(labels::COPIED_FROM).depth(Depth::Metadata);
    let mut next = String::new();
    loop {
        let page = api.page(&query, &next).await?;
        // Of a copy only its metadata counts.
        let stubs = page.unreadable.into_iter().map(|object| object.stub);
        for object in page.objects.into_iter().chain(stubs) {
            take(object, true, world);
        }
        next = page.next;
        if next.is_empty() {
            return Ok(Listed { query, version: page.resource_version });
        }
    }
}

/// What is kept of a copy.
fn copy(object: &Value) -> Value {
    let metadata = object::at(object, &["metadata"]);
    let mut kept = json!({ "labels": { labels::COPIED_FROM: object::label(object, labels::COPIED_FROM) } });
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"] {
        if !metadata[field].is_null() {
            kept[field] = metadata[field].clone();
        }
    }
    for key in [membership::OPERATOR_GROUP, membership::OPERATOR_NAMESPACE] {
        if let Some(value) = object::annotation(object, key) {
            kept["annotations"][key] = value.into();
        }
    }
    json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": kept })
}

/// Without an answer, and without OLM's kinds, there is nothing to say.
fn is_fatal(refusal: &Status, kind: &Kind, scope: ReadScope) -> bool {
    scope.requires(kind) || refusal.code == 0 || kind.group == kinds::OLM && refusal.is_not_found()
}

/// The objects of a kind, and those that cannot be read.
pub(super) async fn listed(api: &Api, kind: &Kind, namespace: &str) -> Result<(Vec<Value>, Vec<Gap>), Status> {
    let page = list_kind(api, kind, namespace).await?.1;
    let gaps = page.unreadable.iter().map(|object| Gap::unreadable(kind, object)).collect();
    Ok((page.objects, gaps))
}

async fn list_kind(api: &Api, kind: &Kind, namespace: &str) -> Result<(Listed, Page), Status> {
    // Copies of ClusterServiceVersions can be ten thousands, and are of no use here.
    let labels = if *kind == kinds::CLUSTER_SERVICE_VERSION { "!olm.copiedFrom" } else { "" };
    let query = ListQuery::all(&Resource::from(kind)).within(namespace).labelled(labels);
    let page = api.list(&query).await?;
    Ok((Listed { query, version: page.resource_version.clone() }, page))
}

/// Gets single objects, with the answers in the order of the questions.
pub(super) async fn get(api: &Api, targets: Vec<ObjectRef>) -> Vec<(ObjectRef, Result<Option<Value>, Status>)> {
    let answers = stream::iter(targets).map(|target| async {
        let answer = api.get(&target).await;
        (target, answer)
    });
    answers.buffered(REQUESTS).collect().await
}
