//! A common interface of the two servers.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use olm_core::api::object::{Gvk, ObjectRef, gvk, name, namespace};
use olm_core::api::status::Status;
use olm_core::sim::{ApiServer, Patch, Preconditions, Propagation};
use olm_tests::control_plane::ControlPlane;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The kinds of the scripts that are cluster-scoped, and all plurals.
const PLURALS: &[(&str, &str, bool)] = &[
    ("APIService", "apiservices", false),
    ("CatalogSource", "catalogsources", true),
    ("ClusterServiceVersion", "clusterserviceversions", true),
    ("InstallPlan", "installplans", true),
    ("OperatorCondition", "operatorconditions", true),
    ("OperatorGroup", "operatorgroups", true),
    ("Subscription", "subscriptions", true),
    ("ClusterRole", "clusterroles", false),
    ("ClusterRoleBinding", "clusterrolebindings", false),
    ("ConfigMap", "configmaps", true),
    ("CustomResourceDefinition", "customresourcedefinitions", false),
    ("Deployment", "deployments", true),
    ("Event", "events", true),
    ("Job", "jobs", true),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false),
    ("Namespace", "namespaces", false),
    ("NetworkPolicy", "networkpolicies", true),
    ("Pod", "pods", true),
    ("PodDisruptionBudget", "poddisruptionbudgets", true),
    ("PriorityClass", "priorityclasses", false),
    ("ReplicaSet", "replicasets", true),
    ("Role", "roles", true),
    ("RoleBinding", "rolebindings", true),
    ("Rose", "roses", true),
    ("Secret", "secrets", true),
    ("Service", "services", true),
    ("ServiceAccount", "serviceaccounts", true),
    ("StatefulSet", "statefulsets", true),
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false),
];

/// How long a real cluster may take to reach a state that a script waits for.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The operations of a server that scripts use.
pub(crate) trait Server {
    fn create(&mut self, object: Value) -> Result<Value, Status>;
    fn update(&mut self, object: Value, subresource: Option<&str>) -> Result<Value, Status>;
    fn patch(&mut self, target: &ObjectRef, patch: Patch, subresource: Option<&str>) -> Result<Value, Status>;
    fn delete(
        &mut self,
        target: &ObjectRef,
        preconditions: Preconditions,
        propagation: Propagation,
    ) -> Result<Option<Value>, Status>;
    fn get(&mut self, target: &ObjectRef) -> Option<Value>;
    /// Waits until the condition holds for the object (null if absent), and returns the object; on a timeout as an error.
    fn wait(&mut self, target: &ObjectRef, wanted: fn(&Value) -> bool) -> Result<Value, Value>;
}

/// The in-memory server with a virtual clock.
pub(crate) struct Sim {
    server: ApiServer,
    now: Timestamp,
}

impl Sim {
    pub(crate) fn start() -> Self {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let mut sim = Self { server: ApiServer::with_stock_objects(1, now).with_node("node", now), now };
        while sim.server.step(now) {}
        sim
    }
}

impl Server for Sim {
    fn create(&mut self, object: Value) -> Result<Value, Status> {
        self.server.create(object, self.now)
    }

    fn update(&mut self, object: Value, subresource: Option<&str>) -> Result<Value, Status> {
        self.server.update(object, subresource, self.now)
    }

    fn patch(&mut self, target: &ObjectRef, patch: Patch, subresource: Option<&str>) -> Result<Value, Status> {
        self.server.patch(target, patch, subresource, self.now)
    }

    fn delete(
        &mut self,
        target: &ObjectRef,
        preconditions: Preconditions,
        propagation: Propagation,
    ) -> Result<Option<Value>, Status> {
        self.server.delete(target, &preconditions, propagation, self.now)
    }

    fn get(&mut self, target: &ObjectRef) -> Option<Value> {
        self.server.get(target).cloned()
    }

    fn wait(&mut self, target: &ObjectRef, wanted: fn(&Value) -> bool) -> Result<Value, Value> {
        loop {
            while self.server.step(self.now) {}
            let found = self.get(target).unwrap_or_default();
            if wanted(&found) {
                return Ok(found);
            }
            match self.server.next_wakeup() {
                Some(next) => self.now = next,
                None => return Err(found),
            }
        }
    }
}

/// A real control plane.
pub(crate) struct Cluster {
    runtime: Runtime,
    client: Client,
}

