//! Decides which objects the removal of an operator deletes or retains, and which operators depend on them.
//!
//! ```text
//!   World --operator--> Subscription, ClusterServiceVersions (installed, replaced and failed ones)
//!                          |
//!     other ClusterServiceVersions --> dependents, and for each CustomResourceDefinition: delete, or retain and why
//! ```
//!
//! [`rollback`] returns an operator to an older version.
//!
//! *Guarantees*: a CustomResourceDefinition that the operator only requires is never deleted, nor one that another operator
//! owns or requires. What could not be read counts as needed.

mod permissions;
mod record;
pub mod rollback;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::Value;

pub use self::permissions::Permission;
pub use self::record::{ANNOTATION as RECORD, Record};
use crate::api::cluster_service_version::Csv;
use crate::api::install_plan::InstallPlan;
use crate::api::object::{self, ObjectRef};
use crate::api::subscription::Subscription;
use crate::api::{kinds, labels};
use crate::listing::listed;
use crate::membership;
use crate::operator;
use crate::operatorgroup::create_delete::Origin;
use crate::operatorgroup::intersection;
use crate::world::{Reader, kind};

/// The reason for retaining what operators that could not be read may need.
const UNKNOWN_NEED: &str = "it is unknown whether operators of other namespaces need it";

/// What to remove.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// The namespace of the operator.
    pub namespace: &'r str,
    /// The name of its Subscription, its package, or its ClusterServiceVersion.
    pub name: &'r str,
    /// Whether its CustomResourceDefinitions, and with them all custom resources, are deleted.
    pub delete_crds: bool,
    /// Whether the ClusterServiceVersions and Subscriptions of all namespaces were read.
    pub knows_all: bool,
}

/// A CustomResourceDefinition that the operator owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedCrd {
    /// Its name.
    pub name: String,
    /// Why it is retained; `None` if it is deleted.
    pub kept: Option<String>,
    /// The other ClusterServiceVersions that own it, `NAMESPACE/NAME`.
    pub other_owners: Vec<String>,
    /// Whether its conversion webhook is a Service in the namespace of the operator, which is removed with it.
    pub loses_conversion: bool,
}

/// What a removal does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// The namespace of the operator.
    pub namespace: String,
    /// Its package; empty if it has no Subscription.
    pub package: String,
    /// The Subscription.
    pub subscription: Option<ObjectRef>,
    /// The InstallPlans that install only this operator, and that the garbage collector does not delete with the Subscription, because
    /// they also belong to other Subscriptions of the namespace.
    pub plans: Vec<ObjectRef>,
    /// Its ClusterServiceVersions, the newest first.
    pub csvs: Vec<ObjectRef>,
    /// The ClusterServiceVersions that these have replaced and that no longer exist: the garbage collector may not have deleted
    /// yet what they owned.
    pub replaced: Vec<ObjectRef>,
    /// Its CustomResourceDefinitions.
    pub crds: Vec<OwnedCrd>,
    /// The ClusterRoles and ClusterRoleBindings of its manifests.
    pub permissions: Vec<Permission>,
    /// Names of APIServices that serve its APIs.
    pub api_services: Vec<String>,
    /// The ClusterServiceVersions that require its APIs, `NAMESPACE/NAME`.
    pub dependents: Vec<String>,
    /// The Subscriptions of the namespace that OLM created for its dependencies, and that nothing else requires.
    pub dependencies: Vec<String>,
    /// The OperatorGroup, if kubectl-olm compiled it and it has no other members.
    pub group: Option<ObjectRef>,
    /// The record of an earlier removal that was interrupted.
    pub interrupted: Option<Record>,
}

