//! The manifests of the objects that serve a catalog (olm-behaviour/catalogsource.md#catalog-pods,
//! olm-behaviour/catalogsource.md#catalog-pod-spec, olm-behaviour/catalogsource.md#configmap-catalogs).

use serde_json::{Map, Value, json};

use crate::api::catalog_source::{CatalogSource, pull_policy};
use crate::api::go_json::GoType;
use crate::api::hash::deep_hash;
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::settings::CatalogPods;

/// The port of all registries.
pub(super) const PORT: u16 = 50051;
pub(super) const CATALOG: &str = "olm.catalogSource";
pub(super) const MANAGED: &str = "olm.managed";
pub(super) const POD_HASH: &str = "olm.pod-spec-hash";
pub(super) const SERVICE_HASH: &str = "olm.service-spec-hash";
/// The label with the revision of the ConfigMap that a pod serves.
pub(super) const REVISION: &str = "olm.configMapResourceVersion";
const PRIORITY_CLASS: &str = "operatorframework.io/priorityclass";

/// The kind of owner reference to the CatalogSource.
#[derive(Clone, Copy)]
enum Owner {
    /// Controller that blocks a foreground deletion.
    Holding,
    /// Controller.
    Controller,
    /// Not a controller.
    Loose,
}

/// The served content: an image, or a revision of a ConfigMap.
#[derive(Clone, Copy)]
pub(super) enum Served<'a> {
    Image(&'a str),
    ConfigMap { name: &'a str, revision: &'a str },
}

/// The manifests for a CatalogSource.
#[derive(Clone, Copy)]
pub(super) struct Manifests<'a> {
    pub(super) source: &'a Value,
    pub(super) served: Served<'a>,
    pub(super) pods: &'a CatalogPods,
}

