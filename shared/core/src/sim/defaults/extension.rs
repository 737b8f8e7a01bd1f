//! Defaults of the kinds that extend the API server: CustomResourceDefinitions, APIServices, webhooks.

use serde_json::Value;

use super::{child, each, set, with};
use crate::api::object::text;

/// The default port of a service reference.
const SERVICE_PORT: i64 = 443;

pub(super) fn webhooks(kind: &str, object: &mut Value) {
    each(object, "webhooks", |webhook| {
        set(webhook, "failurePolicy", "Fail");
        set(webhook, "matchPolicy", "Equivalent");
        set(webhook, "timeoutSeconds", 10);
        child(webhook, "namespaceSelector");
        child(webhook, "objectSelector");
        if kind == "MutatingWebhookConfiguration" {
            set(webhook, "reinvocationPolicy", "Never");
        }
        with(webhook, "clientConfig", service_port);
        each(webhook, "rules", |rule| set(rule, "scope", "*"));
    });
}

fn service_port(client: &mut Value) {
    with(client, "service", |service| set(service, "port", SERVICE_PORT));
}

pub(super) fn api_service(object: &mut Value) {
    with(object, "spec", service_port);
    child(object, "status");
}

pub(super) fn custom_resource_definition(object: &mut Value) {
    let spec = child(object, "spec");
    let names = child(spec, "names");
    let kind = text(names, &["kind"]).to_owned();
    set(names, "singular", kind.to_lowercase());
    set(names, "listKind", format!("{kind}List"));
    set(child(spec, "conversion"), "strategy", "None");
    with(spec, "conversion", |conversion| {
        with(conversion, "webhook", |webhook| with(webhook, "clientConfig", service_port));
    });
}