impl Removal {
    /// Returns whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        let is_done = |crd: &OwnedCrd| crd.kept.is_some() && !crd.loses_conversion;
        self.subscription.is_none()
            && self.csvs.is_empty()
            && self.crds.iter().all(is_done)
            && self.interrupted.is_none()
    }

    /// Returns the name of the Operator object; `None` if the package is unknown.
    pub fn operator(&self) -> Option<String> {
        (!self.package.is_empty()).then(|| operator::component(&self.package, &self.namespace))
    }

    /// Returns the record of this removal, made by the command for an operator of that name.
    pub fn record(&self, name: &str) -> Record {
        let mut record = self.interrupted.clone().unwrap_or_default();
        record.namespace.clone_from(&self.namespace);
        record.package.clone_from(&self.package);
        record.names.insert(name.to_owned());
        record.names.extend(self.subscription.iter().map(|subscription| subscription.name.clone()));
        record.csvs.extend(self.csvs.iter().chain(&self.replaced).map(|csv| csv.name.clone()));
        record.definitions.extend(self.crds.iter().map(|crd| crd.name.clone()));
        record.permissions.extend(self.permissions.iter().filter(|permission| permission.kept.is_none()).cloned());
        record
    }
}

/// Decides what a removal does.
pub fn plan(world: &Reader<'_>, request: Request<'_>) -> Removal {
    let Request { namespace, name, .. } = request;
    let subscription = subscription(world, namespace, name);
    let interrupted = record::find(world, namespace, name);
    let recorded = interrupted.as_ref().map(|record| record.package.clone());
    let package = subscription.map(|json| Subscription::new(json).package().to_owned()).or(recorded);
    let package = package.unwrap_or_default();
    let csvs = own_csvs(world, request, subscription, &package, interrupted.as_ref());
    // The label of its components outlives the Subscription.
    let package = if package.is_empty() { labelled_package(&csvs, namespace) } else { package };
    let names: BTreeSet<&str> = csvs.iter().map(|csv| csv.name()).collect();
    let is_own = |csv: &Csv<'_>| csv.namespace() == namespace && names.contains(csv.name());
    let all = world.all(&kind::CLUSTER_SERVICE_VERSION).map(|object| Csv::new(object.json()));
    let others: Vec<Csv<'_>> = all.filter(|csv| !csv.is_copy() && !is_own(csv)).collect();
    let mut owned = owned_crds(world, &csvs, request, &package);
    let recorded = interrupted.iter().flat_map(|record| &record.definitions);
    let exists = |name: &&String| world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", name).is_some();
    owned.extend(recorded.filter(exists).cloned());
    let api_services: BTreeSet<String> = csvs.iter().flat_map(|csv| api_services(*csv)).collect();
    let others_serve: BTreeSet<String> = others.iter().flat_map(|csv| api_services_of(*csv)).collect();
    // Operators in namespaces that this one does not watch use another one.
    let watched: BTreeSet<String> = membership::groups(world, namespace)
        .into_iter()
        .flat_map(|group| intersection::targets(world, group))
        .collect();
    let is_served = |csv: &&Csv<'_>| {
        let of = csv.namespace();
        (watched.contains("") || watched.contains(of) || of == namespace)
            && !others
                .iter()
                .any(|other| other.namespace() == of && other.owned_crd_names().any(|crd| requires(**csv, crd)))
    };
    let served: Vec<Csv<'_>> = others.iter().filter(is_served).copied().collect();
    let dependents = served.iter().filter(|csv| requires_any(**csv, &owned, &api_services)).map(|csv| label(*csv));
    let replaced = replaced(namespace, &csvs, &names, interrupted.as_ref());
    let all_names: BTreeSet<&str> = names.iter().copied().chain(replaced.iter().map(|csv| csv.name.as_str())).collect();
    let recorded = interrupted.as_ref().map(|record| record.permissions.clone()).unwrap_or_default();
    let mut permissions = permissions::find(world, namespace, &package, &all_names, &recorded);
    if !request.knows_all {
        for permission in &mut permissions {
            permission.kept = Some(UNKNOWN_NEED.to_owned());
        }
    }
    Removal {
        permissions,
        namespace: namespace.to_owned(),
        dependents: dependents.collect(),
        dependencies: dependencies(world, namespace, &csvs, &others, &watched),
        group: group(world, namespace, &names, subscription.map(object::name)),
        crds: owned.into_iter().map(|name| crd(world, name, &others, request)).collect(),
        api_services: api_services.difference(&others_serve).cloned().collect(),
        subscription: subscription.map(ObjectRef::from_object),
        plans: plans(world, namespace, subscription, &all_names),
        csvs: csvs.iter().map(|csv| ObjectRef::from_object(csv.json)).collect(),
        replaced,
        package,
        interrupted,
    }
}

