//! What happens to a cluster after it was looked at, watched from where each list ended: nothing in between is missed.

use std::pin::{Pin, pin};
use std::time::Duration;

use futures::future::try_join_all;
use futures::stream::{SelectAll, select_all};
use futures::{FutureExt, Stream, StreamExt};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::world::GroupKind;
use serde_json::Value;

use super::list::{self, Listed};
use super::state::ClusterState;
use crate::cluster::api::{Api, WatchEvent};

type Events = SelectAll<Pin<Box<dyn Stream<Item = Result<WatchEvent, Status>> + Send>>>;

impl ClusterState {
    /// Takes in what happens, until `is_enough` says so, which is asked after every change, or the time is up. Objects that were given on
    /// top stay as they were given.
    ///
    /// # Errors
    /// Something may not be watched, or not any more: why. Then nobody knows what has happened since.
    pub(crate) async fn follow(
        &mut self,
        within: Duration,
        mut is_enough: impl FnMut(&Self) -> bool,
    ) -> Result<(), Status> {
        let Some(api) = self.api.clone() else { return Ok(()) };
        let mut end = pin!(tokio::time::sleep(within));
        let mut events = tokio::select! {
            events = watch(&api, &self.lists) => events?,
            () = &mut end => return Ok(()),
        };
        while !is_enough(self) {
            tokio::select! {
                event = events.next() => self.take_in(event)?,
                () = &mut end => break,
            }
            // What has come in the meantime counts, too.
            while let Some(event) = events.next().now_or_never() {
                self.take_in(event)?;
            }
        }
        Ok(())
    }

    fn take_in(&mut self, event: Option<Result<WatchEvent, Status>>) -> Result<(), Status> {
        let ended = || Status::new(0, "", "the watch has ended");
        match event.ok_or_else(ended)?? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) if !self.is_given(&object) => {
                list::take(object, true, &mut self.world);
            }
            WatchEvent::Deleted(object) if !self.is_given(&object) => {
                let name = (object::namespace(&object).to_owned(), object::name(&object).to_owned());
                let version = object::resource_version(&object).parse().unwrap_or_default();
                self.world.delete(&GroupKind::kept_as(&object), &name, object::uid(&object), version);
            }
            WatchEvent::Error(refusal) => return Err(refusal),
            // What was known of it is no longer so.
            WatchEvent::Unreadable(object) if !self.is_given(&object.stub) => {
                let stub = &object.stub;
                let name = (object::namespace(stub).to_owned(), object::name(stub).to_owned());
                self.world.delete(&GroupKind::kept_as(stub), &name, object::uid(stub), 0);
            }
            WatchEvent::Added(_)
            | WatchEvent::Modified(_)
            | WatchEvent::Deleted(_)
            | WatchEvent::Unreadable(_)
            | WatchEvent::Bookmark(_) => {}
        }
        Ok(())
    }

    fn is_given(&self, object: &Value) -> bool {
        self.on_top.contains(&ObjectRef::of(object))
    }
}

async fn watch(api: &Api, lists: &[Listed]) -> Result<Events, Status> {
    let watches = lists.iter().map(|list| async move {
        let Listed { resource, namespace, depth, labels, version } = list;
        let events = api.watch_part(resource, namespace, *depth, labels, version).await?;
        Ok::<_, Status>(events.boxed())
    });
    Ok(select_all(try_join_all(watches).await?))
}
