//! The loop: events into the planner, work out of it, with bounded concurrency.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::object::{Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::plan::{Action, Key, Reason};
use olm_core::planner::{Event, Outlook, Planner, Work};
use olm_core::sim::WatchEvent;
use olm_core::world::{Fact, FactKey, Reader, Unreadable, World, kind};
use olm_core::{installplan, metrics};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;

use super::api::Api;
use super::bundles::Bundles;
use super::catalogs::Catalogs;
use super::complaints::Complaints;
use super::copies::{self, Unknown};
use super::discovery;
use super::execute::{Done, execute};
use super::lease::Permit;
use super::metrics::Metrics;
use super::questions::{Questions, is_for_audit};
use super::supervise::{guarded, supervised};
use super::watch::{self, Signal};

/// How many keys are executed at a time. The API server's priority and fairness lets a client of this kind do more; a real OLM
/// has two workers a queue, limited to ten requests a second.
const CONCURRENCY: usize = 16;

/// How long a plan that is being made may take when the loop is told to stop: the end says where everything stands.
const LAST_PLAN: Duration = Duration::from_millis(500);

/// How the loop runs.
#[derive(Clone, Default)]
pub struct LoopOptions {
    /// Execute nothing, only tell what would be done.
    pub audit: bool,
    /// End when there is nothing left to do.
    pub once: bool,
    /// Catalogs are served from pods, which are watched.
    pub catalog_pods: bool,
    /// What is counted.
    pub metrics: Metrics,
    /// How long `once` waits for catalogs that cannot be read when nothing else is under way.
    pub catalog_patience: Duration,
    /// Kinds that the API server does not serve are taken to have no objects.
    pub without_missing_kinds: bool,
}

/// What the loop tells while it runs.
pub trait Observer: Send {
    /// Everything was listed: planning starts.
    fn started(&mut self, world: &World);
    /// These actions were planned (audit) or executed for a key, and others refused.
    fn worked(&mut self, key: &Key, actions: &[Action], refusals: &[Status]);
    /// A kind cannot be listed or watched.
    fn trouble(&mut self, gvk: &Gvk, refusal: &Status);
    /// A kind can be listed and watched again.
    fn recovered(&mut self, gvk: &Gvk);
    /// An object cannot be read, and is left alone.
    fn unreadable(&mut self, object: &Unreadable);
    /// So many keys are worked on, or are tried again in a moment: the next change may come without anybody's doing.
    fn unsettled(&mut self, keys: usize);
    /// The reasons why a key does nothing have changed; empty when it is settled.
    fn reasons(&mut self, key: &Key, reasons: &[Reason]);
    /// Is each change of an object to be told?
    fn wants_changes(&self) -> bool {
        false
    }
    /// An object was changed: by the work for a key, or (`None`) by another client.
    fn changed(&mut self, _by: Option<&Key>, _change: WatchEvent) {}
    /// When [`Observer::tick`] is to be called next.
    fn due(&self) -> Option<Instant> {
        None
    }
    /// Some time has passed.
    fn tick(&mut self, _now: Instant) {}
    /// The loop ends with the World like this.
    fn ended(&mut self, _world: &World) {}
}

/// Why the loop ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// It was told to stop. These are the reasons why keys had nothing to do then.
    Stopped(Vec<(Key, Vec<Reason>)>),
    /// `once`: nothing is left to do, for these reasons.
    Quiet(Vec<(Key, Vec<Reason>)>),
    /// `once`: this kind cannot be read, so nothing can be planned.
    Unreadable(Gvk, Status),
}