fn api_services_of(csv: Csv<'_>) -> Vec<String> {
    api_services(csv).collect()
}

/// Returns the names of the APIServices that a ClusterServiceVersion owns.
fn api_services(csv: Csv<'_>) -> impl Iterator<Item = String> {
    let name = |api: &Value| format!("{}.{}", object::text(api, &["version"]), object::text(api, &["group"]));
    csv.owned_api_services().iter().map(name)
}

fn label(csv: Csv<'_>) -> String {
    format!("{}/{}", csv.namespace(), csv.name())
}

fn subscription<'w>(world: &Reader<'w>, namespace: &str, name: &str) -> Option<&'w Value> {
    let mut all = world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|object| object.json());
    let is_it = |subscription: &&Value| {
        let subscription = Subscription::new(subscription);
        [subscription.package(), subscription.installed_csv(), subscription.current_csv()].contains(&name)
    };
    world.json(&kind::SUBSCRIPTION, namespace, name).or_else(|| all.find(is_it))
}

/// Returns the ClusterServiceVersions of the operator: those that the Subscription names, those that replace each other, and
/// those with the label of the package, which outlives the Subscription.
fn own_csvs<'w>(
    world: &Reader<'w>,
    request: Request<'_>,
    subscription: Option<&'w Value>,
    package: &str,
    interrupted: Option<&Record>,
) -> Vec<Csv<'w>> {
    let Request { namespace, name, .. } = request;
    let all = world.in_namespace(&kind::CLUSTER_SERVICE_VERSION, namespace).map(|object| Csv::new(object.json()));
    let all: Vec<Csv<'_>> = all.filter(|csv| !csv.is_copy()).collect();
    let mut names: BTreeSet<&str> = BTreeSet::from([name]);
    if let Some(subscription) = subscription.map(Subscription::new) {
        names.extend([subscription.installed_csv(), subscription.current_csv()]);
    }
    // Another Subscription's operator is not part of it, even if it has the same package.
    let of_others = world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|object| object.json());
    let of_others = of_others.filter(|other| subscription.is_none_or(|own| object::name(own) != object::name(other)));
    let of_others: BTreeSet<&str> =
        of_others.map(Subscription::new).flat_map(|other| [other.installed_csv(), other.current_csv()]).collect();
    let key = component(if package.is_empty() { name } else { package }, namespace);
    names.extend(all.iter().filter(|csv| object::label(csv.json, &key).is_some()).map(|csv| csv.name()));
    names.extend(all.iter().map(|csv| csv.name()).filter(|csv| interrupted.is_some_and(|r| r.csvs.contains(*csv))));
    names.remove("");
    // Those that it replaces, until they are deleted.
    loop {
        let replaced = all.iter().filter(|csv| names.contains(csv.name())).map(|csv| csv.replaces());
        let replaced: Vec<&str> = replaced.filter(|old| all.iter().any(|csv| csv.name() == *old)).collect();
        let known = names.len();
        names.extend(replaced);
        if names.len() == known {
            break;
        }
    }
    let is_own = |csv: &Csv<'_>| names.contains(csv.name()) && !of_others.contains(csv.name());
    all.into_iter().filter(is_own).collect()
}

