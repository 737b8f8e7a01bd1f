//! Lists and watches every kind that planning reads, and reports events.

use futures::{StreamExt, TryStreamExt, stream};
use olm_core::api::kinds::{self, Kind};
use olm_core::api::labels;
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::planner::Event;
use olm_core::world::{GroupKind, Unreadable, kind, trim, trimmed};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::api::{Api, Depth, ListQuery, Page, Resource, WatchEvent};
use super::object_filter::{is_component, is_of_olm};
use super::watcher::{Step, Watcher};

/// Which objects of a kind are stored, and how they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Selection {
    /// All objects, because planning reads objects of users.
    All,
    /// ClusterServiceVersions that are not copies.
    Originals,
    /// Copies of ClusterServiceVersions. There may be tens of thousands: they are listed in small pages, because only a small part of each
    /// is stored, and watched by metadata only, because most changes are known from the responses to writes of this process.
    Copies,
    /// Objects that OLM created, by a label selector.
    Managed,
    /// Objects that OLM created, and components of operators. No selector expresses that, so all objects are read and the others discarded.
    Components,
    /// As `Components`, but by metadata only, so that the content of other objects is never read. Objects that OLM created are then read
    /// completely.
    Contents,
}

/// What is watched.
const KINDS: [(&Kind, Selection); 23] = [
    (&kinds::CLUSTER_SERVICE_VERSION, Selection::Originals),
    (&kinds::CLUSTER_SERVICE_VERSION, Selection::Copies),
    (&kinds::SUBSCRIPTION, Selection::All),
    (&kinds::INSTALL_PLAN, Selection::All),
    (&kinds::CATALOG_SOURCE, Selection::All),
    (&kinds::OPERATOR_GROUP, Selection::All),
    (&kinds::OPERATOR, Selection::All),
    (&kinds::OLM_CONFIG, Selection::All),
    (&kinds::OPERATOR_CONDITION, Selection::All),
    (&kinds::NAMESPACE, Selection::All),
    (&kinds::SERVICE_ACCOUNT, Selection::All),
    (&kinds::SERVICE, Selection::Components),
    (&kinds::SECRET, Selection::Contents),
    (&kinds::CONFIG_MAP, Selection::Contents),
    (&kinds::DEPLOYMENT, Selection::Components),
    (&kinds::ROLE, Selection::All),
    (&kinds::ROLE_BINDING, Selection::All),
    (&kinds::CLUSTER_ROLE, Selection::All),
    (&kinds::CLUSTER_ROLE_BINDING, Selection::All),
    (&kinds::CUSTOM_RESOURCE_DEFINITION, Selection::All),
    (&kinds::API_SERVICE, Selection::All),
    (&kinds::MUTATING_WEBHOOK_CONFIGURATION, Selection::Managed),
    (&kinds::VALIDATING_WEBHOOK_CONFIGURATION, Selection::Managed),
];

/// The kinds that are watched in addition if catalogs are served from pods.
const KINDS_OF_PODS: [(&Kind, Selection); 3] = [
    (&kinds::POD, Selection::Managed),
    (&kinds::JOB, Selection::Managed),
    (&kinds::NETWORK_POLICY, Selection::Managed),
];

/// The maximum number of concurrent reads of single objects.
pub(super) const READS: usize = 16;

/// The page size for copies of ClusterServiceVersions. Each may have 100 KB, and several times that in memory.
const COPIES: u32 = 25;

/// A kind that is watched.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) resource: Resource,
    selection: Selection,
    /// Whether it counts as a kind without objects if the API server does not serve it.
    may_miss: bool,
}

impl Watched {
    /// Returns the identity of this watch.
    pub(super) fn id(&self) -> (Gvk, Selection) {
        (self.resource.gvk.clone(), self.selection)
    }

    /// Sets whether the kind counts as a kind without objects if the API server does not serve it.
    pub(super) fn with_missing(self, may_miss: bool) -> Self {
        Self { may_miss, ..self }
    }

