//! What OLM or the API server reject when the bundle is published or installed.
//!
//! Objects that the installation creates are checked by the simulated API server: the objects of the bundle, and those that OLM makes of
//! the ClusterServiceVersion (olm-behaviour/csv.md#deployments, olm-behaviour/csv.md#webhooks, olm-behaviour/csv.md#serving-objects).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::input::{Input, description_gvk, gvk_text};
use super::{Options, removed_apis, rule};
use crate::api::cluster_service_version::{Csv, WEBHOOK_FIELDS, invalid_webhook_rule};
use crate::api::crd;
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::go_json::GoType;
use crate::api::kinds::RBAC_GROUP;
use crate::api::names::{LONGEST_LABEL, is_label};
use crate::api::object::{self, Gvk, annotation, at, gvk, list, map_mut, name, namespace, text};
use crate::bundle::synthesis::Manifest;
use crate::go_format::quote;
use crate::sim::{ApiServer, ResourceKind, Strict};
use crate::version::Range;
use crate::yaml::Step;

/// The namespace in which the objects would be created.
const NAMESPACE: &str = "operator";
/// Maximum number of problems of one object that are reported.
const MOST_PROBLEMS: usize = 20;
/// What OLM mounts into Deployments that serve webhooks or APIs: the name of the volume, and the path.
const MOUNTS: [(&str, &str); 2] = [
    ("apiservice-cert", "/apiserver.local.config/certificates"),
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs"),
];

/// An empty cluster with OLM's kinds.
static SERVER: LazyLock<ApiServer> = LazyLock::new(|| {
    let mut server = ApiServer::with_stock_objects(0, Timestamp::UNIX_EPOCH);
    crd::all().iter().filter_map(ResourceKind::from_crd).for_each(|kind| server.register(kind));
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    // A name of this form is valid.
    let _ = server.create(namespace, Timestamp::UNIX_EPOCH);
    server
});

