//! `kubectl olm bundle unpack`.

use std::path::PathBuf;

use olm_shell::bundle::unpack::{self, Options};
use olm_shell::cli::flags::RegistryFlags;
use olm_shell::cli::{CliError, Outcome, Printer};

/// Write the manifests and metadata of a bundle image to a directory.
///
/// The image is in a registry, an OCI layout or an archive of one. Its digests are verified, and an image with links,
/// devices or paths that lead out of it is refused. The directory must not exist, or have the same files. The digest of
/// the image is printed on stdout.
#[allow(rustdoc::broken_intra_doc_links, reason = "the comments of arguments are help, not Markdown")]
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Image, OCI layout (oci:DIR[:NAME]) or archive (oci-archive:FILE[:NAME]); the path of a layout or an archive is enough
    #[arg(value_name = "REF|LAYOUT|ARCHIVE")]
    source: String,
    /// Directory to create
    #[arg(long, value_name = "DIR", default_value = "bundle")]
    output_dir: PathBuf,
    #[command(flatten)]
    registries: RegistryFlags,
}

const EXAMPLES: &str = "Examples:
  # Write the files of a bundle to ./bundle
  {cmd} unpack registry.example.com/rose-bundle:1.0.0

  # Write the files of one image of an OCI layout to another directory
  {cmd} unpack oci:images:1.0.0 --output-dir ./rose
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { source, output_dir, registries } = arguments;
    unpack::run(&Options { source, output_dir, registries }, printer)
}
