//! `kubectl olm install-plan list`.

use olm_shell::cli::flags::{NamespaceFlags, SourceFlags};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::installplan::list::{self, Options};

/// List InstallPlans with their contents, phase and progress.
///
/// REASON is the reason in the status of the plan; in a plan of several bundles, the bundle is named. A superseded plan
/// has a newer one in its namespace. With --from, plans of all namespaces are listed unless -n is given.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// List only these InstallPlans
    #[arg(value_name = "PLAN")]
    plans: Vec<String>,
    /// List only plans that wait for approval
    #[arg(long)]
    pending: bool,
    #[command(flatten)]
    list: ListFlags,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    source: SourceFlags,
}

const EXAMPLES: &str = "Examples:
  # List all plans on the cluster that wait for approval
  {cmd} list -A --pending

  # List the plans of a namespace, with their steps
  {cmd} list -n apps -o wide

  # Watch the plans
  {cmd} list -n apps --watch

  # List the plans of a must-gather
  {cmd} list --from ./must-gather
";

/// Lists the plans.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { plans: names, pending, list, namespaces, source } = arguments;
    list::run(&Options { source, namespaces, names, pending, list }, printer)
}
