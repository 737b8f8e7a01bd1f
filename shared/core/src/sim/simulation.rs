//! A complete cluster in memory: API server, Kubernetes' controllers, OLM's controllers, registries, and a virtual clock.
//!
//! ```text
//!   user writes -> ApiServer --watch--> Planner --Work--> ApiServer ... until neither has anything to do
//!                     ^ step: garbage collection, Deployments, CRDs      then the clock jumps to the next wakeup
//! ```
//!
//! *Guarantees*: the same calls produce the same objects and the same timeline. Kubernetes' own controllers run only when OLM's
//! controllers have nothing to do, so that every intermediate state is observed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::authorize::authorize;
use super::{ApiServer, Patch, Preconditions, Propagation, WatchEvent, certificate};
use crate::api::catalog_source::Target;
use crate::api::object::{self, Gvk, ObjectRef};
use crate::api::status::Status;
use crate::bundle::Unpacked;
use crate::catalog::{self, Snapshot};
use crate::plan::{self, Action, Key, Question, Verb};
use crate::planner::{Answer, Event, Failure, Planner, Work, answer};
use crate::settings::Settings;
use crate::structural::{SchemaCheck, SchemaCheckResult, SchemaChecker};
use crate::world::{CatalogFact, ConnectionState, Fact, FactKey, sendable, trimmed};

/// Duration of a request on the virtual clock.
const REQUEST: SignedDuration = SignedDuration::from_millis(2);
/// The version that the simulated API server reports.
pub const SERVER_VERSION: &str = "v1.36.3";

/// The writer of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The user: the given objects, or a step of a scenario.
    User,
    /// One of OLM's controllers.
    Controller(Key),
    /// Kubernetes' own controllers.
    Kubernetes,
}

/// One entry of the timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    /// Time on the virtual clock.
    pub at: Timestamp,
    /// Who made the change.
    pub actor: Actor,
    /// The change.
    pub change: WatchEvent,
}

/// When the controllers' process crashes and restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Crashes {
    /// Never.
    #[default]
    Never,
    /// After every action; after one that is refused or changes nothing only the first time, so that the process can proceed.
    AfterEvery,
    /// Once, after this number of actions.
    After(usize),
}

/// An injected error of the API server that does not follow from its objects, as from an admission webhook, the network or etcd.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The verb of the controllers' requests that fail,
    pub verb: Verb,
    /// the kind of their object
    pub kind: String,
    /// and its name.
    pub name: String,
    /// The error.
    pub status: Status,
    /// How many times; `None` means always.
    pub times: Option<u32>,
}

/// The effect of one call of [`Simulation::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The work of one key was executed, or Kubernetes' controllers changed something.
    Acted,
    /// The clock jumped to the time of the next event.
    Waited,
    /// There is nothing left to do before the deadline.
    Quiet,
}

/// A simulated cluster. A clone continues independently from the state at which it was made.
#[derive(Clone)]
pub struct Simulation {
    api: ApiServer,
    planner: Planner,
    settings: Settings,
    now: Timestamp,
    /// The version that the API server reports.
    version: String,
    /// The catalogs served at each address.
    registries: BTreeMap<String, Arc<Snapshot>>,
    /// Catalogs of local directories, by namespace and name.
    local: BTreeMap<(String, String), Arc<Snapshot>>,
    /// The content of images, by reference.
    images: BTreeMap<String, Arc<Snapshot>>,
    /// The results of unpacking bundle images, by reference.
    bundles: BTreeMap<String, Unpacked>,
    /// The results of schema checks for custom resources that are not part of the simulation.
    fits: BTreeMap<FactKey, SchemaCheckResult>,
    /// The catalog source that is read for each CatalogSource.
    connected: BTreeMap<(String, String), Target>,
    happenings: Vec<Happening>,
    refusals: Vec<(Key, Action, Status)>,
    actions: usize,
    crashes: Crashes,
    /// Actions without effect after which the process has already crashed.
    deadly: BTreeSet<(Key, Verb, ObjectRef)>,
    faults: Vec<Fault>,
    /// Kinds of custom resources, by group and kind, with failed schema checks: a result is valid until one of the resources changes.
    unfit: BTreeMap<(String, String), FactKey>,
    /// Whether actions of one batch are executed in reverse order.
    backwards: bool,
}

