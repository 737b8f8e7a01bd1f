//! The control loop: passes events to the planner and executes its work with bounded concurrency.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::object::{Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::packages::{self, Catalog};
use olm_core::plan::{Action, Key, Reason};
use olm_core::planner::{Event, Pending, Planner, Work};
use olm_core::sim::WatchEvent;
use olm_core::world::{Fact, FactKey, Reader, Unreadable, World, kind};
use olm_core::{installplan, metrics};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;

use super::api::Api;
use super::bundles::Bundles;
use super::catalogs::Catalogs;
use super::discovery;
use super::execute::{Done, execute};
use super::lease::Permit;
use super::metrics::Metrics;
use super::missing_copies::{self, MissingCopies};
use super::questions::{Questions, is_for_audit};
use super::supervise::{guarded, supervised};
use super::unreadable::UnreadableReports;
use super::watch::{self, Signal};

/// The maximum number of keys that are executed concurrently. The API server's priority and fairness permits more; OLM has two workers per
/// queue, limited to ten requests per second.
const CONCURRENCY: usize = 16;

/// How long the loop waits for a running plan when it is stopped, so that its last report is complete.
const LAST_PLAN: Duration = Duration::from_millis(500);

/// Options of the loop.
#[derive(Clone, Default)]
pub struct LoopOptions {
    /// Execute nothing, only report what would be done.
    pub audit: bool,
    /// End when nothing is left to do.
    pub once: bool,
    /// Catalogs are served from pods, which are watched too.
    pub catalog_pods: bool,
    /// The metrics to update.
    pub metrics: Metrics,
    /// How long `once` waits for catalogs that cannot be read when nothing else is in progress.
    pub catalog_grace_period: Duration,
    /// Treat kinds that the API server does not serve as kinds without objects.
    pub without_missing_kinds: bool,
    /// Receives the catalogs that were read, after each change.
    pub catalogs: Option<CatalogsSender>,
}

/// The sender of the catalogs that were read; `None` until the cluster was read.
pub type CatalogsSender = tokio::sync::watch::Sender<Option<Vec<Catalog>>>;

/// Receives the reports of the running loop.
pub trait Observer: Send {
    /// All kinds were listed, and planning starts.
    fn started(&mut self, world: &World);
    /// These actions were planned (audit) or executed for a key, with the refusals of others.
    fn worked(&mut self, key: &Key, actions: &[Action], refusals: &[Status]);
    /// A kind cannot be listed or watched.
    fn trouble(&mut self, gvk: &Gvk, refusal: &Status);
    /// A kind can be listed and watched again.
    fn recovered(&mut self, gvk: &Gvk);
    /// An object cannot be decoded and is not changed.
    fn unreadable(&mut self, object: &Unreadable);
    /// No write is sent for this reason; `None`: writes are sent again.
    fn paused(&mut self, _why: Option<&str>) {}
    /// The number of keys that are in progress or are retried soon, so that the next change may come without any client.
    fn unsettled(&mut self, keys: usize);
    /// The reasons why a key is blocked have changed; empty if it is settled.
    fn reasons(&mut self, key: &Key, reasons: &[Reason]);
    /// Returns whether [`Observer::changed`] is to be called.
    fn wants_changes(&self) -> bool {
        false
    }
    /// An object was changed: by the work for a key, or (`None`) by another client.
    fn changed(&mut self, _by: Option<&Key>, _change: WatchEvent) {}
    /// Returns when [`Observer::tick`] is to be called next.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// The time of [`Observer::due`] has come.
    fn tick(&mut self, _now: Instant) {}
    /// The loop ends with this World.
    fn ended(&mut self, _world: &World) {}
}

/// Why the loop ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// It was stopped. Contains the reasons why keys were blocked at that time.
    Stopped(Vec<(Key, Vec<Reason>)>),
    /// `once`: nothing is left to do. Contains the reasons why keys are blocked.
    Quiet(Vec<(Key, Vec<Reason>)>),
    /// `once`: this kind cannot be listed or watched, so nothing can be planned.
    Unreadable(Gvk, Status),
}

