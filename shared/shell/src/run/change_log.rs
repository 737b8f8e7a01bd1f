//! The events of a simulation or a cluster, as text: each cause, and below it what it changed.
//!
//! ```text
//!   0.010s  Resolution (namespace garden)
//!             created InstallPlan install-qq9ck
//!             Subscription rose: UpgradePending rose.v1.0.0
//!   2.140s  copies of ClusterServiceVersion garden/rose.v1.0.0, until 9.310s
//!             created ClusterServiceVersion rose.v1.0.0 in 2001 namespaces
//! ```
//!
//! Equal changes of many objects are combined, and only the state needed to detect changes is stored: there may be tens
//! of thousands of copied ClusterServiceVersions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use olm_core::api::catalog_source::CatalogSource;
use olm_core::api::cluster_service_version::Csv;
use olm_core::api::conditions::{AVAILABLE, Conditions, ESTABLISHED, FALSE, PROGRESSING};
use olm_core::api::install_plan::InstallPlan;
use olm_core::api::kinds::OLM_GROUP;
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::subscription::Subscription;
use olm_core::api::subscription::condition_type::RESOLUTION_FAILED;
use olm_core::plan::{Controller, Key};
use olm_core::sim::{Actor, Happening, WatchEvent};
use serde_json::Value;

/// The width at which lines wrap, so that they fit most terminals. The same in a pipe, so that outputs can be compared
/// whatever the window.
const WIDTH: usize = 100;
/// Equal changes of objects of one name in more namespaces than this are combined in one line.
const FEW: usize = 3;
/// Of more consecutively created or deleted objects of a kind than this, only the first few are named.
const MANY: usize = 20;
/// How many lines back equal changes are searched: several objects may be written in each of many namespaces.
const NEAR: usize = 8;

/// Collects events; `Display` prints all of them, and [`ChangeLog::take`] returns the completed ones.
pub(super) struct ChangeLog {
    began: Timestamp,
    /// The name of the cause of user changes.
    users: &'static str,
    last: BTreeMap<ObjectRef, Reported>,
    entries: Vec<Entry>,
    /// The entry of the last event.
    current: usize,
}

/// Consecutive changes of one cause.
struct Entry {
    at: Timestamp,
    /// The time of the last change, if changes of other causes happened before it.
    until: Option<Timestamp>,
    cause: Cause,
    lines: Vec<Line>,
}

#[derive(PartialEq)]
enum Cause {
    /// Changes by the user in a step of a script.
    Step(String),
    /// A sentence without changes.
    Sentence(String),
    Actor(Actor),
}

/// A change of an object, or of all objects of its kind and name in these namespaces.
struct Line {
    gvk: Gvk,
    name: String,
    change: Change,
    /// The empty string for a cluster-scoped object.
    namespaces: BTreeSet<String>,
}

#[derive(PartialEq)]
enum Change {
    Created,
    Deleted,
    /// The new state, as text.
    Is(String),
}

/// The reportable state of an object when it was last seen.
#[derive(Default, PartialEq)]
struct Reported {
    deleting: bool,
    state: Option<String>,
    /// The `spec`, for kinds whose changes of it are reported.
    spec: Value,
}

impl ChangeLog {
    pub(super) fn from(began: Timestamp) -> Self {
        Self { began, users: "applied from files", last: BTreeMap::new(), entries: Vec::new(), current: 0 }
    }

    /// Returns the log of a cluster, which other clients change as well.
    pub(super) fn of_cluster(began: Timestamp) -> Self {
        Self { users: "other clients", ..Self::from(began) }
    }

    /// Records an existing object without reporting it.
    pub(super) fn add_existing(&mut self, object: &Value) {
        let reported = Reported::from_object(object);
        if reported != Reported::default() {
            self.last.insert(ObjectRef::from_object(object), reported);
        }
    }

    /// Adds a sentence.
    pub(super) fn add_sentence(&mut self, at: Timestamp, sentence: String) {
        self.entries.push(Entry { at, until: None, cause: Cause::Sentence(sentence), lines: Vec::new() });
        self.current = self.entries.len() - 1;
    }

    /// Returns whether there is something to take.
    pub(super) fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Takes the completed entries, or `all`, as text. `time` formats a time.
    pub(super) fn take(&mut self, all: bool, time: impl Fn(Timestamp) -> String) -> String {
        let keep = usize::from(!all);
        let entries: Vec<Entry> = self.entries.drain(..self.entries.len().saturating_sub(keep)).collect();
        self.current = 0;
        let mut text = String::new();
        for entry in entries {
            // Writing to a string does not fail.
            let _ = entry.write(&mut text, &time, self.users, None);
        }
        text
    }

