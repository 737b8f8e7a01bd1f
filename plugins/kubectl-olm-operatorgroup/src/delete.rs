//! `kubectl olm operatorgroup delete`.

use olm_shell::cli::flags::{DryRunFlag, OutputFlags, SourceFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operatorgroup::delete::{self, Options};

/// Delete an OperatorGroup that kubectl olm compiled and no operator needs.
///
/// When Subscriptions are in the namespace you are asked, for without a group nothing comes of them.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, after_help = TABLE)]
pub(crate) struct Arguments {
    /// Name of the OperatorGroup [default: the one that is there]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Its namespace [default: the context's namespace]
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
  # The group of this namespace, if nobody needs it
  {cmd} delete -n apps

  # Would it go?
  {cmd} delete apps -n apps --dry-run=client
";

const TABLE: &str = "What is done, by what the namespace has:
  no group                      nothing: there is nothing to delete
  a group without the label     nothing: users look after it (exit code 1)
  kubectl-olm/compiled-by:
  kubectl-olm
  one of ours, with members     nothing: they would fail without it (exit code 1)
  one of ours, without members  it is deleted
  several                       nothing until you name one
";

/// Deletes.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { name, namespace, dry_run, yes, output, source } = arguments;
    delete::run(
        &Options { name, namespace, yes: yes.yes, dry_run: dry_run.dry_run, output: output.output, source },
        printer,
    )
}
