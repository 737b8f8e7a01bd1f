//! Follows the operators of a namespace, until a condition holds or can no longer hold.
//!
//! ```text
//!   watches of Subscriptions, InstallPlans, ClusterServiceVersions, OperatorGroups --World--> olm_core::health --> judge
//! ```

use std::time::Duration;

use futures::future::select_all;
use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::health::{self, Health, Operator, Scope};
use olm_core::plan::Reason;
use olm_core::settings::Settings;
use olm_core::world::{GroupKind, Reader, World};
use serde_json::Value;

use super::cause::cause;
use crate::cli::{CliError, ErrorKind, Printer, signal};
use crate::cluster::api::{Api, ListQuery, Resource, WatchEvent};
use crate::cluster::follow::lasts;
use crate::cluster::request_error::RequestError;
use crate::cluster::watcher::{Step, Watcher};

/// The kinds that the state of an operator is derived from.
const KINDS: [Kind; 4] =
    [kinds::SUBSCRIPTION, kinds::INSTALL_PLAN, kinds::CLUSTER_SERVICE_VERSION, kinds::OPERATOR_GROUP];

/// The objects of a namespace that operators consist of, kept up to date by watches.
pub(super) struct OperatorWatch {
    namespace: String,
    world: World,
    watched: Vec<Watched>,
    settings: Settings,
    /// The server error that was reported last.
    trouble: Option<String>,
}

struct Watched {
    kind: Kind,
    watcher: Watcher,
    /// The objects of the pages of a list that is not complete.
    listed: Vec<Value>,
    /// Whether a list was complete at least once.
    is_known: bool,
}

impl OperatorWatch {
    /// Starts the watches.
    pub(super) fn new(api: &Api, namespace: &str) -> Self {
        let watched = |kind: Kind| {
            let query = ListQuery::all(&Resource::from(&kind)).within(namespace);
            Watched { kind, watcher: Watcher::new(api.clone(), query), listed: Vec::new(), is_known: false }
        };
        Self {
            namespace: namespace.to_owned(),
            world: World::new(),
            watched: KINDS.into_iter().map(watched).collect(),
            settings: Settings::default(),
            trouble: None,
        }
    }

    /// Returns the current state of an operator.
    pub(super) fn operator(&self, name: &str) -> Option<Operator> {
        // Catalogs are not watched: they are read before anything is changed.
        let scope = Scope { settings: &self.settings, knows_groups: true, knows_catalogs: false };
        let all = health::operators(&self.reader(), scope, Some(&self.namespace));
        all.into_iter().find(|operator| operator.name == name)
    }

    fn reader(&self) -> Reader<'_> {
        Reader::new(&self.world)
    }

    /// Waits for a change of the objects. Returns at once with the first complete state.
    ///
    /// # Errors
    /// The server refuses to list or watch the objects, or does not respond to the first list.
    pub(super) async fn changed(&mut self, printer: &mut Printer) -> Result<(), CliError> {
        loop {
            let (index, step) = {
                let next = self.watched.iter_mut().enumerate();
                let steps = next.map(|(index, watched)| Box::pin(async move { (index, watched.watcher.next().await) }));
                select_all(steps).await.0
            };
            let is_changed = self.apply(index, step, printer)?;
            if is_changed && self.watched.iter().all(|watched| watched.is_known) {
                return Ok(());
            }
        }
    }

    /// Applies a step of a watcher. Returns whether objects may have changed.
    fn apply(&mut self, index: usize, step: Step, printer: &mut Printer) -> Result<bool, CliError> {
        let Some(watched) = self.watched.get_mut(index) else { return Ok(false) };
        if !matches!(step, Step::Failed(_)) {
            self.trouble = None;
        }
        match step {
            Step::Page(page) => {
                let is_last = page.next.is_empty();
                let readable = page.readable().map_err(|refusal| refused(&refusal, &watched.kind, &self.namespace))?;
                watched.listed.extend(readable.0);
                if is_last {
                    let listed = std::mem::take(&mut watched.listed);
                    watched.is_known = true;
                    let kind = watched.kind.gvk();
                    self.replace(&kind.group, &kind.kind, listed);
                }
                Ok(is_last)
            }
            Step::Event(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                Ok(self.world.apply(object).is_some())
            }
            Step::Event(WatchEvent::Deleted(object)) => {
                self.delete(&object);
                Ok(true)
            }
            Step::Event(WatchEvent::Unreadable(object)) => Ok(self.world.apply_unreadable(object).is_some()),
            Step::Event(_) | Step::Watching => Ok(false),
            // Without a first list there is nothing to wait for: a server that does not respond is an error, as in other commands.
            Step::Failed(refusal) if lasts(&refusal) || !watched.is_known => {
                Err(refused(&refusal, &watched.kind, &self.namespace))
            }
            Step::Failed(refusal) => {
                if self.trouble.as_ref() != Some(&refusal.message) {
                    printer.warn(format_args!("no answer from the server, retrying: {}", refusal.message));
                    self.trouble = Some(refusal.message);
                }
                Ok(false)
            }
        }
    }

    /// Replaces the objects of a kind by those of a list.
    fn replace(&mut self, group: &str, of_kind: &str, listed: Vec<Value>) {
        let is_of_kind = |object: &Value| {
            let gvk = object::gvk(object);
            gvk.group == group && gvk.kind == of_kind
        };
        let uids: Vec<&str> = listed.iter().map(object::uid).collect();
        let gone = self.world.objects().map(|known| known.json()).filter(|known| is_of_kind(known));
        let gone: Vec<Value> = gone.filter(|known| !uids.contains(&object::uid(known))).cloned().collect();
        for object in &gone {
            self.delete(object);
        }
        for object in listed {
            self.world.apply(object);
        }
    }

    fn delete(&mut self, object: &Value) {
        let ObjectRef { gvk, namespace, name } = ObjectRef::from_object(object);
        let version = object::resource_version(object).parse().unwrap_or_default();
        let kind = GroupKind::new(&gvk.group, &gvk.kind);
        self.world.delete(&kind, &(namespace, name), object::uid(object), version);
    }
}

