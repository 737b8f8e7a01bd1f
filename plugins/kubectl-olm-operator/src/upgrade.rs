//! `kubectl olm operator upgrade`.

use std::time::Duration;

use clap::ArgGroup;
use olm_shell::cli::flags::{self, ClusterFlags, DryRunFlag, ImageFlags, NamespaceFlags, OutputFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::upgrade::{self, CatalogDirectory, Options, Range, range};

use super::terms::TermsFlags;

/// Upgrade operators, one InstallPlan at a time.
///
/// Prints the versions on the path to the newest one, or to the newest one in the range of --to. Then explains each
/// InstallPlan, prompts, approves it, and waits until the operator runs before the next one is explained. The upgrade of an
/// operator ends if it is not healthy, and at the first plan that would fail. With --yes, plans that need a decision also end
/// it, unless --accept-risks or --if allows them. The other operators are still upgraded. Run again, the command continues
/// where it ended.
///
/// Exit codes: 0 up to date, or upgraded; 1 the prompt was declined; 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, group = ArgGroup::new("which").required(true).multiple(false))]
pub(crate) struct Arguments {
    /// The operators, by the names of their Subscriptions
    #[arg(value_name = "NAME", group = "which")]
    names: Vec<String>,
    /// Upgrade all operators with a Subscription
    #[arg(long, group = "which")]
    all: bool,
    /// Stop at the newest version in this range, such as '<2.0.0' or one version
    #[arg(long, value_name = "RANGE", value_parser = range, conflicts_with = "all")]
    to: Option<Range>,
    /// Print only the versions on the path
    #[arg(long)]
    path: bool,
    #[command(flatten)]
    terms: TermsFlags,
    /// With --yes: approve plans that need a decision, such as those that escalate permissions
    #[arg(long)]
    accept_risks: bool,
    /// How long to wait for each plan (30s, 5m, 1h) [default: as long as it can still succeed]
    #[arg(long, value_name = "DURATION", value_parser = flags::duration)]
    timeout: Option<Duration>,
    /// A catalog in a directory that kubectl olm run serves (may be repeated)
    #[arg(long = "catalog", value_name = "NAME[.NAMESPACE]=DIR")]
    catalogs: Vec<CatalogDirectory>,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Upgrade an operator to its newest version
  {cmd} upgrade etcd -n apps

  # Print the versions on the way to the newest 1.x
  {cmd} upgrade etcd -n apps --to '<2.0.0' --path

  # In a nightly job: upgrade everything that is safe
  {cmd} upgrade --all -A --yes -o json
";

/// Upgrades the operators.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { names, all: _, to, path, terms, accept_risks, timeout, catalogs, .. } = arguments;
    let options = Options {
        cluster: arguments.cluster,
        catalogs,
        namespaces: arguments.namespaces,
        names,
        to,
        path,
        terms: terms.terms(),
        accept_risks,
        timeout,
        yes: arguments.yes.yes,
        dry_run: arguments.dry_run.dry_run,
        output: arguments.output.output,
        images: arguments.images.options()?,
    };
    upgrade::run(&options, printer)
}
