//! Cost of operators that are offered in every namespace of a large cluster: five of them in 500 namespaces. Measures the time
//! until they run and until their copies exist, memory, CPU, and every write; the cost when idle; and the cost of an additional
//! namespace. For comparison the lower bound: how long such a cluster takes to create the same copies for a client that only
//! writes them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use olm_shell::cli::Printer;
use olm_tests::bench::live::{Cluster, Controllers, OLM, Request, namespace};
use olm_tests::bench::{catalog, release};
use olm_tests::data;
use serde_json::json;

/// The operators' bundles.
const BUNDLES: [&str; 5] = [
    "keda/2.6.1",
    "grafana-operator/5.7.0",
    "limitador-operator/0.8.0",
    "redis-operator/0.8.0",
    "external-secrets-operator/0.4.4",
];
/// The number of additional namespaces, unless an argument sets it.
const NAMESPACES: usize = 500;
/// How long the controllers are idle while their writes are counted.
const IDLE: Duration = Duration::from_mins(1);
/// How long the controllers may continue to work after the last copy was observed.
const AFTERWARDS: Duration = Duration::from_secs(5);

pub(crate) fn measure(arguments: &[String]) -> Result<()> {
    let mut printer = Printer::stdio();
    let data = data::data().context(data::NO_DATA)?;
    let binary = release("kubectl-olm-run")?;
    let folder = tempfile::tempdir()?;
    let packages = catalog::write(&data.join("bundles"), folder.path(), |bundle| {
        BUNDLES.iter().any(|wanted| bundle == Path::new(wanted))
    })?;
    let namespaces = arguments.first().map_or(Ok(NAMESPACES), |n| n.parse())?;
    let cluster = with_tenants(namespaces)?;
    cluster.create(&namespace("operators"))?;
    cluster.create(&json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": "global-operators", "namespace": "operators" }, "spec": {},
    }))?;
    let copies = packages.len() * (cluster.namespaces()? - 1);
    // The ServiceAccounts and ConfigMaps that Kubernetes creates in every namespace.
    cluster.idle(IDLE / 6);
    let controllers = Controllers::start(&binary, &cluster, folder.path())?;
    printer.line(format_args!(
        "{} operators, {copies} copies to be made; {:.1} MB resident before",
        packages.len(),
        controllers.memory()?
    ))?;
    let mut copied_after = Duration::ZERO;
    let phase = |printer: &mut Printer, what: &str, act: &mut dyn FnMut() -> Result<String>| -> Result<()> {
        let (from, cpu) = (Timestamp::now(), controllers.cpu()?);
        let took = act()?;
        let cpu = controllers.cpu()?.saturating_sub(cpu);
        printer.line(format_args!(
            "{what}: {took}{cpu:?} CPU, {:.1} MB resident ({:.1} MB at most so far)",
            controllers.memory()?,
            controllers.peak_memory()?
        ))?;
        let requests = cluster.requests()?;
        print_requests(printer, requests.iter().filter(|r| r.who == OLM && r.at > from))
    };
    phase(&mut printer, "subscribed", &mut || {
        let [succeeded, copied] = cluster.offered(packages.len(), copies, || {
            packages.iter().try_for_each(|package| {
                cluster.create(&json!({
                    "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
                    "metadata": { "name": package, "namespace": "operators" },
                    "spec": { "name": package, "source": "main", "sourceNamespace": "olm", "channel": catalog::CHANNEL },
                }))
            })
        })?;
        cluster.idle(AFTERWARDS);
        copied_after = copied;
        Ok(format!("all Succeeded after {succeeded:.1?}, all copies after {copied:.1?}, "))
    })?;
    let (good, all) = cluster.copies()?;
    printer.line(format_args!("{good} of {all} copies say that their operator has Succeeded"))?;
    phase(&mut printer, &format!("idle for {IDLE:?}"), &mut || {
        cluster.idle(IDLE);
        Ok(String::new())
    })?;
    phase(&mut printer, "one more namespace", &mut || {
        let [_, copied] = cluster.offered(0, packages.len(), || cluster.create(&namespace("one-more")))?;
        cluster.idle(AFTERWARDS);
        Ok(format!("its copies after {copied:.2?}, "))
    })?;
    let (good, all) = cluster.copies()?;
    printer.line(format_args!("{good} of {all} copies say that their operator has Succeeded"))?;
    let samples = cluster.copies_in("one-more")?;
    drop((controllers, cluster));
    let other = with_tenants(namespaces)?;
    other.idle(IDLE / 6);
    let limit = other.write_copies(&samples, copies)?;
    printer.line(format_args!(
        "lower bound: the same copies by a client that does nothing else, on a separate cluster: {limit:.1?}; the controllers took {:.2} times as long",
        copied_after.as_secs_f64() / limit.as_secs_f64()
    ))?;
    Ok(())
}

/// Starts a cluster with so many additional namespaces.
fn with_tenants(namespaces: usize) -> Result<Cluster> {
    let cluster = Cluster::start()?;
    for n in 0..namespaces {
        cluster.create(&namespace(&format!("tenant-{n}")))?;
    }
    Ok(cluster)
}

/// Prints writes by verb and kind with refused ones separately, and the number of reads.
fn print_requests<'a>(printer: &mut Printer, requests: impl Iterator<Item = &'a Request>) -> Result<()> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut writes, mut reads) = (0, 0);
    for Request { verb, resource, code, .. } in requests.filter(|r| r.verb != "watch") {
        let is_write = !matches!(verb.as_str(), "get" | "list");
        *if is_write { &mut writes } else { &mut reads } += 1;
        let refused = if *code < 400 { String::new() } else { format!(" ({code})") };
        *counts.entry(format!("{verb} {resource}{refused}")).or_default() += 1;
    }
    printer.line(format_args!("  {writes} writes, {reads} reads"))?;
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (what, count) in counts {
        printer.line(format_args!("  {count:6} {what}"))?;
    }
    Ok(())
}
