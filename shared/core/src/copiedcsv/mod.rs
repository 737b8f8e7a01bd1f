//! Copies of ClusterServiceVersions in the namespaces in which they are offered, with the RBAC objects for these namespaces
//! (olm-behaviour/operatorgroup.md#copied-csvs, olm-behaviour/csv.md#promoted-permissions, olm-behaviour/csv.md#copied-permissions).
//!
//! ```text
//!   original + OperatorGroup --offered_in--> namespaces --copy--> create, update, update status, delete
//!                            --target_rbac-> Roles and bindings in these namespaces, or cluster-wide
//!   config: OLMConfig/cluster configures whether copies are created, and reports whether they are as desired
//! ```
//!
//! *Guarantees*: a copy costs two writes, itself and its status, independent of the number of phases of an install.

pub mod config;
mod copy;
mod target_rbac;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::config::plan as plan_config;
use self::copy::{Flaw, Pattern};
use crate::api::cluster_service_version::{Csv, FINALIZER, Phase, is_copy, reason};
use crate::api::labels::TARGET_NAMESPACES;
use crate::api::{labels, object};
use crate::membership::{self, Group, Provision};
use crate::plan::{Action, Emit, Key, Plan, Propagation};
use crate::settings::Settings;
use crate::world::{Object, Reader, kind};

/// Minimum number of copies that one plan writes, if that many are due: enough to saturate an API server.
const AT_A_TIME: usize = 8;

/// Maximum number of plans that write all copies: each plan reads all namespaces, so their number must not grow with the
/// number of namespaces.
const PLANS: usize = 64;

/// Maximum number of bytes that one plan writes when it writes more than [`AT_A_TIME`] copies: each copy is a whole
/// ClusterServiceVersion while it is being written, of which the World stores only a digest. The next plan continues after
/// these.
const MOST_BYTES: usize = 16 << 20;

/// Returns the number of copies of that size that one plan writes with that number of namespaces.
fn at_a_time(namespaces: usize, bytes: usize) -> usize {
    namespaces.div_ceil(PLANS).min(MOST_BYTES / bytes.max(1)).max(AT_A_TIME)
}

/// Plans for the copies of one ClusterServiceVersion. Actions are independent of each other.
pub fn plan(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let copies = Copies::find(world, &key.namespace, &key.name);
    let original = world.json(&kind::CLUSTER_SERVICE_VERSION, &key.namespace, &key.name).filter(|csv| !is_copy(csv));
    let Some(original) = original else {
        let unlabel = mislabelled(world, key);
        let stays = |namespace: &str| unlabel.is_some() && namespace == key.namespace;
        let deletions: Vec<Action> = copies.delete_unless(stays).collect();
        return Plan::unordered(unlabel.into_iter().chain(deletions).collect());
    };
    let Some(group) = offering_group(world, original) else {
        let in_vain = group_without_targets(world, original).is_some();
        let stays = |namespace: &str| !in_vain && may_stay(original, namespace);
        let mut plan = Plan::unordered(copies.delete_unless(stays).collect());
        target_rbac::demote(world, original, &mut plan);
        return plan;
    };
    let offered = Offered::new(settings, world, group);
    let mut is_offered = in_order(offered.namespaces.iter().map(|namespace| (*namespace, ())));
    let mut actions: Vec<Action> = copies.delete_unless(|namespace| is_offered(namespace).is_some()).collect();
    if offered.disabled && !actions.is_empty() {
        actions.push(disabled_event(original));
    }
    let mut plan = Plan::unordered(actions);
    target_rbac::ensure(world, original, group, &copies, &mut plan);
    if let Some(until) = copy::passes_until(original, now) {
        return plan.again_at(until);
    }
    let bytes = if offered.namespaces.len() > AT_A_TIME * PLANS { original.to_string().len() } else { 0 };
    let most = plan.actions.len() + at_a_time(offered.namespaces.len(), bytes);
    let pattern = Pattern::new(original);
    let mut copy_in = in_order(copies.0.iter().copied());
    for namespace in &offered.namespaces {
        if plan.actions.len() == most {
            break;
        }
        match copy_in(namespace) {
            Some(copy) => match pattern.compare(copy) {
                Flaw::None => {}
                _ if !takes_objects(world, namespace) => {}
                Flaw::Content => plan.actions.push(pattern.repair(copy.json())),
                Flaw::Status => plan.actions.push(pattern.update_status(copy.json())),
            },
            None if accepts_copy(world, namespace, &key.name) => {
                plan.actions.push(Action::Create(pattern.make(namespace)));
            }
            None => plan.actions.extend(make_room(world, namespace, &key.name)),
        }
    }
    plan
}

