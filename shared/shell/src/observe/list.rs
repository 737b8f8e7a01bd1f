//! Lists objects of a cluster into a World.

use futures::future::join_all;
use futures::{StreamExt, stream};
use olm_core::api::kinds::{self, Kind};
use olm_core::api::labels;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::world::kind::COPIED_CSV;
use olm_core::world::{GroupKind, Unreadable, World, trim};
use serde_json::{Value, json};

use super::read_failure::{ReadFailure, is_forbidden};
use super::scope::ReadScope;
use crate::cluster::api::{Api, Depth, ListQuery, Page, Resource};
use crate::cluster::request_error::RequestError;

/// The maximum number of concurrent requests.
const REQUESTS: usize = 16;

/// A list and its resourceVersion.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) query: ListQuery,
    pub(super) version: String,
}

/// Lists the kinds of a scope into the World, in one namespace, or in all namespaces if it is empty. If the scope needs all namespaces and
/// that is forbidden, lists the one namespace.
///
/// # Errors
/// A required kind cannot be listed.
pub(crate) async fn list(
    api: &Api,
    namespace: &str,
    scope: ReadScope,
    world: &mut World,
) -> Result<Vec<ReadFailure>, RequestError> {
    Ok(list_all(api, namespace, scope, world).await?.0)
}

/// As [`list`], and returns the lists from which changes can be watched.
pub(super) async fn list_all(
    api: &Api,
    namespace: &str,
    scope: ReadScope,
    world: &mut World,
) -> Result<(Vec<ReadFailure>, Vec<Listed>), RequestError> {
    let mut lists = Vec::new();
    let mut wanted: Vec<&Kind> = scope.kinds().collect();
    let mut failures = Vec::new();
    let places = if scope.is_wide() && !namespace.is_empty() { vec!["", namespace] } else { vec![namespace] };
    for (at, place) in places.iter().enumerate() {
        let answers = join_all(wanted.iter().map(|kind| list_kind(api, kind, place))).await;
        let mut narrower = Vec::new();
        for (kind, answer) in wanted.into_iter().zip(answers) {
            match answer {
                Ok((list, page)) => {
                    lists.push(list);
                    failures.extend(page.unreadable.iter().map(|object| ReadFailure::unreadable(kind, object)));
                    for object in page.objects {
                        take(object, scope.is_wide(), world);
                    }
                }
                Err(refusal) if at + 1 < places.len() && kind.namespaced && is_forbidden(&refusal) => {
                    failures.push(ReadFailure::list(kind, place, &refusal));
                    narrower.push(kind);
                }
                Err(refusal) if !is_fatal(&refusal, kind, scope) => {
                    failures.push(ReadFailure::list(kind, place, &refusal));
                }
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
                // If the copies of a namespace are unknown, so is the absence of ClusterServiceVersions.
                Err(refusal) => {
                    let failure = ReadFailure::list(&kinds::CLUSTER_SERVICE_VERSION, place, &refusal);
                    if !failures.contains(&failure) {
                        failures.push(failure);
                    }
                }
            }
        }
    }
    Ok((failures, lists))
}

/// A list into the World.
pub(crate) struct Reduced {
    /// The kind.
    pub(crate) kind: &'static Kind,
    /// Which of its objects.
    pub(crate) query: ListQuery,
    /// Returns what is stored of an object, if anything.
    pub(crate) reduce: fn(Value) -> Option<Value>,
}

/// Lists the objects of a query page by page, and returns what `reduce` returns of each, and what cannot be decoded.
pub(crate) async fn reduced(
    api: &Api,
    query: &ListQuery,
    reduce: fn(Value) -> Option<Value>,
) -> Result<(Vec<Value>, Vec<Unreadable>), Status> {
    let (mut objects, mut unreadable, mut next) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = api.page(query, &next).await?;
        objects.extend(page.objects.into_iter().filter_map(reduce));
        unreadable.extend(page.unreadable);
        next = page.next;
        if next.is_empty() {
            return Ok((objects, unreadable));
        }
    }
}

/// Adds an object to the World; `are_many`: only the fields that are needed.
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

/// Returns when an object was last changed. Nothing else of its `managedFields` is stored, because they are large.
fn changed(object: &Value) -> Option<String> {
    let fields = object::list(object, &["metadata", "managedFields"]);
    fields.iter().map(|entry| object::text(entry, &["time"])).max().map(str::to_owned)
}

/// Lists the copies of ClusterServiceVersions in one namespace, or in all namespaces if it is empty, page by page, because there may be
/// tens of thousands. Only the origin of each is stored.
async fn list_copies(api: &Api, namespace: &str, world: &mut World) -> Result<Listed, Status> {
    let resource = Resource::from(&kinds::CLUSTER_SERVICE_VERSION);
    let query = ListQuery::all(&resource).within(namespace).labelled(labels::COPIED_FROM).depth(Depth::Metadata);
    let mut next = String::new();
    loop {
        let page = api.page(&query, &next).await?;
        // Only the metadata of a copy is used.
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

/// Returns the fields that are stored of a copy.
pub(crate) fn copy(object: &Value) -> Value {
    let metadata = object::at(object, &["metadata"]);
    let mut kept = json!({ "labels": { labels::COPIED_FROM: object::label(object, labels::COPIED_FROM) } });
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"] {
        if !metadata[field].is_null() {
            kept[field] = metadata[field].clone();
        }
    }
    for key in [labels::OPERATOR_GROUP, labels::OPERATOR_NAMESPACE] {
        if let Some(value) = object::annotation(object, key) {
            kept["annotations"][key] = value.into();
        }
    }
    json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": kept })
}

/// Returns whether there is no result after this refusal: a required kind is missing, there was no response, or OLM's kinds are not served.
fn is_fatal(refusal: &Status, kind: &Kind, scope: ReadScope) -> bool {
    scope.requires(kind) || refusal.code == 0 || kind.group == kinds::OLM_GROUP && refusal.is_not_found()
}

/// Lists the objects of a kind, and the read failures of objects that cannot be decoded. Returns the list, too, to watch it.
pub(super) async fn listed(
    api: &Api,
    kind: &Kind,
    namespace: &str,
) -> Result<(Listed, Vec<Value>, Vec<ReadFailure>), Status> {
    let (list, page) = list_kind(api, kind, namespace).await?;
    let failures = page.unreadable.iter().map(|object| ReadFailure::unreadable(kind, object)).collect();
    Ok((list, page.objects, failures))
}

async fn list_kind(api: &Api, kind: &Kind, namespace: &str) -> Result<(Listed, Page), Status> {
    // There may be tens of thousands of copies of ClusterServiceVersions, which are not needed here.
    let labels = if *kind == kinds::CLUSTER_SERVICE_VERSION { labels::NOT_COPIED } else { "" };
    let query = ListQuery::all(&Resource::from(kind)).within(namespace).labelled(labels);
    let page = api.list(&query).await?;
    Ok((Listed { query, version: page.resource_version.clone() }, page))
}

/// Gets single objects and returns the results in the same order.
pub(super) async fn get(api: &Api, targets: Vec<ObjectRef>) -> Vec<(ObjectRef, Result<Option<Value>, Status>)> {
    let answers = stream::iter(targets).map(|target| async {
        let answer = api.get(&target).await;
        (target, answer)
    });
    answers.buffered(REQUESTS).collect().await
}
