//! A cluster, listed once.

use std::collections::BTreeMap;

use futures::future::join_all;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use olm_core::api::labels;
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::membership;
use olm_core::settings::Settings;
use olm_core::world::kind::COPIED_CSV;
use olm_core::world::{Fact, FactKey, GroupKind, World, trim};
use serde_json::{Value, json};

use super::follow::List;
use super::{GLOBAL, Gap, Need, Seen, Served, is_lack_of_rights};
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::{CliError, ErrorKind, Printer};
use crate::cluster::api::{Api, Depth, PAGE, Page, Resource};
use crate::cluster::connect::connect_in;

/// OLM's group.
const OLM: &str = "operators.coreos.com";
const RBAC: &str = "rbac.authorization.k8s.io";

/// How many requests are under way at a time.
const REQUESTS: usize = 16;

/// A kind that is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    version: &'static str,
    pub(crate) name: &'static str,
    plural: &'static str,
    pub(crate) namespaced: bool,
    /// For what.
    pub(crate) need: Need,
}

const fn kind(
    group: &'static str,
    version: &'static str,
    name: &'static str,
    plural: &'static str,
    need: Need,
) -> Kind {
    Kind { group, version, name, plural, namespaced: true, need }
}

impl Kind {
    const fn of_the_cluster(self) -> Self {
        Self { namespaced: false, ..self }
    }

    /// Can nothing that is asked be said without it?
    fn is_vital(&self, need: Need) -> bool {
        match need {
            Need::Installed | Need::Resolution => ["Subscription", "ClusterServiceVersion"].contains(&self.name),
            Need::Plans => self.name == "InstallPlan",
            Need::Planning => false,
            Need::Groups | Need::Tenancy | Need::Offers => self.name == "OperatorGroup",
        }
    }

    /// Where it lives in the API.
    fn located(&self) -> Resource {
        let Self { group, version, name, plural, namespaced, .. } = *self;
        Resource { gvk: Gvk::new(group, version, name), plural: plural.to_owned(), namespaced }
    }