impl Simulation {
    /// Creates a simulation around an API server. Its clock starts at `now`.
    pub fn new(api: ApiServer, settings: Settings, now: Timestamp) -> Self {
        let planner = Planner::new(settings.clone());
        let mut simulation = Self {
            api,
            planner,
            settings,
            now,
            version: SERVER_VERSION.to_owned(),
            registries: BTreeMap::new(),
            local: BTreeMap::new(),
            images: BTreeMap::new(),
            bundles: BTreeMap::new(),
            fits: BTreeMap::new(),
            connected: BTreeMap::new(),
            happenings: Vec::new(),
            refusals: Vec::new(),
            actions: 0,
            crashes: Crashes::Never,
            deadly: BTreeSet::new(),
            faults: Vec::new(),
            unfit: BTreeMap::new(),
            backwards: false,
        };
        simulation.restart();
        simulation
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the API server with its objects.
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// Returns the planner, with its World and reasons.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// Sets when the controllers' process crashes from now on.
    pub fn crash(&mut self, crashes: Crashes) {
        self.crashes = crashes;
    }

    /// Executes the actions of each batch in reverse order from now on. The result must be the same.
    pub fn turn_batches(&mut self) {
        self.backwards = true;
    }

    /// Makes the API server refuse requests of the controllers from now on.
    pub fn refuse(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Returns the number of actions executed so far, without Events and reads, because a crash cannot leave these half done.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// Returns the timeline since it was last taken.
    pub fn happenings(&self) -> &[Happening] {
        &self.happenings
    }

    /// Takes the timeline since the last call.
    pub fn take_happenings(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.happenings)
    }

    /// Takes the refused requests since the last call.
    pub fn take_refusals(&mut self) -> Vec<(Key, Action, Status)> {
        std::mem::take(&mut self.refusals)
    }

    /// Makes the API server report a version other than [`SERVER_VERSION`].
    pub fn report_version(&mut self, version: &str) {
        version.clone_into(&mut self.version);
        let fact = Fact::ServerVersion(version.to_owned());
        self.planner.observe(Event::Learned(FactKey::ServerVersion, Some(fact)));
    }

    /// Serves a catalog at an address, replacing any previous one. Clients notice immediately.
    pub fn serve(&mut self, address: &str, snapshot: Arc<Snapshot>) {
        self.registries.insert(address.to_owned(), snapshot);
        self.read_catalogs_of(|_, target| matches!(target, Target::Address(known) if known == address));
    }

    /// Sets the content of an image, replacing any previous content. Catalogs notice at their next poll.
    pub fn give_image(&mut self, reference: &str, snapshot: Arc<Snapshot>) {
        self.images.insert(reference.to_owned(), snapshot);
    }

    /// Sets the result of unpacking a bundle image from now on.
    pub fn give_bundle(&mut self, reference: &str, unpacked: Unpacked) {
        self.bundles.insert(reference.to_owned(), unpacked);
    }

    /// Sets the result of a schema check (by its digest) of custom resources from now on, independent of the stored resources.
    pub fn give_fit(&mut self, crd: &str, digest: &str, found: SchemaCheckResult) {
        self.fits.insert(FactKey::SchemaCheck(crd.to_owned(), digest.to_owned()), found);
    }

    /// Adds the catalog of a local directory under the name of a CatalogSource.
    pub fn add_local_catalog(&mut self, namespace: &str, name: &str, snapshot: Arc<Snapshot>) {
        self.local.insert((namespace.to_owned(), name.to_owned()), snapshot);
        self.learn_locals();
    }

    /// Executes a request of a user at the current virtual time.
    pub fn ask<T>(&mut self, request: impl FnOnce(&mut ApiServer, Timestamp) -> T) -> T {
        let answer = request(&mut self.api, self.now);
        self.watch(&Actor::User);
        answer
    }

    /// Applies an object as a user (server-side apply; an object without a name is created).
    ///
    /// # Errors
    /// The simulated API server refuses the request.
    pub fn apply(&mut self, object: Value) -> Result<Value, Status> {
        if object::name(&object).is_empty() {
            return self.ask(|api, now| api.create(object, now));
        }
        let target = ObjectRef::from_object(&object);
        self.patch(&target, Patch::Apply { object, manager: "user".to_owned(), force: true }, None)
    }

    /// Restores an object of a cluster's state, including its status.
    ///
    /// # Errors
    /// The simulated API server refuses the object or its status.
    pub fn restore(&mut self, object: Value) -> Result<Value, Status> {
        let status = object::at(&object, &["status"]).clone();
        let target = ObjectRef::from_object(&object);
        let mut result = self.apply(object)?;
        if !status.is_null() {
            let patch = Patch::Merge(json!({ "status": status }));
            match self.patch(&target, patch, Some("status")) {
                // Kinds without the subresource stored the status with the object.
                Err(refusal) if refusal.is_not_found() => {}
                answer => result = answer?,
            }
        }
        Ok(result)
    }

    /// Runs only those of Kubernetes' own controllers that establish CRDs.
    pub fn establish(&mut self) {
        while self.api.step(self.now) {
            self.watch(&Actor::Kubernetes);
        }
    }

    /// Patches an object as a user.
    ///
    /// # Errors
    /// The simulated API server refuses the request, or the object does not exist.
    pub fn patch(&mut self, target: &ObjectRef, patch: Patch, subresource: Option<&str>) -> Result<Value, Status> {
        self.ask(|api, now| api.patch(target, patch, subresource, now))
    }

    /// Deletes an object as a user.
    ///
    /// # Errors
    /// The simulated API server refuses the request, or the object does not exist.
    pub fn delete(&mut self, target: &ObjectRef) -> Result<Option<Value>, Status> {
        self.ask(|api, now| api.delete(target, &Preconditions::default(), Propagation::Background, now))
    }

    /// Executes the next event before `deadline`: the work of one key, one step of Kubernetes' controllers, or a jump of the clock.
    pub fn advance(&mut self, deadline: Timestamp) -> Progress {
        if let Some(work) = self.planner.next(self.now) {
            self.execute(work, usize::MAX);
            return Progress::Acted;
        }
        if self.api.step(self.now) {
            self.watch(&Actor::Kubernetes);
            return Progress::Acted;
        }
        let wakeup = [self.planner.wakeup(), self.api.next_wakeup()].into_iter().flatten().min();
        match wakeup {
            Some(at) if at <= deadline => {
                self.now = self.now.max(at);
                Progress::Waited
            }
            _ => Progress::Quiet,
        }
    }

    /// Advances the clock to a time before which nothing is due.
    pub fn sleep_until(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
    }

    /// Returns the work that controllers restarted with only the API server's objects would plan: none if everything is done.
    pub fn replan(&self) -> Vec<(Key, String)> {
        let mut fresh = Self::new(self.api.clone(), self.settings.clone(), self.now);
        fresh.report_version(&self.version);
        fresh.registries.clone_from(&self.registries);
        fresh.local.clone_from(&self.local);
        fresh.images.clone_from(&self.images);
        fresh.bundles.clone_from(&self.bundles);
        fresh.fits.clone_from(&self.fits);
        fresh.learn_locals();
        let mut unfinished = Vec::new();
        while let Some(work) = fresh.planner.next(fresh.now) {
            let (asks, writes): (Vec<_>, Vec<_>) = work.actions.iter().partition(|a| matches!(a, Action::Ask(_)));
            for action in asks {
                // Reconnecting does not change the cluster.
                let _ = fresh.request(action);
            }
            unfinished
                .extend(writes.iter().map(|a| (work.key.clone(), format!("{} {}", a.verb().as_str(), a.target()))));
            if writes.is_empty() {
                fresh.planner.done(&work.key, &work.actions, Vec::new(), fresh.now);
            } else {
                fresh.planner.park(&work.key);
            }
        }
        unfinished
    }

    /// Advances until nothing is left to do, or `limit` has passed. Returns `true` if nothing is due for at least another `limit`.
    pub fn settle(&mut self, limit: SignedDuration) -> bool {
        self.settle_while(limit, |_| {})
    }

    /// Does the same as [`Simulation::settle`], and calls `look` after every step.
    pub fn settle_while(&mut self, limit: SignedDuration, mut look: impl FnMut(&mut Self)) -> bool {
        let deadline = self.now + limit;
        while self.now <= deadline {
            let progress = self.advance(deadline);
            look(self);
            if progress == Progress::Quiet {
                let wakeup = [self.planner.wakeup(), self.api.next_wakeup()].into_iter().flatten().min();
                return wakeup.is_none_or(|at| at > deadline + limit);
            }
        }
        false
    }

    /// Plans the next work and executes its first `actions` actions, as a process that is killed then. `false` if there was no work.
    pub fn execute_partly(&mut self, actions: usize) -> bool {
        let Some(work) = self.planner.next(self.now) else { return false };
        self.execute(work, actions);
        true
    }

    /// Restarts the controllers, which then know only the API server's state.
    pub fn restart(&mut self) {
        self.planner = Planner::new(self.settings.clone());
        self.connected.clear();
        self.report_version(&self.version.clone());
        self.watch(&Actor::Kubernetes);
        for object in self.api.iter() {
            self.planner.observe(Event::Applied(trimmed(&object)));
        }
        self.learn_locals();
    }

    fn execute(&mut self, work: Work, limit: usize) {
        let Work { key, actions, order } = work;
        let mut succeeded = BTreeSet::new();
        let mut failures = Vec::new();
        let mut left = limit;
        for batch in order.batches(actions.len()) {
            if !failures.is_empty() {
                break;
            }
            let mut together: Vec<(usize, &Action)> = batch.clone().zip(&actions[batch]).collect();
            if self.backwards {
                together.reverse();
            }
            together.truncate(left);
            left -= together.len();
            if self.execute_batch(&key, &together, &mut succeeded, &mut failures) {
                return self.restart();
            }
        }
        let actions = actions.into_iter().enumerate();
        let succeeded: Vec<Action> = actions.filter(|(n, _)| succeeded.contains(n)).map(|(_, action)| action).collect();
        self.planner.done(&key, &succeeded, failures, self.now);
    }

    /// Executes actions that may be in flight together, each with its index. Returns `true` if the process crashed meanwhile.
    fn execute_batch(
        &mut self,
        key: &Key,
        together: &[(usize, &Action)],
        succeeded: &mut BTreeSet<usize>,
        failures: &mut Vec<Failure>,
    ) -> bool {
        let actor = Actor::Controller(key.clone());
        for &(n, action) in together {
            self.now += REQUEST;
            self.actions += usize::from(action.writes());
            let result = self.request(action);
            let is_about_secret = || action.target().gvk.kind == "Secret";
            let result = result.map_err(|refusal| if is_about_secret() { refusal.about_secret() } else { refusal });
            let effect = self.watch(&actor);
            if self.dies(key, action, effect) {
                return true;
            }
            // The watch event arrived before the response.
            let is_known = |object: &Value| self.planner.world().knows_state(object);
            if !matches!(&result, Ok(Some(object)) if is_known(object)) {
                self.hear(action, &result);
            }
            match result {
                Ok(_) => drop(succeeded.insert(n)),
                Err(status) => {
                    self.refusals.push((key.clone(), action.clone(), status.clone()));
                    failures.push(Failure { action: action.clone(), status });
                }
            }
        }
        false
    }

    /// Passes a response to the planner.
    fn hear(&mut self, action: &Action, result: &Result<Option<Value>, Status>) {
        match answer(action, result) {
            Answer::Observed(event) => {
                self.planner.observe(event);
            }
            Answer::Look(target) => {
                let seen = match self.api.get(&target) {
                    Some(object) => Event::Applied(trimmed(object)),
                    None => Event::Absent(target, String::new()),
                };
                self.planner.observe(seen);
            }
            Answer::Nothing => {}
        }
    }

    /// Returns whether the process crashes after this action.
    fn dies(&mut self, key: &Key, action: &Action, effect: bool) -> bool {
        match self.crashes {
            Crashes::Never => false,
            // A process that crashes after every read never receives a response.
            _ if !action.writes() => false,
            Crashes::After(actions) => actions == self.actions,
            Crashes::AfterEvery => effect || self.deadly.insert((key.clone(), action.verb(), action.target())),
        }
    }

    fn fault(&mut self, action: &Action) -> Option<Status> {
        let (verb, target) = (action.verb(), action.target());
        let is_it =
            |f: &&mut Fault| (f.verb, &f.kind, &f.name) == (verb, &target.gvk.kind, &target.name) && f.times != Some(0);
        let fault = self.faults.iter_mut().find(is_it)?;
        fault.times = fault.times.map(|times| times - 1);
        Some(fault.status.clone())
    }

    fn request(&mut self, action: &Action) -> Result<Option<Value>, Status> {
        if let Some(refusal) = self.fault(action) {
            return Err(refusal);
        }
        let now = self.now;
        match action {
            Action::As(account, action) => {
                authorize(&self.api, self.planner.world(), account, action)?;
                self.request(action)
            }
            Action::Certify(certificate, action) => {
                let action = action.with_certificate(certificate::issue(certificate));
                self.request(&action)
            }
            Action::Create(object) => self.api.create(object.clone(), now).map(Some),
            Action::Update(object) | Action::UpdateStatus(object) => {
                let part = matches!(action, Action::UpdateStatus(_)).then_some("status");
                self.api.update(sendable(object).into_owned(), part, now).map(Some)
            }
            Action::Patch { target, uid, patch } => {
                let mut patch = patch.clone();
                object::map_mut(&mut patch, &["metadata"]).insert("uid".to_owned(), uid.as_str().into());
                self.api.patch(target, Patch::Merge(patch), None, now).map(Some)
            }
            Action::Delete { target, uid, propagation } => {
                let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
                let propagation = match propagation {
                    plan::Propagation::Background => Propagation::Background,
                    plan::Propagation::Foreground => Propagation::Foreground,
                    plan::Propagation::Orphan => Propagation::Orphan,
                };
                match self.api.delete(target, &preconditions, propagation, now) {
                    Err(refusal) if refusal.is_not_found() => Ok(None),
                    result => result,
                }
            }
            Action::Emit(emit) => {
                // As in the live shell, an event that cannot be written blocks nothing.
                let _ = self.api.create(emit.to_event(now), now);
                Ok(None)
            }
            Action::Ask(Question::Connect { namespace, name, target }) => {
                self.connected.insert((namespace.clone(), name.clone()), target.clone());
                self.read_catalog(namespace, name);
                Ok(None)
            }
            Action::Ask(Question::Refresh { namespace, name }) => {
                self.read_catalog(namespace, name);
                Ok(None)
            }
            Action::Ask(Question::CheckSchema(question)) => {
                self.check_schema(question);
                Ok(None)
            }
            Action::Ask(Question::Discover { group, version }) => {
                self.discover(group, version);
                Ok(None)
            }
            Action::Ask(Question::Disconnect { namespace, name }) => {
                self.connected.remove(&(namespace.clone(), name.clone()));
                self.planner.observe(Event::Learned(FactKey::Catalog(namespace.clone(), name.clone()), None));
                Ok(None)
            }
            Action::Ask(Question::Unpack { image, begun }) => {
                let nothing = || {
                    let reference = &image.image;
                    Unpacked::NotGiven(format!(
                        "the content of image {reference} was not provided; --simulate pulls no images"
                    ))
                };
                let unpacked = self.bundles.get(&image.image).cloned().unwrap_or_else(nothing);
                let fact = Fact::Bundle(begun.clone().end(now, unpacked));
                self.planner.observe(Event::Learned(FactKey::Bundle(image.clone()), Some(fact)));
                Ok(None)
            }
            Action::Ask(Question::Forget(image)) => {
                self.planner.observe(Event::Learned(FactKey::Bundle(image.clone()), None));
                Ok(None)
            }
        }
    }

    /// Passes the discovery result of a group version to the planner.
    fn discover(&mut self, group: &str, version: &str) {
        let fact = Fact::Discovery(self.api.discover(group, version));
        let key = FactKey::Discovery(group.to_owned(), version.to_owned());
        self.planner.observe(Event::Learned(key, Some(fact)));
    }

    /// Passes the result of a schema check of custom resources to the planner: the configured result, or that of the stored resources.
    fn check_schema(&mut self, question: &SchemaCheck) {
        let key = FactKey::SchemaCheck(question.crd.clone(), question.digest());
        let found = match self.fits.get(&key) {
            Some(given) => SchemaCheckResult { at: self.now, ..given.clone() },
            None => self.fitting(question),
        };
        if found.invalid > 0 {
            self.unfit.insert((question.group.clone(), question.kind.clone()), key.clone());
        }
        self.planner.observe(Event::Learned(key, Some(Fact::SchemaCheck(found))));
    }

    /// Checks whether the stored custom resources match the schema.
    pub fn fitting(&self, question: &SchemaCheck) -> SchemaCheckResult {
        let mut fitting = SchemaChecker::new(question);
        for (version, _) in &question.schemas {
            let api_version = Gvk::new(&question.group, version, &question.kind).api_version();
            for object in self.api.list(&question.group, &question.kind, None) {
                let mut object = object.clone();
                object::map_mut(&mut object, &[]).insert("apiVersion".to_owned(), api_version.as_str().into());
                fitting.check(version, object);
            }
        }
        fitting.end(self.now, None)
    }

    /// Reads the source that a catalog is connected to.
    fn read_catalog(&mut self, namespace: &str, name: &str) {
        let Some(target) = self.connected.get(&(namespace.to_owned(), name.to_owned())) else { return };
        let mut config_map = None;
        let read = match target {
            // It does not change, and is not requested.
            Target::Directory => return,
            Target::Address(address) => {
                let served = self.registries.get(address).cloned();
                served
                    .ok_or_else(|| (ConnectionState::TransientFailure, "nothing is served at that address".to_owned()))
            }
            Target::Image { reference, .. } => self.images.get(reference).cloned().ok_or_else(|| {
                let needs = format!("the content of image {reference} (--catalog-image {reference}=DIR)");
                (ConnectionState::Shutdown, needs)
            }),
            Target::ConfigMap(config_map_name) => {
                let read = self.api.config_map(namespace, config_map_name).and_then(|object| {
                    config_map = Some((object::uid(object).to_owned(), object::resource_version(object).to_owned()));
                    catalog::config_map(object).map(|(snapshot, _)| snapshot)
                });
                read.map(Arc::new).map_err(|e| (ConnectionState::TransientFailure, e))
            }
            Target::ConfigMaps(names) => {
                let parts = names
                    .iter()
                    .map(|name| self.api.config_map(namespace, name).cloned())
                    .collect::<Result<Vec<_>, _>>();
                let read = parts.and_then(|parts| catalog::parts::join(&parts));
                read.map(|(snapshot, _)| Arc::new(snapshot)).map_err(|e| (ConnectionState::TransientFailure, e))
            }
        };
        let mut fact = CatalogFact { config_map, ..CatalogFact::new(target.clone(), ConnectionState::Ready, self.now) };
        match read {
            Ok(snapshot) => fact.snapshot = Some(snapshot),
            Err((state, error)) => (fact.state, fact.error) = (state, Some(error)),
        }
        self.planner.observe(Event::Learned(
            FactKey::Catalog(namespace.to_owned(), name.to_owned()),
            Some(Fact::Catalog(fact)),
        ));
    }

    /// Reads the catalogs that are connected to such a source.
    fn read_catalogs_of(&mut self, is_it: impl Fn(&(String, String), &Target) -> bool) {
        let names: Vec<_> =
            self.connected.iter().filter(|(key, target)| is_it(key, target)).map(|(key, _)| key.clone()).collect();
        for (namespace, name) in names {
            self.read_catalog(&namespace, &name);
        }
    }

    fn learn_locals(&mut self) {
        for ((namespace, name), snapshot) in &self.local {
            let key = FactKey::Catalog(namespace.clone(), name.clone());
            let fact = CatalogFact::local(snapshot.clone(), self.now);
            self.planner.observe(Event::Learned(key, Some(Fact::Catalog(fact))));
        }
    }

    /// Passes new watch events to the planner and adds them to the timeline. Returns `false` if there were none.
    fn watch(&mut self, actor: &Actor) -> bool {
        let (mut config_maps, mut brings_kinds) = (Vec::new(), false);
        let changes = self.api.drain();
        let any = !changes.is_empty();
        for change in changes {
            let (WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) = &change;
            let gvk = object::gvk(object);
            if let Some(found) = self.unfit.remove(&(gvk.group, gvk.kind.clone())) {
                self.planner.observe(Event::Learned(found, None));
            }
            brings_kinds |= matches!(gvk.kind.as_str(), "CustomResourceDefinition" | "APIService");
            if gvk.kind == "ConfigMap" {
                config_maps.push((object::namespace(object).to_owned(), object::name(object).to_owned()));
            }
            self.planner.observe(match &change {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => Event::Applied(trimmed(object)),
                WatchEvent::Deleted(object) => Event::Deleted(object.as_ref().clone()),
            });
            self.happenings.push(Happening { at: self.now, actor: actor.clone(), change });
        }
        if brings_kinds {
            let known: Vec<(String, String)> =
                self.planner.world().discovered().map(|(g, v)| (g.to_owned(), v.to_owned())).collect();
            for (group, version) in &known {
                self.discover(group, version);
            }
        }
        for (namespace, config_map) in config_maps {
            self.read_catalogs_of(|key, target| key.0 == namespace && target.reads_config_map(&config_map));
        }
        any
    }
}
