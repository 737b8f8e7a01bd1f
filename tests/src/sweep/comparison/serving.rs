//! What Deployments serve to the API server: OLM creates the Services, certificates, webhook configurations and APIServices, with
//! other names than given (olm-behaviour/csv.md#serving-objects).

use std::collections::BTreeSet;

use olm_core::api::object::{self, at, entries, label, list, text};
use olm_core::bundle::synthesis::Manifest;
use serde_json::Value;

use super::{Part, Scene, compared, differ};

/// The volumes of OLM's certificates.
pub(super) const VOLUMES: [&str; 2] = ["apiservice-cert", "webhook-cert"];
/// The label with the name of a webhook.
const GENERATE_NAME: &str = "olm.webhook-description-generate-name";
/// The port of a Service reference that names none.
const DEFAULT_PORT: i64 = 443;

/// Returns the Deployments that serve.
pub(super) fn servers(csv: &Value) -> BTreeSet<&str> {
    let webhooks = list(csv, &["spec", "webhookdefinitions"]);
    let services = list(csv, &["spec", "apiservicedefinitions", "owned"]);
    webhooks.iter().chain(services).map(|description| text(description, &["deploymentName"])).collect()
}

/// Returns the name of the Service of a Deployment that serves.
fn service_name(deployment: &str) -> String {
    format!("{}-service", deployment.replace('.', "-"))
}

/// Returns the name of the Secret with its certificate.
pub(super) fn secret(deployment: &str) -> String {
    format!("{}-cert", service_name(deployment))
}

/// Claims what OLM creates for the ClusterServiceVersion and its servers.
pub(super) fn claim(scene: &mut Scene<'_>) {
    let csv = object::name(scene.csv);
    let mut names = BTreeSet::new();
    for server in servers(scene.csv) {
        let service = service_name(server);
        names.extend([
            ("Service", service.clone()),
            ("Secret", secret(server)),
            ("Role", secret(server)),
            ("RoleBinding", secret(server)),
            ("ClusterRoleBinding", format!("{service}-system:auth-delegator")),
            ("RoleBinding", format!("{service}-auth-reader")),
        ]);
    }
    let is_own = |object: &&Value| {
        let (kind, name) = (object::kind(object), object::name(object));
        let is_role = matches!(kind, "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding");
        (is_role && (name == csv || label(object, "olm.owner") == Some(csv)))
            || names.contains(&(kind, name.to_owned()))
    };
    let own: Vec<Value> = scene.running.iter().filter(is_own).cloned().collect();
    for object in &own {
        scene.claim(object);
    }
}

/// Returns the Service of OLM for the pods that a given Service selects.
fn generated<'a>(scene: &'a Scene<'_>, service: &Value) -> Option<&'a Value> {
    let selector: BTreeSet<_> = entries(service, &["spec", "selector"]).collect();
    let mut names = servers(scene.csv).into_iter().filter(|server| {
        let deployment = scene.find("Deployment", server);
        let labels = deployment.map(|d| at(d, &["spec", "template", "metadata", "labels"]));
        labels.is_some_and(|labels| selector.iter().all(|(key, value)| labels[*key] == **value))
    });
    names.find_map(|server| scene.find("Service", &service_name(server)))
}

/// Compares a Service that is not in the bundle: OLM's must lead to the same port of the same pods.
pub(super) fn service(scene: &mut Scene<'_>, manifest: &Manifest, given: &Value) {
    let Some(found) = generated(scene, given).cloned() else {
        return scene.report(manifest, (".spec".to_owned(), "has no Service of OLM in its place".to_owned()));
    };
    // OLM's APIServices have the port of the container.
    let is_api = scene
        .given
        .manifests()
        .any(|m| m.kind() == "APIService" && text(&m.object, &["spec", "service", "name"]) == object::name(given));
    let target = |port: &Value| match at(port, &["targetPort"]) {
        Value::Null => port["port"].clone(),
        target => target.clone(),
    };
    let named = |port: &Value| number_of(scene, given, &target(port));
    let missing: Vec<Part> = list(given, &["spec", "ports"])
        .iter()
        .filter(|port| {
            !list(&found, &["spec", "ports"])
                .iter()
                .any(|other| target(other) == named(port) && (is_api || other["port"] == port["port"]))
        })
        .map(|port| (".spec.ports".to_owned(), format!("is missing: {port}, among {}", found["spec"]["ports"])))
        .collect();
    scene.report_all(manifest, missing);
}

/// Returns the number of a port of the pods that a Service selects, if it is a name.
fn number_of(scene: &Scene<'_>, service: &Value, port: &Value) -> Value {
    let Some(name) = port.as_str() else { return port.clone() };
    let selector: Vec<_> = entries(service, &["spec", "selector"]).collect();
    let deployments = scene.given.objects().filter(|(manifest, _)| manifest.kind() == "Deployment");
    let template = |deployment: &Value| deployment["spec"]["template"].clone();
    deployments
        .map(|(_, deployment)| template(deployment))
        .filter(|pod| selector.iter().all(|(key, value)| pod["metadata"]["labels"][*key] == **value))
        .flat_map(|pod| list(&pod, &["spec", "containers"]).to_vec())
        .flat_map(|container| list(&container, &["ports"]).to_vec())
        .find(|candidate| text(candidate, &["name"]) == name)
        .map_or_else(|| port.clone(), |found| found["containerPort"].clone())
}

