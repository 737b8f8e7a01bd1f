//! `kubectl olm bundle push`.

use olm_shell::bundle::push::{self, Options};
use olm_shell::cli::flags::{DataFormat, RegistryFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

/// Push a bundle image from an OCI layout or an archive to a registry.
///
/// All digests are verified before. Blobs that the registry already has are not sent; interrupted uploads are resumed, and
/// a repeated push continues with what is missing. The digest of the image is printed on stdout.
#[allow(rustdoc::broken_intra_doc_links, reason = "the comments of arguments are help, not Markdown")]
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// OCI layout (oci:DIR[:NAME]) or archive (oci-archive:FILE[:NAME]); the path is enough
    #[arg(value_name = "LAYOUT|ARCHIVE")]
    source: String,
    /// Image in a registry
    #[arg(value_name = "REF")]
    target: String,
    /// Output format: the digest only, or a description of the image
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<DataFormat>,
    #[command(flatten)]
    registries: RegistryFlags,
}

const EXAMPLES: &str = "Examples:
  # Push the image of an archive
  {cmd} push rose.tar registry.example.com/rose-bundle:1.0.0

  # Push one image of an OCI layout, with the credentials of a pull secret of the cluster
  {cmd} push oci:images:1.0.0 registry.example.com/rose-bundle:1.0.0 --pull-secret olm/registry
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { source, target, output, registries } = arguments;
    push::run(&Options { source, target, registries, format: output }, printer)
}
