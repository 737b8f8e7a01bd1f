//! Objects that cannot be read: plans that depend on one wait until it can be read or is deleted. Other plans are not affected.

use std::collections::BTreeSet;

use serde_json::json;

use crate::api::object::{self, ObjectRef};
use crate::plan::{Action, Controller, Key, Plan, Reason};
use crate::world::{GroupKind, IndexKey, Read, Unreadable, World, kind};

/// Replaces a plan that depends on unreadable objects by one without actions.
///
/// A plan depends on an unreadable object of its own namespace, or of the cluster scope, if it has read the object by name, or listed the
/// namespace. Lists of all namespaces do not count, so that a user of one namespace cannot block others. The deletion of an unreadable
/// object is not blocked, because it needs only the metadata.
pub(super) fn hold(world: &World, key: &Key, reads: &mut BTreeSet<Read>, plan: &mut Plan) {
    let unreadable: Vec<&Unreadable> = world.unreadable().filter(|object| concerns(object, key, reads)).collect();
    if unreadable.is_empty() {
        spare(world, plan);
        return;
    }
    for object in &unreadable {
        let (namespace, name) = (object::namespace(&object.stub), object::name(&object.stub));
        reads.insert(Read::Object(GroupKind::kept_as(&object.stub), (namespace.to_owned(), name.to_owned())));
    }
    let reason = |object: &&Unreadable| Reason::Unreadable { object: object.name(), message: object.why.clone() };
    *plan = Plan { reasons: unreadable.iter().map(reason).collect(), ..Plan::nothing() };
}

fn concerns(object: &Unreadable, key: &Key, reads: &BTreeSet<Read>) -> bool {
    let (namespace, name) = (object::namespace(&object.stub), object::name(&object.stub));
    let gk = GroupKind::kept_as(&object.stub);
    // A copy is overwritten or deleted, whatever its content is.
    let is_elsewhere = !namespace.is_empty() && namespace != namespace_of(key);
    if gk == kind::COPIED_CSV || is_elsewhere {
        return false;
    }
    if object::is_deleting(&object.stub) && (namespace, name) == (&*key.namespace, &*key.name) {
        return false;
    }
    let of_group = |read: &Read| match read {
        // The name of a definition ends with its group; its kind is unknown.
        Read::Index(IndexKey::Definition(group, _)) => name.split_once('.').is_some_and(|(_, of)| of == group),
        _ => false,
    };
    reads.contains(&Read::Object(gk.clone(), (namespace.to_owned(), name.to_owned())))
        || !namespace.is_empty() && reads.contains(&Read::Namespace(gk.clone(), namespace.to_owned()))
        || gk == kind::CUSTOM_RESOURCE_DEFINITION && reads.iter().any(of_group)
}

/// Replaces updates of unreadable objects, which would remove unknown fields, by patches that only change the finalizers.
fn spare(world: &World, plan: &mut Plan) {
    if plan.actions.is_empty() || world.unreadable().next().is_none() {
        return;
    }
    for action in &mut plan.actions {
        let Action::Update(new) = action else { continue };
        let is_meant = |object: &&Unreadable| ObjectRef::from_object(&object.stub) == ObjectRef::from_object(new);
        let Some(object) = world.unreadable().find(is_meant) else { continue };
        if GroupKind::kept_as(&object.stub) == kind::COPIED_CSV {
            continue;
        }
        let metadata = json!({
            "finalizers": object::at(new, &["metadata", "finalizers"]),
            "resourceVersion": object::resource_version(&object.stub),
        });
        *action = Action::Patch {
            target: ObjectRef::from_object(&object.stub),
            uid: object::uid(&object.stub).to_owned(),
            patch: json!({ "metadata": metadata }),
        };
    }
}

