//! What runs after an installation, beside what the manifests are without OLM.
//!
//! ```text
//!   manifests -- applied to a simulated cluster without OLM --> given ─┐
//!   bundle    -- installed by OLM in any cluster --------------> running ┴─ compare --> differences
//! ```
//!
//! Everything is compared in both directions: what was given runs, and nothing runs that was not given, apart from what OLM creates
//! for itself. What synthesis reports as not carried is not a difference (`REPORTED`); the same without a finding is.

mod given;
mod permissions;
mod serving;

use std::collections::BTreeSet;

use anyhow::Result;
use olm_core::api::object::{self, at, entries, list, text};
use olm_core::bundle::synthesis::{Destination, Manifest};
use olm_core::finding::Finding;
use serde_json::Value;

use self::given::Given;
use super::plain::{Project, VERSIONS};
use crate::scenario::store::ident;

/// Prefixes of the keys of labels and annotations that OLM writes, if they were not given.
const OTHER_KEYS: [&str; 4] = ["olm.", "olmcahash", "operators.coreos.com/", "operatorframework.io/"];
/// Prefixes of the keys that Kubernetes and kubectl write, and of those with data for the ClusterServiceVersion.
const BOOKKEEPING: [&str; 3] =
    ["deployment.kubernetes.io/", "kubectl.kubernetes.io/last-applied", "operators.operatorframework.io.bundle."];
/// Fields of metadata that the API server writes, or that say where an object is.
const OTHER_METADATA: [&str; 8] = [
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "ownerReferences",
    "finalizers",
];
/// The codes of findings about parts of manifests that OLM does not carry, with parts of the paths of the fields.
const REPORTED: [(&str, &str); 10] = [
    ("annotation-not-carried", ".metadata.annotations"),
    ("revisions", ".spec.revisionHistoryLimit"),
    ("account-token", ".automountServiceAccountToken"),
    ("webhook-field", ".namespaceSelector"),
    ("api-service-priority", ".groupPriorityMinimum"),
    ("api-service-priority", ".versionPriority"),
    ("replaced-mount", ".volumeMounts"),
    ("replaced-volume", ".volumeMounts"),
    ("replaced-volume", ".volumes"),
    ("renamed-webhook", ".name"),
];
/// The kinds of objects that users, OLM and Kubernetes create for an installation.
const OTHER_KINDS: [&str; 14] = [
    "CatalogSource",
    "ClusterServiceVersion",
    "Endpoints",
    "EndpointSlice",
    "Event",
    "InstallPlan",
    "Lease",
    "OLMConfig",
    "Operator",
    "OperatorCondition",
    "OperatorGroup",
    "Pod",
    "ReplicaSet",
    "Subscription",
];

/// A part of an object that differs: its path, and how.
type Part = (String, String);

/// The comparison of one operator.
#[derive(Debug, Default)]
pub struct Comparison {
    /// One line for each difference.
    pub differences: Vec<String>,
    /// Objects of the previous version that OLM does not delete (olm-behaviour/installplan.md#execution).
    pub remaining: Vec<String>,
    /// The objects that belong to the operator, as [`ident`] names them.
    claimed: BTreeSet<String>,
}

/// What is compared.
struct Scene<'a> {
    running: &'a [Value],
    findings: &'a [Finding],
    given: &'a Given,
    /// The namespace of the installation.
    namespace: &'a str,
    /// The installed ClusterServiceVersion, as it was synthesized.
    csv: &'a Value,
    result: Comparison,
}