fn refused(refusal: &Status, kind: &Kind, namespace: &str) -> CliError {
    RequestError::new("list", kind.resource(), namespace, refusal.clone()).into()
}

/// The result of looking at an operator.
pub(super) enum Judgement<T> {
    /// The condition holds.
    Reached(T),
    /// The condition can no longer hold without a user's action.
    Never(CliError),
    /// The condition may still become true.
    NotYet,
}

/// Reports the states of an operator, each once.
#[derive(Default)]
pub(super) struct Progress {
    reported: String,
}

impl Progress {
    /// Reports the state if it differs from the last one.
    pub(super) fn report(&mut self, name: &str, operator: Option<&Operator>, printer: &mut Printer) {
        let text = operator.map_or_else(|| "does not exist yet".to_owned(), state);
        if self.reported != text {
            printer.talk(format_args!("{name}: {text}"));
            self.reported = text;
        }
    }
}

/// Returns the state of an operator in one line.
pub(super) fn state(operator: &Operator) -> String {
    let version = operator.next.as_ref().or(operator.installed.as_ref());
    let csv = version.map(|version| match version.phase.as_str() {
        "" => version.csv.clone(),
        phase => format!("{} {phase}", version.csv),
    });
    let health = operator.health.as_str();
    let cause = operator.reason.as_ref().map(cause).filter(|cause| !cause.is_empty());
    [Some(csv.unwrap_or_else(|| health.to_owned())), cause].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// Returns the error if an operator cannot become healthy without a user's action. Requirements that are not met are no
/// such state: another operator, or a step of the same InstallPlan, may provide them.
pub(super) fn terminal(operator: &Operator) -> Option<CliError> {
    let reason = operator.reason.as_ref()?;
    if operator.health != Health::Blocked || reason.is_of_requirements() {
        return None;
    }
    if matches!(
        reason,
        Reason::ApprovalNeeded { .. }
            | Reason::InstallPlanRetries { .. }
            // A status is written after the objects that it names.
            | Reason::Missing { .. }
    ) {
        return None;
    }
    let error = CliError::new(ErrorKind::Api, format!("{} cannot continue: {reason}", operator.name));
    let hints = [reason.hint(), operator.command.clone().map(|command| format!("for more: {command}"))];
    Some(hints.into_iter().flatten().fold(error, CliError::hint))
}

/// Waits until `judge` decides.
///
/// # Errors
/// The objects cannot be read, the wait was interrupted, the time is up, or the condition can no longer hold.
pub(super) async fn until<T>(
    watch: &mut OperatorWatch,
    timeout: Option<Duration>,
    name: &str,
    what: &str,
    printer: &mut Printer,
    mut judge: impl FnMut(&OperatorWatch, &mut Printer) -> Judgement<T>,
) -> Result<T, CliError> {
    let end = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let (mut end, mut stopped) = (std::pin::pin!(end), std::pin::pin!(signal::stopped()));
    loop {
        tokio::select! {
            biased;
            changed = watch.changed(printer) => {
                changed?;
                match judge(watch, printer) {
                    Judgement::Reached(result) => return Ok(result),
                    Judgement::Never(error) => return Err(error),
                    Judgement::NotYet => {}
                }
            }
            () = &mut end => {
                let after = timeout.map(crate::cli::table::age).unwrap_or_default();
                let last = watch.operator(name);
                let last = last.map_or_else(|| "it does not exist".to_owned(), |operator| state(&operator));
                return Err(CliError::new(ErrorKind::Api, format!("{name} is not {what} after {after}: {last}"))
                    .hint("run the command again to continue to wait"));
            }
            () = &mut stopped => {
                return Err(CliError::new(ErrorKind::Unreachable, format!("interrupted before {name} was {what}"))
                    .hint("run the command again to continue"));
            }
        }
    }
}
