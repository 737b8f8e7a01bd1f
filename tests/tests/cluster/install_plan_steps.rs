//! InstallPlans on a real API server that are larger than those of the scenarios: time and memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::{Request, WatchEvent};
use olm_core::api::crd;
use olm_tests::control_plane::{ControlPlane, Options, skipped};
use olm_tests::plugin::binary;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Takes seconds on an idle machine.
const TIMEOUT: Duration = Duration::from_mins(2);
const PLANS: &str = "/apis/operators.coreos.com/v1alpha1/namespaces/garden/installplans";
const ROSES: &str = "/apis/garden.example.com/v1/namespaces/garden/roses";

/// A control plane with `kubectl olm run`.
struct Cluster {
    process: Child,
    client: kube::Client,
    runtime: Runtime,
    _plane: ControlPlane,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Cluster {
    /// Starts a cluster with a namespace `garden` that has an OperatorGroup, and these CRDs in addition to OLM's.
    fn start(crds: &[Value]) -> Self {
        let binary = binary("kubectl-olm-run").unwrap();
        let crds = crd::all().into_iter().chain(crds.iter().cloned()).collect();
        let options = Options { scheduler: false, kwok: false, crds, ..Options::default() };
        let plane = ControlPlane::start_with(options).unwrap();
        let runtime = Runtime::new().unwrap();
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
        let config = runtime.block_on(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()));
        let client = runtime.block_on(async { kube::Client::try_from(config.unwrap()).unwrap() });
        let process = Command::new(binary)
            .args(["--no-lease"])
            .env("KUBECONFIG", plane.kubeconfig())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let cluster = Self { process, client, runtime, _plane: plane };
        cluster.create("/api/v1/namespaces", &json!({ "metadata": { "name": "garden" } }));
        let group = json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": { "name": "garden" },
            "spec": { "targetNamespaces": ["garden"] },
        });
        cluster.create("/apis/operators.coreos.com/v1/namespaces/garden/operatorgroups", &group);
        cluster
    }

    fn create(&self, path: &str, object: &Value) {
        self.runtime.block_on(create(&self.client, path, object)).unwrap();
    }

    fn patch(&self, path: &str, name: &str, subresource: &str, patch: &Value) {
        let request = Request::new(path);
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let request = match subresource {
            "" => request.patch(name, &params, &patch),
            part => request.patch_subresource(part, name, &params, &patch),
        };
        self.runtime.block_on(self.client.request::<Value>(request.unwrap())).unwrap();
    }

    /// Creates an approved InstallPlan with these steps.
    fn install(&self, steps: &[Value]) {
        let spec = json!({
            "approval": "Automatic", "approved": true, "clusterServiceVersionNames": ["rose.v1.0.0"], "generation": 1,
        });
        let plan = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": { "name": "install-it" }, "spec": spec,
        });
        self.create(PLANS, &plan);
        let status = json!({ "status": { "phase": "Installing", "plan": steps, "catalogSources": ["main"] } });
        self.patch(PLANS, "install-it", "status", &status);
    }

    /// Waits until the condition holds for the InstallPlan's status, and returns the plan.
    fn wait(&self, holds: impl Fn(&Value) -> bool) -> Value {
        let reached = async { tokio::time::timeout(TIMEOUT, reached(&self.client, &holds)).await };
        let found = self.runtime.block_on(reached);
        found.unwrap_or_else(|_| panic!("not reached, but {}", self.runtime.block_on(plan(&self.client)).0["status"]))
    }

    /// Returns the peak memory of the controllers in bytes.
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

async fn create(client: &kube::Client, path: &str, object: &Value) -> kube::Result<Value> {
    let request = Request::new(path).create(&PostParams::default(), object.to_string().into_bytes()).unwrap();
    client.request(request).await
}

async fn plan(client: &kube::Client) -> (Value, String) {
    let list: Value = client.request(Request::new(PLANS).list(&ListParams::default()).unwrap()).await.unwrap();
    (list["items"][0].clone(), list["metadata"]["resourceVersion"].as_str().unwrap().to_owned())
}

async fn reached(client: &kube::Client, holds: &impl Fn(&Value) -> bool) -> Value {
    let (plan, version) = plan(client).await;
    if holds(&plan["status"]) {
        return plan;
    }
    let watch = Request::new(PLANS).watch(&WatchParams::default(), &version).unwrap();
    let mut events = std::pin::pin!(client.request_events::<Value>(watch).await.unwrap());
    while let Some(event) = events.next().await {
        if let WatchEvent::Modified(plan) = event.unwrap()
            && holds(&plan["status"])
        {
            return plan;
        }
    }
    panic!("the watch has ended");
}