impl Scene<'_> {
    /// Reports a difference, unless synthesis has a finding about the part.
    fn report(&mut self, manifest: &Manifest, (path, how): Part) {
        let subject = manifest.subject();
        let is_reported = |finding: &Finding| {
            finding.subject == subject
                && REPORTED.iter().any(|(code, part)| finding.code == *code && path.contains(part))
        };
        if !self.findings.iter().any(is_reported) {
            self.result.differences.push(format!("{subject}: {path} {how}"));
        }
    }

    fn report_all(&mut self, manifest: &Manifest, parts: Vec<Part>) {
        for part in parts {
            self.report(manifest, part);
        }
    }

    /// Returns the running object of that kind and name.
    fn find(&self, kind: &str, name: &str) -> Option<&'_ Value> {
        self.running.iter().find(|object| {
            object::kind(object) == kind
                && object::name(object) == name
                && (object::namespace(object).is_empty() || object::namespace(object) == self.namespace)
        })
    }

    fn claim(&mut self, object: &Value) {
        self.result.claimed.insert(ident(object));
    }

    /// Compares an object with the one of the same name.
    fn same_object(&mut self, manifest: &Manifest, given: &Value, prepare: impl Fn(&mut Value, &mut Value)) {
        let Some(found) = self.find(object::kind(given), object::name(given)).cloned() else {
            return self.report(manifest, (String::new(), "does not exist".to_owned()));
        };
        self.claim(&found);
        let (mut given, mut found) = (given.clone(), found);
        for object in [&mut given, &mut found] {
            without_assigned(object);
        }
        prepare(&mut given, &mut found);
        self.report_all(manifest, compared(&given, &found));
    }

    fn deployment(&mut self, manifest: &Manifest, given: &Value) {
        let is_server = serving::servers(self.csv).contains(object::name(given));
        let issued: BTreeSet<&str> = self.given.manifests().filter(|m| m.kind() == "Certificate").collect_secrets();
        let certificate = serving::secret(object::name(given));
        // Of the annotations of the ClusterServiceVersion the pods get copies.
        let copied: BTreeSet<String> =
            entries(self.csv, &["metadata", "annotations"]).map(|(key, _)| key.to_owned()).collect();
        let states_revisions = !at(&manifest.object, &["spec", "revisionHistoryLimit"]).is_null();
        self.same_object(manifest, given, |given, found| {
            without_operator_additions(found, is_server, &copied, given);
            if is_server {
                for volume in items_mut(given, "/spec/template/spec/volumes") {
                    let is_issued = issued.contains(text(volume, &["secret", "secretName"]));
                    if is_issued {
                        volume["secret"]["secretName"] = certificate.clone().into();
                    }
                }
            }
            if !states_revisions {
                let limit = found["spec"]["revisionHistoryLimit"].clone();
                given["spec"]["revisionHistoryLimit"] = limit;
            }
        });
    }

    fn manifest(&mut self, manifest: &Manifest, given: &Value, destinations: &[Destination]) {
        match manifest.kind() {
            "Namespace" => {}
            "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => {
                // What is granted is compared for all of them together.
                if destinations.contains(&Destination::Bundle) && manifest.kind().ends_with("Role") {
                    self.same_object(manifest, given, |_, _| {});
                } else if let Some(found) = self.find(manifest.kind(), manifest.name()).cloned() {
                    self.claim(&found);
                }
            }
            "Deployment" => self.deployment(manifest, given),
            "ServiceAccount" if destinations.iter().any(|to| matches!(to, Destination::Field(_))) => {
                // OLM creates it without labels.
                self.same_object(manifest, given, |given, _| {
                    object::map_mut(given, &["metadata"]).remove("labels");
                });
            }
            "ServiceAccount" if manifest.name() == "default" => {}
            "Service" if !destinations.contains(&Destination::Bundle) => serving::service(self, manifest, given),
            "APIService" => serving::api_service(self, manifest, given),
            "CustomResourceDefinition" => serving::definition(self, manifest, given),
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                serving::webhooks(self, manifest, given);
            }
            _ if destinations.contains(&Destination::Bundle) => self.same_object(manifest, given, |_, _| {}),
            // Certificates of OLM stand for these, and examples are not created.
            "Certificate" | "Issuer" | "ClusterIssuer" => {}
            _ if is_example(destinations) => {}
            _ => self.report(manifest, (String::new(), "is not in the bundle".to_owned())),
        }
    }
}

/// Compares what runs of a version of a project with its manifests. `running` has all objects of a cluster.
pub fn compare(project: &Project, version: &str, namespace: &str, running: &[Value]) -> Result<Comparison> {
    let synthesis = project.synthesis(version);
    let given = Given::new(project.manifests(version), namespace)?;
    let mut scene = Scene {
        running,
        findings: &synthesis.findings,
        given: &given,
        namespace,
        csv: &synthesis.csv,
        result: Comparison::default(),
    };
    for ((manifest, object), entry) in given.objects().zip(&synthesis.account) {
        scene.manifest(manifest, object, &entry.destinations);
    }
    permissions::compare(&mut scene);
    serving::claim(&mut scene);
    if version != VERSIONS[0] {
        let replaced = project.manifests(VERSIONS[0]).iter();
        for manifest in replaced {
            claim_remaining(&mut scene, manifest);
        }
    }
    Ok(scene.result)
}

/// Claims an object of the replaced version without an owner.
fn claim_remaining(scene: &mut Scene<'_>, manifest: &Manifest) {
    let Some(found) = scene.find(manifest.kind(), manifest.name()).cloned() else { return };
    let is_owned = !list(&found, &["metadata", "ownerReferences"]).is_empty() || manifest.kind() == "Namespace";
    if !is_owned && !scene.result.claimed.contains(&ident(&found)) {
        scene.result.remaining.push(ident(&found));
        scene.claim(&found);
    }
}

