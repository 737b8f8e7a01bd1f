//! Requests that change or remove an existing object: PUT, PATCH, DELETE.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::api_server::{ApiServer, read, served_version, time};
use super::apply::{self, Apply, Conflict};
use super::kinds::ResourceKind;
use super::patch::{self, Patch};
use super::store::{Key, group_kind};
use super::{strategy, validation};
use crate::api::object::{
    ObjectRef, at, generation, gvk, is_deleting, list, map_mut, name, namespace, resource_version, uid,
};
use crate::api::status::Status;

/// The finalizer of foreground deletion, which deletes dependents first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of orphan deletion, which releases dependents.
pub(super) const ORPHAN: &str = "orphan";
/// The finalizer that deletes the custom resources of a CustomResourceDefinition.
pub(super) const CRD_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Preconditions of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// Its uid.
    pub uid: Option<String>,
    /// Its resource version.
    pub resource_version: Option<String>,
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// The object is deleted immediately, its dependents afterwards.
    #[default]
    Background,
    /// The dependents are deleted first.
    Foreground,
    /// The dependents are preserved.
    Orphan,
}

/// One server-side apply.
struct ApplyRequest<'a> {
    target: &'a ObjectRef,
    object: Value,
    manager: String,
    force: bool,
    subresource: Option<&'a str>,
}

impl ApiServer {
    /// Replaces an object (PUT), or its `status` (or a Namespace's `finalize`). Without a resource version the write is
    /// unconditional for the kinds for which Kubernetes permits it, which excludes custom resources. A write that changes
    /// nothing preserves the resource version.
    ///
    /// # Errors
    /// Returns the server's error: not found, conflict, invalid.
    pub fn update(&mut self, object: Value, subresource: Option<&str>, now: Timestamp) -> Result<Value, Status> {
        let kind = self.kinds.served(&gvk(&object))?;
        let target = ObjectRef::from_object(&object);
        let found = self.key(&target).and_then(|key| self.store.read(&key));
        let Some(stored) = found else {
            if subresource.is_none() && strategy::creates_on_update(&kind) && resource_version(&object).is_empty() {
                return self.create(object, now);
            }
            return Err(Status::not_found(&kind.resource(), &target.name));
        };
        if resource_version(&object).is_empty() && strategy::needs_resource_version(&kind) {
            let message = format!(
                "{} {:?} is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
                kind.resource(),
                target.name
            );
            return Err(Status::new(422, "Invalid", message));
        }
        self.replace(&kind, &stored, object, subresource)
    }

    /// Changes an object (PATCH).
    ///
    /// # Errors
    /// Returns the server's error: not found, conflict (a `resourceVersion` in the patch that is not the stored one, or fields
    /// that another manager applied), a patch that does not apply, or an object that would be invalid.
    pub fn patch(
        &mut self,
        target: &ObjectRef,
        patch: Patch,
        subresource: Option<&str>,
        now: Timestamp,
    ) -> Result<Value, Status> {
        let kind = self.kinds.served(&target.gvk)?;
        if matches!(patch, Patch::Strategic(_)) && !kind.is_built_in() {
            return Err(Status::new(
                415,
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ));
        }
        let stored = self.key(target).and_then(|key| self.store.read(&key));
        if let Patch::Apply { object, manager, force } = patch {
            let object = named(&kind, target, object);
            return self.apply(&kind, stored, ApplyRequest { target, object, manager, force, subresource }, now);
        }
        let Some(stored) = stored else { return Err(Status::not_found(&kind.resource(), &target.name)) };
        let patched = patch::patched(&kind, &stored, patch)?;
        self.replace(&kind, &stored, patched, subresource)
    }

