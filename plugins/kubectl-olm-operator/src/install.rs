//! `kubectl olm operator install`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ValueEnum};
use olm_shell::cli::flags::{self, ClusterFlags, DryRunFlag, ImageFlags, OutputFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::RequestedMode;
use olm_shell::operator::install::{self, Approval, CatalogSelection, Options};

use super::terms::TermsFlags;

/// Install an operator, and wait until it runs.
///
/// Selects catalog and channel, resolves the installation on a copy of the cluster and shows what it would do, then
/// creates what is missing (namespace, OperatorGroup, Subscription), approves exactly the InstallPlan that was shown,
/// and waits until its ClusterServiceVersion is Succeeded. Ends with the cause as soon as that cannot happen without a
/// user's action. There is no time limit unless --timeout is given. Run again, the command continues where it ended; it
/// refuses a Subscription with another catalog, channel, approval or configuration than requested.
///
/// An OperatorGroup of the namespace is used if the operator supports it. Otherwise one is created: for the operator's own
/// namespace, or for all namespaces if the operator supports only that; --install-mode selects another mode.
///
/// Exit codes: 0 the operator runs, 1 the prompt was declined, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The package, optionally in a range such as '>=1.2.0 <2.0.0' or one version
    #[arg(value_name = "PACKAGE[@RANGE]")]
    package: String,
    /// The catalog to install from, if several have the package; NAME=DIR is a directory that kubectl olm run serves
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    catalog: Option<CatalogSelection>,
    /// The channel [default: the default channel of the package, or that of the newest version in the range]
    #[arg(long)]
    channel: Option<String>,
    /// How later upgrades are approved; the first InstallPlan is approved by this command [default: manual]
    #[arg(long, value_enum, ignore_case = true)]
    approval: Option<ApprovalArgument>,
    /// Install exactly the selected version, and keep it: sets startingCSV and manual approval
    #[arg(long, conflicts_with = "approval")]
    pin: bool,
    /// The namespace of the operator
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Install into the namespace that the operator suggests
    #[arg(long, conflicts_with = "namespace")]
    suggested_namespace: bool,
    /// Create the namespace if it does not exist
    #[arg(long)]
    create_namespace: bool,
    /// The namespaces to watch: OwnNamespace, SingleNamespace=A, MultiNamespace=A,B or AllNamespaces
    #[arg(long, value_name = "MODE[=NAMESPACE,…]")]
    install_mode: Option<RequestedMode>,
    /// The ServiceAccount of a new OperatorGroup, with whose permissions operators of the namespace are installed
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// File with the spec.config of the Subscription: env, resources, nodeSelector, tolerations, …
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    terms: TermsFlags,
    /// Wait until the operator runs; with --wait=false only until its InstallPlan is approved
    #[arg(long, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1, default_value_t = true, default_missing_value = "true", require_equals = true)]
    wait: bool,
    /// How long to wait (30s, 5m, 1h) [default: as long as it can still succeed]
    #[arg(long, value_name = "DURATION", value_parser = flags::duration)]
    timeout: Option<Duration>,
    /// File or folder of objects to read instead of a cluster, with --dry-run=client (may be repeated)
    #[arg(long, value_name = "FILE|DIR")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// How InstallPlans are approved.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ApprovalArgument {
    /// Upgrades wait for kubectl olm operator upgrade
    Manual,
    /// Upgrades are installed as soon as the catalog has them
    Automatic,
}

const EXAMPLES: &str = "Examples:
  # Install an operator into a new namespace
  {cmd} install etcd -n apps --create-namespace

  # Install a version of the 1.x series in a pipeline, without a prompt, within ten minutes
  {cmd} install 'etcd@>=1.0.0 <2.0.0' -n apps --yes --timeout 10m

  # Print the objects for a GitOps repository
  {cmd} install etcd -n apps --create-namespace --dry-run=client -o yaml

  # Let the operator watch two namespaces
  {cmd} install etcd -n etcd --install-mode MultiNamespace=apps,data
";

/// Installs the operator.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { package, catalog, channel, approval, pin, namespace, suggested_namespace, .. } = arguments;
    let Arguments { create_namespace, install_mode, service_account, config, wait, timeout, from, .. } = arguments;
    let options = Options {
        package,
        catalog,
        channel,
        approval: approval.map(|approval| match approval {
            ApprovalArgument::Manual => Approval::Manual,
            ApprovalArgument::Automatic => Approval::Automatic,
        }),
        pin,
        namespace,
        suggested_namespace,
        create_namespace,
        mode: install_mode,
        service_account,
        config,
        terms: arguments.terms.terms(),
        wait,
        timeout,
        yes: arguments.yes.yes,
        dry_run: arguments.dry_run.dry_run,
        output: arguments.output.output,
        from,
        cluster: arguments.cluster,
        images: arguments.images.options()?,
    };
    install::run(&options, printer)
}