/// Returns the InstallPlans whose ClusterServiceVersions all belong to the operator, and which have other owners than its Subscription.
fn plans(world: &Reader<'_>, namespace: &str, subscription: Option<&Value>, csvs: &BTreeSet<&str>) -> Vec<ObjectRef> {
    let resolved = subscription.map(Subscription::new).map(|own| [own.installed_csv(), own.current_csv()]);
    let is_own = |csv: &str| csvs.contains(csv) || resolved.is_some_and(|resolved| resolved.contains(&csv));
    let is_others = |owner: &Value| subscription.is_none_or(|own| object::text(owner, &["uid"]) != object::uid(own));
    let plans = world.in_namespace(&kind::INSTALL_PLAN, namespace).map(|object| object.json());
    let is_of_operator = |plan: &&Value| {
        let mut csvs = InstallPlan::new(plan).csv_names().peekable();
        csvs.peek().is_some() && csvs.all(is_own)
    };
    let others = world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|object| object.json());
    let others = others.filter(|other| subscription.is_none_or(|own| object::name(own) != object::name(other)));
    let referenced: BTreeSet<&str> = others.map(|other| Subscription::new(other).plan_name()).collect();
    let remains = |plan: &&Value| {
        let mut owners = object::list(plan, &["metadata", "ownerReferences"]).iter();
        owners.any(is_others) && !referenced.contains(object::name(plan))
    };
    plans.filter(is_of_operator).filter(remains).map(ObjectRef::from_object).collect()
}

/// Returns the ClusterServiceVersions that no longer exist: replaced ones, and those that an interrupted removal has deleted.
fn replaced(namespace: &str, csvs: &[Csv<'_>], names: &BTreeSet<&str>, interrupted: Option<&Record>) -> Vec<ObjectRef> {
    let recorded = interrupted.iter().flat_map(|record| record.csvs.iter().map(String::as_str));
    let known: BTreeSet<&str> = csvs.iter().map(|csv| csv.replaces()).chain(recorded).collect();
    let names = known.into_iter().filter(|name| !name.is_empty() && !names.contains(name));
    names.map(|name| kinds::CLUSTER_SERVICE_VERSION.object(namespace, name)).collect()
}

/// Returns the key of the label that marks the components of an operator (olm-behaviour/processes.md#labels).
fn component(package: &str, namespace: &str) -> String {
    format!("{}{}", labels::COMPONENT, operator::component(package, namespace))
}

/// Returns the package in the labels of the ClusterServiceVersions; empty if they have none, or differ.
fn labelled_package(csvs: &[Csv<'_>], namespace: &str) -> String {
    let keys = csvs.iter().flat_map(|csv| object::entries(csv.json, &["metadata", "labels"])).map(|(key, _)| key);
    let packages: BTreeSet<&str> = keys
        .filter_map(|key| key.strip_prefix(labels::COMPONENT)?.strip_suffix(namespace)?.strip_suffix('.'))
        .collect();
    match packages.first() {
        Some(package) if packages.len() == 1 => (*package).to_owned(),
        _ => String::new(),
    }
}

/// Returns the names of the CustomResourceDefinitions that the operator owns. Without a ClusterServiceVersion they are those
/// with the label of the package: an earlier removal left them.
fn owned_crds(world: &Reader<'_>, csvs: &[Csv<'_>], request: Request<'_>, package: &str) -> BTreeSet<String> {
    if !csvs.is_empty() {
        return csvs.iter().flat_map(|csv| csv.owned_crd_names()).map(str::to_owned).collect();
    }
    let key = component(if package.is_empty() { request.name } else { package }, request.namespace);
    let crds = world.all(&kind::CUSTOM_RESOURCE_DEFINITION).map(|object| object.json());
    crds.filter(|crd| object::label(crd, &key).is_some()).map(|crd| object::name(crd).to_owned()).collect()
}

fn requires(csv: Csv<'_>, crd: &str) -> bool {
    csv.required_crds().iter().any(|required| object::text(required, &["name"]) == crd)
}

fn requires_any(csv: Csv<'_>, crds: &BTreeSet<String>, api_services: &BTreeSet<String>) -> bool {
    let required = csv.required_api_services().iter();
    let mut names =
        required.map(|api| format!("{}.{}", object::text(api, &["version"]), object::text(api, &["group"])));
    crds.iter().any(|crd| requires(csv, crd)) || names.any(|name| api_services.contains(&name))
}

/// Decides on a CustomResourceDefinition.
fn crd(world: &Reader<'_>, name: String, others: &[Csv<'_>], request: Request<'_>) -> OwnedCrd {
    let owners = others.iter().filter(|csv| csv.owned_crd_names().any(|owned| owned == name));
    let other_owners: Vec<String> = owners.map(|csv| label(*csv)).collect();
    let users: Vec<String> = others.iter().filter(|csv| requires(**csv, &name)).map(|csv| label(*csv)).collect();
    let kept = if !other_owners.is_empty() {
        let verb = if other_owners.len() == 1 { "owns" } else { "own" };
        Some(format!("{} also {verb} it", listed(&other_owners)))
    } else if !users.is_empty() {
        let verb = if users.len() == 1 { "requires" } else { "require" };
        Some(format!("{} {verb} it", listed(&users)))
    } else if !request.delete_crds {
        Some("it is deleted only with --delete-crds".to_owned())
    } else if request.knows_all {
        None
    } else {
        Some(UNKNOWN_NEED.to_owned())
    };
    let json = world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", &name);
    let service =
        json.map(|crd| object::text(crd, &["spec", "conversion", "webhook", "clientConfig", "service", "namespace"]));
    let loses_conversion = other_owners.is_empty() && service == Some(request.namespace);
    OwnedCrd { name, kept, other_owners, loses_conversion }
}

