//! `kubectl olm install-plan approve`.

use std::time::Duration;

use clap::ArgGroup;
use olm_shell::cli::flags::{self, ClusterFlags, DryRunFlag, ImageFlags, NamespaceFlags, SelectorFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::installplan::approve::{self, Options};
use olm_shell::installplan::policy::Terms;
use olm_shell::run::FeatureGates;

/// Approve InstallPlans, on terms.
///
/// What a plan would do is shown first (kubectl olm install-plan explain tells all of it), and on a terminal you are asked. What is
/// approved is what was shown: a plan that changes meanwhile, or that would do something else, is not approved. Plans that a newer
/// one supersedes are refused. So are plans that would fail, unless --allow-failing is given, and plans whose operators do not need
/// each other, unless --allow-bystanders or --only-csv says that they may come together. --wait waits for the end of every plan that
/// is approved, also of those that were approved before.
///
/// Each plan gets one line. Who approved it, when, and the hash of its explanation are noted as annotations kubectl-olm/approved-by,
/// -at and -hash. Exit codes: 0 approved (or already), 1 not approved, 2 could not answer.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, group = ArgGroup::new("which").required(true).multiple(false))]
pub(crate) struct Arguments {
    /// InstallPlans to approve
    #[arg(value_name = "PLAN", group = "which")]
    plans: Vec<String>,
    /// All that wait for approval, but superseded ones; with -l those with these labels
    #[arg(long, group = "which")]
    all: bool,
    /// Only what has been explained: the hash that explain printed, or at least its first 12 characters
    #[arg(long, value_name = "HASH")]
    explained: Option<String>,
    /// Only if this holds (may be repeated): CEL over the fields of explain -o json, with semver(x).major(), .minor(), .patch(),
    /// .isLessThan(y), .isGreaterThan(y), .compareTo(y), and isSemver(x)
    #[arg(long = "if", value_name = "EXPR")]
    policies: Vec<String>,
    /// Only plans that bring nothing but ClusterServiceVersions of this name (may be repeated)
    #[arg(long = "only-csv", value_name = "NAME")]
    only_csvs: Vec<String>,
    /// Also plans whose operators do not need each other
    #[arg(long)]
    allow_bystanders: bool,
    /// Also plans that would fail, and those of which that cannot be known since OperatorGroups may not be read
    #[arg(long)]
    allow_failing: bool,
    #[command(flatten)]
    dry_run: DryRunFlag,
    /// Then wait until the plans are complete
    #[arg(long)]
    wait: bool,
    /// With --wait: how long, for each (30s, 5m, 1h)
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = flags::duration, requires = "wait")]
    timeout: Duration,
    /// Feature gates of the controllers, such as OptionalManifests=true, as they were given to explain
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
  # Show what the plan would do, ask, approve, and wait until it is done
  {cmd} approve install-x7k2p -n apps --wait

  # Exactly what was explained and reviewed, without asking
  {cmd} approve install-x7k2p -n apps --explained sha256:4be1… --yes

  # Every night: what is safe, brings no new rights that escalate, and no new major version
  {cmd} approve --all -A --yes --if 'verdict.result == \"safe\" &&
    rbac.escalates == false &&
    csvs.all(x, x.from != null && semver(x.to).major() == semver(x.from).major())'
";

/// Approves.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { plans, all, explained, policies, only_csvs, allow_bystanders, allow_failing, .. } = arguments;
    let Arguments { dry_run, wait, timeout, yes, namespaces, selector, images, cluster, feature_gates, .. } = arguments;
    if selector.selector.is_some() && !all {
        return Err(CliError::usage("-l chooses among --all, not among plans that are named"));
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
    };
    approve::run(&options, printer)
}
