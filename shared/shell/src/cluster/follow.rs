//! Follows the changes of one object.

use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use serde_json::Value;
use tokio::sync::mpsc;

use super::api::{Api, WatchEvent};
use super::decode;
use super::watcher::{Step, Watcher};

/// An observation of an object: its content, that it does not exist, or why its state is unknown.
pub(crate) type Sight = Result<Option<Value>, Status>;

/// Follows an object: sends its current state, then every change. A permanent refusal ends the stream; other errors are sent and retried.
/// The task ends when the receiver is dropped.
pub(crate) fn follow(api: &Api, target: ObjectRef) -> mpsc::UnboundedReceiver<Sight> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let api = api.clone();
    tokio::spawn(async move {
        let ended = sender.clone();
        tokio::select! {
            () = run(&api, &target, &sender) => {}
            () = ended.closed() => {}
        }
    });
    receiver
}

/// Returns whether a refusal is permanent, so that a retry does not help.
pub(crate) fn lasts(refusal: &Status) -> bool {
    matches!(refusal.code, 401 | 403 | 404)
}

async fn run(api: &Api, target: &ObjectRef, sender: &mpsc::UnboundedSender<Sight>) {
    let mut watcher = Watcher::of_object(api.clone(), target.clone());
    let is_it = |object: &Value| object::name(object) == target.name;
    loop {
        let sight = match watcher.next().await {
            Step::Page(page) => page.readable().map(|(objects, _)| objects.into_iter().find(is_it)),
            Step::Event(WatchEvent::Added(object) | WatchEvent::Modified(object)) if is_it(&object) => Ok(Some(object)),
            Step::Event(WatchEvent::Deleted(object)) if is_it(&object) => Ok(None),
            // It exists, but its state is unknown.
            Step::Event(WatchEvent::Unreadable(object)) if is_it(&object.stub) => Err(decode::refusal(&object)),
            Step::Event(_) | Step::Watching => continue,
            Step::Failed(status) => Err(status),
        };
        let is_last = sight.as_ref().is_err_and(lasts);
        if sender.send(sight).is_err() || is_last {
            return;
        }
    }
}
