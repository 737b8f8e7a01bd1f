//! `kubectl olm run --packages` behind the aggregator of a real API server: lists, a read and the start of a watch for 420 packages. For
//! comparison the API server itself, with custom resources of the same content.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use olm_shell::cli::Printer;
use olm_tests::bench::live::{Cluster, Controllers};
use olm_tests::bench::{Times, release};
use olm_tests::{control_plane, data};
use serde_json::{Value, json};

use super::catalog::{PACKAGES, make};

const RUNS: usize = 10;
/// Between two attempts to read the packages, which are being converted.
const PAUSE: Duration = Duration::from_millis(200);
const OURS: &str = "/apis/packages.operators.coreos.com/v1/namespaces/olm/packagemanifests";
const PEERS: &str = "/apis/bench.example.com/v1/namespaces/olm/packages";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const JSON: &str = "application/json";

pub(crate) fn measure() -> Result<()> {
    let mut printer = Printer::stdio();
    if control_plane::skipped() {
        return Ok(());
    }
    let data = data::data().context(data::NO_DATA)?;
    let ip = control_plane::address().context("this machine has only loopback addresses")?;
    let binary = release("kubectl-olm-run")?;
    let folder = tempfile::tempdir()?;
    let made = make(&data, folder.path())?;
    let (_, catalog, _) = made.iter().find(|(format, ..)| *format == "JSON").context("no catalog")?;
    let cluster = Cluster::start()?;
    let address = format!("{ip}:0");
    let arguments = ["--packages", "--packages-address", &address];
    let controllers = Controllers::start_with(&binary, &cluster, catalog, &arguments)?;
    let items = loop {
        // Refused until the API server has noticed the APIService, and until the catalog was converted.
        match cluster.get(OURS, JSON).map(|list| serde_json::from_str::<Value>(&list)) {
            Ok(Ok(mut list)) => match list["items"].take() {
                Value::Array(items) => break items,
                _ => cluster.idle(PAUSE),
            },
            Ok(Err(_)) | Err(_) => cluster.idle(PAUSE),
        }
    };
    ensure!(items.len() == PACKAGES, "{} packages", items.len());
    let first = items[0]["metadata"]["name"].as_str().context("no name")?.to_owned();
    copy(&cluster, items)?;
    for (what, suffix, accept) in [
        ("list as JSON", String::new(), JSON),
        ("list as a Table, as kubectl get", String::new(), TABLE),
        ("get", format!("/{first}"), JSON),
    ] {
        let measured = |base: &str| {
            let mut bytes = 0;
            let times = Times::new(RUNS, || {
                bytes = cluster.get(&format!("{base}{suffix}"), accept)?.len();
                Ok(())
            });
            times.map(|times| (times, bytes))
        };
        let ((ours, bytes), (peers, of_peers)) = (measured(OURS)?, measured(PEERS)?);
        printer.line(format_args!(
            "{what}: {ours}, {bytes} bytes; custom resources: {peers}, {of_peers} bytes; ratio {:.2}",
            ratio(&ours, &peers)
        ))?;
    }
    let watch = |base: &str| Times::new(RUNS, || cluster.watch(&format!("{base}?watch=true"), PACKAGES));
    let (ours, peers) = (watch(OURS)?, watch(PEERS)?);
    printer.line(format_args!(
        "start of a watch, until all packages are reported: {ours}; custom resources: {peers}; ratio {:.2}",
        ratio(&ours, &peers)
    ))?;
    let (now, peak) = (controllers.memory()?, controllers.peak_memory()?);
    printer.line(format_args!("{now:.0} MB resident, {peak:.0} MB at most"))?;
    Ok(())
}

fn ratio(ours: &Times, peers: &Times) -> f64 {
    ours.median().as_secs_f64() / peers.median().as_secs_f64()
}

/// Creates custom resources with the same content.
fn copy(cluster: &Cluster, items: Vec<Value>) -> Result<()> {
    cluster.create(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "packages.bench.example.com" },
        "spec": {
            "group": "bench.example.com", "scope": "Namespaced",
            "names": { "kind": "Package", "listKind": "PackageList", "plural": "packages", "singular": "package" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            } } }],
        },
    }))?;
    while cluster.get(PEERS, JSON).is_err() {
        cluster.idle(PAUSE);
    }
    for item in items {
        // Labels of packages can contain what the API server does not accept.
        let metadata = json!({ "name": item["metadata"]["name"], "namespace": "olm" });
        let copy = json!({
            "apiVersion": "bench.example.com/v1", "kind": "Package", "metadata": metadata, "status": item["status"],
        });
        cluster.create(&copy)?;
    }
    Ok(())
}
