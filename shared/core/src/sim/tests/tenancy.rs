//! Random OperatorGroups, namespaces and operators with random changes by users: the controllers always settle, and then no two
//! operators in one namespace provide the same API.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::SignedDuration;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use super::super::{ApiServer, Patch, Simulation};
use super::now;
use crate::api::cluster_service_version::is_copy;
use crate::api::crd;
use crate::api::object::{self, Gvk, ObjectRef};
use crate::membership::{self, Apis, Group};
use crate::settings::Settings;
use crate::testing;
use crate::world::{Reader, kind};

pub(super) const NAMESPACES: [&str; 4] = ["a", "b", "c", "d"];
pub(super) const TEAMS: [&str; 2] = ["roses", "tulips"];
pub(super) const KINDS: [&str; 2] = ["Rose", "Tulip"];
const MODES: [&str; 4] = testing::ALL_MODES;
/// More than any delay of the controllers, and less than the timeout of an installation.
pub(super) const LONG: SignedDuration = SignedDuration::from_mins(3);

/// A change by a user.
#[derive(Clone, Debug)]
enum Deed {
    Apply(Value),
    Patch(ObjectRef, Value),
    Delete(ObjectRef),
}

pub(super) fn reference(kind: &str, namespace: &str, name: &str) -> ObjectRef {
    let gvk = match kind {
        "Namespace" | "ServiceAccount" => Gvk::new("", "v1", kind),
        "Deployment" => Gvk::new("apps", "v1", kind),
        "ClusterRole" | "Role" => Gvk::new("rbac.authorization.k8s.io", "v1", kind),
        "OperatorGroup" | "OLMConfig" => Gvk::new("operators.coreos.com", "v1", kind),
        _ => Gvk::new("operators.coreos.com", "v1alpha1", kind),
    };
    ObjectRef { gvk, namespace: namespace.to_owned(), name: name.to_owned() }
}

pub(super) fn labels() -> impl Strategy<Value = Value> {
    proptest::option::of(select(&TEAMS[..])).prop_map(|team| json!({ "team": team }))
}

/// Returns the targets of a group: all namespaces, these, or those with a label.
pub(super) fn targets() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({ "targetNamespaces": null, "selector": null })),
        subsequence(&NAMESPACES[..], 1..3).prop_map(|names| json!({ "targetNamespaces": names, "selector": null })),
        select(&TEAMS[..])
            .prop_map(|team| json!({ "targetNamespaces": null, "selector": { "matchLabels": { "team": team } } })),
    ]
}

pub(super) fn apis() -> impl Strategy<Value = String> {
    let name = |kinds: Vec<&str>| kinds.iter().map(|kind| format!("{kind}.v1.x.io")).collect::<Vec<_>>().join(",");
    subsequence(&KINDS[..], 0..=2).prop_map(name)
}

/// Every other namespace has one group, a few have two.
fn group() -> impl Strategy<Value = Value> {
    let name = prop_oneof![4 => Just("one"), 1 => Just("two")];
    (select(&NAMESPACES[..]), name, targets(), apis(), proptest::bool::weighted(0.2)).prop_map(
        |(namespace, name, mut spec, apis, fixed)| {
            spec["staticProvidedAPIs"] = fixed.into();
            testing::with_metadata(
                testing::operator_group(namespace, name, &spec),
                &json!({"annotations": { "olm.providedAPIs": apis }}),
            )
        },
    )
}

fn csv() -> impl Strategy<Value = Value> {
    (select(&NAMESPACES[..]), subsequence(&KINDS[..], 1..=2), modes()).prop_map(|(namespace, kinds, modes)| {
        let name = kinds.concat().to_lowercase();
        operator(namespace, &name, &kinds, &modes)
    })
}

/// Returns the install modes that an operator supports: mostly all.
pub(super) fn modes() -> impl Strategy<Value = Vec<&'static str>> {
    prop_oneof![3 => Just(MODES.to_vec()), 1 => subsequence(&MODES[..], 1..4)]
}

/// Returns a ClusterServiceVersion that owns the definitions of these kinds.
pub(super) fn operator(namespace: &str, name: &str, kinds: &[&str], modes: &[&str]) -> Value {
    let owned: Value = kinds.iter().map(|kind| testing::owned_crd(kind)).collect();
    let spec = json!({
        "displayName": name, "installModes": testing::install_modes(modes),
        "customresourcedefinitions": { "owned": owned },
        "install": { "strategy": "deployment", "spec": { "deployments": [{
            "name": name,
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "manager", "image": "registry.example.com/operator:1" }] },
                },
            },
        }] } },
    });
    testing::csv(namespace, name, &spec)
}

fn deed() -> impl Strategy<Value = Deed> {
    let groups = || (select(&NAMESPACES[..]), prop_oneof![4 => Just("one"), 1 => Just("two")]);
    prop_oneof![
        3 => csv().prop_map(Deed::Apply),
        2 => group().prop_map(Deed::Apply),
        3 => (groups(), targets()).prop_map(|((namespace, name), spec)| {
            Deed::Patch(reference("OperatorGroup", namespace, name), json!({ "spec": spec }))
        }),
        1 => (groups(), apis(), any::<bool>()).prop_map(|((namespace, name), apis, fixed)| {
            let patch = json!({
                "metadata": { "annotations": { "olm.providedAPIs": apis } }, "spec": { "staticProvidedAPIs": fixed },
            });
            Deed::Patch(reference("OperatorGroup", namespace, name), patch)
        }),
        1 => groups().prop_map(|(namespace, name)| Deed::Delete(reference("OperatorGroup", namespace, name))),
        1 => (select(&NAMESPACES[..]), select(&["rose", "tulip", "rosetulip"][..]))
            .prop_map(|(namespace, name)| Deed::Delete(reference("ClusterServiceVersion", namespace, name))),
        1 => (select(&NAMESPACES[..]), labels()).prop_map(|(namespace, labels)| {
            Deed::Patch(reference("Namespace", "", namespace), json!({ "metadata": { "labels": labels } }))
        }),
    ]
}

