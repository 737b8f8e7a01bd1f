//! Reports each object that cannot be decoded once: in the log and as an Event.

use std::collections::BTreeMap;

use olm_core::api::object::ObjectRef;
use olm_core::plan::{Action, Emit};
use olm_core::world::{Unreadable, World};

/// The maximum number of objects that are reported individually at a time, so that an untrusted writer cannot fill logs and namespaces. The
/// total is available as a metric.
const MOST: usize = 100;

/// The reason of the Events.
const REASON: &str = "Unreadable";

/// The objects that were reported.
#[derive(Default)]
pub(super) struct UnreadableReports {
    reported: BTreeMap<ObjectRef, String>,
    /// Events that are not written yet.
    emits: Vec<Action>,
}

impl UnreadableReports {
    /// Returns the objects to report now. An object that changes and stays unreadable for the same reason is reported once; an object that
    /// was fixed or deleted is forgotten.
    pub(super) fn take_new(&mut self, world: &World) -> Vec<Unreadable> {
        let present: BTreeMap<ObjectRef, &Unreadable> =
            world.unreadable().take(MOST).map(|object| (ObjectRef::from_object(&object.stub), object)).collect();
        self.reported.retain(|target, _| present.contains_key(target));
        let mut new = Vec::new();
        for (target, object) in present {
            if self.reported.get(&target) == Some(&object.why) {
                continue;
            }
            self.reported.insert(target, object.why.clone());
            self.emits.push(Action::Emit(Emit {
                regarding: object.stub.clone(),
                warning: true,
                reason: REASON.to_owned(),
                message: format!("kubectl-olm cannot read this object and leaves it alone: {}", object.why),
            }));
            new.push(object.clone());
        }
        new
    }

    /// Removes and returns the Events to write.
    pub(super) fn take_events(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.emits)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_object_is_reported_once_regardless_of_changes() {
        let deep = |name: &str, version: usize| Unreadable {
            stub: json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
                "metadata": { "name": name, "namespace": "garden", "resourceVersion": version.to_string() },
            }),
            why: "it is too deep".to_owned(),
        };
        let mut world = World::new();
        let mut reports = UnreadableReports::default();
        for version in 1..50 {
            world.apply_unreadable(deep("rose", version));
            let reported = reports.take_new(&world);
            assert_eq!(reported.len(), usize::from(version == 1));
        }
        assert_eq!((reports.take_events().len(), reports.take_events().len()), (1, 0));
        world.apply(deep("rose", 50).stub);
        assert_eq!(reports.take_new(&world), []);
        world.apply_unreadable(deep("rose", 51));
        assert_eq!(reports.take_new(&world).len(), 1, "it was fixed in between");
        for n in 0..1000 {
            world.apply_unreadable(deep(&format!("tulip-{n}"), 1));
        }
        reports.take_new(&world);
        assert!(reports.take_events().len() <= MOST);
    }
}
