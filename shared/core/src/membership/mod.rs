//! The rules of OperatorGroups that several controllers go by: which namespaces a group targets, who is its member, which install
//! modes that takes, and whose APIs clash. They decide nothing.
//!
//! ```text
//!   wanted_targets   spec -> namespaces          (the OperatorGroup's controller records them in its status)
//!   Group            status -> targets, what its members carry, what it provides
//!   install_modes    does a ClusterServiceVersion support the targets?
//!   apis             what is provided, and does another group provide it to the same namespaces?
//! ```

mod api_conflict;
mod apis;
mod install_modes;
mod selector;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use serde_json::Value;

pub use self::api_conflict::ApiConflict;
pub use self::apis::{Apis, Provision, provision};
pub use self::install_modes::{supported_modes, supports, supports_as_listed};
pub use crate::api::cluster_service_version::is_copy;
use crate::api::go_json::GoType;
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::api::operator_group::OperatorGroup;
use crate::plan::{Account, Action};
use crate::world::{Reader, kind};

/// On a member, and copied with it: the name of its OperatorGroup.
pub const OPERATOR_GROUP: &str = "olm.operatorGroup";
/// On a member, and copied with it: the namespace it runs in.
pub const OPERATOR_NAMESPACE: &str = "olm.operatorNamespace";
/// On a member: the namespaces it is to watch, sorted and joined by commas, or `""` for all.
pub const TARGET_NAMESPACES: &str = "olm.targetNamespaces";
/// On an OperatorGroup: the APIs its members provide.
pub const PROVIDED_APIS: &str = "olm.providedAPIs";

/// An OperatorGroup, and what the rules make of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group<'a>(OperatorGroup<'a>);

impl<'a> Deref for Group<'a> {
    type Target = OperatorGroup<'a>;

    fn deref(&self) -> &OperatorGroup<'a> {
        &self.0
    }
}

impl<'a> Group<'a> {
    /// Reads it where it lies.
    pub const fn of(json: &'a Value) -> Self {
        Self(OperatorGroup::of(json))
    }

    /// The namespaces it targets as recorded in its status; exactly `""` when it is global.
    pub fn targets(self) -> BTreeSet<&'a str> {
        self.target_namespaces().collect()
    }

    /// The ServiceAccount with whose rights its members are installed, if it names one. It is one of the group's own namespace, whatever
    /// the status says: who may write the status of a group must not get the rights of other namespaces.
    ///
    /// # Errors
    /// The name of one that has not been found.
    pub fn account(self) -> Result<Option<Account>, &'a str> {
        let wanted = self.service_account();
        match wanted {
            "" => Ok(None),
            _ if self.found_service_account() == wanted => {
                Ok(Some(Account { namespace: self.namespace().to_owned(), name: wanted.to_owned() }))
            }
            _ => Err(wanted),
        }
    }

    /// Does it target all namespaces?
    pub fn is_global(self) -> bool {
        self.targets() == BTreeSet::from([""])
    }

    /// The APIs that its annotation names.
    pub fn provided(self) -> Apis {
        Apis::parse(object::annotation(self.json, PROVIDED_APIS).unwrap_or_default())
    }

    /// The annotations that its members carry (olm-behaviour/operatorgroup.md#membership). Without targets there is none that names them.
    pub fn annotations(self) -> BTreeMap<String, String> {
        let mut annotations = BTreeMap::from([
            (OPERATOR_GROUP.to_owned(), self.name().to_owned()),
            (OPERATOR_NAMESPACE.to_owned(), self.namespace().to_owned()),
        ]);
        let targets: Vec<&str> = self.targets().into_iter().collect();
        if !targets.is_empty() {
            annotations.insert(TARGET_NAMESPACES.to_owned(), targets.join(","));
        }
        annotations
    }

    /// Does the status say what the group's own plan makes of its spec? Until it does nothing should rely on it. A group whose spec is
    /// invalid, or whose ServiceAccount is missing, keeps the targets that it has, as in OLM.
    pub fn is_processed(self, world: &Reader<'_>) -> bool {
        let recorded: BTreeSet<String> = self.targets().into_iter().map(str::to_owned).collect();
        self.keeps_targets(world) || wanted_targets(world, self) == Ok(recorded)
    }

    /// Is there something wrong with it, so that its targets stay as its status says, whatever its spec asks for?
    pub fn keeps_targets(self, world: &Reader<'_>) -> bool {
        let account = self.service_account();
        let is_missing = |name| world.json(&kind::SERVICE_ACCOUNT, self.namespace(), name).is_none();
        !account.is_empty() && is_missing(account) || wanted_targets(world, self).is_err()
    }

    /// Can the ClusterServiceVersion be its member: do the install modes support its targets? A group without targets takes every one.
    pub fn takes(self, csv: &Value) -> bool {
        let targets: Vec<&str> = self.targets().into_iter().collect();
        targets.is_empty() || supports(csv, self.namespace(), &targets.join(",")).is_ok()
    }

    /// The namespaces that count when groups are compared: its targets and its own; `None` stands for all.
    fn reach(self) -> Option<BTreeSet<&'a str>> {
        let mut targets = self.targets();
        if targets.contains("") {
            return None;
        }
        targets.insert(self.namespace());
        Some(targets)
    }

    /// Is there a namespace that both groups target, where the own namespace of each counts as one that it targets? (OLM's design; what OLM
    /// ships leaves the own namespace out as long as a selector matches nothing, olm-behaviour/operatorgroup.md#intersection.)
    pub fn intersects(self, other: Group<'_>) -> bool {
        match (self.reach(), other.reach()) {
            (None, _) | (_, None) => true,
            (Some(a), Some(b)) => !a.is_disjoint(&b),
        }
    }

    /// Was it there before the other? Of two made in the same second, or not yet, the one whose namespace and name come first.
    pub fn precedes(self, other: Group<'_>) -> bool {
        let order = |group: Group<'_>| {
            let made = Metadata::of(group.json).created().to_owned();
            (made.is_empty(), made, group.namespace().to_owned(), group.name().to_owned())
        };
        order(self) < order(other)
    }
}

