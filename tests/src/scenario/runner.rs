//! Runs a scenario on an engine and records what its cluster holds after every step.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use olm_core::api::object::{Gvk, ObjectRef, name, text};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::catalog::assemble;
use super::condition::Condition;
use super::engine::Engine;
use super::format::{PatchSpec, Recording, Scenario, Step, StepSpec, seconds};
use super::normalise::Normaliser;
use super::python::{Form, dumps};
use super::store::{History, Store, ident, is_from_olm, is_stock, storage_version, strip};

/// The recorded catalogs were served from this port on.
const FIRST_CATALOG_PORT: usize = 50061;
/// How long OLM may take to process the objects that every scenario starts from, and a catalog to be READY.
const START_TIMEOUT: Duration = Duration::from_secs(40);
/// Every scenario starts after so long a quiet.
const START_QUIET: Duration = Duration::from_millis(2500);

/// Runs the scenario. `data` is the data folder, for catalogs that name bundles of it.
pub fn run_scenario(engine: &mut dyn Engine, scenario: &Scenario, data: Option<&Path>) -> Result<Recording> {
    let mut run = Run {
        engine,
        scenario,
        data,
        store: Store::default(),
        baseline: BTreeMap::new(),
        addresses: BTreeMap::new(),
        folders: vec![],
    };
    run.start().context("before the first step")?;
    let mut raw = Vec::new();
    for step in &scenario.script.steps {
        raw.push(run.step(step).with_context(|| format!("step {:?}", step.name))?);
    }
    let unfinished = run.engine.unfinished()?;
    if let Some(last) = raw.last_mut() {
        last.faults.extend(unfinished.into_iter().map(|action| format!("the controllers are not done: {action}")));
    }
    run.normalise(raw)
}

/// What a step left behind, as the cluster has it.
struct RawStep {
    name: String,
    objects: BTreeMap<String, Value>,
    events: Vec<Value>,
    history: History,
    unsettled: bool,
    faults: Vec<String>,
}

struct Run<'a> {
    engine: &'a mut dyn Engine,
    scenario: &'a Scenario,
    data: Option<&'a Path>,
    store: Store,
    /// What was there before the first step, stripped.
    baseline: BTreeMap<String, Value>,
    /// The recorded address for each that a catalog is served on.
    addresses: BTreeMap<String, String>,
    /// What is served; kept as long as the run.
    folders: Vec<TempDir>,
}

