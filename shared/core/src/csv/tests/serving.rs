//! Operators that the API server calls, from installation to deletion, in simulation.

use jiff::{SignedDuration, Timestamp, ToSpan};
use serde_json::{Value, json};

use crate::api::crd;
use crate::api::object::{self, Gvk, ObjectRef};
use crate::settings::Settings;
use crate::sim::{ApiServer, Patch, Simulation};
use crate::testing;

fn start() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

/// A cluster with global OperatorGroups in `garden` and `field`, and a CRD.
fn cluster() -> Simulation {
    let api = ApiServer::with_stock_objects(1, start()).with_node("n1", start());
    let mut simulation = Simulation::new(api, Settings::default(), start());
    for crd in crd::all() {
        simulation.apply(crd).unwrap();
    }
    simulation.establish();
    for namespace in ["garden", "field"] {
        let object = testing::namespace(namespace);
        simulation.apply(object).unwrap();
        let group = testing::operator_group(namespace, "all", &json!({}));
        simulation.apply(group).unwrap();
    }
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let roses = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "roses.garden.example.com" },
        "spec": {
            "group": "garden.example.com", "scope": "Namespaced", "names": { "kind": "Rose", "plural": "roses" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    });
    simulation.apply(roses).unwrap();
    rest(&mut simulation);
    simulation
}

/// Runs until the state is final. The next plan is then empty, also after a restart, and the controllers know no private
/// key.
fn rest(simulation: &mut Simulation) {
    assert!(simulation.settle(SignedDuration::from_mins(4)), "the cluster does not settle");
    let unfinished = simulation.replan();
    assert!(unfinished.is_empty(), "{unfinished:?}");
    for object in simulation.planner().world().objects() {
        assert!(object.json()["data"]["tls.key"].is_null(), "{}", ObjectRef::from_object(object.json()));
    }
}

fn csv(namespace: &str, version: &str, replaces: &str, parts: &Value) -> Value {
    let mode = |kind: &str, supported: bool| json!({ "type": kind, "supported": supported });
    let container = json!({ "name": "manager", "image": "registry.example.com/operator:1" });
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": format!("rose.v{version}"), "namespace": namespace },
        "spec": {
            "displayName": "Rose", "version": format!("{version}.0.0"), "installModes": [
                mode("OwnNamespace", false), mode("SingleNamespace", false), mode("MultiNamespace", false), mode("AllNamespaces", true),
            ],
            "install": { "strategy": "deployment", "spec": { "deployments": [{
                "name": "gate",
                "spec": {
                    "selector": { "matchLabels": { "app": "gate" } },
                    "template": { "metadata": { "labels": { "app": "gate" } }, "spec": { "containers": [container] } },
                },
            }] } },
        },
    });
    if !replaces.is_empty() {
        csv["spec"]["replaces"] = replaces.into();
    }
    for (field, value) in parts.as_object().unwrap() {
        csv["spec"][field] = value.clone();
    }
    csv
}

fn admission() -> Value {
    json!({ "webhookdefinitions": [{
        "type": "ValidatingAdmissionWebhook", "generateName": "roses.example.com", "deploymentName": "gate",
        "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "targetPort": 9443,
        "rules": [{ "apiGroups": ["garden.example.com"], "apiVersions": ["v1"], "resources": ["roses"], "operations": ["CREATE"] }],
    }] })
}

fn conversion() -> Value {
    json!({
        "customresourcedefinitions": { "owned": [{ "name": "roses.garden.example.com", "kind": "Rose", "version": "v1" }] },
        "webhookdefinitions": [{
            "type": "ConversionWebhook", "generateName": "roses.example.com", "deploymentName": "gate",
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "conversionCRDs": ["roses.garden.example.com"],
        }],
    })
}

fn api() -> Value {
    json!({ "apiservicedefinitions": { "owned": [{
        "group": "metrics.example.com", "version": "v1", "kind": "Thorn", "name": "thorns", "deploymentName": "gate",
        "containerPort": 5443,
    }] } })
}

fn reference(api_version: &str, kind: &str, namespace: &str, name: &str) -> ObjectRef {
    let gvk = Gvk::from_api_version(api_version, kind);
    ObjectRef { gvk, namespace: namespace.to_owned(), name: name.to_owned() }
}

fn csv_ref(namespace: &str, name: &str) -> ObjectRef {
    reference("operators.coreos.com/v1alpha1", "ClusterServiceVersion", namespace, name)
}

fn get<'s>(simulation: &'s Simulation, api_version: &str, kind: &str, namespace: &str, name: &str) -> &'s Value {
    static NULL: Value = Value::Null;
    simulation.api().get(&reference(api_version, kind, namespace, name)).unwrap_or(&NULL)
}

