//! `kubectl olm operatorgroup compile`.

use olm_shell::cli::flags::{DataFormat, ImageFlags, SourceFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operatorgroup::compile::{self, Options};

use crate::wish::Wish;

/// Write the OperatorGroup that an operator needs.
///
/// Without an install mode and namespaces it is one for the operator's own namespace. Else the namespaces are checked against the
/// mode and the operator's namespace, and with --bundle or --package against the install modes that the operator supports.
///
/// With --service-account, and --bundle or --package, the ServiceAccount comes with the least rights that it needs to install this
/// version of the operator, and what it depends on. They were found by installing it in a copy: the next version may need more.
///
/// Nothing is written to a cluster. What is printed can be applied.
///
/// Exit codes: 0 done, 1 the operator does not support these namespaces, 2 could not answer.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    wish: Wish,
    /// Tell also which rights OLM gives the operator, and people on its APIs: as comments, with -o json on stderr
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
  # For an operator that looks after its own namespace
  {cmd} compile -n apps | kubectl apply -f -

  # For one in apps that looks after two others; does this bundle support that?
  {cmd} compile -n apps --target-namespaces east,west --bundle ./bundle

  # For all namespaces, with a ServiceAccount that may install this operator and nothing else
  {cmd} compile -n apps --install-mode AllNamespaces --package etcd \\
    --service-account etcd-installer

  # Which rights come of it?
  {cmd} compile -n apps --package etcd --catalog community=./catalog --rbac
";

/// Compiles.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { wish, rbac, output, source, images } = arguments;
    let options = Options { wanted: wish.wanted(), source, images: images.options()?, rbac, format: output };
    compile::run(&options, printer)
}