/// Compares a reference to a Service, and the authority that signs its certificate.
fn endpoint(scene: &Scene<'_>, given: &Value, found: &Value, authority: &Value, path: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let service = scene
        .given
        .objects()
        .map(|(_, object)| object)
        .find(|object| object::kind(object) == "Service" && object::name(object) == text(given, &["name"]));
    let expected = service.and_then(|service| generated(scene, service)).map(object::name);
    let is_it = expected == Some(text(found, &["name"])) && text(found, &["namespace"]) == scene.namespace;
    if !is_it {
        parts.push((format!("{path}.service"), format!("is {found}, not the Service of {}", given["name"])));
    }
    let path_of = |reference: &Value| match text(reference, &["path"]) {
        "" => "/".to_owned(),
        path => path.to_owned(),
    };
    if path_of(given) != path_of(found) {
        parts.push((format!("{path}.service.path"), format!("is {}, not {}", found["path"], given["path"])));
    }
    let bundle = expected.and_then(|name| scene.find("Secret", &format!("{name}-cert")));
    let signed = bundle.map(|secret| &secret["data"]["olmCAKey"]);
    if authority.as_str().is_none_or(str::is_empty) || signed != Some(authority) {
        parts.push((format!("{path}.caBundle"), "is not the authority of the certificate".to_owned()));
    }
    parts
}

/// Compares the port of a reference; OLM's APIServices have the port of the container.
fn port(given: &Value, found: &Value, path: &str) -> Option<Part> {
    let number = |reference: &Value| reference["port"].as_i64().unwrap_or(DEFAULT_PORT);
    (number(given) != number(found))
        .then(|| (format!("{path}.service.port"), format!("is {}, not {}", number(found), number(given))))
}

/// Compares an APIService.
pub(super) fn api_service(scene: &mut Scene<'_>, manifest: &Manifest, given: &Value) {
    let Some(found) = scene.find("APIService", manifest.name()).cloned() else {
        return scene.report(manifest, (String::new(), "does not exist".to_owned()));
    };
    scene.claim(&found);
    let reference = |object: &Value| at(object, &["spec", "service"]).clone();
    let mut parts = endpoint(scene, &reference(given), &reference(&found), &found["spec"]["caBundle"], ".spec");
    let rest = |object: &Value| {
        let mut object = object.clone();
        // OLM's certificate is always verified; its labels are not those of the manifest.
        for field in ["service", "caBundle", "insecureSkipTLSVerify"] {
            object::map_mut(&mut object, &["spec"]).remove(field);
        }
        object::map_mut(&mut object, &["metadata"]).remove("labels");
        object
    };
    parts.extend(compared(&rest(given), &rest(&found)));
    scene.report_all(manifest, parts);
}

/// Compares a CustomResourceDefinition, with its conversion.
pub(super) fn definition(scene: &mut Scene<'_>, manifest: &Manifest, given: &Value) {
    let conversion = |object: &Value| at(object, &["spec", "conversion"]).clone();
    let found = scene.find("CustomResourceDefinition", manifest.name()).map(conversion).unwrap_or_default();
    let given_conversion = conversion(given);
    if text(&given_conversion, &["strategy"]) == "Webhook" {
        let config = |conversion: &Value| at(conversion, &["webhook", "clientConfig"]).clone();
        let (expected, config) = (config(&given_conversion), config(&found));
        let path = ".spec.conversion.webhook.clientConfig";
        let mut parts = endpoint(scene, &expected["service"], &config["service"], &config["caBundle"], path);
        parts.extend(port(&expected["service"], &config["service"], path));
        let versions = |conversion: &Value| at(conversion, &["webhook", "conversionReviewVersions"]).clone();
        differ(&versions(&given_conversion), &versions(&found), ".spec.conversion.webhook.versions", &mut parts);
        differ(&given_conversion["strategy"], &found["strategy"], ".spec.conversion.strategy", &mut parts);
        scene.report_all(manifest, parts);
        return scene.same_object(manifest, given, |given, found| {
            for object in [given, found] {
                object::map_mut(object, &["spec"]).remove("conversion");
            }
        });
    }
    scene.same_object(manifest, given, |_, _| {});
}

/// Compares each webhook of a configuration with the configuration that OLM creates for it.
pub(super) fn webhooks(scene: &mut Scene<'_>, manifest: &Manifest, given: &Value) {
    for webhook in list(given, &["webhooks"]) {
        let name = text(webhook, &["name"]);
        let path = format!(".webhooks[{name}]");
        let is_it = |configuration: &&Value| {
            let stated = label(configuration, GENERATE_NAME).unwrap_or_default();
            // Of two webhooks with one name, one is renamed.
            object::kind(configuration) == manifest.kind()
                && (stated == name || stated.ends_with(&format!(".{name}")))
                && label(configuration, "olm.owner.namespace") == Some(scene.namespace)
        };
        let found: Vec<Value> = scene.running.iter().filter(is_it).cloned().collect();
        let [configuration] = &found[..] else {
            scene.report(manifest, (path, format!("is in {} configurations, not one", found.len())));
            continue;
        };
        scene.claim(configuration);
        let found = &list(configuration, &["webhooks"])[0];
        let config = |webhook: &Value| at(webhook, &["clientConfig"]).clone();
        let (expected, config) = (config(webhook), config(found));
        let mut parts = endpoint(scene, &expected["service"], &config["service"], &config["caBundle"], &path);
        parts.extend(port(&expected["service"], &config["service"], &path));
        let rest = |webhook: &Value| {
            let mut webhook = webhook.clone();
            object::map_mut(&mut webhook, &[]).remove("clientConfig");
            webhook
        };
        differ(&rest(webhook), &rest(found), &path, &mut parts);
        scene.report_all(manifest, parts);
    }
}
