//! Finds trouble of a whole cluster, which the state of no single operator shows, in one pass over what is known of it.
//!
//! ```text
//!   World, Known --> Context --+-- serving      APIServices, webhook configurations, conversion webhooks
//!                              +-- deletions    namespaces and objects whose deletion does not end
//!                              +-- orphans      definitions, Subscriptions, ClusterServiceVersions and permissions that nothing owns
//!                              +-- amounts      copies of ClusterServiceVersions, and InstallPlans
//!                              '-- controllers  several installations of OLM, and Leases --> Checkup { problems, unchecked }
//!   rule   the table of rules, with their documentation
//! ```
//!
//! *Guarantees*: an object counts as missing only if it is certain that it does not exist; otherwise the rules that depend on it are
//! unchecked. Deletions and failures that may end by themselves are reported only after a time.

mod amounts;
mod controllers;
mod deletions;
mod orphans;
mod rule;
mod serving;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

pub use self::amounts::Copies;
pub use self::rule::RULES;
use crate::api::cluster_service_version::Csv;
use crate::api::kinds;
use crate::api::labels;
use crate::api::metadata::Metadata;
use crate::api::object::{self, ObjectRef};
use crate::api::subscription::Subscription;
use crate::lint::{Problem, Unchecked, unchecked};
use crate::world::{GroupKind, Known, Reader, World, kind};

/// What is checked.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The objects.
    pub world: &'a World,
    /// Which kinds are known completely.
    pub known: &'a Known,
    /// The custom resources that could not be listed, a sentence without a full stop; empty if there are none.
    pub unlisted: &'a str,
    /// How long a deletion or a failure has to last to be reported.
    pub patience: SignedDuration,
    /// The time of the check.
    pub now: Timestamp,
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Checkup {
    /// The problems, sorted by namespace, object and code.
    pub problems: Vec<Problem>,
    /// The rules that could not be checked in full.
    pub unchecked: Vec<Unchecked>,
    /// The number of APIServices.
    pub api_services: usize,
    /// The number of CustomResourceDefinitions.
    pub definitions: usize,
    /// The number of ClusterServiceVersions that are not copies.
    pub csvs: usize,
    /// The copies of ClusterServiceVersions.
    pub copies: Copies,
}

/// Checks all rules.
pub fn check(input: Input<'_>) -> Checkup {
    let world = Reader::new(input.world);
    let context = Context { world, controllers: controllers::are_known_to_run(input), input };
    let copies = amounts::copies(&context);
    let mut problems = Vec::new();
    serving::check(&context, &mut problems);
    deletions::check(&context, &mut problems);
    orphans::check(&context, &mut problems);
    amounts::check(&context, &copies, &mut problems);
    controllers::check(&context, &mut problems);
    problems.sort_by_cached_key(Problem::place_among_others);
    let mut unchecked = unchecked(&RULES, input.known);
    if !input.unlisted.is_empty() {
        unchecked.push(Unchecked { codes: vec![rule::STUCK_DELETION.code], reason: input.unlisted.to_owned() });
    }
    let count = |gk| context.world.all(gk).count();
    Checkup {
        api_services: count(&kind::API_SERVICE),
        definitions: count(&kind::CUSTOM_RESOURCE_DEFINITION),
        csvs: context.csvs().count(),
        problems,
        unchecked,
        copies,
    }
}

/// Returns the CustomResourceDefinitions whose custom resources are checked: those of operators.
pub fn examined_definitions<'w>(world: &Reader<'w>) -> Vec<&'w Value> {
    let all = world.all(&kind::CUSTOM_RESOURCE_DEFINITION).map(|object| object.json());
    let owned = orphans::owned_definitions(world);
    all.filter(|crd| owned.contains(object::name(crd)) || orphans::is_of_operators(crd)).collect()
}

/// Returns the Services that APIServices and webhooks name.
pub fn services(world: &Reader<'_>) -> BTreeSet<ObjectRef> {
    serving::services(world)
}

/// The input of the checks.
struct Context<'a> {
    world: Reader<'a>,
    input: Input<'a>,
    /// Whether controllers of OLM are running; `None` if that is unknown.
    controllers: Option<bool>,
}

impl<'a> Context<'a> {
    /// Returns the objects of a kind.
    fn all(&self, gk: &GroupKind) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.world.all(gk).map(|object| object.json())
    }

    /// Returns the objects of a kind that are not being deleted.
    fn living(&self, gk: &GroupKind) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.all(gk).filter(|object| !object::is_deleting(object))
    }

    /// Returns the ClusterServiceVersions that are not copies.
    fn csvs(&self) -> impl Iterator<Item = Csv<'a>> + use<'a> {
        self.all(&kind::CLUSTER_SERVICE_VERSION).map(Csv::new).filter(|csv| !csv.is_copy())
    }

    /// Returns whether something that began then is to be reported. An unknown time has passed.
    fn lasts(&self, since: Option<Timestamp>) -> bool {
        let Input { now, patience, .. } = self.input;
        since.is_none_or(|since| now.duration_since(since) >= patience)
    }

    /// Returns whether an object is older than what OLM may be about to complete.
    fn is_old(&self, object: &Value) -> bool {
        self.lasts(Metadata::new(object).created_at())
    }

    /// Returns the Service that a client configuration or an APIService names, if it is certain that it does not exist.
    fn missing_service(&self, service: &Value) -> Option<ObjectRef> {
        let [namespace, name] = ["namespace", "name"].map(|field| object::text(service, &[field]));
        let is_missing =
            !name.is_empty() && self.input.known.has_none(self.input.world, &kind::SERVICE, namespace, name);
        is_missing.then(|| kinds::SERVICE.object(namespace, name))
    }

    /// Returns the ClusterServiceVersion that the labels of an object name as its owner, if it is certain that it does not exist and is not
    /// about to be created.
    fn lost_owner(&self, object: &Value) -> Option<ObjectRef> {
        let (of_kind, namespace, name) = labels::owner(object)?;
        let is_lost = of_kind == kinds::CLUSTER_SERVICE_VERSION.kind
            && self.is_old(object)
            && self.input.known.has_none(self.input.world, &kind::CLUSTER_SERVICE_VERSION, namespace, name)
            && !self.is_on_its_way(namespace, name);
        is_lost.then(|| kinds::CLUSTER_SERVICE_VERSION.object(namespace, name))
    }

    /// Returns whether a Subscription may be about to install the ClusterServiceVersion.
    fn is_on_its_way(&self, namespace: &str, csv: &str) -> bool {
        let mut subscriptions = self.world.in_namespace(&kind::SUBSCRIPTION, namespace);
        !self.input.known.within(&kind::SUBSCRIPTION, namespace)
            || subscriptions.any(|object| {
                let subscription = Subscription::new(object.json());
                subscription.current_csv() == csv && subscription.installed_csv() != csv
            })
    }
}
