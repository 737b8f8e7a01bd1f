//! Rules of OperatorGroups that several controllers share: the target namespaces of a group, its members, supported install
//! modes, and API conflicts. They make no decisions.
//!
//! ```text
//!   wanted_targets   spec -> namespaces          (the OperatorGroup's controller records them in its status)
//!   Group            status -> targets, annotations of its members, provided APIs
//!   install_modes    whether a ClusterServiceVersion supports the targets
//!   apis             provided APIs, and conflicts with groups that provide them to the same namespaces
//! ```

mod api_conflict;
mod apis;
mod install_modes;
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
use crate::api::label_selector::LabelSelector;
use crate::api::labels::{OPERATOR_GROUP, OPERATOR_NAMESPACE, PROVIDED_APIS, TARGET_NAMESPACES};
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::api::operator_group::OperatorGroup;
use crate::plan::{Account, Action};
use crate::world::{Reader, kind};

/// An OperatorGroup with the rules of this module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group<'a>(OperatorGroup<'a>);

impl<'a> Deref for Group<'a> {
    type Target = OperatorGroup<'a>;

    fn deref(&self) -> &OperatorGroup<'a> {
        &self.0
    }
}

impl<'a> Group<'a> {
    /// Wraps an OperatorGroup without copying.
    pub const fn new(json: &'a Value) -> Self {
        Self(OperatorGroup::new(json))
    }

    /// Returns the target namespaces in its status; exactly `""` when it is global.
    pub fn targets(self) -> BTreeSet<&'a str> {
        self.namespaces().collect()
    }

    /// Returns the ServiceAccount with whose permissions its members are installed, if it names one. It is always in the
    /// group's own namespace, whatever the status contains: a client that may write the status of a group must not get
    /// permissions of other namespaces.
    ///
    /// # Errors
    /// The name of an account that was not found.
    pub fn account(self) -> Result<Option<Account>, &'a str> {
        let wanted = self.service_account();
        match wanted {
            "" => Ok(None),
            _ if object::text(self.service_account_ref(), &["name"]) == wanted => {
                Ok(Some(Account { namespace: self.namespace().to_owned(), name: wanted.to_owned() }))
            }
            _ => Err(wanted),
        }
    }

    /// Returns whether it targets all namespaces.
    pub fn is_global(self) -> bool {
        self.targets() == BTreeSet::from([""])
    }

    /// Returns the APIs in its annotation.
    pub fn provided(self) -> Apis {
        Apis::parse(object::annotation(self.json, PROVIDED_APIS).unwrap_or_default())
    }

    /// Returns the annotations of its members (olm-behaviour/operatorgroup.md#membership), without the one for targets if
    /// there are none.
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

    /// Returns whether the status matches what the group's own plan derives from its spec. Until it does nothing should
    /// rely on it. A group with an invalid spec, or a missing ServiceAccount, retains its targets, as in OLM.
    pub fn is_processed(self, world: &Reader<'_>) -> bool {
        let recorded: BTreeSet<String> = self.targets().into_iter().map(str::to_owned).collect();
        self.keeps_targets(world) || wanted_targets(world, self) == Ok(recorded)
    }

    /// Returns whether it is invalid, so that its targets stay those of its status, whatever its spec contains.
    pub fn keeps_targets(self, world: &Reader<'_>) -> bool {
        let account = self.service_account();
        let is_missing = |name| world.json(&kind::SERVICE_ACCOUNT, self.namespace(), name).is_none();
        !account.is_empty() && is_missing(account) || wanted_targets(world, self).is_err()
    }

    /// Returns whether the install modes of the ClusterServiceVersion support its targets. A group without targets accepts
    /// every one.
    pub fn takes(self, csv: &Value) -> bool {
        let targets: Vec<&str> = self.targets().into_iter().collect();
        targets.is_empty() || supports(csv, self.namespace(), &targets.join(",")).is_ok()
    }

    /// Returns the namespaces that are compared: its targets and its own namespace; `None` stands for all.
    fn reach(self) -> Option<BTreeSet<&'a str>> {
        let mut targets = self.targets();
        if targets.contains("") {
            return None;
        }
        targets.insert(self.namespace());
        Some(targets)
    }

    /// Returns whether both groups have a common namespace, where the own namespace of each is included. (OLM's design;
    /// released versions exclude the own namespace as long as a selector matches nothing,
    /// olm-behaviour/operatorgroup.md#intersection.)
    pub fn intersects(self, other: Group<'_>) -> bool {
        match (self.reach(), other.reach()) {
            (None, _) | (_, None) => true,
            (Some(a), Some(b)) => !a.is_disjoint(&b),
        }
    }

    /// Returns whether it is older than the other. Groups of the same second, or that do not exist yet, are ordered by
    /// namespace and name.
    pub fn precedes(self, other: Group<'_>) -> bool {
        let order = |group: Group<'_>| {
            let made = Metadata::new(group.json).created().to_owned();
            (made.is_empty(), made, group.namespace().to_owned(), group.name().to_owned())
        };
        order(self) < order(other)
    }
}

