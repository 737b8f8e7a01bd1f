//! `kubectl olm take-over` and `kubectl olm hand-back`.

use std::time::Duration;

use olm_shell::cli::flags::{ClusterFlags, DryRunFlag, YesFlag, duration};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::olm::release::ControllerImageFlags;
use olm_shell::olm::{hand_back, take_over};

/// Stop upstream OLM, and run the controllers of kubectl-olm in the cluster in its place.
///
/// An audit has to find nothing to change, as kubectl olm run --audit --once. The Deployments of upstream OLM are scaled to zero and remain;
/// CRDs, catalogs and operators are not changed. If the controllers do not become ready, upstream OLM is started again.
/// To run the controllers on this machine: kubectl olm run --take-over.
///
/// Exit codes: 0 success, 1 the controllers would change objects, declined, or not ready (with reasons), 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = TAKE_OVER)]
pub(crate) struct TakeOver {
    #[command(flatten)]
    images: ControllerImageFlags,
    #[command(flatten)]
    transfer: Transfer,
}

/// Remove the controllers of kubectl-olm, and start upstream OLM in their place.
///
/// Reverses kubectl olm take-over and kubectl olm run --take-over: the Deployments of upstream OLM get back the number of
/// replicas that they had. An audit has to find nothing to change: installations are complete. Processes of kubectl olm run
/// have to be stopped before.
///
/// Exit codes: 0 success, 1 the controllers would still change objects, declined, or not ready (with reasons), 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = HAND_BACK)]
pub(crate) struct HandBack {
    #[command(flatten)]
    transfer: Transfer,
}

/// Flags of both commands.
#[derive(Debug, clap::Args)]
struct Transfer {
    /// Proceed even if the controllers would change objects
    #[arg(long)]
    allow_changes: bool,
    /// How long to wait until the started controllers are ready; 0 has no limit
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const TAKE_OVER: &str = "Examples:
  # Check whether the cluster can be taken over, and print what would be done
  {cmd} take-over --image registry.example.com/kubectl-olm:v1 --dry-run

  # Take over
  {cmd} take-over --image registry.example.com/kubectl-olm:v1
";

const HAND_BACK: &str = "Examples:
  # Print what would be done
  {cmd} hand-back --dry-run

  # Start upstream OLM again
  {cmd} hand-back
";

/// Takes over.
pub(crate) fn take_over(arguments: TakeOver, printer: &mut Printer) -> Result<Outcome, CliError> {
    let TakeOver { images, transfer: Transfer { allow_changes, timeout, dry_run, yes, cluster } } = arguments;
    let (dry_run, yes) = (dry_run.dry_run, yes.yes);
    take_over::run(&take_over::Options { cluster, images, allow_changes, dry_run, yes, timeout }, printer)
}

/// Hands back.
pub(crate) fn hand_back(arguments: HandBack, printer: &mut Printer) -> Result<Outcome, CliError> {
    let HandBack { transfer: Transfer { allow_changes, timeout, dry_run, yes, cluster } } = arguments;
    let (dry_run, yes) = (dry_run.dry_run, yes.yes);
    hand_back::run(&hand_back::Options { cluster, allow_changes, dry_run, yes, timeout }, printer)
}
