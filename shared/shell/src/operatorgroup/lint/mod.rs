//! `kubectl olm operatorgroup lint`: checks OperatorGroups for problems.
//!
//! ```text
//!   state  reads the objects, and what may be concluded from them --> core::lint --> problems
//!                              those that OLM may be about to fix: only those that remain after a short watch
//!                                                                 cli/baseline: omits known findings
//!                                                                 fix: fixes findings, one by one
//!                                                                 report: text, data, SARIF, annotations
//! ```
//!
//! *Guarantees*: without `--fix` nothing is written. With it each fix is one request, bound to the resourceVersion that
//! was read, and sent as a server dry run first.

mod fix;
mod report;
mod state;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use olm_core::lint::{Fingerprint, Linted, Problem, RULES, lint};
use olm_core::listing::count;
use tokio::time::Instant;

use crate::blocking::block_on;
use crate::cli::baseline::{self, Baseline};
pub use crate::cli::findings::FailOn;
use crate::cli::findings::Format;
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::problems;
use crate::cli::{CliError, Outcome, Printer};
use crate::image;
use crate::observe::ClusterState;

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// The source of the objects.
    pub source: SourceFlags,
    /// The namespaces.
    pub namespaces: NamespaceFlags,
    /// Files with objects to treat as applied.
    pub on_top: Vec<PathBuf>,
    /// Whether objects missing from the files do not exist.
    pub complete: bool,
    /// A package to check against the groups.
    pub package: Option<String>,
    /// How images of catalogs are pulled.
    pub images: image::Options,
    /// The output format.
    pub format: Format,
    /// The file of known findings.
    pub baseline: Option<PathBuf>,
    /// Whether to write the findings to this file instead.
    pub create_baseline: bool,
    /// The lowest severity for a negative outcome.
    pub fail_on: FailOn,
    /// Whether to fix findings.
    pub fix: bool,
    /// Whether to skip prompts.
    pub yes: bool,
}

/// The kind of a baseline.
const BASELINE: &str = "LintBaseline";

/// How long to wait for OLM to fix a finding that it may be about to fix. OLM reacts to watches: one second is long.
const MOMENT: Duration = Duration::from_secs(5);

/// Checks OperatorGroups.
///
/// # Errors
/// The objects cannot be read, or a file cannot be read or written.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    check(options)?;
    block_on(answer(options, printer))
}

fn check(options: &Options) -> Result<(), CliError> {
    if options.fix && !options.source.from.is_empty() {
        return Err(CliError::usage("--fix cannot be combined with --from: it changes a cluster, not files")
            .hint("apply the fix of each finding to the files, or run lint on the cluster"));
    }
    if options.fix && !options.on_top.is_empty() {
        return Err(CliError::usage("--fix cannot be combined with -f: the objects of -f are not on the cluster")
            .hint("leave out one of the flags"));
    }
    if options.complete && options.source.from.is_empty() {
        return Err(CliError::usage("--complete requires --from").hint("add --from, or leave out --complete"));
    }
    if options.create_baseline && options.baseline.is_none() {
        return Err(CliError::usage("--create-baseline requires --baseline FILE"));
    }
    Ok(())
}

async fn answer(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let baseline = match &options.baseline {
        Some(file) if !options.create_baseline => Baseline::read(file, BASELINE)?,
        _ => Baseline::default(),
    };
    let mut cluster = state::read(options, printer).await?;
    let mut linted = found(&cluster, options);
    if cluster.api().is_some() && linted.problems.iter().any(Problem::may_be_under_way) {
        (cluster, linted) = follow(options, cluster, &linted, printer).await?;
    }
    if let Some(asked) = cluster.namespace.as_deref().filter(|asked| state::is_missing(&cluster, options, asked)) {
        printer.warn(format_args!("namespace {asked} does not exist"));
    }
    let matrices = match &options.package {
        Some(package) => state::matrices(&mut cluster, options, package, &mut linted, printer).await?,
        None => Vec::new(),
    };
    if let Some(file) = options.baseline.as_ref().filter(|_| options.create_baseline) {
        baseline::write(file, BASELINE, linted.problems.iter().map(Problem::fingerprint).collect())?;
        printer.talk(format_args!("wrote {} to {}", count(linted.problems.len(), "finding"), file.display()));
        return Ok(Outcome::Done);
    }
    let known = baseline.take_out(&mut linted.problems, Problem::fingerprint);
    let asked = |gone: &&Fingerprint| cluster.namespace.as_deref().is_none_or(|asked| gone.is_in(asked));
    for gone in known.gone.iter().filter(asked) {
        printer.talk(format_args!("obsolete in the baseline: {} {}", gone.code, gone.object));
    }
    let fixed = match cluster.api() {
        Some(api) if options.fix => fix::fix(api, &cluster, &mut linted.problems, options, printer).await?,
        _ => Vec::new(),
    };
    report::print(
        &report::Content {
            linted: &linted,
            cluster: &cluster,
            matrices: &matrices,
            known: known.left_out,
            fixed: &fixed,
        },
        options,
        printer,
    )?;
    let is_no = linted.problems.iter().any(|problem| options.fail_on.counts(problem.severity));
    Ok(if is_no { Outcome::Negative } else { Outcome::Done })
}

/// Returns the findings for the selected namespaces.
fn found(cluster: &ClusterState, options: &Options) -> Linted {
    let mut linted = lint(&cluster.world, &state::known(cluster, options), cluster.at);
    let asked =
        |problem: &Problem| cluster.namespace.as_deref().is_none_or(|asked| problem.namespaces().contains(asked));
    linted.problems.retain(asked);
    linted
}

/// Removes findings that OLM fixes within [`MOMENT`]. Without permission to watch, the objects are read again.
async fn follow(
    options: &Options,
    mut cluster: ClusterState,
    first: &Linted,
    printer: &mut Printer,
) -> Result<(ClusterState, Linted), CliError> {
    let suspects: BTreeSet<Fingerprint> =
        first.problems.iter().filter(|problem| problem.may_be_under_way()).map(Problem::fingerprint).collect();
    let is_suspect = |problem: &Problem| suspects.contains(&problem.fingerprint());
    let end = Instant::now() + MOMENT;
    let progress = printer.progress("waiting for OLM");
    let followed = cluster.follow(MOMENT, |cluster| !found(cluster, options).problems.iter().any(is_suspect)).await;
    if followed.is_err() {
        tokio::time::sleep_until(end).await;
        drop(progress);
        cluster = state::read(options, printer).await?;
    }
    let mut linted = found(&cluster, options);
    linted.problems.retain(|problem| !problem.may_be_under_way() || is_suspect(problem));
    Ok((cluster, linted))
}

/// Prints the explanation of a rule; without a name, lists all rules.
///
/// # Errors
/// The rule does not exist.
pub fn explain(name: &str, printer: &mut Printer) -> Result<Outcome, CliError> {
    problems::explain(&RULES, name, printer)
}
