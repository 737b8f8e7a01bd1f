//! `kubectl olm catalog diff`.

use std::path::PathBuf;

use olm_shell::catalog::diff::{self, Options};
use olm_shell::catalog::{InstalledFrom, Ref};
use olm_shell::cli::flags::{ClusterFlags, ImageFlags, PageFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

/// Compare two catalogs, and report the versions that the change strands.
///
/// A version is stranded if its updates reach the head of its channel in OLD but not in NEW. By default every version
/// that can be installed counts. With --installed-from, or a cluster selected by --context, --kubeconfig or a similar
/// flag, only installed versions count, according to their Subscriptions.
///
/// Exit codes: 0 nothing is stranded, 1 something is stranded, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Current catalog
    old: Ref,
    /// Catalog that would replace it
    new: Ref,
    /// File or folder with the installed Subscriptions and ClusterServiceVersions (may be repeated)
    #[arg(long, value_name = "FILE|DIR")]
    installed_from: Vec<PathBuf>,
    /// Only installations in this namespace [default: all namespaces]
    #[arg(short, long)]
    namespace: Option<String>,
    /// Only Subscriptions to this CatalogSource [default: any, if OLD has the package]
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    source: Option<String>,
    #[command(flatten)]
    output: PageFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Print the changes, and the versions that they strand
  {cmd} diff registry.example.com/catalog:old ./catalog

  # Check whether an operator on this cluster would be stranded
  {cmd} diff ./old ./new --context production

  # The same for objects in a file
  kubectl get sub,csv -A -o yaml > installed.yaml
  {cmd} diff ./old ./new --installed-from installed.yaml -o json

  # Write a page for a review
  {cmd} diff ./old ./new -o html > diff.html
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { old, new, installed_from, namespace, source, output, images, cluster } = arguments;
    let [old, new] = [old, new].map(|r| r.on(&cluster, None));
    let installed_from = InstalledFrom::new(installed_from, cluster)?;
    if installed_from == InstalledFrom::Nothing && (namespace.is_some() || source.is_some()) {
        return Err(CliError::usage("--namespace and --source need installed objects")
            .hint("give --installed-from FILE, or choose a cluster with --context NAME"));
    }
    let (images, output) = (images.options()?, output.output);
    diff::run(&Options { old, new, installed_from, namespace, source, images, output }, printer)
}
