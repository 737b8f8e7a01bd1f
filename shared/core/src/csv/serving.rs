//! What a Deployment needs to serve webhooks or APIs: a Service, a certificate in a Secret, and permissions
//! (olm-behaviour/csv.md#certificates, olm-behaviour/csv.md#serving-objects).
//!
//! ```text
//!   Service D-service  <- API server          Secret D-service-cert: tls.crt, tls.key, olmCAKey
//!                                               -> volumes of the pods; olmCAKey -> caBundle of clients
//!   Role, RoleBinding D-service-cert                                 its pods may read the Secret
//!   ClusterRoleBinding D-service-system:auth-delegator               and authenticate callers
//!   RoleBinding kube-system/D-service-auth-reader                    and read the API server's trusted CAs
//! ```

use jiff::Timestamp;
use serde_json::{Value, json};

use super::config::merge;
use super::overlay::{overlay, with_owners};
use super::serving_certificate::{LIFETIME, ServingCertificate};
use super::siblings;
use crate::api::cluster_service_version::{API_SERVICE_CERTIFICATE, Csv, WEBHOOK_CERTIFICATE};
use crate::api::kinds::RBAC_GROUP;
use crate::api::labels;
use crate::api::metadata::Metadata;
use crate::api::object::{self, ObjectRef};
use crate::plan::certificate::AUTHORITY_HASH;
use crate::plan::{Action, Certificate, Propagation};
use crate::world::{GroupKind, Reader, kind};

/// The default port of a description.
const DEFAULT_PORT: i64 = 443;
/// The namespace with the API server's trusted CAs.
pub(super) const KUBE_SYSTEM: &str = "kube-system";

/// A Deployment of the install strategy that serves webhooks or APIs.
#[derive(Clone, Copy)]
pub(super) struct Server<'a> {
    csv: Csv<'a>,
    /// Its entry in the strategy.
    entry: &'a Value,
}

/// The Service and the certificate of a Deployment that serves webhooks or APIs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The Deployment.
    pub deployment: String,
    /// The Service.
    pub service: String,
    /// The Secret with the certificate.
    pub secret: String,
    /// The DNS names of the certificate.
    hosts: Vec<String>,
}

impl Endpoint {
    /// Reads the certificate in the Secret; `None` if it has none for the Service that the authority in it has signed.
    pub fn certificate<'w>(&self, secret: &'w Value) -> Option<ServingCertificate<'w>> {
        ServingCertificate::read(secret, &self.hosts)
    }
}

/// Returns the endpoints of a ClusterServiceVersion, in the order of its strategy.
pub fn endpoints(csv: &Value) -> Vec<Endpoint> {
    let endpoint = |server: Server<'_>| Endpoint {
        deployment: server.name().to_owned(),
        service: server.service(),
        secret: server.secret(),
        hosts: server.hosts(),
    };
    Server::all(Csv::new(csv)).map(endpoint).collect()
}

/// Returns the descriptions of owned APIServices, then those of webhooks.
fn descriptions(csv: Csv<'_>) -> impl Iterator<Item = &Value> {
    csv.owned_api_services().iter().chain(csv.webhooks())
}

/// Returns the port to which the API server connects for a description.
pub(super) fn port(description: &Value) -> i64 {
    match object::at(description, &["containerPort"]).as_i64() {
        None | Some(0) => DEFAULT_PORT,
        Some(port) => port,
    }
}

impl<'a> Server<'a> {
    /// Returns the servers of a ClusterServiceVersion, in the order of its strategy.
    pub(super) fn all(csv: Csv<'a>) -> impl Iterator<Item = Self> {
        csv.deployments().iter().filter_map(move |entry| Self::from_deployment(csv, entry))
    }

    /// Returns the Deployment as a server; `None` when no description names it.
    pub(super) fn from_deployment(csv: Csv<'a>, entry: &'a Value) -> Option<Self> {
        let server = Self { csv, entry };
        server.descriptions().next().is_some().then_some(server)
    }

    /// Returns the server that a description names.
    pub(super) fn named(csv: Csv<'a>, description: &Value) -> Option<Self> {
        let name = object::text(description, &["deploymentName"]);
        csv.deployments().iter().find(|d| object::text(d, &["name"]) == name).map(|entry| Self { csv, entry })
    }

