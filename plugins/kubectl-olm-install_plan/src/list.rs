//! `kubectl olm install-plan list`.

use olm_shell::cli::flags::{NamespaceFlags, SourceFlags};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::installplan::list::{self, Options};

/// List InstallPlans: what each brings in whose place, how far it is, and what it waits for.
///
/// The reason is told as OLM wrote it into the plan, with the bundle that it is about when a plan has several. A plan that is
/// superseded has a newer one beside it in its namespace. With --from, plans of all namespaces are listed unless -n names one.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Only these InstallPlans
    #[arg(value_name = "PLAN")]
    plans: Vec<String>,
    /// Only those that wait for approval
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
  # What waits for approval anywhere on the cluster?
  {cmd} list -A --pending

  # Where do the plans of this namespace stand, step by step?
  {cmd} list -n apps -o wide

  # What becomes of them, as it happens
  {cmd} list -n apps --watch

  # The same of a must-gather
  {cmd} list --from ./must-gather
";

/// Lists.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { plans: names, pending, list, namespaces, source } = arguments;
    list::run(&Options { source, namespaces, names, pending, list }, printer)
}
