//! Copied ClusterServiceVersions that a watch has reported and whose state is missing from the World. They are read after a delay, in which
//! the response to a write of this process may already contain the state.

use std::collections::VecDeque;
use std::time::Duration;

use futures::{StreamExt, stream};
use olm_core::api::object::ObjectRef;
use olm_core::planner::Event;
use olm_core::world::{World, trimmed};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::api::Api;
use super::watch::READS;

/// How long the response to a write may arrive after the event of the watch.
const BEHIND: Duration = Duration::from_secs(1);

/// The copies whose state is unknown, in the order of their events.
#[derive(Default)]
pub(super) struct MissingCopies(VecDeque<(Instant, Value)>);

impl MissingCopies {
    /// Adds the metadata of a copy that a watch has reported.
    pub(super) fn add(&mut self, world: &World, copy: Value) {
        if !world.knows_state(&copy) {
            self.0.push_back((Instant::now() + BEHIND, copy));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns when [`MissingCopies::take`] next returns objects.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.front().map(|(at, _)| *at)
    }

    /// Removes and returns the copies that must be read now.
    pub(super) fn take(&mut self, world: &World) -> Vec<ObjectRef> {
        let now = Instant::now();
        let due = self.0.iter().take_while(|(at, _)| *at <= now).count();
        let unknown = self.0.drain(..due).map(|(_, copy)| copy).filter(|copy| !world.knows_state(copy));
        unknown.map(|copy| ObjectRef::from_object(&copy)).collect()
    }
}

/// Reads objects and reports their state. Objects that cannot be read are left to the next list.
pub(super) async fn read(api: Api, objects: Vec<ObjectRef>, events: mpsc::UnboundedSender<Event>) {
    let read = |target: ObjectRef| async {
        let found = api.read(&target).await;
        (target, found)
    };
    let mut read = stream::iter(objects).map(read).buffered(READS);
    while let Some((target, found)) = read.next().await {
        let event = match found {
            Ok(Some(Ok(object))) => Event::Applied(trimmed(&object)),
            Ok(Some(Err(object))) => Event::Unreadable(*object),
            Ok(None) => Event::Absent(target, String::new()),
            Err(_) => continue,
        };
        // The receiver is dropped only when the process stops.
        let _ = events.send(event);
    }
}
