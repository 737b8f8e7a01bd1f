//! Fifteen operators that are offered in every one of 2,000 namespaces, in a simulation: how long it takes, and in how much memory. Then
//! without the operators: the difference is what a copied ClusterServiceVersion takes, which is more here than in the controllers, for the
//! simulated cluster holds every copy whole.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use olm_shell::cli::Printer;
use olm_tests::bench::{catalog, release, watch};
use olm_tests::data;

/// The operators' bundles: of AllNamespaces, and in need of nothing.
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
const NAMESPACES: usize = 2000;

fn main() -> Result<()> {
    let mut printer = Printer::stdio();
    let data = data::data().context(data::NO_DATA)?;
    let binary = release("kubectl-olm-run")?;
    let folder = tempfile::tempdir()?;
    let packages = catalog::write(&data.join("bundles"), folder.path(), |bundle| {
        BUNDLES.iter().any(|wanted| bundle == Path::new(wanted))
    })?;
    for packages in [&packages[..], &[]] {
        let objects = folder.path().join("objects.yaml");
        fs::write(&objects, cluster(packages)?)?;
        let began = Instant::now();
        let child = Command::new(&binary)
            .arg("--simulate")
            .arg(&objects)
            .arg("--catalog")
            .arg(format!("main={}", folder.path().display()))
            .stdout(Stdio::null())
            .spawn()?;
        let (passed, peak) = watch(child)?;
        ensure!(passed, "the simulation did not end well");
        printer.line(format_args!(
            "{NAMESPACES} namespaces, {} operators: {:.1} s, {peak} MB",
            packages.len(),
            began.elapsed().as_secs_f64()
        ))?;
    }
    Ok(())
}

fn cluster(packages: &[String]) -> Result<String> {
    let mut objects = String::new();
    for name in
        ["olm".to_owned(), "operators".to_owned()].into_iter().chain((0..NAMESPACES).map(|n| format!("tenant-{n}")))
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
