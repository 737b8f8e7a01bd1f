//! A simulated cluster with catalogs of scenarios, whose plans are explained.

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
use olm_tests::data::{self, documents};
use olm_tests::scenario::catalog::{assemble, load};
use serde_json::json;
use tempfile::TempDir;

/// A cluster in memory in which every plan waits for approval, and the folders of its catalogs.
pub(crate) struct Garden {
    pub(crate) simulation: Simulation,
    pub(crate) catalogs: Vec<(String, TempDir)>,
    optional_manifests: bool,
}

impl Garden {
    pub(crate) fn new(optional_manifests: bool) -> Self {
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
    pub(crate) fn with_catalog(mut self, scenario: &Path, name: &str) -> Self {
        let folder = assemble(&scenario.join("catalogs/main"), data::data().as_deref()).unwrap();
        self.simulation.add_local_catalog("olm", name, Arc::new(load(folder.path()).unwrap()));
        self.catalogs.push((name.to_owned(), folder));
        self
    }

    /// Applies the objects of a scenario's file; Subscriptions use that catalog and manual approval.
    pub(crate) fn apply(&mut self, scenario: &Path, file: &str, source: &str) {
        for mut object in documents(&scenario.join("objects").join(file)).unwrap() {
            if object::text(&object, &["kind"]) == "Subscription" {
                object["spec"]["installPlanApproval"] = "Manual".into();
                object["spec"]["source"] = source.into();
            }
            self.simulation.apply(object).unwrap();
        }
        self.settle();
    }

    pub(crate) fn settle(&mut self) {
        self.simulation.settle(SignedDuration::from_mins(15));
    }

    /// Explains a Subscription's next plan, and returns the outcome and both streams.
    pub(crate) fn explained(&self, subscription: &str, form: Form) -> (String, String, String) {
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
            form,
        };
        let (out, err) = (Buffer::default(), Buffer::default());
        let answer = explain::run(&options, &mut Printer::to(out.clone(), err.clone()));
        let answer = answer.map_or_else(|error| error.to_string(), |outcome| format!("{outcome:?}"));
        (answer, out.text(), err.text())
    }

    /// Approves the waiting plan.
    pub(crate) fn approve(&mut self) {
        let plans = self.simulation.api().list("operators.coreos.com", "InstallPlan", Some("garden"));
        let waiting = plans.filter(|plan| object::text(plan, &["status", "phase"]) == "RequiresApproval");
        let waiting: Vec<ObjectRef> = waiting.map(ObjectRef::from_object).collect();
        let plan = waiting.first().unwrap().clone();
        self.simulation.patch(&plan, Patch::Merge(json!({ "spec": { "approved": true } })), None).unwrap();
        self.settle();
    }
}

/// Returns a cluster with the catalog `main` of a scenario, after its file was applied.
pub(crate) fn garden(scenario: &Path, file: &str) -> Garden {
    let mut garden = Garden::new(false).with_catalog(scenario, "main");
    garden.apply(scenario, file, "main");
    garden
}
