//! `kubectl olm bundle synthesize`.

use std::path::PathBuf;

use olm_shell::bundle::synthesize::{self, Options, Proposal, Target};
use olm_shell::cli::flags::DataFormat;
use olm_shell::cli::{CliError, Outcome, Printer};

/// Create a ClusterServiceVersion, or a whole bundle, from plain manifests.
///
/// The manifests are files, directories (with their subdirectories), or - for standard input, as kustomize and helm
/// template print them. What manifests do not state comes from metadata/olm.yaml of a directory, from --metadata, or
/// from --package and --version. Everything that OLM cannot carry is reported with its file and line; with errors
/// nothing is printed or written, and the exit code is 1.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Manifests: files, directories, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// File with the metadata of the bundle [default: metadata/olm.yaml of the first directory that has one]
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    /// Package of the bundle [default: the name of the ClusterServiceVersion up to its version]
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Version of the operator, if there is no file with metadata
    #[arg(long, value_name = "VERSION", requires = "package", conflicts_with = "metadata")]
    version: Option<String>,
    /// Channels of the bundle
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "stable")]
    channels: Vec<String>,
    /// Default channel of the package
    #[arg(long, value_name = "NAME")]
    default_channel: Option<String>,
    /// What to create
    #[arg(long, value_enum, value_name = "TARGET", default_value_t)]
    to: Target,
    /// Directory for the bundle; files in it that were changed are not overwritten
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Print where each object of the input went, in place of the ClusterServiceVersion
    #[arg(long, conflicts_with = "output_dir")]
    account: bool,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "yaml")]
    output: DataFormat,
}

const EXAMPLES: &str = "Examples:
  # Print the ClusterServiceVersion of an operator
  {cmd} synthesize ./deploy --package rose --version 1.0.0

  # See where each object went, and what OLM cannot carry
  kustomize build ./config/default | {cmd} synthesize - --package rose --version 1.0.0 --account

  # Write a bundle of plain manifests, and one for catalogs of every OLM
  {cmd} synthesize ./deploy --metadata olm.yaml --to k8s+v1 --output-dir ./bundle
  {cmd} synthesize ./deploy --metadata olm.yaml --to registry+v1 --output-dir ./bundle
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { paths, metadata, package, version, channels, default_channel, to, output_dir, account, output } =
        arguments;
    let proposal = package.clone().zip(version).map(|(package, version)| Proposal { package, version });
    let options = Options {
        paths,
        metadata,
        proposal,
        package,
        channels,
        default_channel,
        target: to,
        output_dir,
        account,
        format: output,
    };
    synthesize::run(&options, printer)
}