/// The copies of a ClusterServiceVersion, by namespace.
struct Copies<'w>(Vec<(&'w str, &'w Object)>);

impl<'w> Copies<'w> {
    fn find(world: &Reader<'w>, namespace: &str, name: &str) -> Self {
        let mut copies: Vec<_> =
            world.copies(namespace, name).map(|(namespace, copy)| (namespace, copy.as_ref())).collect();
        // Copies without the label are first.
        copies.sort_by_key(|(namespace, _)| *namespace);
        Self(copies)
    }

    /// `keep` is called for the namespaces in order.
    fn delete_unless(&self, mut keep: impl FnMut(&str) -> bool) -> impl Iterator<Item = Action> {
        let stale =
            self.0.iter().filter(move |(namespace, copy)| !keep(namespace) && !object::is_deleting(copy.json()));
        stale.map(|(_, copy)| Action::delete(copy.json(), Propagation::Background))
    }
}

/// Looks up namespaces in a sorted list of thousands: lookups must be made in order.
fn in_order<'a, T>(sorted: impl Iterator<Item = (&'a str, T)>) -> impl FnMut(&str) -> Option<T> {
    let mut rest = sorted.peekable();
    move |wanted| {
        loop {
            match rest.peek()?.0.cmp(wanted) {
                Ordering::Less => drop(rest.next()),
                Ordering::Equal => return rest.next().map(|(_, found)| found),
                Ordering::Greater => return None,
            }
        }
    }
}

/// Returns the OperatorGroup by which a ClusterServiceVersion is offered elsewhere: it is an active member, in a relevant
/// state (olm-behaviour/operatorgroup.md#copied-csvs), and the group is not about to change that.
fn offering_group<'w>(world: &Reader<'w>, original: &Value) -> Option<Group<'w>> {
    let uncopiable = matches!(
        Csv::new(original).reason(),
        "InvalidInstallModes"
            | reason::NO_TARGET_NAMESPACES
            | reason::UNSUPPORTED_OPERATOR_GROUP
            | reason::NO_OPERATOR_GROUP
            | reason::TOO_MANY_OPERATOR_GROUPS
            | reason::CONFLICT
            | reason::STATIC_PROVIDED_APIS
    );
    if uncopiable || Csv::new(original).phase() == Phase::None || object::is_deleting(original) {
        return None;
    }
    let group = membership::group_of(world, original).filter(|g| g.targets() != BTreeSet::from([g.namespace()]))?;
    let targets = object::annotation(original, TARGET_NAMESPACES).unwrap_or_default();
    let stays = membership::groups(world, group.namespace()).len() == 1
        && group.is_processed(world)
        && membership::supports(original, group.namespace(), targets).is_ok()
        && !matches!(membership::provision(world, group, original), Provision::Conflict | Provision::Static);
    stays.then_some(group)
}