fn secret<'s>(simulation: &'s Simulation, namespace: &str) -> &'s Value {
    get(simulation, "v1", "Secret", namespace, "gate-service-cert")
}

fn phase(simulation: &Simulation, name: &str) -> String {
    let csv = simulation.api().get(&csv_ref("garden", name));
    csv.map(|csv| {
        format!("{} {}", csv["status"]["phase"].as_str().unwrap(), csv["status"]["message"].as_str().unwrap())
    })
    .unwrap_or_default()
}

const SUCCEEDED: &str = "Succeeded install strategy completed with no errors";

fn configurations(simulation: &Simulation) -> Vec<&Value> {
    simulation.api().list("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", None).collect()
}

/// Returns whether everything that trusts or contains the certificate uses the one in the Secret.
fn is_consistent(simulation: &Simulation) -> bool {
    let secret = secret(simulation, "garden");
    let bundle = &secret["data"]["olmCAKey"];
    let deployment = get(simulation, "apps/v1", "Deployment", "garden", "gate");
    bundle.is_string()
        && deployment["spec"]["template"]["metadata"]["annotations"]["olmcahash"]
            == secret["metadata"]["annotations"]["olmcahash"]
        && configurations(simulation).iter().all(|c| c["webhooks"][0]["clientConfig"]["caBundle"] == *bundle)
}

#[test]
fn certificates_are_renewed_a_day_before_they_expire() {
    let mut simulation = cluster();
    simulation.apply(csv("garden", "1", "", &admission())).unwrap();
    rest(&mut simulation);
    assert_eq!(phase(&simulation, "rose.v1"), SUCCEEDED);
    assert!(is_consistent(&simulation));
    let status = &simulation.api().get(&csv_ref("garden", "rose.v1")).unwrap()["status"];
    assert_eq!(status["certsLastUpdated"], "2026-11-21T12:00:00Z");
    assert_eq!(status["certsRotateAt"], "2028-11-19T12:00:00Z");
    let old = secret(&simulation, "garden")["data"].clone();
    simulation.sleep_until(start() + (729 * 24).hours() + 1.second());
    rest(&mut simulation);
    assert_ne!(secret(&simulation, "garden")["data"], old);
    assert!(is_consistent(&simulation));
    let csv = simulation.api().get(&csv_ref("garden", "rose.v1")).unwrap();
    let history: Vec<&str> =
        object::list(csv, &["status", "conditions"]).iter().map(|c| object::text(c, &["reason"])).collect();
    assert_eq!(
        history[5..],
        ["NeedsCertRotation", "AllRequirementsMet", "InstallSucceeded", "InstallWaiting", "InstallSucceeded"],
        "{history:?}"
    );
    assert_eq!(csv["status"]["certsRotateAt"], "2030-11-18T12:00:01Z");
}

