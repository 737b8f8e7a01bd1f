//! CustomResourceDefinitions: accepted names, establishment, serving of their kinds, and deletion of their objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::api_server::ApiServer;
use super::super::kinds::{KindSchema, ResourceKind};
use super::super::writes::{CRD_CLEANUP, Propagation};
use super::{Condition, set_condition};
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::object::{at, generation, is_deleting, list, map_mut, text, uid};
use crate::structural;

pub(super) fn step(server: &mut ApiServer, now: Timestamp) {
    let unsettled = |crd: &Value| {
        is_deleting(crd)
            || !is_true(crd, "Established")
            || !is_true(crd, "NamesAccepted")
            || server.served.get(uid(crd)) != Some(&generation(crd))
    };
    for crd in server.pick("apiextensions.k8s.io", "CustomResourceDefinition", unsettled) {
        if is_deleting(&crd) {
            end(server, &crd, now);
        } else {
            establish(server, &crd, now);
        }
    }
    forget_removed(server);
}

fn is_true(crd: &Value, kind: &str) -> bool {
    CustomResourceDefinition::new(crd).conditions().is_true(kind)
}

fn establish(server: &mut ApiServer, crd: &Value, now: Timestamp) {
    let mut accepted = crd.clone();
    let conflict = name_conflict(server, crd);
    if let Some(why) = &conflict {
        let names = Condition { kind: "NamesAccepted", status: "False", reason: "MultipleNamesConflict", message: why };
        set_condition(&mut accepted, &names, now);
        if !is_true(crd, "Established") {
            let message = "not all names are accepted";
            let names = Condition { kind: "Established", status: "False", reason: "NotAccepted", message };
            set_condition(&mut accepted, &names, now);
        }
    } else {
        let names = at(crd, &["spec", "names"]).clone();
        map_mut(&mut accepted, &["status"]).insert("acceptedNames".into(), names);
        let message = "no conflicts found";
        let names = Condition { kind: "NamesAccepted", status: "True", reason: "NoConflicts", message };
        set_condition(&mut accepted, &names, now);
        if !is_true(crd, "Established") {
            let message = "the initial names have been accepted";
            let names = Condition { kind: "Established", status: "True", reason: "InitialNamesAccepted", message };
            set_condition(&mut accepted, &names, now);
        }
    }
    if is_true(&accepted, "Established") {
        serve(server, &accepted);
    }
    if &accepted != crd {
        server.write_back(accepted, Some("status"), now);
    }
}

/// Serves the kind as the definition currently specifies.
fn serve(server: &mut ApiServer, crd: &Value) {
    let Some(kind) = ResourceKind::from_crd(crd) else { return };
    if server.served.insert(uid(crd).to_owned(), generation(crd)) != Some(generation(crd)) {
        let api_version = kind.storage_api_version();
        server.store.read_as(&kind.group, &kind.kind, |object| {
            map_mut(object, &[]).insert("apiVersion".into(), api_version.clone().into());
            if let Some(KindSchema::Structural(schema)) = kind.version(&kind.storage_version).map(|v| &v.schema) {
                structural::default(schema, object);
            }
        });
        server.register(kind);
    }
}

fn name_conflict(server: &ApiServer, crd: &Value) -> Option<String> {
    if is_true(crd, "NamesAccepted") {
        return None;
    }
    let group = text(crd, &["spec", "group"]);
    let own = at(crd, &["metadata", "uid"]);
    let taken = |field: &str| {
        let wanted = at(crd, &["spec", "names", field]);
        server.list("apiextensions.k8s.io", "CustomResourceDefinition", None).any(|other| {
            at(other, &["metadata", "uid"]) != own
                && text(other, &["spec", "group"]) == group
                && at(other, &["status", "acceptedNames", field]) == wanted
        })
    };
    let conflicts: Vec<String> = ["plural", "singular", "kind", "listKind"]
        .iter()
        .filter(|field| taken(field))
        .map(|field| format!("{} is already in use", at(crd, &["spec", "names", field])))
        .collect();
    (!conflicts.is_empty()).then(|| conflicts.join(", "))
}

/// Deletes the objects of a terminating definition, and removes its finalizer when none is left.
fn end(server: &mut ApiServer, crd: &Value, now: Timestamp) {
    let (group, kind) = (text(crd, &["spec", "group"]), text(crd, &["spec", "names", "kind"]));
    if !is_true(crd, "Established") || server.kind(group, kind).is_none() {
        release(server, crd, now);
        return;
    }
    let objects = server.pick(group, kind, |_| true);
    if objects.is_empty() {
        release(server, crd, now);
        return;
    }
    for object in objects.iter().filter(|object| !is_deleting(object)) {
        server.delete_exactly(object, Propagation::Background, now);
    }
}

fn release(server: &mut ApiServer, crd: &Value, now: Timestamp) {
    let mut released = crd.clone();
    let mut finalizers = list(crd, &["metadata", "finalizers"]).to_vec();
    finalizers.retain(|f| f != CRD_CLEANUP);
    map_mut(&mut released, &["metadata"]).insert("finalizers".into(), json!(finalizers));
    server.write_back(released, None, now);
}

/// Stops serving kinds whose definition was deleted.
fn forget_removed(server: &mut ApiServer) {
    let gone: Vec<(String, String)> = server
        .kinds()
        .filter(|kind| kind.is_from_crd())
        .filter(|kind| {
            let defined = |crd: &Value| {
                text(crd, &["spec", "group"]) == kind.group && text(crd, &["spec", "names", "kind"]) == kind.kind
            };
            !server.list("apiextensions.k8s.io", "CustomResourceDefinition", None).any(defined)
        })
        .map(|kind| (kind.group.clone(), kind.kind.clone()))
        .collect();
    for (group, kind) in gone {
        server.kinds.remove(&group, &kind);
    }
    let store = &server.store;
    server.served.retain(|uid, _| store.by_uid(uid).is_some());
}
