//! InstallPlans that users create.

use super::*;
use crate::testing;

fn made(name: &str, names: &[&str]) -> Value {
    testing::install_plan(
        "garden",
        name,
        &json!({ "approval": "Manual", "approved": false, "clusterServiceVersionNames": names }),
    )
}

fn make(simulation: &mut Simulation, names: &[&str], approved: bool) {
    let mut plan = made("mine", names);
    plan["spec"]["approved"] = approved.into();
    simulation.apply(plan).unwrap();
    rest(simulation);
}

fn pots() -> Vec<BundleMessage> {
    vec![
        bundle("rose", "1.0.0", "", ""),
        bundle("rose", "1.1.0", "rose.v1.0.0", ""),
        bundle("pot", "1.0.0", "", "Rose"),
        bundle("pot", "2.0.0", "pot.v1.0.0", "Rose"),
    ]
}

#[test]
fn they_get_steps_for_named_csvs_and_their_dependencies() {
    let mut simulation = cluster(catalog(pots()));
    make(&mut simulation, &["pot.v1.0.0"], false);
    assert_eq!(story(&simulation), "RequiresApproval: pot.v1.0.0");
    approve(&mut simulation);
    rest(&mut simulation);
    // There is no Subscription to pots, so they are not updated.
    assert_eq!(
        story(&simulation),
        "pot.v1.0.0 Succeeded; rose.v1.1.0 Succeeded; Complete: pot.v1.0.0; \
         rose-stable-main-olm AtLatestKnown rose.v1.1.0"
    );
}

#[test]
fn a_failed_resolution_is_reported_and_retried() {
    let mut simulation = cluster(chain());
    make(&mut simulation, &["pot.v1.0.0"], true);
    assert_eq!(story(&simulation), "Planning: pot.v1.0.0");
    let [plan] = of_kind(&simulation, "InstallPlan")[..] else { panic!() };
    let condition = &plan["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("Resolved"), &json!("False")));
    assert_eq!(condition["message"], "no catalog has ClusterServiceVersion pot.v1.0.0");
    simulation.serve(ADDRESS, catalog(pots()));
    rest(&mut simulation);
    assert!(story(&simulation).starts_with("pot.v1.0.0 Succeeded; rose.v1.1.0 Succeeded"), "{}", story(&simulation));
}

#[test]
fn automatic_approval_suffices() {
    let mut simulation = cluster(chain());
    let mut plan = made("mine", &["rose.v2.0.0"]);
    plan["spec"]["approval"] = "Automatic".into();
    simulation.apply(plan).unwrap();
    rest(&mut simulation);
    assert!(story(&simulation).starts_with("rose.v2.0.0 Succeeded; Complete: rose.v2.0.0"), "{}", story(&simulation));
}

#[test]
fn a_program_has_time_to_write_the_steps_of_its_own_plan() {
    let mut simulation = cluster(chain());
    let mut plan = made("theirs", &["rose.v9.0.0"]);
    plan["spec"]["approved"] = true.into();
    simulation.apply(plan).unwrap();
    simulation.settle(SignedDuration::from_millis(500));
    assert_eq!(story(&simulation), ": rose.v9.0.0", "no other client writes its status");
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "rose" } });
    let step = json!({
        "resolving": "", "status": "Unknown",
        "resource": {
            "group": "", "version": "v1", "kind": "ConfigMap", "name": "rose", "manifest": manifest.to_string(),
            "sourceName": "", "sourceNamespace": "",
        },
    });
    let status = json!({ "status": { "phase": "Installing", "catalogSources": [], "plan": [step] } });
    simulation.patch(&target("InstallPlan", "theirs"), Patch::Merge(status), Some("status")).unwrap();
    rest(&mut simulation);
    assert_eq!(story(&simulation), "Complete: rose.v9.0.0");
}

/// A plan of that age and phase; those with a generation were created for a Subscription.
fn aged(name: &str, second: u8, phase: &str, generation: Option<u8>) -> Value {
    let mut plan = made(name, &["rose.v1.0.0"]);
    plan["metadata"]["creationTimestamp"] = format!("2026-11-21T12:00:0{second}Z").into();
    plan["metadata"]["uid"] = name.into();
    plan["status"]["phase"] = phase.into();
    if let Some(generation) = generation {
        plan["spec"]["generation"] = generation.into();
        plan["metadata"]["ownerReferences"] = json!([{ "kind": "Subscription", "name": "rose" }]);
    }
    plan
}

#[test]
fn unfinished_plans_are_not_deleted() {
    let others: Vec<Value> = (1..=5).map(|n| aged(&format!("install-{n}"), n, "Complete", Some(n))).collect();
    for (phase, second, expected) in [
        ("", 9, vec!["install-1"]),
        ("Planning", 9, vec!["install-1"]),
        ("RequiresApproval", 9, vec!["install-1"]),
        ("Installing", 9, vec!["install-1"]),
        // It is ordered after the plans that were created before it.
        ("Complete", 9, vec!["install-1"]),
        ("Complete", 3, vec!["install-1"]),
        ("Failed", 0, vec!["mine"]),
        ("Installing", 0, vec![]),
    ] {
        let mine = aged("mine", second, phase, None);
        let plans: Vec<&Value> = others.iter().chain([&mine]).collect();
        let deleted: Vec<String> =
            super::super::delete_old_plans(&plans, &[]).iter().map(|a| a.target().name).collect();
        assert_eq!(deleted, expected, "{phase} {second}");
    }
}