    /// `installplans.operators.coreos.com`
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// The kinds that are looked at.
pub(crate) const KINDS: [Kind; 14] = [
    kind(OLM, "v1alpha1", "Subscription", "subscriptions", Need::Installed),
    kind(OLM, "v1alpha1", "ClusterServiceVersion", "clusterserviceversions", Need::Installed),
    kind(OLM, "v1", "OperatorGroup", "operatorgroups", Need::Resolution),
    kind(OLM, "v1alpha1", "InstallPlan", "installplans", Need::Resolution),
    kind(OLM, "v1alpha1", "CatalogSource", "catalogsources", Need::Planning),
    kind("", "v1", "Namespace", "namespaces", Need::Planning).of_the_cluster(),
    kind("", "v1", "ServiceAccount", "serviceaccounts", Need::Planning),
    kind(RBAC, "v1", "Role", "roles", Need::Planning),
    kind(RBAC, "v1", "RoleBinding", "rolebindings", Need::Planning),
    kind(RBAC, "v1", "ClusterRole", "clusterroles", Need::Planning).of_the_cluster(),
    kind(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", Need::Planning).of_the_cluster(),
    kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", Need::Planning)
        .of_the_cluster(),
    kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", Need::Planning).of_the_cluster(),
    kind("apps", "v1", "Deployment", "deployments", Need::Planning),
];

/// Looks at a cluster.
pub(super) async fn look(
    source: &SourceFlags,
    namespaces: &NamespaceFlags,
    need: Need,
    printer: &mut Printer,
) -> Result<Seen, CliError> {
    let progress = printer.progress("reading the cluster");
    let (api, namespace) = connect_in(&source.cluster, namespaces.namespace.as_deref()).await?;
    let namespace = (!namespaces.all_namespaces).then_some(namespace);
    let mut world = World::new();
    let (mut gaps, lists) = take_stock(&api, namespace.as_deref().unwrap_or_default(), need, &mut world).await?;
    let mut served = Served::default();
    let lacks_catalogs = need == Need::Planning || gaps.iter().any(Gap::is_of_catalogs);
    if let Some(namespace) = namespace.as_ref().filter(|_| lacks_catalogs) {
        let global = source.catalog_namespace.as_deref().map_or(&GLOBAL[..], |_| &[]).iter().copied();
        let global = global.chain(source.catalog_namespace.as_deref()).filter(|global| global != namespace);
        for global in global {
            gaps.extend(list_catalogs(&api, global, &mut world).await);
        }
    }
    if need == Need::Planning {
        match api.discover().await {
            Ok((resources, stale)) => {
                for resource in resources {
                    served.add(resource.gvk, Some(resource.namespaced));
                }
                served.complete();
                for (group, version) in stale {
                    gaps.push(Gap::stale(&group, &version));
                    served.hide(group, version);
                }
            }
            Err(refusal) => gaps.push(Gap::discovery(&refusal)),
        }
        if let Ok(version) = api.version().await {
            world.learn(FactKey::ServerVersion, Some(Fact::ServerVersion(version)));
        }
    }
    drop(progress);
    let settings = Settings::default();
    let (places, on_top) = (BTreeMap::new(), Vec::new());
    Ok(Seen { world, namespace, served, places, gaps, settings, at: Timestamp::now(), on_top, lists, api: Some(api) })
}

/// Lists what is needed into the World, in one namespace or (when it is empty) in all. What has to be seen of all namespaces is
/// listed in the one where that is not allowed.
///
/// # Errors
/// A kind without which nothing can be said cannot be listed.
pub(crate) async fn list(api: &Api, namespace: &str, need: Need, world: &mut World) -> Result<Vec<Gap>, CliError> {
    Ok(take_stock(api, namespace, need, world).await?.0)
}

/// The same, with the lists from which on what happens can be watched.
async fn take_stock(
    api: &Api,
    namespace: &str,
    need: Need,
    world: &mut World,
) -> Result<(Vec<Gap>, Vec<List>), CliError> {
    let mut lists = Vec::new();
    let mut wanted: Vec<&Kind> = KINDS.iter().filter(|kind| need.includes(kind)).collect();
    let mut gaps = Vec::new();
    let places = if need.is_wide() && !namespace.is_empty() { vec!["", namespace] } else { vec![namespace] };
    for (at, place) in places.iter().enumerate() {
        let answers = join_all(wanted.iter().map(|kind| list_kind(api, kind, place))).await;
        let mut narrower = Vec::new();
        for (kind, answer) in wanted.into_iter().zip(answers) {
            match answer {
                Ok((list, page)) => {
                    lists.push(list);
                    gaps.extend(page.unreadable.iter().map(|object| Gap::unreadable(kind, object)));
                    for object in page.objects {
                        take(object, need.is_wide(), world);
                    }
                }
                Err(refusal) if at + 1 < places.len() && kind.namespaced && is_lack_of_rights(&refusal) => {
                    gaps.push(Gap::list(kind, place, &refusal));
                    narrower.push(kind);
                }
                Err(refusal) if !is_fatal(&refusal, kind, need) => gaps.push(Gap::list(kind, place, &refusal)),
                Err(refusal) => return Err(refused(&refusal, kind, place)),
            }
        }
        wanted = narrower;
    }
    if matches!(need, Need::Tenancy | Need::Offers) {
        match list_copies(api, world).await {
            Ok(list) => lists.extend(list),
            Err(refusal) => {
                gaps.extend(csvs().map(|kind| Gap::list(kind, "", &refusal)).filter(|gap| !gaps.contains(gap)));
            }
        }
    }
    Ok((gaps, lists))
}

/// Takes an object in; `are_many`: only what tells of it.
pub(super) fn take(mut object: Value, are_many: bool, world: &mut World) {
    if are_many && GroupKind::kept_as(&object) == COPIED_CSV {
        object = copy(&object);
    } else if are_many {
        let changed = changed(&object);
        trim(&mut object);
        object["metadata"]["managedFields"] = json!(changed.map(|time| [json!({ "time": time })]));
    }
    world.apply(object);
}

/// When an object was changed last: of its `managedFields`, which are long, nothing else is kept.
fn changed(object: &Value) -> Option<String> {
    let fields = object::list(object, &["metadata", "managedFields"]);
    fields.iter().map(|entry| object::text(entry, &["time"])).max().map(str::to_owned)
}

fn csvs() -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == "ClusterServiceVersion")
}

