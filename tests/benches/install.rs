//! How long a Subscription takes until its ClusterServiceVersion has Succeeded, and what the controllers cost when idle.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::WatchEvent;
use olm_core::api::{crd, object};
use olm_shell::cli::Printer;
use olm_shell::cli::connect::install_crypto_provider;
use olm_shell::cluster::api::{Api, Resource};
use olm_tests::bench::{Times, release};
use olm_tests::control_plane::{ControlPlane, Options};
use olm_tests::data;
use serde_json::{Value, json};

/// Installs that are timed.
const RUNS: usize = 10;
/// How long nothing is asked of the controllers while their writes are counted.
const IDLE: Duration = Duration::from_mins(1);

fn main() -> Result<()> {
    let mut printer = Printer::stdio();
    let data = data::data().context(data::NO_DATA)?;
    let catalog = data.join("scenarios/real-etcd/catalogs/main");
    let binary = release("kubectl-olm-run")?;
    let plane = ControlPlane::start_with(Options { crds: crd::all(), ..Options::default() })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let api = runtime.block_on(client(plane.kubeconfig()))?;
    runtime.block_on(api.create(&namespace("olm")))?;
    let began = Instant::now();
    let mut controllers = Controllers::start(&binary, &plane, &catalog)?;
    let mut n = 0;
    let mut first = None;
    let times = Times::of(RUNS, || {
        n += 1;
        runtime.block_on(install(&api, &format!("bench-{n}")))?;
        first.get_or_insert_with(|| began.elapsed());
        Ok(())
    })?;
    printer.line(format_args!("Subscription created -> ClusterServiceVersion Succeeded (etcd 0.9.4): {times}"))?;
    printer.line(format_args!("process started -> first operator Succeeded: {:.1?}", first.unwrap_or_default()))?;
    let version = |api: &Api| runtime.block_on(newest(api));
    let before = (version(&api)?, controllers.cpu()?);
    runtime.block_on(async { tokio::time::timeout(IDLE, std::future::pending::<()>()).await.ok() });
    let after = (version(&api)?, controllers.cpu()?);
    printer.line(format_args!("resident memory after {} installs: {} MB", RUNS + 1, controllers.memory()? / 1000))?;
    printer.line(format_args!("objects written in {IDLE:?} idle: {}", after.0.saturating_sub(before.0)))?;
    printer.line(format_args!("CPU in {IDLE:?} idle: {} ticks of 10 ms", after.1 - before.1))?;
    Ok(())
}

async fn client(kubeconfig: &Path) -> Result<Api> {
    install_crypto_provider();
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Api::new(kube::Client::try_from(config)?))
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// Subscribes in a namespace of its own and waits until the operator has Succeeded.
async fn install(api: &Api, name: &str) -> Result<()> {
    api.create(&namespace(name)).await?;
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": name, "namespace": name }, "spec": { "targetNamespaces": [name] },
    });
    api.create(&group).await?;
    let csvs = resource("ClusterServiceVersion", "clusterserviceversions");
    let from = api.list(&csvs, "", "").await?.resource_version;
    let subscription = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "name": "etcd", "namespace": name },
        "spec": { "name": "etcd", "source": "main", "sourceNamespace": "olm", "channel": "singlenamespace-alpha" },
    });
    api.create(&subscription).await?;
    let events = api.watch(&csvs, "", &from).await?;
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        if let WatchEvent::Added(csv) | WatchEvent::Modified(csv) = event?
            && object::namespace(&csv) == name
            && object::text(&csv, &["status", "phase"]) == "Succeeded"
        {
            return Ok(());
        }
    }
    bail!("the watch ended")
}

fn resource(kind: &str, plural: &str) -> Resource {
    let gvk = object::Gvk::new("operators.coreos.com", "v1alpha1", kind);
    Resource { gvk, plural: plural.to_owned(), namespaced: true }
}

/// The sum of the resource versions' distance is the number of writes: of all OLM kinds and what OLM makes, the newest.
async fn newest(api: &Api) -> Result<u64> {
    let mut newest = 0;
    for (kind, plural) in [
        ("ClusterServiceVersion", "clusterserviceversions"),
        ("Subscription", "subscriptions"),
        ("InstallPlan", "installplans"),
        ("CatalogSource", "catalogsources"),
    ] {
        let page = api.list(&resource(kind, plural), "", "").await?;
        newest = page.objects.iter().filter_map(|o| object::resource_version(o).parse().ok()).fold(newest, u64::max);
    }
    Ok(newest)
}

struct Controllers(Child);

impl Controllers {
    fn start(binary: &Path, plane: &ControlPlane, catalog: &Path) -> Result<Self> {
        let log = File::create(plane.logs().join("kubectl-olm-run.log"))?;
        let child = Command::new(binary)
            .args(["--catalog", &format!("main={}", catalog.display())])
            .env("KUBECONFIG", plane.kubeconfig())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        Ok(Self(child))
    }

    fn proc(&self, file: &str) -> Result<String> {
        Ok(fs::read_to_string(PathBuf::from(format!("/proc/{}/{file}", self.0.id())))?)
    }

    /// Resident memory in kB.
    fn memory(&mut self) -> Result<u64> {
        let status = self.proc("status")?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    /// User and system time in ticks.
    fn cpu(&self) -> Result<u64> {
        let stat = self.proc("stat")?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        Ok(fields.get(11).context("no utime")?.parse::<u64>()? + fields.get(12).context("no stime")?.parse::<u64>()?)
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