#[test]
fn deleted_objects_are_recreated() {
    let mut simulation = cluster();
    simulation.apply(csv("garden", "1", "", &admission())).unwrap();
    rest(&mut simulation);
    let lost = [
        reference("v1", "Secret", "garden", "gate-service-cert"),
        reference("v1", "Service", "garden", "gate-service"),
        reference("rbac.authorization.k8s.io/v1", "RoleBinding", "garden", "gate-service-cert"),
        reference("rbac.authorization.k8s.io/v1", "RoleBinding", "kube-system", "gate-service-auth-reader"),
        reference("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "gate-service-system:auth-delegator"),
        ObjectRef::from_object(configurations(&simulation)[0]),
    ];
    for target in lost {
        simulation.delete(&target).unwrap();
        rest(&mut simulation);
        assert_eq!(phase(&simulation, "rose.v1"), SUCCEEDED, "{target}");
        let back = simulation.api().get(&target).is_some() || target.gvk.kind.ends_with("Configuration");
        assert!(back && is_consistent(&simulation) && configurations(&simulation).len() == 1, "{target}");
    }
}

#[test]
fn an_invalid_certificate_is_replaced_and_an_administrators_changes_are_preserved() {
    let mut simulation = cluster();
    simulation.apply(csv("garden", "1", "", &admission())).unwrap();
    rest(&mut simulation);
    let configuration = configurations(&simulation)[0].clone();
    let target = ObjectRef::from_object(&configuration);
    let mut open = configuration.clone();
    open["webhooks"][0]["failurePolicy"] = "Ignore".into();
    simulation.patch(&target, Patch::Merge(json!({ "webhooks": open["webhooks"] })), None).unwrap();
    rest(&mut simulation);
    assert_eq!(configurations(&simulation)[0]["webhooks"][0]["failurePolicy"], "Ignore");
    open["webhooks"][0]["clientConfig"]["caBundle"] = "".into();
    simulation.patch(&target, Patch::Merge(json!({ "webhooks": open["webhooks"] })), None).unwrap();
    rest(&mut simulation);
    assert!(is_consistent(&simulation));
    let broken = Patch::Merge(json!({ "data": { "tls.crt": "bm90IGEgY2VydGlmaWNhdGU=" } }));
    simulation.patch(&reference("v1", "Secret", "garden", "gate-service-cert"), broken, None).unwrap();
    rest(&mut simulation);
    assert_ne!(secret(&simulation, "garden")["data"]["tls.crt"], "bm90IGEgY2VydGlmaWNhdGU=");
    assert!(is_consistent(&simulation));
}

#[test]
fn a_certificate_is_taken_over_by_the_version_that_replaces_it() {
    let mut simulation = cluster();
    simulation.apply(csv("garden", "1", "", &admission())).unwrap();
    rest(&mut simulation);
    let before = secret(&simulation, "garden")["data"].clone();
    simulation.apply(csv("garden", "2", "rose.v1", &admission())).unwrap();
    rest(&mut simulation);
    assert_eq!((phase(&simulation, "rose.v1").as_str(), phase(&simulation, "rose.v2").as_str()), ("", SUCCEEDED));
    let secret = secret(&simulation, "garden");
    assert_eq!(secret["data"], before);
    let owners: Vec<&str> =
        object::list(secret, &["metadata", "ownerReferences"]).iter().map(|o| object::text(o, &["name"])).collect();
    assert_eq!(owners, ["rose.v2"]);
    let [configuration] = configurations(&simulation)[..] else { panic!("{:?}", configurations(&simulation)) };
    assert_eq!(object::label(configuration, "olm.owner"), Some("rose.v2"));
    assert!(is_consistent(&simulation));
}

#[test]
fn conversion_begins_with_an_operator_and_ends_with_it() {
    let mut simulation = cluster();
    simulation.apply(csv("garden", "1", "", &conversion())).unwrap();
    rest(&mut simulation);
    assert_eq!(phase(&simulation, "rose.v1"), SUCCEEDED);
    let crd = |simulation: &Simulation| {
        get(simulation, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "roses.garden.example.com")["spec"]["conversion"].clone()
    };
    let bundle = &secret(&simulation, "garden")["data"]["olmCAKey"];
    let service = json!({ "namespace": "garden", "name": "gate-service", "port": 443, "path": "/" });
    assert_eq!(
        crd(&simulation),
        json!({ "strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": { "service": service, "caBundle": bundle },
        } })
    );
    simulation.apply(csv("garden", "2", "rose.v1", &conversion())).unwrap();
    rest(&mut simulation);
    assert_eq!(phase(&simulation, "rose.v2"), SUCCEEDED);
    assert_eq!(crd(&simulation)["strategy"], "Webhook", "the one that replaces it needs it");
    simulation.delete(&csv_ref("garden", "rose.v2")).unwrap();
    rest(&mut simulation);
    assert_eq!(crd(&simulation), json!({ "strategy": "None" }));
}

#[test]
fn operators_in_two_namespaces_share_objects_of_one_name() {
    let mut simulation = cluster();
    let shared = |simulation: &Simulation| {
        let rbac = "rbac.authorization.k8s.io/v1";
        [
            get(simulation, rbac, "ClusterRoleBinding", "", "gate-service-system:auth-delegator"),
            get(simulation, rbac, "RoleBinding", "kube-system", "gate-service-auth-reader"),
        ]
        .map(|b| {
            let subjects = object::list(b, &["subjects"]).iter().map(|s| object::text(s, &["namespace"]));
            subjects.collect::<Vec<_>>().join(" ")
        })
    };
    for (namespace, version) in [("garden", "1"), ("field", "2")] {
        simulation.apply(csv(namespace, version, "", &admission())).unwrap();
        rest(&mut simulation);
    }
    assert_eq!(shared(&simulation), ["garden field", "garden field"]);
    simulation.delete(&csv_ref("garden", "rose.v1")).unwrap();
    rest(&mut simulation);
    assert_eq!(shared(&simulation), ["field", "field"]);
    simulation.delete(&csv_ref("field", "rose.v2")).unwrap();
    rest(&mut simulation);
    assert_eq!(shared(&simulation), ["", ""]);
    assert!(configurations(&simulation).is_empty());
}

