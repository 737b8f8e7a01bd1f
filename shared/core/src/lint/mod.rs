//! Everything that is wrong with OperatorGroups, found in one pass over what is known of a cluster.
//!
//! ```text
//!   World, Known --> Look -- of each namespace --> targets, members, account, stale --+
//!                     |----- of pairs of groups -> apis                              +--> Linted { problems, unchecked }
//!                     '----- of what is left over > orphans -------------------------+
//!   rule      the table of rules, with their documentation
//!   known     what may be concluded from what is not there
//!   problem   what is wrong, and the smallest change that mends it
//!   matrix    which versions of a package fit which groups
//! ```
//!
//! *Guarantees*: without errors among the problems, and with everything known, no member fails because of OperatorGroups. The order of
//! problems is that of namespaces, objects and codes.

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

pub use self::known::Known;
pub use self::problem::{Change, Fingerprint, Fix, Problem};
pub use self::rule::{RULES, Rule, rule};
use crate::api::cluster_service_version::is_copy;
use crate::api::object;
use crate::api::operator_group::OperatorGroup;
use crate::membership::Group;
use crate::operatorgroup::intersection::{Clash, Intersections, Scope};
use crate::world::{GroupKind, Reader, World, kind};

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Linted {
    /// By namespace, object and code.
    pub problems: Vec<Problem>,
    /// What could not be checked in full.
    pub unchecked: Vec<Unchecked>,
    /// How many OperatorGroups were looked at.
    pub groups: usize,
}

/// Rules that were checked only as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchecked {
    /// Codes of the rules.
    pub codes: Vec<&'static str>,
    /// Why, a sentence without a full stop.
    pub why: String,
}

/// Looks for everything that is wrong.
pub fn lint(world: &World, known: &Known, now: Timestamp) -> Linted {
    let reader = Reader::new(world);
    let look = Look::new(reader, known, now);
    let mut found = Vec::new();
    for tenant in look.tenants() {
        targets::check(&look, &tenant, &mut found);
        members::check(&look, &tenant, &mut found);
        account::check(&look, &tenant, &mut found);
        stale::check(&look, &tenant, &mut found);
    }
    apis::check(&look, &mut found);
    orphans::check(&look, &mut found);
    found.sort_by_cached_key(Problem::place_among_others);
    let in_part = known.in_part().into_iter();
    let unchecked =
        in_part.map(|(why, codes)| Unchecked { codes: codes.into_iter().collect(), why: why.to_owned() }).collect();
    Linted { groups: look.all.scopes().len(), problems: found, unchecked }
}

/// The namespaces whose InstallPlans matter: they say what is to be installed with a group's ServiceAccount, and what is not orphaned, since
/// it has been made for a ClusterServiceVersion that is still to come.
pub fn namespaces_of_plans(world: &World) -> BTreeSet<String> {
    let world = Reader::new(world);
    let mut namespaces = orphans::owners(&world);
    namespaces.extend(namespaces_of_accounts(&world));
    namespaces
}

/// The namespaces whose group names a ServiceAccount: there its rights, and what is installed with them, matter.
pub fn namespaces_of_accounts(world: &Reader<'_>) -> BTreeSet<String> {
    let groups = world.all(&kind::OPERATOR_GROUP).map(|o| o.json());
    let named = groups.filter(|group| !OperatorGroup::of(group).service_account().is_empty());
    named.map(|group| object::namespace(group).to_owned()).collect()
}

/// What is looked at.
struct Look<'a> {
    world: Reader<'a>,
    all: Intersections<'a>,
    clashes: Vec<Clash>,
    known: &'a Known,
    now: Timestamp,
}

/// A namespace in which there are OperatorGroups, operators, or Subscriptions.
struct Tenant<'a> {
    namespace: &'a str,
    /// Its OperatorGroups, by their places among all.
    groups: Vec<usize>,
    /// Its ClusterServiceVersions that are not copies and not on their way out.
    csvs: Vec<&'a Value>,
    subscriptions: Vec<&'a Value>,
}

impl<'a> Look<'a> {
    fn new(world: Reader<'a>, known: &'a Known, now: Timestamp) -> Self {
        let all = Intersections::of(&world);
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

    /// The namespaces that a group is going to target; exactly `""` when it is global.
    fn targets(&self, at: usize) -> &BTreeSet<String> {
        let Scope { asked, targets, .. } = self.scope(at);
        // Where all namespaces are known, those of its status that do not match any more do not count.
        asked.as_ref().ok().filter(|_| self.known.all(&kind::NAMESPACE)).unwrap_or(targets)
    }

    /// Is it certain that no object of that kind and name is there?
    fn is_missing(&self, gk: &GroupKind, namespace: &str, name: &str) -> bool {
        self.known.within(gk, namespace) && self.world.json(gk, namespace, name).is_none()
    }
}

impl Tenant<'_> {
    /// The OperatorGroup, when there is exactly one.
    fn the_group(&self) -> Option<usize> {
        match self.groups[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// Names joined for a sentence: `a, b and c`; of many the first few.
fn listed<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    /// More are not read.
    const MOST: usize = 8;
    let names: Vec<T> = names.into_iter().collect();
    let first: Vec<&str> = names.iter().take(MOST).map(AsRef::as_ref).collect();
    match (&first[..], names.len()) {
        (_, n) if n > MOST => format!("{} and {} more", first.join(", "), n - MOST),
        ([], _) => String::new(),
        ([one], _) => (*one).to_owned(),
        ([rest @ .., last], _) => format!("{} and {last}", rest.join(", ")),
    }
}
