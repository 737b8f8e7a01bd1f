//! Creating and deleting OperatorGroups that we look after, and leaving those alone that people look after
//! (olm-behaviour/README.md#design-and-code).
//!
//! ```text
//!   creation   what is in the namespace already?     none -> there
//!                                                     a user's -> nothing: it is theirs to settle
//!                                                     ours, with the same targets -> nothing: it is there
//!                                                     ours, with others -> in another namespace
//!   deletion   whose group is it, and who needs it?   ours, without members -> away with it
//! ```
//!
//! *Guarantee*: a group that is not labelled as compiled by us is never touched.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::intersection;
use crate::api::{hash, object};
use crate::membership::{self, Group};
use crate::world::{Reader, kind};

/// The static label of an OperatorGroup: who compiled it, and so who looks after it.
pub const COMPILED_BY: &str = "kubectl-olm/compiled-by";

/// Who compiled an OperatorGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// We did.
    Ours,
    /// A user did: only users change or delete it.
    User,
}

impl Origin {
    /// Who compiled a group that is there. What is not labelled is a user's.
    pub fn of(group: &Value) -> Self {
        if object::label(group, COMPILED_BY) == Some(Self::Ours.label()) { Self::Ours } else { Self::User }
    }

    /// The value of the label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Ours => "kubectl-olm",
            Self::User => "user",
        }
    }

    /// Labels a group.
    pub fn mark(self, group: &mut Value) {
        object::set_label(group, COMPILED_BY, self.label());
    }
}

/// How the targets of a new group lie to those of the one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They are the same.
    Same,
    /// They have none in common.
    Apart,
    /// The new ones are some of the others.
    Within,
    /// The others are some of the new ones.
    Around,
    /// They have some in common.
    Partly,
}

impl Relation {
    /// How `new` lies to `old`; `""` stands for all namespaces.
    pub fn of(new: &BTreeSet<String>, old: &BTreeSet<String>) -> Self {
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

/// What to do to have an OperatorGroup in a namespace.
#[derive(Clone, Debug, PartialEq)]
pub enum Creation<'w> {
    /// There is none: create it.
    Here,
    /// There are some that users look after, beside others or alone: it is theirs to settle.
    UserManaged(Vec<Group<'w>>),
    /// There are several of ours: no operator runs in the namespace until one is left.
    Several(Vec<Group<'w>>),
    /// The one that is there is on its way out.
    Leaving(Group<'w>),
    /// One of ours is there that targets the same namespaces: nothing is left to do.
    Same(Group<'w>),
    /// One of ours is there that targets others: create it in another namespace.
    Elsewhere {
        /// The one that is there.
        group: Group<'w>,
        /// Its members.
        members: Vec<&'w Value>,
        /// How the targets lie to each other.
        relation: Relation,
    },
}

/// Decides what to do to have `group` in `namespace`.
pub fn creation<'w>(world: &Reader<'w>, namespace: &str, group: &Value) -> Creation<'w> {
    let there = membership::groups(world, namespace);
    let is_users = |group: &Group<'_>| Origin::of(group.json) == Origin::User;
    match there[..] {
        [] => Creation::Here,
        [old] if object::is_deleting(old.json) => Creation::Leaving(old),
        _ if there.iter().any(is_users) => Creation::UserManaged(there.into_iter().filter(is_users).collect()),
        [old] => {
            let [new_targets, old_targets] = [Group::of(group), old].map(|group| intersection::targets(world, group));
            match Relation::of(&new_targets, &old_targets) {
                Relation::Same => Creation::Same(old),
                relation => Creation::Elsewhere { group: old, members: members(world, old), relation },
            }
        }
        _ => Creation::Several(there),
    }
}

/// The fields of its spec, beside its targets, that a group has otherwise than the one that was wished for.
pub fn differing(there: &Value, wished: &Value) -> Vec<&'static str> {
    // Each with what stands for its absence.
    let fields = [
        ("serviceAccountName", json!("")),
        ("staticProvidedAPIs", json!(false)),
        ("upgradeStrategy", json!("Default")),
    ];
    let differ = |field: &str, default: &Value| {
        let [one, other] = [there, wished].map(|group| {
            let value = object::at(group, &["spec", field]);
            if value.is_null() { default } else { value }
        });
        one != other
    };
    fields.into_iter().filter(|(field, default)| differ(field, default)).map(|(field, _)| field).collect()
}

/// The namespace for a group that cannot be in the one it was meant for, if nobody names one. It depends on the group alone, so that
/// the same wish leads to the same namespace.
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

/// What to do to be rid of an OperatorGroup.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion<'w> {
    /// There is none: nothing is left to do.
    Absent,
    /// There are several in the namespace, and none was named.
    Several(Vec<Group<'w>>),
    /// A user looks after it: it stays.
    UserManaged(Group<'w>),
    /// It is on its way out already: nothing is left to do.
    Leaving(Group<'w>),
    /// It has members, which would fail without it: it stays.
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
        /// Subscriptions of its namespace: without a group nothing comes of them.
        subscriptions: Vec<&'w Value>,
    },
}

/// Decides what to do to be rid of the group of a namespace, of that name if one is given.
pub fn deletion<'w>(world: &Reader<'w>, namespace: &str, name: Option<&str>) -> Deletion<'w> {
    let there = membership::groups(world, namespace);
    let meant: Vec<Group<'w>> = there.into_iter().filter(|g| name.is_none_or(|name| g.name() == name)).collect();
    let group = match meant[..] {
        [] => return Deletion::Absent,
        [one] => one,
        _ => return Deletion::Several(meant),
    };
    if Origin::of(group.json) == Origin::User {
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

/// The ClusterServiceVersions that need a group: those that name it, and, when it is the only one in its namespace, those that support
/// its targets and will name it.
fn members<'w>(world: &Reader<'w>, group: Group<'w>) -> Vec<&'w Value> {
    let is_alone = membership::groups(world, group.namespace()).len() == 1;
    let targets = intersection::targets(world, group);
    let carried = targets.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    let names = |csv: &Value| object::annotation(csv, membership::OPERATOR_GROUP) == Some(group.name());
    let fits = |csv: &Value| !targets.is_empty() && membership::supports(csv, group.namespace(), &carried).is_ok();
    membership::originals(world, group.namespace()).filter(|csv| names(csv) || is_alone && fits(csv)).collect()
}
