//! The garbage collector: deletes objects after the last of their owners, or before an owner that waits for its dependents.

use jiff::Timestamp;
use serde_json::Value;

use super::super::api_server::ApiServer;
use super::super::store::{Key, group_kind};
use super::super::writes::{FOREGROUND, ORPHAN, Propagation};
use crate::api::object::{ObjectRef, has_finalizer, is_deleting, list, map_mut, namespace, text, uid};
use crate::sim::Patch;

pub(super) fn step(server: &mut ApiServer, now: Timestamp) {
    let deleting: Vec<Value> = server.store.iter_own().filter(|object| is_deleting(object)).cloned().collect();
    for owner in &deleting {
        if has_finalizer(owner, ORPHAN) {
            release_dependents(server, owner, now);
        }
    }
    let owners: Vec<String> = server.store.owner_uids().map(str::to_owned).collect();
    let mut dependents: Vec<Value> = Vec::new();
    for owner in owners {
        let state = server.store.by_uid(&owner);
        if state.is_none_or(|state| has_finalizer(state, FOREGROUND)) {
            dependents.extend(server.store.dependents(&owner).cloned());
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    dependents.retain(|dependent| seen.insert(uid(dependent).to_owned()));
    // An owner in another namespace is invalid: its uid is known, but it is not found in the dependent's namespace.
    dependents.extend(misplaced(server, &seen));
    for dependent in dependents {
        collect(server, &dependent, now);
    }
    for owner in deleting {
        if has_finalizer(&owner, FOREGROUND) && !blocked(server, &owner) {
            drop_finalizer(server, &owner, FOREGROUND, now);
        }
    }
}

/// Returns objects with an owner reference that names another object than the one with that uid.
fn misplaced(server: &ApiServer, seen: &std::collections::BTreeSet<String>) -> Vec<Value> {
    let wrong = |object: &Value| {
        owners(object).iter().any(|owner| {
            server.store.by_uid(text(owner, &["uid"])).is_some()
                && matches!(owner_of(server, object, owner), Owner::Absent)
        })
    };
    let owned = server.store.iter_own().filter(|object| !owners(object).is_empty() && !seen.contains(uid(object)));
    owned.filter(|object| wrong(object)).cloned().collect()
}

enum Owner {
    Present,
    /// It is deleted after its dependents.
    Waiting,
    Absent,
    /// Cannot be determined: the kind is not served, or a cluster-scoped object names a namespaced owner.
    Unknown,
}

fn owners(object: &Value) -> &[Value] {
    list(object, &["metadata", "ownerReferences"])
}

/// Looks up the owner as the garbage collector does: by kind, name and the dependent's namespace, and then by uid.
fn owner_of(server: &ApiServer, dependent: &Value, reference: &Value) -> Owner {
    let (group, kind) = group_kind(reference);
    let Some(kind) = server.kind(group, kind) else { return Owner::Unknown };
    let own = namespace(dependent);
    if kind.namespaced && own.is_empty() {
        return Owner::Unknown;
    }
    let place = if kind.namespaced { own } else { "" };
    let found = server.store.own(&Key::new(group, &kind.kind, place, text(reference, &["name"])));
    match found.filter(|owner| uid(owner) == text(reference, &["uid"])) {
        None => Owner::Absent,
        Some(owner) if is_deleting(owner) && has_finalizer(owner, FOREGROUND) => Owner::Waiting,
        Some(_) => Owner::Present,
    }
}

fn collect(server: &mut ApiServer, dependent: &Value, now: Timestamp) {
    if is_deleting(dependent) {
        return;
    }
    let mut solid = false;
    let mut waiting = false;
    let mut kept = Vec::new();
    for reference in owners(dependent) {
        match owner_of(server, dependent, reference) {
            Owner::Unknown => return,
            Owner::Present => {
                solid = true;
                kept.push(reference.clone());
            }
            Owner::Waiting => waiting = true,
            Owner::Absent => {}
        }
    }
    if solid {
        set_owners(server, dependent, kept, now);
        return;
    }
    let propagation = if waiting && server.store.dependents(uid(dependent)).next().is_some() {
        Propagation::Foreground
    } else if has_finalizer(dependent, ORPHAN) {
        Propagation::Orphan
    } else {
        Propagation::Background
    };
    server.delete_exactly(dependent, propagation, now);
}

fn set_owners(server: &mut ApiServer, object: &Value, kept: Vec<Value>, now: Timestamp) {
    let owners = if kept.is_empty() { Value::Null } else { kept.into() };
    let patch = serde_json::json!({"metadata": {"ownerReferences": owners, "uid": uid(object)}});
    let _ = server.patch(&ObjectRef::from_object(object), Patch::Merge(patch), None, now);
}

/// Removes the references to an owner that was deleted with `Orphan` from its dependents.
fn release_dependents(server: &mut ApiServer, owner: &Value, now: Timestamp) {
    let dependents: Vec<Value> = server.store.dependents(uid(owner)).cloned().collect();
    for dependent in dependents {
        let kept = owners(&dependent).iter().filter(|r| text(r, &["uid"]) != uid(owner)).cloned().collect();
        set_owners(server, &dependent, kept, now);
    }
    drop_finalizer(server, owner, ORPHAN, now);
}

/// Returns whether an owner that waits for its dependents still has one that blocks its deletion.
fn blocked(server: &ApiServer, owner: &Value) -> bool {
    let blocks = |reference: &Value| {
        text(reference, &["uid"]) == uid(owner) && reference["blockOwnerDeletion"] == Value::Bool(true)
    };
    server.store.dependents(uid(owner)).any(|dependent| owners(dependent).iter().any(blocks))
}

fn drop_finalizer(server: &mut ApiServer, object: &Value, finalizer: &str, now: Timestamp) {
    let Some(mut current) = server.get(&ObjectRef::from_object(object)).cloned() else { return };
    let mut finalizers = list(&current, &["metadata", "finalizers"]).to_vec();
    finalizers.retain(|f| f != finalizer);
    map_mut(&mut current, &["metadata"]).insert("finalizers".into(), finalizers.into());
    server.write_back(current, None, now);
}
