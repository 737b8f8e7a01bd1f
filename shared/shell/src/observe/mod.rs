//! What is there, looked at once and left as it is: the objects of a cluster or of files, as a World.
//!
//! ```text
//!   files     YAML and JSON: what somebody wrote down, a must-gather   --+
//!   strict    fields that no API server knows are refused              --+
//!   cluster   lists, as far as the rights to read go                   --+--> Seen { world, served, gaps }
//!   catalogs  directories, and CatalogSources, as facts                --+
//!   served    which kinds the API server knows, as far as that is known
//!   gap       what could not be read
//!   follow    what happens to a cluster afterwards, for those who wait for something
//! ```
//!
//! *Guarantees*: nothing is ever written. What may not be read is a [`Gap`], and an error only where nothing can be said without it.

pub mod catalogs;
mod cluster;
pub(crate) mod files;
mod follow;
mod gap;
mod served;
pub(crate) mod strict;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::catalog::Snapshot;
use olm_core::settings::Settings;
use olm_core::sim::Strict;
use olm_core::world::{CatalogFact, Fact, FactKey, GroupKind, Reader, World, kind, trim};
use serde_json::{Map, Value, json};

use self::cluster::Kind;
pub(crate) use self::cluster::{KINDS, list};
use self::follow::List;
pub use self::gap::Gap;
pub(crate) use self::gap::STALE;
pub use self::served::Served;
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::{CliError, Printer};
use crate::cluster::api::Api;

/// Where OLM keeps the catalogs that every namespace sees, unless it says otherwise: upstream, and on OpenShift.
const GLOBAL: [&str; 2] = ["olm", "openshift-marketplace"];

/// How much is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Subscriptions and ClusterServiceVersions.
    Installed,
    /// Also what says how they are resolved: OperatorGroups and InstallPlans.
    Resolution,
    /// The same, but what has to be there are the InstallPlans.
    Plans,
    /// Also CatalogSources, and what executing InstallPlans reads: CustomResourceDefinitions, ServiceAccounts, and RBAC.
    Planning,
    /// What says which OperatorGroups get into each other's way, of all namespaces whichever is asked about: namespaces,
    /// OperatorGroups, ClusterServiceVersions and Subscriptions.
    Groups,
    /// Also what the controllers make of that: copies of ClusterServiceVersions (as far as they say whose they are), ServiceAccounts,
    /// and RBAC.
    Tenancy,
    /// Also what could be installed: CatalogSources.
    Offers,
}

impl Need {
    /// Is that looked at?
    pub(crate) fn includes(self, kind: &Kind) -> bool {
        const GROUPS: [&str; 4] = ["Namespace", "OperatorGroup", "ClusterServiceVersion", "Subscription"];
        const TENANCY: [&str; 5] = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
        match self {
            Self::Groups => GROUPS.contains(&kind.name),
            Self::Tenancy => GROUPS.contains(&kind.name) || TENANCY.contains(&kind.name),
            Self::Offers => Self::Tenancy.includes(kind) || kind.name == "CatalogSource",
            Self::Installed | Self::Resolution | Self::Plans | Self::Planning => kind.need <= self,
        }
    }

    /// Does it matter what is in other namespaces than the one that is asked about?
    fn is_wide(self) -> bool {
        matches!(self, Self::Groups | Self::Tenancy | Self::Offers)
    }
}

/// What was seen.
pub struct Seen {
    /// The objects, and the catalogs as facts.
    pub world: World,
    /// The namespace to look at; none for all.
    pub namespace: Option<String>,
    /// Which kinds the API server knows.
    pub served: Served,
    /// Where the objects were read that are from files: `file:line`.
    pub places: BTreeMap<ObjectRef, String>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
    /// The choices that controllers would make here.
    pub settings: Settings,
    /// When.
    pub at: Timestamp,
    /// What was given on top.
    pub on_top: Vec<ObjectRef>,
    /// From where on what happens can be watched.
    lists: Vec<List>,
    /// The cluster; none when files were read.
    api: Option<Api>,
}