    fn labels(&self) -> &'static str {
        match self.selection {
            Selection::Managed => "olm.managed=true",
            Selection::Originals => labels::NOT_COPIED,
            Selection::Copies => labels::COPIED_FROM,
            Selection::All | Selection::Components | Selection::Contents => "",
        }
    }

    fn kept_as(&self) -> GroupKind {
        let gvk = &self.resource.gvk;
        if self.selection == Selection::Copies { kind::COPIED_CSV } else { GroupKind::new(&gvk.group, &gvk.kind) }
    }

    fn list_query(&self) -> ListQuery {
        let query = ListQuery::all(&self.resource).labelled(self.labels());
        match self.selection {
            Selection::Contents => query.depth(Depth::Metadata),
            Selection::Copies => query.limit(COPIES),
            _ => query,
        }
    }

    fn watched_at(&self) -> Depth {
        if matches!(self.selection, Selection::Contents | Selection::Copies) { Depth::Metadata } else { Depth::Whole }
    }

    /// Returns whether the object is relevant, by its metadata.
    fn wants(&self, object: &Value) -> bool {
        let chooses = matches!(self.selection, Selection::Components | Selection::Contents);
        !chooses || is_of_olm(object) || is_component(object)
    }

    /// Returns the object as it is stored, read completely where necessary; `None` if it is irrelevant or deleted.
    async fn read(&self, api: &Api, mut object: Value) -> Result<Option<Read>, Status> {
        if !self.wants(&object) {
            return Ok(None);
        }
        if self.selection == Selection::Contents && is_of_olm(&object) {
            match api.read(&ObjectRef::from_object(&object)).await? {
                Some(Ok(whole)) => object = whole,
                Some(Err(unreadable)) => return Ok(Some(Err(unreadable))),
                None => return Ok(None),
            }
        }
        trim(&mut object);
        Ok(Some(Ok(object)))
    }
}

/// Returns the API resource of a kind that is watched.
pub(crate) fn resource(gvk: &Gvk) -> Option<Resource> {
    kinds(true).into_iter().map(|watched| watched.resource).find(|resource| resource.gvk == *gvk)
}

/// Returns the kinds that are watched; `pods`: catalogs are served from pods.
pub(super) fn kinds(pods: bool) -> Vec<Watched> {
    KINDS
        .iter()
        .chain(KINDS_OF_PODS.iter().filter(|_| pods))
        .map(|(kind, selection)| Watched { resource: Resource::from(*kind), selection: *selection, may_miss: false })
        .collect()
}

/// An object, or the part of it that can be decoded.
type Read = Result<Value, Box<Unreadable>>;

/// A report of a watch to the loop.
#[derive(Debug)]
pub(super) enum Signal {
    /// An observation.
    Event(Event),
    /// An observation of an object that is relevant only if the World contains it already.
    IfKnown(ObjectRef, Event),
    /// The metadata of a copy of a ClusterServiceVersion, which must be read if its state is unknown.
    Copy(Value),
    /// A list is complete that was started in this term of the Lease.
    Synced((Gvk, Selection), u64),
    /// A kind cannot be listed or watched now.
    Trouble(Gvk, Status),
    /// A kind can be listed and watched again.
    Recovered(Gvk),
}

/// Whether a kind can be watched; changes are reported.
struct Health {
    gvk: Gvk,
    signals: mpsc::UnboundedSender<Signal>,
    is_well: bool,
}

impl Health {
    fn well(&mut self) {
        if !std::mem::replace(&mut self.is_well, true) {
            // Here and below: the receiver is dropped only when the process stops.
            let _ = self.signals.send(Signal::Recovered(self.gvk.clone()));
        }
    }

    fn ill(&mut self, refusal: Status) {
        if std::mem::replace(&mut self.is_well, false) {
            let _ = self.signals.send(Signal::Trouble(self.gvk.clone(), refusal));
        }
    }
}