#[test]
fn an_api_of_another_owner_is_not_taken_over() {
    let mut simulation = cluster();
    let theirs = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": "v1.metrics.example.com" },
        "spec": { "group": "metrics.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
                  "service": { "namespace": "field", "name": "theirs" }, "insecureSkipTLSVerify": true },
    });
    let target = ObjectRef::from_object(&theirs);
    simulation.apply(theirs).unwrap();
    simulation.apply(csv("garden", "1", "", &api())).unwrap();
    rest(&mut simulation);
    assert_eq!(phase(&simulation, "rose.v1"), "Failed unable to adopt APIService");
    simulation.delete(&target).unwrap();
    simulation.settle(SignedDuration::from_secs(10));
    assert_eq!(phase(&simulation, "rose.v1"), "Installing apiServices not installed");
    let service = simulation.api().get(&target).unwrap();
    assert_eq!(object::label(service, "olm.owner"), Some("rose.v1"));
    assert_eq!(service["spec"]["caBundle"], secret(&simulation, "garden")["data"]["olmCAKey"]);
    // Pods of a simulation run nothing: the status is written instead.
    let answers = json!({ "status": { "conditions": [{ "type": "Available", "status": "True" }] } });
    simulation.patch(&target, Patch::Merge(answers), Some("status")).unwrap();
    simulation.settle(SignedDuration::ZERO);
    let history = &simulation.api().get(&csv_ref("garden", "rose.v1")).unwrap()["status"]["conditions"];
    assert!(history.as_array().unwrap().iter().any(|c| c["phase"] == "Succeeded"), "{history}");
    simulation.delete(&csv_ref("garden", "rose.v1")).unwrap();
    simulation.settle(SignedDuration::from_secs(10));
    assert!(simulation.api().get(&target).is_none());
}

#[test]
fn an_api_of_a_deleted_operator_is_deleted() {
    let mut simulation = cluster();
    let orphan = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": "v1.metrics.example.com", "labels": {
            "olm.managed": "true", "olm.owner": "rose.v0", "olm.owner.namespace": "garden", "olm.owner.kind": "ClusterServiceVersion",
        } },
        "spec": { "group": "metrics.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
                  "service": { "namespace": "garden", "name": "gate-service" } },
    });
    let target = ObjectRef::from_object(&orphan);
    simulation.apply(orphan).unwrap();
    rest(&mut simulation);
    assert!(simulation.api().get(&target).is_none());
}

#[test]
fn objects_with_old_names_are_deleted_when_the_api_is_taken_over() {
    let mut simulation = cluster();
    let rbac = "rbac.authorization.k8s.io/v1";
    let role = |kind: &str, name: &str| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name });
    let mut old = [
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "v1-metrics-example-com", "namespace": "garden" },
                "spec": { "ports": [{ "port": 443 }] } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "v1.metrics.example.com-cert", "namespace": "garden" } }),
        json!({ "apiVersion": rbac, "kind": "Role", "metadata": { "name": "v1.metrics.example.com-cert", "namespace": "garden" } }),
        json!({ "apiVersion": rbac, "kind": "RoleBinding", "roleRef": role("Role", "v1.metrics.example.com-cert"),
                "metadata": { "name": "v1.metrics.example.com-cert", "namespace": "garden" } }),
        json!({ "apiVersion": rbac, "kind": "ClusterRoleBinding", "roleRef": role("ClusterRole", "system:auth-delegator"),
                "metadata": { "name": "v1.metrics.example.com-system:auth-delegator" } }),
        json!({ "apiVersion": rbac, "kind": "RoleBinding", "roleRef": role("Role", "extension-apiserver-authentication-reader"),
                "metadata": { "name": "v1.metrics.example.com-auth-reader", "namespace": "kube-system" } }),
    ];
    let rose = csv("garden", "1", "", &api());
    for object in &mut old {
        crate::api::labels::set_owner(object, &rose);
    }
    // The same name, but without the labels of this operator.
    crate::api::object::set_label(&mut old[2], "olm.owner", "tulip.v1");
    let mut api_service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": "v1.metrics.example.com" },
        "spec": { "group": "metrics.example.com", "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 15,
                  "service": { "namespace": "garden", "name": "v1-metrics-example-com" } },
    });
    crate::api::labels::set_owner(&mut api_service, &rose);
    let namespace = testing::namespace("kube-system");
    if simulation.api().get(&ObjectRef::from_object(&namespace)).is_none() {
        simulation.apply(namespace).unwrap();
    }
    simulation.apply(rose).unwrap();
    let targets: Vec<ObjectRef> = old.iter().map(ObjectRef::from_object).collect();
    for object in old.into_iter().chain([api_service.clone()]) {
        simulation.apply(object).unwrap();
    }
    simulation.settle(SignedDuration::from_secs(10));
    let left: Vec<String> =
        targets.iter().filter(|t| simulation.api().get(t).is_some()).map(|t| t.gvk.kind.clone()).collect();
    assert_eq!(left, ["Role"]);
    let adopted = simulation.api().get(&ObjectRef::from_object(&api_service)).unwrap();
    assert_eq!(adopted["spec"]["service"]["name"], "gate-service");
}
