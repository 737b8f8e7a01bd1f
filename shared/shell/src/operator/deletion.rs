//! Deletes objects, and waits until they are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::api::{DeleteParams, Preconditions};
use olm_core::api::conditions::Conditions;
use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::listing::shortened;
use serde_json::Value;

use crate::cli::{CliError, ErrorKind, Printer, signal};
use crate::cluster::api::{Api, ListQuery, WatchEvent};
use crate::cluster::follow::lasts;
use crate::cluster::request_error::RequestError;
use crate::cluster::watcher::{Step, Watcher};

/// The time after which a wait reports what it waits for.
const QUIET: Duration = Duration::from_secs(3);

/// The reason of a CustomResourceDefinition whose custom resources could not be deleted.
const DELETION_FAILED: &str = "InstanceDeletionFailed";

/// Deletes an object. `uid` is that of the object that was read: another object of the same name is not deleted. Returns
/// whether it existed.
///
/// # Errors
/// The server refuses the request.
pub(super) async fn delete(api: &Api, target: &ObjectRef, uid: Option<&str>) -> Result<bool, CliError> {
    let preconditions = uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), resource_version: None });
    // Kubernetes' garbage collector deletes what the object owns.
    let params = DeleteParams { preconditions, ..DeleteParams::background() };
    match api.delete(target, &params).await {
        Ok(_) => Ok(true),
        Err(refusal) if refusal.is_not_found() => Ok(false),
        // Another object has the name.
        Err(refusal) if refusal.is_conflict() && uid.is_some() => Ok(false),
        Err(refusal) => Err(refused("delete", target, refusal)),
    }
}

/// Converts a refusal of the API server to an error.
pub(super) fn refused(verb: &'static str, target: &ObjectRef, refusal: Status) -> CliError {
    let known = kinds::find(&target.gvk.group, &target.gvk.kind).map(kinds::Kind::resource);
    let resource = known.unwrap_or_else(|| format!("{}.{}", target.gvk.kind.to_lowercase(), target.gvk.group));
    CliError::from(RequestError::new(verb, resource, &target.namespace, refusal))
        .hint("the removal continues where it ended when the command is run again")
}

/// An object that still exists.
pub(super) struct Blocked {
    /// Its name, with its namespace.
    pub(super) name: String,
    finalizers: Vec<String>,
    /// Why the API server cannot delete it.
    message: String,
}

/// Objects that still exist, by uid.
pub(super) type Remaining = BTreeMap<String, Blocked>;

/// Waits until objects are gone. Returns those that remain at the end of `limit`.
///
/// # Errors
/// The objects cannot be read, or the wait was interrupted.
pub(super) async fn gone(
    api: &Api,
    query: ListQuery,
    uids: &BTreeSet<String>,
    limit: Option<Duration>,
    printer: &mut Printer,
) -> Result<Remaining, CliError> {
    let what = query.resource.plural.clone();
    let mut watcher = Watcher::new(api.clone(), query.clone());
    let mut remaining = Remaining::new();
    let (mut listed, mut is_known, mut is_reported) = (Vec::new(), false, false);
    let end = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let quiet = tokio::time::sleep(QUIET);
    let (mut end, mut quiet) = (std::pin::pin!(end), std::pin::pin!(quiet));
    let mut stopped = std::pin::pin!(signal::stopped());
    loop {
        if is_known && remaining.is_empty() {
            return Ok(remaining);
        }
        tokio::select! {
            biased;
            step = watcher.next() => match step {
                Step::Page(page) => {
                    let is_last = page.next.is_empty();
                    let (objects, _) = page.readable().map_err(|refusal| unreadable(&query, refusal))?;
                    listed.extend(objects);
                    if is_last {
                        remaining.clear();
                        for object in std::mem::take(&mut listed) {
                            note(&object, uids, &mut remaining);
                        }
                        is_known = true;
                    }
                }
                Step::Event(WatchEvent::Added(object) | WatchEvent::Modified(object)) => note(&object, uids, &mut remaining),
                Step::Event(WatchEvent::Deleted(object)) => {
                    remaining.remove(object::uid(&object));
                }
                // The definition is deleted, and with it all objects.
                Step::Failed(refusal) if refusal.is_not_found() => return Ok(Remaining::new()),
                Step::Failed(refusal) if lasts(&refusal) => return Err(unreadable(&query, refusal)),
                Step::Failed(_) | Step::Event(_) | Step::Watching => {}
            },
            () = &mut quiet, if !is_reported && is_known => {
                is_reported = true;
                printer.talk(format_args!("waiting until these {what} are deleted: {}", described(&remaining)));
            }
            () = &mut end => return Ok(remaining),
            () = &mut stopped => {
                return Err(CliError::new(ErrorKind::Unreachable, format!("interrupted while {what} were being deleted: {}", described(&remaining)))
                    .hint("run the command again to continue"));
            }
        }
    }
}

fn unreadable(query: &ListQuery, refusal: Status) -> CliError {
    RequestError::new("list", query.resource.qualified(), &query.namespace, refusal).into()
}

fn note(object: &Value, uids: &BTreeSet<String>, remaining: &mut Remaining) {
    let uid = object::uid(object);
    if !uids.contains(uid) {
        return;
    }
    let finalizers = object::list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str);
    let name = match object::namespace(object) {
        "" => object::name(object).to_owned(),
        namespace => format!("{namespace}/{}", object::name(object)),
    };
    // The state of a CustomResourceDefinition whose custom resources cannot be deleted.
    let failure =
        Conditions::new(object).holding("Terminating").filter(|condition| condition.reason() == DELETION_FAILED);
    let message = failure.map(|condition| condition.message().to_owned()).unwrap_or_default();
    let finalizers = finalizers.map(str::to_owned).collect();
    remaining.insert(uid.to_owned(), Blocked { name, finalizers, message });
}

/// Returns the names of objects with their finalizers.
pub(super) fn described(remaining: &Remaining) -> String {
    shortened(remaining.values().map(|Blocked { name, finalizers, message }| {
        match (&finalizers[..], message.as_str()) {
            (_, message) if !message.is_empty() => format!("{name} ({message})"),
            ([], _) => name.clone(),
            (finalizers, _) => format!("{name} (finalizers: {})", finalizers.join(", ")),
        }
    }))
}