/// Runs the planner against a cluster until `stop` resolves. Without a valid permit it only observes the cluster.
pub async fn run(
    api: Api,
    mut planner: Planner,
    catalogs: Catalogs,
    mut permit: Permit,
    options: &LoopOptions,
    observer: &mut dyn Observer,
    stop: impl Future<Output = ()>,
) -> End {
    let api = api.with_permit(&permit);
    let (signals_in, mut signals) = mpsc::unbounded_channel();
    let (events_in, mut events) = mpsc::unbounded_channel();
    let (done_in, mut done) = mpsc::unbounded_channel::<Done>();
    let mut watches = JoinSet::new();
    let mut tasks = Tasks::new(permit.is_of_lease());
    let mut unsynced = BTreeSet::new();
    // After the Lease was acquired, and after a pause, the cache may be older than writes of others: all kinds are listed again.
    let (terms_in, terms) = tokio::sync::watch::channel(permit.term());
    for watched in watch::kinds(options.catalog_pods) {
        unsynced.insert(watched.id());
        api.register(watched.resource.clone()).await;
        let watched = watched.with_missing(options.without_missing_kinds);
        let (api, signals_in, terms) = (api.clone(), signals_in.clone(), terms.clone());
        // A panic is logged by `guarded`, and the kind is listed again.
        let begin = move || {
            let ends = watch::run(api.clone(), watched.clone(), signals_in.clone(), terms.clone());
            async move {
                ends.await;
                Ok(())
            }
        };
        watches.spawn(supervised(begin, |_| ()));
    }
    let bundles = Bundles::new(catalogs.pull_secrets(&api), catalogs.hint(), events_in.clone());
    let catalogs = catalogs.start(api.clone(), events_in.clone(), options.metrics.clone());
    let mut questions = Questions::new(catalogs, bundles);
    let mut scrapes = options.metrics.scrapes();
    if let Ok(version) = api.version().await {
        planner.observe(Event::Learned(FactKey::ServerVersion, Some(Fact::ServerVersion(version))));
    }
    let slots = Arc::new(Semaphore::new(CONCURRENCY));
    let mut reported = AuditReports::default();
    let mut unreadable = UnreadableReports::default();
    let mut missing_copies = MissingCopies::default();
    let mut stop = std::pin::pin!(stop);
    let observe = |planner: &mut Planner, event: Event| {
        options.metrics.observe(planner.world(), &event);
        planner.observe(event)
    };
    let wants_changes = observer.wants_changes();
    let (changes_in, mut changes) = mpsc::unbounded_channel();
    // Since when the loop waits only for catalogs that cannot be read.
    let mut away: Option<Instant> = None;
    let mut paused = None;
    loop {
        // Events are processed before results: a key is planned again with the responses in the World.
        while let Ok(event) = events.try_recv() {
            observe(&mut planner, event);
        }
        while let Ok((key, change)) = changes.try_recv() {
            observer.changed(Some(&key), change);
        }
        for object in unreadable.take_new(planner.world()) {
            observer.unreadable(&object);
        }
        options.metrics.unreadable(planner.world().unreadable().count());
        if permit.is_given() && *terms_in.borrow() != permit.term() {
            unsynced.extend(watch::kinds(options.catalog_pods).iter().map(watch::Watched::id));
            terms_in.send_replace(permit.term());
        }
        let why = permit.paused();
        if why != paused {
            observer.paused(why.as_deref());
            paused = why;
        }
        let works = unsynced.is_empty() && permit.is_given();
        if works {
            let emits = unreadable.take_events();
            if !emits.is_empty() && !options.audit {
                options.metrics.worked(&emits, 0);
                tasks.spawn(write_events(api.clone(), emits));
            }
            let batch = if planner.is_due(Timestamp::now()) {
                let mut planning = spawn_blocking(move || plan(planner));
                let planned = tokio::select! {
                    biased;
                    planned = &mut planning => planned,
                    () = &mut stop => match tokio::time::timeout(LAST_PLAN, planning).await {
                        Ok(Ok((planner, _))) => {
                            observer.ended(planner.world());
                            return End::Stopped(reasons(&planner));
                        }
                        // The planner is still in use by the plan, which is abandoned.
                        _ => {
                            observer.ended(&World::new());
                            return End::Stopped(Vec::new());
                        }
                    },
                };
                let batch;
                (planner, batch) = match planned {
                    Ok(planned) => planned,
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        Err(_) => return End::Stopped(Vec::new()),
                    },
                };
                batch
            } else {
                Vec::new()
            };
            for work in batch {
                questions.begin(&work);
                if options.audit && !is_for_audit(&work) {
                    reported.audit(&mut planner, work, observer);
                    continue;
                }
                let (api, permit, slots) = (api.clone(), permit.clone(), slots.clone());
                let (events_in, done_in) = (events_in.clone(), done_in.clone());
                let changes_in = wants_changes.then(|| changes_in.clone());
                tasks.spawn(async move {
                    // The semaphore is never closed.
                    let _slot = slots.acquire().await;
                    let (key, first) = (work.key.clone(), work.actions.first().cloned());
                    let done = guarded(execute(&api, &permit, work, &events_in, changes_in)).await;
                    let _ =
                        done_in.send(done.unwrap_or_else(|panicked| Done::panicked(key, first, panicked.to_string())));
                });
            }
            // Finished tasks must be removed, or they would accumulate.
            tasks.forget_finished();
            for (key, reasons) in planner.take_news() {
                observer.reasons(&key, &reasons);
            }
            observer.unsettled(planner.unsettled() + events.len());
            if let Some(catalogs) = &options.catalogs {
                let current = packages::catalogs(planner.world());
                catalogs.send_if_modified(|known| {
                    let is_changed = known.as_ref() != Some(&current);
                    *known = Some(current);
                    is_changed
                });
            }
            let misses = planner.reasons().any(|(_, reasons)| reasons.iter().any(Reason::is_of_requirements));
            let discovers = misses && !questions.discoveries.are_settled();
            let asks = !questions.catalogs.are_settled() || planner.world().is_unpacking() || discovers;
            let known = events.is_empty() && missing_copies.is_empty();
            if options.once && planner.is_quiet() && known && !asks {
                // An audit does not wait for other controllers, because it does not trigger their work.
                let pending = if options.audit { Pending::Nothing } else { planner.pending() };
                let since = (pending == Pending::Catalog).then(|| away.unwrap_or_else(Instant::now));
                let is_over = since.is_some_and(|since| since.elapsed() >= options.catalog_grace_period);
                if pending == Pending::Nothing || is_over {
                    observer.ended(planner.world());
                    return End::Quiet(reasons(&planner));
                }
                away = since;
            }
        }
        let give_up = away.map(|since| since + options.catalog_grace_period);
        let say = observer.due();
        let (look, ask) = (missing_copies.due(), questions.discoveries.due());
        let wakeup = planner.wakeup().map_or(Duration::from_hours(1), |at| {
            Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or(Duration::ZERO)
        });
        tokio::select! {
            biased;
            () = &mut stop => {
                observer.ended(planner.world());
                return End::Stopped(reasons(&planner));
            }
            Some(scrape) = scrapes.recv() => {
                // The scraper may have timed out.
                let _ = scrape.send(metrics::objects(&Reader::new(planner.world())));
            }
            Some((key, change)) = changes.recv() => observer.changed(Some(&key), change),
            Some(event) = events.recv() => { observe(&mut planner, event); }
            Some(finished) = done.recv() => {
                let Done { key, succeeded, failures, warnings } = finished;
                while let Ok(event) = events.try_recv() {
                    observe(&mut planner, event);
                }
                let refusals: Vec<Status> = failures.iter().map(|f| f.status.clone()).collect();
                observer.worked(&key, &succeeded, &refusals);
                planner.done(&key, &succeeded, failures, Timestamp::now());
                let emits = warned(planner.world(), &key, &warnings);
                if !emits.is_empty() {
                    for _ in &emits {
                        options.metrics.warned();
                    }
                    observer.worked(&key, &emits, &[]);
                    tasks.spawn(write_events(api.clone(), emits));
                }
            }
            Some(signal) = signals.recv() => match signal {
                Signal::Event(event) => {
                    questions.discoveries.heed(&event, Instant::now());
                    let change = (wants_changes && unsynced.is_empty()).then(|| change(&planner, &event)).flatten();
                    // Writes of this process are already in the World.
                    if observe(&mut planner, event) && let Some(change) = change {
                        observer.changed(None, change);
                    }
                }
                Signal::IfKnown(target, event) => {
                    if planner.world().knows(&target) {
                        observe(&mut planner, event);
                    }
                }
                Signal::Copy(copy) => missing_copies.add(planner.world(), copy),
                Signal::Synced(watched, term) => {
                    if term == *terms_in.borrow() && unsynced.remove(&watched) && unsynced.is_empty() {
                        observer.started(planner.world());
                    }
                }
                // These refusals are permanent.
                Signal::Trouble(gvk, refusal) if options.once && matches!(refusal.code, 401 | 403 | 404) => {
                    return End::Unreadable(gvk, refusal);
                }
                Signal::Trouble(gvk, refusal) => observer.trouble(&gvk, &refusal),
                Signal::Recovered(gvk) => observer.recovered(&gvk),
            },
            () = tokio::time::sleep_until(look.unwrap_or_else(Instant::now)), if look.is_some() => {
                let objects = missing_copies.take(planner.world());
                if !objects.is_empty() {
                    tasks.spawn(missing_copies::read(api.clone(), objects, events_in.clone()));
                }
            }
            () = tokio::time::sleep_until(ask.unwrap_or_else(Instant::now)), if ask.is_some() => {
                for version in questions.discoveries.take(|key| planner.is_read(key), Instant::now()) {
                    let (api, events_in) = (api.clone(), events_in.clone());
                    tasks.spawn(async move {
                        // The receiver is dropped only when the process stops.
                        let _ = events_in.send(discovery::discover(api, version).await);
                    });
                }
            }
            () = until(give_up) => {}
            () = until(say) => observer.tick(Instant::now()),
            () = permit.changed() => {}
            () = tokio::time::sleep(wakeup), if works => {}
        }
    }
}

