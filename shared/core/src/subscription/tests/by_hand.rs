//! InstallPlans that somebody makes.

use super::*;

fn make(simulation: &mut Simulation, names: &[&str], approved: bool) {
    let plan = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": { "name": "mine", "namespace": "garden" },
        "spec": { "approval": "Manual", "approved": approved, "clusterServiceVersionNames": names },
    });
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
fn they_get_steps_for_what_they_name_and_for_what_that_needs() {
    let mut simulation = cluster(catalog(pots()));
    make(&mut simulation, &["pot.v1.0.0"], false);
    assert_eq!(story(&simulation), "RequiresApproval: pot.v1.0.0");
    approve(&mut simulation);
    rest(&mut simulation);
    // Nobody has subscribed to pots, so there are no newer ones.
    assert_eq!(
        story(&simulation),
        "pot.v1.0.0 Succeeded; rose.v1.1.0 Succeeded; Complete: pot.v1.0.0; \
         rose-stable-main-olm AtLatestKnown rose.v1.1.0"
    );
}

#[test]
fn what_cannot_be_resolved_is_told_and_resolved_later() {
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
