//! Determines which OperatorGroups intersect, in which namespaces, and on which APIs they conflict
//! (olm-behaviour/operatorgroup.md#intersection).
//!
//! ```text
//!   World --of--> Scope of each group (reach, annotated, members)
//!                   --pairs--> all that intersect      --clashes--> those that claim the same APIs
//!                   --member_effects--> the row of the design's table that applies to each member
//! ```
//!
//! *Guarantees*: symmetric, and ordered by namespace and name. The namespaces are those of a group's spec, whether its
//! status contains them or not, so that a group can be checked before it exists. Its own namespace is always included.

mod bits;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use self::bits::Bits;
use crate::api::metadata::Metadata;
use crate::api::object;
pub use crate::membership::ApiConflict;
use crate::membership::{self, Apis, Group};
use crate::world::{Reader, kind};

/// The relations of all OperatorGroups of a World.
pub struct Intersections<'w> {
    scopes: Vec<Scope<'w>>,
    /// The namespaces that a group names, selects or is in, by bit.
    namespaces: Vec<String>,
    /// The APIs that a group claims, and their providers.
    providers: BTreeMap<String, ApiProviders>,
}

/// An OperatorGroup, and what is compared with others.
pub struct Scope<'w> {
    /// The group.
    pub group: Group<'w>,
    /// The namespaces of its spec, or why the spec is invalid.
    pub asked: Result<BTreeSet<String>, String>,
    /// Its present or future target namespaces; exactly `""` when it is global.
    pub targets: BTreeSet<String>,
    /// The APIs in its annotation.
    pub annotated: Apis,
    /// Its present or future members: none when there are several groups in the namespace.
    pub members: Vec<Member<'w>>,
    /// Creation time; `None` when it does not exist yet.
    pub created: Option<Timestamp>,
    reach: Targets,
}

/// A ClusterServiceVersion in an OperatorGroup whose targets it supports.
pub struct Member<'w> {
    /// The ClusterServiceVersion.
    pub csv: &'w Value,
    /// The APIs that it provides.
    pub provides: Apis,
}

/// The namespaces that are compared: targets and own namespace.
enum Targets {
    Everywhere,
    Namespaces(Bits),
}

#[derive(Default)]
struct ApiProviders {
    /// Groups whose annotation contains the API.
    annotated: BTreeSet<usize>,
    /// Groups with a member that provides it.
    provided: BTreeSet<usize>,
}

/// Two OperatorGroups that intersect, by index in [`Intersections::scopes`]; `a` has the lower index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The first group.
    pub a: usize,
    /// The second group.
    pub b: usize,
}

impl Pair {
    /// Creates a pair of two groups in either order.
    pub fn new(one: usize, other: usize) -> Self {
        Self { a: one.min(other), b: one.max(other) }
    }
}

/// Two OperatorGroups that intersect and claim the same APIs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The groups.
    pub pair: Pair,
    /// The APIs, each `Kind.version.group`, sorted.
    pub apis: Vec<String>,
}

/// Which of two groups has an API in its annotation, which OLM relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// This one only: members of the other group fail.
    One(usize),
    /// Both: the members that OLM processes first give way, and fail.
    Both,
    /// None yet: the group that OLM processes first gets it, and members of the other fail.
    None,
}

/// What OLM does about a member because of what its own and other groups provide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberEffect<'w> {
    /// Its group.
    pub group: usize,
    /// The ClusterServiceVersion.
    pub csv: &'w Value,
    /// The applicable row of the table.
    pub row: ApiConflict,
    /// APIs that it provides and that are in the annotations of other intersecting groups.
    pub contested: Apis,
    /// The other groups.
    pub others: BTreeSet<usize>,
}

