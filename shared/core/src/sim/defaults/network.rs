//! Defaults of Services and NetworkPolicies. The addresses of a Service are allocated at its creation, not here.

use serde_json::{Value, json};

use super::{child, each, set, set_always};
use crate::api::object::text;

pub(super) fn service(object: &mut Value) {
    let spec = child(object, "spec");
    set(spec, "sessionAffinity", "None");
    set(spec, "type", "ClusterIP");
    if spec["sessionAffinity"] == "ClientIP" {
        set(child(child(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10_800);
    }
    each(spec, "ports", |port| {
        set(port, "protocol", "TCP");
        let number = port["port"].clone();
        // Zero and the empty text count as absent.
        if matches!(&port["targetPort"], Value::Number(zero) if zero.as_i64() == Some(0)) || port["targetPort"] == "" {
            set_always(port, "targetPort", number);
        } else {
            set(port, "targetPort", number);
        }
    });
    let kind = text(spec, &["type"]).to_owned();
    if kind != "ExternalName" {
        set(spec, "internalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", true);
    }
    child(child(object, "status"), "loadBalancer");
}

pub(super) fn policy(object: &mut Value) {
    let spec = child(object, "spec");
    child(spec, "podSelector");
    let types = if spec["egress"].is_array() { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    set(spec, "policyTypes", types);
    for direction in ["ingress", "egress"] {
        each(spec, direction, |rule| each(rule, "ports", |port| set(port, "protocol", "TCP")));
    }
}