/// Looks at what the flags name: a cluster, or files instead of it. `on_top` are files that count as if they had been applied.
///
/// # Errors
/// The flags contradict each other, files cannot be read, nobody answers, or not with OLM's kinds; or a kind without which nothing
/// can be said may not be listed.
pub async fn look(
    source: &SourceFlags,
    namespaces: &NamespaceFlags,
    on_top: &[PathBuf],
    need: Need,
    printer: &mut Printer,
) -> Result<Seen, CliError> {
    let seen = if source.from.is_empty() {
        cluster::look(source, namespaces, need, printer).await?
    } else {
        of_files(source, namespaces, printer)?
    };
    complete(seen, source, on_top, printer)
}

/// The same of files alone: without any, nothing is there but the catalogs that are given.
///
/// # Errors
/// Files cannot be read, or the flags name a cluster.
pub fn look_at_files(
    source: &SourceFlags,
    namespaces: &NamespaceFlags,
    on_top: &[PathBuf],
    printer: &mut Printer,
) -> Result<Seen, CliError> {
    complete(of_files(source, namespaces, printer)?, source, on_top, printer)
}

fn complete(mut seen: Seen, source: &SourceFlags, on_top: &[PathBuf], printer: &mut Printer) -> Result<Seen, CliError> {
    for files::Given { mut object, place, .. } in files::read(on_top)? {
        seen.place(&mut object);
        seen.served.add_object(&object);
        seen.on_top.push(ObjectRef::of(&object));
        seen.places.insert(ObjectRef::of(&object), place);
        let there =
            Reader::new(&seen.world).json(&GroupKind::of(&object), object::namespace(&object), object::name(&object));
        let object = applied(there, object, seen.at);
        seen.world.apply(object);
    }
    let global = source.catalog_namespace.clone().or_else(|| global(&seen.world));
    if let Some(global) = global {
        seen.settings.global_catalog_namespace = global;
    }
    for catalog in catalogs::given(source, &seen.settings)? {
        catalog.load_into(&mut seen, printer)?;
    }
    Ok(seen)
}

/// What comes of applying an object: what others wrote into the one that is there stays.
fn applied(there: Option<&Value>, mut object: Value, now: Timestamp) -> Value {
    let metadata = object::map_mut(&mut object, &["metadata"]);
    // It is newer than whatever was seen.
    metadata.remove("resourceVersion");
    metadata.insert("managedFields".to_owned(), json!([{ "time": object::time(now) }]));
    let Some(there) = there else { return object };
    for field in ["uid", "creationTimestamp"] {
        object["metadata"][field] = there["metadata"][field].clone();
    }
    for field in ["labels", "annotations"] {
        let mut all: Map<String, Value> = there["metadata"][field].as_object().cloned().unwrap_or_default();
        all.extend(object["metadata"][field].as_object().cloned().unwrap_or_default());
        if !all.is_empty() {
            object["metadata"][field] = all.into();
        }
    }
    if object["status"].is_null() && !there["status"].is_null() {
        object["status"] = there["status"].clone();
    }
    object
}

/// The namespace that has CatalogSources and is known to be OLM's.
fn global(world: &World) -> Option<String> {
    let world = Reader::new(world);
    GLOBAL.into_iter().find(|name| world.in_namespace(&kind::CATALOG_SOURCE, name).next().is_some()).map(str::to_owned)
}

fn of_files(source: &SourceFlags, namespaces: &NamespaceFlags, printer: &mut Printer) -> Result<Seen, CliError> {
    if source.cluster.is_given() {
        return Err(CliError::usage("objects are read from files or from a cluster, not from both")
            .hint("leave out either --from or --context and its like"));
    }
    let gathered = files::gather(&source.from)?;
    if let [first, ..] = &gathered.left_out[..] {
        let n = gathered.left_out.len();
        let what = if n == 1 { "1 file holds".to_owned() } else { format!("{n} files hold") };
        printer.warn(format_args!(
            "{what} no Kubernetes objects that can be read, and what is in there is left out: {first}"
        ));
    }
    strict::check(&gathered.given, &mut Strict::default(), printer)?;
    let namespace = if namespaces.all_namespaces { None } else { namespaces.namespace.clone() };
    let mut seen = Seen {
        world: World::new(),
        namespace,
        served: Served::default(),
        places: BTreeMap::new(),
        gaps: Vec::new(),
        settings: Settings::default(),
        at: Timestamp::now(),
        on_top: Vec::new(),
        lists: Vec::new(),
        api: None,
    };
    gathered.discovery.iter().for_each(|list| seen.served.add_discovery(list));
    for files::Given { mut object, place, .. } in gathered.given {
        seen.place(&mut object);
        seen.places.insert(ObjectRef::of(&object), place);
        seen.served.add_object(&object);
        seen.world.apply(object);
    }
    Ok(seen)
}

