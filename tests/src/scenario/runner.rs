//! Runs a scenario on an engine and records the objects of its cluster after every step.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use olm_core::api::object::{Gvk, ObjectRef, name, text};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::catalog::assemble;
use super::condition::Condition;
use super::engine::{Engine, Progress};
use super::format::{PatchSpec, Recording, Scenario, Step, StepSpec, seconds};
use super::normalise::Normaliser;
use super::python::{Form, dumps};
use super::store::{History, Store, ident, is_from_olm, is_stock, storage_version, strip};

/// The first port of the recorded catalogs.
const FIRST_CATALOG_PORT: usize = 50061;
/// How long OLM may take to process the initial objects of every scenario, and a catalog to be READY.
const START_TIMEOUT: Duration = Duration::from_secs(40);
/// How long nothing may change before a scenario starts.
const START_QUIET: Duration = Duration::from_millis(2500);

/// Objects by `Kind/namespace/name`.
type Objects = BTreeMap<String, Arc<Value>>;

/// The result of a step, not normalised.
struct RawStep {
    name: String,
    objects: Objects,
    events: Vec<Arc<Value>>,
    history: History,
    unsettled: bool,
    faults: Vec<String>,
}

/// A run of a scenario. A clone continues independently, if clones of the engine do.
#[derive(Clone)]
pub struct Run<'a, E> {
    engine: E,
    scenario: &'a Scenario,
    data: Option<&'a Path>,
    store: Store,
    /// The objects before the first step, once it has been reached.
    baseline: Option<Arc<Objects>>,
    /// The recorded address of each catalog, by the actual one.
    addresses: BTreeMap<String, String>,
    /// The folders that are served during the run.
    folders: Vec<Arc<TempDir>>,
    /// The completed steps; `None` until the catalogs are served.
    done: Option<Vec<Arc<RawStep>>>,
    /// The progress of the current step.
    within: Option<Within>,
}

/// The progress of a step whose actions are done.
#[derive(Clone, Default)]
struct Within {
    /// The number of conditions that were waited for.
    conditions: usize,
    /// The deadline of the next condition, or of the step.
    end: Option<Duration>,
    /// Since when nothing has changed, and the progress of the controllers then.
    quiet: Option<(Duration, Progress)>,
    faults: Vec<String>,
}

/// The result of [`Run::go_on`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// The step is still in progress.
    On,
    /// A step, the common preparation or the preparation of the scenario is complete.
    StepEnded,
    /// There is no step left.
    Nowhere,
}

impl<'a, E: Engine> Run<'a, E> {
    /// Creates a run. `data` is the data folder, for catalogs that name bundles of it.
    pub fn new(engine: E, scenario: &'a Scenario, data: Option<&'a Path>) -> Self {
        Self {
            engine,
            scenario,
            data,
            store: Store::default(),
            baseline: None,
            addresses: BTreeMap::new(),
            folders: vec![],
            done: None,
            within: None,
        }
    }

    /// Returns the engine.
    pub fn engine(&mut self) -> &mut E {
        &mut self.engine
    }

    /// Runs the rest of the scenario, and returns the results of all steps.
    ///
    /// # Errors
    /// As [`Run::go_on`].
    pub fn play(&mut self) -> Result<Recording> {
        while self.go_on()? != Went::Nowhere {}
        let mut recording = self.normalise(self.done.as_deref().unwrap_or_default())?;
        let unfinished = self.engine.unfinished()?;
        if let Some(last) = recording.steps.last_mut() {
            last.faults.extend(unfinished.into_iter().map(|action| format!("the controllers are not done: {action}")));
        }
        Ok(recording)
    }

