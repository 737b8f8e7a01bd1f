//! `kubectl olm operatorgroup lint`.

use std::path::PathBuf;

use olm_shell::cli::findings::Format;
use olm_shell::cli::flags::{ImageFlags, NamespaceFlags, SourceFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operatorgroup::lint::{self, FailOn, Options};

/// Find everything that is wrong with OperatorGroups.
///
/// All findings are told in one run, each with a code that stays the same, the object, what it leads to, and the smallest change that
/// mends it. The same rules are applied that OLM goes by: without errors no operator fails because of OperatorGroups.
///
/// It looks at all namespaces, as groups of one clash with groups of others, and tells what concerns the namespace that is asked about.
/// Rights to read are enough; what was checked only in part, for lack of rights or because files do not tell, is said.
///
/// Exit codes: 0 nothing found that counts (--fail-on), 1 findings, 2 could not answer.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Explain a rule, by its code or name; without one list all rules
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "", exclusive = true)]
    explain: Option<String>,
    /// File or folder of objects that count as if they had been applied, - for standard input (may be repeated)
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    on_top: Vec<PathBuf>,
    /// With --from: what is not in the files does not exist
    #[arg(long)]
    complete: bool,
    /// Hold the versions of a package of the catalogs against the groups: which fit, and which group would
    #[arg(long, value_name = "PACKAGE")]
    package: Option<String>,
    /// Form of the findings
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    output: Format,
    /// Leave out the findings that are written in this file
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the findings to the file of --baseline, as known from now on
    #[arg(long)]
    create_baseline: bool,
    /// How bad a finding must be for exit code 1
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t)]
    fail_on: FailOn,
    /// Mend what can be mended without taking away what somebody may want: asks for each, tries it out on the server first
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
  # What is wrong with the OperatorGroups of a cluster?
  {cmd} lint -A

  # What would be wrong if I applied this?
  {cmd} lint -A -f group.yaml

  # In a pull request, as annotations; what was there before is known
  {cmd} lint --from ./manifests -o github --baseline lint-baseline.yaml

  # Into which groups could I install this package?
  {cmd} lint -A --package etcd --fail-on never

  # What does OG009 mean?
  {cmd} lint --explain OG009
";

/// Lints.
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
