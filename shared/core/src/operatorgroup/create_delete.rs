//! Creates and deletes OperatorGroups that kubectl-olm manages, without changing those that users manage
//! (olm-behaviour/README.md#design-and-code).
//!
//! ```text
//!   creation   what does the namespace contain?      none -> create
//!                                                     a user's -> nothing: the user decides
//!                                                     ours, with the same targets -> nothing: it exists
//!                                                     ours, with others -> in another namespace
//!   deletion   who manages it, and is it needed?     ours, without members -> delete
//! ```
//!
//! *Guarantee*: a group that is not labelled as compiled by kubectl-olm is never changed.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::intersection;
use crate::api::{hash, labels, object};
use crate::membership::{self, Group};
use crate::world::{Reader, kind};

/// The static label of an OperatorGroup: who compiled it, and thus who manages it.
pub const COMPILED_BY: &str = "kubectl-olm/compiled-by";

/// Who compiled an OperatorGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// kubectl-olm compiled it.
    Ours,
    /// A user compiled it: only users change or delete it.
    User,
}

impl Origin {
    /// Returns who compiled an existing group. A group without the label is a user's.
    pub fn from_group(group: &Value) -> Self {
        if object::label(group, COMPILED_BY) == Some(Self::Ours.label()) { Self::Ours } else { Self::User }
    }

    /// Returns the value of the label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Ours => "kubectl-olm",
            Self::User => "user",
        }
    }

    /// Sets the label of a group.
    pub fn mark(self, group: &mut Value) {
        object::set_label(group, COMPILED_BY, self.label());
    }
}

/// The relation of the targets of a new group to those of the existing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They are equal.
    Same,
    /// They are disjoint.
    Apart,
    /// The new targets are a proper subset.
    Within,
    /// The new targets are a proper superset.
    Around,
    /// They overlap.
    Partly,
}

impl Relation {
    /// Returns the relation of `new` to `old`; `""` stands for all namespaces.
    pub fn between(new: &BTreeSet<String>, old: &BTreeSet<String>) -> Self {
        let is_all = |targets: &BTreeSet<String>| targets.contains("");
        match (is_all(new), is_all(old)) {
            _ if new == old => Self::Same,
            (false, true) => Self::Within,
            (true, false) => Self::Around,
            _ if new.is_disjoint(old) => Self::Apart,
            _ if new.is_subset(old) => Self::Within,
            _ if old.is_subset(new) => Self::Around,
            _ => Self::Partly,
        }
    }
}

/// What has to be done so that a namespace has an OperatorGroup.
#[derive(Clone, Debug, PartialEq)]
pub enum Creation<'w> {
    /// There is no group: create it.
    Here,
    /// There are groups that users manage: users decide.
    UserManaged(Vec<Group<'w>>),
    /// There are several of ours: no operator runs in the namespace until one is left.
    Several(Vec<Group<'w>>),
    /// The existing group is being deleted.
    Leaving(Group<'w>),
    /// One of ours exists with the same targets: nothing to do.
    Same(Group<'w>),
    /// One of ours exists with other targets: create the group in another namespace.
    Elsewhere {
        /// The existing group.
        group: Group<'w>,
        /// Its members.
        members: Vec<&'w Value>,
        /// The relation of the targets.
        relation: Relation,
    },
}

/// Decides what has to be done so that `namespace` has `group`.
pub fn creation<'w>(world: &Reader<'w>, namespace: &str, group: &Value) -> Creation<'w> {
    let there = membership::groups(world, namespace);
    let is_users = |group: &Group<'_>| Origin::from_group(group.json) == Origin::User;
    match there[..] {
        [] => Creation::Here,
        [old] if object::is_deleting(old.json) => Creation::Leaving(old),
        _ if there.iter().any(is_users) => Creation::UserManaged(there.into_iter().filter(is_users).collect()),
        [old] => {
            let [new_targets, old_targets] = [Group::new(group), old].map(|group| intersection::targets(world, group));
            match Relation::between(&new_targets, &old_targets) {
                Relation::Same => Creation::Same(old),
                relation => Creation::Elsewhere { group: old, members: members(world, old), relation },
            }
        }
        _ => Creation::Several(there),
    }
}

/// Returns the fields of the spec, except the targets, in which an existing group differs from the requested one.
pub fn differing(there: &Value, requested: &Value) -> Vec<&'static str> {
    // Each with its default.
    let fields = [
        ("serviceAccountName", json!("")),
        ("staticProvidedAPIs", json!(false)),
        ("upgradeStrategy", json!("Default")),
    ];
    let differ = |field: &str, default: &Value| {
        let [one, other] = [there, requested].map(|group| {
            let value = object::at(group, &["spec", field]);
            if value.is_null() { default } else { value }
        });
        one != other
    };
    fields.into_iter().filter(|(field, default)| differ(field, default)).map(|(field, _)| field).collect()
}

