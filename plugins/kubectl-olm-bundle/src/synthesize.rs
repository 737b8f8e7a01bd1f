//! `kubectl olm bundle synthesize`.

use std::path::PathBuf;

use olm_shell::bundle::synthesize::{self, Options, Target};
use olm_shell::catalog::Ref;
use olm_shell::cli::flags::{ClusterFlags, CredentialFlags, DataFormat, ImageFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

/// Create a ClusterServiceVersion, or a whole bundle, from plain manifests.
///
/// The manifests are files, directories (with their subdirectories), or - for standard input, as kustomize and helm
/// template print them. What manifests do not state comes from metadata/olm.yaml of a directory, from --metadata, from
/// --package and --version, or from answers on the terminal. A rule does not state the kinds of the APIs that it names:
/// they come from olm.yaml, from the cluster if a flag selects one, and from catalogs. Everything that OLM cannot carry
/// is reported with its file and line; with errors nothing is printed or written, and the exit code is 1.
///
/// With --output-dir, files that were changed by hand since the last run keep these changes. If this run changes the
/// same lines, nothing is written.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Manifests: files, directories, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// File with the metadata of the bundle [default: metadata/olm.yaml of the first directory that has one]
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    /// Package of the bundle [default: that of the input's metadata/annotations.yaml, else the name of the
    /// ClusterServiceVersion up to its version]
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Version of the operator, if the metadata do not state it
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// ClusterServiceVersion that this one replaces
    #[arg(long, value_name = "NAME")]
    replaces: Option<String>,
    /// ClusterServiceVersions that updates skip
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    skips: Vec<String>,
    /// Channels of the bundle [default: those of the input's metadata/annotations.yaml, else stable]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    channels: Vec<String>,
    /// Default channel of the package [default: that of the input's metadata/annotations.yaml]
    #[arg(long, value_name = "NAME")]
    default_channel: Option<String>,
    /// What to create
    #[arg(long, value_enum, value_name = "TARGET", default_value_t)]
    to: Target,
    /// Directory for the bundle; a ClusterServiceVersion alone is written to its subdirectory manifests
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Print the changes of the directory without writing them
    #[arg(long, requires = "output_dir", conflicts_with = "account")]
    dry_run: bool,
    /// Catalog whose bundles provide APIs that the operator requires: a directory, file, image or catalogsource/NAME
    /// (may be repeated)
    #[arg(long = "catalog", value_name = "CATALOG")]
    catalogs: Vec<Ref>,
    /// Print where each object of the input went, in place of the ClusterServiceVersion
    #[arg(long, conflicts_with = "output_dir")]
    account: bool,
    /// Output format [default: yaml, and a table with --account]
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<DataFormat>,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    credentials: CredentialFlags,
}

const EXAMPLES: &str = "Examples:
  # Print the ClusterServiceVersion of an operator
  {cmd} synthesize ./deploy --package rose --version 1.0.0

  # See where each object went, and what OLM cannot carry
  kustomize build ./config/default | {cmd} synthesize - --package rose --version 1.0.0 --account

  # Write a bundle of plain manifests, and one for catalogs of every OLM
  {cmd} synthesize ./deploy --metadata olm.yaml --to k8s+v1 --output-dir ./bundle
  {cmd} synthesize ./deploy --metadata olm.yaml --to registry+v1 --output-dir ./bundle

  # Look up the kinds of required APIs in the cluster of a context
  {cmd} synthesize ./deploy --metadata olm.yaml --to k8s+v1 --output-dir ./bundle --context kind
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { cluster, .. } = arguments;
    let options = Options {
        paths: arguments.paths,
        metadata: arguments.metadata,
        package: arguments.package,
        version: arguments.version,
        replaces: arguments.replaces,
        skips: arguments.skips,
        channels: arguments.channels,
        default_channel: arguments.default_channel,
        target: arguments.to,
        output_dir: arguments.output_dir,
        dry_run: arguments.dry_run,
        account: arguments.account,
        catalogs: arguments.catalogs.into_iter().map(|catalog| catalog.on(&cluster, None)).collect(),
        cluster,
        images: arguments.images.options()?,
        credentials: arguments.credentials,
        format: arguments.output,
    };
    synthesize::run(&options, printer)
}
