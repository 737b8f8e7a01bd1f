//! What the controllers cost on a cluster with a real catalog of 70 packages: memory, writes and CPU when idle, and how long they
//! take to start.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use olm_core::api::object;
use olm_core::version::{Version, parse_tolerant};
use olm_shell::cli::Printer;
use olm_shell::registry;
use olm_tests::bench::live::{Cluster, Controllers, OLM};
use olm_tests::bench::{Times, release};
use olm_tests::data;
use serde_json::{Value, json};

/// The one channel of each package.
const CHANNEL: &str = "all";
/// The annotation with the name of a bundle's package.
const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";
/// Starts that are timed.
const RUNS: usize = 10;
/// Operators that are installed to see whether memory grows.
const INSTALLS: usize = 12;
/// How long nothing is asked of the controllers while their writes are counted.
const IDLE: Duration = Duration::from_mins(1);

fn main() -> Result<()> {
    let mut printer = Printer::stdio();
    let data = data::data().context(data::NO_DATA)?;
    let binary = release("kubectl-olm-run")?;
    let folder = tempfile::tempdir()?;
    write_catalog(&data.join("bundles"), folder.path())?;
    let packages = registry::dir::load(folder.path())?.snapshot;
    let bundles = packages.entries().count();
    printer.line(format_args!("catalog: {} packages, {bundles} bundles", packages.packages().len()))?;

    let cluster = Cluster::start()?;
    let mut starts = Vec::new();
    for _ in 0..RUNS {
        starts.push(Controllers::start(&binary, &cluster, folder.path())?.start);
    }
    printer.line(format_args!("process started -> first plan: {}", Times::all(starts)))?;

    let controllers = Controllers::start(&binary, &cluster, folder.path())?;
    let idle = |printer: &mut Printer, when: &str| -> Result<()> {
        let (from, cpu) = (Timestamp::now(), controllers.cpu()?);
        cluster.idle(IDLE);
        let cpu = controllers.cpu()?.saturating_sub(cpu);
        let requests = cluster.requests()?;
        let writes = requests.iter().filter(|r| r.who == OLM && r.is_write() && r.at > from).count();
        printer.line(format_args!(
            "{when}: {:.1} MB resident ({:.1} MB at most so far); in {IDLE:?} idle {writes} writes, {cpu:?} CPU",
            controllers.memory()?,
            controllers.peak_memory()?
        ))?;
        Ok(())
    };
    idle(&mut printer, "fresh")?;
    for n in 1..=2 * INSTALLS {
        cluster.install(&format!("bench-{n}"), "etcd", CHANNEL)?;
        if n % INSTALLS == 0 {
            idle(&mut printer, &format!("after {n} installs"))?;
        }
    }
    Ok(())
}

/// Writes a file-based catalog of all bundles in a folder: each package with one channel, in the order of versions.
fn write_catalog(bundles: &Path, into: &Path) -> Result<()> {
    let mut packages: BTreeMap<String, Vec<(Option<Version>, String)>> = BTreeMap::new();
    let mut list = String::new();
    for annotations in data::files(bundles).iter().filter(|file| file.ends_with("metadata/annotations.yaml")) {
        let bundle = annotations.ancestors().nth(2).context("a file at the root")?;
        // Samples of test suites, some wrong on purpose.
        if bundle.strip_prefix(bundles)?.to_string_lossy().starts_with("fixtures") {
            continue;
        }
        let annotations = data::documents(annotations)?;
        let package = annotations.first().map(|a| object::text(a, &["annotations", PACKAGE]));
        let csv = data::files(&bundle.join("manifests"))
            .iter()
            .filter_map(|file| data::documents(file).ok())
            .flatten()
            .find(|object| object::text(object, &["kind"]) == "ClusterServiceVersion");
        let (Some(package), Some(csv)) = (package, csv) else { continue };
        let version = parse_tolerant(object::text(&csv, &["spec", "version"])).ok();
        packages.entry(package.to_owned()).or_default().push((version, object::name(&csv).to_owned()));
        writeln!(list, "{}", bundle.display())?;
    }
    let mut blobs = Vec::new();
    for (package, mut bundles) in packages {
        bundles.sort();
        let before = [None].into_iter().chain(bundles.iter().map(|(_, name)| Some(name)));
        let entries: Vec<Value> =
            bundles.iter().zip(before).map(|((_, name), before)| json!({ "name": name, "replaces": before })).collect();
        blobs.push(json!({ "schema": "olm.package", "name": package, "defaultChannel": CHANNEL }));
        blobs.push(json!({ "schema": "olm.channel", "package": package, "name": CHANNEL, "entries": entries }));
    }
    fs::write(into.join("catalog.json"), blobs.iter().map(Value::to_string).collect::<String>())?;
    fs::write(into.join("bundles.txt"), list)?;
    Ok(())
}
