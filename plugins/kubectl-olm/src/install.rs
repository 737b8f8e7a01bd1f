//! `kubectl olm install` and `kubectl olm upgrade`.

use std::time::Duration;

use olm_shell::cli::flags::{ClusterFlags, DryRunFlag, OutputFlags, duration};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::olm::install::{self, Mode, Options};
use olm_shell::olm::release::ReleaseFlags;

/// Install OLM: the controllers of kubectl-olm, a release of upstream OLM, or only the CRDs.
///
/// Objects are applied server-side, CRDs first; the command can be repeated. It refuses a cluster with another OLM, waits
/// until the Deployments are available and the ClusterServiceVersion of the package server has succeeded, and ends early
/// if a pod cannot start. --dry-run=client compares with the cluster, if one is configured; with -o yaml it prints the
/// manifests, and connects to no cluster.
///
/// Exit codes: 0 success, 1 OLM is installed but not ready, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Install only the CRDs and namespace olm, to run the controllers from outside with kubectl olm run
    #[arg(long)]
    crds_only: bool,
    #[command(flatten)]
    applied: Applied,
}

/// Flags of both commands.
#[derive(Debug, clap::Args)]
struct Applied {
    /// How long to wait until OLM works; 0 does not wait
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    release: ReleaseFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Install the CRDs, and run the controllers on this machine
  {cmd} install --crds-only && {cmd} run

  # Install the controllers of kubectl-olm from an image
  {cmd} install --image registry.example.com/kubectl-olm:v1

  # Install a release of upstream OLM without access to the network
  {cmd} install --version v0.28.0 --from ./olm-v0.28.0

  # Print the manifests
  {cmd} install --version v0.28.0 --from ./olm-v0.28.0 --dry-run=client -o yaml
";

/// Installs.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    install::run(&arguments.applied.options(Mode::Install, arguments.crds_only), printer)
}

impl Applied {
    fn options(self, mode: Mode, crds_only: bool) -> Options {
        let Self { timeout, dry_run, output, release, cluster } = self;
        Options { cluster, release, mode, crds_only, dry_run: dry_run.dry_run, timeout, output: output.output }
    }
}

/// Upgrade OLM to another release, with the same checks as install.
///
/// Objects that the release no longer contains remain. An older release is refused, and so is one that lacks a version of
/// a CRD in which objects are stored.
///
/// Exit codes: 0 success, 1 OLM is upgraded but not ready, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = UPGRADES)]
pub(crate) struct Upgrade {
    /// Replace the installed release by an older one
    #[arg(long)]
    allow_downgrade: bool,
    #[command(flatten)]
    applied: Applied,
}

const UPGRADES: &str = "Examples:
  # Upgrade upstream OLM
  {cmd} upgrade --version v0.32.0

  # Upgrade the controllers of kubectl-olm
  {cmd} upgrade --image registry.example.com/kubectl-olm:v2
";

/// Upgrades.
pub(crate) fn upgrade(arguments: Upgrade, printer: &mut Printer) -> Result<Outcome, CliError> {
    install::run(&arguments.applied.options(Mode::Upgrade { downgrade: arguments.allow_downgrade }, false), printer)
}
