//! Finds controllers of OLM that compete, and Leases whose holder does not respond.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::rule::COMPETING_CONTROLLERS;
use super::{Context, Input};
use crate::api::object::{self, ObjectRef};
use crate::distribution::installation::{Installation, are_running, installations};
use crate::distribution::{CONTROLLERS, Distribution, REQUESTED_BY, UPSTREAM};
use crate::finding::Severity;
use crate::lint::{Change, Problem};
use crate::listing::listed;
use crate::visible::word;
use crate::world::{Reader, kind};

/// How long a holder may take to respond: its time limit is a minute, and clocks differ.
const RESPONSE: SignedDuration = SignedDuration::from_mins(2);

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Problem>) {
    let deployments: Vec<Value> = context.all(&kind::DEPLOYMENT).cloned().collect();
    let csvs: Vec<Value> = context.csvs().map(|csv| csv.json.clone()).collect();
    let mut installed = installations(&deployments, &csvs);
    // Files contain Deployments of any kind, and what has no controllers, or has stopped them, does not compete.
    installed.retain(|installation| !installation.controllers.is_empty() && !installation.stopped);
    found.extend(several(context, &installed));
    for lease in context.all(&kind::LEASE) {
        if object::name(lease) == CONTROLLERS {
            found.extend(lease_besides(&deployments, &installed, lease).or_else(|| unanswered(context, lease)));
        }
    }
}

/// Returns whether controllers of OLM are running; `None` if that is unknown.
pub(super) fn are_known_to_run(input: Input<'_>) -> Option<bool> {
    let world = Reader::new(input.world);
    let is_upstream = |object: &&Value| object::label(object, "app").is_some_and(|app| UPSTREAM.contains(&app));
    let deployments: Vec<Value> =
        world.all(&kind::DEPLOYMENT).map(|object| object.json()).filter(is_upstream).cloned().collect();
    let leases: Vec<Value> = world
        .all(&kind::LEASE)
        .map(|object| object.json())
        .filter(|lease| object::name(lease) == CONTROLLERS)
        .cloned()
        .collect();
    let is_known = input.known.all(&kind::DEPLOYMENT) && input.known.all(&kind::LEASE);
    are_running(&deployments, &leases, input.now).filter(|are_running| *are_running || is_known)
}

fn several(context: &Context<'_>, installed: &[Installation]) -> Option<Problem> {
    let [first, others @ ..] = installed else { return None };
    if others.is_empty() {
        return None;
    }
    let described: Vec<String> = installed.iter().map(Installation::describe).collect();
    let deployment = |installation: &Installation| {
        let name = installation.controllers.first()?;
        let found = context.world.json(&kind::DEPLOYMENT, &installation.namespace, name);
        found.map(ObjectRef::from_object)
    };
    let message = format!("several installations process the same objects: {}", listed(&described));
    let problem =
        Problem::about(&COMPETING_CONTROLLERS, deployment(first)?, message).also(others.iter().filter_map(deployment));
    Some(problem.propose("remove all but one", Change::Command("kubectl olm status".to_owned())))
}

fn holder(lease: &Value) -> &str {
    object::text(lease, &["spec", "holderIdentity"])
}

/// Returns the problem of a Lease that a process outside of the cluster holds while upstream OLM runs.
fn lease_besides(deployments: &[Value], installed: &[Installation], lease: &Value) -> Option<Problem> {
    let is_upstream = |found: &&Installation| found.distribution == Distribution::Upstream;
    let upstream = installed.iter().find(is_upstream)?;
    let of_upstream: Vec<Value> = deployments
        .iter()
        .filter(|deployment| upstream.controllers.iter().any(|name| name == object::name(deployment)))
        .cloned()
        .collect();
    if holder(lease).is_empty() || are_running(&of_upstream, &[], Timestamp::UNIX_EPOCH) != Some(true) {
        return None;
    }
    let message = format!(
        "{} holds it while {} runs: kubectl olm run pauses until that is stopped, if it may list Deployments",
        holder(lease),
        upstream.describe()
    );
    let problem = Problem::new(&COMPETING_CONTROLLERS, lease, message).severity(Severity::Warning);
    Some(problem.advise("end one of them"))
}

/// Returns the problem of a Lease whose holder has not responded to a request of another process.
fn unanswered(context: &Context<'_>, lease: &Value) -> Option<Problem> {
    let requested = object::annotation(lease, REQUESTED_BY).filter(|by| !by.is_empty())?;
    // The request was the last write.
    let written = object::list(lease, &["metadata", "managedFields"]);
    let since = written.iter().filter_map(|entry| object::parse_time(object::text(entry, &["time"]))).max()?;
    if holder(lease).is_empty() || context.input.now.duration_since(since) < RESPONSE {
        return None;
    }
    let message = format!(
        "its holder {} has not responded to the request of {requested} since {}",
        holder(lease),
        object::time(since)
    );
    let [name, namespace] = [object::name(lease), object::namespace(lease)].map(word);
    let change = Change::Command(format!("kubectl get lease {name} -n {namespace} -o yaml"));
    let problem = Problem::new(&COMPETING_CONTROLLERS, lease, message).severity(Severity::Warning);
    Some(problem.propose(
        "check whether the process still runs; the next kubectl olm run acquires the Lease after a minute",
        change,
    ))
}