    /// Begins a step of a script.
    pub(super) fn step(&mut self, at: Timestamp, name: &str) {
        self.entries.push(Entry { at, until: None, cause: Cause::Step(name.to_owned()), lines: Vec::new() });
    }

    /// Records the events to report.
    pub(super) fn record(&mut self, happenings: Vec<Happening>) {
        for Happening { at, actor, change } in happenings {
            let target = ObjectRef::from_object(change.object());
            if is_unreported(&target) {
                continue;
            }
            let (changes, new) = match change {
                WatchEvent::Added(new) => {
                    let new = Reported::from_object(&new);
                    ([Some(Change::Created), new.state.clone().map(Change::Is)], new)
                }
                WatchEvent::Modified(new) => {
                    let new = Reported::from_object(&new);
                    let nothing = Reported::default();
                    let old = self.last.get(&target).unwrap_or(&nothing);
                    ([new.since(old).map(Change::Is), None], new)
                }
                WatchEvent::Deleted(_) => ([Some(Change::Deleted), None], Reported::default()),
            };
            for change in changes.into_iter().flatten() {
                self.add(at, &actor, &target, change);
            }
            if new == Reported::default() {
                self.last.remove(&target);
            } else {
                self.last.insert(target, new);
            }
        }
    }

    fn add(&mut self, at: Timestamp, actor: &Actor, target: &ObjectRef, change: Change) {
        let last = self.entries.len().checked_sub(1);
        let continued = last.filter(|last| self.entries[*last].cause.is(actor));
        let index = self.entry_of_copies(actor, target, &change).or(continued).unwrap_or_else(|| {
            let cause = Cause::Actor(actor.clone());
            self.entries.push(Entry { at, until: None, cause, lines: Vec::new() });
            self.entries.len() - 1
        });
        let is_resumed = last.is_some_and(|last| index <= last) && self.current != index;
        let entry = &mut self.entries[index];
        if is_resumed || entry.until.is_some() {
            entry.until = Some(at);
        }
        entry.add(target, change);
        self.current = index;
    }

    /// Returns the entry of this step with the same change of copies of the same ClusterServiceVersion in other
    /// namespaces: copies are written a few at a time, interleaved with other changes.
    fn entry_of_copies(&self, actor: &Actor, target: &ObjectRef, change: &Change) -> Option<usize> {
        let Actor::Controller(Key { controller: Controller::CopiedCsv, .. }) = actor else { return None };
        let of_step = self.entries.iter().enumerate().rev().take_while(|(_, s)| !matches!(s.cause, Cause::Step(_)));
        let mut own = of_step.filter(|(_, entry)| entry.cause.is(actor));
        own.find(|(_, entry)| entry.lines.iter().any(|line| line.takes(target, change))).map(|(index, _)| index)
    }

    fn time(&self, at: Timestamp) -> String {
        let time = at.duration_since(self.began);
        format!("{}.{:03}s", time.as_secs(), time.subsec_millis())
    }

    /// Returns the namespace of all namespaced objects, if there is only one.
    fn only_namespace(&self) -> Option<&str> {
        let lines = self.entries.iter().flat_map(|entry| &entry.lines);
        let namespaces = lines.flat_map(|line| &line.namespaces).map(String::as_str).filter(|n| !n.is_empty());
        let namespaces: BTreeSet<&str> = namespaces.collect();
        if namespaces.len() == 1 { namespaces.first().copied() } else { None }
    }
}

impl Entry {
    fn add(&mut self, target: &ObjectRef, change: Change) {
        let ObjectRef { gvk, namespace, name } = target;
        match self.lines.iter_mut().rev().take(NEAR).find(|line| line.takes(target, &change)) {
            Some(line) => drop(line.namespaces.insert(namespace.clone())),
            None => self.lines.push(Line {
                gvk: gvk.clone(),
                name: name.clone(),
                change,
                namespaces: BTreeSet::from([namespace.clone()]),
            }),
        }
    }
}

impl Cause {
    /// Returns whether changes of the actor belong to this cause.
    fn is(&self, actor: &Actor) -> bool {
        match self {
            Self::Step(_) => *actor == Actor::User,
            Self::Sentence(_) => false,
            Self::Actor(known) => known == actor,
        }
    }