    fn descriptions(self) -> impl Iterator<Item = &'a Value> {
        descriptions(self.csv).filter(move |d| object::text(d, &["deploymentName"]) == self.name())
    }

    /// Returns the Deployment's name.
    pub(super) fn name(self) -> &'a str {
        object::text(self.entry, &["name"])
    }

    /// Returns the Service's name. Dots are replaced, because the API server rejects OLM's names with dots.
    pub(super) fn service(self) -> String {
        format!("{}-service", self.name().replace('.', "-"))
    }

    /// Returns the name of the Secret, and of the Role that may read it.
    pub(super) fn secret(self) -> String {
        format!("{}-cert", self.service())
    }

    fn hosts(self) -> Vec<String> {
        let host = format!("{}.{}", self.service(), self.csv.namespace());
        ["", ".svc", ".svc.cluster.local"].map(|domain| format!("{host}{domain}")).to_vec()
    }

    /// Returns the certificate in the Secret, if it is valid.
    pub(super) fn pair<'w>(self, world: &Reader<'w>) -> Option<ServingCertificate<'w>> {
        let secret = world.json(&kind::SECRET, self.csv.namespace(), &self.secret())?;
        ServingCertificate::read(secret, &self.hosts()).filter(|_| !object::is_deleting(secret))
    }

    fn ports(self) -> Vec<Value> {
        let mut ports: Vec<Value> = Vec::new();
        for description in self.descriptions() {
            let port = port(description);
            let target = object::at(description, &["targetPort"]);
            let target = if target.is_null() { &json!(port) } else { target };
            let port = json!({ "name": port.to_string(), "port": port, "targetPort": target });
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
        ports
    }

    fn subject(self) -> Value {
        let account = match object::text(self.entry, &["spec", "template", "spec", "serviceAccountName"]) {
            "" => "default",
            account => account,
        };
        json!({ "kind": "ServiceAccount", "name": account, "namespace": self.csv.namespace() })
    }

    fn object(self, api_version: &str, kind: &str, name: &str) -> Value {
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "name": name, "namespace": self.csv.namespace(),
                "labels": { labels::MANAGED: "true" },
                "ownerReferences": [object::owner_reference(self.csv.json, false)],
            },
        })
    }

    /// Returns the objects with names that are unique in the namespace: Service, Role and RoleBinding.
    fn in_namespace(self) -> [Value; 3] {
        let mut service = self.object("v1", "Service", &self.service());
        service["spec"] = json!({
            "ports": self.ports(),
            "selector": object::at(self.entry, &["spec", "selector", "matchLabels"]),
        });
        let secret = self.secret();
        let mut role = self.object("rbac.authorization.k8s.io/v1", "Role", &secret);
        role["rules"] = json!([
            { "apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get"] }
        ]);
        let mut binding = self.object("rbac.authorization.k8s.io/v1", "RoleBinding", &secret);
        binding["roleRef"] = json!({ "apiGroup": RBAC_GROUP, "kind": "Role", "name": secret });
        binding["subjects"] = json!([self.subject()]);
        [service, role, binding]
    }

    /// Returns the objects with names that are unique in the cluster: several ClusterServiceVersions may share them.
    fn shared(self) -> [Value; 2] {
        let mut delegator = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {
                "name": format!("{}-system:auth-delegator", self.service()),
                "labels": { labels::MANAGED: "true" },
            },
            "roleRef": { "apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": "system:auth-delegator" },
            "subjects": [self.subject()],
        });
        labels::set_owner(&mut delegator, self.csv.json);
        let reader = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {
                "name": format!("{}-auth-reader", self.service()), "namespace": KUBE_SYSTEM,
                "labels": { labels::MANAGED: "true" },
            },
            "roleRef": { "apiGroup": RBAC_GROUP, "kind": "Role", "name": "extension-apiserver-authentication-reader" },
            "subjects": [self.subject()],
        });
        [delegator, reader]
    }

    /// Creates the Secret unless its certificate is valid, and takes it over from a replaced ClusterServiceVersion. If the
    /// Secret is being deleted, waits for that.
    fn certify(self, world: &Reader<'_>, now: Timestamp) -> Option<Action> {
        let live = world.json(&kind::SECRET, self.csv.namespace(), &self.secret());
        if live.is_some_and(object::is_deleting) {
            return None;
        }
        let owner = object::owner_reference(self.csv.json, false);
        if self.pair(world).is_some_and(|pair| !pair.is_due(now)) {
            return live.and_then(|live| adopt(live, owner));
        }
        let hosts = self.hosts();
        let certificate = Certificate { hosts, not_before: now, not_after: now.checked_add(LIFETIME).unwrap_or(now) };
        let mut secret = self.object("v1", "Secret", &self.secret());
        let Some(live) = live else {
            secret["type"] = json!("kubernetes.io/tls");
            return Some(Action::Certify(certificate, Box::new(Action::Create(secret))));
        };
        let mut secret = live.clone();
        object::set_label(&mut secret, labels::MANAGED, "true");
        if is_owned_by_csv(live) {
            let owners = with_owners(live, &[owner]);
            object::map_mut(&mut secret, &["metadata"]).insert("ownerReferences".to_owned(), owners.into());
        }
        Some(Action::Certify(certificate, Box::new(Action::Update(secret))))
    }

    /// Returns the writes that create or update all objects.
    fn prepare(self, world: &Reader<'_>, now: Timestamp) -> Vec<Action> {
        let [service, role, binding] = self.in_namespace();
        let plain = |object: Value| overlay(live(world, &object), object);
        let shared = |object: Value| overlay(live(world, &object), among_others(live(world, &object), object));
        let mut actions: Vec<Action> = plain(service).into_iter().chain(self.certify(world, now)).collect();
        actions.extend([role, binding].into_iter().filter_map(plain));
        actions.extend(self.shared().into_iter().filter_map(shared));
        actions
    }

    /// Returns what is missing, in the words of Kubernetes' clients.
    pub(super) fn problems(self, world: &Reader<'_>) -> Vec<String> {
        let mut problems = Vec::new();
        for wanted in self.in_namespace().iter().chain(&self.shared()) {
            let here = live(world, wanted).is_some_and(|live| {
                let ours =
                    |s: &Value| object::list(live, &["subjects"]).iter().any(|subject| object::covers(subject, s));
                !object::is_deleting(live) && object::list(wanted, &["subjects"]).iter().all(ours)
            });
            if !here {
                problems.push(not_found(wanted));
            }
        }
        problems
    }

    /// Returns the removal of objects elsewhere when the ClusterServiceVersion is deleted: the permissions in kube-system,
    /// which OLM leaves.
    fn remove_objects(self, world: &Reader<'_>) -> Option<Action> {
        let [_, reader] = self.shared();
        let live = live(world, &reader).filter(|live| object::label(live, labels::MANAGED) == Some("true"))?;
        let others = others(live, self.csv.namespace());
        if others.len() == object::list(live, &["subjects"]).len() || object::is_deleting(live) {
            return None;
        }
        if others.is_empty() {
            return Some(Action::delete(live, Propagation::Background));
        }
        let mut new = live.clone();
        new["subjects"] = others.into();
        Some(Action::Update(new))
    }
}

