//! The objects by which the API server finds the process that serves: an APIService, a Service without selector, and the address behind it; and
//! the role by which users may read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::conditions::{AVAILABLE, Conditions};
use crate::api::kinds;
use crate::api::object::{self, ObjectRef};
use crate::packages::{GROUP, PLURAL, VERSION};
use crate::plan::Certificate;

/// Name of the Service and of the object with its address.
pub const SERVICE: &str = "kubectl-olm-packages";
/// The name of the role for users. OLM's release has the same rules in `aggregate-olm-view`.
pub const ROLE: &str = "kubectl-olm-packages-view";
/// The kinds of the objects that lead to a process besides the APIService, and of the role.
pub const KINDS: [&kinds::Kind; 4] = [&kinds::SERVICE, &kinds::ENDPOINT_SLICE, &kinds::ENDPOINTS, &kinds::CLUSTER_ROLE];
/// The label of these objects. An APIService without it belongs to another server, such as `packageserver`.
const LABEL: &str = "kubectl-olm/serves";
/// The value of the label.
const PACKAGES: &str = "packages";
/// The port of the Service, and the name that connects it with the address.
const PORT: (u16, &str) = (443, "https");
/// OLM's priorities of the group and the version.
const PRIORITIES: (u16, u16) = (2000, 15);
/// The validity of the certificate. It is renewed after half of it.
const LIFETIME: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How far clocks may differ.
const SKEW: SignedDuration = SignedDuration::from_hours(1);
/// The first minor version of Kubernetes whose API server reads EndpointSlices instead of Endpoints.
const WITH_SLICES: u64 = 33;

/// Returns the name of the APIService.
pub fn api_service() -> String {
    format!("{VERSION}.{GROUP}")
}

/// Returns the APIService.
pub fn api_service_ref() -> ObjectRef {
    ObjectRef { gvk: kinds::API_SERVICE.gvk(), namespace: String::new(), name: api_service() }
}

/// Returns the certificate to serve with, in this namespace.
pub fn certificate(namespace: &str, now: Timestamp) -> Certificate {
    let hosts = vec![format!("{SERVICE}.{namespace}.svc")];
    let (before, after) = (now.checked_sub(SKEW), now.checked_add(LIFETIME));
    Certificate { hosts, not_before: before.unwrap_or(now), not_after: after.unwrap_or(now) }
}

/// Returns whether a certificate has to be renewed.
pub fn is_due(certificate: &Certificate, now: Timestamp) -> bool {
    let half = SignedDuration::from_secs(LIFETIME.as_secs() / 2);
    now < certificate.not_before || certificate.not_after.duration_since(now) < half
}

/// Returns the selector of the objects that such processes create.
pub fn selector() -> String {
    format!("{LABEL}={PACKAGES}")
}

/// Returns whether an existing object, such as the APIService, was created by such a process.
pub fn is_own(existing: &Value) -> bool {
    object::label(existing, LABEL) == Some(PACKAGES)
}

/// Returns whether an object was created by such a process in one of these namespaces, for an APIService. Tenants can set the label.
pub fn belongs_to(object: &Value, namespaces: &[&str]) -> bool {
    let (name, namespace) = (object::name(object), object::namespace(object));
    is_own(object)
        && if namespace.is_empty() { name == ROLE } else { name == SERVICE && namespaces.contains(&namespace) }
}

/// Returns the namespace of the Service that an APIService leads to.
pub fn namespace(api_service: &Value) -> &str {
    object::text(api_service, &["spec", "service", "namespace"])
}

/// Returns whether an existing APIService was created by such a process, and the API server does not reach any.
pub fn is_abandoned(api_service: &Value) -> bool {
    is_own(api_service) && Conditions::new(api_service).find(AVAILABLE).is_some_and(|condition| !condition.is_true())
}

/// Returns the rules that users need to read PackageManifests.
pub fn rules() -> Value {
    json!([{ "apiGroups": [GROUP], "resources": [PLURAL, format!("{PLURAL}/icon")], "verbs": ["get", "list", "watch"] }])
}

/// Returns whether an APIService leads to the process with this certificate authority, in PEM.
pub fn leads_to(api_service: &Value, authority: &str) -> bool {
    is_own(api_service) && object::text(api_service, &["spec", "caBundle"]) == STANDARD.encode(authority)
}

/// Lets the garbage collector delete the objects with the installation, also one whose manifests are deleted by another client than
/// `kubectl olm uninstall`: the APIService would block the deletion of its namespace. `owner` is an object
/// of the installation that is not in a namespace.
pub fn set_owner(objects: &mut [Value], owner: &Value) {
    let target = ObjectRef::from_object(owner);
    let reference = json!({
        "apiVersion": target.gvk.api_version(), "kind": target.gvk.kind, "name": target.name, "uid": object::uid(owner),
    });
    for object in objects {
        object["metadata"]["ownerReferences"] = json!([reference]);
    }
}

/// Returns the objects to apply, in order. `ip` and `port` are those of the process, as the API server reaches it.
/// `server` is the version of the API server, such as `v1.36.1`.
pub fn objects(namespace: &str, (ip, port): (&str, u16), authority: &str, server: &str) -> Vec<Value> {
    let minor = server.split('.').nth(1).and_then(|minor| minor.trim_end_matches('+').parse::<u64>().ok());
    let labels = json!({ LABEL: PACKAGES, "app.kubernetes.io/managed-by": "kubectl-olm" });
    let metadata = json!({ "name": SERVICE, "namespace": namespace, "labels": labels });
    let ports = json!([{ "name": PORT.1, "port": port, "protocol": "TCP" }]);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {
            // Traffic is forwarded only to addresses of the families of the Service.
            "ipFamilyPolicy": "PreferDualStack",
            "ports": [{ "name": PORT.1, "port": PORT.0, "targetPort": port, "protocol": "TCP" }],
        },
    });
    let addresses = if minor.is_some_and(|minor| minor < WITH_SLICES) {
        json!({
            "apiVersion": "v1", "kind": "Endpoints", "metadata": metadata,
            "subsets": [{ "addresses": [{ "ip": ip }], "ports": ports }],
        })
    } else {
        let mut metadata = metadata.clone();
        metadata["labels"]["kubernetes.io/service-name"] = SERVICE.into();
        metadata["labels"]["endpointslice.kubernetes.io/managed-by"] = "kubectl-olm".into();
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata,
            "addressType": if ip.contains(':') { "IPv6" } else { "IPv4" },
            "endpoints": [{ "addresses": [ip], "conditions": { "ready": true } }], "ports": ports,
        })
    };
    let api_service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": api_service(), "labels": labels },
        "spec": {
            "group": GROUP, "version": VERSION, "groupPriorityMinimum": PRIORITIES.0, "versionPriority": PRIORITIES.1,
            "caBundle": STANDARD.encode(authority),
            "service": { "name": SERVICE, "namespace": namespace, "port": PORT.0 },
        },
    });
    let mut metadata = json!({ "name": ROLE, "labels": labels });
    for to in ["admin", "edit", "view"] {
        metadata["labels"][format!("rbac.authorization.k8s.io/aggregate-to-{to}")] = "true".into();
    }
    let rbac = kinds::CLUSTER_ROLE.gvk().api_version();
    let role = json!({ "apiVersion": rbac, "kind": kinds::CLUSTER_ROLE.kind, "metadata": metadata, "rules": rules() });
    // The role is last: without the permission to create it, administrators can read.
    vec![service, addresses, api_service, role]
}
