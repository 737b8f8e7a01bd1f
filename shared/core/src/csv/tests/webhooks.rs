//! Descriptions of webhooks, and what is rejected in them.

use serde_json::{Value, json};

use crate::api::cluster_service_version::Csv;
use crate::api::go_json::GoType;
use crate::api::hash;
use crate::csv::serving::{self, Server};
use crate::csv::serving_certificate::ServingCertificate;
use crate::csv::webhooks;
use crate::world::{Reader, World};

fn csv(webhooks: Value) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": "rose.v1", "namespace": "garden", "uid": "u" },
        "spec": {
            "customresourcedefinitions": { "owned": [{ "name": "roses.garden.example.com" }] },
            "installModes": [
                { "type": "OwnNamespace", "supported": false }, { "type": "AllNamespaces", "supported": true },
            ],
            "install": { "strategy": "deployment", "spec": { "deployments": [{ "name": "gate", "spec": {} }] } },
            "webhookdefinitions": webhooks,
        },
    })
}

fn webhook(name: &str, rule: &Value) -> Value {
    json!({ "generateName": name, "type": "ValidatingAdmissionWebhook", "deploymentName": "gate", "rules": [rule] })
}

#[test]
fn rules_may_include_neither_all_groups_nor_olm_nor_other_webhooks() {
    let verdict = |groups: &str, resources: &str| {
        let csv = csv(json!([webhook("a", &json!({ "apiGroups": ["apps", groups], "resources": [resources] }))]));
        webhooks::invalid(Csv::new(&csv))
    };
    let of_webhooks =
        "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources";
    assert_eq!(verdict("*", "roses"), Some("webhook rules cannot include all groups"));
    assert_eq!(verdict("operators.coreos.com", "roses"), Some("webhook rules cannot include the OLM group"));
    assert_eq!(verdict("admissionregistration.k8s.io", "*"), Some(of_webhooks));
    assert_eq!(verdict("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"), Some(of_webhooks));
    assert_eq!(verdict("admissionregistration.k8s.io", "validatingadmissionpolicies"), None);
    assert_eq!(verdict("garden.example.com", "*"), None);
    let twice = csv(json!([webhook("a", &json!({})), webhook("b", &json!({})), webhook("a", &json!({}))]));
    assert_eq!(webhooks::invalid(Csv::new(&twice)), Some("CSV contains repeated WebhookDescription name"));
}

#[test]
fn what_can_never_be_installed_is_reported() {
    let world = World::new();
    let invalid_reason =
        |csv: &Value| webhooks::invalid_reason(&Reader::new(&world), Csv::new(csv)).unwrap_or_default();
    let conversion = |crds: Value| json!([{ "generateName": "c", "type": "ConversionWebhook", "deploymentName": "gate", "conversionCRDs": crds }]);
    let mut lost = csv(json!([webhook("a", &json!({}))]));
    assert_eq!(invalid_reason(&lost), "");
    lost["spec"]["webhookdefinitions"][0]["deploymentName"] = "none".into();
    assert_eq!(invalid_reason(&lost), "strategyDetailsDeployment is missing deployment none for webhook a");
    let good = csv(conversion(json!(["roses.garden.example.com"])));
    assert_eq!(invalid_reason(&good), "");
    let mut narrow = good.clone();
    narrow["spec"]["installModes"][0]["supported"] = true.into();
    let only = "unable to manage conversion webhook: CSVs with conversion webhooks must support only AllNamespaces";
    assert_eq!(invalid_reason(&narrow), only);
    let none = "unable to manager conversion webhook: conversion webhook must have at least one CRD specified";
    assert_eq!(invalid_reason(&csv(conversion(json!([])))), none);
    assert_eq!(
        invalid_reason(&csv(conversion(json!(["pots.example.com"])))),
        "csv rose.v1 does not own CRD pots.example.com"
    );
}

/// The labels of OLM's own configurations, in the scenario webhooks-admission.
#[test]
fn descriptions_have_olms_hashes() {
    let validating = json!({
        "type": "ValidatingAdmissionWebhook", "generateName": "vrose.garden.example.com",
        "deploymentName": "rose-operator", "containerPort": 443, "targetPort": 9443, "admissionReviewVersions": ["v1"],
        "sideEffects": "None", "failurePolicy": "Fail", "webhookPath": "/validate", "timeoutSeconds": 5,
        "rules": [{
            "apiGroups": ["garden.example.com"], "apiVersions": ["v1"], "resources": ["roses"], "operations": ["CREATE"],
        }],
    });
    let hash = hash::deep_hash(GoType::WEBHOOK_DESCRIPTION, &validating);
    assert_eq!(hash, "1eKOm41W4gNV421TPb4pS5le0kfT6Llqx1Npt1");
}

#[test]
fn certificates_replace_previous_mounts() {
    let csv = csv(json!([webhook("a", &json!({}))]));
    let csv = Csv::new(&csv);
    let server = Server::all(csv).next().unwrap();
    let pair = ServingCertificate {
        bundle: "",
        hash: "cafe".to_owned(),
        not_before: jiff::Timestamp::MIN,
        not_after: jiff::Timestamp::MAX,
        rotates_at: jiff::Timestamp::MAX,
    };
    let mut spec = json!({ "template": { "spec": {
        "volumes": [{ "name": "webhook-cert", "emptyDir": {} }, { "name": "own", "emptyDir": {} }],
        "containers": [
            { "name": "a", "volumeMounts": [{ "name": "own", "mountPath": "/tmp/k8s-webhook-server/serving-certs" }] },
            { "name": "b", "volumeMounts": [{ "name": "apiservice-cert", "mountPath": "/elsewhere" }] },
        ],
    } } });
    serving::mount(server, &pair, &mut spec);
    let template = &spec["template"];
    assert_eq!(template["metadata"]["annotations"], json!({ "olmcahash": "cafe" }));
    let secret = |files: [&str; 2]| {
        json!({ "secretName": "gate-service-cert", "items": [
            { "key": "tls.crt", "path": files[0] }, { "key": "tls.key", "path": files[1] },
        ] })
    };
    let api = json!({ "name": "apiservice-cert", "mountPath": "/apiserver.local.config/certificates" });
    let hook = json!({ "name": "webhook-cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs" });
    assert_eq!(
        template["spec"],
        json!({
            "serviceAccountName": "default",
            "volumes": [
                { "name": "webhook-cert", "secret": secret(["tls.crt", "tls.key"]) },
                { "name": "own", "emptyDir": {} },
                { "name": "apiservice-cert", "secret": secret(["apiserver.crt", "apiserver.key"]) },
            ],
            "containers": [
                { "name": "a", "volumeMounts": [hook, api] },
                { "name": "b", "volumeMounts": [{ "name": "apiservice-cert", "mountPath": "/elsewhere" }, hook] },
            ],
        })
    );
}
