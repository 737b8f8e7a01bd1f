//! Start-up of every plugin, and the commands that list: their time besides that of the API server, and their peak memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use olm_shell::cli::Printer;
use olm_tests::bench::live::{Cluster, OLM, Request, namespace};
use olm_tests::bench::{Times, release, watch};
use olm_tests::control_plane;
use olm_tests::house::manifests;
use serde_json::{Value, json};

const RUNS: usize = 10;
/// The limit of start-up.
const START: Duration = Duration::from_millis(10);
/// The limit of the time of a list command besides that of the API server.
const OWN: Duration = Duration::from_millis(20);
/// The limit of memory of a list command, in MB.
const MEMORY: u64 = 20;
/// The number of operators on the cluster, each in a namespace of its own.
const OPERATORS: usize = 50;
/// The number of catalogs, and of packages of each.
const CATALOGS: (usize, usize) = (3, 20);

/// The list commands: the plugin, and its arguments.
const LISTS: [(&str, &str); 14] = [
    ("kubectl-olm-operator", "list -n bench-1"),
    ("kubectl-olm-operator", "list -A"),
    ("kubectl-olm-operator", "outdated -n bench-1"),
    ("kubectl-olm-operator", "outdated -A"),
    ("kubectl-olm-catalog", "list -n olm"),
    ("kubectl-olm-catalog", "list -A"),
    ("kubectl-olm-install_plan", "list -n bench-1"),
    ("kubectl-olm-install_plan", "list -A"),
    ("kubectl-olm-operatorgroup", "intersect -A"),
    ("kubectl-olm-operatorgroup", "lint -n bench-1"),
    ("kubectl-olm-operatorgroup", "lint -A"),
    ("kubectl-olm", "status -n bench-1"),
    ("kubectl-olm", "status -A"),
    ("kubectl-olm", ""),
];

/// The list of kubectl to compare with, on the same machine at the same time.
const KUBECTL: &str = "get clusterserviceversions.operators.coreos.com -A";

pub(crate) fn measure() -> Result<()> {
    let mut printer = Printer::stdio();
    start_up(&mut printer)?;
    if control_plane::skipped() { Ok(()) } else { lists(&mut printer) }
}

/// Measures what each plugin does without a cluster: help, version, and the refusal of a wrong argument.
fn start_up(printer: &mut Printer) -> Result<()> {
    let members = manifests::members()?;
    for plugin in members.into_iter().filter(|member| member.file.starts_with("plugins")) {
        let file = release(&plugin.name)?;
        for (word, code) in [("--help", 0), ("--version", 0), ("--wrong", 2)] {
            let times = Times::new(RUNS, || {
                let status = command(&file, word, "/nowhere".as_ref()).status()?;
                ensure!(status.code() == Some(code), "{} {word} ended with {status}", plugin.name);
                Ok(())
            })?;
            let share = 100.0 * times.median().as_secs_f64() / START.as_secs_f64();
            printer.line(format_args!("{} {word}: {times}, {share:.0} % of the limit", plugin.name))?;
        }
    }
    Ok(())
}

/// Measures the list commands on a cluster.
fn lists(printer: &mut Printer) -> Result<()> {
    let cluster = Cluster::start()?;
    fill(&cluster)?;
    let kubeconfig = cluster.kubeconfig()?;
    printer.line(format_args!("{OPERATORS} operators, {} catalogs with {} packages each:", CATALOGS.0, CATALOGS.1))?;
    list(&cluster, &control_plane::tool("kubectl")?, KUBECTL, &kubeconfig)?.report("kubectl", KUBECTL, printer)?;
    for (plugin, words) in LISTS {
        list(&cluster, &release(plugin)?, words, &kubeconfig)?.report(plugin, words, printer)?;
    }
    Ok(())
}

/// What was measured of a list command.
struct Measured {
    all: Times,
    /// The times without those of the API server.
    own: Times,
    /// The peak memory in MB.
    peak: u64,
    /// The number of requests of a run.
    sent: usize,
}

impl Measured {
    fn report(&self, program: &str, words: &str, printer: &mut Printer) -> Result<()> {
        let Self { all, own, peak, sent } = self;
        let share = 100.0 * own.median().as_secs_f64() / OWN.as_secs_f64();
        let memory = 100 * peak / MEMORY;
        printer.line(format_args!(
            "{program} {words}: {all}; {sent} requests; without the time of the API server {own}, {share:.0} % of the limit; \
             {peak} MB, {memory} % of the limit"
        ))?;
        Ok(())
    }
}

