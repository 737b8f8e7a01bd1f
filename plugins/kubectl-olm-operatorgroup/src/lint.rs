//! `kubectl olm operatorgroup lint`.

use std::path::PathBuf;

use olm_shell::cli::findings::Format;
use olm_shell::cli::flags::{ImageFlags, NamespaceFlags, SourceFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operatorgroup::lint::{self, FailOn, Options};

/// Check OperatorGroups for problems.
///
/// All findings are printed in one run, each with a stable code, the object, the consequence, and the smallest change
/// that fixes it. The rules are those of OLM: if there are no errors, no operator fails because of OperatorGroups.
///
/// All namespaces are read, because groups of different namespaces can conflict; findings are reported for the selected
/// namespace. Read permissions are sufficient; checks that are incomplete, because of missing permissions or missing
/// files, are reported.
///
/// Exit codes: 0 no findings at or above --fail-on, 1 findings, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Explain a rule, given by its code or name; without a value, list all rules
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "", exclusive = true)]
    explain: Option<String>,
    /// File or folder of objects to treat as applied, - for standard input (may be repeated)
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    on_top: Vec<PathBuf>,
    /// With --from: assume that objects missing from the files do not exist
    #[arg(long)]
    complete: bool,
    /// Check which versions of a package in the catalogs the groups support, and which group would be needed
    #[arg(long, value_name = "PACKAGE")]
    package: Option<String>,
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
    /// Fix findings where no intended setting is lost; prompts for each fix, and tries it as a server dry run first
    #[arg(long)]
    fix: bool,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    source: SourceFlags,
    #[command(flatten)]
    images: ImageFlags,
}

const EXAMPLES: &str = "Examples:
  # Check the OperatorGroups of a cluster
  {cmd} lint -A

  # Check a group before it is applied
  {cmd} lint -A -f group.yaml

  # Check a pull request, with annotations, omitting known findings
  {cmd} lint --from ./manifests -o github --baseline lint-baseline.yaml

  # List the groups that support a package
  {cmd} lint -A --package etcd --fail-on never

  # Explain the rule OG009
  {cmd} lint --explain OG009
";

/// Checks the groups.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { explain, on_top, complete, package, output, baseline, create_baseline, .. } = arguments;
    let Arguments { fail_on, fix, yes, namespaces, source, images, .. } = arguments;
    if let Some(name) = explain {
        return lint::explain(&name, printer);
    }
    let options = Options {
        source,
        namespaces,
        on_top,
        complete,
        package,
        images: images.options()?,
        format: output,
        baseline,
        create_baseline,
        fail_on,
        fix,
        yes: yes.yes,
    };
    lint::run(&options, printer)
}
