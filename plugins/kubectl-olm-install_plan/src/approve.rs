//! `kubectl olm install-plan approve`.

use std::time::Duration;

use clap::ArgGroup;
use olm_shell::cli::flags::{self, ClusterFlags, DryRunFlag, ImageFlags, NamespaceFlags, SelectorFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::installplan::approve::{self, Options};
use olm_shell::installplan::policy::Terms;
use olm_shell::run::FeatureGates;

/// Approve InstallPlans, with conditions.
///
/// The effect of a plan is printed first (kubectl olm install-plan explain prints the full report), and on a terminal
/// you are prompted. Only what was shown is approved: a plan that changes in the meantime, or whose effect changes, is
/// not approved. Superseded plans are refused, as are plans that would fail (unless --allow-failing is given) and plans
/// whose operators do not depend on each other (unless --allow-bystanders or --only-csv allows them). --wait waits for
/// every approved plan, including those approved before.
///
/// One line is printed for each plan. The annotations kubectl-olm/approved-by, -at and -hash record the user, the time
/// and the hash of the explanation. Exit codes: 0 approved (or already approved), 1 not approved, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, group = ArgGroup::new("which").required(true).multiple(false))]
pub(crate) struct Arguments {
    /// InstallPlans to approve
    #[arg(value_name = "PLAN", group = "which")]
    plans: Vec<String>,
    /// Approve all plans that wait for approval, except superseded ones; -l selects by labels
    #[arg(long, group = "which")]
    all: bool,
    /// Approve only if the explanation has this hash, as printed by explain; at least its first 12 characters
    #[arg(long, value_name = "HASH")]
    explained: Option<String>,
    /// Approve only if this expression is true (may be repeated): CEL over the fields of explain -o json, with
    /// semver(x).major(), .minor(), .patch(), .isLessThan(y), .isGreaterThan(y), .compareTo(y), and isSemver(x)
    #[arg(long = "if", value_name = "EXPR")]
    policies: Vec<String>,
    /// Approve only plans that install no ClusterServiceVersion other than this one (may be repeated)
    #[arg(long = "only-csv", value_name = "NAME")]
    only_csvs: Vec<String>,
    /// Allow bystanders: plans that also install operators unrelated to the Subscription
    #[arg(long)]
    allow_bystanders: bool,
    /// Allow plans that would fail, and those whose result is unknown because OperatorGroups cannot be read
    #[arg(long)]
    allow_failing: bool,
    #[command(flatten)]
    dry_run: DryRunFlag,
    /// Wait until the approved plans are complete
    #[arg(long)]
    wait: bool,
    /// With --wait: how long to wait for each plan (30s, 5m, 1h)
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = flags::duration, requires = "wait")]
    timeout: Duration,
    /// Feature gates of the controllers, such as OptionalManifests=true; must match those given to explain
    #[arg(long, value_name = "NAME=BOOL,…", default_value = "", hide_default_value = true)]
    feature_gates: FeatureGates,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    selector: SelectorFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Show what the plan would do, prompt, approve, and wait until it is complete
  {cmd} approve install-x7k2p -n apps --wait

  # Approve exactly what was explained and reviewed, without a prompt
  {cmd} approve install-x7k2p -n apps --explained sha256:4be1… --yes

  # In a nightly job: approve safe plans that grant no escalating permissions and no new major version
  {cmd} approve --all -A --yes --if 'verdict.result == \"safe\" &&
    rbac.escalates == false &&
    csvs.all(x, x.from != null && semver(x.to).major() == semver(x.from).major())'
";

/// Approves the plans.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { plans, all, explained, policies, only_csvs, allow_bystanders, allow_failing, .. } = arguments;
    let Arguments { dry_run, wait, timeout, yes, namespaces, selector, images, cluster, feature_gates, .. } = arguments;
    if selector.selector.is_some() && !all {
        return Err(CliError::usage("-l selects plans of --all and cannot be combined with plan names"));
    }
    let options = Options {
        cluster,
        namespaces,
        plans,
        selector: selector.selector,
        terms: Terms { explained, allow_bystanders, allow_failing, policies, only_csvs },
        yes: yes.yes,
        dry_run: dry_run.dry_run,
        wait: wait.then_some(timeout),
        images: images.options()?,
        optional_manifests: feature_gates.optional_manifests(),
        plain_bundles: feature_gates.plain_bundles(),
    };
    approve::run(&options, printer)
}
