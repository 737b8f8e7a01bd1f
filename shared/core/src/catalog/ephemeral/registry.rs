//! The registry that serves an ephemeral catalog inside of the cluster, for controllers that cannot read its ConfigMaps.

use serde_json::{Value, json};

use super::super::parts::PART_KEY;
use super::{Ephemeral, LABEL};
use crate::api::catalog_source::pull_policy;

/// The port of the registry.
const PORT: u16 = 50051;

/// Where the ConfigMaps are mounted, and where the container writes the catalog.
const PARTS: &str = "/parts";
const CATALOG: &str = "/catalog";

/// The user of the container.
const USER: u16 = 1001;

/// The pod of a registry.
#[derive(Clone, Copy, Debug)]
pub struct RegistryPod<'i> {
    /// Its image, with opm, sh and gunzip.
    pub image: &'i str,
    /// Whether its user is set. OpenShift assigns one of the namespace, and refuses others.
    pub sets_user: bool,
}

impl Ephemeral {
    /// Returns the address of the registry.
    pub fn address(&self) -> String {
        format!("{}.{}.svc:{PORT}", self.service_name(), self.namespace)
    }

    /// Returns the name of the Service and the Deployment. The name of a CatalogSource may contain dots.
    fn service_name(&self) -> String {
        self.name.replace('.', "-")
    }

    /// Returns the Service and the Deployment of a registry.
    pub fn registry(&self, pod: RegistryPod<'_>) -> [Value; 2] {
        let selector = json!({ LABEL: self.name });
        let mut service = self.object("v1", "Service", &self.service_name());
        service["spec"] = json!({
            "ports": [{ "name": "grpc", "port": PORT, "protocol": "TCP", "targetPort": PORT }],
            "selector": selector,
        });
        let mut deployment = self.object("apps/v1", "Deployment", &self.service_name());
        deployment["spec"] = json!({
            "replicas": 1,
            "selector": { "matchLabels": selector },
            "template": { "metadata": { "labels": selector }, "spec": self.pod(pod) },
        });
        [service, deployment]
    }

    fn pod(&self, RegistryPod { image, sets_user }: RegistryPod<'_>) -> Value {
        let (mut volumes, mut mounts) = (Vec::new(), Vec::new());
        for (n, config_map) in self.config_map_names().into_iter().enumerate() {
            let name = format!("part-{n}");
            mounts.push(json!({ "name": name, "mountPath": format!("{PARTS}/{n}"), "readOnly": true }));
            volumes.push(json!({ "name": name, "configMap": { "name": config_map } }));
        }
        for (name, path) in [("catalog", CATALOG), ("tmp", "/tmp")] {
            mounts.push(json!({ "name": name, "mountPath": path }));
            volumes.push(json!({ "name": name, "emptyDir": {} }));
        }
        // opm reads files, and would read the links of a volume of a ConfigMap twice.
        let script = format!(
            "set -e; n=0; for part in {PARTS}/*/{PART_KEY}; do gunzip -c \"$part\" > {CATALOG}/$n.json; n=$((n+1)); done; \
             exec opm serve {CATALOG} --port {PORT}"
        );
        let probe = || json!({ "grpc": { "port": PORT }, "timeoutSeconds": 5 });
        let mut startup = probe();
        startup["failureThreshold"] = 15.into();
        startup["periodSeconds"] = 10.into();
        let mut spec = json!({
            "automountServiceAccountToken": false,
            "nodeSelector": { "kubernetes.io/os": "linux" },
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [{
                "name": "registry",
                "image": image,
                "imagePullPolicy": pull_policy(image),
                "command": ["sh", "-c", script],
                "ports": [{ "name": "grpc", "containerPort": PORT, "protocol": "TCP" }],
                "readinessProbe": probe(), "livenessProbe": probe(), "startupProbe": startup,
                "resources": { "requests": { "cpu": "10m", "memory": "50Mi" } },
                "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] }, "readOnlyRootFilesystem": true,
                },
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": mounts,
            }],
            "volumes": volumes,
        });
        if sets_user {
            spec["securityContext"]["runAsUser"] = USER.into();
        }
        spec
    }
}
