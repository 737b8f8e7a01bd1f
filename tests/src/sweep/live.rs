//! Cases on a real cluster: several at once, or one after the other with all objects deleted in between.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use olm_core::api::crd;
use olm_core::api::object::{Gvk, ObjectRef, at, name};
use serde_json::Value;

use super::case::{self, Case, Outcome, View, settle};
use super::catalog::Served;
use crate::scenario::cluster::ClusterEngine;
use crate::scenario::engine::Engine;
use crate::scenario::store::ident;

/// How long the deletion of namespaces and CustomResourceDefinitions may take.
const CLEANING: Duration = Duration::from_mins(2);

/// How long the first resolution may take to start: it reads a catalog of all bundles, and debug builds are slow.
const READING: Duration = Duration::from_mins(1);
/// How long installs and upgrades may take until the cluster is as expected.
const UPGRADING: Duration = Duration::from_mins(5);

/// A cluster with a single READY catalog.
pub struct Live {
    engine: ClusterEngine,
    view: View,
    before: BTreeSet<String>,
    /// Its folder has the bundles' objects.
    catalog: Served,
}

impl Live {
    /// Starts a cluster in which the APIs of pods are not served, as in the recordings.
    pub fn start(catalog: Served) -> Result<Self> {
        Self::start_on(ClusterEngine::start_plain()?, catalog)
    }

    /// Starts a cluster in which pods answer the API server. `flags` are those of the controllers.
    pub fn start_with_pod_network(catalog: Served, flags: &[String]) -> Result<Self> {
        Self::start_on(ClusterEngine::start_with_pod_network(flags)?, catalog)
    }

    fn start_on(mut engine: ClusterEngine, catalog: Served) -> Result<Self> {
        let mut view = View::default();
        case::serve(&mut engine, &mut view, case::CATALOG, &catalog)?;
        let before = view.all().map(ident).collect();
        Ok(Self { engine, view, before, catalog })
    }

    /// Serves other content as the catalog.
    pub fn serve(&mut self, catalog: Served) -> Result<()> {
        case::serve(&mut self.engine, &mut self.view, case::CATALOG, &catalog)?;
        self.catalog = catalog;
        Ok(())
    }

    /// Returns the names of the objects of the cluster before the first installation.
    pub fn before(&self) -> &BTreeSet<String> {
        &self.before
    }

    /// Returns all objects of the watched kinds and of `others`, which are given with their plurals.
    pub fn objects(&mut self, others: &[(Gvk, String)]) -> Result<Vec<Value>> {
        let mut objects: Vec<Value> = self.view.all().cloned().collect();
        for (gvk, plural) in others {
            objects.extend(self.engine.list(gvk, plural)?);
        }
        Ok(objects)
    }

    /// Installs all cases at once.
    pub fn play(&mut self, cases: &[Case]) -> Result<Vec<Outcome>> {
        for case in cases {
            case.begin(&mut self.engine)?;
        }
        // The controllers read the catalog first; nothing changes until then.
        let is_begun = |view: &View| cases.iter().all(|case| case.end(view, &case.install).has_begun());
        let end = self.engine.now() + READING;
        while !is_begun(&self.view) && self.engine.now() < end {
            let left = end.saturating_sub(self.engine.now());
            self.view.wait(&mut self.engine, left)?;
        }
        let is_done = |view: &View| cases.iter().all(|case| case.end(view, &case.install).is_success());
        settle(&mut self.engine, &mut self.view, is_done)?;
        let outcome = |case: &Case| Outcome {
            install: case.end(&self.view, &case.install),
            because: case.because(&self.view),
            upgrade: None,
        };
        Ok(cases.iter().map(outcome).collect())
    }

    /// Begins all installations at once.
    pub fn begin(&mut self, cases: &[Case]) -> Result<()> {
        cases.iter().try_for_each(|case| case.begin(&mut self.engine))
    }

    /// Waits until the cluster is as expected, or the time is up.
    pub fn wait_until(&mut self, is_done: impl Fn(&View) -> bool) -> Result<()> {
        let end = self.engine.now() + UPGRADING;
        while !is_done(&self.view) && self.engine.now() < end {
            let left = end.saturating_sub(self.engine.now());
            self.view.wait(&mut self.engine, left)?;
        }
        Ok(())
    }

    /// Returns the state of the cluster.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Calls `run` with an administrator's kubeconfig.
    pub fn command<T>(&mut self, run: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        self.engine.command(run)
    }

    /// Returns the controllers' log.
    pub fn log(&self) -> String {
        self.engine.log()
    }

    /// Deletes an object, unless it does not exist any more.
    fn delete(&mut self, target: &ObjectRef) -> Result<()> {
        match self.engine.delete(target) {
            Err(error) if matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404) => {
                Ok(())
            }
            result => result.with_context(|| format!("delete {target}")),
        }
    }

    /// Returns the state of the deletion of objects.
    fn deletions(&self, targets: &[ObjectRef]) -> String {
        let state = |target: &ObjectRef| {
            let object = self.view.objects_of(&target.gvk.kind, "").find(|object| name(object) == target.name)?;
            let (metadata, conditions) = (at(object, &["metadata"]), at(object, &["status", "conditions"]));
            Some(format!(
                "{} {}: deletionTimestamp {}, finalizers {}, conditions {conditions}",
                target.gvk.kind,
                target.name,
                at(metadata, &["deletionTimestamp"]),
                at(metadata, &["finalizers"]),
            ))
        };
        targets.iter().filter_map(state).collect::<Vec<_>>().join("\n")
    }

    /// Deletes the cases' namespaces, and every CustomResourceDefinition that is not OLM's.
    pub fn clean(&mut self, cases: &[Case]) -> Result<()> {
        let namespaces = cases.iter().flat_map(|case| [case.namespace.clone(), case.other()]);
        let namespaces: BTreeSet<String> = namespaces.collect();
        let own: BTreeSet<String> = crd::all().iter().map(|crd| name(crd).to_owned()).collect();
        let left = |view: &View, kind: &'static str| -> Vec<ObjectRef> {
            let is_ours = |called: &str| match kind {
                "Namespace" => namespaces.contains(called),
                _ => !own.contains(called),
            };
            view.objects_of(kind, "").filter(|object| is_ours(name(object))).map(ObjectRef::from_object).collect()
        };
        // The controllers delete the objects of a CSV only while its namespace exists.
        for kind in ["Subscription", "ClusterServiceVersion"] {
            for namespace in &namespaces {
                let targets: Vec<ObjectRef> =
                    self.view.objects_of(kind, namespace).map(ObjectRef::from_object).collect();
                for target in &targets {
                    self.delete(target)?;
                }
            }
        }
        for kind in ["Namespace", "CustomResourceDefinition"] {
            let targets = left(&self.view, kind);
            for target in &targets {
                self.delete(target)?;
            }
            let end = self.engine.now() + CLEANING;
            while !left(&self.view, kind).is_empty() {
                let time = end.saturating_sub(self.engine.now());
                ensure!(
                    !time.is_zero(),
                    "not deleted:\n{}\n{}",
                    self.deletions(&left(&self.view, kind)),
                    self.engine.log()
                );
                self.view.wait(&mut self.engine, time)?;
            }
        }
        Ok(())
    }
}
