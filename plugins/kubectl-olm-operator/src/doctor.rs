//! `kubectl olm operator doctor`.

use std::path::PathBuf;
use std::time::Duration;

use olm_shell::cli::findings::{FailOn, Format};
use olm_shell::cli::flags::{SourceFlags, duration};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::doctor::{self, Options};

/// Check the cluster for trouble that no single operator shows.
///
/// Finds APIServices and webhooks that do not respond, deletions that do not end, objects that nothing owns, the cost of
/// copied ClusterServiceVersions, old InstallPlans, and competing controllers. Each finding has a stable code, its effect,
/// and the smallest change that fixes it. Nothing is changed.
///
/// Read permissions are sufficient. Rules that depend on objects that cannot be read are reported as checked only in part.
///
/// Exit codes: 0 no findings at or above --fail-on, 1 findings, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Explain a rule, given by its code or name; without a value, list all rules
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "", exclusive = true)]
    explain: Option<String>,
    /// Check all namespaces, as without this flag
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Report deletions, failures and leftover objects only if they are older than this (30s, 5m, 1h)
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    older_than: Duration,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    output: Format,
    /// Omit the findings that this file contains
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the findings to the file of --baseline, so that later runs omit them
    #[arg(long)]
    create_baseline: bool,
    /// Lowest severity of a finding for exit code 1
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t)]
    fail_on: FailOn,
    #[command(flatten)]
    source: SourceFlags,
}

const EXAMPLES: &str = "Examples:
  # Check a cluster
  {cmd} doctor

  # Check a must-gather
  {cmd} doctor --from ./must-gather

  # Write a report for a pipeline that fails only because of errors
  {cmd} doctor -o junit --fail-on error

  # Explain the rule DR004
  {cmd} doctor --explain DR004
";

/// Checks the cluster.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    // Trouble such as an APIService that does not respond has no namespace.
    let Arguments { all_namespaces: _, explain, older_than, output, baseline, create_baseline, fail_on, source } =
        arguments;
    if let Some(name) = explain {
        return doctor::explain(&name, printer);
    }
    doctor::run(&Options { source, older_than, format: output, baseline, create_baseline, fail_on }, printer)
}
