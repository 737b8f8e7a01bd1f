//! The release of this project: its controllers as a Deployment, with the permissions of OLM.

use serde_json::{Value, json};

use super::{CONTROLLERS, Distribution, NAMESPACE, OPERATORS, Release, with_v};
use crate::api::{crd, kinds, object};
use crate::packages::serve::registration;

/// The flag of the controllers that serves PackageManifests.
const PACKAGES: &str = "--packages";
/// The flag with their address.
const PACKAGES_ADDRESS: &str = "--packages-address";
/// The port of the pod on which they are served.
const PACKAGES_PORT: u16 = 5443;

/// Returns the objects of this project's release. Without an image only what controllers outside of the cluster need: the
/// CustomResourceDefinitions, and the namespace of their Lease.
pub fn own(version: &str, image: Option<&str>) -> Release {
    let mut objects = crd::all();
    if let Some(image) = image {
        objects.extend(access());
        objects.extend(groups());
        objects.push(deployment(image));
    }
    let (version, namespace) = (with_v(version), NAMESPACE.to_owned());
    let mut release = Release { distribution: Distribution::Own, version, namespace, objects };
    release.finish(image.is_none());
    release
}

/// Returns the manifest of a namespace.
pub(super) fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// Returns the namespaces, the account and its permissions, which are those of OLM, and the roles for users.
fn access() -> Vec<Value> {
    let rbac = format!("{}/v1", kinds::RBAC_GROUP);
    let role = |name: &str, to: &[&str], rules: Value| {
        let labels: serde_json::Map<String, Value> = to
            .iter()
            .map(|role| (format!("rbac.authorization.k8s.io/aggregate-to-{role}"), Value::from("true")))
            .collect();
        json!({
            "apiVersion": rbac, "kind": "ClusterRole", "metadata": { "name": name, "labels": labels }, "rules": rules,
        })
    };
    let installed = ["clusterserviceversions", "catalogsources", "installplans", "subscriptions"];
    let viewed: Vec<&str> = installed.into_iter().chain(["operatorgroups"]).collect();
    let mut viewed =
        json!([{ "apiGroups": [kinds::OLM_GROUP], "resources": viewed, "verbs": ["get", "list", "watch"] }]);
    if let (Some(viewed), Value::Array(packages)) = (viewed.as_array_mut(), registration::rules()) {
        viewed.extend(packages);
    }
    vec![
        namespace(NAMESPACE),
        namespace(OPERATORS),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": CONTROLLERS, "namespace": NAMESPACE },
        }),
        role(
            CONTROLLERS,
            &[],
            json!([
                { "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] },
                { "nonResourceURLs": ["*"], "verbs": ["*"] },
            ]),
        ),
        role(
            "aggregate-olm-edit",
            &["admin", "edit"],
            json!([
                { "apiGroups": [kinds::OLM_GROUP], "resources": ["subscriptions"],
                  "verbs": ["create", "update", "patch", "delete"] },
                { "apiGroups": [kinds::OLM_GROUP], "resources": installed, "verbs": ["delete"] },
            ]),
        ),
        role("aggregate-olm-view", &["admin", "edit", "view"], viewed),
        json!({
            "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": { "name": CONTROLLERS },
            "roleRef": { "apiGroup": kinds::RBAC_GROUP, "kind": "ClusterRole", "name": CONTROLLERS },
            "subjects": [{ "kind": "ServiceAccount", "name": CONTROLLERS, "namespace": NAMESPACE }],
        }),
    ]
}

/// Returns the OperatorGroups, as OLM installs them.
fn groups() -> [Value; 2] {
    let group = |namespace: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": kinds::OPERATOR_GROUP.gvk().api_version(), "kind": "OperatorGroup",
            "metadata": { "name": name, "namespace": namespace }, "spec": spec,
        })
    };
    [
        group(OPERATORS, "global-operators", json!({})),
        group(NAMESPACE, "olm-operators", json!({ "targetNamespaces": [NAMESPACE] })),
    ]
}

/// Returns whether the controllers of a Deployment serve PackageManifests: they create the APIService when they are running.
pub(super) fn serves_packages(deployment: &Value) -> bool {
    let containers = object::list(deployment, &["spec", "template", "spec", "containers"]);
    object::name(deployment) == CONTROLLERS
        && containers.iter().any(|container| object::list(container, &["args"]).iter().any(|word| word == PACKAGES))
}

/// Removes the flags with which the controllers serve PackageManifests: a cluster with upstream OLM has a package server.
pub(super) fn remove_packages(deployment: &mut Value) {
    if let Some(Value::Array(words)) = deployment.pointer_mut("/spec/template/spec/containers/0/args") {
        let mut is_value = false;
        words.retain(|word| {
            let is_kept = !is_value && word != PACKAGES && word != PACKAGES_ADDRESS;
            is_value = word == PACKAGES_ADDRESS;
            is_kept
        });
    }
}

fn deployment(image: &str) -> Value {
    let labels = json!({ "app": CONTROLLERS });
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": 8081 } });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": CONTROLLERS, "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "replicas": 1,
            // A new pod is not ready before the old one has released the Lease.
            "strategy": { "type": "Recreate" },
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "serviceAccountName": CONTROLLERS,
                    "nodeSelector": { "kubernetes.io/os": "linux" },
                    "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
                    "containers": [{
                        "name": CONTROLLERS,
                        "image": image,
                        "command": [CONTROLLERS],
                        "args": [
                            "--namespace", NAMESPACE, "--health-address", "0.0.0.0:8081",
                            "--metrics-address", "0.0.0.0:8080",
                            // The controllers create the Service, the APIService and the certificate.
                            PACKAGES, PACKAGES_ADDRESS, format!("$(POD_IP):{PACKAGES_PORT}"),
                        ],
                        "env": [
                            // The image cache.
                            { "name": "HOME", "value": "/tmp" },
                            { "name": "POD_IP", "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "status.podIP" } } },
                        ],
                        "ports": [
                            { "name": "metrics", "containerPort": 8080, "protocol": "TCP" },
                            { "name": "packages", "containerPort": PACKAGES_PORT, "protocol": "TCP" },
                        ],
                        "livenessProbe": probe("/healthz"),
                        "readinessProbe": probe("/readyz"),
                        "resources": { "requests": { "cpu": "10m", "memory": "160Mi" } },
                        "securityContext": {
                            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                            "capabilities": { "drop": ["ALL"] },
                        },
                        "terminationMessagePolicy": "FallbackToLogsOnError",
                        "volumeMounts": [{ "name": "tmp", "mountPath": "/tmp" }],
                    }],
                    "volumes": [{ "name": "tmp", "emptyDir": {} }],
                },
            },
        },
    })
}