impl<'w> Intersections<'w> {
    /// Computes the relations of all OperatorGroups.
    pub fn from_world(world: &Reader<'w>) -> Self {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let mut number = |name: &str| {
            if let Some(known) = numbers.get(name) {
                return *known;
            }
            numbers.insert(name.to_owned(), numbers.len());
            numbers.len() - 1
        };
        let groups: Vec<Group<'w>> = world.all(&kind::OPERATOR_GROUP).map(|o| Group::new(o.json())).collect();
        let mut scopes = Vec::with_capacity(groups.len());
        let mut providers: BTreeMap<String, ApiProviders> = BTreeMap::new();
        // Many groups may have the same selector, which is evaluated on the labels of all namespaces.
        let mut selected: BTreeMap<String, Result<BTreeSet<String>, String>> = BTreeMap::new();
        for (at, group) in groups.iter().enumerate() {
            let is_alone = [at.checked_sub(1), Some(at + 1)]
                .into_iter()
                .flatten()
                .all(|near| groups.get(near).is_none_or(|other| other.namespace() != group.namespace()));
            let asked = if group.target_namespaces().next().is_none() {
                let selector = group.selector().to_string();
                selected.entry(selector).or_insert_with(|| membership::wanted_targets(world, *group)).clone()
            } else {
                membership::wanted_targets(world, *group)
            };
            let scope = Scope::new(world, *group, asked, is_alone, &mut number);
            for api in &scope.annotated.0 {
                providers.entry(api.clone()).or_default().annotated.insert(at);
            }
            for api in scope.members.iter().flat_map(|m| &m.provides.0) {
                providers.entry(api.clone()).or_default().provided.insert(at);
            }
            scopes.push(scope);
        }
        let mut namespaces = vec![String::new(); numbers.len()];
        for (name, number) in numbers {
            namespaces[number] = name;
        }
        Self { scopes, namespaces, providers }
    }

    /// Returns the groups, by namespace and name.
    pub fn scopes(&self) -> &[Scope<'w>] {
        &self.scopes
    }

    /// Returns the index of a group.
    pub fn find(&self, namespace: &str, name: &str) -> Option<usize> {
        self.scopes.binary_search_by(|s| (s.group.namespace(), s.group.name()).cmp(&(namespace, name))).ok()
    }

    /// Returns whether both groups have a common namespace.
    pub fn intersect(&self, one: usize, other: usize) -> bool {
        match (&self.scopes[one].reach, &self.scopes[other].reach) {
            (Targets::Namespaces(one), Targets::Namespaces(other)) => one.intersects(other),
            _ => true,
        }
    }

    /// Returns all pairs that intersect, sorted.
    pub fn pairs(&self) -> Vec<Pair> {
        let n = self.scopes.len();
        let words = self.namespaces.len().div_ceil(Bits::WORD).max(1);
        let mut pairs = Vec::new();
        // Of the groups after the current one: those in each namespace, and the global ones.
        let mut later: Vec<Vec<usize>> = vec![Vec::new(); self.namespaces.len()];
        let mut everywhere: Vec<usize> = Vec::new();
        let mut met = vec![n; n];
        for a in (0..n).rev() {
            let Targets::Namespaces(own) = &self.scopes[a].reach else {
                pairs.extend((a + 1..n).map(|b| Pair { a, b }));
                everywhere.push(a);
                continue;
            };
            let meetings: usize = own.iter().map(|namespace| later[namespace].len()).sum();
            // Iterating over namespaces is faster for groups with few, comparing whole sets for groups with many.
            if meetings > (n - a) * words {
                pairs.extend((a + 1..n).filter(|b| self.intersect(a, *b)).map(|b| Pair { a, b }));
            } else {
                for b in own.iter().flat_map(|namespace| &later[namespace]).chain(&everywhere) {
                    if met[*b] != a {
                        met[*b] = a;
                        pairs.push(Pair { a, b: *b });
                    }
                }
            }
            own.iter().for_each(|namespace| later[namespace].push(a));
        }
        pairs.sort_unstable();
        pairs
    }

    /// Returns the namespaces that both groups have in common, sorted; `None` stands for all namespaces.
    pub fn shared(&self, pair: Pair) -> Option<Vec<&str>> {
        let bits = match (&self.scopes[pair.a].reach, &self.scopes[pair.b].reach) {
            (Targets::Everywhere, Targets::Everywhere) => return None,
            (Targets::Everywhere, Targets::Namespaces(some)) | (Targets::Namespaces(some), Targets::Everywhere) => {
                some.clone()
            }
            (Targets::Namespaces(one), Targets::Namespaces(other)) => one.and(other),
        };
        let mut names: Vec<&str> = bits.iter().map(|number| self.namespaces[number].as_str()).collect();
        names.sort_unstable();
        Some(names)
    }

    /// Returns the pairs that claim the same APIs, sorted.
    pub fn clashes(&self) -> Vec<Clash> {
        let mut found: Vec<(Pair, &String)> = Vec::new();
        for (api, ApiProviders { annotated, provided }) in &self.providers {
            let providers: Vec<usize> = annotated.union(provided).copied().collect();
            for (at, a) in providers.iter().enumerate() {
                let rest = providers[at + 1..].iter().filter(|b| self.intersect(*a, **b));
                found.extend(rest.map(|b| (Pair { a: *a, b: *b }, api)));
            }
        }
        found.sort_unstable();
        let same = found.chunk_by(|(one, _), (other, _)| one == other);
        same.map(|chunk| Clash { pair: chunk[0].0, apis: chunk.iter().map(|(_, api)| (*api).clone()).collect() })
            .collect()
    }

    /// Returns the groups that claim an API: their annotations contain it, or a member provides it.
    pub fn providers(&self, api: &str) -> BTreeSet<usize> {
        self.providers.get(api).map(|ApiProviders { annotated, provided }| annotated | provided).unwrap_or_default()
    }

    /// Returns the APIs that both groups of a pair claim, whether they intersect or not.
    pub fn contested(&self, pair: Pair) -> Vec<String> {
        let of = |at: usize| {
            let scope = &self.scopes[at];
            scope.members.iter().fold(scope.annotated.clone(), |all, member| all.union(&member.provides))
        };
        of(pair.a).intersection(&of(pair.b)).0.into_iter().collect()
    }

    /// Returns which of a pair has an API in its annotation.
    pub fn holder(&self, pair: Pair, api: &str) -> Holder {
        let holds = |at: usize| self.scopes[at].annotated.0.contains(api);
        match (holds(pair.a), holds(pair.b)) {
            (true, true) => Holder::Both,
            (true, false) => Holder::One(pair.a),
            (false, true) => Holder::One(pair.b),
            (false, false) => Holder::None,
        }
    }

    /// Returns which of a pair was created first; `None` when both were created in the same second, or neither exists yet.
    pub fn first(&self, pair: Pair) -> Option<usize> {
        match (self.scopes[pair.a].created, self.scopes[pair.b].created) {
            (Some(a), Some(b)) if a == b => None,
            (Some(a), Some(b)) => Some(if a < b { pair.a } else { pair.b }),
            (Some(_), None) => Some(pair.a),
            (None, Some(_)) => Some(pair.b),
            (None, None) => None,
        }
    }

    /// Returns what OLM does about the members of a group, given the current annotations.
    pub fn member_effects(&self, group: usize) -> Vec<MemberEffect<'w>> {
        let scope = &self.scopes[group];
        let effect = |member: &Member<'w>| {
            let mut contested = Apis::default();
            let mut others = BTreeSet::new();
            for api in &member.provides.0 {
                let annotated = self.providers.get(api).map(|c| &c.annotated).into_iter().flatten().copied();
                let rivals: Vec<usize> =
                    annotated.filter(|other| *other != group && self.intersect(group, *other)).collect();
                if !rivals.is_empty() {
                    contested.0.insert(api.clone());
                }
                others.extend(rivals);
            }
            let covered = member.provides.0.is_subset(&scope.annotated.0);
            let row = ApiConflict::classify(!contested.0.is_empty(), covered, scope.group.is_static());
            MemberEffect { group, csv: member.csv, row, contested, others }
        };
        scope.members.iter().map(effect).collect()
    }
}