/// The write that makes an OperatorGroup's annotation name these APIs. Like OLM's, it leaves the object as Go writes it.
pub fn annotate(group: Group<'_>, apis: &Apis) -> Action {
    let mut new = group.json.clone();
    object::set_annotation(&mut new, PROVIDED_APIS, &apis.to_string());
    Action::Update(GoType::OPERATOR_GROUP.normalise(&new))
}

/// The OperatorGroups of a namespace, by name.
pub fn groups<'w>(world: &Reader<'w>, namespace: &str) -> Vec<Group<'w>> {
    world.in_namespace(&kind::OPERATOR_GROUP, namespace).map(|o| Group::of(o.json())).collect()
}

/// The OperatorGroup that a ClusterServiceVersion is an active member of: the one it names, in its own namespace, with the targets it
/// carries (olm-behaviour/operatorgroup.md#membership).
pub fn group_of<'w>(world: &Reader<'w>, csv: &Value) -> Option<Group<'w>> {
    let name = object::annotation(csv, OPERATOR_GROUP)?;
    let group = Group::of(world.json(&kind::OPERATOR_GROUP, object::namespace(csv), name)?);
    let carried = |(key, value): (&String, &String)| object::annotation(csv, key) == Some(value);
    let annotations = group.annotations();
    (annotations.contains_key(TARGET_NAMESPACES) && annotations.iter().all(carried)).then_some(group)
}

/// The ClusterServiceVersions of a namespace that are not copies, by name.
pub fn originals<'w>(world: &Reader<'w>, namespace: &str) -> impl Iterator<Item = &'w Value> + use<'w> {
    world.in_namespace(&kind::CLUSTER_SERVICE_VERSION, namespace).map(|o| o.json()).filter(|csv| !is_copy(csv))
}

/// The namespaces that an OperatorGroup's spec asks for; exactly `""` for all of them (olm-behaviour/operatorgroup.md#target-namespaces).
/// Named namespaces need not exist. Reads the labels of all namespaces only when there is a selector.
///
/// # Errors
/// The spec makes no sense; says why.
pub fn wanted_targets(world: &Reader<'_>, group: Group<'_>) -> Result<BTreeSet<String>, String> {
    let named: Vec<&str> = group.wanted_namespaces().collect();
    if named.contains(&"") {
        return Err(format!("TargetNamespaces cannot contain NamespaceAll: [{}]", named.join(" ")));
    }
    if let Some(name) = named.iter().find(|name| name.contains(',')) {
        // In the annotation of members it would be taken for two.
        return Err(format!("targetNamespaces: {name:?} cannot be the name of a namespace"));
    }
    if !named.is_empty() {
        return Ok(named.into_iter().map(str::to_owned).collect());
    }
    let selector = selector::Selector::read(group.selector())?;
    if selector.is_empty() {
        return Ok(BTreeSet::from([String::new()]));
    }
    let selected = world.all(&kind::NAMESPACE).map(|o| o.json()).filter(|n| selector.selects(n));
    Ok(selected.map(|n| object::name(n).to_owned()).collect())
}