/// Returns the namespace of a key.
fn namespace_of(key: &Key) -> &str {
    match key.controller {
        Controller::Resolution | Controller::Namespace => &key.name,
        _ => &key.namespace,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::plan::Verb;
    use crate::planner::{Event, Planner};
    use crate::settings::Settings;

    fn csv(namespace: &str, version: u32) -> Value {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {
                "name": "rose.v1", "namespace": namespace, "uid": namespace, "resourceVersion": version.to_string(),
                "finalizers": ["operators.coreos.com/csv-cleanup"],
            },
        })
    }

    fn unreadable(stub: Value) -> Event {
        Event::Unreadable(Unreadable { stub, why: "recursion limit exceeded".to_owned() })
    }

    fn copy(namespace: &str) -> Value {
        let mut copy = csv(namespace, 1);
        copy["metadata"]["labels"] = json!({ "olm.copiedFrom": "garden" });
        copy["metadata"]["finalizers"] = Value::Null;
        copy
    }

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    /// Returns the planned actions, with each key planned once.
    fn planned(planner: &mut Planner) -> Vec<(Verb, String)> {
        let mut all = Vec::new();
        while let Some(work) = planner.next(now()) {
            all.extend(work.actions.iter().map(|action| (action.verb(), action.target().to_string())));
            planner.park(&work.key);
        }
        all
    }

    fn planner(events: impl IntoIterator<Item = Event>) -> Planner {
        let mut planner = Planner::new(Settings::default());
        for event in events {
            planner.observe(event);
        }
        planner
    }

    #[test]
    fn unreadable_objects_are_not_absent_and_block_only_plans_that_depend_on_them() {
        let namespace =
            |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "uid": name } });
        let things = [namespace("garden"), namespace("park"), copy("park"), csv("park2", 1)];
        let things: Vec<Event> = things.into_iter().map(Event::Applied).collect();

        // If the object is deleted, its copies are deleted, too.
        let gone = planned(&mut planner(
            things.clone().into_iter().chain([Event::Applied(csv("garden", 2)), Event::Deleted(csv("garden", 3))]),
        ));
        let of_garden = |planned: &[(Verb, String)]| -> Vec<String> {
            let is_deletion = |(verb, _): &&(Verb, String)| *verb == Verb::Delete;
            planned.iter().filter(is_deletion).map(|(_, target)| target.clone()).collect()
        };
        assert_eq!(of_garden(&gone), ["ClusterServiceVersion/park/rose.v1"], "{gone:?}");

        let mut planner = planner(things.into_iter().chain([unreadable(csv("garden", 2))]));
        let held = planned(&mut planner);
        assert_eq!(of_garden(&held), [""; 0], "{held:?}");
        assert!(held.iter().any(|(_, target)| target.contains("park2")), "other namespaces are not affected: {held:?}");
        assert!(!held.iter().any(|(_, target)| target.contains("garden")), "{held:?}");
        let reasons: BTreeSet<String> = planner.reasons().flat_map(|(_, r)| r).map(ToString::to_string).collect();
        let expected = "ClusterServiceVersion garden/rose.v1 cannot be read, so nothing is done that depends on it: recursion limit exceeded";
        assert!(reasons.contains(expected), "{reasons:?}");

        // An unchanged object is no change; a readable one is planned; one that is unreadable again and deleted does not exist.
        assert!(!planner.observe(unreadable(csv("garden", 2))));
        assert!(planner.observe(Event::Applied(csv("garden", 4))));
        assert!(planned(&mut planner).iter().any(|(_, target)| target.contains("garden/rose.v1")));
        assert!(planner.observe(unreadable(csv("garden", 5))));
        assert_eq!(planned(&mut planner), []);
        assert!(planner.observe(Event::Deleted(csv("garden", 6))));
        assert_eq!(of_garden(&planned(&mut planner)), ["ClusterServiceVersion/park/rose.v1"]);
        assert_eq!(planner.world().unreadable().count(), 0);
    }

    #[test]
    fn a_list_contains_unreadable_objects_and_removes_missing_ones() {
        let listed = |stubs: &[Value], version| {
            let unreadable = stubs.iter().map(|stub| Unreadable { stub: stub.clone(), why: "no".to_owned() });
            Event::Listed(kind::CLUSTER_SERVICE_VERSION, Vec::new(), unreadable.collect(), version)
        };
        let mut planner = planner([listed(&[csv("garden", 2)], 3)]);
        assert_eq!(planner.world().unreadable().count(), 1);
        assert!(!planner.observe(listed(&[csv("garden", 2)], 4)), "no change");
        assert!(planner.observe(listed(&[], 5)));
        assert_eq!(planner.world().unreadable().count(), 0);
    }

    #[test]
    fn only_the_finalizer_of_an_unreadable_object_that_is_being_deleted_is_changed() {
        let mut deleting = csv("garden", 2);
        deleting["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z".into();
        let mut planner = planner([unreadable(deleting)]);
        let work = planner.next(now()).unwrap();
        let [Action::Patch { patch, uid, .. }] = &work.actions[..] else { panic!("{:?}", work.actions) };
        assert_eq!(*patch, json!({ "metadata": { "finalizers": null, "resourceVersion": "2" } }));
        assert_eq!(uid, "garden");
    }

    #[test]
    fn an_unreadable_copy_is_overwritten_or_deleted() {
        let mut planner = planner([unreadable(copy("park"))]);
        assert_eq!(planned(&mut planner), [(Verb::Delete, "ClusterServiceVersion/park/rose.v1".to_owned())]);
    }

    #[test]
    fn lookups_of_definitions_wait_for_unreadable_ones_of_the_group() {
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "roses.garden.example.com", "uid": "c", "resourceVersion": "1" },
        });
        let object = Unreadable { stub: crd, why: "no".to_owned() };
        let key = Key::new(Controller::InstallPlan, "garden", "install-1");
        let reads =
            |group: &str| BTreeSet::from([Read::Index(IndexKey::Definition(group.to_owned(), "Rose".to_owned()))]);
        assert!(concerns(&object, &key, &reads("garden.example.com")));
        assert!(!concerns(&object, &key, &reads("example.com")));
    }
}
