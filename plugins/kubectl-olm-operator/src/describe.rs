//! `kubectl olm operator describe`.

use olm_shell::cli::flags::{NamespaceFlags, PageFlags, SourceFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::describe::{self, Options};

/// Describe operators: each stage from the Subscription to the running pods, and what is wrong.
///
/// The stages are Subscription, Catalog, Resolution, Unpack, InstallPlan, OperatorGroup, ClusterServiceVersion, Deployment,
/// Pod, APIService, Webhook and Certificate, each Ok, Waiting, Failed, or Unknown if it could not be read. Each problem has
/// a stable code, its usual causes, and a command that fixes it or shows more about it.
///
/// Exit codes: 0 no action is required, 1 a user has to act, or a named operator does not exist, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Describe these operators, by the name of their Subscription, package or ClusterServiceVersion [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Explain a problem, given by its code or name; without a value, list all codes
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "", exclusive = true)]
    explain: Option<String>,
    /// Describe operators again whenever their state changes, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    output: PageFlags,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    source: SourceFlags,
}

const EXAMPLES: &str = "Examples:
  # Describe an operator
  {cmd} describe etcd -n apps

  # Describe the operators of a must-gather
  {cmd} describe -A --from ./must-gather

  # Write a page about the operators of the cluster
  {cmd} describe -A -o html > operators.html

  # List the codes of the problems of all operators
  {cmd} describe -A -o jsonpath='{.items[*].problems[*].code}'

  # Explain the problem OP044
  {cmd} describe --explain OP044
";

/// Describes the operators.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { names, explain, watch, output, namespaces, source } = arguments;
    if let Some(name) = explain {
        return describe::explain(&name, printer);
    }
    describe::run(&Options { source, namespaces, names, watch, output }, printer)
}