    /// Executes the common preparation, the preparation of the scenario or the actions of the next step, or waits within it
    /// until something changes.
    ///
    /// # Errors
    /// A request of the scenario was refused, or the cluster does not reach the initial state.
    pub fn go_on(&mut self) -> Result<Went> {
        let Some(done) = &self.done else {
            if self.baseline.is_none() {
                self.start().context("before every scenario")?;
            } else {
                self.add_catalogs().context("before the first step")?;
                self.done = Some(vec![]);
            }
            return Ok(Went::StepEnded);
        };
        let scenario = self.scenario;
        let Some(step) = scenario.script.steps.get(done.len()) else { return Ok(Went::Nowhere) };
        let context = || format!("step {:?}", step.name);
        let Some(mut within) = self.within.take() else {
            let faults = self.begin(step).with_context(context)?;
            self.within = Some(Within { faults, ..Within::default() });
            return Ok(Went::On);
        };
        Ok(match self.step(step, &mut within).with_context(context)? {
            None => {
                self.within = Some(within);
                Went::On
            }
            Some(left) => {
                self.done.get_or_insert_default().push(Arc::new(left));
                Went::StepEnded
            }
        })
    }

    /// Returns whether it is in the same state as the other: the last steps ended equally, with the same normalised objects.
    ///
    /// # Errors
    /// The objects cannot be normalised.
    pub fn is_where(&self, other: &Self) -> Result<bool> {
        let end = |run: &Self| {
            let last = run.done.iter().flatten().last();
            (run.done.as_ref().map(Vec::len), last.map(|step| (step.unsettled, step.faults.clone())))
        };
        let (own, others) = (self.normaliser()?, other.normaliser()?);
        let objects = |run: &'_ Self, normaliser: &Normaliser| -> Objects {
            let lasting = run.store.objects().iter().filter(|(_, object)| !is_stock(object));
            lasting.map(|(id, object)| (normaliser.text(id), Arc::clone(object))).collect()
        };
        let (a, b) = (objects(self, &own), objects(other, &others));
        let is_same = |a: &Arc<Value>, b: &Arc<Value>| Arc::ptr_eq(a, b) || own.object(a) == others.object(b);
        let mut pairs = a.iter().zip(&b);
        Ok(end(self) == end(other) && a.len() == b.len() && pairs.all(|((m, a), (n, b))| m == n && is_same(a, b)))
    }

    /// Brings the cluster to the initial state of every scenario, and records that as the baseline.
    fn start(&mut self) -> Result<()> {
        for object in base_objects() {
            self.engine.apply(&object)?;
        }
        self.require(&base_conditions())?;
        self.store.touch(self.engine.now());
        let end = self.engine.now() + START_TIMEOUT;
        let mut quiet = None;
        while self.settle(START_QUIET, end, &mut quiet)?.is_none() {}
        self.baseline = Some(Arc::new(self.store.objects().clone()));
        self.store.take_history();
        Ok(())
    }

    fn add_catalogs(&mut self) -> Result<()> {
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
            let end = self.engine.now() + START_TIMEOUT;
            let holds = loop {
                if let Some(holds) = self.until(condition, end)? {
                    break holds;
                }
            };
            anyhow::ensure!(holds, "not reached: {condition}");
        }
        Ok(())
    }

    fn serve(&mut self, catalog: &str, directory: &str) -> Result<String> {
        let folder = assemble(&self.scenario.folder.join(directory), self.data)?;
        let address = self.engine.serve(catalog, folder.path())?;
        self.folders.push(Arc::new(folder));
        Ok(address)
    }

    /// Executes the actions of a step. Returns the unexpected results of its commands.
    fn begin(&mut self, step: &StepSpec) -> Result<Vec<String>> {
        for fault in &step.faults {
            self.engine.fault(fault)?;
        }
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
        let objects = self.scenario.folder.join("objects");
        let mut faults = Vec::new();
        for command in &step.run {
            let ended = self.engine.command(|kubeconfig| command.run(&objects, kubeconfig));
            faults.extend(ended.with_context(|| format!("kubectl olm {}", command.command))?);
        }
        self.store.touch(self.engine.now());
        Ok(faults)
    }

    /// Waits for the next change in a step. Returns the result of the step when it is complete.
    fn step(&mut self, step: &StepSpec, within: &mut Within) -> Result<Option<RawStep>> {
        while let Some(condition) = step.until.get(within.conditions) {
            let end = *within.end.get_or_insert_with(|| self.engine.now() + seconds(step.timeout));
            let Some(holds) = self.until(condition, end)? else { return Ok(None) };
            if !holds {
                within.faults.push(format!("not reached: {condition}"));
            }
            within.conditions += 1;
            within.end = None;
        }
        let end = *within.end.get_or_insert_with(|| self.engine.now() + seconds(step.limit));
        let Some(settled) = self.settle(seconds(step.settle), end, &mut within.quiet)? else { return Ok(None) };
        let (objects, events) = self.state()?;
        let (history, faults) = (self.store.take_history(), std::mem::take(&mut within.faults));
        Ok(Some(RawStep { name: step.name.clone(), objects, events, history, unsettled: !settled, faults }))
    }

    /// Reads new changes, because a step may name objects that the step itself or the controllers created a moment ago.
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
        let newest = self.store.newest(kind, namespace).with_context(|| format!("no {kind} found in {namespace}"))?;
        Ok(name(newest).to_owned())
    }

    fn gvk(&self, kind: &str, api_version: Option<&str>) -> Result<Gvk> {
        let api_version = api_version.map(str::to_owned).or_else(|| self.store.api_version(kind));
        Ok(Gvk::from_api_version(&api_version.with_context(|| format!("unknown kind {kind}"))?, kind))
    }

    /// Waits until something changes, at most for `at_most`.
    fn wait(&mut self, at_most: Duration) -> Result<()> {
        for change in self.engine.changes(at_most)? {
            self.store.take(change, self.engine.now());
        }
        Ok(())
    }

    /// Returns whether the condition holds before the end; `None` if it does not hold yet, but something has changed.
    fn until(&mut self, condition: &Condition, end: Duration) -> Result<Option<bool>> {
        if condition.holds(&self.store) {
            return Ok(Some(true));
        }
        let Some(left) = end.checked_sub(self.engine.now()).filter(|left| !left.is_zero()) else {
            return Ok(Some(false));
        };
        self.wait(left)?;
        Ok(None)
    }

    /// Returns whether nothing changed for long enough before the end, with the controllers having nothing to do; `None` if
    /// time has passed without a result. `quiet` contains the start of the quiet time, and the progress of the controllers
    /// then.
    fn settle(
        &mut self,
        recorded: Duration,
        end: Duration,
        quiet: &mut Option<(Duration, Progress)>,
    ) -> Result<Option<bool>> {
        let (now, changed_at, long) = (self.engine.now(), self.store.changed_at(), self.engine.quiet(recorded));
        let (mut since, before) = match quiet.take().filter(|(since, _)| *since == changed_at) {
            Some(known) => known,
            None => (changed_at, self.engine.progress()?),
        };
        let mut progress = before;
        if now >= since + long {
            progress = self.engine.progress()?;
            if progress.unsettled == 0 && progress == before {
                return Ok(Some(true));
            }
            // The controllers were working, which may still cause changes.
            self.store.touch(now);
            since = now;
        }
        if now >= end {
            return Ok(Some(false));
        }
        *quiet = Some((since, progress));
        self.wait((since + long).min(end).saturating_sub(now))?;
        Ok(None)
    }

    /// Returns all watched objects, including custom resources, except Kubernetes' own and those unchanged since before the
    /// first step, and OLM's events.
    fn state(&mut self) -> Result<(Objects, Vec<Arc<Value>>)> {
        let (all, baseline) = (self.store.objects(), self.baseline.clone().unwrap_or_default());
        let is_same = |before: &Arc<Value>, now: &Arc<Value>| Arc::ptr_eq(before, now) || strip(before) == strip(now);
        let is_new =
            |(id, object): &(&String, &Arc<Value>)| !baseline.get(*id).is_some_and(|before| is_same(before, object));
        let recorded = all.iter().filter(|(_, object)| !is_stock(object)).filter(is_new);
        let mut objects: Objects = recorded.map(|(id, object)| (id.clone(), object.clone())).collect();
        let events = all.iter().filter(|(id, o)| o["kind"] == "Event" && is_from_olm(o) && !baseline.contains_key(*id));
        let events = events.map(|(_, event)| event.clone()).collect();
        let crds: Vec<Arc<Value>> =
            objects.values().filter(|o| o["kind"] == "CustomResourceDefinition").cloned().collect();
        for crd in crds {
            let names = |field| text(&crd, &["spec", "names", field]);
            let version = storage_version(&crd).with_context(|| format!("{} stores no version", ident(&crd)))?;
            let resource = Gvk::new(text(&crd, &["spec", "group"]), version, names("kind"));
            for object in self.engine.list(&resource, names("plural"))? {
                objects.insert(ident(&object), Arc::new(object));
            }
        }
        Ok((objects, events))
    }

    fn normaliser(&self) -> Result<Normaliser> {
        Normaliser::new(self.store.uids(), self.store.generated(), &self.addresses)
    }

    /// Normalises all results, after all names are known.
    fn normalise(&self, raw: &[Arc<RawStep>]) -> Result<Recording> {
        let normaliser = self.normaliser()?;
        let mut known = BTreeSet::new();
        let steps = raw.iter().map(|step| {
            let mut events = BTreeMap::new();
            // The number of these depends on how fast pods start.
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
                name: step.name.clone(),
                objects: objects.map(|(id, object)| (normaliser.text(id), normaliser.object(object))).collect(),
                events: events.into_values().collect(),
                unsettled: step.unsettled,
                saw: saw.filter(|(_, states)| !states.is_empty()).collect(),
                faults: step.faults.clone(),
            }
        });
        Ok(Recording { unstable: vec![], steps: steps.collect() })
    }
}

