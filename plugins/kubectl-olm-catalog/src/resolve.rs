//! `kubectl olm catalog resolve`.

use std::path::PathBuf;

use olm_shell::catalog::InstalledFrom;
use olm_shell::catalog::resolve::{self, NamedCatalog, Options};
use olm_shell::cli::flags::{ClusterFlags, ImageFlags, OutputFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

/// Print what OLM would install, and why, or why there is no resolution.
///
/// The resolver is that of the controllers; nothing is changed. Installed objects count: they are read from files
/// (--installed), or from the cluster if --context, --kubeconfig or a similar flag selects one. A package with a
/// Subscription is resolved as the Subscription states.
///
/// If there is no resolution, print the contradicting constraints and possible fixes. The exit code is then 1.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Packages to install, and their versions: a range such as '>=1.2.0 <2.0.0', or one version
    #[arg(value_name = "PACKAGE[@RANGE]")]
    wanted: Vec<String>,
    /// Catalog to use (may be repeated, in order of preference), and the CatalogSource that it stands for [default: the
    /// one that all Subscriptions name, else olm/ and the last part of REF]
    #[arg(long = "catalog", value_name = "[[NAMESPACE/]NAME=]REF", required = true)]
    catalogs: Vec<NamedCatalog>,
    /// File or folder with the installed Subscriptions, ClusterServiceVersions and OperatorGroup (may be repeated)
    #[arg(long, value_name = "FILE|DIR")]
    installed: Vec<PathBuf>,
    /// Change to apply before resolving (may be repeated): channel:SUBSCRIPTION=CHANNEL, package:SUBSCRIPTION=PACKAGE,
    /// source:SUBSCRIPTION=NAMESPACE/NAME, no-starting-csv:SUBSCRIPTION, delete-subscription:NAME, delete-csv:NAME,
    /// delete-catalog:NAMESPACE/NAME
    #[arg(long = "what-if", value_name = "CHANGE")]
    what_if: Vec<String>,
    /// Namespace to install in [default: the context's namespace, the only one in the files, or default]
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
  # Print what would be installed with etcd, and why not a newer version
  {cmd} resolve etcd --catalog ./catalog

  # Check whether a namespace of the cluster could be upgraded from a new catalog
  {cmd} resolve --context staging -n apps --catalog registry.example.com/catalog:next

  # The same for objects in a file, with a Subscription switched to another channel
  kubectl get sub,csv,og,ip -n apps -o yaml > apps.yaml
  {cmd} resolve --installed apps.yaml --catalog ./catalog --what-if channel:etcd=fast
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { wanted, catalogs, installed, what_if, namespace, output, images, cluster } = arguments;
    let catalogs = catalogs.into_iter().map(|catalog| catalog.on(&cluster)).collect();
    let installed_from = InstalledFrom::new(installed, cluster)?;
    let (images, output) = (images.options()?, output.output);
    resolve::run(&Options { wanted, catalogs, installed_from, namespace, what_if, images, output }, printer)
}
