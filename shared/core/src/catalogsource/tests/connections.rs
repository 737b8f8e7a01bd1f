//! The timestamps in the status, which clients compare.

use super::*;

fn at(second: i64) -> Timestamp {
    now() + SignedDuration::from_secs(second)
}

/// A read ConfigMap of that revision, read at that second.
fn read(revision: &str, second: i64) -> CatalogFact {
    CatalogFact {
        snapshot: Some(Arc::new(Snapshot::default())),
        config_map: Some(("u-map".to_owned(), revision.to_owned())),
        ..CatalogFact::new(Target::ConfigMap("bundles".to_owned()), ConnectionState::Ready, at(second))
    }
}

fn plan_at(source: &Value, fact: &CatalogFact, now: Timestamp) -> Plan {
    let mut world = World::new();
    world.apply(source.clone());
    world.learn(FactKey::Catalog("olm".to_owned(), "main".to_owned()), Some(Fact::Catalog(fact.clone())));
    super::super::plan(
        &Settings::default(),
        &Reader::new(&world),
        &Key::new(Controller::CatalogSource, "olm", "main"),
        now,
    )
}

/// Returns the object with the status that was written, and when to plan again.
fn written(plan: &Plan) -> (Option<Value>, Option<Timestamp>) {
    let object = plan.actions.iter().find_map(|action| match action {
        Action::UpdateStatus(object) => Some(object.clone()),
        _ => None,
    });
    (object, plan.again)
}

fn times(source: &Value) -> (&str, &str) {
    let text = |path| object::text(source, path);
    (text(&["status", "configMapReference", "lastUpdateTime"]), text(&["status", "connectionState", "lastConnect"]))
}

#[test]
fn a_config_map_is_connected_to_after_it_was_updated() {
    let source = source(json!({ "sourceType": "configmap", "configMap": "bundles" }));
    let (first, again) = written(&plan_at(&source, &read("7", 0), at(0)));
    let first = first.unwrap();
    assert_eq!(times(&first), ("2026-11-21T12:00:00Z", "2026-11-21T12:00:00Z"));
    assert_eq!(again, Some(at(1)), "clients that compare the times do not see it yet");
    let plan = plan_at(&first, &read("7", 0), at(0));
    assert!(
        plan.actions.is_empty() && plan.reasons.iter().all(|r| r.severity() == crate::plan::Severity::Waiting),
        "{plan:?}"
    );
    let (connected, again) = written(&plan_at(&first, &read("7", 0), at(1)));
    let connected = connected.unwrap();
    assert_eq!((times(&connected), again), (("2026-11-21T12:00:00Z", "2026-11-21T12:00:01Z"), None));
    assert_eq!(plan_at(&connected, &read("7", 0), at(2)), Plan::nothing(), "once");
    assert_eq!(plan_at(&connected, &read("7", 90), at(90)), Plan::nothing(), "nor after a restart of the controllers");

    let (updated, again) = written(&plan_at(&connected, &read("8", 0), at(60)));
    let updated = updated.unwrap();
    assert_eq!((times(&updated), again), (("2026-11-21T12:01:00Z", "2026-11-21T12:00:01Z"), Some(at(61))));
    let (connected, _) = written(&plan_at(&updated, &read("8", 0), at(61)));
    assert_eq!(times(&connected.unwrap()), ("2026-11-21T12:01:00Z", "2026-11-21T12:01:01Z"));
    // Two revisions within a second get different times.
    let plan = plan_at(&updated, &read("9", 0), at(60));
    assert_eq!(written(&plan), (None, Some(at(61))), "{plan:?}");
    let (later, _) = written(&plan_at(&updated, &read("9", 0), at(61)));
    let later = later.unwrap();
    assert_eq!(times(&later).0, "2026-11-21T12:01:01Z");
    assert_eq!(later["status"]["configMapReference"]["resourceVersion"], "9");
    // While it cannot be read there is no connection.
    let lost =
        CatalogFact { state: ConnectionState::TransientFailure, error: Some("gone".to_owned()), ..read("8", 62) };
    let (lost, again) = written(&plan_at(&updated, &lost, at(62)));
    assert_eq!((times(&lost.unwrap()).1, again), ("2026-11-21T12:01:02Z", None));
}

#[test]
fn a_replaced_connection_is_reported() {
    let ready =
        |second, reconnected| CatalogFact { since: at(second), reconnected, ..fact(ADDRESS, ConnectionState::Ready) };
    let (known, _) = written(&plan_at(&grpc(ADDRESS), &ready(0, false), at(0)));
    let known = known.unwrap();
    assert_eq!(written(&plan_at(&known, &ready(30, false), at(30))).0, None, "the controllers were restarted");
    let (reconnected, _) = written(&plan_at(&known, &ready(30, true), at(31)));
    let reconnected = reconnected.unwrap();
    assert_eq!(times(&reconnected).1, "2026-11-21T12:00:30Z");
    assert_eq!(plan_at(&reconnected, &ready(30, true), at(32)), Plan::nothing(), "once");
}
