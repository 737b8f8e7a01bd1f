//! `kubectl olm install-plan wait`.

use std::time::Duration;

use clap::{ArgGroup, ValueEnum};
use olm_shell::cli::flags::{self, ClusterFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::installplan::wait::{self, Of, Options, Until};

/// Wait until an InstallPlan is complete, approved or failed.
///
/// It is watched, and told of as it changes. The waiting ends early, with exit code 1 and the cause, when what is waited for cannot
/// come to pass any more; and with exit code 1 when the time is up. Ctrl-C changes nothing.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES, group = ArgGroup::new("of").required(true))]
pub(crate) struct Arguments {
    /// The InstallPlan
    #[arg(group = "of")]
    plan: Option<String>,
    /// Subscription whose plan it is: the one that its status names, and the next as soon as it names another
    #[arg(long, value_name = "NAME", group = "of")]
    subscription: Option<String>,
    /// What should become of it
    #[arg(long = "for", value_enum, default_value_t = Until::Complete)]
    until: Until,
    /// How long (30s, 5m, 1h); 0 looks once
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = flags::duration)]
    timeout: Duration,
    /// Print every change as a line of JSON
    #[arg(short, long, value_enum)]
    output: Option<Format>,
    /// Namespace of the plan [default: the context's namespace]
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// The form of the changes that are told.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A document of kind `InstallPlanEvent` in each line.
    Json,
}

const EXAMPLES: &str = "Examples:
  # Until the plan is carried out, or has failed
  {cmd} wait install-x7k2p -n apps

  # Until somebody has approved what comes next for this Subscription
  {cmd} wait --subscription etcd -n apps --for approved --timeout 8h

  # As a stream of changes, for a program
  {cmd} wait --subscription etcd -n apps -o json
";

/// Waits.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { plan, subscription, until, timeout, output, namespace, cluster } = arguments;
    let of = match (plan, subscription) {
        (Some(plan), _) => Of::Plan(plan),
        (None, name) => Of::Subscription(name.unwrap_or_default()),
    };
    let json = matches!(output, Some(Format::Json));
    wait::run(&Options { cluster, namespace, of, until, timeout, json }, printer)
}
