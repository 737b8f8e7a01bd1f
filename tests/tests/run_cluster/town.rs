//! A cluster with a catalog of roses, gardens that subscribe to one, and an API server with an audit log.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use olm_core::api::crd;
use olm_core::api::object::{self, Gvk};
use olm_shell::cluster::api::{Api, ListQuery, Page, Resource, WatchEvent};
use olm_shell::tls::install_crypto_provider;
use olm_tests::control_plane::{ControlPlane, Options};
use olm_tests::faulty_api::{Call, Fault, FaultyApi};
use olm_tests::plugin::binary;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::processes::{Running, ends};
use super::witness::{Term, WRITER, judge};

/// Waiting for a holder that does not respond takes a minute; the rest is a margin for busy machines.
pub(super) const TIMEOUT: Duration = Duration::from_mins(4);
/// The interval at which work is added during a test of the Lease's holder.
const PACE: Duration = Duration::from_millis(1500);

const CATALOG: &str = "schema: olm.package\nname: rose\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: rose\n\
     name: stable\nentries: [{name: rose.v1.0.0}]\n---\nschema: olm.bundle\npackage: rose\nname: rose.v1.0.0\nimage: ''\nproperties:\n\
     - {type: olm.package, value: {packageName: rose, version: 1.0.0}}\n";

/// Returns a bundle without anything that needs a pod.
fn csv() -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": { "name": "rose.v1.0.0" },
        "spec": {
            "displayName": "Rose", "version": "1.0.0", "installModes": [{ "type": "OwnNamespace", "supported": true }],
            "install": { "strategy": "deployment", "spec": { "deployments": [] } },
        },
    })
}

pub(super) fn resource(group: &str, version: &str, kind: &str, plural: &str) -> Resource {
    Resource { gvk: Gvk::new(group, version, kind), plural: plural.to_owned(), namespaced: true }
}

/// A cluster with a catalog of roses, and gardens whose Subscriptions install one each.
pub(super) struct Town {
    pub(super) plane: ControlPlane,
    pub(super) api: Api,
    pub(super) runtime: Runtime,
    pub(super) catalog: TempDir,
    pub(super) gardens: Arc<AtomicUsize>,
}

