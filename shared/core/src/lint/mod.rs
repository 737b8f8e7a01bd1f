//! Finds problems with OperatorGroups, in one pass over what is known of a cluster.
//!
//! ```text
//!   World, Known --> LintContext -- of each namespace --> targets, members, account, stale --+
//!                     |----- of pairs of groups -> apis                              +--> Linted { problems, unchecked }
//!                     '----- of leftover objects -> orphans -------------------------+
//!   rule      the table of rules, with their documentation
//!   known     which rules are checked only in part
//!   problem   a problem, and the smallest change that fixes it
//!   matrix    which versions of a package support the targets of which groups
//! ```
//!
//! *Guarantees*: if there are no errors among the problems and everything is known, no member fails because of OperatorGroups. Problems
//! are sorted by namespace, object and code.

mod account;
mod apis;
mod known;
pub mod matrix;
mod members;
mod orphans;
mod problem;
mod rule;
mod stale;
mod targets;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

pub(crate) use self::known::unchecked;
pub use self::problem::{Change, Fingerprint, Fix, Problem};
pub use self::rule::{RULES, Rule, rule};
use crate::api::cluster_service_version::is_copy;
use crate::api::object;
use crate::api::operator_group::OperatorGroup;
use crate::membership::Group;
use crate::operatorgroup::intersection::{Clash, Intersections, Scope};
pub use crate::world::Known;
use crate::world::{GroupKind, Reader, World, kind};

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Linted {
    /// The problems, sorted by namespace, object and code.
    pub problems: Vec<Problem>,
    /// The rules that could not be checked in full.
    pub unchecked: Vec<Unchecked>,
    /// Number of OperatorGroups that were checked.
    pub groups: usize,
}

/// Rules that were checked only in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchecked {
    /// Codes of the rules.
    pub codes: Vec<&'static str>,
    /// Why, a sentence without a full stop.
    pub reason: String,
}

/// Checks all rules.
pub fn lint(world: &World, known: &Known, now: Timestamp) -> Linted {
    let reader = Reader::new(world);
    let context = LintContext::new(reader, known, now);
    let mut found = Vec::new();
    for tenant in context.tenants() {
        targets::check(&context, &tenant, &mut found);
        members::check(&context, &tenant, &mut found);
        account::check(&context, &tenant, &mut found);
        stale::check(&context, &tenant, &mut found);
    }
    apis::check(&context, &mut found);
    orphans::check(&context, &mut found);
    found.sort_by_cached_key(Problem::place_among_others);
    Linted { groups: context.all.scopes().len(), problems: found, unchecked: unchecked(&RULES, known) }
}

/// Returns the namespaces whose InstallPlans have to be read: they contain what is installed with a group's ServiceAccount, and the
/// permissions that were created for ClusterServiceVersions that do not exist yet and so are not orphaned.
pub fn namespaces_of_plans(world: &World) -> BTreeSet<String> {
    let world = Reader::new(world);
    let mut namespaces = orphans::owners(&world);
    namespaces.extend(namespaces_of_accounts(&world));
    namespaces
}

/// Returns the namespaces whose group names a ServiceAccount, for which permissions and InstallPlans have to be read.
pub fn namespaces_of_accounts(world: &Reader<'_>) -> BTreeSet<String> {
    let groups = world.all(&kind::OPERATOR_GROUP).map(|o| o.json());
    let named = groups.filter(|group| !OperatorGroup::new(group).service_account().is_empty());
    named.map(|group| object::namespace(group).to_owned()).collect()
}

/// The input of the checks.
struct LintContext<'a> {
    world: Reader<'a>,
    all: Intersections<'a>,
    clashes: Vec<Clash>,
    known: &'a Known,
    now: Timestamp,
}

/// A namespace that has OperatorGroups, operators, or Subscriptions.
struct Tenant<'a> {
    namespace: &'a str,
    /// Its OperatorGroups, as indices into all groups.
    groups: Vec<usize>,
    /// Its ClusterServiceVersions that are neither copies nor being deleted.
    csvs: Vec<&'a Value>,
    subscriptions: Vec<&'a Value>,
}

impl<'a> LintContext<'a> {
    fn new(world: Reader<'a>, known: &'a Known, now: Timestamp) -> Self {
        let all = Intersections::from_world(&world);
        Self { clashes: all.clashes(), all, world, known, now }
    }

    fn tenants(&self) -> Vec<Tenant<'a>> {
        let mut tenants: BTreeMap<&'a str, Tenant<'a>> = BTreeMap::new();
        let mut tenant = |namespace: &'a str, add: &mut dyn FnMut(&mut Tenant<'a>)| {
            let new = || Tenant { namespace, groups: Vec::new(), csvs: Vec::new(), subscriptions: Vec::new() };
            add(tenants.entry(namespace).or_insert_with(new));
        };
        for (at, scope) in self.all.scopes().iter().enumerate() {
            tenant(scope.group.namespace(), &mut |t| t.groups.push(at));
        }
        let csvs = self.world.all(&kind::CLUSTER_SERVICE_VERSION).map(|o| o.json());
        for csv in csvs.filter(|csv| !is_copy(csv) && !object::is_deleting(csv)) {
            tenant(object::namespace(csv), &mut |t| t.csvs.push(csv));
        }
        for subscription in self.world.all(&kind::SUBSCRIPTION).map(|o| o.json()) {
            tenant(object::namespace(subscription), &mut |t| t.subscriptions.push(subscription));
        }
        tenants.into_values().collect()
    }

    fn scope(&self, at: usize) -> &Scope<'a> {
        &self.all.scopes()[at]
    }

    fn group(&self, at: usize) -> Group<'a> {
        self.scope(at).group
    }

    /// Returns the namespaces that a group is going to target; only `""` if it is global.
    fn targets(&self, at: usize) -> &BTreeSet<String> {
        let Scope { asked, targets, .. } = self.scope(at);
        // If all namespaces are known, those of its status that no longer match are omitted.
        asked.as_ref().ok().filter(|_| self.known.all(&kind::NAMESPACE)).unwrap_or(targets)
    }

    /// Reports whether it is certain that no object of that kind and name exists.
    fn is_missing(&self, gk: &GroupKind, namespace: &str, name: &str) -> bool {
        self.known.within(gk, namespace) && self.world.json(gk, namespace, name).is_none()
    }
}

impl Tenant<'_> {
    /// Returns the OperatorGroup if there is exactly one.
    fn the_group(&self) -> Option<usize> {
        match self.groups[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}