/// Lists and watches one kind until the receiver is dropped. Lists it again whenever `terms` reports that the Lease was acquired.
pub(super) async fn run(
    api: Api,
    watched: Watched,
    signals: mpsc::UnboundedSender<Signal>,
    mut terms: watch::Receiver<u64>,
) {
    let mut health = Health { gvk: watched.resource.gvk.clone(), signals: signals.clone(), is_well: true };
    let mut term = *terms.borrow_and_update();
    let mut listed = Listed::default();
    let mut watcher = Watcher::new(api.clone(), watched.list_query()).watching(watched.watched_at());
    while !signals.is_closed() {
        let step = tokio::select! {
            step = watcher.next() => step,
            () = another(&mut terms) => {
                term = *terms.borrow_and_update();
                listed = Listed::default();
                watcher.relist_now();
                continue;
            }
        };
        match step {
            Step::Page(page) => match listed.take(page, &watched, &api).await {
                Ok(None) => {}
                Ok(Some(event)) => {
                    let _ = signals.send(Signal::Event(event));
                    let _ = signals.send(Signal::Synced(watched.id(), term));
                }
                Err(refusal) => {
                    health.ill(refusal);
                    listed = Listed::default();
                    watcher.relist();
                }
            },
            Step::Watching => health.well(),
            Step::Event(event) => match signal(event, &watched, &api).await {
                Some(signal) => drop(signals.send(signal)),
                // The next list contains objects that could not be read.
                None => watcher.relist(),
            },
            Step::Failed(refusal) if watched.may_miss && refusal.is_not_found() => {
                let _ = signals.send(Signal::Synced(watched.id(), term));
                another(&mut terms).await;
                term = *terms.borrow_and_update();
                watcher.relist_now();
            }
            Step::Failed(refusal) => {
                listed = Listed::default();
                health.ill(refusal);
            }
        }
    }
}

/// Resolves when the Lease was acquired again.
async fn another(terms: &mut watch::Receiver<u64>) {
    if terms.changed().await.is_err() {
        // The sender was dropped.
        std::future::pending::<()>().await;
    }
}

/// Logs an object that cannot be decoded and has no name, so that it cannot be reported as an object.
fn report_nameless(watched: &Watched, unreadable: &Unreadable) {
    tracing::warn!(kind = watched.resource.gvk.kind, "ignoring an object without a name: {}", unreadable.why);
}

/// The stored objects of an incomplete list.
#[derive(Default)]
struct Listed {
    objects: Vec<Value>,
    unreadable: Vec<Unreadable>,
}

impl Listed {
    /// Adds a page. Returns the event of the list after the last one.
    async fn take(&mut self, page: Page, watched: &Watched, api: &Api) -> Result<Option<Event>, Status> {
        let read = stream::iter(page.objects).map(|object| watched.read(api, object)).buffered(READS);
        let kept: Vec<Option<Read>> = read.try_collect().await?;
        for read in kept.into_iter().flatten() {
            match read {
                Ok(object) => self.objects.push(object),
                Err(object) => self.unreadable.push(*object),
            }
        }
        self.unreadable.extend(page.unreadable.into_iter().filter(|object| watched.wants(&object.stub)));
        if !page.next.is_empty() {
            return Ok(None);
        }
        let Self { objects, mut unreadable } = std::mem::take(self);
        unreadable.retain(|object| {
            object.is_named() || {
                report_nameless(watched, object);
                false
            }
        });
        let version = page.resource_version.parse().unwrap_or_default();
        Ok(Some(Event::Listed(watched.kept_as(), objects, unreadable, version)))
    }
}

/// Returns the signal of a watch event; `None` if its object cannot be read now.
async fn signal(event: WatchEvent, watched: &Watched, api: &Api) -> Option<Signal> {
    Some(match event {
        WatchEvent::Added(copy) | WatchEvent::Modified(copy) if watched.selection == Selection::Copies => {
            Signal::Copy(trimmed(&copy))
        }
        WatchEvent::Unreadable(object) if !object.is_named() => {
            report_nameless(watched, &object);
            return None;
        }
        WatchEvent::Unreadable(object) if watched.selection == Selection::Copies => Signal::Copy(object.stub),
        WatchEvent::Unreadable(object) => {
            let target = ObjectRef::from_object(&object.stub);
            let is_wanted = watched.wants(&object.stub);
            let event = Event::Unreadable(object);
            if is_wanted { Signal::Event(event) } else { Signal::IfKnown(target, event) }
        }
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            let target = ObjectRef::from_object(&object);
            let seen = (watched.selection == Selection::Components).then(|| trimmed(&object));
            let uid = object::uid(&object).to_owned();
            match watched.read(api, object).await {
                Ok(Some(Ok(object))) => Signal::Event(Event::Applied(object)),
                Ok(Some(Err(object))) => Signal::Event(Event::Unreadable(*object)),
                Ok(None) => {
                    let event = seen.map_or_else(|| Event::Absent(target.clone(), uid), Event::Applied);
                    Signal::IfKnown(target, event)
                }
                Err(_) => return None,
            }
        }
        WatchEvent::Deleted(object) => Signal::Event(Event::Deleted(object)),
        // The watcher handles these events.
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => return None,
    })
}
