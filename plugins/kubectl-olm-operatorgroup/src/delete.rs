//! `kubectl olm operatorgroup delete`.

use olm_shell::cli::flags::{DryRunFlag, OutputFlags, SourceFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operatorgroup::delete::{self, Options};

/// Delete an OperatorGroup that kubectl-olm generated and no operator needs.
///
/// If the namespace has Subscriptions you are prompted, because they are not resolved without a group.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, after_help = TABLE)]
pub(crate) struct Arguments {
    /// Name of the OperatorGroup [default: the only one of the namespace]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Namespace of the OperatorGroup [default: the context's namespace]
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    source: SourceFlags,
}

const EXAMPLES: &str = "Examples:
  # Delete the group of a namespace, if no operator needs it
  {cmd} delete -n apps

  # Check whether a group would be deleted
  {cmd} delete apps -n apps --dry-run=client
";

const TABLE: &str = "What is done, depending on the groups of the namespace:
  none                          nothing: there is no group to delete
  a group without the label     nothing: users manage it (exit code 1)
  kubectl-olm/compiled-by:
  kubectl-olm
  a generated group with        nothing: its members would fail without it (exit code 1)
  members
  a generated group without     delete the group
  members
  several                       nothing, unless a name is given
";

/// Deletes the group.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { name, namespace, dry_run, yes, output, source } = arguments;
    delete::run(
        &Options { name, namespace, yes: yes.yes, dry_run: dry_run.dry_run, output: output.output, source },
        printer,
    )
}
