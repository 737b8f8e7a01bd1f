//! Shared code of creating and deleting OperatorGroups.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::api::{DeleteParams, Preconditions};
use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::listing::listed;
use olm_core::membership::Group;
use olm_core::operatorgroup::create_delete::{COMPILED_BY, Origin};
use serde_json::Value;
use tokio::time::timeout;

use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::output::Output;
use crate::cli::table::Table;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::{Api, ListQuery, Page, Resource, WatchEvent};
use crate::cluster::request_error::{Place, RequestError};
use crate::observe::{ClusterState, ReadFailure, ReadScope};

/// The maximum number of decisions when other clients write at the same time.
pub(super) const ATTEMPTS: usize = 5;
/// How long to wait for a watch to show past events, and for another client to delete a group that was created second,
/// which takes two requests.
pub(super) const SETTLES: Duration = Duration::from_secs(5);

/// The name of OperatorGroups in messages and read failures.
pub(super) const GROUPS: &str = "operatorgroups.operators.coreos.com";
/// The name of ClusterServiceVersions in messages and read failures.
pub(super) const CSVS: &str = "clusterserviceversions.operators.coreos.com";

/// Reads the groups, and the objects that a decision depends on.
///
/// # Errors
/// OperatorGroups or ClusterServiceVersions of the namespace cannot be listed.
pub(super) async fn read_state(
    source: &SourceFlags,
    namespace: &str,
    printer: &mut Printer,
) -> Result<ClusterState, CliError> {
    let namespaces = NamespaceFlags { namespace: Some(namespace.to_owned()), all_namespaces: false };
    let state = source.read(&namespaces, &[], ReadScope::Groups, printer).await?;
    decides(&state, namespace)?;
    Ok(state)
}

/// Checks that all objects of a namespace that a decision depends on could be listed.
pub(super) fn decides(state: &ClusterState, namespace: &str) -> Result<(), CliError> {
    match [GROUPS, CSVS].into_iter().find_map(|resource| read_failure(state, resource, namespace)) {
        None => Ok(()),
        Some(failure) => Err(failure.into()),
    }
}

/// Returns the read failure of a resource that could not be listed in a namespace, or, if it is empty, in all namespaces.
pub(super) fn read_failure<'s>(state: &'s ClusterState, resource: &str, namespace: &str) -> Option<&'s ReadFailure> {
    state
        .read_failures
        .iter()
        .find(|failure| failure.verb == "list" && failure.resource == resource && failure.namespace == namespace)
}

/// Returns the name of a group as kubectl prints it.
pub(super) fn label(name: &str) -> String {
    format!("operatorgroup.operators.coreos.com/{name}")
}