impl Run<'_> {
    /// Brings the cluster to where every scenario starts, takes that as the baseline, and adds the scenario's catalogs.
    fn start(&mut self) -> Result<()> {
        for object in base_objects() {
            self.engine.apply(&object)?;
        }
        self.require(&base_conditions())?;
        self.store.touch(self.engine.now());
        self.settle(START_QUIET, START_TIMEOUT)?;
        self.baseline = self.store.objects().iter().map(|(id, object)| (id.clone(), strip(object))).collect();
        self.store.take_history();

        let scenario = self.scenario;
        for (n, catalog) in scenario.script.catalogs.iter().enumerate() {
            let address = self.serve(&catalog.name, &catalog.directory)?;
            self.addresses.insert(address.clone(), format!("127.0.0.1:{}", FIRST_CATALOG_PORT + n));
            if !self.store.objects().contains_key(&format!("Namespace/{}", catalog.namespace)) {
                self.engine.apply(&namespace(&catalog.namespace))?;
            }
            let mut source = json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
                "metadata": {"name": catalog.name, "namespace": catalog.namespace},
                "spec": {"sourceType": "grpc", "address": address, "displayName": catalog.name},
            });
            if let Some(priority) = catalog.priority {
                source["spec"]["priority"] = json!(priority);
            }
            self.engine.apply(&source)?;
        }
        let ready = scenario.script.catalogs.iter().map(|catalog| Condition {
            kind: "CatalogSource".to_owned(),
            namespace: Some(catalog.namespace.clone()),
            name: Some(catalog.name.clone()),
            path: Some("status.connectionState.lastObservedState".to_owned()),
            equals: Some(json!("READY")),
            ..Condition::default()
        });
        self.require(&ready.collect::<Vec<_>>())
    }

    fn require(&mut self, conditions: &[Condition]) -> Result<()> {
        for condition in conditions {
            if !self.until(condition, START_TIMEOUT)? {
                bail!("not reached: {condition}");
            }
        }
        Ok(())
    }

    fn serve(&mut self, catalog: &str, directory: &str) -> Result<String> {
        let folder = assemble(&self.scenario.folder.join(directory), self.data)?;
        let address = self.engine.serve(catalog, folder.path())?;
        self.folders.push(folder);
        Ok(address)
    }

    fn step(&mut self, step: &StepSpec) -> Result<RawStep> {
        for file in &step.apply {
            for mut object in self.scenario.objects(file)? {
                if text(&object, &["kind"]) == "OperatorCondition"
                    && let Some(fields) = object.as_object_mut()
                {
                    fields.remove("status");
                }
                self.engine.apply(&object).with_context(|| format!("{file}: apply {}", ident(&object)))?;
            }
        }
        for served in &step.serve {
            self.serve(&served.name, &served.directory)?;
        }
        for patch in &step.patch {
            self.patch(patch)?;
        }
        for target in &step.delete {
            self.delete(target).with_context(|| format!("delete {target}"))?;
        }
        self.store.touch(self.engine.now());
        let mut faults = Vec::new();
        for condition in &step.until {
            if !self.until(condition, seconds(step.timeout))? {
                faults.push(format!("not reached: {condition}"));
            }
        }
        let settled = self.settle(seconds(step.settle), seconds(step.limit))?;
        let (objects, events) = self.state()?;
        let history = self.store.take_history();
        Ok(RawStep { name: step.name.clone(), objects, events, history, unsettled: !settled, faults })
    }

    /// What a step names may have been made a moment ago, by the step itself or by the controllers: takes in what has changed.
    fn catch_up(&mut self) -> Result<()> {
        self.wait(Duration::ZERO)
    }

    fn patch(&mut self, patch: &PatchSpec) -> Result<()> {
        self.catch_up()?;
        let name = match &patch.name {
            Some(name) => name.clone(),
            None => self.newest(&patch.kind, &patch.namespace)?,
        };
        let gvk = self.gvk(&patch.kind, patch.api_version.as_deref())?;
        let target = ObjectRef { gvk, namespace: patch.namespace.clone(), name };
        self.engine.patch(&target, patch).with_context(|| format!("patch {target}"))
    }

    fn delete(&mut self, target: &str) -> Result<()> {
        self.catch_up()?;
        let (kind, namespace, name) = match *target.split('/').collect::<Vec<_>>() {
            [kind, name] => (kind, "", name),
            [kind, namespace, name] => (kind, namespace, name),
            _ => bail!("expected Kind/name or Kind/namespace/name"),
        };
        let name = if name == "@last" { self.newest(kind, namespace)? } else { name.to_owned() };
        self.engine.delete(&ObjectRef { gvk: self.gvk(kind, None)?, namespace: namespace.to_owned(), name })
    }

    fn newest(&self, kind: &str, namespace: &str) -> Result<String> {
        let newest =
            self.store.newest(kind, namespace).with_context(|| format!("there is no {kind} in {namespace}"))?;
        Ok(name(newest).to_owned())
    }

    fn gvk(&self, kind: &str, api_version: Option<&str>) -> Result<Gvk> {
        let api_version = api_version.map(str::to_owned).or_else(|| self.store.api_version(kind));
        Ok(Gvk::from_api_version(&api_version.with_context(|| format!("unknown kind {kind}"))?, kind))
    }

    /// Lets time pass until something changes, at most for so long.
    fn wait(&mut self, at_most: Duration) -> Result<()> {
        for change in self.engine.changes(at_most)? {
            self.store.take(change, self.engine.now());
        }
        Ok(())
    }

    /// Does the condition hold in time?
    fn until(&mut self, condition: &Condition, timeout: Duration) -> Result<bool> {
        let end = self.engine.now() + timeout;
        while !condition.holds(&self.store) {
            let Some(left) = end.checked_sub(self.engine.now()).filter(|left| !left.is_zero()) else {
                return Ok(false);
            };
            self.wait(left)?;
        }
        Ok(true)
    }

    /// Is there a long enough quiet in time, after which the controllers have nothing to do?
    fn settle(&mut self, recorded: Duration, limit: Duration) -> Result<bool> {
        let quiet = self.engine.quiet(recorded);
        let end = self.engine.now() + limit;
        let mut changed_at = self.store.changed_at();
        let mut progress = self.engine.progress()?;
        loop {
            let now = self.engine.now();
            if self.store.changed_at() != changed_at {
                changed_at = self.store.changed_at();
                progress = self.engine.progress()?;
            }
            let quiet_at = changed_at + quiet;
            if now >= quiet_at {
                let before = std::mem::replace(&mut progress, self.engine.progress()?);
                if progress.unsettled == 0 && progress == before {
                    return Ok(true);
                }
                // They were at work: whether that changes anything will be seen.
                self.store.touch(now);
                changed_at = now;
            }
            if now >= end {
                return Ok(false);
            }
            self.wait((changed_at + quiet).min(end).saturating_sub(now))?;
        }
    }

    /// All that is watched and neither Kubernetes' own nor as before the first step, the custom resources of the CRDs among
    /// that, and OLM's events.
    fn state(&mut self) -> Result<(BTreeMap<String, Value>, Vec<Value>)> {
        let all = self.store.objects();
        let is_new =
            |(id, object): &(&String, &Value)| self.baseline.get(*id).is_none_or(|before| *before != strip(object));
        let recorded = all.iter().filter(|(_, object)| !is_stock(object)).filter(is_new);
        let mut objects: BTreeMap<_, _> = recorded.map(|(id, object)| (id.clone(), object.clone())).collect();
        let events =
            all.iter().filter(|(id, o)| o["kind"] == "Event" && is_from_olm(o) && !self.baseline.contains_key(*id));
        let events = events.map(|(_, event)| event.clone()).collect();
        let crds: Vec<Value> = objects.values().filter(|o| o["kind"] == "CustomResourceDefinition").cloned().collect();
        for crd in crds {
            let names = |field| text(&crd, &["spec", "names", field]);
            let version = storage_version(&crd).with_context(|| format!("{} stores no version", ident(&crd)))?;
            let resource = Gvk::new(text(&crd, &["spec", "group"]), version, names("kind"));
            for object in self.engine.list(&resource, names("plural"))? {
                objects.insert(ident(&object), object);
            }
        }
        Ok((objects, events))
    }

    /// Rewrites all that was seen, once all names are known.
    fn normalise(&self, raw: Vec<RawStep>) -> Result<Recording> {
        let normaliser = Normaliser::new(self.store.uids(), self.store.generated(), &self.addresses)?;
        let mut known = BTreeSet::new();
        let steps = raw.into_iter().map(|step| {
            let mut events = BTreeMap::new();
            // How many of these there are depends on how fast pods start.
            for event in step.events.iter().filter(|event| event["reason"] != "InstallWaiting") {
                let event = normaliser.event(event);
                let id = dumps(&event, Form::Spaced);
                if known.insert(id.clone()) {
                    events.insert(id, event);
                }
            }
            let objects = step.objects.iter();
            let saw = step.history.iter().map(|(id, states)| {
                let states = states.iter().filter(|state| state[1] != "InstallWaiting");
                (normaliser.text(id), states.map(|state| normaliser.walk(state)).collect::<Vec<_>>())
            });
            Step {
                name: step.name,
                objects: objects.map(|(id, object)| (normaliser.text(id), normaliser.object(object))).collect(),
                events: events.into_values().collect(),
                unsettled: step.unsettled,
                saw: saw.filter(|(_, states)| !states.is_empty()).collect(),
                faults: step.faults,
            }
        });
        Ok(Recording { unstable: vec![], steps: steps.collect() })
    }
}

