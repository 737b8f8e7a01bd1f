//! A cluster, listed once.

use futures::future::join_all;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use olm_core::api::object::{Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::settings::Settings;
use olm_core::world::{Fact, FactKey, World};
use serde_json::Value;

use super::{GLOBAL, Gap, Need, Seen, Served};
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::{CliError, ErrorKind, Printer};
use crate::cluster::api::{Api, Resource};

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
        }
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
    let config = source.cluster.config().await?;
    let of_context = || namespaces.namespace.as_ref().unwrap_or(&config.default_namespace).clone();
    let namespace = (!namespaces.all_namespaces).then(of_context);
    let api = Api::new(kube::Client::try_from(config)?);
    let mut world = World::new();
    let mut gaps = list(&api, namespace.as_deref().unwrap_or_default(), need, &mut world).await?;
    let mut served = Served::default();
    if need == Need::Planning {
        if let Some(namespace) = &namespace {
            let global = source.catalog_namespace.as_deref().map_or(&GLOBAL[..], |_| &[]).iter().copied();
            let global = global.chain(source.catalog_namespace.as_deref()).filter(|global| global != namespace);
            for global in global {
                gaps.extend(list_catalogs(&api, global, &mut world).await);
            }
        }
        match api.discover().await {
            Ok(resources) => {
                for resource in resources {
                    served.add(resource.gvk, Some(resource.namespaced));
                }
                served.complete();
            }
            Err(refusal) => gaps.push(Gap::discovery(&refusal)),
        }
        if let Ok(version) = api.version().await {
            world.learn(FactKey::ServerVersion, Some(Fact::ServerVersion(version)));
        }
    }
    drop(progress);
    let settings = Settings::default();
    Ok(Seen { world, namespace, served, gaps, settings, at: Timestamp::now(), api: Some(api) })
}

/// Lists what is needed into the World, in one namespace or (when it is empty) in all.
///
/// # Errors
/// A kind without which nothing can be said cannot be listed.
pub(crate) async fn list(api: &Api, namespace: &str, need: Need, world: &mut World) -> Result<Vec<Gap>, CliError> {
    let wanted: Vec<&Kind> = KINDS.iter().filter(|kind| kind.need <= need).collect();
    let answers = join_all(wanted.iter().map(|kind| listed(api, kind, namespace))).await;
    let mut gaps = Vec::new();
    for (kind, answer) in wanted.into_iter().zip(answers) {
        match answer {
            Ok(objects) => objects.into_iter().for_each(|object| {
                world.apply(object);
            }),
            Err(refusal) if !is_fatal(&refusal, kind, need) => gaps.push(Gap::list(kind, namespace, &refusal)),
            Err(refusal) => return Err(refused(&refusal, kind, namespace)),
        }
    }
    Ok(gaps)
}

/// Without an answer, and without OLM's kinds, there is nothing to say.
fn is_fatal(refusal: &Status, kind: &Kind, need: Need) -> bool {
    kind.is_vital(need) || refusal.code == 0 || kind.group == OLM && refusal.is_not_found()
}

/// The catalogs that every namespace sees; there may be none.
async fn list_catalogs(api: &Api, namespace: &str, world: &mut World) -> Option<Gap> {
    let catalogs = KINDS.iter().find(|kind| kind.name == "CatalogSource")?;
    match listed(api, catalogs, namespace).await {
        Ok(objects) => objects.into_iter().for_each(|object| {
            world.apply(object);
        }),
        Err(refusal) => return Some(Gap::list(catalogs, namespace, &refusal)),
    }
    None
}

async fn listed(api: &Api, kind: &Kind, namespace: &str) -> Result<Vec<Value>, Status> {
    let Kind { group, version, name, plural, namespaced, .. } = *kind;
    let resource = Resource { gvk: Gvk::new(group, version, name), plural: plural.to_owned(), namespaced };
    // Copies of ClusterServiceVersions can be ten thousands, and are of no use here.
    let labels = if name == "ClusterServiceVersion" { "!olm.copiedFrom" } else { "" };
    api.list_whole(&resource, namespace, labels).await
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