/// Lists the copies of ClusterServiceVersions, page by page, for they can be ten thousands, and keeps of each whose it is.
async fn list_copies(api: &Api, world: &mut World) -> Result<Option<List>, Status> {
    let Some(resource) = csvs().map(Kind::located) else { return Ok(None) };
    let mut next = String::new();
    loop {
        let page = api.list_at(&resource, (Depth::Metadata, PAGE), labels::COPIED_FROM, &next).await?;
        // Of a copy only its metadata counts.
        let stubs = page.unreadable.into_iter().map(|object| object.stub);
        for object in page.objects.into_iter().chain(stubs) {
            take(object, true, world);
        }
        next = page.next;
        if next.is_empty() {
            let (namespace, depth, labels) = (String::new(), Depth::Metadata, labels::COPIED_FROM);
            return Ok(Some(List { resource, namespace, depth, labels, version: page.resource_version }));
        }
    }
}

/// What is kept of a copy.
fn copy(object: &Value) -> Value {
    let metadata = object::at(object, &["metadata"]);
    let mut kept = json!({ "labels": { labels::COPIED_FROM: object::label(object, labels::COPIED_FROM) } });
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"] {
        if !metadata[field].is_null() {
            kept[field] = metadata[field].clone();
        }
    }
    for key in [membership::OPERATOR_GROUP, membership::OPERATOR_NAMESPACE] {
        if let Some(value) = object::annotation(object, key) {
            kept["annotations"][key] = value.into();
        }
    }
    json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": kept })
}

/// Without an answer, and without OLM's kinds, there is nothing to say.
fn is_fatal(refusal: &Status, kind: &Kind, need: Need) -> bool {
    kind.is_vital(need) || refusal.code == 0 || kind.group == OLM && refusal.is_not_found()
}

/// The catalogs that every namespace sees; there may be none.
async fn list_catalogs(api: &Api, namespace: &str, world: &mut World) -> Vec<Gap> {
    let Some(catalogs) = KINDS.iter().find(|kind| kind.name == "CatalogSource") else { return Vec::new() };
    match listed(api, catalogs, namespace).await {
        Ok((objects, gaps)) => {
            for object in objects {
                world.apply(object);
            }
            gaps
        }
        Err(refusal) => vec![Gap::list(catalogs, namespace, &refusal)],
    }
}

/// The objects of a kind, and those that cannot be read.
pub(super) async fn listed(api: &Api, kind: &Kind, namespace: &str) -> Result<(Vec<Value>, Vec<Gap>), Status> {
    let page = list_kind(api, kind, namespace).await?.1;
    let gaps = page.unreadable.iter().map(|object| Gap::unreadable(kind, object)).collect();
    Ok((page.objects, gaps))
}

async fn list_kind(api: &Api, kind: &Kind, namespace: &str) -> Result<(List, Page), Status> {
    // Copies of ClusterServiceVersions can be ten thousands, and are of no use here.
    let labels = if kind.name == "ClusterServiceVersion" { "!olm.copiedFrom" } else { "" };
    let resource = kind.located();
    let page = api.list_all(&resource, namespace, labels).await?;
    let (namespace, version) = (namespace.to_owned(), page.resource_version.clone());
    Ok((List { resource, namespace, depth: Depth::Whole, labels, version }, page))
}

/// Gets single objects, with the answers in the order of the questions.
pub(super) async fn get(api: &Api, targets: Vec<ObjectRef>) -> Vec<(ObjectRef, Result<Option<Value>, Status>)> {
    let answers = stream::iter(targets).map(|target| async {
        let answer = api.get(&target).await;
        (target, answer)
    });
    answers.buffered(REQUESTS).collect().await
}

/// Why objects cannot be listed, and what to do about it.
fn refused(refusal: &Status, kind: &Kind, namespace: &str) -> CliError {
    let (plural, resource) = (kind.plural, kind.resource());
    let (place, option) = match namespace {
        _ if !kind.namespaced => (String::new(), String::new()),
        "" => (" in all namespaces".to_owned(), " -A".to_owned()),
        one => (format!(" in namespace {one}"), format!(" -n {one}")),
    };
    match refusal.code {
        403 => CliError::new(ErrorKind::Api, format!("listing {plural}{place} is forbidden: {}", refusal.message))
            .hint(format!("see what is allowed with: kubectl auth can-i list {resource}{option}")),
        404 => CliError::new(ErrorKind::Api, format!("the cluster does not serve {resource}"))
            .hint("OLM's CRDs are not installed there: is this the right context?"),
        0 => CliError::new(ErrorKind::Unreachable, format!("no answer from the server: {}", refusal.message))
            .hint("is the cluster up, and is this the right context? kubectl config current-context"),
        _ => CliError::new(ErrorKind::Api, format!("the server refused to list {plural}{place}: {}", refusal.message)),
    }
}