fn list(cluster: &Cluster, file: &Path, words: &str, kubeconfig: &Path) -> Result<Measured> {
    let (mut all, mut own, mut peak, mut sent) = (Vec::new(), Vec::new(), 0, 0);
    // The first run fills the caches of the API server.
    for run in 0..=RUNS {
        let (began, from) = (Instant::now(), Timestamp::now());
        let (_, memory) = watch(command(file, words, kubeconfig).spawn()?)?;
        let took = began.elapsed();
        let requests: Vec<Request> =
            cluster.requests()?.into_iter().filter(|request| request.who == OLM && request.at >= from).collect();
        ensure!(!requests.is_empty(), "{} {words} sends no request", file.display());
        if run > 0 {
            own.push(took.saturating_sub(busy(&requests)));
            all.push(took);
            peak = peak.max(memory);
            sent = requests.len();
        }
    }
    Ok(Measured { all: Times::all(all), own: Times::all(own), peak, sent })
}

/// Returns how long the API server processed at least one of the requests, which are sorted.
fn busy(requests: &[Request]) -> Duration {
    let (mut busy, mut until) = (SignedDuration::ZERO, Timestamp::MIN);
    for request in requests {
        let (begin, end) = (request.at.max(until), request.at + request.took);
        if end > begin {
            busy += end.duration_since(begin);
            until = end;
        }
    }
    busy.unsigned_abs()
}

fn command(program: &Path, words: &str, kubeconfig: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(words.split_whitespace()).env_clear().env("KUBECONFIG", kubeconfig);
    // kubectl caches discovery.
    command.env("HOME", kubeconfig.parent().unwrap_or(kubeconfig));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Creates operators that are installed, and catalogs.
fn fill(cluster: &Cluster) -> Result<()> {
    let olm = "operators.coreos.com";
    for n in 1..=CATALOGS.0 {
        let name = format!("catalog-{n}");
        cluster.create(&catalog(&name))?;
        cluster.create(&json!({
            "apiVersion": format!("{olm}/v1alpha1"), "kind": "CatalogSource", "metadata": { "name": name, "namespace": "olm" },
            "spec": { "sourceType": "configmap", "configMap": name, "displayName": "A catalog" },
        }))?;
    }
    for n in 1..=OPERATORS {
        let (place, csv) = (format!("bench-{n}"), format!("package-{}.v1.0.0", n % CATALOGS.1));
        cluster.create(&namespace(&place))?;
        let metadata = |name: &str| json!({ "name": name, "namespace": place });
        cluster.create(&json!({
            "apiVersion": format!("{olm}/v1"), "kind": "OperatorGroup", "metadata": metadata("group"),
            "spec": { "targetNamespaces": [place] },
        }))?;
        cluster.create(&json!({
            "apiVersion": format!("{olm}/v1alpha1"), "kind": "Subscription", "metadata": metadata("operator"),
            "spec": { "name": format!("package-{}", n % CATALOGS.1), "source": "catalog-1", "sourceNamespace": "olm", "channel": "stable" },
        }))?;
        cluster.create(&json!({
            "apiVersion": format!("{olm}/v1alpha1"), "kind": "InstallPlan", "metadata": metadata("install-abcde"),
            "spec": { "approval": "Automatic", "approved": true, "clusterServiceVersionNames": [csv] },
        }))?;
        let mut object = version(&csv);
        object["metadata"]["namespace"] = place.as_str().into();
        cluster.create(&object)?;
    }
    Ok(())
}

fn version(name: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": { "name": name },
        "spec": {
            "displayName": "An operator", "version": "1.0.0", "description": "A description. ".repeat(200),
            "installModes": [{ "type": "OwnNamespace", "supported": true }],
            "install": { "strategy": "deployment", "spec": { "deployments": [] } },
        },
    })
}

/// Returns the ConfigMap of a catalog.
fn catalog(name: &str) -> Value {
    let names: Vec<String> = (0..CATALOGS.1).map(|n| format!("package-{n}")).collect();
    let versions: Vec<Value> = names.iter().map(|name| version(&format!("{name}.v1.0.0"))).collect();
    let packages: Vec<Value> = names
        .iter()
        .map(|name| json!({ "packageName": name, "channels": [{ "name": "stable", "currentCSV": format!("{name}.v1.0.0") }] }))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "olm" },
        "data": {
            "customResourceDefinitions": "[]", "clusterServiceVersions": Value::from(versions).to_string(),
            "packages": Value::from(packages).to_string(),
        },
    })
}
