//! What creating and deleting OperatorGroups have in common.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::api::{DeleteParams, Preconditions};
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::membership::Group;
use olm_core::operatorgroup::managed::{COMPILED_BY, Origin};
use serde_json::Value;
use tokio::time::timeout;

use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::output::Output;
use crate::cli::table::Table;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::{Api, ListQuery, Page, Resource, WatchEvent};
use crate::cluster::request_error::{Place, RequestError};
use crate::observe::{ClusterState, Gap, ReadScope};

/// So often is a decision made again because somebody else was quicker.
pub(super) const ATTEMPTS: usize = 5;
/// So long at most is waited for a watch to show what has happened already, and for others to take back what came second: that takes
/// them two requests.
pub(super) const SETTLES: Duration = Duration::from_secs(5);

/// How messages and gaps name OperatorGroups.
pub(super) const GROUPS: &str = "operatorgroups.operators.coreos.com";
/// And ClusterServiceVersions.
pub(super) const CSVS: &str = "clusterserviceversions.operators.coreos.com";

/// Looks at the groups, and what belongs to them. What decides has to be seen.
///
/// # Errors
/// OperatorGroups or ClusterServiceVersions of the namespace cannot be listed.
pub(super) async fn read_state(
    source: &SourceFlags,
    namespace: &str,
    printer: &mut Printer,
) -> Result<ClusterState, CliError> {
    let namespaces = NamespaceFlags { namespace: Some(namespace.to_owned()), all_namespaces: false };
    let seen = source.read(&namespaces, &[], ReadScope::Groups, printer).await?;
    decides(&seen, namespace)?;
    Ok(seen)
}

/// Was everything seen in a namespace that decides?
pub(super) fn decides(seen: &ClusterState, namespace: &str) -> Result<(), CliError> {
    match [GROUPS, CSVS].into_iter().find_map(|resource| gap(seen, resource, namespace)) {
        None => Ok(()),
        Some(gap) => Err(gap.into()),
    }
}

/// What could not be listed in a namespace, or, when it is empty, in all of them.
pub(super) fn gap<'s>(seen: &'s ClusterState, resource: &str, namespace: &str) -> Option<&'s Gap> {
    seen.gaps.iter().find(|gap| gap.verb == "list" && gap.resource == resource && gap.namespace == namespace)
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

/// The names of groups.
pub(super) fn names(groups: &[Group<'_>]) -> String {
    listed(&groups.iter().map(|group| group.name()).collect::<Vec<_>>())
}

/// Why a group is not ours.
pub(super) fn unlabelled() -> String {
    format!("it has no label {COMPILED_BY}={}", Origin::Ours.label())
}

/// Tells what was done to objects, or shows them as kubectl does.
pub(super) fn tell(
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

/// The answer no. It is told where the answer would be, but not to programs that expect an object there.
pub(super) fn refuse(output: &Output, said: &str, hint: &str, printer: &mut Printer) -> Result<Outcome, CliError> {
    if matches!(output, Output::Table | Output::Wide) {
        printer.line(said)?;
    } else {
        printer.talk(said);
    }
    printer.talk(format_args!("hint: {hint}"));
    Ok(Outcome::Negative)
}

/// Creates a group where none is. The API server shows everybody the same order in which groups came: whoever was not the first
/// takes theirs back. `None`: somebody else was quicker.
///
/// # Errors
/// The server refuses, or does not tell who was first.
pub(super) async fn create_first(api: &Api, group: &Value, printer: &mut Printer) -> Result<Option<Value>, CliError> {
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
                "OperatorGroup {} was created, but the server does not tell whether it is the only one of namespace {namespace}",
                object::name(&made)
            );
            return Err(CliError::new(ErrorKind::Unreachable, message)
                .hint(format!("there must not be another: kubectl get operatorgroups -n {namespace}")));
        }
    }
    printer.talk(format_args!(
        "Meanwhile somebody else created an OperatorGroup in namespace {namespace}: ours is taken back"
    ));
    let preconditions = Preconditions { uid: Some(object::uid(&made).to_owned()), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(&ObjectRef::of(&made), &params).await {
        Ok(_) => Ok(None),
        // Somebody else has deleted it.
        Err(refusal) if refusal.is_not_found() || refusal.is_conflict() => Ok(None),
        Err(refusal) => Err(cannot("delete")(refusal)),
    }
}

/// Was no other group there when that one came? `None`: the server does not tell.
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

/// Waits until no more than one group is left in a namespace, a moment at most.
///
/// # Errors
/// The server refuses.
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
    // Who waited in vain is told what is there.
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
    let gvk = Gvk::new("operators.coreos.com", "v1", "OperatorGroup");
    Resource { gvk, plural: "operatorgroups".to_owned(), namespaced: true }
}

/// The API server refuses something.
pub(super) fn refused(status: &Status, verb: &'static str, resource: &str, namespace: &str) -> CliError {
    let error = RequestError::new(verb, resource, namespace, status.clone());
    if resource == "namespaces" { RequestError { place: Place::Cluster, ..error }.into() } else { error.into() }
}
