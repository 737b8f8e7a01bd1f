//! `kubectl olm catalog add`.

use std::path::PathBuf;

use olm_shell::catalog::Ref;
use olm_shell::catalog::add::{self, MigrationLevel, Mode, Options};
use olm_shell::cli::flags::{ImageFlags, OutputFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

/// Add bundles to a catalog directory.
///
/// Channels and default channel are those of the bundle's metadata/annotations.yaml, a package that is new is made. Files are
/// changed in place: what is there, comments included, stays as it is. A file is written whole or not at all, and only when the
/// catalog is valid with it. Refused (exit code 1) is what would break a channel, or strand a version that may be installed.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Directory of the catalog
    #[arg(value_name = "CATALOG-DIR")]
    directory: PathBuf,
    /// Bundles: directories, images, or files with blobs of the schema olm.bundle
    #[arg(value_name = "BUNDLE", required = true)]
    bundles: Vec<Ref>,
    /// Where edges come from: replaces (the CSV's replaces, skips and olm.skipRange), semver (the order of versions), or
    /// semver-skippatch (the same, and lower patches of the same minor version are skipped)
    #[arg(long, value_name = "MODE", default_value = "replaces")]
    mode: Mode,
    /// Channel to add to, in place of those that the bundles name (may be repeated)
    #[arg(long = "channel", value_name = "NAME")]
    channels: Vec<String>,
    /// Default channel of the package, in place of the one that the bundles name
    #[arg(long, value_name = "NAME")]
    default_channel: Option<String>,
    /// Image that the bundle directory is pushed to; without it the catalog carries the bundle's objects
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// How far to bring the bundles to newer forms: none, bundle-object-to-csv-metadata, or all
    #[arg(long, value_name = "LEVEL", default_value = "none")]
    migrate_level: MigrationLevel,
    /// Print the difference that it would make, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    images: ImageFlags,
}

const EXAMPLES: &str = "Examples:
  # What would change?
  {cmd} add ./catalog ./bundle --image example.com/etcd:0.9.4 --dry-run

  # The bundle in an image
  {cmd} add ./catalog registry.example.com/etcd:0.9.4 --migrate-level all

  # All bundles in a folder, linked in the order of their versions, in one channel
  {cmd} add ./catalog ./bundles/*/ --mode semver --channel stable
";

/// Adds.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let options = Options {
        directory: arguments.directory,
        bundles: arguments.bundles,
        mode: arguments.mode,
        channels: arguments.channels,
        default_channel: arguments.default_channel,
        image: arguments.image,
        images: arguments.images.options()?,
        level: arguments.migrate_level,
        dry_run: arguments.dry_run,
        output: arguments.output.output,
    };
    add::run(&options, printer)
}
