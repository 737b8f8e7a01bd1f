//! Keeps known which kinds the API server serves in the versions of groups that a plan reads.
//!
//! ```text
//!   Question::Discover --> ask, at once                          --Learned-->  Planner
//!   a CustomResourceDefinition or APIService of the group changes --> ask again, soon and some times more: discovery follows later
//!   nothing changes                                               --> ask again, every minute
//!   no plan reads it any more                                     --> it is forgotten
//! ```
//!
//! One request a version of a group, however many kinds the cluster has. Without a reader there are no requests.

use std::collections::BTreeMap;
use std::time::Duration;

use olm_core::api::object;
use olm_core::planner::Event;
use olm_core::world::{Discovery, Fact, FactKey, GroupKind, kind};
use tokio::time::Instant;

use super::api::Api;

/// How long after a change the API server is asked, each time counted from the time before: an API is served some moments after its
/// definition says so.
const SOON: [Duration; 5] = [
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

/// So many of them, and what a definition brings is expected to be told.
const SETTLED: usize = 3;

/// How often the API server is asked when nothing is seen to change: its own kinds come and go with its version and its flags.
const REFRESH: Duration = Duration::from_mins(1);

/// kubectl's words for an aggregated API that does not answer.
const AWAY: &str = "the server is currently unable to handle the request";

/// A group and a version of it.
pub(super) type Version = (String, String);

/// When a version of a group is asked for next.
struct Due {
    at: Instant,
    /// How many of [`SOON`] are over.
    step: usize,
}

/// The versions of groups that are kept known.
#[derive(Default)]
pub(super) struct Discoveries(BTreeMap<Version, Due>);

impl Discoveries {
    /// Keeps a version of a group known from now on. Who executes the question asks for the first time.
    pub(super) fn keep(&mut self, group: &str, version: &str, now: Instant) {
        // The answer may be of the time just before a change that was seen before this question.
        let first = Due { at: now + SOON[0], step: 0 };
        self.0.entry((group.to_owned(), version.to_owned())).or_insert(first);
    }

    /// Takes note of a change that may change what is served.
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
                // One that is due before that stays: a definition that changes all the time does not put it off.
                *due = Due { at: due.at.min(now + SOON[0]), step: 0 };
            }
        }
    }

    /// Is what changed a moment ago told by now?
    pub(super) fn are_settled(&self) -> bool {
        self.0.values().all(|due| due.step >= SETTLED)
    }

    /// When the next one is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.values().map(|due| due.at).min()
    }

    /// What is to be asked for now. What is not read any more is forgotten.
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

/// Asks the API server which kinds it serves in a version of a group.
pub(super) async fn discover(api: Api, version: Version) -> Event {
    let discovery = match api.kinds(&version.0, &version.1).await {
        Ok(kinds) => Discovery::new(kinds),
        // An aggregated API that is away; its answer is no Kubernetes object.
        Err(refusal) if refusal.code == 503 => Discovery::failed(AWAY),
        Err(refusal) => Discovery::failed(refusal.message.trim()),
    };
    Event::Learned(key(&version), Some(Fact::Discovery(discovery)))
}

fn key((group, version): &Version) -> FactKey {
    FactKey::Discovery(group.clone(), version.clone())
}

/// Does an object of that kind bring kinds?
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

    /// How long until it is asked again, and when that is.
    fn next(discoveries: &mut Discoveries, now: Instant) -> (Duration, Instant) {
        let due = discoveries.due().unwrap();
        assert_eq!(discoveries.take(|_| true, due), [("garden".to_owned(), "v1".to_owned())]);
        (due - now, due)
    }

    #[test]
    fn what_is_read_is_asked_for_soon_after_a_change_and_every_minute_after_that() {
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
    fn a_definition_that_changes_all_the_time_does_not_put_it_off() {
        let (mut discoveries, now) = (Discoveries::default(), Instant::now());
        discoveries.keep("garden", "v1", now);
        for part in 1..10 {
            discoveries.heed(&definition("garden"), now + SOON[0] * part / 10);
        }
        assert_eq!(discoveries.due(), Some(now + SOON[0]));
    }

    #[test]
    fn what_is_not_read_any_more_is_forgotten() {
        let (mut discoveries, now) = (Discoveries::default(), Instant::now());
        discoveries.keep("garden", "v1", now);
        assert_eq!(discoveries.take(|_| false, now), []);
        assert!(discoveries.due().is_some());
        assert_eq!(discoveries.take(|_| false, now + REFRESH), []);
        assert_eq!(discoveries.due(), None);
    }
}