impl Town {
    pub(super) fn new() -> Self {
        binary("kubectl-olm-run").unwrap();
        let options = Options { scheduler: false, kwok: false, audit: true, crds: crd::all(), ..Options::default() };
        let plane = ControlPlane::start_with(options).unwrap();
        let catalog = tempfile::tempdir().unwrap();
        let data = serde_json::to_vec(&csv()).unwrap();
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, data);
        let object = format!("- {{type: olm.bundle.object, value: {{data: {encoded}}}}}\n");
        std::fs::write(catalog.path().join("catalog.yaml"), CATALOG.to_owned() + &object).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        install_crypto_provider();
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
        let api = runtime.block_on(async {
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
            let api = Api::new(kube::Client::try_from(config).unwrap());
            api.create(&namespace("olm")).await.unwrap();
            api
        });
        Self { plane, api, runtime, catalog, gardens: Arc::default() }
    }

    /// Returns the kubeconfig that identifies the n-th process in the audit log.
    pub(super) fn kubeconfig(&self, number: usize) -> PathBuf {
        self.plane.kubeconfig_for(&format!("{WRITER}{number}"), Some("system:masters")).unwrap()
    }

    pub(super) fn run(&self, kubeconfig: PathBuf) -> Running {
        Running::start(&kubeconfig, &["--catalog", &format!("main={}", self.catalog.path().display())])
    }

    /// Runs a process until nothing is left to do, and returns its exit code and output.
    pub(super) fn once(&self, number: usize) -> (Option<i32>, String) {
        let catalog = format!("main={}", self.catalog.path().display());
        ends(&self.kubeconfig(number), &["--once", "--catalog", &catalog])
    }

    pub(super) fn start(&self, number: usize) -> Running {
        self.run(self.kubeconfig(number))
    }

    /// Starts a process that connects to the API server through a proxy.
    pub(super) fn start_behind(
        &self,
        number: usize,
        judge: impl FnMut(&Call) -> Option<Fault> + Send + 'static,
    ) -> (Running, FaultyApi) {
        let proxy = self.runtime.block_on(FaultyApi::start(&self.kubeconfig(number), judge)).unwrap();
        (self.run(proxy.kubeconfig()), proxy)
    }

    /// Adds a garden with a Subscription.
    pub(super) fn subscribe(&self) {
        self.runtime.block_on(plant(&self.api, &self.gardens));
    }

    /// Adds one garden after the other during `act`.
    pub(super) fn meanwhile(&self, act: impl FnOnce()) {
        let (api, gardens) = (self.api.clone(), self.gardens.clone());
        let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
        let load = self.runtime.spawn(async move {
            let mut pace = tokio::time::interval(PACE);
            loop {
                tokio::select! {
                    // It also ends if the test fails.
                    _ = &mut stopped => return,
                    _ = pace.tick() => {}
                }
                plant(&api, &gardens).await;
            }
        });
        act();
        drop(stop);
        self.runtime.block_on(load).unwrap();
    }

    pub(super) fn create(&self, object: &Value) {
        self.runtime.block_on(self.api.create(object)).unwrap();
    }

    /// Waits until the condition holds for the objects of a kind, by namespace and name.
    pub(super) fn until(&self, resource: &Resource, are_so: impl Fn(&BTreeMap<(String, String), Value>) -> bool) {
        let key = |object: &Value| (object::namespace(object).to_owned(), object::name(object).to_owned());
        let follow = async {
            loop {
                let (listed, version) =
                    self.api.list(&ListQuery::all(resource)).await.and_then(Page::readable).unwrap();
                let mut known: BTreeMap<_, _> = listed.into_iter().map(|object| (key(&object), object)).collect();
                let mut events = std::pin::pin!(self.api.watch(&ListQuery::all(resource), &version).await.unwrap());
                loop {
                    if are_so(&known) {
                        return;
                    }
                    match events.next().await {
                        Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                            known.insert(key(&object), object);
                        }
                        Some(Ok(WatchEvent::Deleted(object))) => drop(known.remove(&key(&object))),
                        Some(Ok(_)) => {}
                        Some(Err(_)) | None => break,
                    }
                }
            }
        };
        let waited = self.runtime.block_on(async { tokio::time::timeout(TIMEOUT, follow).await });
        waited.unwrap_or_else(|_| panic!("{} do not reach the expected state", resource.plural));
    }

    /// Waits until every garden has an InstallPlan.
    pub(super) fn plans(&self) {
        let plans = resource("operators.coreos.com", "v1alpha1", "InstallPlan", "installplans");
        self.until(&plans, |plans| plans.len() >= self.gardens.load(Ordering::Relaxed));
    }

    /// Waits until every garden has its rose.
    pub(super) fn blooms(&self) {
        let csvs = resource("operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "clusterserviceversions");
        self.until(&csvs, |csvs| {
            let blooms = |csv: &Value| object::text(csv, &["status", "phase"]) == "Succeeded";
            let blooming = csvs.iter().filter(|((namespace, _), csv)| !namespace.starts_with("hole-") && blooms(csv));
            blooming.count() == self.gardens.load(Ordering::Relaxed)
        });
    }

    /// Waits until the condition holds for the holder of the Lease.
    pub(super) fn until_held(&self, is_so: impl Fn(&str) -> bool) -> String {
        let held = Mutex::new(String::new());
        self.until(&leases(), |leases| {
            let lease = leases.values().find(|lease| object::name(lease) == "kubectl-olm-run");
            let holder = lease.map(|lease| object::text(lease, &["spec", "holderIdentity"]).to_owned());
            holder.is_some_and(|holder| {
                holder.clone_into(&mut held.lock().unwrap());
                is_so(&holder)
            })
        });
        held.into_inner().unwrap()
    }

    /// Checks that every garden has one InstallPlan, and that these writers wrote one after the other. Prints the number of
    /// writes.
    pub(super) fn judge(&self, name: &str, writers: &[usize]) {
        let plans = resource("operators.coreos.com", "v1alpha1", "InstallPlan", "installplans");
        let plans = self.runtime.block_on(self.api.list(&ListQuery::all(&plans))).unwrap().objects;
        let mut by_garden: BTreeMap<&str, usize> = BTreeMap::new();
        for plan in &plans {
            *by_garden.entry(object::namespace(plan)).or_default() += 1;
        }
        let (terms, complaints) = judge(&self.plane.audit().unwrap());
        assert!(complaints.is_empty(), "{name}: {complaints:#?}\n{terms:#?}");
        assert!(by_garden.values().all(|plans| *plans == 1), "{name}: {by_garden:?}\n{terms:#?}");
        assert_eq!(by_garden.len(), self.gardens.load(Ordering::Relaxed), "{name}");
        let expected: Vec<String> = writers.iter().map(|number| format!("{WRITER}{number}")).collect();
        let found: Vec<&str> = terms.iter().map(|Term { writer, .. }| &**writer).collect();
        assert!(writers.is_empty() || found == expected, "{name}: {terms:#?}");
        let told: Vec<String> = terms.iter().map(|Term { writer, writes }| format!("{writer} {writes}")).collect();
        println!("{name}: {} gardens; writes: {}", by_garden.len(), told.join(", "));
    }
}

pub(super) fn leases() -> Resource {
    resource("coordination.k8s.io", "v1", "Lease", "leases")
}

pub(super) fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

pub(super) fn group(name: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": { "name": name, "namespace": name },
        "spec": { "targetNamespaces": [name] },
    })
}

pub(super) fn subscription(namespace: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "name": "rose", "namespace": namespace },
        "spec": { "name": "rose", "source": "main", "sourceNamespace": "olm", "channel": "stable" },
    })
}

async fn plant(api: &Api, gardens: &AtomicUsize) {
    let name = format!("garden-{}", gardens.fetch_add(1, Ordering::Relaxed) + 1);
    for object in [namespace(&name), group(&name), subscription(&name)] {
        api.create(&object).await.unwrap();
    }
}