impl Seen {
    /// The cluster that was looked at; none when files were read.
    pub fn api(&self) -> Option<&Api> {
        self.api.as_ref()
    }

    /// A place to try something out: these objects and no others, and no cluster, but the same kinds, and these catalogs.
    pub(crate) fn instead(&self, objects: Vec<Value>, catalogs: BTreeMap<(String, String), Arc<Snapshot>>) -> Self {
        let mut world = World::new();
        for ((namespace, name), snapshot) in catalogs {
            let fact = Fact::Catalog(CatalogFact::local(snapshot, self.at));
            world.learn(FactKey::Catalog(namespace, name), Some(fact));
        }
        let mut served = self.served.clone();
        for object in objects {
            served.add_object(&object);
            world.apply(object);
        }
        Self {
            world,
            namespace: self.namespace.clone(),
            served,
            places: BTreeMap::new(),
            gaps: Vec::new(),
            settings: self.settings.clone(),
            at: self.at,
            on_top: Vec::new(),
            lists: Vec::new(),
            api: None,
        }
    }

    /// Takes it that these kinds are served.
    pub(crate) fn serve(&mut self, kinds: impl IntoIterator<Item = Gvk>) {
        kinds.into_iter().for_each(|gvk| self.served.add(gvk, None));
    }

    /// Is the object in a namespace that is looked at?
    pub fn is_asked(&self, object: &Value) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| namespace == object::namespace(object))
    }

    /// Says what could not be read.
    pub fn tell_gaps(&self, printer: &mut Printer) {
        for gap in &self.gaps {
            printer.warn(format_args!("{gap}; the answer does without"));
        }
    }

    /// Looks at single objects, whatever their kinds: those that are there are in the World afterwards. What may not be read is
    /// a gap; kinds that are not served are not there.
    pub async fn look_at(&mut self, targets: impl IntoIterator<Item = ObjectRef>) {
        let Some(api) = self.api.clone() else { return };
        let missing: Vec<ObjectRef> = targets.into_iter().filter(|target| !self.world.knows(target)).collect();
        for (target, answer) in cluster::get(&api, missing).await {
            match answer {
                Ok(Some(object)) => {
                    self.world.apply(object);
                }
                Ok(None) => {}
                Err(refusal) if refusal.is_not_found() => {}
                Err(refusal) => self.gaps.push(Gap::get(&target, &refusal)),
            }
        }
    }

    /// Lists objects of a kind that is looked at here, in one namespace or (when it is empty) in all. What may not be listed is a gap.
    pub(crate) async fn list(&mut self, gk: &GroupKind, namespace: &str) {
        let Some(api) = self.api.clone() else { return };
        let Some(kind) = KINDS.iter().find(|kind| (kind.group, kind.name) == (&*gk.group, &*gk.kind)) else { return };
        match cluster::listed(&api, kind, namespace).await {
            Ok((objects, gaps)) => {
                self.gaps.extend(gaps);
                for mut object in objects {
                    trim(&mut object);
                    self.world.apply(object);
                }
            }
            Err(refusal) => self.gaps.push(Gap::list(kind, namespace, &refusal)),
        }
    }

    /// Puts an object that says no namespace where kubectl would put it, if it needs one.
    fn place(&self, object: &mut Value) {
        if !object::namespace(object).is_empty() {
            return;
        }
        let gvk = object::gvk(object);
        let namespaced = KINDS
            .iter()
            .find(|known| (known.group, known.name) == (gvk.group.as_str(), gvk.kind.as_str()))
            .is_some_and(|known| known.namespaced);
        if namespaced || self.served.is_namespaced(&gvk) == Some(true) {
            let namespace = self.namespace.as_deref().unwrap_or("default");
            object::map_mut(object, &["metadata"]).insert("namespace".to_owned(), namespace.into());
        }
    }
}

/// A refusal that says that somebody may not, as opposed to the API server being in trouble.
fn is_lack_of_rights(refusal: &Status) -> bool {
    matches!(refusal.code, 401 | 403)
}

#[cfg(test)]
mod tests;