/// Returns the write that sets the APIs in an OperatorGroup's annotation. Like OLM's write, it formats the object as Go
/// does.
pub fn annotate(group: Group<'_>, apis: &Apis) -> Action {
    let mut new = group.json.clone();
    object::set_annotation(&mut new, PROVIDED_APIS, &apis.to_string());
    Action::Update(GoType::OPERATOR_GROUP.normalise(&new))
}

/// Returns the OperatorGroups of a namespace, by name.
pub fn groups<'w>(world: &Reader<'w>, namespace: &str) -> Vec<Group<'w>> {
    world.in_namespace(&kind::OPERATOR_GROUP, namespace).map(|o| Group::new(o.json())).collect()
}

/// Returns the OperatorGroup of which a ClusterServiceVersion is an active member: the one that it names, in its own
/// namespace, with the targets in its annotation (olm-behaviour/operatorgroup.md#membership).
pub fn group_of<'w>(world: &Reader<'w>, csv: &Value) -> Option<Group<'w>> {
    let name = object::annotation(csv, OPERATOR_GROUP)?;
    let group = Group::new(world.json(&kind::OPERATOR_GROUP, object::namespace(csv), name)?);
    let carried = |(key, value): (&String, &String)| object::annotation(csv, key) == Some(value);
    let annotations = group.annotations();
    (annotations.contains_key(TARGET_NAMESPACES) && annotations.iter().all(carried)).then_some(group)
}

/// Returns the ClusterServiceVersions of a namespace that are not copies, by name.
pub fn originals<'w>(world: &Reader<'w>, namespace: &str) -> impl Iterator<Item = &'w Value> + use<'w> {
    world.in_namespace(&kind::CLUSTER_SERVICE_VERSION, namespace).map(|o| o.json()).filter(|csv| !is_copy(csv))
}

/// Returns the target namespaces of an OperatorGroup's spec; exactly `""` for all of them
/// (olm-behaviour/operatorgroup.md#target-namespaces). Named namespaces need not exist. Reads the labels of all namespaces
/// only when there is a selector.
///
/// # Errors
/// The spec is invalid, for the returned reason.
pub fn wanted_targets(world: &Reader<'_>, group: Group<'_>) -> Result<BTreeSet<String>, String> {
    let named: Vec<&str> = group.target_namespaces().collect();
    if named.contains(&"") {
        return Err(format!("TargetNamespaces cannot contain NamespaceAll: [{}]", named.join(" ")));
    }
    if let Some(name) = named.iter().find(|name| name.contains(',')) {
        // In the annotation of members it would be two names.
        return Err(format!("targetNamespaces: {name:?} is not a valid name of a namespace"));
    }
    if !named.is_empty() {
        return Ok(named.into_iter().map(str::to_owned).collect());
    }
    let selector = LabelSelector::read(group.selector())?;
    if selector.is_empty() {
        return Ok(BTreeSet::from([String::new()]));
    }
    let selected = world.all(&kind::NAMESPACE).map(|o| o.json()).filter(|n| selector.selects(n));
    Ok(selected.map(|n| object::name(n).to_owned()).collect())
}
