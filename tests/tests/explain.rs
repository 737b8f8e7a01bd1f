//! Explanations of InstallPlans before their execution: consecutive plans of scenarios, and plans of real operators.
//!
//! Snapshots contain the text output. Those of real operators are compared if the sample data exists; they contain none of
//! their objects.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "explain/approve.rs"]
mod approve;

use std::path::Path;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use olm_core::api::crd;
use olm_core::api::object::{self, ObjectRef};
use olm_core::settings::Settings;
use olm_core::sim::{ApiServer, Patch, Simulation};
use olm_shell::cli::Printer;
use olm_shell::cli::flags::{NamespaceFlags, SourceFlags};
use olm_shell::cli::streams::Buffer;
use olm_shell::installplan::explain::{self, Form, Options, Request};
use olm_tests::data::{self, NO_DATA, documents};
use olm_tests::scenario::catalog::{assemble, load};
use olm_tests::scenario::{checked_in, own};
use olm_tests::skip;
use serde_json::json;
use tempfile::TempDir;

/// A cluster in memory in which every plan waits for approval, and the folders of its catalogs.
struct Garden {
    simulation: Simulation,
    catalogs: Vec<(String, TempDir)>,
    optional_manifests: bool,
}

impl Garden {
    fn new(optional_manifests: bool) -> Self {
        let began: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let api = ApiServer::with_stock_objects(1, began).with_node("n1", began);
        let settings = Settings { optional_manifests, ..Settings::default() };
        let mut simulation = Simulation::new(api, settings, began);
        for crd in crd::all() {
            simulation.apply(crd).unwrap();
        }
        simulation.establish();
        simulation.apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "olm" } })).unwrap();
        Self { simulation, catalogs: Vec::new(), optional_manifests }
    }

    /// Adds a catalog of a scenario under that name.
    fn with_catalog(mut self, scenario: &Path, name: &str) -> Self {
        let folder = assemble(&scenario.join("catalogs/main"), data::data().as_deref()).unwrap();
        self.simulation.add_local_catalog("olm", name, Arc::new(load(folder.path()).unwrap()));
        self.catalogs.push((name.to_owned(), folder));
        self
    }

    /// Applies the objects of a scenario's file; Subscriptions use that catalog and manual approval.
    fn apply(&mut self, scenario: &Path, file: &str, source: &str) {
        for mut object in documents(&scenario.join("objects").join(file)).unwrap() {
            if object::text(&object, &["kind"]) == "Subscription" {
                object["spec"]["installPlanApproval"] = "Manual".into();
                object["spec"]["source"] = source.into();
            }
            self.simulation.apply(object).unwrap();
        }
        self.settle();
    }

    fn settle(&mut self) {
        self.simulation.settle(SignedDuration::from_mins(15));
    }

    /// Returns the explanation of a Subscription's next plan.
    fn explanation(&self, subscription: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let items: Vec<_> = self.simulation.api().iter().collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
        let state = folder.path().join("state.json");
        std::fs::write(&state, list.to_string()).unwrap();
        let catalog = |(name, folder): &(String, TempDir)| format!("{name}.olm={}", folder.path().display()).parse();
        let options = Options {
            asked: Request::Subscription(subscription.to_owned()),
            source: SourceFlags {
                from: vec![state],
                catalogs: self.catalogs.iter().map(catalog).collect::<Result<_, _>>().unwrap(),
                ..SourceFlags::default()
            },
            namespaces: NamespaceFlags { namespace: Some("garden".to_owned()), ..NamespaceFlags::default() },
            on_top: Vec::new(),
            images: olm_shell::image::Options::default(),
            optional_manifests: self.optional_manifests,
            plain_bundles: true,
            dry_run: explain::DryRun::default(),
            policies: Vec::new(),
            details: false,
            form: Form::Text,
        };
        let (out, err) = (Buffer::default(), Buffer::default());
        let answer = explain::run(&options, &mut Printer::to(out.clone(), err.clone()));
        let answer = answer.map_or_else(|error| error.to_string(), |outcome| format!("{outcome:?}"));
        let mut told = format!("{answer}\n\n{}{}", out.text(), err.text());
        for (name, folder) in &self.catalogs {
            told = told.replace(&folder.path().display().to_string(), name);
        }
        told
    }

    /// Approves the waiting plan.
    fn approve(&mut self) {
        let plans = self.simulation.api().list("operators.coreos.com", "InstallPlan", Some("garden"));
        let waiting = plans.filter(|plan| object::text(plan, &["status", "phase"]) == "RequiresApproval");
        let waiting: Vec<ObjectRef> = waiting.map(ObjectRef::from_object).collect();
        let plan = waiting.first().unwrap().clone();
        self.simulation.patch(&plan, Patch::Merge(json!({ "spec": { "approved": true } })), None).unwrap();
        self.settle();
    }
}

fn garden(scenario: &Path, file: &str) -> Garden {
    let mut garden = Garden::new(false).with_catalog(scenario, "main");
    garden.apply(scenario, file, "main");
    garden
}

#[test]
fn an_upgrade() {
    let mut garden = garden(&checked_in().join("upgrade-manual-steps"), "01-subscribe-with-startingcsv.yaml");
    garden.approve();
    insta::assert_snapshot!(garden.explanation("rose"));
}

#[test]
fn a_removed_stored_version() {
    let scenario = checked_in().join("crd-upgrade-stored-version-removed");
    let mut garden = garden(&scenario, "01-install-v1-0-0.yaml");
    garden.approve();
    garden.apply(&scenario, "03-make-a-rose.yaml", "main");
    insta::assert_snapshot!(garden.explanation("rose"));
}

#[test]
fn a_kind_that_is_not_served() {
    let garden = garden(&checked_in().join("bundle-kind-not-on-cluster"), "01-subscribe.yaml");
    insta::assert_snapshot!(garden.explanation("rose"));
}

#[test]
fn optional_objects_that_are_skipped() {
    let scenario = own().join("optional-goes-on");
    let file = std::fs::read_dir(scenario.join("objects")).unwrap().map(|e| e.unwrap().file_name()).min().unwrap();
    let mut garden = Garden::new(true).with_catalog(&scenario, "main");
    garden.apply(&scenario, file.to_str().unwrap(), "main");
    insta::assert_snapshot!(garden.explanation("rose"));
}

/// Returns a scenario of a real operator.
fn real(name: &str) -> Option<std::path::PathBuf> {
    Some(data::data()?.join("scenarios").join(name))
}

#[test]
fn the_real_etcd_from_one_version_to_the_next() {
    let Some(scenario) = real("real-etcd") else { skip!("{NO_DATA}") };
    let mut garden = garden(&scenario, "01-subscribe-with-startingcsv.yaml");
    let mut told = vec![garden.explanation("etcd")];
    for _ in 0..2 {
        garden.approve();
        told.push(garden.explanation("etcd"));
    }
    insta::assert_snapshot!(told.join("\n----\n\n"));
}

#[test]
fn the_real_kuadrant_with_its_dependencies() {
    let Some(scenario) = real("real-kuadrant") else { skip!("{NO_DATA}") };
    insta::assert_snapshot!(garden(&scenario, "01-subscribe.yaml").explanation("kuadrant-operator"));
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
    insta::assert_snapshot!(garden.explanation("etcd"));
}
