//! Selects the key to plan next: a synchronous loop around the World.
//!
//! ```text
//!   observe(event) -> World -> keys that have read it -> queue
//!   next(now)      -> plan the first key of the queue -> Work { key, actions }   (executed by live, sim; reported by audit)
//!   done(work)     -> the key is planned again, after a pause if an action was refused
//! ```
//!
//! *Guarantees*:
//! - A key is never planned or executed concurrently with itself.
//! - The order of plans follows from the order of events.
//! - A panic while a key is planned is reported as its [`Reason::Panicked`], and does not affect other keys.
//! - Unreadable objects do not count as absent: plans that depend on one wait with [`Reason::Unreadable`]; other plans do not.
//! - A refused action is retried with exponential backoff and jitter, up to [`backoff::LONGEST`].

mod answer;
pub mod backoff;
mod completion;
mod dispatch;
mod keys;
#[cfg(test)]
mod recordings;
mod terminating;
#[cfg(test)]
mod tests;
mod unreadable;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub use answer::{Answer, answer};
pub use completion::Pending;
use jiff::Timestamp;
use serde_json::Value;

use crate::api::object::{self, ObjectRef};
use crate::api::status::Status;
use crate::plan::{Action, Controller, Key, Order, Plan, Reason, Verb};
use crate::world::{Change, Fact, FactKey, GroupKind, Read, Reader, Refusal, Unreadable, World, kind};

/// Maximum number of consecutive plans with the same action before the key is paused, so that two controllers that undo each other's work do
/// not loop without pauses. Plans with different actions are not affected.
const LONGEST_STREAK: u32 = 40;

/// Number of consecutive refusals, over some seconds, after which an action is no longer expected to succeed by itself.
const SOON: u32 = 5;

/// An observation.
#[derive(Clone, Debug)]
pub enum Event {
    /// The current state of an object.
    Applied(Value),
    /// A deleted object: its last state, with the resourceVersion of the deletion.
    Deleted(Value),
    /// An object that does not exist, according to a request for it. The uid identifies the deleted object, if it is known.
    Absent(ObjectRef, String),
    /// An object that exists but cannot be read.
    Unreadable(Unreadable),
    /// All objects of a kind, those that cannot be read, and the resourceVersion of the list.
    Listed(GroupKind, Vec<Value>, Vec<Unreadable>, u64),
    /// An external fact, or `None` if it is no longer known.
    Learned(FactKey, Option<Fact>),
}

/// Actions to execute for a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The key.
    pub key: Key,
    /// The actions.
    pub actions: Vec<Action>,
    /// The order of the actions.
    pub order: Order,
}

/// An action that the API server refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The action.
    pub action: Action,
    /// The refusal.
    pub status: Status,
}