    fn apply(
        &mut self,
        kind: &ResourceKind,
        stored: Option<Value>,
        request: ApplyRequest<'_>,
        now: Timestamp,
    ) -> Result<Value, Status> {
        let ApplyRequest { target, object, manager, force, subresource } = request;
        let version = &target.gvk.version;
        let wanted = apply::owned_fields(kind, version, &object, subresource);
        let part = subresource.unwrap_or_default();
        let owned_by = |uid: &str, manager: &str| (uid.to_owned(), part.to_owned(), manager.to_owned());
        let result = match stored {
            None if subresource.is_some() => return Err(Status::not_found(&kind.resource(), &target.name)),
            None => self.create(object, now)?,
            Some(stored) => {
                let own = uid(&stored);
                let others: Vec<(String, Value)> = self
                    .applied
                    .range(owned_by(own, "")..)
                    .take_while(|((uid, p, _), _)| uid == own && p == part)
                    .filter(|((_, _, other), _)| *other != manager)
                    .map(|((_, _, other), fields)| (other.clone(), fields.as_ref().clone()))
                    .collect();
                let before = self.applied.get(&owned_by(own, &manager)).cloned().unwrap_or_default();
                let apply = Apply { kind, version, before: &before, wanted: &wanted, others: &others };
                let conflicts = apply.conflicts(&stored);
                if !conflicts.is_empty() && !force {
                    return Err(apply_conflict(&conflicts));
                }
                let mut merged = apply.merged(&stored);
                let map = map_mut(&mut merged, &[]);
                map.insert("apiVersion".into(), target.gvk.api_version().into());
                for precondition in ["resourceVersion", "uid"] {
                    let given = at(&object, &["metadata", precondition]);
                    if !given.is_null() {
                        map_mut(&mut merged, &["metadata"]).insert(precondition.into(), given.clone());
                    }
                }
                let result = self.replace(kind, &stored, merged, subresource)?;
                for (other, fields) in others {
                    let lost: Vec<&Conflict> = conflicts.iter().filter(|c| c.manager == other).collect();
                    if !lost.is_empty() {
                        self.applied.insert(owned_by(own, &other), Arc::new(apply::without(fields, &lost)));
                    }
                }
                result
            }
        };
        self.applied.insert(owned_by(uid(&result), &manager), Arc::new(wanted));
        Ok(result)
    }

    /// Replaces the stored object, as far as the request may.
    pub(super) fn replace(
        &mut self,
        kind: &ResourceKind,
        stored: &Value,
        object: Value,
        subresource: Option<&str>,
    ) -> Result<Value, Status> {
        let version = served_version(kind, &gvk(&object))?;
        let known = match subresource {
            None => true,
            Some("status") => version.status,
            Some("finalize") => kind.group.is_empty() && kind.kind == "Namespace",
            Some(_) => false,
        };
        if !known {
            return Err(Status::new(404, "NotFound", "the server could not find the requested resource"));
        }
        check_identity(kind, stored, &object)?;
        let mut object = read(kind, version, object)?;
        if !kind.namespaced {
            map_mut(&mut object, &["metadata"]).remove("namespace");
        }
        strategy::prepare_for_update(kind, version, subresource, &mut object, stored, &mut self.ids);
        map_mut(&mut object, &["metadata"]).insert("resourceVersion".into(), resource_version(stored).into());
        if &object == stored {
            return Ok(object);
        }
        validation::on_update(kind, version, &object, stored)?;
        Ok(self.settle(object))
    }

    /// Stores the object, or removes it if it only waited for its finalizers.
    fn settle(&mut self, object: Value) -> Value {
        let held = !list(&object, &["metadata", "finalizers"]).is_empty() || is_held_namespace(&object);
        if is_deleting(&object) && !held {
            let key = Key::from_object(&object);
            self.store.overwrite(object);
            self.remove(&key).unwrap_or_default()
        } else {
            self.store.put(object)
        }
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Value> {
        let gone = self.store.remove(key)?;
        let own = uid(&gone).to_owned();
        self.applied.retain(|(uid, _, _), _| *uid != own);
        Some(gone)
    }

    /// Deletes an object (DELETE). Returns an object with finalizers with its deletion timestamp, and `None` for one that was
    /// removed.
    ///
    /// # Errors
    /// Returns the server's error: not found, a failed precondition, or a namespace that must not be deleted.
    pub fn delete(
        &mut self,
        target: &ObjectRef,
        preconditions: &Preconditions,
        propagation: Propagation,
        now: Timestamp,
    ) -> Result<Option<Value>, Status> {
        let kind = self.kinds.served(&target.gvk)?;
        let stays = matches!(target.name.as_str(), "default" | "kube-system" | "kube-public");
        if kind.group.is_empty() && kind.kind == "Namespace" && stays {
            let message = format!("namespaces {:?} is forbidden: this namespace may not be deleted", target.name);
            return Err(Status::new(403, "Forbidden", message));
        }
        let found = self.key(target).and_then(|key| Some((self.store.read(&key)?, key)));
        let Some((stored, key)) = found else { return Err(Status::not_found(&kind.resource(), &target.name)) };
        check_preconditions(&kind, &stored, preconditions)?;
        let mut finalizers = list(&stored, &["metadata", "finalizers"]).to_vec();
        finalizers.retain(|f| f != FOREGROUND && f != ORPHAN);
        match propagation {
            Propagation::Background => {}
            Propagation::Foreground => finalizers.push(FOREGROUND.into()),
            Propagation::Orphan => finalizers.push(ORPHAN.into()),
        }
        if kind.kind == "CustomResourceDefinition" && !finalizers.contains(&json!(CRD_CLEANUP)) && !is_deleting(&stored)
        {
            finalizers.push(CRD_CLEANUP.into());
        }
        let mut object = stored.clone();
        let metadata = map_mut(&mut object, &["metadata"]);
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers".into(), finalizers.clone().into());
        }
        if finalizers.is_empty() && !is_held_namespace(&object) {
            self.remove(&key);
            return Ok(None);
        }
        if !is_deleting(&stored) {
            mark_deleted(&kind, &mut object, now);
        }
        if object == stored {
            return Ok(Some(object));
        }
        Ok(Some(self.store.put(object)))
    }
}

