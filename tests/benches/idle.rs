//! Cost of the controllers on a cluster with a real catalog of 70 packages: memory, writes and CPU when idle, and the time to
//! start.

use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use olm_shell::cli::Printer;
use olm_shell::registry;
use olm_tests::bench::live::{Cluster, Controllers, OLM};
use olm_tests::bench::{Times, catalog, release};
use olm_tests::data;

/// Number of measured starts.
const RUNS: usize = 10;
/// Number of operators that are installed to detect growth of memory.
const INSTALLS: usize = 12;
/// How long the controllers are idle while their writes are counted.
const IDLE: Duration = Duration::from_mins(1);

pub(crate) fn measure() -> Result<()> {
    let mut printer = Printer::stdio();
    let data = data::data().context(data::NO_DATA)?;
    let binary = release("kubectl-olm-run")?;
    let folder = tempfile::tempdir()?;
    // Samples of test suites are excluded, because some are invalid on purpose.
    catalog::write(&data.join("bundles"), folder.path(), |bundle| !bundle.starts_with("fixtures"))?;
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
        let writes: Vec<_> = requests.iter().filter(|r| r.who == OLM && r.is_write() && r.at > from).collect();
        printer.line(format_args!(
            "{when}: {:.1} MB resident ({:.1} MB at most so far); in {IDLE:?} idle {} writes, {cpu:?} CPU",
            controllers.memory()?,
            controllers.peak_memory()?,
            writes.len(),
        ))?;
        for write in writes {
            let after = write.at.duration_since(from).as_secs_f64();
            printer.line(format_args!("  after {after:.2} s: {} {} {}", write.verb, write.resource, write.name))?;
        }
        Ok(())
    };
    idle(&mut printer, "fresh")?;
    for n in 1..=2 * INSTALLS {
        cluster.install(&format!("bench-{n}"), "etcd", catalog::CHANNEL)?;
        if n % INSTALLS == 0 {
            idle(&mut printer, &format!("after {n} installs"))?;
        }
    }
    Ok(())
}
