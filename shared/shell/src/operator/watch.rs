//! The state of an operator, kept up to date by watches.
//!
//! ```text
//!   Subscriptions, InstallPlans, ClusterServiceVersions, OperatorGroups of the namespace --+
//!   CatalogSources of the namespaces that the Subscription names, where permitted ---------+--World--> olm_core::health
//! ```

use futures::future::select_all;
use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::api::subscription::Subscription;
use olm_core::health::{self, Operator, Scope};
use olm_core::settings::Settings;
use olm_core::world::{GroupKind, Reader, World, kind};
use serde_json::Value;

use crate::cli::{CliError, Printer};
use crate::cluster::api::{Api, ListQuery, Resource, WatchEvent};
use crate::cluster::follow::lasts;
use crate::cluster::request_error::RequestError;
use crate::cluster::watcher::{Step, Watcher};

/// The kinds that the state of an operator is derived from.
const KINDS: [Kind; 4] =
    [kinds::SUBSCRIPTION, kinds::INSTALL_PLAN, kinds::CLUSTER_SERVICE_VERSION, kinds::OPERATOR_GROUP];

/// The objects that an operator consists of, kept up to date by watches.
pub(super) struct OperatorWatch {
    api: Api,
    namespace: String,
    name: String,
    world: World,
    watched: Vec<Watched>,
    settings: Settings,
    /// The server error that was reported last.
    trouble: Option<String>,
}

struct Watched {
    kind: Kind,
    namespace: String,
    /// Whether the state can be derived without these objects.
    is_optional: bool,
    watcher: Watcher,
    /// The objects of the pages of a list that is not complete.
    listed: Vec<Value>,
    /// Whether a list was complete at least once.
    is_known: bool,
}

impl Watched {
    fn new(api: &Api, kind: Kind, namespace: &str) -> Self {
        let query = ListQuery::all(&Resource::from(&kind)).within(namespace);
        Self {
            watcher: Watcher::new(api.clone(), query),
            kind,
            namespace: namespace.to_owned(),
            is_optional: false,
            listed: Vec::new(),
            is_known: false,
        }
    }
}

impl OperatorWatch {
    /// Starts the watches.
    pub(super) fn new(api: &Api, namespace: &str, name: &str) -> Self {
        Self {
            api: api.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            world: World::new(),
            watched: KINDS.into_iter().map(|kind| Watched::new(api, kind, namespace)).collect(),
            settings: Settings::default(),
            trouble: None,
        }
    }

    /// Returns the client of the watches.
    pub(super) fn api(&self) -> &Api {
        &self.api
    }

    /// Returns the name of the operator.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the current state of the operator.
    pub(super) fn operator(&self) -> Option<Operator> {
        // A catalog that was not read is no cause: controllers can serve it from a directory.
        let scope = Scope { settings: &self.settings, knows_groups: true, knows_catalogs: false };
        let all = health::operators(&self.reader(), scope, Some(&self.namespace));
        all.into_iter().find(|operator| operator.name == self.name)
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
            if is_changed && self.watched.iter().all(|watched| watched.is_known) && !self.follow_catalog() {
                return Ok(());
            }
        }
    }

    /// Starts to watch the catalogs of the namespace that the Subscription names. Returns whether it was not watched yet.
    fn follow_catalog(&mut self) -> bool {
        let subscription = self.reader().json(&kind::SUBSCRIPTION, &self.namespace, &self.name);
        let namespace = subscription.map(|json| Subscription::new(json).source_namespace().to_owned());
        let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) else { return false };
        let is_watched = |watched: &Watched| watched.kind == kinds::CATALOG_SOURCE && watched.namespace == namespace;
        if self.watched.iter().any(is_watched) {
            return false;
        }
        let catalogs = Watched::new(&self.api, kinds::CATALOG_SOURCE, &namespace);
        self.watched.push(Watched { is_optional: true, ..catalogs });
        true
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
                let readable =
                    page.readable().map_err(|refusal| refused(&refusal, &watched.kind, &watched.namespace))?;
                watched.listed.extend(readable.0);
                if is_last {
                    let listed = std::mem::take(&mut watched.listed);
                    watched.is_known = true;
                    let (kind, namespace) = (watched.kind.gvk(), watched.namespace.clone());
                    self.replace(&kind.group, &kind.kind, &namespace, listed);
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
            Step::Failed(_) if watched.is_optional => {
                // Without them the state is derived from the other objects. A watcher retries by itself.
                Ok(!std::mem::replace(&mut watched.is_known, true))
            }
            // Without a first list there is nothing to wait for: a server that does not respond is an error, as in other commands.
            Step::Failed(refusal) if lasts(&refusal) || !watched.is_known => {
                Err(refused(&refusal, &watched.kind, &watched.namespace))
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

    /// Replaces the objects of a kind in a namespace by those of a list.
    fn replace(&mut self, group: &str, of_kind: &str, namespace: &str, listed: Vec<Value>) {
        let is_of_kind = |object: &Value| {
            let gvk = object::gvk(object);
            gvk.group == group && gvk.kind == of_kind && object::namespace(object) == namespace
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
