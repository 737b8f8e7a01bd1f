//! Explanations of InstallPlans before their execution: consecutive plans of scenarios, and plans of real operators.
//!
//! Snapshots contain the text output. Those of real operators are compared if the sample data exists; they contain none of
//! their objects.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "explain/approve.rs"]
mod approve;
#[path = "explain/garden.rs"]
mod garden;

use olm_core::api::object;
use olm_shell::installplan::explain::Form;
use olm_tests::data::{self, NO_DATA, documents};
use olm_tests::scenario::{checked_in, own};
use olm_tests::skip;

use garden::{Garden, garden};

/// Returns the explanation of a Subscription's next plan as text.
fn explanation(garden: &Garden, subscription: &str) -> String {
    let (answer, out, err) = garden.explained(subscription, Form::Text);
    let mut told = format!("{answer}\n\n{out}{err}");
    for (name, folder) in &garden.catalogs {
        told = told.replace(&folder.path().display().to_string(), name);
    }
    told
}

#[test]
fn an_upgrade() {
    let mut garden = garden(&checked_in().join("upgrade-manual-steps"), "01-subscribe-with-startingcsv.yaml");
    garden.approve();
    insta::assert_snapshot!(explanation(&garden, "rose"));
}

#[test]
fn a_removed_stored_version() {
    let scenario = checked_in().join("crd-upgrade-stored-version-removed");
    let mut garden = garden(&scenario, "01-install-v1-0-0.yaml");
    garden.approve();
    garden.apply(&scenario, "03-make-a-rose.yaml", "main");
    insta::assert_snapshot!(explanation(&garden, "rose"));
}

#[test]
fn a_kind_that_is_not_served() {
    let garden = garden(&checked_in().join("bundle-kind-not-on-cluster"), "01-subscribe.yaml");
    insta::assert_snapshot!(explanation(&garden, "rose"));
}

#[test]
fn optional_objects_that_are_skipped() {
    let scenario = own().join("optional-goes-on");
    let file = std::fs::read_dir(scenario.join("objects")).unwrap().map(|e| e.unwrap().file_name()).min().unwrap();
    let mut garden = Garden::new(true).with_catalog(&scenario, "main");
    garden.apply(&scenario, file.to_str().unwrap(), "main");
    insta::assert_snapshot!(explanation(&garden, "rose"));
}

/// Returns a scenario of a real operator.
fn real(name: &str) -> Option<std::path::PathBuf> {
    Some(data::data()?.join("scenarios").join(name))
}

#[test]
fn the_real_etcd_from_one_version_to_the_next() {
    let Some(scenario) = real("real-etcd") else { skip!("{NO_DATA}") };
    let mut garden = garden(&scenario, "01-subscribe-with-startingcsv.yaml");
    let mut told = vec![explanation(&garden, "etcd")];
    for _ in 0..2 {
        garden.approve();
        told.push(explanation(&garden, "etcd"));
    }
    insta::assert_snapshot!(told.join("\n----\n\n"));
}

#[test]
fn the_real_kuadrant_with_its_dependencies() {
    let Some(scenario) = real("real-kuadrant") else { skip!("{NO_DATA}") };
    insta::assert_snapshot!(explanation(&garden(&scenario, "01-subscribe.yaml"), "kuadrant-operator"));
}

#[test]
fn the_real_argocd_with_unserved_definitions_blocks_etcd() {
    let (Some(argocd), Some(etcd)) = (real("real-argocd-v1beta1-crds"), real("real-etcd")) else { skip!("{NO_DATA}") };
    let mut garden = Garden::new(false).with_catalog(&argocd, "main").with_catalog(&etcd, "other");
    let objects = ["01-subscribe.yaml", "01-subscribe-with-startingcsv.yaml"];
    // Both are created before planning, so that they share a plan.
    let both = argocd.join("objects").join(objects[0]);
    for mut object in
        documents(&both).unwrap().into_iter().chain(documents(&etcd.join("objects").join(objects[1])).unwrap())
    {
        if object::text(&object, &["kind"]) == "Subscription" {
            object["spec"]["installPlanApproval"] = "Manual".into();
            if object::name(&object) == "etcd" {
                object["spec"]["source"] = "other".into();
            }
        }
        garden.simulation.apply(object).unwrap();
    }
    garden.settle();
    insta::assert_snapshot!(explanation(&garden, "etcd"));
}