/// A cluster with the namespaces and CRDs.
pub(super) static CLUSTER: LazyLock<Simulation> = LazyLock::new(|| {
    let api = ApiServer::with_stock_objects(1, now()).with_node("n1", now());
    let mut simulation = Simulation::new(api, Settings::default(), now());
    for definition in crd::all() {
        simulation.apply(definition).expect("OLM's definition");
    }
    for kind in KINDS {
        let plural = format!("{}s", kind.to_lowercase());
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.x.io") },
            "spec": {
                "group": "x.io", "scope": "Namespaced", "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase() },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }],
            },
        });
        simulation.apply(definition).expect("a definition");
    }
    simulation.establish();
    for namespace in NAMESPACES {
        let namespace = testing::namespace(namespace);
        simulation.apply(namespace).expect("a namespace");
    }
    assert!(simulation.settle(LONG));
    simulation
});

/// Checks the invariants of a settled simulation.
fn check(simulation: &Simulation) -> Result<(), TestCaseError> {
    prop_assert_eq!(simulation.replan(), vec![]);
    let reader = Reader::new(simulation.planner().world());
    let csvs: Vec<&Value> =
        reader.all(&kind::CLUSTER_SERVICE_VERSION).map(|o| o.json()).filter(|csv| !is_copy(csv)).collect();
    let running: Vec<(&Value, Group<'_>)> = csvs
        .iter()
        .filter(|csv| object::text(csv, &["status", "phase"]) == "Succeeded")
        .map(|csv| (*csv, membership::group_of(&reader, csv).expect("a running operator is a member")))
        .collect();
    for (csv, group) in &running {
        let provided = Apis::from_csv(csv);
        prop_assert!(provided.0.is_subset(&group.provided().0), "{} is not named by its group", object::name(csv));
        for (other, others) in running.iter().filter(|(_, others)| others.namespace() != group.namespace()) {
            let both = provided.clone().intersection(&Apis::from_csv(other));
            prop_assert!(both == Apis::default() || !group.intersects(*others), "{csv} and {other} conflict");
        }
        let mut offered: BTreeSet<&str> = group.targets();
        if offered.remove("") {
            offered = reader.names(&kind::NAMESPACE).map(|(_, name)| name.as_str()).collect();
        }
        offered.remove(group.namespace());
        let own = |namespace: &&str| {
            reader.json(&kind::CLUSTER_SERVICE_VERSION, namespace, object::name(csv)).is_some_and(|c| !is_copy(c))
        };
        let copied: BTreeSet<&str> = reader
            .all(&kind::COPIED_CSV)
            .map(|o| o.json())
            .filter(|copy| {
                object::label(copy, "olm.copiedFrom") == Some(group.namespace())
                    && object::name(copy) == object::name(csv)
            })
            .map(object::namespace)
            .collect();
        // A namespace with an operator of the same name receives no copy.
        let offered: BTreeSet<&str> = offered.into_iter().filter(|namespace| !own(namespace)).collect();
        let not_taken: BTreeSet<&str> = copied.difference(&offered).copied().collect();
        prop_assert!(not_taken.is_empty(), "{} is offered to {not_taken:?}", object::name(csv));
    }
    for csv in csvs {
        let stopped = ["InterOperatorGroupOwnerConflict", "CannotModifyStaticOperatorGroupProvidedAPIs"];
        if stopped.contains(&object::text(csv, &["status", "reason"])) {
            let deployment = reader.json(&kind::DEPLOYMENT, object::namespace(csv), object::name(csv));
            prop_assert!(deployment.is_none(), "{} was stopped and runs", object::name(csv));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_controllers_settle_without_api_conflicts(
        begin in (proptest::collection::vec(group(), 2..5), proptest::collection::vec(csv(), 2..5)),
        deeds in proptest::collection::vec(deed(), 0..6),
    ) {
        let mut simulation = CLUSTER.clone();
        for object in begin.0.into_iter().chain(begin.1) {
            // Some requests are refused as expected, for example because a copy has the same name.
            let _ = simulation.apply(object);
        }
        prop_assert!(simulation.settle(LONG), "not settled at the beginning");
        check(&simulation)?;
        for deed in deeds {
            let _ = match &deed {
                Deed::Apply(object) => simulation.apply(object.clone()).map(Some),
                Deed::Patch(target, patch) => simulation.patch(target, Patch::Merge(patch.clone()), None).map(Some),
                Deed::Delete(target) => simulation.delete(target),
            };
            prop_assert!(simulation.settle(LONG), "not settled after {deed:?}");
            check(&simulation)?;
        }
    }

    #[test]
    fn intersection_is_symmetric(one in group(), other in group(), targets in (subsequence(&NAMESPACES[..], 0..4), subsequence(&["", "a"][..], 0..2))) {
        let (mut one, mut other) = (one, other);
        one["status"] = json!({ "namespaces": targets.0 });
        other["status"] = json!({ "namespaces": targets.1 });
        prop_assert_eq!(Group::new(&one).intersects(Group::new(&other)), Group::new(&other).intersects(Group::new(&one)));
        prop_assert!(Group::new(&one).intersects(Group::new(&one)), "its own namespace always counts");
    }
}
