//! `kubectl olm operator run`.

use std::path::PathBuf;
use std::time::Duration;

use olm_shell::catalog::Ref;
use olm_shell::cli::flags::{self, ClusterFlags, DryRunFlag, ImageFlags, OutputFlags, YesFlag};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operator::RequestedMode;
use olm_shell::operator::run::{self, CatalogDirectory, Options, REGISTRY_IMAGE, Registry};

use super::terms::TermsFlags;

/// Run a bundle that is not published.
///
/// Validates the bundle, and installs it as install does, from a catalog that has only this bundle: no image is pushed. The
/// catalog is a CatalogSource of the namespace and ConfigMaps, which kubectl olm run reads. Where OLM runs the cluster, a
/// Deployment with opm serves them. Bundles of both types can be run: registry+v1, and k8s+v1 (plain manifests).
///
/// With --upgrade, the bundle is added to the catalog as the replacement of the installed version, and the operator is
/// upgraded to it. kubectl olm operator cleanup removes everything that was created. Run again, the command continues where
/// it ended.
///
/// Exit codes: 0 the operator runs, 1 the prompt was declined, 2 error.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The bundle: a directory with manifests/ and metadata/, an image, an OCI layout or an archive of one
    #[arg(value_name = "DIR|IMAGE|LAYOUT|ARCHIVE")]
    bundle: Ref,
    /// Upgrade the operator that was run before to this bundle
    #[arg(long)]
    upgrade: bool,
    /// The namespace of the operator and its catalog
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Create the namespace if it does not exist
    #[arg(long)]
    create_namespace: bool,
    /// The namespaces to watch: OwnNamespace, SingleNamespace=A, MultiNamespace=A,B or AllNamespaces
    #[arg(long, value_name = "MODE[=NAMESPACE,…]")]
    install_mode: Option<RequestedMode>,
    /// The ServiceAccount of a new OperatorGroup, with whose permissions operators of the namespace are installed
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// File or folder with an OperatorGroup, a Subscription or a CatalogSource to use instead of a generated one (may be
    /// repeated)
    #[arg(long, value_name = "FILE|DIR")]
    manifests: Vec<PathBuf>,
    /// A catalog in a directory that kubectl olm run serves, for dependencies (may be repeated)
    #[arg(long = "catalog", value_name = "NAME[.NAMESPACE]=DIR")]
    catalogs: Vec<CatalogDirectory>,
    /// Whether a registry in the cluster serves the catalog
    #[arg(long, value_enum, default_value = "auto")]
    registry: Registry,
    /// The image of the registry: with opm, sh and gunzip
    #[arg(long, value_name = "IMAGE", default_value = REGISTRY_IMAGE)]
    registry_image: String,
    #[command(flatten)]
    terms: TermsFlags,
    /// How long to wait (30s, 5m, 1h) [default: as long as it can still succeed]
    #[arg(long, value_name = "DURATION", value_parser = flags::duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    yes: YesFlag,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Run the bundle of a project in a new namespace
  {cmd} run ./bundle -n test --create-namespace

  # Upgrade it to the next version
  {cmd} run ./bundle -n test --upgrade

  # Run an image, with the OperatorGroup and the Subscription of the project
  {cmd} run registry.example.com/etcd-bundle:v1.0.0 -n test --manifests ./deploy/olm

  # Print the objects
  {cmd} run ./bundle -n test --dry-run=client -o yaml
";

/// Runs the bundle.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { bundle, upgrade, namespace, create_namespace, install_mode, service_account, .. } = arguments;
    let options = Options {
        bundle,
        upgrade,
        namespace,
        create_namespace,
        mode: install_mode,
        service_account,
        manifests: arguments.manifests,
        catalogs: arguments.catalogs,
        registry: arguments.registry,
        registry_image: arguments.registry_image,
        terms: arguments.terms.terms(),
        timeout: arguments.timeout,
        yes: arguments.yes.yes,
        dry_run: arguments.dry_run.dry_run,
        output: arguments.output.output,
        cluster: arguments.cluster,
        images: arguments.images.options()?,
    };
    run::run(&options, printer)
}