/// A Namespace.
pub(super) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// What is there before every scenario, beside OLM's CRDs.
fn base_objects() -> [Value; 5] {
    let group = |namespace: &str, name: &str| {
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": name, "namespace": namespace},
        })
    };
    let mut own = group("olm", "olm-operators");
    own["spec"] = json!({"targetNamespaces": ["olm"]});
    [
        namespace("olm"),
        namespace("operators"),
        json!({"apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": {"name": "cluster"}}),
        group("operators", "global-operators"),
        own,
    ]
}

/// OLM has processed them when these hold.
fn base_conditions() -> Vec<Condition> {
    let groups = [("operators", "global-operators"), ("olm", "olm-operators")];
    let processed = groups.map(|(namespace, name)| Condition {
        kind: "OperatorGroup".to_owned(),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        path: Some("status.lastUpdated".to_owned()),
        ..Condition::default()
    });
    let has_roles = groups.map(|(_, name)| Condition {
        kind: "ClusterRole".to_owned(),
        path: Some("metadata.labels.olm\\.owner".to_owned()),
        equals: Some(json!(name)),
        ..Condition::default()
    });
    let config = Condition {
        kind: "OLMConfig".to_owned(),
        name: Some("cluster".to_owned()),
        path: Some("status.conditions".to_owned()),
        ..Condition::default()
    };
    processed.into_iter().chain(has_roles).chain([config]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::engine::Progress;
    use super::super::format::Script;
    use super::super::store::Change;
    use super::*;

    /// A slow cluster: nothing is seen of what its controllers work on, until the last of it shows.
    #[derive(Default)]
    struct Slow {
        now: Duration,
        /// They are at work until then.
        works_until: Duration,
        /// When what they did is seen.
        shows_at: Duration,
        shown: bool,
    }

    impl Engine for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }

        fn now(&self) -> Duration {
            self.now
        }

        fn apply(&mut self, _: &Value) -> Result<()> {
            Ok(())
        }

        fn patch(&mut self, _: &ObjectRef, _: &PatchSpec) -> Result<()> {
            Ok(())
        }

        fn delete(&mut self, _: &ObjectRef) -> Result<()> {
            Ok(())
        }

        fn list(&mut self, _: &Gvk, _: &str) -> Result<Vec<Value>> {
            Ok(vec![])
        }

        fn serve(&mut self, _: &str, _: &Path) -> Result<String> {
            Ok(String::new())
        }

        fn changes(&mut self, at_most: Duration) -> Result<Vec<Change>> {
            let until = self.now + at_most;
            if self.shown || until < self.shows_at {
                self.now = until;
                return Ok(vec![]);
            }
            (self.now, self.shown) = (self.shows_at, true);
            Ok(vec![Change::Applied(namespace("late"))])
        }

        fn progress(&mut self) -> Result<Progress> {
            let done = self.now >= self.works_until;
            Ok(Progress { actions: u64::from(done), unsettled: u64::from(!done) })
        }
    }

    /// Was what shows late seen, and when was all settled?
    fn settle(works_until: u64, shows_at: u64) -> (bool, bool, u64) {
        let (works_until, shows_at) = (Duration::from_secs(works_until), Duration::from_secs(shows_at));
        let mut engine = Slow { works_until, shows_at, ..Slow::default() };
        let script = Script { about: String::new(), interval: None, catalogs: vec![], steps: vec![] };
        let scenario = Scenario { name: "slow".to_owned(), folder: "slow".into(), script };
        let (store, baseline, addresses) = (Store::default(), BTreeMap::new(), BTreeMap::new());
        let mut run =
            Run { engine: &mut engine, scenario: &scenario, data: None, store, baseline, addresses, folders: vec![] };
        let settled = run.settle(Duration::from_secs(1), Duration::from_mins(1)).unwrap();
        let seen = run.store.objects().contains_key("Namespace/late");
        (settled, seen, run.engine.now().as_secs())
    }

    #[test]
    fn quiet_is_not_enough_while_the_controllers_are_at_work() {
        assert_eq!(settle(0, 100), (true, false, 1), "idle and quiet");
        assert_eq!(settle(7, 7), (true, true, 8), "what took long is waited for");
        let (settled, seen, _) = settle(1, 2);
        assert_eq!((settled, seen), (true, true), "what was just done is waited for until it shows");
        assert_eq!(settle(100, 100), (false, false, 60), "but not for ever");
    }
}