impl Cluster {
    pub(crate) fn connect(plane: &ControlPlane) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig())?;
        let client = runtime.block_on(async {
            let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
            config.default_retry = false;
            anyhow::Ok(Client::try_from(config)?)
        });
        Ok(Self { runtime, client: client.context("cannot connect")? })
    }

    fn call(&self, method: &str, path: &str, content: &str, body: Option<&Value>) -> Result<Value, Status> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", content)
            .body(body.map_or_else(Vec::new, |body| serde_json::to_vec(body).unwrap()))
            .unwrap();
        match self.runtime.block_on(self.client.request::<Value>(request)) {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => Err(Status::new(status.code, &status.reason, status.message.clone())),
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }
}

fn plural(kind: &str) -> (&'static str, bool) {
    let found = PLURALS.iter().find(|(k, _, _)| *k == kind);
    found.map_or_else(|| panic!("no plural for {kind}"), |(_, plural, namespaced)| (*plural, *namespaced))
}

fn collection(gvk: &Gvk, namespace: &str) -> String {
    let base = if gvk.group.is_empty() { "/api/v1".into() } else { format!("/apis/{}", gvk.api_version()) };
    let (plural, namespaced) = plural(&gvk.kind);
    if namespaced { format!("{base}/namespaces/{namespace}/{plural}") } else { format!("{base}/{plural}") }
}

fn path(target: &ObjectRef, subresource: Option<&str>) -> String {
    let object = format!("{}/{}", collection(&target.gvk, &target.namespace), target.name);
    subresource.map_or_else(|| object.clone(), |part| format!("{object}/{part}"))
}

impl Server for Cluster {
    fn create(&mut self, object: Value) -> Result<Value, Status> {
        self.call("POST", &collection(&gvk(&object), namespace(&object)), "application/json", Some(&object))
    }

    fn update(&mut self, object: Value, subresource: Option<&str>) -> Result<Value, Status> {
        self.call("PUT", &path(&ObjectRef::from_object(&object), subresource), "application/json", Some(&object))
    }

    fn patch(&mut self, target: &ObjectRef, patch: Patch, subresource: Option<&str>) -> Result<Value, Status> {
        let path = path(target, subresource);
        let (content, path, body) = match patch {
            Patch::Merge(body) => ("merge-patch+json", path, body),
            Patch::Json(body) => ("json-patch+json", path, body),
            Patch::Strategic(body) => ("strategic-merge-patch+json", path, body),
            Patch::Apply { object, manager, force } => {
                ("apply-patch+yaml", format!("{path}?fieldManager={manager}&force={force}"), object)
            }
        };
        self.call("PATCH", &path, &format!("application/{content}"), Some(&body))
    }

    fn delete(
        &mut self,
        target: &ObjectRef,
        preconditions: Preconditions,
        propagation: Propagation,
    ) -> Result<Option<Value>, Status> {
        let Preconditions { uid, resource_version } = preconditions;
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": format!("{propagation:?}"),
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
        });
        let answer = self.call("DELETE", &path(target, None), "application/json", Some(&options))?;
        // The response to a completed deletion is a Status, or the deleted object.
        let held = answer["kind"] != "Status" && self.get(target).is_some();
        Ok(held.then_some(answer))
    }

    fn get(&mut self, target: &ObjectRef) -> Option<Value> {
        self.call("GET", &path(target, None), "application/json", None).ok()
    }

    fn wait(&mut self, target: &ObjectRef, wanted: fn(&Value) -> bool) -> Result<Value, Value> {
        let (plural, namespaced) = plural(&target.gvk.kind);
        let Gvk { group, version, kind } = &target.gvk;
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let api: Api<DynamicObject> = if namespaced {
            Api::namespaced_with(self.client.clone(), &target.namespace, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        };
        let is_wanted = |object: Option<&DynamicObject>| {
            wanted(&object.map(|object| serde_json::to_value(object).unwrap()).unwrap_or_default())
        };
        let waited = self
            .runtime
            .block_on(async { tokio::time::timeout(TIMEOUT, await_condition(api, &target.name, is_wanted)).await });
        let found = self.get(target).unwrap_or_default();
        if matches!(waited, Ok(Ok(_))) { Ok(found) } else { Err(found) }
    }
}

/// Returns the object with that name in the namespace of the script.
pub(crate) fn target(object: &Value) -> ObjectRef {
    ObjectRef { name: name(object).to_owned(), ..ObjectRef::from_object(object) }
}
