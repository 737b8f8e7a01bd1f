//! `kubectl olm catalog add`.

use std::path::PathBuf;

use olm_shell::catalog::Ref;
use olm_shell::catalog::add::{self, MigrationLevel, Mode, Options};
use olm_shell::cli::flags::{ClusterFlags, CredentialFlags, ImageFlags, OutputFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

/// Add bundles to a catalog directory.
///
/// Channels and default channel are taken from the bundle's metadata/annotations.yaml; a missing package is created.
/// Files are edited in place, and existing content is preserved, comments included. A file is written only if the whole
/// catalog is valid with the change. A change that breaks a channel, or strands a version that can be installed, is
/// refused with exit code 1.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Directory of the catalog
    #[arg(value_name = "CATALOG-DIR")]
    directory: PathBuf,
    /// Bundles to add: directories, images, or files with blobs of the schema olm.bundle
    #[arg(value_name = "BUNDLE", required = true)]
    bundles: Vec<Ref>,
    /// Source of the upgrade edges: replaces (the CSV's replaces, skips and olm.skipRange), semver (the order of
    /// versions), or semver-skippatch (as semver, but lower patches of the same minor version are skipped)
    #[arg(long, value_name = "MODE", default_value = "replaces")]
    mode: Mode,
    /// Channel to add the bundles to, instead of those that the bundles name (may be repeated)
    #[arg(long = "channel", value_name = "NAME")]
    channels: Vec<String>,
    /// Default channel of the package, instead of the one that the bundles name
    #[arg(long, value_name = "NAME")]
    default_channel: Option<String>,
    /// Image that the bundle directory is pushed to; without it the catalog contains the bundle's objects
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Migrations to apply to the bundles: none, bundle-object-to-csv-metadata, or all
    #[arg(long, value_name = "LEVEL", default_value = "none")]
    migrate_level: MigrationLevel,
    /// Print the difference; write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    credentials: CredentialFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # Print what would change
  {cmd} add ./catalog ./bundle --image example.com/etcd:0.9.4 --dry-run

  # Add the bundle in an image
  {cmd} add ./catalog registry.example.com/etcd:0.9.4 --migrate-level all

  # Add all bundles in a folder to one channel, linked in version order
  {cmd} add ./catalog ./bundles/*/ --mode semver --channel stable
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let options = Options {
        directory: arguments.directory,
        bundles: arguments.bundles,
        mode: arguments.mode,
        channels: arguments.channels,
        default_channel: arguments.default_channel,
        image: arguments.image,
        images: arguments.credentials.options(arguments.images.options()?, &arguments.cluster, None, printer)?,
        level: arguments.migrate_level,
        dry_run: arguments.dry_run,
        output: arguments.output.output,
    };
    add::run(&options, printer)
}