/// Returns the names of groups.
pub(super) fn names(groups: &[Group<'_>]) -> String {
    listed(&groups.iter().map(|group| group.name()).collect::<Vec<_>>())
}

/// Returns why a group counts as user-managed.
pub(super) fn unlabelled() -> String {
    format!("it has no label {COMPILED_BY}={}", Origin::Ours.label())
}

/// Prints what was done to objects, or the objects in a format.
pub(super) fn print_objects(
    output: &Output,
    mut objects: Vec<Value>,
    what: &str,
    printer: &mut Printer,
) -> Result<(), CliError> {
    if matches!(output, Output::Table | Output::Wide) {
        for object in &objects {
            let name = object::name(object);
            match object::namespace(object) {
                "" => printer.line(format_args!("namespace/{name} {what}"))?,
                namespace => printer.line(format_args!("{} {what} in namespace {namespace}", label(name)))?,
            }
        }
        return Ok(());
    }
    for object in &mut objects {
        object::map_mut(object, &["metadata"]).remove("managedFields");
    }
    match &objects[..] {
        [one] => output.object(printer, one, || Table::new([])),
        several => output.objects(printer, several, || Table::new([])),
    }
}

/// Reports a negative outcome: on stdout for text, on stderr for formats that print objects on stdout.
pub(super) fn refuse(output: &Output, said: &str, hint: &str, printer: &mut Printer) -> Result<Outcome, CliError> {
    if matches!(output, Output::Table | Output::Wide) {
        printer.line(said)?;
    } else {
        printer.talk(said);
    }
    printer.talk(format_args!("hint: {hint}"));
    Ok(Outcome::Negative)
}

/// Creates a group in a namespace that has none. All watchers see the same order of creations: a client whose group was
/// not the first deletes it again. Returns `None` if another client was first.
///
/// # Errors
/// The server refuses a request, or does not send the events that show the order.
pub(crate) async fn create_first(api: &Api, group: &Value, printer: &mut Printer) -> Result<Option<Value>, CliError> {
    let namespace = object::namespace(group);
    let query = ListQuery::all(&groups()).within(namespace);
    let cannot = |verb: &'static str| move |refusal: Status| refused(&refusal, verb, GROUPS, namespace);
    let (there, version) = api.list(&query).await.and_then(Page::readable).map_err(cannot("list"))?;
    if !there.is_empty() {
        return Ok(None);
    }
    let events = api.watch(&query, &version).await.map_err(cannot("watch"))?;
    let made = match api.create(group).await {
        Ok(made) => made,
        Err(refusal) if refusal.is_already_exists() => return Ok(None),
        Err(refusal) => return Err(cannot("create")(refusal)),
    };
    match timeout(SETTLES, is_first(events, object::uid(&made))).await {
        Ok(Some(true)) => return Ok(Some(made)),
        Ok(Some(false)) => {}
        Ok(None) | Err(_) => {
            let message = format!(
                "OperatorGroup {} was created, but whether it is the only one of namespace {namespace} could not be checked",
                object::name(&made)
            );
            return Err(CliError::new(ErrorKind::Unreachable, message)
                .hint(format!("check that there is no other: kubectl get operatorgroups -n {namespace}")));
        }
    }
    printer.talk(format_args!(
        "Another client created an OperatorGroup in namespace {namespace} at the same time: deleting ours again"
    ));
    let preconditions = Preconditions { uid: Some(object::uid(&made).to_owned()), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(&ObjectRef::from_object(&made), &params).await {
        Ok(_) => Ok(None),
        // Another client has deleted it.
        Err(refusal) if refusal.is_not_found() || refusal.is_conflict() => Ok(None),
        Err(refusal) => Err(cannot("delete")(refusal)),
    }
}

/// Returns whether the group was the first; `None` if the events end early.
async fn is_first(events: impl Stream<Item = Result<WatchEvent, Status>>, uid: &str) -> Option<bool> {
    let mut events = std::pin::pin!(events);
    let mut there = BTreeSet::new();
    while let Some(Ok(event)) = events.next().await {
        if matches!(&event, WatchEvent::Added(group) if object::uid(group) == uid) {
            return Some(there.is_empty());
        }
        take_in(event, &mut there);
    }
    None
}

/// Waits briefly until the namespace has at most one group.
///
/// # Errors
/// The server refuses a request.
pub(super) async fn settled(api: &Api, namespace: &str) -> Result<(), CliError> {
    let cannot = |verb: &'static str| move |refusal: Status| refused(&refusal, verb, GROUPS, namespace);
    let query = ListQuery::all(&groups()).within(namespace);
    let (groups, version) = api.list(&query).await.and_then(Page::readable).map_err(cannot("list"))?;
    let mut there: BTreeSet<String> = groups.iter().map(|group| object::uid(group).to_owned()).collect();
    let mut events = std::pin::pin!(api.watch(&query, &version).await.map_err(cannot("watch"))?);
    let settles = async {
        while there.len() > 1
            && let Some(Ok(event)) = events.next().await
        {
            take_in(event, &mut there);
        }
    };
    // After a timeout, the caller reports the groups that exist.
    timeout(SETTLES, settles).await.ok();
    Ok(())
}

fn take_in(event: WatchEvent, there: &mut BTreeSet<String>) {
    match event {
        WatchEvent::Added(group) | WatchEvent::Modified(group) => {
            there.insert(object::uid(&group).to_owned());
        }
        WatchEvent::Deleted(group) => {
            there.remove(object::uid(&group));
        }
        WatchEvent::Unreadable(group) => {
            there.insert(object::uid(&group.stub).to_owned());
        }
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
    }
}

fn groups() -> Resource {
    Resource::from(&kinds::OPERATOR_GROUP)
}

/// Converts a refusal of the API server to an error.
pub(super) fn refused(status: &Status, verb: &'static str, resource: &str, namespace: &str) -> CliError {
    let error = RequestError::new(verb, resource, namespace, status.clone());
    if resource == "namespaces" { RequestError { place: Place::Cluster, ..error }.into() } else { error.into() }
}
