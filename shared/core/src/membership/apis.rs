//! The APIs that ClusterServiceVersions provide, and the annotation of OperatorGroups that contains them
//! (olm-behaviour/operatorgroup.md#provided-apis, olm-behaviour/operatorgroup.md#intersection).

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ApiConflict, Group};
use crate::api::cluster_service_version::Csv;
use crate::api::object;
use crate::world::{IndexKey, Reader};

/// A set of APIs, each as `Kind.version.group`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apis(pub BTreeSet<String>);

impl Apis {
    /// Parses `olm.providedAPIs`; entries that are not `Kind.version.group` are left out.
    pub fn parse(annotation: &str) -> Self {
        let items = annotation.split(',').map(|item| item.replace(' ', ""));
        Self(items.filter(|item| item.matches('.').count() >= 2).collect())
    }

    /// Returns what a ClusterServiceVersion provides: the CustomResourceDefinitions and APIServices that it owns.
    pub fn from_csv(csv: &Value) -> Self {
        let crds = Csv::new(csv).owned_crds().iter().filter_map(|crd| {
            let (_, group) = object::text(crd, &["name"]).split_once('.')?;
            Some(api(crd, group))
        });
        let services = Csv::new(csv).owned_api_services();
        let services = services.iter().map(|service| api(service, object::text(service, &["group"])));
        Self(crds.chain(services).collect())
    }

    /// Returns the union.
    pub fn union(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// Returns the APIs for which `keep` returns true.
    fn filter(mut self, keep: impl Fn(&String) -> bool) -> Self {
        self.0.retain(keep);
        self
    }

    /// Returns the intersection.
    pub fn intersection(self, other: &Self) -> Self {
        self.filter(|api| other.0.contains(api))
    }
}

impl std::fmt::Display for Apis {
    /// Sorted and joined by commas, as in `olm.providedAPIs`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(apis) = self;
        f.write_str(&apis.iter().map(String::as_str).collect::<Vec<_>>().join(","))
    }
}

fn api(description: &Value, group: &str) -> String {
    format!("{}.{}.{group}", object::kind(description), object::text(description, &["version"]))
}

/// The effect of the APIs that a ClusterServiceVersion provides on its OperatorGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provision {
    /// The group's annotation contains them, and no other group provides them to the same namespaces.
    Settled,
    /// The group's annotation should contain these.
    Annotate(Apis),
    /// Another group provides one of them to one of the same namespaces.
    Conflict,
    /// The group's annotation would have to change, but the group is static.
    Static,
}

/// Compares what a member provides with its group and with other groups that target the same namespaces.
///
/// When groups with the same APIs start to intersect, each of their members is in conflict, and in OLM the first one to be
/// processed gives way; two that are processed at the same time both give way, and recover, forever. Here the order does
/// not matter: the oldest group stays, as far as the others can give way.
pub fn provision(world: &Reader<'_>, group: Group<'_>, csv: &Value) -> Provision {
    let provides = Apis::from_csv(csv);
    let annotated = group.provided();
    let covered = provides.0.is_subset(&annotated.0);
    let is_other = |other: &Group<'_>| (other.namespace(), other.name()) != (group.namespace(), group.name());
    let mut contested = false;
    let mut gives_way = false;
    for api in &provides.0 {
        let providers = world.indexed(IndexKey::ProvidedApi(api.clone()));
        for other in
            providers.iter().map(|o| Group::new(o.json())).filter(|other| is_other(other) && group.intersects(*other))
        {
            contested = true;
            gives_way |= other.is_static() || other.precedes(group);
        }
    }
    match ApiConflict::classify(contested, covered, group.is_static()) {
        ApiConflict::Remove if gives_way => Provision::Annotate(annotated.filter(|api| !provides.0.contains(api))),
        ApiConflict::Continue | ApiConflict::Remove => Provision::Settled,
        ApiConflict::Add => Provision::Annotate(annotated.union(&provides)),
        ApiConflict::Conflict => Provision::Conflict,
        ApiConflict::StaticLacks | ApiConflict::StaticContested => Provision::Static,
    }
}