fn is_complete(status: &Value) -> bool {
    status["phase"] == "Complete"
}

fn step(api_version: &str, kind: &str, manifest: &Value) -> Value {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    json!({
        "resolving": "rose.v1.0.0", "status": "Unknown",
        "resource": {
            "sourceName": "main", "sourceNamespace": "olm", "group": group, "version": version, "kind": kind,
            "name": manifest["metadata"]["name"], "manifest": manifest.to_string(),
        },
    })
}

fn csv() -> Value {
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": { "name": "rose.v1.0.0" },
        "spec": {
            "displayName": "Rose", "version": "1.0.0", "installModes": [{ "type": "OwnNamespace", "supported": true }],
            "install": { "strategy": "deployment", "spec": { "deployments": [] } },
        },
    });
    step("operators.coreos.com/v1alpha1", "ClusterServiceVersion", &csv)
}

/// Returns the CRD of roses with these required fields.
fn roses(required: &[&str]) -> Value {
    let spec = json!({ "type": "object", "required": required, "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "roses.garden.example.com" },
        "spec": {
            "group": "garden.example.com", "scope": "Namespaced",
            "names": { "kind": "Rose", "listKind": "RoseList", "plural": "roses", "singular": "rose" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    })
}

#[test]
fn independent_steps_are_executed_in_parallel() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start(&[]);
    let map = |n| {
        let metadata = json!({ "name": format!("rose-{n:03}") });
        step(
            "v1",
            "ConfigMap",
            &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "n": "1" } }),
        )
    };
    let steps: Vec<Value> = std::iter::once(csv()).chain((0..100).map(map)).collect();
    let began = Instant::now();
    cluster.install(&steps);
    let done = cluster.wait(is_complete);
    println!("100 ConfigMaps took {:?}", began.elapsed());
    let steps = done["status"]["plan"].as_array().unwrap();
    assert_eq!(steps.len(), 101);
    assert!(steps.iter().all(|step| step["status"] == "Created"), "{steps:?}");
}

#[test]
fn ten_thousand_custom_resources_are_checked_in_pages_and_again_after_a_change() {
    const ROSES_THERE: usize = 10_000;
    /// The size of each in bytes, large enough for the total to be noticeable.
    const BULK: usize = 4_000;
    /// The additional memory that the check may use.
    const BOUND: u64 = 48 << 20;
    if skipped() {
        return;
    }
    let cluster = Cluster::start(&[roses(&[])]);
    let bulk = "r".repeat(BULK);
    let rose = |n: usize| {
        let mut spec = json!({ "bulk": bulk });
        if n >= 3 {
            spec["petals"] = 5.into();
        }
        let name = format!("rose-{n:05}");
        json!({ "apiVersion": "garden.example.com/v1", "kind": "Rose", "metadata": { "name": name }, "spec": spec })
    };
    let all = stream::iter((0..ROSES_THERE).map(|n| {
        let (client, rose) = (cluster.client.clone(), rose(n));
        async move { create(&client, ROSES, &rose).await }
    }));
    let began = Instant::now();
    cluster.runtime.block_on(all.buffer_unordered(32).try_for_each(async |_| Ok(()))).unwrap();
    println!("{ROSES_THERE} roses took {:?}", began.elapsed());

    let (before, began) = (cluster.peak(), Instant::now());
    cluster.install(&[csv(), step("apiextensions.k8s.io/v1", "CustomResourceDefinition", &roses(&["petals"]))]);
    let refused = cluster.wait(|status| status["message"].as_str().is_some_and(|m| m.contains("petals")));
    let grown = cluster.peak() - before;
    println!("they were checked in {:?}, with {} MiB more", began.elapsed(), grown >> 20);
    assert!(grown < BOUND, "{} MiB of {} MiB", grown >> 20, (ROSES_THERE * BULK) >> 20);
    let message = refused["status"]["message"].as_str().unwrap();
    for named in ["rose-00000", "rose-00001", "rose-00002", "spec.petals: Required value"] {
        assert!(message.contains(named), "{message}");
    }
    assert!(!message.contains("rose-00003"), "{message}");

    let began = Instant::now();
    for n in 0..3 {
        cluster.patch(ROSES, &format!("rose-{n:05}"), "", &json!({ "spec": { "petals": 5 } }));
    }
    cluster.wait(is_complete);
    println!("after they were fixed it continued within {:?}", began.elapsed());
}
