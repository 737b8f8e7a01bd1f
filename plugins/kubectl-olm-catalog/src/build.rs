//! `kubectl olm catalog build`.

use std::path::PathBuf;

use olm_shell::catalog::build::{self, Destination, MediaTypes, Options, Platform};
use olm_shell::cli::flags::RegistryFlags;
use olm_shell::cli::{CliError, Outcome, Printer};

/// Build a catalog image from a directory, without docker.
///
/// The image has the files of the catalog in /configs, and the label by which OLM finds them; it has no program to serve
/// them. A CatalogSource of the image needs spec.grpcPodConfig.extractContent, unless kubectl olm run reads the image.
/// The digest of the image is printed on stdout; the same files always result in the same digest.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Directory of the catalog
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Name of the image
    #[arg(short, long, value_name = "REF")]
    tag: Option<String>,
    /// Push the image to the registry of its name
    #[arg(long, group = "destination", requires = "tag")]
    push: bool,
    /// OCI layout to add the image to; it is created if it does not exist
    #[arg(long, value_name = "DIR", group = "destination")]
    oci_layout: Option<PathBuf>,
    /// Archive of an OCI layout to write the image to; an existing file is replaced
    #[arg(long, value_name = "FILE", group = "destination")]
    archive: Option<PathBuf>,
    /// Platform in the configuration of the image; catalogs do not depend on it
    #[arg(long, value_name = "OS/ARCH[/VARIANT]", default_value_t)]
    platform: Platform,
    /// Media types of the image
    #[arg(long, value_enum, value_name = "TYPES", default_value_t)]
    media_types: MediaTypes,
    #[command(flatten)]
    registries: RegistryFlags,
}

const EXAMPLES: &str = "Examples:
  # Push the image to a registry
  {cmd} build ./catalog -t registry.example.com/catalog:1 --push

  # Write the image to an archive
  {cmd} build ./catalog --archive catalog.tar
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { directory, tag, push, oci_layout, archive, platform, media_types, registries } = arguments;
    let destination = match (oci_layout, archive) {
        (Some(path), _) => Destination::Layout(path),
        (_, Some(path)) => Destination::Archive(path),
        _ if push => Destination::Registry(Box::new(registries)),
        (None, None) => Destination::Nowhere,
    };
    build::run(&Options { directory, tag, destination, platform, media_types }, printer)
}