/// Returns a Namespace.
pub(super) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Returns the initial objects of every scenario, apart from OLM's CRDs.
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

/// Returns the conditions under which OLM has processed them.
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
    use olm_core::catalog::Snapshot;

    use super::super::format::Script;
    use super::super::store::Change;
    use super::*;

    /// A slow cluster: the work of its controllers is observed with a delay.
    #[derive(Default)]
    struct Slow {
        now: Duration,
        /// The controllers are working until then.
        works_until: Duration,
        /// When the result of their work is observed.
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

        fn serve_snapshot(&mut self, _: &str, _: Snapshot) -> Result<String> {
            Ok(String::new())
        }

        fn changes(&mut self, at_most: Duration) -> Result<Vec<Change>> {
            let until = self.now + at_most;
            if self.shown || until < self.shows_at {
                self.now = until;
                return Ok(vec![]);
            }
            (self.now, self.shown) = (self.shows_at, true);
            Ok(vec![Change::Applied(namespace("late").into())])
        }

        fn progress(&mut self) -> Result<Progress> {
            let done = self.now >= self.works_until;
            Ok(Progress { actions: u64::from(done), unsettled: u64::from(!done) })
        }
    }

    /// Returns whether the run settled, whether the late change was observed, and when.
    fn settle(works_until: u64, shows_at: u64) -> (bool, bool, u64) {
        let (works_until, shows_at) = (Duration::from_secs(works_until), Duration::from_secs(shows_at));
        let engine = Slow { works_until, shows_at, ..Slow::default() };
        let script = Script { about: String::new(), interval: None, flags: vec![], catalogs: vec![], steps: vec![] };
        let scenario = Scenario { name: "slow".to_owned(), folder: "slow".into(), script };
        let (mut run, mut quiet) = (Run::new(engine, &scenario, None), None);
        let settled = loop {
            let settled = run.settle(Duration::from_secs(1), Duration::from_mins(1), &mut quiet).unwrap();
            if let Some(settled) = settled {
                break settled;
            }
        };
        let seen = run.store.objects().contains_key("Namespace/late");
        (settled, seen, run.engine.now().as_secs())
    }

    #[test]
    fn quiet_is_not_sufficient_while_the_controllers_are_working() {
        assert_eq!(settle(0, 100), (true, false, 1), "idle and quiet");
        assert_eq!(settle(7, 7), (true, true, 8), "long work is waited for");
        let (settled, seen, _) = settle(1, 2);
        assert_eq!((settled, seen), (true, true), "recent work is waited for until it is observed");
        assert_eq!(settle(100, 100), (false, false, 60), "but not forever");
    }
}
