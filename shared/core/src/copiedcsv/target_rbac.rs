//! The permissions of an operator in its own namespace, transferred to the namespaces that it watches: mirrored
//! cluster-wide for a global OperatorGroup, otherwise copied to each target (olm-behaviour/csv.md#promoted-permissions,
//! olm-behaviour/csv.md#copied-permissions). Nothing is written where the permissions exist.
//!
//! *Guarantee.* With a ServiceAccount in the OperatorGroup nothing is granted that this account may not grant. OLM grants
//! it with its own permissions, so that a user who may write an OperatorGroup has those of a cluster administrator.

use serde_json::{Value, json};

use super::{Copies, group_without_targets, takes_objects};
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::metadata::Metadata;
use crate::api::{labels, object};
use crate::membership::{self, Group};
use crate::plan::{Action, Plan, Propagation, Reason};
use crate::rbac::{Granted, Work};
use crate::world::{GroupKind, IndexKey, Reader, kind};

/// Plans what is missing. While requirements are not met the InstallPlan may still be writing permissions, which may make
/// others unnecessary.
pub(super) fn ensure(world: &Reader<'_>, original: &Value, group: Group<'_>, copies: &Copies<'_>, plan: &mut Plan) {
    demote(world, original, plan);
    let pending = Csv::new(original).phase() == Phase::Pending;
    if pending || Csv::new(original).permissions().is_empty() {
        return;
    }
    // Without its ServiceAccount a group grants nothing; its members wait for it, and report that.
    let Ok(account) = group.account() else { return };
    let before = plan.actions.len();
    grant(world, original, group, copies, plan);
    let grants: Vec<Action> = plan.actions.drain(before..).collect();
    plan.actions.extend(grants.into_iter().map(|action| action.with_permissions_of(account.as_ref())));
}

fn grant(world: &Reader<'_>, original: &Value, group: Group<'_>, copies: &Copies<'_>, plan: &mut Plan) {
    if group.is_global() {
        if !is_permitted(world, original, None) {
            let owned = Owned::find(world, original, |_| true);
            promote(world, original, &owned, plan);
            owned.complain(original, "the whole cluster", plan);
        }
        return;
    }
    let targets = group.targets();
    for (namespace, copy) in &copies.0 {
        let copy = copy.json();
        let offered = targets.contains(namespace) && !object::is_deleting(copy) && takes_objects(world, namespace);
        if offered && !is_permitted(world, original, Some(namespace)) {
            let owned = Owned::find(world, original, |o| {
                Metadata::new(o).owner_references().iter().any(|r| object::text(r, &["uid"]) == object::uid(original))
            });
            copy_to(world, copy, &owned, plan);
            owned.complain(original, &format!("namespace {namespace}"), plan);
        }
    }
}

/// Deletes cluster-wide permissions of the member of an OperatorGroup that is no longer global: those that mirror its
/// permissions in its own namespace. OLM leaves them until the ClusterServiceVersion is deleted.
pub(super) fn demote(world: &Reader<'_>, original: &Value, plan: &mut Plan) {
    let group = membership::group_of(world, original).or_else(|| group_without_targets(world, original));
    if group.is_none_or(Group::is_global) {
        return;
    }
    let owned = Owned::find(world, original, |_| true);
    for (sources, mirrored) in [(&owned.roles, kind::CLUSTER_ROLE), (&owned.bindings, kind::CLUSTER_ROLE_BINDING)] {
        let mirrors = sources.iter().filter_map(|source| world.json(&mirrored, "", object::name(source)));
        let ours = mirrors.filter(|mirror| labels::is_owner(mirror, original) && !object::is_deleting(mirror));
        plan.actions.extend(ours.map(|mirror| Action::delete(mirror, Propagation::Background)));
    }
}

/// Returns whether the operator's ServiceAccounts have its `permissions` in that namespace (`None`: in all). An invalid
/// rule cannot be granted, and is reported for the ClusterServiceVersion.
fn is_permitted(world: &Reader<'_>, original: &Value, namespace: Option<&str>) -> bool {
    let work = Work::default();
    Csv::new(original).permissions().iter().all(|permission| {
        let account = (object::namespace(original), object::text(permission, &["serviceAccountName"]));
        let granted = Granted::to(world, account, namespace).sharing(&work);
        object::list(permission, &["rules"]).iter().all(|rule| granted.allows(rule).unwrap_or(true))
    })
}

/// The Roles and RoleBindings with the original's owner labels.
struct Owned<'w> {
    roles: Vec<&'w Value>,
    bindings: Vec<&'w Value>,
}

