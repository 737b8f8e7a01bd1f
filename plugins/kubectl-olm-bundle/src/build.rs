//! `kubectl olm bundle build`.

use std::path::PathBuf;

use olm_shell::bundle::build::{self, Destination, MediaTypes, Options, Platform};
use olm_shell::cli::flags::{DataFormat, RegistryFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

/// Build a bundle image from a directory, without docker.
///
/// The directory has the layout of opm and operator-sdk: manifests/, metadata/ and optionally tests/scorecard/. The labels
/// of the image are the annotations in metadata/annotations.yaml. The digest of the image is printed on stdout; the same
/// files always result in the same digest.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Directory of the bundle
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
    /// Platform in the configuration of the image; bundles do not depend on it
    #[arg(long, value_name = "OS/ARCH[/VARIANT]", default_value_t)]
    platform: Platform,
    /// Media types of the image
    #[arg(long, value_enum, value_name = "TYPES", default_value_t)]
    media_types: MediaTypes,
    /// Label of the image, in addition to the annotations of the bundle (may be repeated)
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = build::pair)]
    labels: Vec<(String, String)>,
    /// Annotation of the image's manifest (may be repeated)
    #[arg(long = "annotation", value_name = "KEY=VALUE", value_parser = build::pair)]
    annotations: Vec<(String, String)>,
    /// Output format: the digest only, or a description of the image
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<DataFormat>,
    #[command(flatten)]
    registries: RegistryFlags,
}

const EXAMPLES: &str = "Examples:
  # Push the image to a registry
  {cmd} build ./bundle -t registry.example.com/rose-bundle:1.0.0 --push

  # Write the image to an archive, and copy it to a registry
  {cmd} build ./bundle --archive rose.tar
  skopeo copy oci-archive:rose.tar docker://registry.example.com/rose-bundle:1.0.0

  # Add the image to an OCI layout
  {cmd} build ./bundle -t 1.0.0 --oci-layout ./images

  # Print the digest that the image would have
  {cmd} build ./bundle
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments {
        directory,
        tag,
        push,
        oci_layout,
        archive,
        platform,
        media_types,
        labels,
        annotations,
        output,
        registries,
    } = arguments;
    let destination = match (oci_layout, archive) {
        (Some(path), _) => Destination::Layout(path),
        (_, Some(path)) => Destination::Archive(path),
        _ if push => Destination::Registry(Box::new(registries)),
        (None, None) => Destination::Nowhere,
    };
    let options = Options {
        directory,
        tag,
        destination,
        platform,
        media_types,
        labels: labels.into_iter().collect(),
        annotations: annotations.into_iter().collect(),
        format: output,
    };
    build::run(&options, printer)
}