/// Returns the message of a lister that finds nothing.
pub(super) fn not_found(object: &Value) -> String {
    let ObjectRef { gvk, name, .. } = ObjectRef::from_object(object);
    let kind = gvk.kind.to_lowercase();
    let dot = if gvk.group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{} {name:?} not found", gvk.group)
}

fn live<'w>(world: &Reader<'w>, object: &Value) -> Option<&'w Value> {
    world.json(&GroupKind::from_object(object), object::namespace(object), object::name(object))
}

fn is_owned_by_csv(object: &Value) -> bool {
    Metadata::new(object).owner_references().iter().any(|o| object::kind(o) == "ClusterServiceVersion")
}

/// Takes a Secret over from another ClusterServiceVersion, whose deletion would delete the Secret. The private key is
/// unknown here, so the Secret is patched.
fn adopt(secret: &Value, owner: Value) -> Option<Action> {
    let owners = with_owners(secret, &[owner]);
    if !is_owned_by_csv(secret) || owners == Metadata::new(secret).owner_references() {
        return None;
    }
    let metadata = json!({ "ownerReferences": owners, "resourceVersion": object::resource_version(secret) });
    Some(Action::Patch {
        target: ObjectRef::from_object(secret),
        uid: object::uid(secret).to_owned(),
        patch: json!({ "metadata": metadata }),
    })
}

/// Returns subjects in other namespaces.
fn others(binding: &Value, namespace: &str) -> Vec<Value> {
    let subjects = object::list(binding, &["subjects"]).iter();
    subjects.filter(|s| object::text(s, &["namespace"]) != namespace).cloned().collect()
}

