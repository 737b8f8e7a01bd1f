//! Catalogs that are directories: controllers without the directory do not change what was installed from it.

use super::*;
use crate::testing;

/// An operator that was installed from a directory: the cluster has no CatalogSource of that name.
fn installed() -> Simulation {
    let mut simulation = cluster(catalog(vec![bundle("tulip", "1.0.0", "", "")]));
    simulation.add_local_catalog("olm", "folder", chain());
    simulation.apply(from("rose", "folder", "")).unwrap();
    rest(&mut simulation);
    assert_eq!(
        story(&simulation),
        "rose.v2.0.0 Succeeded; Complete: rose.v2.0.0; rose AtLatestKnown rose.v2.0.0 CatalogDirectory"
    );
    simulation
}

fn from(package: &str, source: &str, starting: &str) -> Value {
    let mut subscription = subscription(package, "Automatic", starting);
    subscription["spec"]["name"] = package.into();
    subscription["spec"]["source"] = source.into();
    subscription
}

/// The same cluster with controllers that were not given the directory.
fn without_directory(simulation: &Simulation) -> Simulation {
    let mut fresh = Simulation::new(simulation.api().clone(), Settings::default(), simulation.now());
    fresh.serve(ADDRESS, catalog(vec![bundle("tulip", "1.0.0", "", "")]));
    assert!(fresh.settle(SignedDuration::from_mins(10)));
    fresh
}

fn reasons(simulation: &Simulation) -> Vec<Reason> {
    simulation.planner().reasons().flat_map(|(_, reasons)| reasons.to_vec()).collect()
}

#[test]
fn installed_operators_are_unchanged_and_the_missing_flag_is_named() {
    let before = installed();
    let after = without_directory(&before);
    assert_eq!(story(&after), story(&before));
    let of = |simulation: &Simulation| of_kind(simulation, "Subscription").into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(of(&after), of(&before), "nothing is written");
    let [reason] = &reasons(&after)[..] else { panic!("{:?}", reasons(&after)) };
    assert_eq!(
        reason.to_string(),
        "catalog olm/folder was served from a directory that was not passed, so Subscription garden/rose is not updated"
    );
    assert_eq!(reason.severity(), crate::plan::Severity::Settled);
    assert!(reason.hint().unwrap().starts_with("pass --catalog folder=DIR "), "{:?}", reason.hint());
}

#[test]
fn new_subscriptions_of_the_namespace_are_blocked_with_a_reason() {
    let mut before = installed();
    before.apply(from("tulip", "main", "")).unwrap();
    let after = without_directory(&before);
    let rose = after.api().get(&target("Subscription", "rose")).unwrap();
    assert!(!rose.to_string().contains("ResolutionFailed"), "{rose}");
    let [reason] = &reasons(&after)[..] else { panic!("{:?}", reasons(&after)) };
    assert!(matches!(reason, Reason::CatalogNotProvided { installed: false, .. }), "{reason}");
    assert_eq!(reason.severity(), crate::plan::Severity::Blocked);
}

#[test]
fn a_catalog_that_was_never_a_directory_fails_as_in_olm() {
    let mut before = installed();
    before
        .patch(&target("Subscription", "rose"), Patch::Merge(json!({ "spec": { "source": "other" } })), None)
        .unwrap();
    let after = without_directory(&before);
    assert!(story(&after).contains("ResolutionFailed"), "{}", story(&after));
    let [reason] = &reasons(&after)[..] else { panic!("{:?}", reasons(&after)) };
    assert_eq!(
        reason.to_string(),
        "the Subscriptions of namespace garden cannot be satisfied: constraints not satisfiable: no operators found from catalog other in namespace olm referenced by subscription rose, subscription rose exists"
    );
    let hint = "create CatalogSource olm/other, or serve a directory instead: --catalog other.olm=DIR";
    assert_eq!(reason.hint().as_deref(), Some(hint));
}

#[test]
fn a_catalog_source_of_that_name_replaces_the_directory() {
    let mut after = without_directory(&installed());
    after.serve("folder:1", chain());
    let source = testing::catalog_source("olm", "folder", &json!({ "sourceType": "grpc", "address": "folder:1" }));
    after.apply(source).unwrap();
    assert!(after.settle(SignedDuration::from_mins(10)));
    assert_eq!(story(&after), "rose.v2.0.0 Succeeded; Complete: rose.v2.0.0; rose AtLatestKnown rose.v2.0.0");
}