    /// Returns whether the line is about the object of the cause.
    fn is_for(&self, line: &Line) -> bool {
        let Self::Actor(Actor::Controller(Key { controller, namespace, name })) = self else { return false };
        own_kind(*controller) == Some(line.gvk.kind.as_str())
            && line.gvk.group == OLM_GROUP
            && &line.name == name
            && line.namespaces.len() == 1
            && line.namespaces.contains(namespace)
    }

    fn words(&self, users: &str, only: Option<&str>) -> String {
        let Key { controller, namespace, name } = match self {
            Self::Step(name) => return format!("step: {name}"),
            Self::Sentence(sentence) => return sentence.clone(),
            Self::Actor(Actor::User) => return users.to_owned(),
            Self::Actor(Actor::Kubernetes) => return "Kubernetes".to_owned(),
            Self::Actor(Actor::Controller(key)) => key,
        };
        let subject = path(namespace, name, only);
        match controller {
            Controller::Resolution => format!("Resolution (namespace {subject})"),
            Controller::Namespace => format!("labels of namespace {subject}"),
            Controller::CopiedCsv => format!("copies of ClusterServiceVersion {subject}"),
            Controller::Adoption => format!("component labels of {subject}"),
            Controller::ProvidedApiRoles => format!("roles for the APIs of ClusterServiceVersion {subject}"),
            other => format!("{} {subject}", own_kind(*other).unwrap_or_default()),
        }
    }
}

/// Returns the kind that a controller is named after.
fn own_kind(controller: Controller) -> Option<&'static str> {
    Some(match controller {
        Controller::CatalogSource => "CatalogSource",
        Controller::ClusterServiceVersion => "ClusterServiceVersion",
        Controller::InstallPlan => "InstallPlan",
        Controller::OlmConfig => "OLMConfig",
        Controller::Operator => "Operator",
        Controller::OperatorCondition => "OperatorCondition",
        Controller::OperatorGroup => "OperatorGroup",
        Controller::Adoption
        | Controller::CopiedCsv
        | Controller::Namespace
        | Controller::ProvidedApiRoles
        | Controller::Resolution => return None,
    })
}

/// Returns whether an object exists in every namespace and is not worth reporting.
fn is_unreported(target: &ObjectRef) -> bool {
    match target.gvk.kind.as_str() {
        "Event" | "ReplicaSet" => true,
        "ServiceAccount" => target.name == "default",
        "ConfigMap" => target.name == "kube-root-ca.crt",
        _ => false,
    }
}

/// Returns `namespace/name`, or only the name of a cluster-scoped object or one in the only namespace.
fn path(namespace: &str, name: &str, only: Option<&str>) -> String {
    if namespace.is_empty() || only == Some(namespace) { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl fmt::Display for ChangeLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let only = self.only_namespace();
        if let Some(namespace) = only {
            writeln!(f, "Namespace {namespace}:")?;
        }
        for entry in &self.entries {
            entry.write(f, &|at| self.time(at), self.users, only)?;
        }
        Ok(())
    }
}

impl Entry {
    /// Writes the cause, and its changes below.
    fn write(
        &self,
        f: &mut dyn fmt::Write,
        time: &dyn Fn(Timestamp) -> String,
        users: &str,
        only: Option<&str>,
    ) -> fmt::Result {
        let at = time(self.at);
        let indent = " ".repeat(at.len() + 4);
        let mut words = self.cause.words(users, only);
        match self.lines.as_slice() {
            // The cause and its only change in one sentence.
            [line @ Line { change: Change::Is(state), .. }] if self.cause.is_for(line) => {
                write_wrapped(f, &format!("{at}  "), &indent, &format!("{words}: {state}"))
            }
            _ => {
                if let Some(until) = self.until {
                    words = format!("{words}, until {}", time(until));
                }
                write_wrapped(f, &format!("{at}  "), &indent, &words)?;
                let mut lines = self.words(only).into_iter();
                lines.try_for_each(|line| write_wrapped(f, &indent, &format!("{indent}  "), &line))
            }
        }
    }

