//! `kubectl olm status`.

use olm_shell::cli::flags::{ClusterFlags, NamespaceFlags, OutputFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::olm::release::ReleaseFlags;
use olm_shell::olm::status::{self, Options};

/// Show the state of OLM, of its catalogs, and of operators.
///
/// An object is Present, Absent, Changed (it differs from the manifests of --version or --from), Unhealthy or Deleting. The
/// table contains only objects that are not Present; -o wide shows all. Operators are shown as by kubectl olm operator
/// list; -n and -A select their namespaces.
///
/// Exit codes: 0 OLM is ready, 1 it is not installed or not ready, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    release: ReleaseFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Show the state of OLM, and of the operators in all namespaces
  {cmd} status -A

  # Compare each object with the manifests of a release
  {cmd} status --version v0.28.0 -o wide
";

/// Shows the state.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { namespaces, output, release, cluster } = arguments;
    status::run(&Options { cluster, release, namespaces, output: output.output }, printer)
}