/// A prefix of a path in the ClusterServiceVersion that replaces the first part of a path in an object.
type Place<'a> = &'a [&'a str];

/// Checks the objects of the bundle, and those that OLM makes of the ClusterServiceVersion.
pub(super) fn check(input: &mut Input, options: &Options) {
    objects(input, options);
    let Some(csv) = input.csv.clone() else { return };
    let view = Csv::new(&csv.object);
    if !matches!(view.strategy(), "" | "deployment") {
        let message = format!("OLM has no install strategy {}", quote(view.strategy()));
        input.report(&rule::STRATEGY, &csv, &["spec", "install", "strategy"], message);
    }
    versions(input, &csv, view);
    modes(input, &csv, view);
    deployments(input, &csv, view);
    roles(input, &csv, view);
    webhooks(input, &csv, view);
    servers(input, &csv, view);
    owned(input, &csv, view);
}

fn objects(input: &mut Input, options: &Options) {
    let mut seen: BTreeMap<(String, String, String, String), String> = BTreeMap::new();
    let strict = Strict::default();
    let is_old = options.kubernetes.as_ref().is_some_and(|version| (version.major, version.minor) < (1, 22));
    for manifest in input.objects.clone() {
        let object = &manifest.object;
        let Gvk { group, version, kind } = gvk(object);
        let key = (group.clone(), kind.clone(), namespace(object).to_owned(), name(object).to_owned());
        if !name(object).is_empty()
            && let Some(first) = seen.insert(key, manifest.file.clone())
            && !input.is_plain
        {
            input.report(&rule::DUPLICATE_OBJECT, &manifest, &["metadata", "name"], format!("is also in {first}"));
        }
        let is_csv = kind == "ClusterServiceVersion";
        if !namespace(object).is_empty() && !is_csv && !input.is_plain {
            let message =
                format!("OLM creates the object in the namespace of the Subscription, not in {}", namespace(object));
            input.report(&rule::NAMESPACE, &manifest, &["metadata", "namespace"], message);
        }
        for unknown in strict.unknown_fields(object).into_iter().take(MOST_PROBLEMS) {
            let path: Vec<String> = unknown.path.iter().map(part).collect();
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let meant = unknown.similar.as_ref().map(|similar| format!("; {} may be meant", unknown.beside(similar)));
            let message = format!("{unknown} is not a field of the kind{}", meant.unwrap_or_default());
            input.report(&rule::UNKNOWN_FIELD, &manifest, &path, message);
        }
        if removed_apis::is_removed(object) {
            let message =
                format!("{}: no supported Kubernetes serves this API version", gvk_text(&group, &version, &kind));
            if !is_old {
                input.report(&rule::NOT_SERVED, &manifest, &["apiVersion"], message);
            }
        } else if kind == "CustomResourceDefinition" {
            // The default validator checks it.
        } else if is_csv {
            // OLM decodes it into its type, so that a missing text is an empty one.
            created(input, &manifest, &[], GoType::CLUSTER_SERVICE_VERSION.normalise(&prepared(object)));
        } else {
            created(input, &manifest, &[], prepared(object));
        }
    }
}

fn part(step: &Step) -> String {
    match step {
        Step::Field(field) => field.clone(),
        Step::Item(n) => n.to_string(),
    }
}

/// Returns an object as the InstallPlan creates it.
fn prepared(object: &Value) -> Value {
    let mut object = object.clone();
    map_mut(&mut object, &["metadata"]).insert("namespace".to_owned(), NAMESPACE.into());
    object
}

/// Reports what the API server rejects in an object. Kinds that it does not know are of other operators.
fn created(input: &mut Input, manifest: &Manifest, place: Place<'_>, object: Value) {
    match SERVER.problems(object) {
        Ok(problems) => {
            for problem in problems.iter().take(MOST_PROBLEMS) {
                refused(input, manifest, place, problem);
            }
        }
        Err(status) if status.is_not_found() => {}
        Err(status) => input.report(&rule::REFUSED, manifest, place, status.message),
    }
}

/// Reports a problem, `FIELD: PROBLEM`, at the field.
fn refused(input: &mut Input, manifest: &Manifest, place: Place<'_>, problem: &str) {
    let is_csv = object::kind(&manifest.object) == "ClusterServiceVersion";
    if problem.starts_with("<nil>") || is_csv && place.is_empty() && problem.starts_with("metadata.name:") {
        // The API server adds that it did not check all rules; the default validator checks the name.
        return;
    }
    let field = problem.split(": ").next().unwrap_or_default();
    let parts = field.split(['.', '[', ']']).filter(|part| !part.is_empty());
    let path: Vec<&str> = place.iter().copied().chain(parts).collect();
    // Values of a whole object make messages unreadable.
    let shown = match (problem.find("Invalid value: {"), problem.rfind("}: ")) {
        (Some(start), Some(end)) if end > start => format!("{}{}", &problem[..start], &problem[end + 3..]),
        _ => problem.to_owned(),
    };
    let within = if place.is_empty() { String::new() } else { format!("{}: ", place.join(".")) };
    input.report(&rule::REFUSED, manifest, &path, format!("{within}{shown}"));
}

fn versions(input: &mut Input, csv: &Manifest, view: Csv<'_>) {
    if let Some(range) = annotation(&csv.object, "olm.skipRange")
        && let Err(error) = Range::parse(range)
    {
        let message = format!("olm.skipRange {} is not a range of versions: {error}", quote(range));
        input.report(&rule::SKIP_RANGE, csv, &["metadata", "annotations", "olm.skipRange"], message);
    }
    let own = view.name();
    if !own.is_empty() && view.replaces() == own {
        input.report(&rule::REPLACES_ITSELF, csv, &["spec", "replaces"], "the ClusterServiceVersion replaces itself");
    }
    if let Some(n) = list(&csv.object, &["spec", "skips"]).iter().position(|skipped| skipped == own) {
        let path = ["spec", "skips", &n.to_string()];
        input.report(&rule::REPLACES_ITSELF, csv, &path, "the ClusterServiceVersion skips itself");
    }
}

fn modes(input: &mut Input, csv: &Manifest, view: Csv<'_>) {
    let mut seen = BTreeSet::new();
    for (n, mode) in view.install_modes().iter().enumerate() {
        let mode = text(mode, &["type"]);
        if !seen.insert(mode) {
            let message = format!("install mode {mode} is listed more than once");
            input.report(&rule::DUPLICATE_MODE, csv, &["spec", "installModes", &n.to_string()], message);
        }
    }
}

fn deployments(input: &mut Input, csv: &Manifest, view: Csv<'_>) {
    let mut seen = BTreeSet::new();
    let serving = serving(view);
    for (n, entry) in view.deployments().iter().enumerate() {
        let n = n.to_string();
        let place = ["spec", "install", "spec", "deployments", n.as_str()];
        let own = text(entry, &["name"]);
        if !seen.insert(own) {
            let message = format!("cluster service version contains duplicate strategy deployment spec '{own}'");
            input.report(&rule::DUPLICATE_DEPLOYMENT, csv, &place, message);
        }
        let mut deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": own, "namespace": NAMESPACE, "labels": at(entry, &["label"]) },
            "spec": GoType::DEPLOYMENT_SPEC.normalise(at(entry, &["spec"])),
        });
        if serving.contains(own) {
            mount(&mut deployment);
        }
        created(input, csv, &place, deployment);
    }
}

