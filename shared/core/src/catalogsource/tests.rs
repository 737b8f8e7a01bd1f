use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::object;
use crate::catalog::Snapshot;
use crate::plan::{Action, Controller, Key, Plan, Question, Reason};
use crate::world::{CatalogFact, ConnectionState, Fact, FactKey, Reader, World};

const ADDRESS: &str = "registry.example.com:50051";

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn source(spec: Value) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": { "name": "main", "namespace": "olm", "uid": "u" }, "spec": spec,
    })
}

fn grpc(address: &str) -> Value {
    source(json!({ "sourceType": "grpc", "address": address }))
}

fn fact(address: &str, state: ConnectionState) -> CatalogFact {
    let snapshot = (state == ConnectionState::Ready).then(|| Arc::new(Snapshot::default()));
    CatalogFact { address: address.to_owned(), state, since: now(), snapshot, error: None }
}

fn plan(source: Option<&Value>, fact: Option<CatalogFact>) -> Plan {
    let mut world = World::new();
    if let Some(source) = source {
        world.apply(source.clone());
    }
    if let Some(fact) = fact {
        world.learn(FactKey::Catalog("olm".to_owned(), "main".to_owned()), Some(Fact::Catalog(fact)));
    }
    super::plan(&Reader::new(&world), &Key::new(Controller::CatalogSource, "olm", "main"), now())
}

fn connect(address: &str) -> Action {
    let (namespace, name, address) = ("olm".to_owned(), "main".to_owned(), address.to_owned());
    Action::Ask(Question::Connect { namespace, name, address })
}

fn disconnect() -> Action {
    Action::Ask(Question::Disconnect { namespace: "olm".to_owned(), name: "main".to_owned() })
}

#[test]
fn an_address_is_dialled_and_its_state_told() {
    use ConnectionState::{Ready, TransientFailure};
    let grpc = grpc(ADDRESS);
    assert_eq!(plan(Some(&grpc), None).actions, [connect(ADDRESS)]);
    let told = plan(Some(&grpc), Some(fact(ADDRESS, Ready)));
    let [Action::UpdateStatus(ready)] = &told.actions[..] else { panic!("{told:?}") };
    assert_eq!(
        ready["status"],
        json!({
            "registryService": { "protocol": "grpc", "createdAt": "2026-11-21T12:00:00Z" },
            "connectionState": { "address": ADDRESS, "lastObservedState": "READY", "lastConnect": "2026-11-21T12:00:00Z" },
        })
    );
    assert_eq!(plan(Some(ready), Some(fact(ADDRESS, Ready))), Plan::nothing());
    let lost = plan(Some(ready), Some(fact(ADDRESS, TransientFailure)));
    let [Action::UpdateStatus(lost_source)] = &lost.actions[..] else { panic!("{lost:?}") };
    assert_eq!(object::text(lost_source, &["status", "connectionState", "lastObservedState"]), "TRANSIENT_FAILURE");
    assert!(matches!(lost.reasons[..], [Reason::CatalogNotReady { .. }]));
    // Another address in the spec: what is known of the old one no longer counts.
    assert_eq!(plan(Some(&grpc), Some(fact("elsewhere:1", Ready))).actions, [connect(ADDRESS)]);
}

#[test]
fn what_was_told_stands_until_a_connection_anew_has_an_outcome() {
    use ConnectionState::{Connecting, Idle, Ready, TransientFailure};
    let told = plan(Some(&grpc(ADDRESS)), Some(fact(ADDRESS, Ready)));
    let [Action::UpdateStatus(ready)] = &told.actions[..] else { panic!("{told:?}") };
    let later = |state| CatalogFact { since: now() + SignedDuration::from_hours(1), ..fact(ADDRESS, state) };
    for state in [Idle, Connecting, Ready] {
        assert_eq!(plan(Some(ready), Some(later(state))).actions, [], "{state:?}");
    }
    let refused = CatalogFact { error: Some("connection refused".to_owned()), ..later(TransientFailure) };
    assert_eq!(plan(Some(ready), Some(refused.clone())).actions.len(), 1);
    // It fails again and again, which is told once.
    let told = plan(Some(ready), Some(refused.clone()));
    let [Action::UpdateStatus(failed)] = &told.actions[..] else { panic!("{told:?}") };
    assert_eq!(plan(Some(failed), Some(refused)).actions, []);
    // A connection that stood and is lost is news.
    let lost = CatalogFact { snapshot: Some(Arc::new(Snapshot::default())), ..later(Idle) };
    assert_eq!(plan(Some(ready), Some(lost)).actions.len(), 1);
    // Where nothing was told yet, this is.
    assert_eq!(plan(Some(&grpc(ADDRESS)), Some(later(Connecting))).actions.len(), 1);
}

#[test]
fn a_catalog_that_is_gone_is_forgotten_but_not_a_local_directory() {
    assert_eq!(plan(None, Some(fact(ADDRESS, ConnectionState::Ready))).actions, [disconnect()]);
    assert_eq!(plan(None, Some(fact("", ConnectionState::Ready))), Plan::nothing());
    assert_eq!(plan(None, None), Plan::nothing());
    // It stands in for what its CatalogSource names.
    let told = plan(Some(&grpc(ADDRESS)), Some(fact("", ConnectionState::Ready)));
    assert!(matches!(told.actions[..], [Action::UpdateStatus(_)]), "{told:?}");
}

#[test]
fn specs_that_make_no_sense_are_told_once() {
    for (spec, message) in [
        (json!({ "sourceType": "configmap" }), "configmap name unset: must be set for sourcetype: configmap"),
        (json!({ "sourceType": "internal" }), "configmap name unset: must be set for sourcetype: internal"),
        (json!({ "sourceType": "grpc" }), "image and address unset: at least one must be set for sourcetype: grpc"),
        (json!({ "sourceType": "carrier-pigeon" }), "unknown sourcetype: carrier-pigeon"),
    ] {
        let told = plan(Some(&source(spec)), None);
        let [Action::UpdateStatus(invalid)] = &told.actions[..] else { panic!("{told:?}") };
        assert_eq!(invalid["status"], json!({ "reason": "SpecInvalidError", "message": message }));
        let again = plan(Some(invalid), None);
        assert!(again.actions.is_empty(), "{again:?}");
        assert!(matches!(again.reasons[..], [Reason::Invalid { .. }]));
        // Mended, the complaint goes away.
        let mut mended = invalid.clone();
        mended["spec"] = json!({ "sourceType": "grpc", "address": ADDRESS });
        let told = plan(Some(&mended), Some(fact(ADDRESS, ConnectionState::Ready)));
        let [Action::UpdateStatus(valid)] = &told.actions[..] else { panic!("{told:?}") };
        assert!(valid["status"].get("reason").is_none() && valid["status"].get("message").is_none());
    }
}

#[test]
fn kinds_that_come_later_are_named_and_left_alone() {
    for spec in [
        json!({ "sourceType": "grpc", "image": "registry.example.com/catalog:1" }),
        json!({ "sourceType": "configmap", "configMap": "bundles" }),
    ] {
        let told = plan(Some(&source(spec)), None);
        assert!(told.actions.is_empty(), "{told:?}");
        assert!(matches!(told.reasons[..], [Reason::Unsupported { .. }]));
    }
}
