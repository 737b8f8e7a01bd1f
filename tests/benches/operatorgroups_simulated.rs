//! Time and memory of a simulation of fifteen operators that are offered in each of 2,000 namespaces. The same without
//! namespaces, without operators, and without both gives the cost of a copied ClusterServiceVersion. Then the memory of a copy
//! in the controllers, which store less of it than the simulated cluster.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use olm_core::api::{labels, object};
use olm_core::world::{World, trimmed};
use olm_shell::cli::Printer;
use olm_tests::bench::{catalog, release, watch};
use olm_tests::data;
use serde_json::json;

/// The operators' bundles: AllNamespaces, and without dependencies.
const BUNDLES: [&str; 15] = [
    "keda/2.6.1",
    "grafana-operator/5.7.0",
    "limitador-operator/0.8.0",
    "redis-operator/0.8.0",
    "external-secrets-operator/0.4.4",
    "apicurio-registry/1.1.1-v2.5.9.final",
    "authorino-operator/0.7.0",
    "camel-k/1.9.0",
    "hive-operator/1.1.9",
    "project-quay/3.9.1",
    "dns-operator/0.2.0",
    "wildfly/1.0.0",
    "kiali/2.30.0",
    "skupper-operator/1.9.2",
    "tektoncd-operator/0.75.0",
];
/// Number of namespaces and operators, unless arguments set it.
const NAMESPACES: usize = 2000;
const OPERATORS: usize = BUNDLES.len();
/// Number of copies that are added to a World.
const COPIES: usize = 30_000;

pub(crate) fn measure(arguments: &[String]) -> Result<()> {
    let mut printer = Printer::stdio();
    let data = data::data().context(data::NO_DATA)?;
    let binary = release("kubectl-olm-run")?;
    let (catalog, cluster_files) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut arguments = arguments.iter().map(|n| n.parse::<usize>());
    let namespaces = arguments.next().transpose()?.unwrap_or(NAMESPACES);
    let operators = arguments.next().transpose()?.unwrap_or(OPERATORS).min(OPERATORS);
    let packages = catalog::write(&data.join("bundles"), catalog.path(), |bundle| {
        BUNDLES[..operators].iter().any(|wanted| bundle == Path::new(wanted))
    })?;
    let mut peaks = Vec::new();
    for (namespaces, packages) in [(namespaces, &packages[..]), (0, &packages), (namespaces, &[]), (0, &[])] {
        let objects = cluster_files.path().join("objects.yaml");
        fs::write(&objects, cluster(namespaces, packages)?)?;
        let began = Instant::now();
        let child = Command::new(&binary)
            .arg("--simulate")
            .arg(&objects)
            .arg("--catalog")
            .arg(format!("main={}", catalog.path().display()))
            .stdout(Stdio::null())
            .spawn()?;
        let (passed, peak) = watch(child)?;
        ensure!(passed, "the simulation failed");
        printer.line(format_args!(
            "{namespaces} namespaces, {} operators: {:.1} s, {peak} MB",
            packages.len(),
            began.elapsed().as_secs_f64()
        ))?;
        peaks.push(peak * 1_000_000);
    }
    if let [both, operators, namespaces_alone, neither] = peaks[..] {
        let copies = (both + neither).saturating_sub(operators + namespaces_alone);
        let each = copies / (namespaces * packages.len()).max(1) as u64;
        printer.line(format_args!("a copy in the simulation: {each} bytes"))?;
    }
    let each = in_a_world(&data.join("bundles").join(BUNDLES[0]))?;
    printer.line(format_args!("a copy in the World of controllers, {COPIES} of them: {each} bytes"))?;
    Ok(())
}

/// Returns how many bytes of memory a World uses for a copy of this bundle's ClusterServiceVersion.
fn in_a_world(bundle: &Path) -> Result<u64> {
    let manifests = data::files(&bundle.join("manifests"));
    let mut objects = manifests.iter().filter_map(|file| data::documents(file).ok()).flatten();
    let csv = objects.find(|object| object::text(object, &["kind"]) == "ClusterServiceVersion");
    let mut copy = csv.context("no ClusterServiceVersion")?;
    object::set_label(&mut copy, labels::COPIED_FROM, "operators");
    let mut world = World::new();
    let before = resident()?;
    for n in 0..COPIES {
        let own = json!({
            "namespace": format!("tenant-{n}"), "uid": format!("00000000-0000-0000-0000-{n:012}"),
            "resourceVersion": (n + 1).to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
        });
        let own = own.as_object().into_iter().flatten().map(|(field, value)| (field.clone(), value.clone()));
        object::map_mut(&mut copy, &["metadata"]).extend(own);
        world.apply(trimmed(&copy));
    }
    ensure!(world.objects().count() == COPIES, "the World does not have the copies");
    Ok(resident()?.saturating_sub(before) / COPIES as u64)
}

/// Returns the resident memory of this process.
fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

fn cluster(namespaces: usize, packages: &[String]) -> Result<String> {
    let mut objects = String::new();
    for name in
        ["olm".to_owned(), "operators".to_owned()].into_iter().chain((0..namespaces).map(|n| format!("tenant-{n}")))
    {
        writeln!(objects, "---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}")?;
    }
    writeln!(
        objects,
        "---\napiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {{name: global-operators, namespace: operators}}\nspec: {{}}"
    )?;
    for package in packages {
        writeln!(
            objects,
            "---\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {{name: {package}, namespace: operators}}\n\
             spec: {{name: {package}, source: main, sourceNamespace: olm, channel: {}}}",
            catalog::CHANNEL
        )?;
    }
    Ok(objects)
}
