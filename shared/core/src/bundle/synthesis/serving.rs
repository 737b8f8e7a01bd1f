//! What Deployments serve to the API server: APIServices, admission and conversion webhooks, with their Services and certificates.
//!
//! OLM creates the Service `D-service`, the certificate in Secret `D-service-cert` and the webhook configurations or APIServices
//! from descriptions in the ClusterServiceVersion (olm-behaviour/csv.md#serving-objects).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::account::Destination;
use super::workloads::{DEPLOYMENTS, Workload, Workloads};
use super::{Work, losses};
use crate::api::cluster_service_version::{
    API_SERVICE_CERTIFICATE, GROUP_PRIORITY, InstallMode, VERSION_PRIORITY, WEBHOOK_CERTIFICATE, WEBHOOK_FIELDS,
    invalid_webhook_rule,
};
use crate::api::kinds::{ADMISSION_REGISTRATION, API_EXTENSIONS, API_REGISTRATION};
use crate::api::object::{self, at, list, text};
use crate::finding::Finding;

/// The port of a Service reference that names none.
const DEFAULT_PORT: i64 = 443;
/// The priorities of the APIServices that OLM creates.
const PRIORITIES: [(&str, i64); 2] = [("groupPriorityMinimum", GROUP_PRIORITY), ("versionPriority", VERSION_PRIORITY)];
/// The API group of cert-manager's Certificates and Issuers, which OLM's certificates stand for.
const CERT_MANAGER: &str = "cert-manager.io";
/// The names of OLM's volumes with certificates, and where it mounts them.
const VOLUMES: [(&str, &str); 2] =
    [("apiservice-cert", API_SERVICE_CERTIFICATE), ("webhook-cert", WEBHOOK_CERTIFICATE)];
/// The keys of OLM's Secrets with certificates that pods may use.
const CERTIFICATE_KEYS: [&str; 2] = ["tls.crt", "tls.key"];

/// An APIService of the bundle that a Deployment serves.
pub(super) struct ServedGroup {
    /// Number of its manifest.
    pub(super) number: usize,
    /// The API group and version.
    pub(super) group: String,
    pub(super) version: String,
    /// The fields of its description that state where it is served.
    pub(super) endpoint: Map<String, Value>,
}

/// What the Deployments serve.
#[derive(Default)]
pub(super) struct Serving {
    pub(super) groups: Vec<ServedGroup>,
    /// Names of the Deployments that serve anything.
    servers: BTreeSet<String>,
    /// The ports of each Service, by the number of its manifest, for which OLM creates its own.
    ports: BTreeMap<usize, BTreeSet<i64>>,
    /// The numbers of the manifests of Services that references may lead to, by name.
    services: BTreeMap<String, usize>,
    /// The names and types of the described webhooks.
    webhooks: BTreeMap<String, BTreeSet<String>>,
}

impl Serving {
    fn new(work: &Work<'_>, workloads: &Workloads) -> Self {
        let mut serving = Self::default();
        for (number, service) in work.of_kind("", "Service") {
            if workloads.is_home(object::namespace(&service.object)) {
                serving.services.entry(object::name(&service.object).to_owned()).or_insert(number);
            }
        }
        for webhook in list(&work.csv, &["spec", "webhookdefinitions"]) {
            serving.describes(text(webhook, &["generateName"]), text(webhook, &["type"]));
        }
        serving
    }

    fn describes(&mut self, name: &str, type_name: &str) {
        self.webhooks.entry(name.to_owned()).or_default().insert(type_name.to_owned());
    }

    /// Returns whether a Deployment serves anything.
    pub(super) fn is_server(&self, deployment: &str) -> bool {
        self.servers.contains(deployment)
    }

