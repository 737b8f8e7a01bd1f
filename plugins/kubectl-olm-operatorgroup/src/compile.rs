//! `kubectl olm operatorgroup compile`.

use olm_shell::cli::flags::{DataFormat, ImageFlags, SourceFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operatorgroup::compile::{self, Options};

use crate::group_request::GroupRequestArguments;

/// Generate the OperatorGroup that an operator needs.
///
/// By default, the group targets the operator's own namespace. With an install mode or target namespaces, check that
/// they match each other and the operator's namespace; with --bundle or --package, also that the operator supports the
/// install mode.
///
/// With --service-account, and --bundle or --package, also generate the ServiceAccount with the minimal permissions to
/// install this version of the operator and its dependencies. The permissions are determined by a simulated
/// installation; the next version may need more.
///
/// The manifests are printed and can be applied. Nothing is written to a cluster.
///
/// Exit codes: 0 success, 1 the operator does not support these namespaces, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    request: GroupRequestArguments,
    /// Also print the permissions that OLM grants to the operator, and to users of its APIs: as comments, or with -o
    /// json on stderr
    #[arg(long)]
    rbac: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: DataFormat,
    #[command(flatten)]
    source: SourceFlags,
    #[command(flatten)]
    images: ImageFlags,
}

const EXAMPLES: &str = "Examples:
  # For an operator that watches its own namespace
  {cmd} compile -n apps | kubectl apply -f -

  # For an operator in apps that watches two other namespaces, if the bundle supports it
  {cmd} compile -n apps --target-namespaces east,west --bundle ./bundle

  # For all namespaces, with a ServiceAccount that can install this operator and nothing else
  {cmd} compile -n apps --install-mode AllNamespaces --package etcd \\
    --service-account etcd-installer

  # Print the permissions that the group leads to
  {cmd} compile -n apps --package etcd --catalog community=./catalog --rbac
";

/// Generates the group.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { request, rbac, output, source, images } = arguments;
    let options = Options { request: request.into_request(), source, images: images.options()?, rbac, format: output };
    compile::run(&options, printer)
}
