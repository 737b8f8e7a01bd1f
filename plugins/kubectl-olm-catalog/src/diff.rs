//! `kubectl olm catalog diff`.

use std::path::PathBuf;

use olm_shell::catalog::diff::{self, Options};
use olm_shell::catalog::{InstalledFrom, Ref};
use olm_shell::cli::flags::{ClusterFlags, ImageFlags, OutputFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

/// Say what changes from one catalog to another, and which versions that strands.
///
/// A version is stranded when its updates came to the head of its channel in OLD and do not in NEW. Without more, every
/// version counts that may be installed; with --installed-from, or a cluster that --context, --kubeconfig or their like choose,
/// only those that are, by their Subscriptions.
///
/// Exit codes: 0 nothing is stranded, 1 something is, 2 could not answer.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The catalog that is there
    old: Ref,
    /// The catalog that is to take its place
    new: Ref,
    /// File or folder with what is installed: Subscriptions, ClusterServiceVersions (may be repeated)
    #[arg(long, value_name = "FILE|DIR")]
    installed_from: Vec<PathBuf>,
    /// Only what is installed in this namespace [default: all namespaces]
    #[arg(short, long)]
    namespace: Option<String>,
    /// Only Subscriptions to this CatalogSource [default: to any, if OLD has their package]
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    source: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # What has changed, and would anybody be stranded?
  {cmd} diff registry.example.com/catalog:old ./catalog

  # Would anything that is installed on this cluster be stranded?
  {cmd} diff ./old ./new --context production

  # The same of objects in a file
  kubectl get sub,csv -A -o yaml > installed.yaml
  {cmd} diff ./old ./new --installed-from installed.yaml -o json
";

/// Compares.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { old, new, installed_from, namespace, source, output, images, cluster } = arguments;
    let [old, new] = [old, new].map(|r| r.on(&cluster, None));
    let installed_from = InstalledFrom::new(installed_from, cluster)?;
    if installed_from == InstalledFrom::Nothing && (namespace.is_some() || source.is_some()) {
        return Err(CliError::usage("nothing says what is installed")
            .hint("give --installed-from FILE, or choose a cluster with --context NAME"));
    }
    let (images, output) = (images.options()?, output.output);
    diff::run(&Options { old, new, installed_from, namespace, source, images, output }, printer)
}
