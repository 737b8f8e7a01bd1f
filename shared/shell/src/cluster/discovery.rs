//! Tracks the kinds that the API server serves in the group versions that a plan reads.
//!
//! ```text
//!   Question::Discover                                             --> request at once                      --Learned-->  Planner
//!   a CustomResourceDefinition or APIService of the group changes  --> several requests, because discovery lags behind
//!   nothing changes                                                --> a request every minute
//!   no plan reads the group version any more                       --> it is removed
//! ```
//!
//! There is one request per group version, independent of the number of kinds in the cluster. Without a reader there are no requests.

use std::collections::BTreeMap;
use std::time::Duration;

use olm_core::api::object;
use olm_core::planner::Event;
use olm_core::world::{Discovery, Fact, FactKey, GroupKind, kind};
use tokio::time::Instant;

use super::api::Api;

/// The pauses before the requests after a change, each counted from the previous request: an API is served shortly after its definition was
/// accepted.
const SOON: [Duration; 5] = [
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

/// The number of these requests after which discovery is expected to include a changed definition.
const SETTLED: usize = 3;

/// The interval of requests without observed changes: built-in kinds depend on the version and the flags of the API server.
const REFRESH: Duration = Duration::from_mins(1);

/// The message of kubectl for an aggregated API that is unavailable.
const AWAY: &str = "the server is currently unable to handle the request";

/// A group and one of its versions.
pub(super) type Version = (String, String);

/// The next request for a group version.
struct Due {
    at: Instant,
    /// The number of pauses of [`SOON`] that have passed.
    step: usize,
}

/// The group versions that are tracked.
#[derive(Default)]
pub(super) struct Discoveries(BTreeMap<Version, Due>);

impl Discoveries {
    /// Tracks a group version from now on. The execution of the question sends the first request.
    pub(super) fn keep(&mut self, group: &str, version: &str, now: Instant) {
        // The response may predate a change that was observed before this question.
        let first = Due { at: now + SOON[0], step: 0 };
        self.0.entry((group.to_owned(), version.to_owned())).or_insert(first);
    }

    /// Schedules requests after an event that may change the kinds that are served.
    pub(super) fn heed(&mut self, event: &Event, now: Instant) {
        let concerns: &dyn Fn(&str) -> bool = match event {
            Event::Applied(object) | Event::Deleted(object) if serves(&GroupKind::from_object(object)) => {
                &|group| object::text(object, &["spec", "group"]) == group
            }
            Event::Listed(kind, ..) if serves(kind) => &|_| true,
            _ => return,
        };
        for ((group, _), due) in &mut self.0 {
            if concerns(group) {
                // An earlier due time stays: a definition that changes constantly must not postpone the request.
                *due = Due { at: due.at.min(now + SOON[0]), step: 0 };
            }
        }
    }

    /// Returns whether recent changes are expected to be visible in discovery.
    pub(super) fn are_settled(&self) -> bool {
        self.0.values().all(|due| due.step >= SETTLED)
    }

    /// Returns when the next request is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.values().map(|due| due.at).min()
    }

    /// Returns the group versions to request now. Removes those that no plan reads any more.
    pub(super) fn take(&mut self, is_read: impl Fn(&FactKey) -> bool, now: Instant) -> Vec<Version> {
        let mut versions = Vec::new();
        self.0.retain(|version, due| {
            if due.at > now {
                return true;
            }
            if !is_read(&key(version)) {
                return false;
            }
            due.step += 1;
            due.at = now + SOON.get(due.step).copied().unwrap_or(REFRESH);
            versions.push(version.clone());
            true
        });
        versions
    }
}

/// Requests the kinds that the API server serves in a group version.
pub(super) async fn discover(api: Api, version: Version) -> Event {
    let discovery = match api.kinds(&version.0, &version.1).await {
        Ok(kinds) => Discovery::new(kinds),
        // An aggregated API is unavailable; the response is not a Kubernetes object.
        Err(refusal) if refusal.code == 503 => Discovery::failed(AWAY),
        Err(refusal) => Discovery::failed(refusal.message.trim()),
    };
    Event::Learned(key(&version), Some(Fact::Discovery(discovery)))
}

fn key((group, version): &Version) -> FactKey {
    FactKey::Discovery(group.clone(), version.clone())
}

/// Returns whether objects of that kind define kinds.
fn serves(kind: &GroupKind) -> bool {
    [kind::CUSTOM_RESOURCE_DEFINITION, kind::API_SERVICE].contains(kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(group: &str) -> Event {
        Event::Applied(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": { "group": group },
        }))
    }

    /// Returns the pause until the next request, and when it is due.
    fn next(discoveries: &mut Discoveries, now: Instant) -> (Duration, Instant) {
        let due = discoveries.due().unwrap();
        assert_eq!(discoveries.take(|_| true, due), [("garden".to_owned(), "v1".to_owned())]);
        (due - now, due)
    }

    #[test]
    fn discovery_is_requested_soon_after_a_change_and_then_every_minute() {
        let (mut discoveries, mut now) = (Discoveries::default(), Instant::now());
        discoveries.heed(&definition("garden"), now);
        assert_eq!(discoveries.due(), None);
        discoveries.keep("garden", "v1", now);
        assert!(!discoveries.are_settled());
        for pause in SOON.into_iter().chain([REFRESH, REFRESH]) {
            let (paused, due) = next(&mut discoveries, now);
            assert_eq!(paused, pause);
            now = due;
        }
        assert!(discoveries.are_settled());
        discoveries.heed(&definition("field"), now);
        discoveries.heed(&Event::Applied(json!({ "apiVersion": "v1", "kind": "Secret" })), now);
        assert_eq!(discoveries.due(), Some(now + REFRESH));
        discoveries.heed(&definition("garden"), now);
        assert!(!discoveries.are_settled());
        let (paused, now) = next(&mut discoveries, now);
        assert_eq!((paused, discoveries.due()), (SOON[0], Some(now + SOON[1])));
    }

    #[test]
    fn a_definition_that_changes_constantly_does_not_postpone_requests() {
        let (mut discoveries, now) = (Discoveries::default(), Instant::now());
        discoveries.keep("garden", "v1", now);
        for part in 1..10 {
            discoveries.heed(&definition("garden"), now + SOON[0] * part / 10);
        }
        assert_eq!(discoveries.due(), Some(now + SOON[0]));
    }

    #[test]
    fn group_versions_that_no_plan_reads_are_removed() {
        let (mut discoveries, now) = (Discoveries::default(), Instant::now());
        discoveries.keep("garden", "v1", now);
        assert_eq!(discoveries.take(|_| false, now), []);
        assert!(discoveries.due().is_some());
        assert_eq!(discoveries.take(|_| false, now + REFRESH), []);
        assert_eq!(discoveries.due(), None);
    }
}