/// Returns the namespace for a group that cannot be created in its own, unless the user specifies one. It depends on the
/// group alone, so that the same group always gets the same namespace.
pub fn other_namespace(namespace: &str, group: &Value, targets: &BTreeSet<String>) -> String {
    const LONGEST: usize = 63;
    let name = object::name(group);
    let joined = targets.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    let digest = hash::fnv64a(&joined);
    let short = &digest[..digest.floor_char_boundary(6)];
    let plain = format!("{namespace}-{name}");
    if name != namespace && !name.contains('.') && plain.len() <= LONGEST {
        return plain;
    }
    let room = LONGEST - short.len() - 1;
    let stem = &namespace[..namespace.floor_char_boundary(room)];
    format!("{}-{short}", stem.trim_end_matches('-'))
}

/// What has to be done to delete an OperatorGroup.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion<'w> {
    /// There is no group: nothing to do.
    Absent,
    /// There are several groups in the namespace, and no name was given.
    Several(Vec<Group<'w>>),
    /// A user manages it: it is not deleted.
    UserManaged(Group<'w>),
    /// It is already being deleted: nothing to do.
    Leaving(Group<'w>),
    /// It has members, which would fail without it: it is not deleted.
    InUse {
        /// The group.
        group: Group<'w>,
        /// Its members.
        members: Vec<&'w Value>,
    },
    /// It has no members: delete it.
    Free {
        /// The group.
        group: Group<'w>,
        /// Subscriptions of its namespace: they are not resolved without a group.
        subscriptions: Vec<&'w Value>,
    },
}

/// Decides what has to be done to delete the group of a namespace, or the one with the given name.
pub fn deletion<'w>(world: &Reader<'w>, namespace: &str, name: Option<&str>) -> Deletion<'w> {
    let there = membership::groups(world, namespace);
    let meant: Vec<Group<'w>> = there.into_iter().filter(|g| name.is_none_or(|name| g.name() == name)).collect();
    let group = match meant[..] {
        [] => return Deletion::Absent,
        [one] => one,
        _ => return Deletion::Several(meant),
    };
    if Origin::from_group(group.json) == Origin::User {
        return Deletion::UserManaged(group);
    }
    if object::is_deleting(group.json) {
        return Deletion::Leaving(group);
    }
    let members = members(world, group);
    if !members.is_empty() {
        return Deletion::InUse { group, members };
    }
    let subscriptions = world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|o| o.json()).collect();
    Deletion::Free { group, subscriptions }
}

/// Returns the ClusterServiceVersions that need a group: those that name it, and, when it is the only one in its namespace,
/// those that support its targets and will name it.
fn members<'w>(world: &Reader<'w>, group: Group<'w>) -> Vec<&'w Value> {
    let is_alone = membership::groups(world, group.namespace()).len() == 1;
    let targets = intersection::targets(world, group);
    let carried = targets.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    let names = |csv: &Value| object::annotation(csv, labels::OPERATOR_GROUP) == Some(group.name());
    let fits = |csv: &Value| !targets.is_empty() && membership::supports(csv, group.namespace(), &carried).is_ok();
    membership::originals(world, group.namespace()).filter(|csv| names(csv) || is_alone && fits(csv)).collect()
}
