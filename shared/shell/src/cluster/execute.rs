//! Executes actions as requests to the API server and reports the responses as events.

use std::sync::Arc;

use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use olm_core::api::object;
use olm_core::api::status::Status;
use olm_core::plan::{Action, Controller, Key, Propagation};
use olm_core::planner::{Answer, Event, Failure, Work, answer};
use olm_core::sim::WatchEvent;
use olm_core::world::trimmed;
use serde_json::Value;
use tokio::sync::mpsc;

use super::api::Api;
use super::certificate;
use super::lease::Permit;
use super::questions;

/// The maximum number of actions of a key in flight, so that one key does not starve the others.
const IN_FLIGHT: usize = 8;

/// The result of a piece of work.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) key: Key,
    pub(super) succeeded: Vec<Action>,
    pub(super) failures: Vec<Failure>,
    /// The warnings of the API server, by action.
    pub(super) warnings: Vec<(Action, Vec<String>)>,
}

impl Done {
    /// Returns the result of work that panicked. Its progress is unknown: the first of its actions counts as refused, so that the key is
    /// planned again after a pause.
    pub(super) fn panicked(key: Key, first: Option<Action>, message: String) -> Self {
        let status = Status::new(0, "Panicked", message);
        let failures = first.map(|action| Failure { action, status }).into_iter().collect();
        Self { key, succeeded: Vec::new(), failures, warnings: Vec::new() }
    }
}

/// The channel for each object that was written for a key, as returned by the API server.
pub(super) type Changes = mpsc::UnboundedSender<(Key, WatchEvent)>;

/// Executes work, batch by batch, and reports every response as an event before it returns.
pub(super) async fn execute(
    api: &Api,
    permit: &Permit,
    work: Work,
    events: &mpsc::UnboundedSender<Event>,
    changes: Option<Changes>,
) -> Done {
    let mut succeeded = Vec::new();
    let (mut failures, mut warnings) = (Vec::new(), Vec::new());
    // Only steps of InstallPlans report warnings.
    let wants_warnings = work.key.controller == Controller::InstallPlan;
    let batches = work.order.batches(work.actions.len());
    let mut actions = work.actions.into_iter();
    for batch in batches {
        if !failures.is_empty() {
            break;
        }
        let mut results = stream::iter(actions.by_ref().take(batch.len()).collect::<Vec<_>>())
            .map(|action| async move {
                if !wants_warnings {
                    let result = one(api, permit, &action, events).await;
                    return (action, result, Vec::new());
                }
                let api = api.with_warnings();
                let result = one(&api, permit, &action, events).await;
                (action, result, api.take_warnings())
            })
            .buffered(IN_FLIGHT);
        while let Some((action, result, warned)) = results.next().await {
            if !warned.is_empty() {
                warnings.push((action.clone(), warned));
            }
            match result {
                Ok(written) => {
                    if let Some(changes) = &changes
                        && let Some(change) = change(&action, written)
                    {
                        // The receiver is dropped only when the process stops.
                        let _ = changes.send((work.key.clone(), change));
                    }
                    succeeded.push(action);
                }
                Err(status) => failures.push(Failure { action, status }),
            }
        }
    }
    Done { key: work.key, succeeded, failures, warnings }
}

/// Returns the change that an action has made, by its response.
fn change(action: &Action, written: Option<Value>) -> Option<WatchEvent> {
    match (action, written) {
        (Action::As(_, action) | Action::Certify(_, action), written) => change(action, written),
        (Action::Create(_), Some(object)) => Some(WatchEvent::Added(Arc::new(object))),
        (Action::Update(_) | Action::UpdateStatus(_) | Action::Patch { .. } | Action::Delete { .. }, Some(object)) => {
            Some(WatchEvent::Modified(Arc::new(object)))
        }
        (Action::Delete { target, .. }, None) => Some(WatchEvent::Deleted(Arc::new(target.to_object()))),
        _ => None,
    }
}

/// Executes an action. Returns the object that it wrote, trimmed.
async fn one(
    api: &Api,
    permit: &Permit,
    action: &Action,
    events: &mpsc::UnboundedSender<Event>,
) -> Result<Option<Value>, Status> {
    if action.writes() {
        permit.require()?;
    }
    if let Action::Ask(question) = action {
        questions::answer(api, question, events).await;
        return Ok(None);
    }
    let result = request(api, action).await;
    let event = match answer(action, &result) {
        Answer::Observed(event) => Some(event),
        Answer::Look(target) => match api.read(&target).await {
            Ok(Some(Ok(object))) => Some(Event::Applied(trimmed(&object))),
            Ok(Some(Err(object))) => Some(Event::Unreadable(*object)),
            Ok(None) => Some(Event::Absent(target, String::new())),
            Err(_) => None,
        },
        Answer::Nothing => None,
    };
    if let Some(event) = event {
        // The receiver is dropped only when the process stops.
        let _ = events.send(event);
    }
    result.map(|written| written.map(|object| trimmed(&object)))
}

async fn request(api: &Api, action: &Action) -> Result<Option<Value>, Status> {
    match action {
        Action::As(account, action) => Box::pin(request(&api.with_permissions_of(account), action)).await,
        Action::Certify(wanted, action) => {
            let issued = certificate::issue(wanted);
            let issued = issued.map_err(|error| Status::new(0, "NoCertificate", error.to_string()))?;
            Box::pin(request(api, &action.with_certificate(issued))).await
        }
        Action::Create(object) => api.create(object).await.map(Some),
        Action::Update(object) => api.update(object, None).await.map(Some),
        Action::UpdateStatus(object) => api.update(object, Some("status")).await.map(Some),
        Action::Patch { target, uid, patch } => {
            let mut patch = patch.clone();
            object::map_mut(&mut patch, &["metadata"]).insert("uid".to_owned(), uid.as_str().into());
            api.merge(target, &patch).await.map(Some)
        }
        Action::Delete { target, uid, propagation } => {
            let policy = match propagation {
                Propagation::Background => PropagationPolicy::Background,
                Propagation::Foreground => PropagationPolicy::Foreground,
                Propagation::Orphan => PropagationPolicy::Orphan,
            };
            let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
            let params = DeleteParams {
                propagation_policy: Some(policy),
                preconditions: Some(preconditions),
                ..DeleteParams::default()
            };
            match api.delete(target, &params).await {
                // Another client has deleted it meanwhile.
                Err(refusal) if refusal.is_not_found() => Ok(None),
                result => result,
            }
        }
        Action::Emit(emit) => {
            // A failure to write an event must not delay the work that it describes.
            if let Err(refusal) = api.create(&emit.to_event(Timestamp::now())).await {
                tracing::debug!(reason = emit.reason, %refusal, "event not written");
            }
            Ok(None)
        }
        Action::Ask(_) => Ok(None),
    }
}
