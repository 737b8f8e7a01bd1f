//! `kubectl olm install-plan wait`.

use std::time::Duration;

use clap::{ArgGroup, ValueEnum};
use olm_shell::cli::flags::{self, ClusterFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::installplan::wait::{self, Options, Target, Until};

/// Wait until an InstallPlan is complete, approved or failed.
///
/// Changes of the plan are printed while waiting. The exit code is 1, and the cause is printed, as soon as the
/// condition can no longer be met, or when the timeout expires. Ctrl-C changes nothing.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, group = ArgGroup::new("of").required(true))]
pub(crate) struct Arguments {
    /// InstallPlan to wait for
    #[arg(group = "of")]
    plan: Option<String>,
    /// Subscription whose plan to wait for: the one named in its status, followed when the status names another
    #[arg(long, value_name = "NAME", group = "of")]
    subscription: Option<String>,
    /// Condition to wait for
    #[arg(long = "for", value_enum, default_value_t = Until::Complete)]
    until: Until,
    /// How long to wait (30s, 5m, 1h); 0 checks once
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = flags::duration)]
    timeout: Duration,
    /// Print every change as one line of JSON
    #[arg(short, long, value_enum)]
    output: Option<Format>,
    /// Namespace of the plan [default: the context's namespace]
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// The format of the printed changes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A document of kind `InstallPlanEvent` in each line.
    Json,
}

const EXAMPLES: &str = "Examples:
  # Wait until the plan is complete or has failed
  {cmd} wait install-x7k2p -n apps

  # Wait until the next plan of a Subscription is approved
  {cmd} wait --subscription etcd -n apps --for approved --timeout 8h

  # Print the changes as a stream of JSON
  {cmd} wait --subscription etcd -n apps -o json
";

/// Waits for the plan.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { plan, subscription, until, timeout, output, namespace, cluster } = arguments;
    let of = match (plan, subscription) {
        (Some(plan), _) => Target::Plan(plan),
        (None, name) => Target::Subscription(name.unwrap_or_default()),
    };
    let json = matches!(output, Some(Format::Json));
    wait::run(&Options { cluster, namespace, of, until, timeout, json }, printer)
}