impl Manifests<'_> {
    fn name(&self) -> &str {
        object::name(self.source)
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, labels: &[(&str, &str)], owner: Owner) -> Value {
        let mut reference = object::owner_reference(self.source, !matches!(owner, Owner::Loose));
        reference["blockOwnerDeletion"] = matches!(owner, Owner::Holding).into();
        let labels: Map<String, Value> = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).into())).collect();
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "name": name, "namespace": object::namespace(self.source), "labels": labels,
                "ownerReferences": [reference],
            },
        })
    }

    /// Returns the labels by which Service and NetworkPolicy select the pod.
    fn pod_labels(&self) -> Map<String, Value> {
        let mut labels =
            Map::from_iter([(CATALOG.to_owned(), self.name().into()), (MANAGED.to_owned(), "true".into())]);
        if let Served::ConfigMap { revision, .. } = self.served {
            labels.insert(REVISION.to_owned(), revision.into());
        }
        labels
    }

    /// Returns the policies for traffic to the pod, and for pods that unpack bundles.
    pub(super) fn network_policies(&self) -> [Value; 2] {
        let dns: Vec<Value> = [53, 5353]
            .iter()
            .flat_map(|port| ["TCP", "UDP"].map(|protocol| json!({ "port": port, "protocol": protocol })))
            .collect();
        let egress = json!([{}, { "ports": dns }]);
        let mut server = json!({
            "podSelector": { "matchLabels": self.pod_labels() },
            "ingress": [{ "ports": [{ "port": PORT, "protocol": "TCP" }] }],
            "policyTypes": ["Ingress", "Egress"],
        });
        if matches!(self.served, Served::ConfigMap { .. }) {
            server["egress"].clone_from(&egress);
        }
        let unpack = json!({
            "podSelector": { "matchExpressions": [
                { "key": "operatorframework.io/bundle-unpack-ref", "operator": "Exists" },
                { "key": MANAGED, "operator": "In", "values": ["true"] },
            ] },
            "egress": egress,
            "policyTypes": ["Ingress", "Egress"],
        });
        let labels = [(CATALOG, self.name()), (MANAGED, "true")];
        [("grpc-server", server), ("unpack-bundles", unpack)].map(|(what, spec)| {
            let name = format!("{}-{what}", self.name());
            let mut policy = self.object("networking.k8s.io/v1", "NetworkPolicy", &name, &labels, Owner::Loose);
            policy["spec"] = spec;
            policy
        })
    }

    /// Returns the pod's ServiceAccount.
    pub(super) fn service_account(&self) -> Value {
        let labels = [(MANAGED, "true")];
        match self.served {
            Served::ConfigMap { .. } => {
                let name = format!("{}-configmap-server", self.name());
                self.object("v1", "ServiceAccount", &name, &labels, Owner::Loose)
            }
            Served::Image(_) => {
                let mut account = self.object("v1", "ServiceAccount", self.name(), &labels, Owner::Holding);
                let secrets = CatalogSource::new(self.source).secrets();
                let secrets: Vec<Value> = secrets.map(|name| json!({ "name": name })).collect();
                if !secrets.is_empty() {
                    account["imagePullSecrets"] = secrets.into();
                }
                account
            }
        }
    }

    /// Returns the Role and RoleBinding with which the pod reads its ConfigMap.
    pub(super) fn access(&self) -> Vec<Value> {
        let Served::ConfigMap { name: config_map, .. } = self.served else { return Vec::new() };
        let labels = [(MANAGED, "true")];
        let api_version = "rbac.authorization.k8s.io/v1";
        let reader = format!("{}-configmap-reader", self.name());
        let mut role = self.object(api_version, "Role", &reader, &labels, Owner::Loose);
        role["rules"] = json!([
            { "verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [config_map] },
        ]);
        let name = format!("{}-server-configmap-reader", self.name());
        let mut binding = self.object(api_version, "RoleBinding", &name, &labels, Owner::Loose);
        binding["subjects"] = json!([{
            "kind": "ServiceAccount", "name": format!("{}-configmap-server", self.name()),
            "namespace": object::namespace(self.source),
        }]);
        binding["roleRef"] = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": reader });
        vec![role, binding]
    }

    /// Returns the name of the Service.
    pub(super) fn service_name(&self) -> String {
        match self.served {
            Served::Image(_) => self.name().replace('.', "-"),
            Served::ConfigMap { .. } => self.name().to_owned(),
        }
    }

    pub(super) fn service(&self) -> Value {
        let selector = match self.served {
            Served::Image(_) => json!({ CATALOG: self.name(), MANAGED: "true" }),
            Served::ConfigMap { .. } => json!({ CATALOG: self.name() }),
        };
        let spec = json!({
            "ports": [{ "name": "grpc", "port": PORT, "targetPort": PORT }],
            "selector": selector,
        });
        let hash = deep_hash(GoType::SERVICE_SPEC, &spec);
        let labels = [(MANAGED, "true"), (SERVICE_HASH, hash.as_str())];
        let mut service = self.object("v1", "Service", &self.service_name(), &labels, Owner::Loose);
        service["spec"] = spec;
        service
    }

    /// Returns the pod, given its existing ServiceAccount, and whether the namespace enforces restricted pods.
    pub(super) fn pod(&self, account: &Value, restricted_namespace: bool) -> Value {
        let config = |path: &[&str]| object::at(self.source, &[&["spec", "grpcPodConfig"], path].concat()).clone();
        let mut spec = self.pod_spec(&config);
        match self.served {
            Served::Image(_) => {
                spec["serviceAccountName"] = object::name(account).into();
                if !object::list(account, &["imagePullSecrets"]).is_empty() {
                    spec["imagePullSecrets"] = account["imagePullSecrets"].clone();
                }
            }
            Served::ConfigMap { .. } => {}
        }
        let security = config(&["securityContextConfig"]);
        let is_restricted = match security.as_str().filter(|s| !s.is_empty()) {
            Some(chosen) => chosen == "restricted",
            None => restricted_namespace,
        };
        if is_restricted {
            self.restrict(&mut spec);
        }
        let hash = deep_hash(GoType::POD_SPEC, &spec);
        // Both are set after the hash, which does not include them.
        if let Served::ConfigMap { name, .. } = self.served {
            let namespace = object::namespace(self.source);
            spec["containers"][0]["command"] = json!(["configmap-server", "-c", name, "-n", namespace]);
            spec["serviceAccountName"] = object::name(account).into();
        }
        let mut pod = self.object("v1", "Pod", "", &[], Owner::Controller);
        let mut annotations = Metadata::new(self.source).annotations().as_object().cloned().unwrap_or_default();
        annotations.insert("cluster-autoscaler.kubernetes.io/safe-to-evict".to_owned(), "true".into());
        let mut labels = self.pod_labels();
        labels.insert(POD_HASH.to_owned(), hash.into());
        let metadata = object::map_mut(&mut pod, &["metadata"]);
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), format!("{}-", self.name()).into());
        metadata.insert("annotations".to_owned(), annotations.into());
        metadata.insert("labels".to_owned(), labels.into());
        pod["spec"] = spec;
        pod
    }

    fn pod_spec(&self, config: &impl Fn(&[&str]) -> Value) -> Value {
        let (name, image) = match self.served {
            Served::Image(image) => ("registry-server", image),
            Served::ConfigMap { .. } => ("configmap-registry-server", self.pods.config_map_server_image.as_str()),
        };
        let probe = || json!({ "grpc": { "port": PORT, "service": null }, "timeoutSeconds": 5 });
        let (mut readiness, mut liveness, mut startup) = (probe(), probe(), probe());
        readiness["initialDelaySeconds"] = 5.into();
        liveness["initialDelaySeconds"] = if matches!(self.served, Served::Image(_)) { 10 } else { 5 }.into();
        startup["failureThreshold"] = 15.into();
        startup["periodSeconds"] = 10.into();
        let mut container = json!({
            "name": name,
            "image": image,
            "ports": [{ "name": "grpc", "containerPort": PORT }],
            "readinessProbe": readiness,
            "livenessProbe": liveness,
            "startupProbe": startup,
            "resources": { "requests": { "cpu": "10m", "memory": "50Mi" } },
            "securityContext": { "readOnlyRootFilesystem": false },
            "imagePullPolicy": pull_policy(image),
            "terminationMessagePolicy": "FallbackToLogsOnError",
        });
        if let Some(target) = config(&["memoryTarget"]).as_str().filter(|t| !t.is_empty()) {
            container["resources"]["requests"]["memory"] = target.into();
            // Go expects the unit with the suffix B.
            container["env"] = json!([{ "name": "GOMEMLIMIT", "value": format!("{target}B") }]);
        }
        let mut spec = json!({
            "containers": [container],
            "nodeSelector": { "kubernetes.io/os": "linux" },
        });
        for key in ["nodeSelector", "tolerations", "affinity", "priorityClassName"] {
            let given = config(&[key]);
            if !given.is_null() {
                spec[key] = given;
            }
        }
        if let Some(class) = object::annotation(self.source, PRIORITY_CLASS).filter(|c| !c.is_empty()) {
            spec["priorityClassName"] = class.into();
        }
        let extract = config(&["extractContent"]);
        if matches!(self.served, Served::Image(_)) && !extract.is_null() {
            self.extract(&mut spec, image, &extract);
        }
        spec
    }

    /// The image contains no server: its content is copied, and served by opm.
    fn extract(&self, spec: &mut Value, image: &str, extract: &Value) {
        let (utilities, content) = ("utilities", "catalog-content");
        let mut volumes =
            vec![json!({ "name": utilities, "emptyDir": {} }), json!({ "name": content, "emptyDir": {} })];
        let mounts = json!([
            { "name": utilities, "mountPath": "/utilities" },
            { "name": content, "mountPath": "/extracted-catalog" },
        ]);
        let (catalog, cache) = (object::text(extract, &["catalogDir"]), object::text(extract, &["cacheDir"]));
        let mut copied =
            vec![format!("--catalog.from={catalog}"), "--catalog.to=/extracted-catalog/catalog".to_owned()];
        let mut served = vec!["serve".to_owned(), "/extracted-catalog/catalog".to_owned()];
        // The hash depends on the order, which is OLM's.
        let mut server_mounts = Vec::new();
        if cache.is_empty() {
            volumes.push(json!({ "name": "tmpdir", "emptyDir": {} }));
            server_mounts.push(json!({ "name": "tmpdir", "mountPath": "/tmp/" }));
        } else {
            copied.extend([format!("--cache.from={cache}"), "--cache.to=/extracted-catalog/cache".to_owned()]);
            served.push("--cache-dir=/extracted-catalog/cache".to_owned());
        }
        server_mounts.push(mounts[1].clone());
        spec["volumes"] = volumes.into();
        spec["initContainers"] = json!([
            {
                "name": "extract-utilities", "image": self.pods.util_image, "command": ["cp"],
                "args": ["/bin/copy-content", "/utilities/copy-content"],
                "volumeMounts": [mounts[0]], "terminationMessagePolicy": "FallbackToLogsOnError",
                "securityContext": { "readOnlyRootFilesystem": true },
            },
            {
                "name": "extract-content", "image": image, "imagePullPolicy": pull_policy(image),
                "command": ["/utilities/copy-content"], "args": copied,
                "volumeMounts": mounts, "terminationMessagePolicy": "FallbackToLogsOnError",
                "securityContext": { "readOnlyRootFilesystem": true },
            },
        ]);
        let container = &mut spec["containers"][0];
        container["image"] = self.pods.opm_image.as_str().into();
        container["imagePullPolicy"] = pull_policy(&self.pods.opm_image).into();
        container["command"] = json!(["/bin/opm"]);
        container["args"] = json!(served);
        container["volumeMounts"] = server_mounts.into();
        container["securityContext"]["readOnlyRootFilesystem"] = true.into();
    }

    fn restrict(&self, spec: &mut Value) {
        spec["securityContext"] = json!({ "seccompProfile": { "type": "RuntimeDefault" } });
        if self.pods.set_workload_user_id {
            spec["securityContext"]["runAsUser"] = 1001.into();
            spec["securityContext"]["runAsNonRoot"] = true.into();
        }
        for kind in ["containers", "initContainers"] {
            for container in spec.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten() {
                container["securityContext"]["allowPrivilegeEscalation"] = false.into();
                container["securityContext"]["capabilities"] = json!({ "drop": ["ALL"] });
            }
        }
    }
}

/// Returns whether a pod runs the expected images.
pub(super) fn has_images(pod: &Value, wanted: &Value) -> bool {
    let images = |object: &Value, kind: &str| -> Vec<String> {
        object::list(object, &["spec", kind]).iter().map(|c| object::text(c, &["image"]).to_owned()).collect()
    };
    ["containers", "initContainers"].iter().all(|kind| images(pod, kind) == images(wanted, kind))
}