/// Tasks that send requests to the API server. They are aborted with the loop; with a Lease they receive the responses to their requests
/// first, because the release of the Lease waits for them.
struct Tasks {
    set: JoinSet<()>,
    outlive: bool,
}

impl Tasks {
    fn new(outlive: bool) -> Self {
        Self { set: JoinSet::new(), outlive }
    }

    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.set.spawn(task);
    }

    fn forget_finished(&mut self) {
        while self.set.try_join_next().is_some() {}
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        if self.outlive {
            self.set.detach_all();
        }
    }
}

/// Plans all keys that are due. This may take long: it runs on its own thread, so that probes, signals and the Lease are not delayed.
fn plan(mut planner: Planner) -> (Planner, Vec<Work>) {
    let mut works = Vec::new();
    while let Some(work) = planner.next(Timestamp::now()) {
        works.push(work);
    }
    (planner, works)
}

/// The actions that an audit has reported for each key, so that they are reported once as long as they are the same.
#[derive(Default)]
struct AuditReports(BTreeMap<Key, Vec<Action>>);

impl AuditReports {
    /// Reports the work and parks the key until its part of the World changes.
    fn audit(&mut self, planner: &mut Planner, work: Work, observer: &mut dyn Observer) {
        let writes: Vec<Action> = work.actions.iter().filter(|a| a.writes()).cloned().collect();
        if self.0.get(&work.key) != Some(&writes) {
            observer.worked(&work.key, &work.actions, &[]);
        }
        self.0.insert(work.key.clone(), writes);
        planner.park(&work.key);
    }
}