type ActionId = (Verb, ObjectRef);
/// A function around the planning of a key, for measurements.
pub type Around = Arc<dyn Fn(&Reader<'_>, &Key, &mut dyn FnMut() -> Plan) -> Plan + Send + Sync>;
/// The function that plans a key: `dispatch::plan`, or a function of a test.
type PlanFn = Arc<dyn Fn(&Reader<'_>, &Key, Timestamp) -> Plan + Send + Sync>;

/// The World, and the queue of keys to plan.
#[derive(Clone)]
pub struct Planner {
    world: World,
    plan: PlanFn,
    queue: VecDeque<Key>,
    queued: BTreeSet<Key>,
    running: BTreeSet<Key>,
    readers: BTreeMap<Read, BTreeSet<Key>>,
    reads: BTreeMap<Key, BTreeSet<Read>>,
    timers: BTreeSet<(Timestamp, Key)>,
    timer: BTreeMap<Key, Timestamp>,
    refusals: BTreeMap<Key, BTreeMap<ActionId, Refusal>>,
    /// How often each action was planned since the key last had nothing to do.
    streaks: BTreeMap<Key, BTreeMap<ActionId, u32>>,
    reasons: BTreeMap<Key, Vec<Reason>>,
    /// Keys whose reasons have changed since they were last taken.
    news: BTreeSet<Key>,
    /// Keys that have timed out once, and have not been settled since.
    overdue: BTreeSet<Key>,
}

impl Planner {
    /// Creates a planner with an empty World. `settings` are the user's settings for the controllers.
    pub fn new(settings: crate::settings::Settings) -> Self {
        Self::with(Arc::new(move |reader, key, now| dispatch::plan(&settings, reader, key, now)))
    }

    /// Creates a planner whose planning is measured: `around` has to call the function once, and return its result unchanged.
    pub fn measured(settings: crate::settings::Settings, around: Around) -> Self {
        Self::with(Arc::new(move |reader, key, now| {
            around(reader, key, &mut || dispatch::plan(&settings, reader, key, now))
        }))
    }

    /// Creates a planner that only completes the deletion of these ClusterServiceVersions, by namespace and name: it executes their
    /// finalizers, and then deletes the leftovers of them and of the OperatorGroups of their namespaces.
    pub fn releasing(settings: crate::settings::Settings, names: BTreeSet<(String, String)>) -> Self {
        Self::with(Arc::new(move |reader, key, now| {
            let mut within = names.iter().filter(|(namespace, _)| *namespace == key.namespace);
            if key.controller == Controller::OperatorGroup && within.next().is_some() {
                dispatch::release_group(reader, key, now)
            } else if within.any(|(_, name)| *name == key.name) {
                dispatch::release(&settings, reader, key, now)
            } else {
                Plan::nothing()
            }
        }))
    }

    fn with(plan: PlanFn) -> Self {
        Self {
            world: World::new(),
            plan,
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            running: BTreeSet::new(),
            readers: BTreeMap::new(),
            reads: BTreeMap::new(),
            timers: BTreeSet::new(),
            timer: BTreeMap::new(),
            refusals: BTreeMap::new(),
            streaks: BTreeMap::new(),
            reasons: BTreeMap::new(),
            news: BTreeSet::new(),
            overdue: BTreeSet::new(),
        }
    }

    /// Returns the current World.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Adds an observation. Returns whether it changed the World.
    pub fn observe(&mut self, event: Event) -> bool {
        let changes = match event {
            Event::Applied(json) => self.world.turned(&json).into_iter().chain(self.world.apply(json)).collect(),
            Event::Deleted(json) => {
                let target = ObjectRef::from_object(&json);
                let rv = object::resource_version(&json).parse().unwrap_or_default();
                let name = (target.namespace, target.name);
                self.world.delete(&GroupKind::kept_as(&json), &name, object::uid(&json), rv).into_iter().collect()
            }
            Event::Absent(target, uid) => {
                let gk = GroupKind::new(&target.gvk.group, &target.gvk.kind);
                let name = (target.namespace, target.name);
                let copy = (gk == kind::CLUSTER_SERVICE_VERSION).then_some(kind::COPIED_CSV);
                copy.into_iter().chain([gk]).filter_map(|gk| self.world.delete(&gk, &name, &uid, 0)).collect()
            }
            Event::Unreadable(object) => {
                let turned = self.world.turned(&object.stub);
                turned.into_iter().chain(self.world.apply_unreadable(object)).collect()
            }
            Event::Listed(gk, objects, unreadable, rv) => self.world.reset(&gk, objects, unreadable, rv),
            // It would be stored without being updated.
            Event::Learned(key, Some(_)) if key.is_forgotten_unread() && !self.is_read(&key) => return false,
            Event::Learned(key, fact) => {
                let news = self.world.learn(key.clone(), fact);
                if news {
                    if let Some(group) = key.group() {
                        self.touch(&Read::Fact(group));
                    }
                    self.touch(&Read::Fact(key));
                }
                return news;
            }
        };
        for change in &changes {
            self.spread(change);
        }
        !changes.is_empty()
    }

    /// Returns the next work to execute, or `None` if there is none until [`Planner::wakeup`] or the next event.
    pub fn next(&mut self, now: Timestamp) -> Option<Work> {
        while let Some((at, key)) = self.timers.first().cloned()
            && at <= now
        {
            self.set_timer(&key, None);
            self.enqueue(key);
        }
        while let Some(key) = self.queue.pop_front() {
            self.queued.remove(&key);
            if self.running.contains(&key) {
                continue;
            }
            let mut plan = self.make(&key, now);
            self.hold_refused(&key, &mut plan, now);
            self.slow_down(&key, &mut plan, now);
            self.set_timer(&key, plan.again);
            self.set_reasons(&key, plan.reasons);
            if !plan.actions.is_empty() {
                self.running.insert(key.clone());
                return Some(Work { key, actions: plan.actions, order: plan.order });
            }
        }
        None
    }

    /// Reports that work was executed: `succeeded` are the actions that succeeded, `failures` those that were refused.
    pub fn done(&mut self, key: &Key, succeeded: &[Action], failures: Vec<Failure>, now: Timestamp) {
        self.running.remove(key);
        let refusals = self.refusals.entry(key.clone()).or_default();
        for action in succeeded {
            refusals.remove(&(action.verb(), action.target()));
        }
        for Failure { action, status } in failures {
            let id = (action.verb(), action.target());
            let attempts = refusals.get(&id).map_or(0, |r| r.attempts) + 1;
            let since = refusals.get(&id).map_or(now, |r| r.since);
            let stale = Refusal::means_stale(id.0, &status);
            let pauses = if stale { attempts.saturating_sub(Refusal::STALE_TRIES) } else { attempts };
            let retry_at = if pauses == 0 { now } else { now + backoff::pause(key, pauses) };
            let refusal = Refusal { verb: id.0, target: id.1.clone(), status, attempts, since, retry_at };
            refusals.insert(id, refusal);
        }
        self.learn_refusals(key);
        self.enqueue(key.clone());
    }

    /// Reports that work was not executed: the key is planned again when something that it has read changes.
    pub fn park(&mut self, key: &Key) {
        self.running.remove(key);
        self.streaks.remove(key);
    }

    /// Reports whether a plan depends on the fact.
    pub fn is_read(&self, key: &FactKey) -> bool {
        self.readers.contains_key(&Read::Fact(key.clone()))
    }

    /// Reports whether nothing is queued or running.
    pub fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.running.is_empty()
    }

    /// Returns the number of keys that are queued, running, or to be retried soon after a refusal.
    pub fn unsettled(&self) -> usize {
        let soon = |r: &Reason| matches!(r, Reason::Refused { attempts, .. } if *attempts <= SOON);
        let refused = self.reasons.iter().filter(|(_, reasons)| reasons.iter().any(soon)).map(|(key, _)| key);
        self.queued.iter().chain(&self.running).chain(refused).collect::<BTreeSet<_>>().len()
    }

    /// Reports whether [`Planner::next`] has a key to plan now.
    pub fn is_due(&self, now: Timestamp) -> bool {
        !self.queue.is_empty() || self.wakeup().is_some_and(|at| at <= now)
    }

    /// Returns when [`Planner::next`] has to be called even if nothing is observed.
    pub fn wakeup(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Returns the reasons why keys do nothing (more), by key.
    pub fn reasons(&self) -> impl Iterator<Item = (&Key, &[Reason])> {
        self.reasons.iter().map(|(key, reasons)| (key, reasons.as_slice()))
    }

    /// Returns the keys whose reasons have changed since the last call, with their current reasons; a settled key has none.
    pub fn take_news(&mut self) -> Vec<(Key, Vec<Reason>)> {
        let news = std::mem::take(&mut self.news);
        news.into_iter().map(|key| (key.clone(), self.reasons.get(&key).cloned().unwrap_or_default())).collect()
    }

    fn set_reasons(&mut self, key: &Key, reasons: Vec<Reason>) {
        self.note_overdue(key, &reasons);
        if self.reasons.get(key).map_or(&[][..], Vec::as_slice) == reasons {
            return;
        }
        self.news.insert(key.clone());
        if reasons.is_empty() {
            self.reasons.remove(key);
        } else {
            self.reasons.insert(key.clone(), reasons);
        }
    }

    fn make(&mut self, key: &Key, now: Timestamp) -> Plan {
        let reader = Reader::new(&self.world);
        let mut plan = catch_unwind(AssertUnwindSafe(|| (self.plan)(&reader, key, now)));
        if let Ok(plan) = &mut plan {
            terminating::hold(&reader, plan);
        }
        let mut reads = reader.into_reads();
        if let Ok(plan) = &mut plan {
            unreadable::hold(&self.world, key, &mut reads, plan);
        }
        reads.insert(Read::Fact(FactKey::Refusals(key.clone())));
        let absent = plan.as_ref().is_ok_and(|p| *p == Plan::nothing()) && self.world.knows_none_of(&reads);
        if absent {
            reads.clear();
            self.refusals.remove(key);
            self.world.learn(FactKey::Refusals(key.clone()), None);
        }
        self.note_reads(key, reads);
        plan.unwrap_or_else(|panic| {
            let message = panic
                .downcast_ref::<&str>()
                .map(ToString::to_string)
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a panic without text".to_owned());
            Plan::wait(Reason::Panicked { message }).again_at(now + backoff::LONGEST)
        })
    }

    /// Removes refused actions until their pause is over, and the actions that have to follow them.
    fn hold_refused(&mut self, key: &Key, plan: &mut Plan, now: Timestamp) {
        let planned: BTreeSet<ActionId> = plan.actions.iter().map(|a| (a.verb(), a.target())).collect();
        if plan.forgets
            && let Some(refusals) = self.refusals.get_mut(key)
        {
            refusals.retain(|id, _| planned.contains(id));
            self.learn_refusals(key);
        }
        let Some(refusals) = self.refusals.get_mut(key) else { return };
        // A refusal is stored while the action is not planned, for example in another phase, but only for a limited time.
        refusals.retain(|id, r| planned.contains(id) || now < r.retry_at + backoff::LONGEST);
        let held = |a: &Action| refusals.get(&(a.verb(), a.target())).filter(|r| r.retry_at > now);
        let mut shown: Vec<&Refusal> = plan.actions.iter().filter_map(held).collect();
        if plan.order == Order::Any {
            plan.actions.retain(|a| held(a).is_none());
        } else {
            // Other actions of its batch may be blind, so that they would be executed repeatedly in the meantime.
            let batches = plan.order.batches(plan.actions.len());
            let waits = batches.into_iter().find(|batch| plan.actions[batch.clone()].iter().any(|a| held(a).is_some()));
            if let Some(batch) = waits {
                shown = plan.actions[batch.clone()].iter().filter_map(held).collect();
                plan.actions.truncate(batch.start);
            }
        }
        for refusal in shown {
            let Refusal { verb, target, status, attempts, retry_at, .. } = refusal;
            plan.reasons.push(Reason::refused(verb.as_str(), target, &status.message, *attempts, *retry_at));
            plan.again = Some(plan.again.map_or(*retry_at, |t| t.min(*retry_at)));
        }
    }

    fn slow_down(&mut self, key: &Key, plan: &mut Plan, now: Timestamp) {
        if plan.actions.is_empty() {
            self.streaks.remove(key);
            return;
        }
        let streaks = self.streaks.entry(key.clone()).or_default();
        let mut streak = 0;
        for action in &plan.actions {
            let planned = streaks.entry((action.verb(), action.target())).or_default();
            *planned += 1;
            streak = streak.max(*planned);
        }
        if streak > LONGEST_STREAK && streak % 2 == 1 {
            // Only every other plan is dropped, so that the key acts after its pause.
            plan.actions.clear();
            plan.again = Some(now + backoff::pause(key, streak - LONGEST_STREAK));
        }
    }

    fn learn_refusals(&mut self, key: &Key) {
        let refusals: Vec<Refusal> = self.refusals.get(key).into_iter().flat_map(BTreeMap::values).cloned().collect();
        let fact = (!refusals.is_empty()).then_some(Fact::Refusals(refusals));
        self.world.learn(FactKey::Refusals(key.clone()), fact);
    }

    fn spread(&mut self, change: &Change) {
        for key in keys::owners(change) {
            self.enqueue(key);
        }
        let (gk, (namespace, _)) = (&change.kind, &change.name);
        self.touch(&Read::Object(gk.clone(), change.name.clone()));
        self.touch(&Read::Kind(gk.clone()));
        self.touch(&Read::Namespace(gk.clone(), namespace.clone()));
        if change.membership {
            self.touch(&Read::Names(gk.clone()));
        }
        for key in &change.index {
            self.touch(&Read::Index(key.clone()));
        }
    }

    fn touch(&mut self, read: &Read) {
        let readers: Vec<Key> = self.readers.get(read).into_iter().flatten().cloned().collect();
        for key in readers {
            self.enqueue(key);
        }
    }

    fn enqueue(&mut self, key: Key) {
        // `done` enqueues a running key again.
        if !self.running.contains(&key) && self.queued.insert(key.clone()) {
            self.queue.push_back(key);
        }
    }

    fn set_timer(&mut self, key: &Key, at: Option<Timestamp>) {
        if let Some(old) = self.timer.remove(key) {
            self.timers.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.timer.insert(key.clone(), at);
            self.timers.insert((at, key.clone()));
        }
    }

    fn note_reads(&mut self, key: &Key, reads: BTreeSet<Read>) {
        let old = self.reads.remove(key).unwrap_or_default();
        for gone in old.difference(&reads) {
            if let Some(readers) = self.readers.get_mut(gone) {
                readers.remove(key);
                if readers.is_empty() {
                    self.readers.remove(gone);
                    if let Read::Fact(answered) = gone
                        && answered.is_forgotten_unread()
                    {
                        self.world.learn(answered.clone(), None);
                    }
                }
            }
        }
        for new in reads.difference(&old) {
            self.readers.entry(new.clone()).or_default().insert(key.clone());
        }
        if !reads.is_empty() {
            self.reads.insert(key.clone(), reads);
        }
    }
}