/// Returns a binding that Deployments of the same name in several namespaces share: each adds its subject, the first owns
/// it.
fn among_others(live: Option<&Value>, mut wanted: Value) -> Value {
    let Some(live) = live else { return wanted };
    let [subject] = object::list(&wanted, &["subjects"]) else { return wanted };
    let is_it = |s: &Value| object::covers(s, subject);
    let is_old = |s: &Value| object::text(s, &["namespace"]) == object::text(subject, &["namespace"]) && !is_it(s);
    let mut subjects = object::list(live, &["subjects"]).to_vec();
    subjects.retain(|s| !is_old(s));
    if !subjects.iter().any(is_it) {
        subjects.push(subject.clone());
    }
    let owner = object::label(live, labels::OWNER_NAMESPACE);
    let is_of_another = owner.is_some() && owner != object::label(&wanted, labels::OWNER_NAMESPACE);
    wanted["subjects"] = subjects.into();
    if is_of_another {
        wanted["metadata"]["labels"] = json!({ labels::MANAGED: "true" });
    }
    wanted
}

/// Returns the writes that create or update what the servers of a ClusterServiceVersion need, including their certificates.
pub(super) fn prepare(world: &Reader<'_>, csv: Csv<'_>, now: Timestamp) -> Vec<Action> {
    Server::all(csv).flat_map(|server| server.prepare(world, now)).collect()
}

/// Returns whether a server has no valid certificate.
pub(super) fn is_rotation_due(world: &Reader<'_>, csv: Csv<'_>, now: Timestamp) -> bool {
    Server::all(csv).any(|server| server.pair(world).is_none_or(|pair| pair.is_due(now)))
}

/// Returns since when all certificates are valid, and when the first is renewed; `None` without servers.
pub(super) fn validity(world: &Reader<'_>, csv: Csv<'_>) -> Option<(Timestamp, Timestamp)> {
    Server::all(csv)
        .filter_map(|server| server.pair(world))
        .map(|pair| (pair.not_before, pair.rotates_at))
        .reduce(|(since, until), (from, at)| (since.max(from), until.min(at)))
}

/// Returns the writes that remove what Kubernetes' garbage collector cannot, unless the replacing ClusterServiceVersion
/// needs it.
pub(super) fn remove_objects(world: &Reader<'_>, csv: Csv<'_>) -> Vec<Action> {
    let replacements = siblings::replacements(world, csv);
    let is_taken_over = |server: &Server<'_>| {
        replacements.iter().any(|new| Server::all(*new).any(|other| other.name() == server.name()))
    };
    Server::all(csv).filter(|server| !is_taken_over(server)).filter_map(|server| server.remove_objects(world)).collect()
}

/// Adds the certificate to the pods of a server: volumes, mounts, and the annotation that restarts them when it changes.
pub(super) fn mount(server: Server<'_>, pair: &ServingCertificate<'_>, spec: &mut Value) {
    let volume = |name: &str, files: [&str; 2]| {
        let items = [json!({ "key": "tls.crt", "path": files[0] }), json!({ "key": "tls.key", "path": files[1] })];
        json!({ "name": name, "secret": { "secretName": server.secret(), "items": items } })
    };
    let mounted = [
        (volume("apiservice-cert", ["apiserver.crt", "apiserver.key"]), API_SERVICE_CERTIFICATE),
        (volume("webhook-cert", ["tls.crt", "tls.key"]), WEBHOOK_CERTIFICATE),
    ];
    let pod = object::map_mut(spec, &["template", "spec"]);
    let account = pod.entry("serviceAccountName").or_insert(Value::Null);
    if account.as_str().unwrap_or_default().is_empty() {
        *account = "default".into();
    }
    for (volume, path) in mounted {
        let name = volume["name"].clone();
        let mount = json!({ "name": name, "mountPath": path });
        merge(object::map_mut(spec, &["template", "spec"]), "volumes", &[volume], |a, b| a["name"] == b["name"]);
        for container in
            spec.pointer_mut("/template/spec/containers").and_then(Value::as_array_mut).into_iter().flatten()
        {
            if !object::list(container, &["volumeMounts"]).iter().any(|m| m["name"] == name) {
                let container = object::map_mut(container, &[]);
                merge(container, "volumeMounts", std::slice::from_ref(&mount), |a, b| a["mountPath"] == b["mountPath"]);
            }
        }
    }
    object::map_mut(spec, &["template", "metadata", "annotations"])
        .insert(AUTHORITY_HASH.to_owned(), pair.hash.as_str().into());
}
