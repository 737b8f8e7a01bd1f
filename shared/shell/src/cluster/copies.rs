//! Copies of ClusterServiceVersions that a watch has told of, and whose state the World does not know: they are looked at, but not before the
//! answer to a write of our own had time to come, which says the same.

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

/// How long an answer may be behind the watch.
const BEHIND: Duration = Duration::from_secs(1);

/// The copies whose state is not known, in the order in which they were told of.
#[derive(Default)]
pub(super) struct Unknown(VecDeque<(Instant, Value)>);

impl Unknown {
    /// Takes in what a watch has told: a copy's metadata.
    pub(super) fn add(&mut self, world: &World, copy: Value) {
        if !world.knows_state(&copy) {
            self.0.push_back((Instant::now() + BEHIND, copy));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When [`Unknown::take`] gives something.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.front().map(|(at, _)| *at)
    }

    /// Those that have to be looked at now.
    pub(super) fn take(&mut self, world: &World) -> Vec<ObjectRef> {
        let now = Instant::now();
        let due = self.0.iter().take_while(|(at, _)| *at <= now).count();
        let unknown = self.0.drain(..due).map(|(_, copy)| copy).filter(|copy| !world.knows_state(copy));
        unknown.map(|copy| ObjectRef::from_object(&copy)).collect()
    }
}

/// Looks at objects and reports what they are. What cannot be read is found by the next list.
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
        // The receiver is gone only when the process stops.
        let _ = events.send(event);
    }
}
