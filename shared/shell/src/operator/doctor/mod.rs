//! `kubectl olm operator doctor`: finds trouble of the whole cluster, which the state of no single operator shows.
//!
//! ```text
//!   read   lists what the rules need, mostly metadata --> core::doctor --> problems
//!                                       cli/baseline: omits known findings --> cli/problems: text, data, SARIF, annotations
//! ```
//!
//! *Guarantees*: nothing is written. What could not be read is reported as unchecked.

mod read;

use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use olm_core::doctor::{Checkup, Input, RULES, check};
use olm_core::lint::Problem;
use olm_core::listing::count;
use serde_json::{Value, json};

use crate::blocking::block_on;
use crate::cli::baseline::{self, Baseline};
use crate::cli::findings::{FailOn, Format};
use crate::cli::flags::SourceFlags;
use crate::cli::output::API_VERSION;
use crate::cli::problems::{self, Problems};
use crate::cli::{CliError, Outcome, Printer};

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// The source of the objects.
    pub source: SourceFlags,
    /// How long a deletion or a failure has to last to be reported.
    pub older_than: Duration,
    /// The output format.
    pub format: Format,
    /// The file of known findings.
    pub baseline: Option<PathBuf>,
    /// Whether to write the findings to this file instead.
    pub create_baseline: bool,
    /// The lowest severity for a negative outcome.
    pub fail_on: FailOn,
}

/// The kind of a baseline.
const BASELINE: &str = "DoctorBaseline";

/// Checks the cluster. The outcome is negative if there are findings of a severity that `fail_on` includes.
///
/// # Errors
/// The cluster does not respond or refuses everything, or a file cannot be read or written.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if options.create_baseline && options.baseline.is_none() {
        return Err(CliError::usage("--create-baseline requires --baseline FILE"));
    }
    block_on(answer(options, printer))
}

/// Prints the explanation of a rule; without a name, lists all rules.
///
/// # Errors
/// The rule does not exist.
pub fn explain(name: &str, printer: &mut Printer) -> Result<Outcome, CliError> {
    problems::explain(&RULES, name, printer)
}

async fn answer(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let baseline = match &options.baseline {
        Some(file) if !options.create_baseline => Baseline::read(file, BASELINE)?,
        _ => Baseline::default(),
    };
    let read = read::read(&options.source, printer).await?;
    let mut checkup = check(Input {
        world: &read.cluster.world,
        known: &read.known,
        unlisted: &read.unlisted,
        patience: SignedDuration::try_from(options.older_than).unwrap_or(SignedDuration::MAX),
        now: read.cluster.at,
    });
    if let Some(file) = options.baseline.as_ref().filter(|_| options.create_baseline) {
        baseline::write(file, BASELINE, checkup.problems.iter().map(Problem::fingerprint).collect())?;
        printer.talk(format_args!("wrote {} to {}", count(checkup.problems.len(), "finding"), file.display()));
        return Ok(Outcome::Done);
    }
    let known = baseline.take_out(&mut checkup.problems, Problem::fingerprint);
    for gone in &known.gone {
        printer.talk(format_args!("obsolete in the baseline: {} {}", gone.code, gone.object));
    }
    let report = Problems { cluster: &read.cluster, found: &checkup.problems, rules: &RULES };
    match options.format {
        Format::Text => report.text(printer)?,
        Format::Json => printer.json(&document(&checkup, report, known.left_out))?,
        Format::Yaml => printer.yaml(&document(&checkup, report, known.left_out))?,
        Format::Sarif | Format::Junit | Format::Github => report.for_tools(options.format, printer)?,
    }
    problems::warn_of_unchecked(&checkup.unchecked, printer);
    report.end(options.format, &summary(&checkup, report, known.left_out), printer);
    let is_no = checkup.problems.iter().any(|problem| options.fail_on.counts(problem.severity));
    Ok(if is_no { Outcome::Negative } else { Outcome::Done })
}

fn summary(checkup: &Checkup, problems: Problems<'_>, in_baseline: usize) -> String {
    let mut parts = problems.counts();
    if in_baseline > 0 {
        parts.push(format!("{in_baseline} in the baseline"));
    }
    format!(
        "{}, {}, {} and {} of them: {}",
        count(checkup.api_services, "APIService"),
        count(checkup.definitions, "CustomResourceDefinition"),
        count(checkup.csvs, "ClusterServiceVersion"),
        if checkup.copies.count == 1 { "1 copy".to_owned() } else { format!("{} copies", checkup.copies.count) },
        parts.join(", ")
    )
}

fn document(checkup: &Checkup, problems: Problems<'_>, in_baseline: usize) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "ClusterCheckup",
        "checked": {
            "apiServices": checkup.api_services,
            "customResourceDefinitions": checkup.definitions,
            "clusterServiceVersions": checkup.csvs,
            "copiedClusterServiceVersions": checkup.copies.count,
            "copiedBytes": checkup.copies.bytes,
        },
        "findings": problems.documents(),
        "inBaseline": in_baseline,
        "unchecked": problems::unchecked(&checkup.unchecked),
    })
}
