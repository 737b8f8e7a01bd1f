//! `kubectl olm uninstall`.

use std::time::Duration;

use olm_shell::cli::flags::{ClusterFlags, DryRunFlag, YesFlag, duration};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::olm::uninstall::{self, Options};

/// Remove OLM from the cluster: its objects, controllers, API, permissions, namespaces, and its CRDs last.
///
/// Objects are found on the cluster, whichever tool has installed them. While there are operators, or catalogs and
/// OperatorGroups of users, the command lists them and refuses. CustomResourceDefinitions of operators and their
/// objects always remain, and so do namespaces with other workloads. An interrupted removal is continued by the same
/// command.
///
/// Exit codes: 0 nothing is left, 1 refused, declined, or something is left (with reasons), 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Remove only the controllers: operators, catalogs and the CRDs of OLM remain
    #[arg(long, conflicts_with = "delete_user_objects")]
    keep_crds: bool,
    /// Also delete Subscriptions, ClusterServiceVersions, catalogs and OperatorGroups of users; their operators stop
    #[arg(long)]
    delete_user_objects: bool,
    /// How long to wait for deletions
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Print what would be deleted, in order
  {cmd} uninstall --dry-run

  # Remove the controllers, and leave operators running without updates
  {cmd} uninstall --keep-crds
";

/// Removes OLM.
pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let options = Options {
        cluster: arguments.cluster.clone(),
        delete_user_objects: arguments.delete_user_objects,
        keep_crds: arguments.keep_crds,
        dry_run: arguments.dry_run.dry_run,
        yes: arguments.yes.yes,
        timeout: arguments.timeout,
    };
    uninstall::run(&options, printer)
}
