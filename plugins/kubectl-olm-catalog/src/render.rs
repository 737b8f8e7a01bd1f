//! `kubectl olm catalog render`.

use olm_shell::catalog::Ref;
use olm_shell::catalog::render::{self, Filter, MigrationLevel, Options, Range};
use olm_shell::cli::flags::{DataFormat, ImageFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

use crate::words::{self, OnCluster};

/// Print the blobs of catalogs, bundles and templates.
///
/// The blobs are opm's, in opm's order. With --package, --channel or --version only a part is printed, which is a valid
/// catalog again: edges lead round versions that are left out, and default channels and deprecations fit what is left.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Catalogs, bundles and templates
    #[arg(value_name = "REF", required = true)]
    refs: Vec<Ref>,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "json")]
    output: DataFormat,
    /// How far to bring older blobs to newer forms: none, bundle-object-to-csv-metadata, or all
    #[arg(long, value_name = "LEVEL", default_value = "none")]
    migrate_level: MigrationLevel,
    /// Only this package (may be repeated)
    #[arg(long = "package", value_name = "NAME")]
    packages: Vec<String>,
    /// Only this channel, of every package that has it (may be repeated)
    #[arg(long = "channel", value_name = "NAME")]
    channels: Vec<String>,
    /// Only versions in this range, such as '>=1.2.0 <2.0.0'
    #[arg(long = "version", value_name = "RANGE", value_parser = words::range)]
    versions: Option<Range>,
    /// Also the packages that those depend on, whole
    #[arg(long)]
    closure: bool,
    /// Only the images that are mentioned, one a line (with -o yaml, and by whom)
    #[arg(long)]
    images: bool,
    #[command(flatten)]
    registries: ImageFlags,
    #[command(flatten)]
    on: OnCluster,
}

const EXAMPLES: &str = "Examples:
  # What a catalog says of the bundle in a directory, and of one in an image
  {cmd} render ./bundle -o yaml
  {cmd} render registry.example.com/rose-bundle:1.0.0

  # One package from 1.2.0 on and what it depends on, as a catalog
  {cmd} render ./catalog --package etcd --version '>=1.2.0' --closure > etcd.json

  # Every image that has to be mirrored
  {cmd} render ./catalog --images
";

/// Renders.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { refs, output, migrate_level, packages, channels, versions, closure, images, registries, on } =
        arguments;
    let name = |package: String| package.strip_prefix("package/").map(str::to_owned).unwrap_or(package);
    let packages = packages.into_iter().map(name).collect();
    let filter = Filter { packages, channels, versions, closure };
    let (pull, refs) = (registries.options()?, on.refs(refs));
    render::run(&Options { refs, format: output, level: migrate_level, filter, images, pull }, printer)
}
