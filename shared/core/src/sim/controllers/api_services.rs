//! APIServices: available if Kubernetes serves the group itself. Pods do not run in a simulation, so an APIService with a
//! Service is never available.

use jiff::Timestamp;
use serde_json::Value;

use super::super::api_server::ApiServer;
use super::super::store::Key;
use super::{Condition, number, set_condition};
use crate::api::object::{at, is_deleting, text};

/// A placeholder for an address of the pod network.
const POD_ADDRESS: &str = "10.0.0.1";

pub(super) fn step(server: &mut ApiServer, now: Timestamp) {
    for service in server.pick("apiregistration.k8s.io", "APIService", |service| !is_deleting(service)) {
        let mut updated = service.clone();
        let (status, reason, message) = availability(server, &service);
        set_condition(&mut updated, &Condition { kind: "Available", status, reason, message: &message }, now);
        if updated != service {
            server.write_back(updated, Some("status"), now);
        }
    }
}

fn availability(server: &ApiServer, object: &Value) -> (&'static str, &'static str, String) {
    let backend = at(object, &["spec", "service"]);
    if backend.is_null() {
        return ("True", "Local", "Local APIServices are always available".into());
    }
    let (namespace, name) = (text(backend, &["namespace"]), text(backend, &["name"]));
    let Some(service) = server.store.get(&Key::new("", "Service", namespace, name)) else {
        return ("False", "ServiceNotFound", format!("service/{name} in {namespace:?} is not present"));
    };
    let selector = serde_json::json!({"matchLabels": at(service, &["spec", "selector"])});
    let ready = server.list("apps", "ReplicaSet", Some(namespace)).any(|set| {
        let labels = at(set, &["spec", "template", "metadata", "labels"]);
        super::super::selector::matches(&selector, labels) && number(set, &["status", "readyReplicas"]) > 0
    });
    if !ready {
        let message = format!("endpoints for service/{name} in {namespace:?} have no addresses");
        return ("False", "MissingEndpoints", message);
    }
    let address = format!("{POD_ADDRESS}:{}", number(object, &["spec", "service", "port"]));
    let (group, version) = (text(object, &["spec", "group"]), text(object, &["spec", "version"]));
    let url = format!("https://{address}/apis/{group}/{version}");
    let message = format!(
        "failing or missing response from {url}: Get {url:?}: dial tcp {address}: connect: network is unreachable"
    );
    ("False", "FailedDiscoveryCheck", message)
}