    /// Returns whether there are APIServices.
    pub(super) fn has_apis(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Finds what a reference to a Service leads to: the fields `deploymentName`, `containerPort` and `targetPort` of a description.
    fn endpoint(
        &mut self,
        work: &mut Work<'_>,
        workloads: &Workloads,
        number: usize,
        path: &[&str],
    ) -> Option<Map<String, Value>> {
        let manifest = &work.manifests[number];
        let reference = path.iter().try_fold(&manifest.object, |value, part| match part.parse::<usize>() {
            Ok(item) => value.get(item),
            Err(_) => value.get(*part),
        })?;
        let (name, namespace) = (text(reference, &["name"]), text(reference, &["namespace"]));
        let found = self.services.get(name).filter(|_| workloads.is_home(namespace));
        let Some((service_number, service)) = found.map(|number| (*number, &work.manifests[*number])) else {
            let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
            let finding =
                Finding::new("missing-service", format!("refers to Service {name}{place}, which is not in the input"))
                    .hint("add the Service; its selector leads to the Deployment that serves");
            work.report(number, path, finding);
            return None;
        };
        let Some(workload) = workloads.selected_by(work, &service.object) else {
            let finding = Finding::new("no-server", "selects the pods of no Deployment in the input")
                .hint("let spec.selector match the labels of the pods of the Deployment that serves");
            work.report(service_number, &["spec", "selector"], finding);
            return None;
        };
        let port = at(reference, &["port"]).as_i64().unwrap_or(DEFAULT_PORT);
        let ports = list(&service.object, &["spec", "ports"]);
        let Some(entry) = ports.iter().find(|entry| at(entry, &["port"]).as_i64() == Some(port)) else {
            let finding =
                Finding::new("no-port", format!("refers to port {port} of Service {name}, which has no such port"))
                    .hint("name a port of the Service");
            work.report(number, path, finding);
            return None;
        };
        let target = at(entry, &["targetPort"]);
        let target = match target.as_str() {
            Some(name) => {
                container_port(&work.manifests[workload.number].object, name).unwrap_or_else(|| target.clone())
            }
            None if target.is_null() => json!(port),
            None => target.clone(),
        };
        self.servers.insert(workload.name.clone());
        self.ports.entry(service_number).or_default().insert(port);
        let mut endpoint = Map::new();
        endpoint.insert("deploymentName".to_owned(), workload.name.clone().into());
        endpoint.insert("containerPort".to_owned(), port.into());
        endpoint.insert("targetPort".to_owned(), target);
        Some(endpoint)
    }
}

/// Returns the number of a port that a container of a Deployment names.
fn container_port(deployment: &Value, name: &str) -> Option<Value> {
    let containers = list(deployment, &["spec", "template", "spec", "containers"]);
    let mut ports = containers.iter().flat_map(|container| list(container, &["ports"]));
    ports.find(|port| text(port, &["name"]) == name)?.get("containerPort").cloned()
}

/// Writes the webhooks' descriptions, and finds the APIServices' endpoints.
pub(super) fn project(work: &mut Work<'_>, workloads: &Workloads) -> Serving {
    let mut serving = Serving::new(work, workloads);
    api_services(work, workloads, &mut serving);
    for (kind, type_name) in [
        ("MutatingWebhookConfiguration", "MutatingAdmissionWebhook"),
        ("ValidatingWebhookConfiguration", "ValidatingAdmissionWebhook"),
    ] {
        for (number, manifest) in work.of_kind(ADMISSION_REGISTRATION, kind) {
            losses::labels_and_annotations(work, number);
            for n in 0..list(&manifest.object, &["webhooks"]).len() {
                admission_webhook(work, workloads, &mut serving, number, n, type_name);
            }
        }
    }
    conversion_webhooks(work, workloads, &mut serving);
    services(work, &serving);
    serving
}

fn api_services(work: &mut Work<'_>, workloads: &Workloads, serving: &mut Serving) {
    for (number, manifest) in work.of_kind(API_REGISTRATION, "APIService") {
        let spec = at(&manifest.object, &["spec"]);
        if at(spec, &["service"]).is_null() {
            let finding =
                Finding::new("missing-service", "names no Service, so the API server itself serves the group")
                    .hint("remove it; OLM creates APIServices for Deployments of the bundle only");
            work.report(number, &["spec"], finding);
            continue;
        }
        for (field, value) in PRIORITIES {
            if at(spec, &[field]).as_i64().is_some_and(|given| given != value) {
                let finding =
                    Finding::new("api-service-priority", format!("OLM creates APIServices with {field} {value}"))
                        .warning()
                        .hint(format!("set spec.{field} to {value} to get the same everywhere"));
                work.report(number, &["spec", field], finding);
            }
        }
        losses::labels_and_annotations(work, number);
        if let Some(endpoint) = serving.endpoint(work, workloads, number, &["spec", "service"]) {
            let (group, version) = (text(spec, &["group"]).to_owned(), text(spec, &["version"]).to_owned());
            serving.groups.push(ServedGroup { number, group, version, endpoint });
        }
    }
}

fn admission_webhook(
    work: &mut Work<'_>,
    workloads: &Workloads,
    serving: &mut Serving,
    number: usize,
    n: usize,
    type_name: &str,
) {
    let index = n.to_string();
    let manifest = &work.manifests[number];
    let webhook = &list(&manifest.object, &["webhooks"])[n];
    let name = text(webhook, &["name"]);
    if at(webhook, &["clientConfig", "service"]).is_null() {
        let finding = Finding::new("missing-service", format!("webhook {name} names no Service, but a URL"))
            .hint("serve it from a Deployment of the bundle, behind a Service");
        work.report(number, &["webhooks", &index, "clientConfig"], finding);
        return;
    }
    let not_carried = [
        ("matchConditions", false, "OLM does not set matchConditions", "check the conditions in the webhook itself"),
        (
            "namespaceSelector",
            true,
            "OLM replaces the namespaceSelector with the namespaces of the OperatorGroup",
            "use objectSelector, or check the namespace in the webhook itself",
        ),
    ];
    for (field, is_warning, message, hint) in not_carried {
        let is_empty = |value: &Value| match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        if !is_empty(at(webhook, &[field])) {
            let finding = Finding::new("webhook-field", format!("webhook {name}: {message}")).hint(hint);
            let finding = if is_warning { finding.warning() } else { finding };
            work.report(number, &["webhooks", &index, field], finding);
        }
    }
    if name.is_empty() {
        let finding = Finding::new("invalid-webhook", "a webhook has no name").hint("add webhooks[].name");
        work.report(number, &["webhooks", &index], finding);
        return;
    }
    for (r, rule) in list(webhook, &["rules"]).iter().enumerate() {
        if let Some(problem) = invalid_webhook_rule(rule) {
            let finding = Finding::new("invalid-webhook", format!("webhook {name}: OLM refuses it: {problem}"))
                .hint("list the API groups and resources that the webhook checks, without those that OLM excludes");
            work.report(number, &["webhooks", &index, "rules", &r.to_string()], finding);
        }
    }
    let types = serving.webhooks.get(name);
    if types.is_some_and(|types| types.contains(type_name)) {
        let finding = Finding::new("duplicate-webhook", format!("another webhook of the bundle is named {name}, too"))
            .hint("give each webhook its own name");
        work.report(number, &["webhooks", &index, "name"], finding);
        return;
    }
    let mut generate_name = name.to_owned();
    if types.is_some() {
        // OLM refuses two webhooks with one name, also of different types.
        let second = format!("{}.{name}", type_name.trim_end_matches("AdmissionWebhook").to_lowercase());
        if serving.webhooks.contains_key(&second) {
            let message = format!("other webhooks of the bundle are named {name} and {second}");
            let finding = Finding::new("duplicate-webhook", message).hint("give each webhook its own name");
            work.report(number, &["webhooks", &index, "name"], finding);
            return;
        }
        generate_name = second;
        let finding = Finding::new(
            "renamed-webhook",
            format!("another webhook is named {name}, too; OLM creates this one as {generate_name}"),
        )
        .warning()
        .hint("give each webhook its own name");
        work.report(number, &["webhooks", &index, "name"], finding);
    }
    let path = ["webhooks", &index, "clientConfig", "service"];
    let Some(mut description) = serving.endpoint(work, workloads, number, &path) else { return };
    description.insert("type".to_owned(), type_name.into());
    serving.describes(&generate_name, type_name);
    description.insert("generateName".to_owned(), generate_name.into());
    for field in WEBHOOK_FIELDS {
        if let Some(value) = webhook.get(field).filter(|value| !value.is_null()) {
            description.insert(field.to_owned(), value.clone());
        }
    }
    insert_path(&mut description, at(webhook, &["clientConfig", "service"]));
    let field = work.push(&["spec", "webhookdefinitions"], Value::Object(description));
    work.project(number, field);
}

fn insert_path(description: &mut Map<String, Value>, service: &Value) {
    if let Some(path) = service.get("path").filter(|path| !path.is_null()) {
        description.insert("webhookPath".to_owned(), path.clone());
    }
}

/// The numbers and names of CustomResourceDefinitions that one endpoint converts.
type Converted = Vec<(usize, String)>;

/// Writes a description for each endpoint that converts custom resources, with all CustomResourceDefinitions that name it.
fn conversion_webhooks(work: &mut Work<'_>, workloads: &Workloads, serving: &mut Serving) {
    let mut descriptions: Vec<(Map<String, Value>, Converted)> = Vec::new();
    for (number, manifest) in work.of_kind(API_EXTENSIONS, "CustomResourceDefinition") {
        let conversion = at(&manifest.object, &["spec", "conversion"]);
        if text(conversion, &["strategy"]) != "Webhook" {
            continue;
        }
        let path = ["spec", "conversion", "webhook", "clientConfig", "service"];
        if at(&manifest.object, &path).is_null() {
            let finding = Finding::new("missing-service", "the conversion webhook names no Service")
                .hint("serve it from a Deployment of the bundle, behind a Service");
            work.report(number, &path[..4], finding);
            continue;
        }
        if at(&manifest.object, &["spec", "preserveUnknownFields"]).as_bool() == Some(true) {
            let finding =
                Finding::new("conversion-fields", "OLM converts no custom resources with spec.preserveUnknownFields")
                    .hint("set it to false");
            work.report(number, &["spec", "preserveUnknownFields"], finding);
        }
        let Some(mut description) = serving.endpoint(work, workloads, number, &path) else { continue };
        insert_path(&mut description, at(&manifest.object, &path));
        let versions = at(conversion, &["webhook", "conversionReviewVersions"]);
        description.insert("admissionReviewVersions".to_owned(), versions.clone());
        let name = object::name(&manifest.object).to_owned();
        match descriptions.iter_mut().find(|(other, _)| *other == description) {
            Some((_, names)) => names.push((number, name)),
            None => descriptions.push((description, vec![(number, name)])),
        }
    }
    let modes = list(&work.csv, &["spec", "installModes"]);
    let supports = |mode: &Value| at(mode, &["supported"]).as_bool() == Some(true);
    let is_global_only = modes
        .iter()
        .filter(|mode| supports(mode))
        .all(|mode| text(mode, &["type"]) == InstallMode::AllNamespaces.as_str());
    if !is_global_only && let Some((number, _)) = descriptions.first().and_then(|(_, converted)| converted.first()) {
        let finding = Finding::new(
            "conversion-modes",
            "OLM installs conversion webhooks only with the install mode AllNamespaces",
        )
        .hint("in metadata/olm.yaml, let AllNamespaces be the only supported install mode");
        work.report(*number, &["spec", "conversion"], finding);
    }
    for (mut description, definitions) in descriptions {
        let names: Vec<&String> = definitions.iter().map(|(_, name)| name).collect();
        description.insert("type".to_owned(), "ConversionWebhook".into());
        description.insert("generateName".to_owned(), format!("c{}", names[0]).into());
        description.insert("sideEffects".to_owned(), "None".into());
        description.insert("conversionCRDs".to_owned(), json!(names));
        let field = work.push(&["spec", "webhookdefinitions"], Value::Object(description));
        for (number, _) in definitions {
            work.project(number, field.clone());
        }
    }
}

/// Projects the Services for which OLM creates its own. One with more ports stays in the bundle, too.
fn services(work: &mut Work<'_>, serving: &Serving) {
    let generated: BTreeSet<String> = serving.servers.iter().map(|server| service_name(server)).collect();
    for (number, manifest) in work.of_kind("", "Service") {
        let served = serving.ports.get(&number);
        let ports = list(&manifest.object, &["spec", "ports"]);
        let is_covered = |port: &Value| {
            at(port, &["port"]).as_i64().is_some_and(|port| served.is_some_and(|served| served.contains(&port)))
        };
        if served.is_some() {
            work.record(number, Destination::Generated("Service of webhooks and APIServices".to_owned()));
            if ports.iter().all(is_covered) {
                losses::service(work, number);
                continue;
            }
            work.record(number, Destination::Bundle);
        }
        if generated.contains(object::name(&manifest.object)) {
            let finding = Finding::new(
                "service-name",
                "has the name of the Service that OLM creates for webhooks and APIServices",
            )
            .hint("rename it, or leave only the ports of webhooks and APIServices in it");
            work.report(number, &["metadata", "name"], finding);
        }
    }
}

/// Returns the name of the Service that OLM creates for a Deployment.
fn service_name(deployment: &str) -> String {
    format!("{}-service", deployment.replace('.', "-"))
}

/// Reports volumes and volume mounts of a Deployment that serves in whose place OLM mounts its certificate.
fn report_replaced_mounts(work: &mut Work<'_>, number: usize) {
    let pod = at(&work.manifests[number].object, &["spec", "template", "spec"]);
    for (v, volume) in list(pod, &["volumes"]).iter().enumerate() {
        let Some((name, path)) = VOLUMES.iter().find(|(name, _)| text(volume, &["name"]) == *name) else { continue };
        let finding = Finding::new(
            "replaced-volume",
            format!("OLM replaces volume {name} with its certificate, and mounts it at {path} only"),
        )
        .warning()
        .hint(format!("let the operator read its certificate at {path}, or rename the volume if it has other content"));
        work.report(number, &["spec", "template", "spec", "volumes", &v.to_string()], finding);
    }
    for (c, container) in list(pod, &["containers"]).iter().enumerate() {
        for (m, mount) in list(container, &["volumeMounts"]).iter().enumerate() {
            let path = text(mount, &["mountPath"]);
            if [API_SERVICE_CERTIFICATE, WEBHOOK_CERTIFICATE].contains(&path) {
                let finding = Finding::new(
                    "replaced-mount",
                    format!("OLM mounts the certificate of webhooks and APIs at {path}, in place of this volume"),
                )
                .warning()
                .hint("do not issue or rotate this certificate in the operator");
                let [c, m] = [c, m].map(|number| number.to_string());
                work.report(number, &["spec", "template", "spec", "containers", &c, "volumeMounts", &m], finding);
            }
        }
    }
}

/// Reports volumes of a Deployment that serves nothing with the certificate of one that serves: OLM replaces the certificate, and
/// mounts its own only into the Deployment that serves.
fn report_shared_certificates(work: &mut Work<'_>, serving: &Serving, workloads: &Workloads, number: usize) {
    let secrets = |number: usize| {
        let volumes = list(&work.manifests[number].object, &["spec", "template", "spec", "volumes"]);
        let sources = volumes.iter().enumerate().flat_map(|(n, volume)| {
            let projected =
                list(volume, &["projected", "sources"]).iter().map(|source| text(source, &["secret", "name"]));
            std::iter::once(text(volume, &["secret", "secretName"])).chain(projected).map(move |name| (n, name))
        });
        sources.filter(|(_, name)| !name.is_empty()).map(|(n, name)| (n, name.to_owned())).collect::<Vec<_>>()
    };
    let issued: BTreeSet<&str> =
        work.of_kind(CERT_MANAGER, "Certificate").map(|(_, c)| text(&c.object, &["spec", "secretName"])).collect();
    let mut shared = Vec::new();
    for (n, secret) in secrets(number).into_iter().filter(|(_, secret)| issued.contains(secret.as_str())) {
        let mut servers = workloads.all.iter().filter(|workload| serving.servers.contains(&workload.name));
        if let Some(server) = servers.find(|server| secrets(server.number).iter().any(|(_, other)| *other == secret)) {
            shared.push((n, secret, server.name.clone()));
        }
    }
    for (n, secret, server) in shared {
        let finding = Finding::new(
            "shared-certificate",
            format!("mounts Secret {secret}, the certificate of Deployment {server}, in whose place OLM issues another"),
        )
        .hint(format!(
            "mount Secret {}-cert, which OLM creates for {server}, with the keys {}; or let this Deployment use a certificate of its own",
            service_name(&server),
            CERTIFICATE_KEYS.join(" and ")
        ));
        work.report(number, &["spec", "template", "spec", "volumes", &n.to_string()], finding);
    }
}

/// Lets the Deployments that serve use OLM's certificate where their volumes name one that cert-manager would issue.
pub(super) fn replace_certificates(work: &mut Work<'_>, serving: &Serving, workloads: &Workloads) {
    let certificates: Vec<_> = work.of_kind(CERT_MANAGER, "Certificate").collect();
    let secrets: BTreeSet<&str> = work.of_kind("", "Secret").map(|(_, secret)| object::name(&secret.object)).collect();
    let mut issued = BTreeSet::new();
    for (index, Workload { number, name, .. }) in workloads.all.iter().enumerate() {
        if !serving.servers.contains(name) {
            report_shared_certificates(work, serving, workloads, *number);
            continue;
        }
        let secret_name = format!("{}-cert", service_name(name));
        report_replaced_mounts(work, *number);
        let mut has_certificate = false;
        let volumes = list(&work.manifests[*number].object, &["spec", "template", "spec", "volumes"]);
        for (n, volume) in volumes.iter().enumerate() {
            let given = text(volume, &["secret", "secretName"]);
            let path = ["spec", "template", "spec", "volumes", &n.to_string(), "secret"];
            let is_issued = certificates.iter().find(|(_, c)| text(&c.object, &["spec", "secretName"]) == given);
            let Some((certificate, _)) = is_issued.filter(|_| !given.is_empty()) else {
                let is_optional = at(volume, &["secret", "optional"]).as_bool() == Some(true);
                if !given.is_empty() && !is_optional && !secrets.contains(given) && given != secret_name {
                    let finding =
                        Finding::new("missing-secret", format!("mounts Secret {given}, which is not in the input"))
                            .warning()
                            .hint(format!("if it is the serving certificate, mount OLM's: Secret {secret_name}"));
                    work.report(*number, &path, finding);
                }
                continue;
            };
            let items = list(volume, &["secret", "items"]);
            if items.iter().any(|item| !CERTIFICATE_KEYS.contains(&text(item, &["key"]))) {
                let finding = Finding::new(
                    "certificate-key",
                    format!("OLM's certificate has the keys {} only", CERTIFICATE_KEYS.join(" and ")),
                )
                .hint("do not mount other keys of the certificate's Secret");
                work.report(*number, &path, finding);
            }
            let deployments = object::map_mut(&mut work.csv, &DEPLOYMENTS[..3]).get_mut(DEPLOYMENTS[3]);
            let pointer = format!("/{index}/spec/template/spec/volumes/{n}/secret/secretName");
            if let Some(value) = deployments.and_then(|deployments| deployments.pointer_mut(&pointer)) {
                *value = secret_name.clone().into();
            }
            has_certificate = true;
            issued.insert(*certificate);
            work.record(*certificate, Destination::Generated(format!("certificate in Secret {secret_name}")));
        }
        if !has_certificate {
            let finding = Finding::new(
                "own-certificate",
                "serves webhooks or APIs with a certificate that no Certificate of the manifests issues",
            )
            .warning()
            .hint(format!(
                "OLM issues one, mounts it at {WEBHOOK_CERTIFICATE} or {API_SERVICE_CERTIFICATE}, and sets caBundle; let the operator read it there, and not look up its Service or webhook configurations by name"
            ));
            work.report(*number, &["spec", "template", "spec"], finding);
        }
    }
    for kind in ["Issuer", "ClusterIssuer"] {
        for (number, issuer) in work.of_kind(CERT_MANAGER, kind) {
            let mut users = certificates.iter().filter(|(_, certificate)| {
                let reference = at(&certificate.object, &["spec", "issuerRef"]);
                let of_kind = match text(reference, &["kind"]) {
                    "" => "Issuer",
                    of_kind => of_kind,
                };
                (text(reference, &["name"]), of_kind) == (object::name(&issuer.object), kind)
            });
            let is_used = users.clone().next().is_some();
            if is_used && users.all(|(number, _)| issued.contains(number)) {
                work.record(number, Destination::Generated("OLM signs the certificates itself".to_owned()));
            }
        }
    }
}