fn mark_deleted(kind: &ResourceKind, object: &mut Value, now: Timestamp) {
    let moved = generation(object) + 1;
    let metadata = map_mut(object, &["metadata"]);
    metadata.insert("deletionTimestamp".into(), time(now));
    // Namespaces and CustomResourceDefinitions set it by rules of their own.
    if !matches!((kind.group.as_str(), kind.kind.as_str()), ("", "Namespace") | ("apiextensions.k8s.io", _)) {
        metadata.insert("deletionGracePeriodSeconds".into(), 0.into());
        if moved > 1 {
            metadata.insert("generation".into(), moved.into());
        }
    }
    match kind.kind.as_str() {
        "Namespace" if kind.group.is_empty() => {
            map_mut(object, &["status"]).insert("phase".into(), "Terminating".into());
        }
        "CustomResourceDefinition" => {
            let mut conditions = list(object, &["status", "conditions"]).to_vec();
            conditions.push(json!({
                "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending", "lastTransitionTime": time(now),
                "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            }));
            map_mut(object, &["status"]).insert("conditions".into(), conditions.into());
        }
        _ => {}
    }
}

/// A Namespace is preserved until its `spec.finalizers` are removed.
fn is_held_namespace(object: &Value) -> bool {
    group_kind(object) == ("", "Namespace") && !list(object, &["spec", "finalizers"]).is_empty()
}

/// Checks that the request refers to the stored object in its stored version.
fn check_identity(kind: &ResourceKind, stored: &Value, object: &Value) -> Result<(), Status> {
    let resource = kind.resource();
    let own = name(stored);
    if !uid(object).is_empty() && uid(object) != uid(stored) {
        let path: Vec<&str> =
            [kind.plural.as_str(), namespace(stored), own].into_iter().filter(|p| !p.is_empty()).collect();
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {}, UID in object meta: {}",
            path.join("/"),
            uid(object),
            uid(stored),
        );
        return Err(Status::conflict(&resource, own, &why));
    }
    if !resource_version(object).is_empty() && resource_version(object) != resource_version(stored) {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Status::conflict(&resource, own, why));
    }
    if name(object) != own || (kind.namespaced && namespace(object) != namespace(stored)) {
        let message = format!("the name of the object ({}) does not match the name on the URL ({own})", name(object));
        return Err(Status::new(400, "BadRequest", message));
    }
    Ok(())
}

fn check_preconditions(kind: &ResourceKind, stored: &Value, preconditions: &Preconditions) -> Result<(), Status> {
    let refuse = |what: &str, wanted: &str, found: &str, hint: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have been {hint}"
        );
        let resource = if kind.group.is_empty() { kind.kind.clone() } else { kind.qualified_kind() };
        Err(Status::conflict(&resource, name(stored), &why))
    };
    let Preconditions { uid: wanted_uid, resource_version: wanted_version } = preconditions;
    if let Some(wanted) = wanted_uid.as_deref().filter(|wanted| *wanted != uid(stored)) {
        return refuse("UID", wanted, uid(stored), "deleted and then recreated");
    }
    if let Some(wanted) = wanted_version.as_deref().filter(|wanted| *wanted != resource_version(stored)) {
        return refuse("ResourceVersion", wanted, resource_version(stored), "modified");
    }
    Ok(())
}

/// Sets the fields that an applied object may omit because the path of the request contains them.
fn named(kind: &ResourceKind, target: &ObjectRef, mut object: Value) -> Value {
    let metadata = map_mut(&mut object, &["metadata"]);
    metadata.entry("name").or_insert_with(|| target.name.clone().into());
    if kind.namespaced {
        metadata.entry("namespace").or_insert_with(|| target.namespace.clone().into());
    }
    object
}

fn apply_conflict(conflicts: &[Conflict]) -> Status {
    let mut by_manager: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for conflict in conflicts {
        by_manager.entry(&conflict.manager).or_default().push(conflict.to_string());
    }
    let count = conflicts.len();
    let told: Vec<String> = by_manager
        .iter()
        .map(|(manager, fields)| match fields.as_slice() {
            [only] if count == 1 => format!("conflict with {manager:?}: {only}"),
            many => format!("conflicts with {manager:?}:\n- {}", many.join("\n- ")),
        })
        .collect();
    let plural = if count == 1 { "" } else { "s" };
    Status::new(409, "Conflict", format!("Apply failed with {count} conflict{plural}: {}", told.join("\n")))
}