/// Returns the names of the Deployments that webhooks and APIServices name.
fn serving(view: Csv<'_>) -> BTreeSet<&str> {
    view.webhooks().iter().chain(view.owned_api_services()).map(|d| text(d, &["deploymentName"])).collect()
}

/// Adds the volumes of OLM's certificates.
fn mount(deployment: &mut Value) {
    let pod = map_mut(deployment, &["spec", "template", "spec"]);
    let volumes = pod.entry("volumes").or_insert(Value::Null);
    let mut all = volumes.as_array().cloned().unwrap_or_default();
    all.retain(|volume| MOUNTS.iter().all(|(name, _)| volume["name"] != *name));
    all.extend(MOUNTS.map(|(name, _)| json!({ "name": name, "secret": { "secretName": "certificate" } })));
    *volumes = all.into();
}

/// Checks the rules of the permissions as those of roles.
fn roles(input: &mut Input, csv: &Manifest, view: Csv<'_>) {
    let lists = [
        ("permissions", "Role", view.permissions()),
        ("clusterPermissions", "ClusterRole", view.cluster_permissions()),
    ];
    for (field, kind, permissions) in lists {
        for (n, permission) in permissions.iter().enumerate() {
            let n = n.to_string();
            let role = json!({
                "apiVersion": format!("{RBAC_GROUP}/v1"), "kind": kind,
                "metadata": { "name": "operator", "namespace": NAMESPACE }, "rules": at(permission, &["rules"]),
            });
            created(input, csv, &["spec", "install", "spec", field, &n], role);
        }
    }
}

fn webhooks(input: &mut Input, csv: &Manifest, view: Csv<'_>) {
    let mut seen = BTreeSet::new();
    let owned: BTreeSet<&str> = view.owned_crd_names().collect();
    let mut converted = BTreeSet::new();
    for (n, webhook) in view.webhooks().iter().enumerate() {
        let n = n.to_string();
        let place = ["spec", "webhookdefinitions", n.as_str()];
        let own = text(webhook, &["generateName"]);
        if !seen.insert(own) {
            let message = format!("CSV contains repeated WebhookDescription name {own}");
            input.report(&rule::INVALID_WEBHOOK, csv, &[&place[..], &["generateName"]].concat(), message);
        }
        for (m, webhook_rule) in list(webhook, &["rules"]).iter().enumerate() {
            if let Some(problem) = invalid_webhook_rule(webhook_rule) {
                input.report(&rule::INVALID_WEBHOOK, csv, &[&place[..], &["rules", &m.to_string()]].concat(), problem);
            }
        }
        let kind = match text(webhook, &["type"]) {
            "ValidatingAdmissionWebhook" => "ValidatingWebhookConfiguration",
            "MutatingAdmissionWebhook" => "MutatingWebhookConfiguration",
            _ => {
                conversions(input, csv, &place, webhook, &owned, &mut converted);
                continue;
            }
        };
        configuration(input, csv, &place, webhook, kind);
    }
}

