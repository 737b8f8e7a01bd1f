//! `kubectl olm operator list`.

use olm_shell::cli::flags::{NamespaceFlags, SourceFlags};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::list::{self, Options};

/// List operators with their versions, their health, one cause and one command.
///
/// HEALTH is Healthy, Upgradable (an upgrade waits for approval), Progressing (no action is required) or Blocked (a user
/// has to act). CAUSE is the first reason on the way from the Subscription to the running operator, and COMMAND solves
/// it or shows more about it. NEXT is the version that is being installed, or that waits for approval.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// List only these operators, by the name of their Subscription or ClusterServiceVersion
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List only operators for which a user has to act
    #[arg(long)]
    blocked: bool,
    #[command(flatten)]
    list: ListFlags,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    source: SourceFlags,
}

const EXAMPLES: &str = "Examples:
  # List the operators of the cluster
  {cmd} list -A

  # List those for which a user has to act, and why
  {cmd} list -A --blocked -o wide

  # List the operators of a must-gather
  {cmd} list --from ./must-gather
";

/// Lists the operators.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { names, blocked, list, namespaces, source } = arguments;
    list::run(&Options { source, namespaces, names, blocked, list }, printer)
}