/// Returns the objects of a cluster that were not in it before the installations, and belong to none of the operators.
pub fn unexpected(running: &[Value], before: &BTreeSet<String>, operators: &[Comparison]) -> Vec<String> {
    let is_expected = |object: &&Value| {
        let (kind, name, id) = (object::kind(object), object::name(object), ident(object));
        before.contains(&id)
            || operators.iter().any(|operator| operator.claimed.contains(&id))
            || OTHER_KINDS.contains(&kind)
            || matches!((kind, name), ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt"))
            || (kind == "ClusterRole" && (name.starts_with("olm.og.") || is_role_of_api(object)))
            || is_local(object)
            || kind == "Namespace"
    };
    running.iter().filter(|object| !is_expected(object)).map(ident).collect()
}

/// Returns whether Kubernetes created the APIService for a CustomResourceDefinition.
pub fn is_local(service: &Value) -> bool {
    object::kind(service) == "APIService" && at(service, &["spec", "service"]).is_null()
}

/// Returns whether OLM created the ClusterRole for users of a provided API.
fn is_role_of_api(role: &Value) -> bool {
    entries(role, &["metadata", "labels"]).any(|(key, _)| key.starts_with("olm.opgroup.permissions/aggregate-to-"))
}

/// Returns whether an object is an example of a custom resource, which OLM does not create.
fn is_example(destinations: &[Destination]) -> bool {
    destinations.iter().any(|to| match to {
        Destination::Field(path) => path.contains("alm-examples"),
        Destination::Generated(what) => what.contains("examples"),
        Destination::Bundle => false,
    })
}

/// Returns the parts that differ, without what the API server and OLM write.
fn compared(given: &Value, found: &Value) -> Vec<Part> {
    let (given, found) = (without_bookkeeping(given, &Value::Null), without_bookkeeping(found, given));
    let mut parts = Vec::new();
    differ(&given, &found, "", &mut parts);
    parts
}

/// Returns an object without the status, and without metadata that is not `stated`.
fn without_bookkeeping(object: &Value, stated: &Value) -> Value {
    let mut object = object.clone();
    object::map_mut(&mut object, &[]).remove("status");
    let metadata = object::map_mut(&mut object, &["metadata"]);
    metadata.retain(|field, _| !OTHER_METADATA.contains(&field.as_str()));
    for field in ["labels", "annotations"] {
        let path = ["metadata", field];
        let is_of_others = |key: &str| {
            BOOKKEEPING.iter().any(|prefix| key.starts_with(prefix))
                || OTHER_KEYS.iter().any(|prefix| key.starts_with(prefix)) && at(stated, &path).get(key).is_none()
        };
        object::map_mut(&mut object, &path).retain(|key, _| !is_of_others(key));
    }
    object
}

/// Removes what the API server assigns, and what has no effect.
fn without_assigned(object: &mut Value) {
    match object::kind(object) {
        "Service" => {
            let spec = object::map_mut(object, &["spec"]);
            if spec.get("clusterIP").is_some_and(|address| address != "None") {
                spec.retain(|field, _| !matches!(field.as_str(), "clusterIP" | "clusterIPs"));
            }
            for port in items_mut(object, "/spec/ports") {
                object::map_mut(port, &[]).remove("nodePort");
            }
        }
        "ServiceAccount" if object["automountServiceAccountToken"] == true => {
            object::map_mut(object, &[]).remove("automountServiceAccountToken");
        }
        _ => {}
    }
}

/// Removes what OLM adds to a Deployment.
fn without_operator_additions(found: &mut Value, is_server: bool, copied: &BTreeSet<String>, given: &Value) {
    let template = ["spec", "template", "metadata", "annotations"];
    let is_added = |key: &str| {
        let is_copied = copied.contains(key) || OTHER_KEYS.iter().any(|prefix| key.starts_with(prefix));
        is_copied && at(given, &template).get(key).is_none()
    };
    object::map_mut(found, &template).retain(|key, _| !is_added(key));
    let is_certificate = |item: &Value| is_server && serving::VOLUMES.contains(&text(item, &["name"]));
    for container in items_mut(found, "/spec/template/spec/containers") {
        let is_condition = |variable: &Value| text(variable, &["name"]) == "OPERATOR_CONDITION_NAME";
        retain(container, "env", |variable| !is_condition(variable));
        retain(container, "volumeMounts", |mount| !is_certificate(mount));
    }
    if let Some(pod) = found.pointer_mut("/spec/template/spec") {
        retain(pod, "volumes", |volume| !is_certificate(volume));
        for container in items_mut(pod, "/initContainers") {
            retain(container, "env", |variable| text(variable, &["name"]) != "OPERATOR_CONDITION_NAME");
            retain(container, "volumeMounts", |mount| !is_certificate(mount));
        }
    }
}

fn items_mut<'a>(object: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}

fn retain(object: &mut Value, field: &str, is_retained: impl Fn(&Value) -> bool) {
    if let Some(items) = object.get_mut(field).and_then(Value::as_array_mut) {
        items.retain(is_retained);
    }
}

/// Adds the parts of which one side lacks, or both have different, content.
fn differ(given: &Value, found: &Value, path: &str, parts: &mut Vec<Part>) {
    match (given, found) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let inner = format!("{path}.{key}");
                differ(at(given, &[key]), at(found, &[key]), &inner, parts);
            }
        }
        (Value::Array(left), Value::Array(right)) if is_named(left) && is_named(right) => {
            let name = |value: &Value| text(value, &["name"]).to_owned();
            let names: BTreeSet<String> = left.iter().chain(right).map(name).collect();
            for key in names {
                let of = |side: &[Value]| side.iter().find(|value| name(value) == key).cloned().unwrap_or_default();
                differ(&of(left), &of(right), &format!("{path}[{key}]"), parts);
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            for number in 0..left.len().max(right.len()) {
                let of = |side: &[Value]| side.get(number).cloned().unwrap_or_default();
                differ(&of(left), &of(right), &format!("{path}[{number}]"), parts);
            }
        }
        _ if given == found || is_same_quantity(found, given) || (is_default(given) && is_default(found)) => {}
        _ if is_default(found) => parts.push((path.to_owned(), format!("is missing: {given}"))),
        _ if is_default(given) => parts.push((path.to_owned(), format!("was not given: {found}"))),
        _ => parts.push((path.to_owned(), format!("is {found}, not {given}"))),
    }
}