/// Checks the configuration that OLM creates for an admission webhook.
fn configuration(input: &mut Input, csv: &Manifest, place: Place<'_>, webhook: &Value, kind: &str) {
    let mut entry = json!({
        "name": text(webhook, &["generateName"]),
        "clientConfig": { "service": { "name": "service", "namespace": NAMESPACE } },
    });
    for field in WEBHOOK_FIELDS {
        if let Some(value) = webhook.get(field) {
            entry[field] = value.clone();
        }
    }
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": { "name": "operator" }, "webhooks": [entry],
    });
    match SERVER.problems(object) {
        Ok(problems) => {
            for problem in problems.iter().take(MOST_PROBLEMS) {
                let problem = problem.strip_prefix("webhooks[0].").unwrap_or(problem);
                let problem = problem
                    .strip_prefix("name:")
                    .map_or_else(|| problem.to_owned(), |rest| format!("generateName:{rest}"));
                refused(input, csv, place, &problem);
            }
        }
        Err(status) => input.report(&rule::REFUSED, csv, place, status.message),
    }
}

/// Checks the CustomResourceDefinitions of a conversion webhook.
fn conversions<'a>(
    input: &mut Input,
    csv: &Manifest,
    place: Place<'_>,
    webhook: &'a Value,
    owned: &BTreeSet<&str>,
    converted: &mut BTreeSet<&'a str>,
) {
    let path = [place, &["conversionCRDs"]].concat();
    let names: Vec<&str> = list(webhook, &["conversionCRDs"]).iter().filter_map(Value::as_str).collect();
    if names.is_empty() {
        let message = "unable to manager conversion webhook: conversion webhook must have at least one CRD specified";
        input.report(&rule::CONVERSION_CRD, csv, &path, message);
    }
    for name in names {
        if !owned.contains(name) {
            let message = format!("csv {} does not own CRD {name}", Csv::new(&csv.object).name());
            input.report(&rule::CONVERSION_CRD, csv, &path, message);
        }
        if !converted.insert(name) {
            let message = format!("several conversion webhooks are for CRD {name}");
            input.report(&rule::CONVERSION_CRD, csv, &path, message);
        }
        let crd = input.crds().find(|crd| object::name(&crd.object) == name).cloned();
        if let Some(crd) = crd.filter(|crd| at(&crd.object, &["spec", "preserveUnknownFields"]) == &Value::Bool(true)) {
            let message =
                "crd.Spec.PreserveUnknownFields must be false to let API Server call webhook to do the conversion";
            input.report(&rule::CONVERSION_CRD, &crd, &["spec", "preserveUnknownFields"], message);
        }
    }
}

/// Checks the Deployments that serve webhooks or APIs.
fn servers(input: &mut Input, csv: &Manifest, view: Csv<'_>) {
    let lists = [
        (["spec", "webhookdefinitions"].as_slice(), view.webhooks(), "generateName"),
        (&["spec", "apiservicedefinitions", "owned"], view.owned_api_services(), "name"),
    ];
    let deployments: BTreeSet<&str> = view.deployments().iter().map(|entry| text(entry, &["name"])).collect();
    for (place, descriptions, named) in lists {
        for (n, description) in descriptions.iter().enumerate() {
            let wanted = text(description, &["deploymentName"]);
            if deployments.contains(wanted) {
                continue;
            }
            let message =
                format!("strategyDetailsDeployment is missing deployment {wanted} for {}", text(description, &[named]));
            let n = n.to_string();
            input.report(&rule::NO_SERVER, csv, &[place, &[&n, "deploymentName"]].concat(), message);
        }
    }
    let serving = serving(view);
    for (n, entry) in view.deployments().iter().enumerate() {
        let own = text(entry, &["name"]);
        if !serving.contains(own) {
            continue;
        }
        let n = n.to_string();
        let place = ["spec", "install", "spec", "deployments", n.as_str()];
        let service = format!("{}-service", own.replace('.', "-"));
        let starts_with_letter = service.starts_with(|c: char| c.is_ascii_lowercase());
        if own.contains('.') {
            let message = format!("OLM creates the Service {own}-service, whose name the API server rejects");
            input.report(&rule::DOTTED_SERVER, csv, &[&place[..], &["name"]].concat(), message);
        } else if service.len() > LONGEST_LABEL || !is_label(&service) || !starts_with_letter {
            let message = format!(
                "the Service {service} of Deployment {own} has an invalid name: it must have at most 63 characters, begin with a letter, and be a DNS label"
            );
            input.report(&rule::SERVICE_NAME, csv, &[&place[..], &["name"]].concat(), message);
        }
        volumes(input, csv, &place, entry);
    }
}