/// Returns the Subscriptions that OLM created for dependencies, and that no other operator requires. OLM composes their names of
/// package, channel and catalog.
fn dependencies(
    world: &Reader<'_>,
    namespace: &str,
    csvs: &[Csv<'_>],
    others: &[Csv<'_>],
    watched: &BTreeSet<String>,
) -> Vec<String> {
    let is_near =
        |csv: &&Csv<'_>| csv.namespace() == namespace || watched.contains("") || watched.contains(csv.namespace());
    let generated = |subscription: &Subscription<'_>| {
        let parts =
            [subscription.package(), subscription.channel(), subscription.source(), subscription.source_namespace()];
        subscription.name() == parts.join("-")
    };
    let all = world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|object| Subscription::new(object.json()));
    let is_unneeded = |subscription: &Subscription<'_>| {
        let provider =
            world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, subscription.installed_csv()).map(Csv::new);
        let Some(provider) = provider else { return false };
        let provided: BTreeSet<String> = provider.owned_crd_names().map(str::to_owned).collect();
        let services: BTreeSet<String> = api_services(provider).collect();
        let is_required_by = |csv: &Csv<'_>| requires_any(*csv, &provided, &services);
        csvs.iter().any(is_required_by) && !others.iter().filter(is_near).any(is_required_by)
    };
    all.filter(generated).filter(is_unneeded).map(|subscription| subscription.name().to_owned()).collect()
}

/// Returns the OperatorGroup if kubectl-olm compiled it, and only these ClusterServiceVersions and this Subscription are in its
/// namespace.
fn group(world: &Reader<'_>, namespace: &str, names: &BTreeSet<&str>, subscription: Option<&str>) -> Option<ObjectRef> {
    let [group] = membership::groups(world, namespace)[..] else { return None };
    let mut csvs = world.in_namespace(&kind::CLUSTER_SERVICE_VERSION, namespace).map(|object| Csv::new(object.json()));
    let is_used = csvs.any(|csv| !csv.is_copy() && !names.contains(csv.name()));
    // The others may have no ClusterServiceVersion yet.
    let mut others = world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|object| object::name(object.json()));
    let is_used = is_used || others.any(|other| Some(other) != subscription);
    (Origin::from_group(group.json) == Origin::Ours && !is_used).then(|| ObjectRef::from_object(group.json))
}
