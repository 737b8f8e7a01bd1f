//! `kubectl olm catalog render`.

use olm_shell::catalog::Ref;
use olm_shell::catalog::render::{self, Filter, MigrationLevel, Options, Range};
use olm_shell::cli::flags::{CredentialFlags, DataFormat, ImageFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

use crate::words::{self, OnCluster};

/// Print the blobs of catalogs, bundles and templates.
///
/// The blobs and their order are those of opm render. With --package, --channel or --version only a part of the catalog
/// is printed. The part is a valid catalog: edges bypass the versions that are left out, and default channels and
/// deprecations are adapted.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Catalogs, bundles and templates
    #[arg(value_name = "REF", required = true)]
    refs: Vec<Ref>,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "json")]
    output: DataFormat,
    /// Migrations to apply to older blobs: none, bundle-object-to-csv-metadata, or all
    #[arg(long, value_name = "LEVEL", default_value = "none")]
    migrate_level: MigrationLevel,
    /// Only this package (may be repeated)
    #[arg(long = "package", value_name = "NAME")]
    packages: Vec<String>,
    /// Only this channel of every package (may be repeated)
    #[arg(long = "channel", value_name = "NAME")]
    channels: Vec<String>,
    /// Only versions in this range, such as '>=1.2.0 <2.0.0'
    #[arg(long = "version", value_name = "RANGE", value_parser = words::range)]
    versions: Option<Range>,
    /// Include the packages that the selected ones depend on, with all their versions
    #[arg(long)]
    closure: bool,
    /// Print only the images that are referenced, one per line; with -o yaml also what references them
    #[arg(long)]
    images: bool,
    #[command(flatten)]
    registries: ImageFlags,
    #[command(flatten)]
    credentials: CredentialFlags,
    #[command(flatten)]
    on: OnCluster,
}

const EXAMPLES: &str = "Examples:
  # Render the catalog blobs of a bundle directory, and of a bundle image
  {cmd} render ./bundle -o yaml
  {cmd} render registry.example.com/rose-bundle:1.0.0

  # Render one package from version 1.2.0 on, and its dependencies, as a catalog
  {cmd} render ./catalog --package etcd --version '>=1.2.0' --closure > etcd.json

  # List every image to mirror
  {cmd} render ./catalog --images
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { refs, output, migrate_level, packages, channels, versions, closure, images, .. } = arguments;
    let Arguments { registries, credentials, on, .. } = arguments;
    let name = |package: String| package.strip_prefix("package/").map(str::to_owned).unwrap_or(package);
    let packages = packages.into_iter().map(name).collect();
    let filter = Filter { packages, channels, versions, closure };
    let pull = on.images(&credentials, registries.options()?, printer)?;
    let refs = on.refs(refs);
    render::run(&Options { refs, format: output, level: migrate_level, filter, images, pull }, printer)
}