/// Runs the planner against a cluster until `stop` resolves. Without a permit it observes, and waits for one.
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
    // When the Lease was taken, what is known may be older than what others wrote before: everything is listed anew.
    let (terms_in, terms) = tokio::sync::watch::channel(permit.term());
    for watched in watch::kinds(options.catalog_pods) {
        unsynced.insert(watched.id());
        api.know(watched.resource.clone()).await;
        let watched = watched.with_missing(options.without_missing_kinds);
        let (api, signals_in, terms) = (api.clone(), signals_in.clone(), terms.clone());
        // It is told by `guarded`, and listed anew.
        let begin = move || {
            let ends = watch::run(api.clone(), watched.clone(), signals_in.clone(), terms.clone());
            async move {
                ends.await;
                Ok(())
            }
        };
        watches.spawn(supervised(begin, |_| ()));
    }
    let bundles = Bundles::new(catalogs.puller(&api), catalogs.hint(), events_in.clone());
    let catalogs = catalogs.start(api.clone(), events_in.clone(), options.metrics.clone());
    let mut questions = Questions::new(catalogs, bundles);
    let mut scrapes = options.metrics.scrapes();
    if let Ok(version) = api.version().await {
        planner.observe(Event::Learned(FactKey::ServerVersion, Some(Fact::ServerVersion(version))));
    }
    let slots = Arc::new(Semaphore::new(CONCURRENCY));
    let mut told = Told::default();
    let mut complaints = Complaints::default();
    let mut unknown = Unknown::default();
    let mut stop = std::pin::pin!(stop);
    let observe = |planner: &mut Planner, event: Event| {
        options.metrics.observe(planner.world(), &event);
        planner.observe(event)
    };
    let wants_changes = observer.wants_changes();
    let (changes_in, mut changes) = mpsc::unbounded_channel();
    // Since when nothing but catalogs that cannot be read is waited for.
    let mut away: Option<Instant> = None;
    loop {
        // What was observed comes before what was done: a key is planned again with the answers in the World.
        while let Ok(event) = events.try_recv() {
            observe(&mut planner, event);
        }
        while let Ok((key, change)) = changes.try_recv() {
            observer.changed(Some(&key), change);
        }
        for object in complaints.news(planner.world()) {
            observer.unreadable(&object);
        }
        options.metrics.unreadable(planner.world().unreadable().count());
        if permit.is_given() && *terms_in.borrow() != permit.term() {
            unsynced.extend(watch::kinds(options.catalog_pods).iter().map(watch::Watched::id));
            terms_in.send_replace(permit.term());
        }
        let works = unsynced.is_empty() && permit.is_given();
        if works {
            let emits = complaints.take_events();
            if !emits.is_empty() && !options.audit {
                options.metrics.worked(&emits, 0);
                tasks.spawn(tell(api.clone(), emits));
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
                        // What is planned is not known, and nobody waits for it.
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
                    told.audit(&mut planner, work, observer);
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
            // Finished tasks are forgotten here, or they would pile up.
            tasks.forget_finished();
            for (key, reasons) in planner.take_news() {
                observer.reasons(&key, &reasons);
            }
            observer.unsettled(planner.unsettled() + events.len());
            let misses = planner.reasons().any(|(_, reasons)| reasons.iter().any(Reason::is_of_requirements));
            let discovers = misses && !questions.discoveries.are_settled();
            let asks = !questions.catalogs.are_settled() || planner.world().is_unpacking() || discovers;
            let known = events.is_empty() && unknown.is_empty();
            if options.once && planner.is_quiet() && known && !asks {
                // What others are still to do is not waited for by an audit, which does nothing to bring it about.
                let outlook = if options.audit { Outlook::Still } else { planner.outlook() };
                let since = (outlook == Outlook::Catalog).then(|| away.unwrap_or_else(Instant::now));
                let is_over = since.is_some_and(|since| since.elapsed() >= options.catalog_patience);
                if outlook == Outlook::Still || is_over {
                    observer.ended(planner.world());
                    return End::Quiet(reasons(&planner));
                }
                away = since;
            }
        }
        let give_up = away.map(|since| since + options.catalog_patience);
        let say = observer.due();
        let (look, ask) = (unknown.due(), questions.discoveries.due());
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
                // Who scrapes may have given up.
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
                    tasks.spawn(tell(api.clone(), emits));
                }
            }
            Some(signal) = signals.recv() => match signal {
                Signal::Event(event) => {
                    questions.discoveries.heed(&event, Instant::now());
                    let change = (wants_changes && unsynced.is_empty()).then(|| change(&planner, &event)).flatten();
                    // What we have written ourselves is known already.
                    if observe(&mut planner, event) && let Some(change) = change {
                        observer.changed(None, change);
                    }
                }
                Signal::IfKnown(target, event) => {
                    if planner.world().knows(&target) {
                        observe(&mut planner, event);
                    }
                }
                Signal::Copy(copy) => unknown.add(planner.world(), copy),
                Signal::Synced(watched, term) => {
                    if term == *terms_in.borrow() && unsynced.remove(&watched) && unsynced.is_empty() {
                        observer.started(planner.world());
                    }
                }
                // Rights do not come by themselves.
                Signal::Trouble(gvk, refusal) if options.once && matches!(refusal.code, 401 | 403 | 404) => {
                    return End::Unreadable(gvk, refusal);
                }
                Signal::Trouble(gvk, refusal) => observer.trouble(&gvk, &refusal),
                Signal::Recovered(gvk) => observer.recovered(&gvk),
            },
            () = tokio::time::sleep_until(look.unwrap_or_else(Instant::now)), if look.is_some() => {
                let objects = unknown.take(planner.world());
                if !objects.is_empty() {
                    tasks.spawn(copies::read(api.clone(), objects, events_in.clone()));
                }
            }
            () = tokio::time::sleep_until(ask.unwrap_or_else(Instant::now)), if ask.is_some() => {
                for version in questions.discoveries.take(|key| planner.is_read(key), Instant::now()) {
                    let (api, events_in) = (api.clone(), events_in.clone());
                    tasks.spawn(async move {
                        // The receiver is gone only when the process stops.
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

/// Tasks that ask the API server for something. They end with the loop; those with a Lease hear the answers to what they have asked for
/// before, which whoever lets it go waits for.
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

/// Plans all that is due. It may take its time: probes, signals and the Lease are answered meanwhile.
fn plan(mut planner: Planner) -> (Planner, Vec<Work>) {
    let mut works = Vec::new();
    while let Some(work) = planner.next(Timestamp::now()) {
        works.push(work);
    }
    (planner, works)
}

/// What an audit has told of each key, so that it is told once as long as it stays the same.
#[derive(Default)]
struct Told(BTreeMap<Key, Vec<Action>>);

impl Told {
    /// Tells the work; then the key waits for its World to change.
    fn audit(&mut self, planner: &mut Planner, work: Work, observer: &mut dyn Observer) {
        let writes: Vec<Action> = work.actions.iter().filter(|a| a.writes()).cloned().collect();
        if self.0.get(&work.key) != Some(&writes) {
            observer.worked(&work.key, &work.actions, &[]);
        }
        self.0.insert(work.key.clone(), writes);
        planner.park(&work.key);
    }
}

/// The Events of what the API server warned of while steps of an InstallPlan were applied.
fn warned(world: &World, key: &Key, warnings: &[(Action, Vec<String>)]) -> Vec<Action> {
    if warnings.is_empty() {
        return Vec::new();
    }
    let reader = Reader::new(world);
    let Some(plan) = reader.json(&kind::INSTALL_PLAN, &key.namespace, &key.name) else { return Vec::new() };
    let emits = warnings.iter().filter_map(|(action, texts)| installplan::warned(plan, action, texts));
    emits.map(Action::Emit).collect()
}

/// Writes Events. One that cannot be written must not hold anything up.
async fn tell(api: Api, emits: Vec<Action>) {
    for emit in &emits {
        if let Action::Emit(emit) = emit
            && let Err(refusal) = api.create(&emit.to_event(Timestamp::now())).await
        {
            tracing::debug!(reason = emit.reason, %refusal, "event not written");
        }
    }
}

/// All reasons, by key.
fn reasons(planner: &Planner) -> Vec<(Key, Vec<Reason>)> {
    planner.reasons().map(|(key, reasons)| (key.clone(), reasons.to_vec())).collect()
}

/// What an event changes in the World.
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

/// Resolves at a time, if there is one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
