//! List and watch: every kind that planning reads, into events.

use futures::{StreamExt, TryStreamExt, stream};
use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::planner::Event;
use olm_core::world::{GroupKind, Unreadable, kind, trim, trimmed};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::api::{Api, Depth, ListQuery, Page, Resource, WatchEvent};
use super::interest::{is_component, is_ours};
use super::watcher::{Step, Watcher};

/// Which objects of a kind are kept, and how they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Selection {
    /// All: planning reads what users made.
    All,
    /// ClusterServiceVersions that are no copies.
    Originals,
    /// Copies of ClusterServiceVersions. There may be tens of thousands: they are listed in small pages, for of each next to nothing is kept,
    /// and watched by metadata only, for most of what happens to them is known from the answers to our own writes.
    Copies,
    /// What OLM made. The API server chooses.
    Managed,
    /// What OLM made, and components of operators. No selector says that, so all are read, and the others forgotten.
    Components,
    /// The same, by metadata only: nothing is read of what others keep in there. What OLM made is then read whole.
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

/// What is watched besides when catalogs are served from pods.
const KINDS_OF_PODS: [(&Kind, Selection); 3] = [
    (&kinds::POD, Selection::Managed),
    (&kinds::JOB, Selection::Managed),
    (&kinds::NETWORK_POLICY, Selection::Managed),
];

/// How many objects are read whole at a time.
pub(super) const READS: usize = 16;

/// How many copies of ClusterServiceVersions are listed at a time. Each may have a hundred kilobytes, several times that in memory.
const COPIES: u32 = 25;

/// A kind that is watched.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) resource: Resource,
    selection: Selection,
    /// Is it taken to have no objects when the API server does not serve it?
    may_miss: bool,
}

impl Watched {
    /// What tells this from all else that is watched.
    pub(super) fn id(&self) -> (Gvk, Selection) {
        (self.resource.gvk.clone(), self.selection)
    }

    /// The same, taken to have no objects when the API server does not serve it.
    pub(super) fn with_missing(self, may_miss: bool) -> Self {
        Self { may_miss, ..self }
    }

    fn labels(&self) -> &'static str {
        match self.selection {
            Selection::Managed => "olm.managed=true",
            Selection::Originals => "!olm.copiedFrom",
            Selection::Copies => "olm.copiedFrom",
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

    /// Is the object of interest, by its metadata?
    fn wants(&self, object: &Value) -> bool {
        let chooses = matches!(self.selection, Selection::Components | Selection::Contents);
        !chooses || is_ours(object) || is_component(object)
    }

    /// The object as it is kept, read whole where it has to be. `None`: it is of no interest, or gone.
    async fn read(&self, api: &Api, mut object: Value) -> Result<Option<Read>, Status> {
        if !self.wants(&object) {
            return Ok(None);
        }
        if self.selection == Selection::Contents && is_ours(&object) {
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

/// Where a kind that is watched lives in the API.
pub(crate) fn resource(gvk: &Gvk) -> Option<Resource> {
    kinds(true).into_iter().map(|watched| watched.resource).find(|resource| resource.gvk == *gvk)
}

/// The kinds that are watched; `pods`: catalogs are served from pods.
pub(super) fn kinds(pods: bool) -> Vec<Watched> {
    KINDS
        .iter()
        .chain(KINDS_OF_PODS.iter().filter(|_| pods))
        .map(|(kind, selection)| Watched { resource: Resource::from(*kind), selection: *selection, may_miss: false })
        .collect()
}

/// An object, or as much of it as can be read.
type Read = Result<Value, Box<Unreadable>>;

/// What a watch tells the loop.
#[derive(Debug)]
pub(super) enum Signal {
    /// Something was observed.
    Event(Event),
    /// This was observed of an object that is of interest only if it is known already: somebody had to look at it.
    IfKnown(ObjectRef, Event),
    /// This is the metadata of a copy of a ClusterServiceVersion: who does not know its state already has to look.
    Copy(Value),
    /// A list of what is watched is complete, which was begun when the Lease had been taken so often.
    Synced((Gvk, Selection), u64),
    /// A kind cannot be listed or watched now.
    Trouble(Gvk, Status),
    /// It can again.
    Recovered(Gvk),
}

/// Whether a kind can be watched: told when it changes.
struct Health {
    gvk: Gvk,
    signals: mpsc::UnboundedSender<Signal>,
    is_well: bool,
}

impl Health {
    fn well(&mut self) {
        if !std::mem::replace(&mut self.is_well, true) {
            // Here and below: nobody listens when the process stops.
            let _ = self.signals.send(Signal::Recovered(self.gvk.clone()));
        }
    }

    fn ill(&mut self, refusal: Status) {
        if std::mem::replace(&mut self.is_well, false) {
            let _ = self.signals.send(Signal::Trouble(self.gvk.clone(), refusal));
        }
    }
}

/// Lists and watches one kind for ever; lists it anew whenever the Lease was taken, of which `terms` tells.
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
                // What could not be read is found by the next list.
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

/// Resolves when the Lease was taken once more.
async fn another(terms: &mut watch::Receiver<u64>) {
    if terms.changed().await.is_err() {
        // Nobody tells any more.
        std::future::pending::<()>().await;
    }
}

/// Says that an object cannot be read which has not even a name: nobody can wait for it.
fn tell_nameless(watched: &Watched, unreadable: &Unreadable) {
    tracing::warn!(kind = watched.resource.gvk.kind, "an object without a name is left out: {}", unreadable.why);
}

/// The pages of a list so far, as much of them as is kept.
#[derive(Default)]
struct Listed {
    objects: Vec<Value>,
    unreadable: Vec<Unreadable>,
}

impl Listed {
    /// Takes a page in. With the last comes the event of the list.
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
                tell_nameless(watched, object);
                false
            }
        });
        let version = page.resource_version.parse().unwrap_or_default();
        Ok(Some(Event::Listed(watched.kept_as(), objects, unreadable, version)))
    }
}

/// What an event of a watch tells the loop; `None`: its object cannot be read now.
async fn signal(event: WatchEvent, watched: &Watched, api: &Api) -> Option<Signal> {
    Some(match event {
        WatchEvent::Added(copy) | WatchEvent::Modified(copy) if watched.selection == Selection::Copies => {
            Signal::Copy(trimmed(&copy))
        }
        WatchEvent::Unreadable(object) if !object.is_named() => {
            tell_nameless(watched, &object);
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
        // The watcher deals with them.
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => return None,
    })
}
