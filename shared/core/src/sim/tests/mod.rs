//! The in-memory server's rules, each as a request and its result.

mod applying;
mod config_map;
mod definitions;
mod discovery;
mod fresh;
mod garbage;
mod namespaces;
mod requests;
mod tenancy;
mod workloads;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{ApiServer, Preconditions, Propagation};
use crate::api::object::{Gvk, ObjectRef};
use crate::api::status::Status;
use crate::testing;

/// Returns this second of the test's time.
fn at(second: i64) -> Timestamp {
    let start: Timestamp = "2026-11-21T12:00:00Z".parse().expect("a time");
    start.checked_add(SignedDuration::from_secs(second)).expect("a time")
}

fn now() -> Timestamp {
    at(0)
}

/// Returns a settled server with the namespace `garden` and the node `n1`.
fn server() -> ApiServer {
    let mut server = ApiServer::new(1).with_node("n1", now());
    create(&mut server, testing::namespace("garden"));
    settle(&mut server, now());
    server.drain();
    server
}

fn create(server: &mut ApiServer, object: Value) -> Value {
    server.create(object, now()).expect("created")
}

/// Runs the controllers until they settle, with a limit above the steps that any test needs.
fn settle(server: &mut ApiServer, now: Timestamp) {
    for _ in 0..50 {
        if !server.step(now) {
            return;
        }
    }
    panic!("the controllers do not settle");
}

fn config_map(name: &str, owners: &[&Value]) -> Value {
    let owners: Vec<Value> = owners.iter().map(|owner| crate::api::object::owner_reference(owner, false)).collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "garden", "ownerReferences": owners}})
}

fn reference(api_version: &str, kind: &str, name: &str) -> ObjectRef {
    let gvk = Gvk::from_api_version(api_version, kind);
    let cluster = matches!(kind, "Namespace" | "ClusterRole" | "CustomResourceDefinition");
    ObjectRef { gvk, namespace: if cluster { String::new() } else { "garden".into() }, name: name.into() }
}

fn delete(server: &mut ApiServer, object: &Value, propagation: Propagation) -> Option<Value> {
    server.delete(&ObjectRef::from_object(object), &Preconditions::default(), propagation, now()).expect("deleted")
}

/// Returns code, reason and message.
fn told(refusal: &Status) -> (u16, &str, &str) {
    (refusal.code, &refusal.reason, &refusal.message)
}

fn current(server: &ApiServer, object: &Value) -> Value {
    server.get(&ObjectRef::from_object(object)).cloned().unwrap_or_default()
}
