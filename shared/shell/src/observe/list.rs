//! Lists objects of a cluster into a World.

use futures::future::join_all;
use futures::{StreamExt, stream};
use olm_core::api::kinds::{self, Kind};
use olm_core::api::labels;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::health;
use olm_core::world::kind::COPIED_CSV;
use olm_core::world::{GroupKind, Unreadable, World, trim};
use serde_json::{Value, json};

use super::read_failure::{ReadFailure, is_forbidden};
use super::scope::ReadScope;
use crate::cluster::api::{Api, Depth, ListQuery, Page, Reduce, Resource};
use crate::cluster::request_error::RequestError;

/// The maximum number of concurrent requests.
pub(super) const REQUESTS: usize = 16;

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
    let places = if scope.is_wide() && !namespace.is_empty() { vec!["", namespace] } else { vec![namespace] };
    let copies = async {
        if matches!(scope, ReadScope::Tenancy | ReadScope::Offers) {
            list_copies_in_one(api, &places).await
        } else {
            Found::default()
        }
    };
    let (kinds, copies) = futures::join!(list_kinds(api, &places, scope), copies);
    let Found { mut failures, mut lists, objects } = kinds?;
    for object in objects.into_iter().chain(copies.objects) {
        world.apply(object);
    }
    // If the copies of a namespace are unknown, so is the absence of ClusterServiceVersions.
    failures.extend(copies.failures.into_iter().filter(|failure| !failures.contains(failure)).collect::<Vec<_>>());
    lists.extend(copies.lists);
    Ok((failures, lists))
}

/// The result of lists.
#[derive(Default)]
struct Found {
    objects: Vec<Value>,
    failures: Vec<ReadFailure>,
    lists: Vec<Listed>,
}

/// Lists the kinds of a scope in the first place, and those that are forbidden there in the next one.
async fn list_kinds(api: &Api, places: &[&str], scope: ReadScope) -> Result<Found, RequestError> {
    let mut wanted: Vec<&Kind> = scope.kinds().collect();
    let Found { mut objects, mut failures, mut lists } = Found::default();
    for (at, place) in places.iter().enumerate() {
        let answers = join_all(wanted.iter().map(|kind| list_kind(api, kind, place, reduction(scope)))).await;
        let mut narrower = Vec::new();
        for (kind, answer) in wanted.into_iter().zip(answers) {
            match answer {
                Ok((list, page)) => {
                    lists.push(list);
                    failures.extend(page.unreadable.iter().map(|object| ReadFailure::unreadable(kind, object)));
                    objects.extend(page.objects);
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
    Ok(Found { objects, failures, lists })
}

/// A list into the World.
pub(crate) struct Reduced {
    /// The kind.
    pub(crate) kind: &'static Kind,
    /// Which of its objects.
    pub(crate) query: ListQuery,
    /// Returns what is stored of an object, if anything.
    pub(crate) reduce: Reduce,
}

/// Lists the objects of a query page by page, and returns what `reduce` returns of each, and what cannot be decoded.
pub(crate) async fn reduced(
    api: &Api,
    query: &ListQuery,
    reduce: Reduce,
) -> Result<(Vec<Value>, Vec<Unreadable>), Status> {
    let page = api.list_reduced(query, reduce).await?;
    Ok((page.objects, page.unreadable))
}

/// Returns what is kept of each object, if not the whole of it. A list may have many objects, of which these scopes need a part.
fn reduction(scope: ReadScope) -> Option<Reduce> {
    match scope {
        ReadScope::Operators => Some(|object| Some(health::trimmed(object))),
        _ if scope.is_wide() => Some(|object| Some(needed(object))),
        _ => None,
    }
}

/// Returns the fields that are needed of an object of a kind with many.
pub(super) fn needed(mut object: Value) -> Value {
    if GroupKind::kept_as(&object) == COPIED_CSV {
        return copy(&object);
    }
    let changed = changed(&object);
    trim(&mut object);
    object["metadata"]["managedFields"] = json!(changed.map(|time| [json!({ "time": time })]));
    object
}

/// Returns when an object was last changed. Nothing else of its `managedFields` is stored, because they are large.
fn changed(object: &Value) -> Option<String> {
    let fields = object::list(object, &["metadata", "managedFields"]);
    fields.iter().map(|entry| object::text(entry, &["time"])).max().map(str::to_owned)
}

/// Lists the copies of ClusterServiceVersions in the first of these places where that is allowed.
async fn list_copies_in_one(api: &Api, places: &[&str]) -> Found {
    let mut found = Found::default();
    for place in places {
        match list_copies(api, place).await {
            Ok((list, objects)) => {
                found.lists.push(list);
                found.objects = objects;
                break;
            }
            Err(refusal) => {
                found.failures.push(ReadFailure::list(&kinds::CLUSTER_SERVICE_VERSION, place, &refusal));
            }
        }
    }
    found
}

/// Lists the copies of ClusterServiceVersions in one namespace, or in all namespaces if it is empty. There may be tens of thousands, so
/// only the origin of each is stored.
async fn list_copies(api: &Api, namespace: &str) -> Result<(Listed, Vec<Value>), Status> {
    let resource = Resource::from(&kinds::CLUSTER_SERVICE_VERSION);
    let query = ListQuery::all(&resource).within(namespace).labelled(labels::COPIED_FROM).depth(Depth::Metadata);
    let page = api.list_reduced(&query, |object| Some(needed(object))).await?;
    // Only the metadata of a copy is used.
    let stubs = page.unreadable.into_iter().map(|object| needed(object.stub));
    let objects = page.objects.into_iter().chain(stubs).collect();
    Ok((Listed { query, version: page.resource_version }, objects))
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
    reduce: Option<Reduce>,
) -> Result<(Listed, Vec<Value>, Vec<ReadFailure>), Status> {
    let (list, page) = list_kind(api, kind, namespace, reduce).await?;
    let failures = page.unreadable.iter().map(|object| ReadFailure::unreadable(kind, object)).collect();
    Ok((list, page.objects, failures))
}

async fn list_kind(api: &Api, kind: &Kind, namespace: &str, reduce: Option<Reduce>) -> Result<(Listed, Page), Status> {
    // There may be tens of thousands of copies of ClusterServiceVersions, which are not needed here.
    let labels = if *kind == kinds::CLUSTER_SERVICE_VERSION { labels::NOT_COPIED } else { "" };
    let query = ListQuery::all(&Resource::from(kind)).within(namespace).labelled(labels);
    let page = match reduce {
        Some(reduce) => api.list_reduced(&query, reduce).await?,
        None => api.list(&query).await?,
    };
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
