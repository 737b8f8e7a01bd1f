//! `kubectl olm operator uninstall`.

use std::path::PathBuf;
use std::time::Duration;

use olm_shell::cli::flags::{self, ClusterFlags, DryRunFlag, OutputFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::uninstall::{self, Options};

/// Uninstall an operator.
///
/// Prints what is deleted, what is retained and why, and prompts. Then deletes the Subscription, the custom resources (with
/// --delete-operands) while the operator can process their finalizers, the ClusterServiceVersion with everything that OLM
/// created for it, and the CustomResourceDefinitions (with --delete-crds). CustomResourceDefinitions that other operators own
/// or require are always retained, as are those that the operator itself only requires. A conversion webhook of a
/// retained definition, which would fail without the operator, is replaced by the conversion None.
///
/// Also removes operators that never ran, and works where no controllers run. Run again, the command continues where it
/// ended. Exit codes: 0 nothing is left, 1 the prompt was declined or something is left, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The operator, by the name of its Subscription, its package or its ClusterServiceVersion
    name: String,
    /// Keep its CustomResourceDefinitions (the default)
    #[arg(long, conflicts_with = "delete_crds")]
    keep_crds: bool,
    /// Delete its CustomResourceDefinitions with all custom resources, in all namespaces
    #[arg(long, conflicts_with = "keep_operands")]
    delete_crds: bool,
    /// Keep its custom resources (the default)
    #[arg(long, conflicts_with = "delete_operands")]
    keep_operands: bool,
    /// Delete its custom resources in the namespaces that it watches
    #[arg(long)]
    delete_operands: bool,
    /// Directory for a backup of all deleted custom resources and definitions. To restore them, apply the files in
    /// 0-customresourcedefinitions, wait until these are Established, and run kubectl apply -R -f DIR. The directory must
    /// not exist, be empty, or be that of an interrupted removal of the same operator
    #[arg(long, value_name = "DIR")]
    backup: Option<PathBuf>,
    /// Uninstall it even if other operators require it
    #[arg(long)]
    force: bool,
    /// How long to wait for custom resources and for definitions (30s, 5m) [default: for custom resources as long as the
    /// operator runs, otherwise one minute; for definitions five minutes]
    #[arg(long, value_name = "DURATION", value_parser = flags::duration)]
    timeout: Option<Duration>,
    /// The namespace of the operator
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Show what would be deleted
  {cmd} uninstall etcd -n apps --dry-run

  # Uninstall an operator, and keep its definitions and custom resources
  {cmd} uninstall etcd -n apps

  # Delete everything, with a backup
  {cmd} uninstall etcd -n apps --delete-crds --backup ./etcd-backup --yes
";

/// Uninstalls the operator.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { name, delete_crds, delete_operands, backup, force, timeout, namespace, .. } = arguments;
    let options = Options {
        cluster: arguments.cluster,
        namespace,
        name,
        delete_crds,
        delete_operands: delete_operands || delete_crds,
        backup,
        force,
        timeout,
        yes: arguments.yes.yes,
        dry_run: arguments.dry_run.dry_run,
        output: arguments.output.output,
    };
    uninstall::run(&options, printer)
}
