//! Time from a Subscription to its Succeeded ClusterServiceVersion, with a list of all requests.

use anyhow::{Context, Result};
use jiff::SignedDuration;
use olm_shell::cli::Printer;
use olm_tests::bench::live::{Cluster, Controllers, OLM, Request};
use olm_tests::bench::{Times, release};
use olm_tests::data;

/// Number of measured installs.
const RUNS: usize = 10;

pub(crate) fn measure() -> Result<()> {
    let mut printer = Printer::stdio();
    let data = data::data().context(data::NO_DATA)?;
    let binary = release("kubectl-olm-run")?;
    let cluster = Cluster::start()?;
    let _controllers = Controllers::start(&binary, &cluster, &data.join("scenarios/real-etcd/catalogs/main"))?;
    let install = |n: usize| cluster.install(&namespace(n), "etcd", "singlenamespace-alpha");
    // Warms up.
    install(0)?;
    let runs = (1..=RUNS).map(|n| Ok((install(n)?, n))).collect::<Result<Vec<_>>>()?;
    let times = Times::all(runs.iter().map(|(time, _)| *time).collect());
    printer.line(format_args!("Subscription created -> ClusterServiceVersion Succeeded (etcd 0.9.4): {times}"))?;

    let median = runs.iter().find(|(time, _)| *time == times.median()).map_or(1, |(_, n)| *n);
    let requests = requests_of(&namespace(median), &cluster.requests()?);
    let began = requests.first().context("no requests")?.at;
    printer.line(format_args!("\nThe median one: ms since it began, ms until the answer, who, what"))?;
    let mut waited = SignedDuration::ZERO;
    for Request { at, took, who, verb, resource, name, code, .. } in &requests {
        let since = at.duration_since(began);
        printer.line(format_args!("{:6.1} {:5.1}  {who}  {verb} {resource} {name} {code}", ms(since), ms(*took)))?;
        if who == OLM {
            waited += *took;
        }
    }
    let ours = requests.iter().filter(|request| request.who == OLM).count();
    let all = requests
        .iter()
        .map(|request| request.at + request.took)
        .max()
        .map_or(SignedDuration::ZERO, |end| end.duration_since(began));
    printer.line(format_args!(
        "{:.1} ms by the API server's clock; {ours} requests of ours, answered in {:.1} ms together",
        ms(all),
        ms(waited)
    ))?;
    Ok(())
}

fn namespace(n: usize) -> String {
    format!("bench-{n}")
}

fn ms(time: SignedDuration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Returns the requests from the Subscription's creation to the last write of the ClusterServiceVersion: all requests in this
/// namespace, and all requests of the controllers.
fn requests_of(namespace: &str, all: &[Request]) -> Vec<Request> {
    let here = |request: &Request| request.namespace == namespace;
    let from = all.iter().position(|r| here(r) && r.verb == "create" && r.resource == "subscriptions" && r.who != OLM);
    let to = all.iter().rposition(|r| here(r) && r.resource == "clusterserviceversions/status");
    let (Some(from), Some(to)) = (from, to) else { return Vec::new() };
    let asked = all[from..=to].iter().filter(|r| r.verb != "watch" && (here(r) || r.who == OLM));
    asked.cloned().collect()
}
