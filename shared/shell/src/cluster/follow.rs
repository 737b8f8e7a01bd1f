//! One object, followed from change to change.

use futures::StreamExt;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use serde_json::Value;
use tokio::sync::mpsc;

use super::api::{Api, WatchEvent};
use super::backoff::Backoff;
use super::decode;

/// What was seen of an object: how it is, that it is not there, or why nobody can tell.
pub(crate) type Sight = Result<Option<Value>, Status>;

/// Follows an object: how it is now comes first, then every change. A refusal that lasts ends it; other trouble is told, and passes.
/// It ends with its receiver.
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

/// Does asking again not help?
pub(crate) fn lasts(refusal: &Status) -> bool {
    matches!(refusal.code, 401 | 403 | 404)
}

async fn run(api: &Api, target: &ObjectRef, sender: &mpsc::UnboundedSender<Sight>) {
    let mut backoff = Backoff::new();
    loop {
        match api.list_one(target).await {
            Ok((object, version)) => {
                if sender.send(Ok(object)).is_err() {
                    return;
                }
                match watch(api, target, version, sender).await {
                    Err(refusal) if lasts(&refusal) => {
                        // Nobody listens any more when it fails.
                        let _ = sender.send(Err(refusal));
                        return;
                    }
                    Ok(()) | Err(_) => {}
                }
            }
            Err(refusal) => {
                let is_last = lasts(&refusal);
                if sender.send(Err(refusal)).is_err() || is_last {
                    return;
                }
            }
        }
        backoff.pause().await;
    }
}

/// Watches until the watch ends: then it is listed again.
async fn watch(
    api: &Api,
    target: &ObjectRef,
    version: String,
    sender: &mpsc::UnboundedSender<Sight>,
) -> Result<(), Status> {
    let mut events = std::pin::pin!(api.watch_one(target, &version).await?);
    while let Some(event) = events.next().await {
        let seen = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(object),
            WatchEvent::Deleted(object) if object::name(&object) == target.name => None,
            // It is there, but nobody can tell how it is.
            WatchEvent::Unreadable(object) if object::name(&object.stub) == target.name => {
                if sender.send(Err(decode::refusal(&object))).is_err() {
                    return Ok(());
                }
                continue;
            }
            WatchEvent::Bookmark(_) | WatchEvent::Deleted(_) | WatchEvent::Unreadable(_) => continue,
            WatchEvent::Error(_) => return Ok(()),
        };
        if seen.as_ref().is_some_and(|object| object::name(object) != target.name) {
            continue;
        }
        if sender.send(Ok(seen)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}
