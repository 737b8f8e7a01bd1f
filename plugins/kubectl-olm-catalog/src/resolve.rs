//! `kubectl olm catalog resolve`.

use std::path::PathBuf;

use olm_shell::catalog::InstalledFrom;
use olm_shell::catalog::resolve::{self, NamedCatalog, Options};
use olm_shell::cli::flags::{ClusterFlags, ImageFlags, OutputFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

/// Say what OLM would install, and why; or why it cannot.
///
/// Asked is the resolver of the controllers, and nothing is changed. What is there already counts: it is read from files
/// (--installed), or from the cluster when --context, --kubeconfig or their like choose one. A package with a Subscription is
/// resolved as that says.
///
/// The answer is no (exit code 1) when there is no resolution; what contradicts what is told, and what would help.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Packages to install, and in which versions: a range such as '>=1.2.0 <2.0.0', or one version
    #[arg(value_name = "PACKAGE[@RANGE]")]
    wanted: Vec<String>,
    /// Catalog to choose from (may be repeated, the preferred first), and the CatalogSource that it stands for [default: the
    /// one that all Subscriptions name, else olm/ and the last part of REF]
    #[arg(long = "catalog", value_name = "[[NAMESPACE/]NAME=]REF", required = true)]
    catalogs: Vec<NamedCatalog>,
    /// File or folder with what is there: Subscriptions, ClusterServiceVersions, the OperatorGroup (may be repeated)
    #[arg(long, value_name = "FILE|DIR")]
    installed: Vec<PathBuf>,
    /// Change to try before resolving (may be repeated): channel:SUBSCRIPTION=CHANNEL, package:SUBSCRIPTION=PACKAGE,
    /// source:SUBSCRIPTION=NAMESPACE/NAME, no-starting-csv:SUBSCRIPTION, delete-subscription:NAME, delete-csv:NAME,
    /// delete-catalog:NAMESPACE/NAME
    #[arg(long = "what-if", value_name = "CHANGE")]
    what_if: Vec<String>,
    /// Namespace to install in [default: the context's, the only one of the files, or default]
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # What would be installed with etcd, and why not a newer version?
  {cmd} resolve etcd --catalog ./catalog

  # Could this namespace of the cluster be upgraded from the next catalog?
  {cmd} resolve --context staging -n apps --catalog registry.example.com/catalog:next

  # The same of objects in a file, should the Subscription follow another channel
  kubectl get sub,csv,og,ip -n apps -o yaml > apps.yaml
  {cmd} resolve --installed apps.yaml --catalog ./catalog --what-if channel:etcd=fast
";

/// Resolves.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { wanted, catalogs, installed, what_if, namespace, output, images, cluster } = arguments;
    let catalogs = catalogs.into_iter().map(|catalog| catalog.on(&cluster)).collect();
    let installed_from = InstalledFrom::new(installed, cluster)?;
    let (images, output) = (images.options()?, output.output);
    resolve::run(&Options { wanted, catalogs, installed_from, namespace, what_if, images, output }, printer)
}