impl<'w> Owned<'w> {
    fn find(world: &Reader<'w>, original: &Value, keep: impl Fn(&Value) -> bool) -> Self {
        let found = world.indexed(IndexKey::OwnerLabels {
            kind: object::kind(original).to_owned(),
            namespace: object::namespace(original).to_owned(),
            name: object::name(original).to_owned(),
        });
        let of_kind = |gk: &GroupKind| {
            let objects = found.iter().map(|o| o.json()).filter(|o| GroupKind::from_object(o) == *gk);
            objects
                .filter(|o| object::namespace(o) == object::namespace(original) && !object::is_deleting(o) && keep(o))
                .collect()
        };
        Self { roles: of_kind(&kind::ROLE), bindings: of_kind(&kind::ROLE_BINDING) }
    }

    /// Reports that there is nothing to copy, once the operator runs without the permissions.
    fn complain(&self, original: &Value, place: &str, plan: &mut Plan) {
        let runs = Csv::new(original).phase() == Phase::Succeeded;
        if runs && (self.roles.is_empty() || self.bindings.is_empty()) {
            plan.reasons.push(Reason::Missing {
                object: format!("ClusterServiceVersion {}/{}", object::namespace(original), object::name(original)),
                needs: format!("a Role and RoleBinding with its owner labels, to grant its permissions in {place}"),
            });
        }
    }
}

/// Mirrors Roles as ClusterRoles, with read access to namespaces, and their bindings, and updates both. Objects of other
/// owners are not changed.
fn promote(world: &Reader<'_>, original: &Value, owned: &Owned<'_>, plan: &mut Plan) {
    for role in &owned.roles {
        let mut rules = object::list(role, &["rules"]).to_vec();
        rules.push(json!({ "verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["namespaces"] }));
        plan.actions.extend(mirror(world, original, role, &kind::CLUSTER_ROLE, json!({ "rules": rules })));
    }
    for binding in &owned.bindings {
        let mut reference = object::at(binding, &["roleRef"]).clone();
        object::map_mut(&mut reference, &[]).insert("kind".to_owned(), kind::CLUSTER_ROLE.kind.into());
        let content = json!({ "subjects": object::at(binding, &["subjects"]), "roleRef": reference });
        plan.actions.extend(mirror(world, original, binding, &kind::CLUSTER_ROLE_BINDING, content));
    }
}

fn mirror(world: &Reader<'_>, original: &Value, source: &Value, gk: &GroupKind, mut object: Value) -> Option<Action> {
    let name = object::name(source);
    if let Some(present) = world.json(gk, "", name) {
        return labels::is_owner(present, original).then(|| repair(present, &object)).flatten();
    }
    let fields = object::map_mut(&mut object, &[]);
    fields.insert("apiVersion".to_owned(), object::at(source, &["apiVersion"]).clone());
    fields.insert("kind".to_owned(), gk.kind.clone().into());
    fields.insert("metadata".to_owned(), json!({ "name": name, "labels": Metadata::new(source).labels() }));
    Some(Action::Create(object))
}

/// Returns the write that updates the rules of a role, or the subjects of a binding. The role of a binding is immutable.
fn repair(present: &Value, wanted: &Value) -> Option<Action> {
    let differs = |field: &&str| {
        let wanted = object::at(wanted, &[*field]);
        !wanted.is_null() && wanted != object::at(present, &[*field])
    };
    // Rarely any: a role is copied only then.
    let fields: Vec<&str> = ["rules", "subjects"].into_iter().filter(differs).collect();
    if fields.is_empty() {
        return None;
    }
    let mut new = present.clone();
    for field in fields {
        object::map_mut(&mut new, &[]).insert(field.to_owned(), object::at(wanted, &[field]).clone());
    }
    Some(Action::Update(new))
}

/// Copies Roles and RoleBindings to the namespace of a copied ClusterServiceVersion, which owns them, and updates both.
fn copy_to(world: &Reader<'_>, copy: &Value, owned: &Owned<'_>, plan: &mut Plan) {
    let namespace = object::namespace(copy);
    for source in owned.roles.iter().chain(&owned.bindings) {
        match world.json(&GroupKind::from_object(source), namespace, object::name(source)) {
            None => plan.actions.push(Action::Create(copied(source, copy))),
            Some(present) if labels::is_owner(present, copy) => plan.actions.extend(repair(present, source)),
            Some(_) => {}
        }
    }
}

fn copied(source: &Value, copy: &Value) -> Value {
    let mut new = source.clone();
    let labels: Vec<(String, String)> = object::entries(source, &["metadata", "labels"])
        .filter(|(key, _)| !key.starts_with(labels::COMPONENT))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let metadata = json!({ "name": object::name(source), "namespace": object::namespace(copy), "labels": {} });
    object::map_mut(&mut new, &[]).insert("metadata".to_owned(), metadata);
    for (key, value) in labels {
        object::set_label(&mut new, &key, &value);
    }
    labels::set_owner(&mut new, copy);
    object::set_label(&mut new, labels::COPIED_FROM, object::namespace(source));
    object::set_label(&mut new, labels::MANAGED, "true");
    object::set_owner_reference(&mut new, object::owner_reference(copy, false));
    new
}