/// Reports volumes and mounts that OLM replaces.
fn volumes(input: &mut Input, csv: &Manifest, place: Place<'_>, entry: &Value) {
    let pod = at(entry, &["spec", "template", "spec"]);
    let within = [place, &["spec", "template", "spec"]].concat();
    for (n, volume) in list(pod, &["volumes"]).iter().enumerate() {
        let own = text(volume, &["name"]);
        if MOUNTS.iter().any(|(name, _)| *name == own) {
            let message = format!("OLM replaces the volume {own} by the certificate that it creates");
            input.report(
                &rule::CERTIFICATE_VOLUME,
                csv,
                &[&within[..], &["volumes", &n.to_string()]].concat(),
                message,
            );
        }
    }
    for (n, container) in list(pod, &["containers"]).iter().enumerate() {
        for (m, mount) in list(container, &["volumeMounts"]).iter().enumerate() {
            let (own, path) = (text(mount, &["name"]), text(mount, &["mountPath"]));
            let Some((volume, _)) = MOUNTS.iter().find(|(name, mounted)| *mounted == path && *name != own) else {
                continue;
            };
            let message = format!("OLM replaces the mount of {own} at {path} by that of its volume {volume}");
            let at = ["containers", &n.to_string(), "volumeMounts", &m.to_string()];
            input.report(&rule::CERTIFICATE_VOLUME, csv, &[&within[..], &at].concat(), message);
        }
    }
}

/// Checks that owned versions are served, and that no API is both owned and required.
fn owned(input: &mut Input, csv: &Manifest, view: Csv<'_>) {
    let crds: Vec<Arc<Manifest>> = input.crds().cloned().collect();
    let mut defined = BTreeMap::new();
    for crd in crds.iter().map(|crd| CustomResourceDefinition::new(&crd.object)) {
        defined.entry((crd.group(), crd.kind())).or_insert(crd);
    }
    let mut required = BTreeMap::new();
    for (n, description) in view.required_crds().iter().enumerate() {
        required.entry(description_gvk(description)).or_insert(n);
    }
    for (n, description) in view.owned_crds().iter().enumerate() {
        let (group, version, kind) = description_gvk(description);
        let is_unserved =
            |crd: &CustomResourceDefinition<'_>| crd.versions().any(|v| v.name() == version && !v.is_served());
        if defined.get(&(group, kind)).is_some_and(is_unserved) {
            let message =
                format!("{}: the CustomResourceDefinition does not serve this version", gvk_text(group, version, kind));
            let path = ["spec", "customresourcedefinitions", "owned", &n.to_string(), "version"];
            input.report(&rule::UNSERVED_API, csv, &path, message);
        }
        if let Some(n) = required.get(&(group, version, kind)) {
            let message = format!("{} is both owned and required", gvk_text(group, version, kind));
            let path = ["spec", "customresourcedefinitions", "required", &n.to_string()];
            input.report(&rule::REQUIRED_AND_OWNED, csv, &path, message);
        }
    }
}
