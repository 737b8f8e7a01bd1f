//! `kubectl olm operatorgroup lint`: everything that is wrong with OperatorGroups.
//!
//! ```text
//!   look  what there is, and what may be concluded from it --> core::lint --> problems
//!                              of those that OLM may be about to mend: what is left of them after a moment of watching
//!                                                                 baseline: those that are known are left out
//!                                                                 fix: those that may be mended are, one by one
//!                                                                 report: text, data, SARIF, annotations
//! ```
//!
//! *Guarantees*: without `--fix` nothing is ever written. With it each fix is one request, bound to the object that was looked at, and
//! tried out on the server first.

mod baseline;
mod fix;
mod report;
mod state;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use olm_core::finding::Severity;
use olm_core::lint::{Fingerprint, Linted, Problem, RULES, lint, rule};
use tokio::time::Instant;

use self::baseline::Baseline;
use crate::blocking::block_on;
use crate::cli::findings::Format;
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};
use crate::image;
use crate::observe::ClusterState;

/// What to look at, and what to make of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// A cluster, or files.
    pub source: SourceFlags,
    /// The namespaces.
    pub namespaces: NamespaceFlags,
    /// Files that count as if they had been applied.
    pub on_top: Vec<PathBuf>,
    /// Do the files hold all there is?
    pub complete: bool,
    /// A package to hold against the groups.
    pub package: Option<String>,
    /// How catalogs are pulled.
    pub images: image::Options,
    /// The form of the answer.
    pub format: Format,
    /// Findings that are known.
    pub baseline: Option<PathBuf>,
    /// Write what is found there instead.
    pub create_baseline: bool,
    /// From when on the answer is no.
    pub fail_on: FailOn,
    /// Mend what can be mended.
    pub fix: bool,
    /// Without asking.
    pub yes: bool,
}

/// The lowest severity of a finding for exit code 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Errors.
    Error,
    /// Errors and warnings.
    #[default]
    Warning,
    /// All findings.
    Info,
    /// Never fail because of findings.
    Never,
}

impl FailOn {
    fn counts(self, severity: Severity) -> bool {
        match self {
            Self::Error => severity == Severity::Error,
            Self::Warning => severity <= Severity::Warning,
            Self::Info => true,
            Self::Never => false,
        }
    }
}

/// How long OLM gets to do what it may be about to do, before it is said that it does not. It acts on what it watches: a second is long.
const MOMENT: Duration = Duration::from_secs(5);

/// Lints.
///
/// # Errors
/// What is asked for cannot be looked at, or a file cannot be read or written.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    check(options)?;
    block_on(answer(options, printer))
}

fn check(options: &Options) -> Result<(), CliError> {
    if options.fix && !options.source.from.is_empty() {
        return Err(CliError::usage("files are never changed: --fix mends what is in a cluster")
            .hint("each finding says what to change; or lint the cluster itself"));
    }
    if options.fix && !options.on_top.is_empty() {
        return Err(CliError::usage("--fix mends what is in a cluster, and -f asks what would be")
            .hint("leave out one of them"));
    }
    if options.complete && options.source.from.is_empty() {
        return Err(CliError::usage("--complete says something about files").hint("it goes with --from"));
    }
    if options.create_baseline && options.baseline.is_none() {
        return Err(CliError::usage("--create-baseline needs --baseline FILE, which it writes"));
    }
    Ok(())
}

async fn answer(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let baseline = match &options.baseline {
        Some(file) if !options.create_baseline => Baseline::read(file)?,
        _ => Baseline::default(),
    };
    let mut seen = state::read(options, printer).await?;
    let mut linted = found(&seen, options);
    if seen.api().is_some() && linted.problems.iter().any(Problem::may_be_under_way) {
        (seen, linted) = follow(options, seen, &linted, printer).await?;
    }
    if let Some(asked) = seen.namespace.as_deref().filter(|asked| state::is_missing(&seen, options, asked)) {
        printer.warn(format_args!("there is no namespace {asked}"));
    }
    let matrices = match &options.package {
        Some(package) => state::matrices(&mut seen, options, package, &mut linted, printer).await?,
        None => Vec::new(),
    };
    if let Some(file) = options.baseline.as_ref().filter(|_| options.create_baseline) {
        baseline::write(file, &linted.problems)?;
        printer.talk(format_args!("wrote {} to {}", report::count(linted.problems.len(), "finding"), file.display()));
        return Ok(Outcome::Done);
    }
    let known = baseline.take_out(&mut linted.problems);
    let asked = |gone: &&Fingerprint| seen.namespace.as_deref().is_none_or(|asked| gone.is_in(asked));
    for gone in known.gone.iter().filter(asked) {
        printer.talk(format_args!("no longer found, and still in the baseline: {} {}", gone.code, gone.object));
    }
    let fixed = match seen.api() {
        Some(api) if options.fix => fix::fix(api, &seen, &mut linted.problems, options, printer).await?,
        _ => Vec::new(),
    };
    report::tell(
        &report::Told { linted: &linted, seen: &seen, matrices: &matrices, known: known.left_out, fixed: &fixed },
        options,
        printer,
    )?;
    let is_no = linted.problems.iter().any(|problem| options.fail_on.counts(problem.severity));
    Ok(if is_no { Outcome::Negative } else { Outcome::Done })
}

/// What is wrong with what was seen, as far as somebody asked about it.
fn found(seen: &ClusterState, options: &Options) -> Linted {
    let mut linted = lint(&seen.world, &state::known(seen, options), seen.at);
    let asked = |problem: &Problem| seen.namespace.as_deref().is_none_or(|asked| problem.namespaces().contains(asked));
    linted.problems.retain(asked);
    linted
}

/// Keeps of what OLM may be about to do what it has not done a moment later. Who may not watch it looks again.
async fn follow(
    options: &Options,
    mut seen: ClusterState,
    first: &Linted,
    printer: &mut Printer,
) -> Result<(ClusterState, Linted), CliError> {
    let suspects: BTreeSet<Fingerprint> =
        first.problems.iter().filter(|problem| problem.may_be_under_way()).map(Problem::fingerprint).collect();
    let is_suspect = |problem: &Problem| suspects.contains(&problem.fingerprint());
    let end = Instant::now() + MOMENT;
    let progress = printer.progress("giving OLM a moment");
    let followed = seen.follow(MOMENT, |seen| !found(seen, options).problems.iter().any(is_suspect)).await;
    if followed.is_err() {
        tokio::time::sleep_until(end).await;
        drop(progress);
        seen = state::read(options, printer).await?;
    }
    let mut linted = found(&seen, options);
    linted.problems.retain(|problem| !problem.may_be_under_way() || is_suspect(problem));
    Ok((seen, linted))
}

/// Says what a rule finds, and why that is wrong; without a name lists all rules.
///
/// # Errors
/// There is no such rule.
pub fn explain(name: &str, printer: &mut Printer) -> Result<Outcome, CliError> {
    if name.is_empty() {
        let mut table = Table::new(["CODE", "NAME", "SEVERITY", "FINDS"]);
        for rule in RULES {
            table.row([rule.code, rule.name, &rule.severity.to_string(), rule.summary]);
        }
        printer.data(table)?;
        return Ok(Outcome::Done);
    }
    let rule = rule(name).ok_or_else(|| {
        CliError::usage(format!("there is no rule {name:?}")).hint("--explain without a code lists all of them")
    })?;
    printer.data(rule.explanation())?;
    Ok(Outcome::Done)
}