/// Returns the Events for warnings of the API server about steps of an InstallPlan.
fn warned(world: &World, key: &Key, warnings: &[(Action, Vec<String>)]) -> Vec<Action> {
    if warnings.is_empty() {
        return Vec::new();
    }
    let reader = Reader::new(world);
    let Some(plan) = reader.json(&kind::INSTALL_PLAN, &key.namespace, &key.name) else { return Vec::new() };
    let emits = warnings.iter().filter_map(|(action, texts)| installplan::warning_event(plan, action, texts));
    emits.map(Action::Emit).collect()
}

/// Writes Events. A failure is logged and must not delay other work.
async fn write_events(api: Api, emits: Vec<Action>) {
    for emit in &emits {
        if let Action::Emit(emit) = emit
            && let Err(refusal) = api.create(&emit.to_event(Timestamp::now())).await
        {
            tracing::debug!(reason = emit.reason, %refusal, "event not written");
        }
    }
}

/// Returns all reasons, by key.
fn reasons(planner: &Planner) -> Vec<(Key, Vec<Reason>)> {
    planner.reasons().map(|(key, reasons)| (key.clone(), reasons.to_vec())).collect()
}

/// Returns the change that an event makes in the World.
fn change(planner: &Planner, event: &Event) -> Option<WatchEvent> {
    match event {
        Event::Applied(object) if planner.world().knows(&ObjectRef::from_object(object)) => {
            Some(WatchEvent::Modified(Arc::new(object.clone())))
        }
        Event::Applied(object) => Some(WatchEvent::Added(Arc::new(object.clone()))),
        Event::Deleted(object) => Some(WatchEvent::Deleted(Arc::new(object.clone()))),
        Event::Absent(..) | Event::Unreadable(_) | Event::Listed(..) | Event::Learned(..) => None,
    }
}

/// Resolves at a time; never if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