    /// Returns the text of the lines, with a count for many consecutive creations or deletions.
    fn words(&self, only: Option<&str>) -> Vec<String> {
        let are_alike =
            |a: &Line, b: &Line| a.gvk == b.gvk && a.change == b.change && !matches!(a.change, Change::Is(_));
        let mut texts = Vec::new();
        for alike in self.lines.chunk_by(are_alike) {
            let named = if alike.len() > MANY { FEW } else { alike.len() };
            texts.extend(alike[..named].iter().flat_map(|line| line.words(&self.cause, only)));
            if let Some(Line { gvk, change, .. }) = alike.get(named) {
                texts.push(change.describe(&format!("{} more of kind {}", alike.len() - named, gvk.kind)));
            }
        }
        texts
    }
}

impl Line {
    /// Returns whether it is the same change of an object of the same name in another namespace.
    fn takes(&self, target: &ObjectRef, change: &Change) -> bool {
        !target.namespace.is_empty()
            && (&self.gvk, &self.name, &self.change) == (&target.gvk, &target.name, change)
            && !self.namespaces.contains(&target.namespace)
    }

    fn words(&self, cause: &Cause, only: Option<&str>) -> Vec<String> {
        let Self { gvk, name, change, namespaces } = self;
        if let Change::Is(words) = change
            && cause.is_for(self)
        {
            return vec![words.clone()];
        }
        if namespaces.len() > FEW {
            return vec![change.describe(&format!("{} {name} in {} namespaces", gvk.kind, namespaces.len()))];
        }
        let objects = namespaces.iter().map(|namespace| format!("{} {}", gvk.kind, path(namespace, name, only)));
        objects.map(|object| change.describe(&object)).collect()
    }
}

impl Change {
    /// Returns the change as text.
    fn describe(&self, object: &str) -> String {
        match self {
            Self::Created => format!("created {object}"),
            Self::Deleted => format!("deleted {object}"),
            Self::Is(words) => format!("{object}: {words}"),
        }
    }
}

/// Writes words after a lead, wrapped at [`WIDTH`] with an indent. Words are not broken.
fn write_wrapped(f: &mut dyn fmt::Write, lead: &str, indent: &str, words: &str) -> fmt::Result {
    let mut line = lead.to_owned();
    let mut is_empty = true;
    for word in words.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(f, "{line}")?;
            indent.clone_into(&mut line);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    writeln!(f, "{line}")
}

/// Returns the state of an object in few words, for kinds that have one.
fn state(object: &Value) -> Option<String> {
    let conditions = Conditions::new(object);
    let text = match object::text(object, &["kind"]) {
        "ClusterServiceVersion" => {
            let csv = Csv::new(object);
            match (csv.phase_text(), csv.reason(), csv.message()) {
                ("", ..) => return None,
                (phase, reason, message) => format!("{phase} ({reason}): {message}"),
            }
        }
        "InstallPlan" => {
            let plan = InstallPlan::new(object);
            match (plan.phase_text(), plan.message()) {
                ("", _) => return None,
                (phase, "") => phase.to_owned(),
                (phase, message) => format!("{phase}: {message}"),
            }
        }
        "Subscription" => {
            let subscription = Subscription::new(object);
            match (subscription.state_text(), conditions.holding(RESOLUTION_FAILED)) {
                (_, Some(failed)) => format!("resolution failed: {}", failed.message()),
                ("", None) => return None,
                (state, None) => format!("{state} {}", subscription.current_csv()),
            }
        }
        "CatalogSource" => match CatalogSource::new(object).connection_state() {
            "" => return None,
            state => format!("connection {state}"),
        },
        "CustomResourceDefinition" if conditions.is_true(ESTABLISHED) => "established".to_owned(),
        "Deployment" if conditions.is_true(AVAILABLE) => "available".to_owned(),
        "Deployment" => match conditions.find(PROGRESSING) {
            Some(progress) if progress.status() == FALSE => progress.message().to_owned(),
            _ => return None,
        },
        _ => return None,
    };
    Some(text)
}

impl Reported {
    fn from_object(object: &Value) -> Self {
        let has_spec = ["InstallPlan", "Subscription", "CatalogSource"].contains(&object::text(object, &["kind"]));
        let spec = if has_spec { object::at(object, &["spec"]).clone() } else { Value::Null };
        Self { deleting: object::is_deleting(object), state: state(object), spec }
    }

    /// Returns the change to report, if any.
    fn since(&self, old: &Self) -> Option<String> {
        if self.deleting && !old.deleting {
            return Some("is being deleted".to_owned());
        }
        if let Some(state) = &self.state
            && old.state.as_ref() != Some(state)
        {
            return Some(state.clone());
        }
        (old.spec != self.spec).then(|| "spec changed".to_owned())
    }
}

#[cfg(test)]
mod tests;
