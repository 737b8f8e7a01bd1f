//! The controllers, on objects that tenants and operators wrote, in a simulation.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use olm_core::api::crd;
use olm_core::api::object;
use olm_core::catalog::{self, File};
use olm_core::settings::Settings;
use olm_core::sim::{ApiServer, Simulation};
use olm_core::yaml;
use serde_json::{Value, json};

use super::parts::parts;

/// Virtual time limit.
const LIMIT: SignedDuration = SignedDuration::from_mins(3);
/// Maximum number of steps, which detects controllers that never settle.
const STEPS: usize = 4000;
/// Maximum number of objects.
const OBJECTS: usize = 30;
/// The prefix of the names of parts that are files of the catalog.
const CATALOG: &str = "catalog/";

/// Objects, and the files of a catalog.
pub(super) struct Given {
    pub(super) objects: Vec<Value>,
    pub(super) catalog: Arc<catalog::Snapshot>,
}

impl Given {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let (head, parts) = parts(bytes);
        let (catalog, others): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.name.starts_with(CATALOG));
        let files: Vec<File> = catalog.iter().map(|part| File::new(part.name, part.bytes)).collect();
        let texts = [head].into_iter().chain(others.iter().map(|part| part.bytes));
        let documents = texts.flat_map(|text| yaml::documents(text).unwrap_or_default());
        let objects = documents.filter_map(|document| document.value().ok()).filter(is_object).take(OBJECTS).collect();
        Self { objects, catalog: Arc::new(catalog::load(&files).snapshot) }
    }
}

fn is_object(value: &Value) -> bool {
    ["apiVersion", "kind"].iter().all(|field| !object::text(value, &[field]).is_empty())
        && !object::name(value).is_empty()
}

/// Returns the start time of the simulation.
pub(super) fn beginning() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap_or_default()
}

/// Runs the controllers on these objects.
///
/// # Panics
/// They never settle.
pub(super) fn run(bytes: &[u8]) {
    let given = Given::read(bytes);
    let api = ApiServer::with_stock_objects(1, beginning()).with_node("node", beginning());
    let mut simulation = Simulation::new(api, Settings::default(), beginning());
    let global = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "olm" } });
    for object in crd::all().into_iter().chain([global]) {
        let _ = simulation.apply(object);
    }
    simulation.settle(SignedDuration::from_secs(1));
    simulation.add_local_catalog("olm", "garden", given.catalog.clone());
    for object in given.objects {
        let _ = simulation.restore(object);
    }
    let mut steps = 0;
    simulation.settle_while(LIMIT, |simulation| {
        steps += 1;
        assert!(steps <= STEPS, "they do not settle: {:?}", last(simulation));
        simulation.take_refusals();
    });
}

/// Returns the last entries of the timeline.
fn last(simulation: &Simulation) -> Vec<String> {
    let last = simulation.happenings().iter().rev().take(6);
    last.map(|happening| format!("{:?} {}", happening.actor, object::name(happening.change.object()))).collect()
}