impl<'w> Scope<'w> {
    fn new(
        world: &Reader<'w>,
        group: Group<'w>,
        asked: Result<BTreeSet<String>, String>,
        is_alone: bool,
        number: &mut impl FnMut(&str) -> usize,
    ) -> Self {
        let targets = targets_of(world, group, asked.as_ref().ok());
        let reach = if targets.contains("") {
            Targets::Everywhere
        } else {
            let counted = targets.iter().map(String::as_str).chain([group.namespace()]);
            Targets::Namespaces(counted.map(number).collect())
        };
        let carried = targets.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        let is_member = |csv: &&Value| {
            !object::is_deleting(csv)
                && !targets.is_empty()
                && membership::supports(csv, group.namespace(), &carried).is_ok()
        };
        let csvs = is_alone.then(|| membership::originals(world, group.namespace())).into_iter().flatten();
        let members = csvs.filter(is_member).map(|csv| Member { csv, provides: Apis::from_csv(csv) }).collect();
        let created = object::parse_time(Metadata::new(group.json).created());
        Self { group, asked, annotated: group.provided(), members, created, reach, targets }
    }

    /// Returns whether it targets all namespaces.
    pub fn is_global(&self) -> bool {
        matches!(self.reach, Targets::Everywhere)
    }
}

/// Returns the future targets of a group: those of its spec. For an invalid spec, those of its status; those of the status
/// are also retained if a selector cannot be evaluated for them because their labels are unknown.
pub fn targets(world: &Reader<'_>, group: Group<'_>) -> BTreeSet<String> {
    targets_of(world, group, membership::wanted_targets(world, group).ok().as_ref())
}

fn targets_of(world: &Reader<'_>, group: Group<'_>, asked: Option<&BTreeSet<String>>) -> BTreeSet<String> {
    let recorded = || group.targets().into_iter().map(str::to_owned);
    let Some(mut wanted) = asked.cloned() else { return recorded().collect() };
    let has_selector = group.target_namespaces().next().is_none() && !wanted.contains("");
    if has_selector {
        wanted.extend(recorded().filter(|name| !name.is_empty() && world.json(&kind::NAMESPACE, "", name).is_none()));
    }
    wanted
}