/// Returns whether the items of a list are known by name.
fn is_named(items: &[Value]) -> bool {
    let names: BTreeSet<&str> = items.iter().map(|item| text(item, &["name"])).collect();
    names.len() == items.len() && !names.contains("")
}

/// Returns whether a value means the same as a missing one. Numbers and booleans do not, because both sides have defaults.
fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_default),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Quantities are stored in a canonical form.
fn is_same_quantity(found: &Value, given: &Value) -> bool {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let parse = |value: &Value| olm_core::api::quantity::canonical(&plain(value));
    parse(found).is_some() && parse(found) == parse(given)
}

/// The Secrets that Certificates name.
trait Secrets<'a> {
    fn collect_secrets(self) -> BTreeSet<&'a str>;
}

impl<'a, I: Iterator<Item = &'a Manifest>> Secrets<'a> for I {
    fn collect_secrets(self) -> BTreeSet<&'a str> {
        self.map(|certificate| text(&certificate.object, &["spec", "secretName"])).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(given: &Value, found: &Value) -> Vec<String> {
        compared(given, found).into_iter().map(|(path, how)| format!("{path} {how}")).collect()
    }

    #[test]
    fn objects_are_compared_in_both_directions() {
        let given = json!({ "metadata": { "name": "a", "labels": { "x": "1" } }, "data": { "a": "1", "b": "2" } });
        let found = json!({ "metadata": { "name": "a", "uid": "u", "labels": { "olm.owner": "b", "x": "2" } },
            "data": { "a": "1", "c": "3" }, "status": {} });
        let expected =
            [".data.b is missing: \"2\"", ".data.c was not given: \"3\"", ".metadata.labels.x is \"2\", not \"1\""];
        assert_eq!(parts(&given, &found), expected);
        assert_eq!(parts(&given, &given), Vec::<String>::new());
    }

    #[test]
    fn lists_are_compared_by_name() {
        let given = json!({ "ports": [{ "name": "a", "port": 1 }, { "name": "b", "port": 2 }] });
        let found = json!({ "ports": [{ "name": "b", "port": 3 }, { "name": "c", "port": 1 }] });
        let expected = [
            ".ports[a] is missing: {\"name\":\"a\",\"port\":1}",
            ".ports[b].port is 3, not 2",
            ".ports[c] was not given: {\"name\":\"c\",\"port\":1}",
        ];
        assert_eq!(parts(&given, &found), expected);
    }

    #[test]
    fn quantities_and_defaults_are_the_same() {
        let given = json!({ "cpu": "1000m", "empty": {} });
        assert_eq!(parts(&given, &json!({ "cpu": 1 })), Vec::<String>::new());
        assert_eq!(parts(&json!({ "off": false }), &json!({})), [".off is missing: false"]);
    }
}