/// Returns whether a copy may stay while its original is not offered. It may, unless the original is in conflict with
/// another OperatorGroup, or does not target the namespace (olm-behaviour/operatorgroup.md#copied-csvs).
fn may_stay(original: &Value, namespace: &str) -> bool {
    let conflict = matches!(Csv::new(original).reason(), reason::CONFLICT | reason::STATIC_PROVIDED_APIS);
    let targets = object::annotation(original, TARGET_NAMESPACES).unwrap_or_default();
    !conflict && (targets.is_empty() || targets.split(',').any(|t| t == namespace))
}

/// Returns the OperatorGroup of a ClusterServiceVersion when the group has no targets: its selector matches no namespace,
/// or no longer does. The annotation of its members still contains the previous targets
/// (olm-behaviour/operatorgroup.md#target-namespaces).
fn group_without_targets<'w>(world: &Reader<'w>, original: &Value) -> Option<Group<'w>> {
    match membership::groups(world, object::namespace(original))[..] {
        [group] if group.targets().is_empty() && group.is_processed(world) => Some(group),
        _ => None,
    }
}

/// Removes the label of a copy from an original to which a client added it: only originals have OLM's finalizer. OLM
/// deletes the original instead.
fn mislabelled(world: &Reader<'_>, key: &Key) -> Option<Action> {
    let csv = world.json(&kind::CLUSTER_SERVICE_VERSION, &key.namespace, &key.name)?;
    let is_original = object::has_finalizer(csv, FINALIZER);
    let is_labelled = Csv::new(csv).copied_from().is_some();
    (is_labelled && is_original).then(|| Action::label(csv, json!({ labels::COPIED_FROM: null })))
}

/// The namespaces in which a group's members are offered.
struct Offered<'w> {
    /// Sorted.
    namespaces: Vec<&'w str>,
    /// Whether OLMConfig disables copies of global operators.
    disabled: bool,
}

impl<'w> Offered<'w> {
    fn new(settings: &Settings, world: &Reader<'w>, group: Group<'w>) -> Self {
        let disabled = group.is_global() && config::disables_copies(world);
        let elsewhere = |namespace: &&str| *namespace != group.namespace();
        let namespaces = if group.is_global() {
            let existing = world.names(&kind::NAMESPACE).map(|(_, name)| name);
            let offered = existing.filter(|n| !disabled || settings.protected_copied_csv_namespaces.contains(*n));
            offered.map(String::as_str).filter(elsewhere).collect()
        } else {
            group.targets().into_iter().filter(elsewhere).collect()
        };
        Self { namespaces, disabled }
    }
}

/// Returns whether the namespace exists and is not being deleted.
fn takes_objects(world: &Reader<'_>, namespace: &str) -> bool {
    world.json(&kind::NAMESPACE, "", namespace).is_some_and(|n| !object::is_deleting(n))
}

/// Returns whether the namespace accepts objects, and contains no ClusterServiceVersion of that name, which would be a
/// user's own.
fn accepts_copy(world: &Reader<'_>, namespace: &str, name: &str) -> bool {
    takes_objects(world, namespace) && world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name).is_none()
}

/// Returns the write that deletes the copy of another ClusterServiceVersion of that name, unless its original is offered in
/// the namespace.
fn make_room(world: &Reader<'_>, namespace: &str, name: &str) -> Option<Action> {
    let copy = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name)?;
    let from = Csv::new(copy).copied_from()?;
    let original = world.json(&kind::CLUSTER_SERVICE_VERSION, from, name).filter(|csv| !is_copy(csv))?;
    let is_offered = |group: Group<'_>| group.is_global() || group.targets().contains(namespace);
    let is_needed = object::is_deleting(copy) || offering_group(world, original).is_some_and(is_offered);
    (!is_needed).then(|| Action::delete(copy, Propagation::Background))
}

fn disabled_event(original: &Value) -> Action {
    let (namespace, name) = (object::namespace(original), object::name(original));
    Action::Emit(Emit {
        regarding: original.clone(),
        warning: true,
        reason: "DisabledCopiedCSVs".to_owned(),
        message: format!("CSV copying disabled for {namespace}/{name}"),
    })
}
