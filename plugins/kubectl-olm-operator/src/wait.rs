//! `kubectl olm operator wait`.

use std::time::Duration;

use olm_shell::cli::flags::{self, ClusterFlags, OutputFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::wait::{self, Condition, Options};

/// Wait until an operator is installed, upgradable or deleted, or has a version.
///
/// Ends with the cause as soon as the condition cannot become true without a user's action: for failures that controllers
/// leave by themselves, when they last.
///
/// Exit codes: 0 the condition is true, 2 it is not, or an error occurred.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The operator, by the name of its Subscription
    name: String,
    /// The condition: installed, upgradable, deleted or version=RANGE
    #[arg(long = "for", value_name = "CONDITION", default_value = "installed")]
    condition: Condition,
    /// How long to wait (30s, 5m, 1h) [default: as long as the condition can become true]
    #[arg(long, value_name = "DURATION", value_parser = flags::duration)]
    timeout: Option<Duration>,
    /// The namespace of the operator
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Wait until an operator runs
  {cmd} wait etcd -n apps

  # Wait until version 2 runs, for at most ten minutes
  {cmd} wait etcd -n apps --for='version=>=2.0.0' --timeout 10m
";

/// Waits for the condition.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { name, condition, timeout, namespace, output, cluster } = arguments;
    wait::run(&Options { cluster, namespace, name, condition, timeout, output: output.output }, printer)
}
