//! The simulated engine: the in-memory cluster and the controllers, on a virtual clock.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use jiff::{SignedDuration, Timestamp};
use olm_core::api::crd;
use olm_core::api::object::{Gvk, ObjectRef, text};
use olm_core::api::status::Status;
use olm_core::catalog::Snapshot;
use olm_core::plan::Verb;
use olm_core::settings::{CatalogPods, Settings};
use olm_core::sim::{self, ApiServer, Fault, Progress, Simulation, WatchEvent};
use serde_json::Value;

use super::engine::{Engine, WATCHED};
use super::format::{FaultSpec, PatchSpec, PatchType, Scenario};
use super::store::Change;
use crate::sim_api::SimApi;

/// Start of the virtual clock.
const BEGINNING: &str = "2026-01-01T00:00:00Z";

/// A simulated cluster as an engine.
#[derive(Clone)]
pub struct SimEngine {
    simulation: Simulation,
    began: Timestamp,
    addresses: BTreeMap<String, String>,
    log: Vec<String>,
}

impl SimEngine {
    /// Starts a cluster with OLM's CRDs and one Node.
    pub fn start() -> Result<Self> {
        Self::start_with(Settings::default())
    }

    /// Starts a cluster for a scenario.
    pub fn start_for(scenario: &Scenario) -> Result<Self> {
        let catalog_pods = scenario.has_catalog_pods()?.then(CatalogPods::default);
        let mut settings = Settings { catalog_pods, ..Settings::default() };
        for flag in &scenario.script.flags {
            match flag.split_once('=').unwrap_or((flag, "")) {
                ("--feature-gates", "OptionalManifests=true") => settings.optional_manifests = true,
                ("--retry-optional", "") => settings.retry_optional = true,
                ("--protected-copied-csv-namespaces", namespaces) => {
                    settings.protected_copied_csv_namespaces = namespaces.split(',').map(str::to_owned).collect();
                }
                _ => bail!("the simulation does not support {flag}"),
            }
        }
        Self::start_with(settings)
    }

    fn start_with(settings: Settings) -> Result<Self> {
        let began: Timestamp = BEGINNING.parse()?;
        let api = ApiServer::with_stock_objects(1, began).with_node("n1", began);
        let mut simulation = Simulation::new(api, settings, began);
        for crd in crd::all() {
            simulation.apply(crd)?;
        }
        simulation.establish();
        Ok(Self { simulation, began, addresses: BTreeMap::new(), log: Vec::new() })
    }

    /// Returns the simulation.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    fn take_changes(&mut self) -> Vec<Change> {
        for (key, action, refusal) in self.simulation.take_refusals() {
            let line = format!("{key}: refused to {} {}: {refusal}", action.verb().as_str(), action.target());
            self.log.push(line);
        }
        let mut changes = Vec::new();
        for happening in self.simulation.take_happenings() {
            let change = match happening.change {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => Change::Applied(object),
                WatchEvent::Deleted(object) => Change::Deleted(object),
            };
            let object = match &change {
                Change::Applied(object) | Change::Deleted(object) => object,
            };
            let (api_version, kind) = (text(object, &["apiVersion"]), text(object, &["kind"]));
            if kind != "Event" {
                let (target, state) = (ObjectRef::from_object(object), text(object, &["status", "phase"]));
                self.log.push(format!("{} {target} {state} by {:?}", happening.at, happening.actor));
            }
            if WATCHED.iter().any(|(watched, k, _)| *watched == api_version && *k == kind) {
                changes.push(change);
            }
        }
        changes
    }
}

impl Engine for SimEngine {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn now(&self) -> Duration {
        Duration::try_from(self.simulation.now().duration_since(self.began)).unwrap_or_default()
    }

    fn apply(&mut self, object: &Value) -> Result<()> {
        self.simulation.apply(object.clone())?;
        Ok(())
    }

    fn patch(&mut self, target: &ObjectRef, patch: &PatchSpec) -> Result<()> {
        let value = patch.patch.clone();
        let kind = match patch.patch_type {
            PatchType::Merge => sim::Patch::Merge(value),
            PatchType::Json => sim::Patch::Json(value),
            PatchType::Strategic => sim::Patch::Strategic(value),
        };
        self.simulation.patch(target, kind, patch.subresource.as_deref())?;
        Ok(())
    }

    fn delete(&mut self, target: &ObjectRef) -> Result<()> {
        self.simulation.delete(target)?;
        Ok(())
    }

    fn command<T>(&mut self, run: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let api = SimApi::start(self.simulation.clone())?;
        let answer = run(&api.kubeconfig());
        self.simulation = api.stop();
        answer
    }

    fn fault(&mut self, fault: &FaultSpec) -> Result<()> {
        let FaultSpec { verb, kind, name, code, reason, message, times } = fault.clone();
        let verbs = [Verb::Create, Verb::Update, Verb::Patch];
        let Some(verb) = verbs.into_iter().find(|v| v.as_str() == verb) else {
            bail!("the verb {verb} cannot be refused")
        };
        let status = Status::new(code, &reason, message);
        self.simulation.refuse(Fault { verb, kind, name, status, times });
        Ok(())
    }

    fn list(&mut self, resource: &Gvk, _plural: &str) -> Result<Vec<Value>> {
        Ok(self.simulation.api().list(&resource.group, &resource.kind, None).cloned().collect())
    }

    fn serve_snapshot(&mut self, catalog: &str, snapshot: Snapshot) -> Result<String> {
        let next = format!("127.0.0.1:{}", 50061 + self.addresses.len());
        let address = self.addresses.entry(catalog.to_owned()).or_insert(next).clone();
        self.simulation.serve(&address, Arc::new(snapshot));
        Ok(address)
    }

    fn changes(&mut self, at_most: Duration) -> Result<Vec<Change>> {
        let deadline = self.simulation.now() + SignedDuration::try_from(at_most)?;
        loop {
            let changes = self.take_changes();
            if !changes.is_empty() {
                return Ok(changes);
            }
            if self.simulation.now() >= deadline || self.simulation.advance(deadline) == Progress::Quiet {
                self.simulation.sleep_until(deadline);
                return Ok(self.take_changes());
            }
        }
    }

    fn unfinished(&mut self) -> Result<Vec<String>> {
        Ok(self.simulation.replan().into_iter().map(|(key, action)| format!("{key}: {action}")).collect())
    }

    fn log(&self) -> String {
        let mut lines = self.log.clone();
        for (key, reasons) in self.simulation.planner().reasons() {
            lines.extend(reasons.iter().map(|reason| format!("{key}: {reason}")));
        }
        lines.join("\n")
    }
}
