//! Follows the changes of a cluster after it was read. Each watch starts where its list ended, so that no change is missed.

use std::pin::pin;
use std::time::Duration;

use futures::stream::{self, select_all};
use futures::{FutureExt, StreamExt};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::world::GroupKind;
use serde_json::Value;

use super::list::{self, Listed};
use super::state::ClusterState;
use crate::cluster::api::WatchEvent;
use crate::cluster::watcher::{Step, Watcher};

impl ClusterState {
    /// Applies changes until `is_enough` returns true, which is checked after every change, or until the timeout. Objects of the overlay
    /// are not changed.
    ///
    /// # Errors
    /// A kind cannot be watched (any more), so that its later changes are unknown.
    pub(crate) async fn follow(
        &mut self,
        within: Duration,
        mut is_enough: impl FnMut(&Self) -> bool,
    ) -> Result<(), Status> {
        let Some(api) = self.api.clone() else { return Ok(()) };
        let mut end = pin!(tokio::time::sleep(within));
        let watchers = self.lists.iter().map(|Listed { query, version }| {
            let watcher = Watcher::resume(api.clone(), query.clone(), version.clone());
            let steps = stream::unfold(watcher, |mut watcher| async move { Some((watcher.next().await, watcher)) });
            steps.boxed()
        });
        let mut steps = select_all(watchers.collect::<Vec<_>>());
        while !is_enough(self) {
            tokio::select! {
                Some(step) = steps.next() => self.take_in(step)?,
                () = &mut end => break,
            }
            // Apply the changes that arrived meanwhile.
            while let Some(Some(step)) = steps.next().now_or_never() {
                self.take_in(step)?;
            }
        }
        Ok(())
    }

    fn take_in(&mut self, step: Step) -> Result<(), Status> {
        let event = match step {
            Step::Event(event) => event,
            Step::Watching => return Ok(()),
            Step::Failed(refusal) => return Err(refusal),
            Step::Page(_) => {
                return Err(Status::new(410, "Expired", "the watch expired, and the changes since then are unknown"));
            }
        };
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) if !self.is_given(&object) => {
                self.world.apply(list::needed(object));
            }
            WatchEvent::Deleted(object) if !self.is_given(&object) => {
                let name = (object::namespace(&object).to_owned(), object::name(&object).to_owned());
                let version = object::resource_version(&object).parse().unwrap_or_default();
                self.world.delete(&GroupKind::kept_as(&object), &name, object::uid(&object), version);
            }
            // The known state is stale.
            WatchEvent::Unreadable(object) if !self.is_given(&object.stub) => {
                let stub = &object.stub;
                let name = (object::namespace(stub).to_owned(), object::name(stub).to_owned());
                self.world.delete(&GroupKind::kept_as(stub), &name, object::uid(stub), 0);
            }
            WatchEvent::Added(_)
            | WatchEvent::Modified(_)
            | WatchEvent::Deleted(_)
            | WatchEvent::Unreadable(_)
            | WatchEvent::Bookmark(_)
            | WatchEvent::Error(_) => {}
        }
        Ok(())
    }

    fn is_given(&self, object: &Value) -> bool {
        self.on_top.contains(&ObjectRef::from_object(object))
    }
}
