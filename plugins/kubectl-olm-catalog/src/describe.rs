//! `kubectl olm catalog describe`.

use olm_shell::catalog::describe::{self, Options};
use olm_shell::cli::flags::{ImageFlags, OutputFlags};
use olm_shell::cli::{CliError, Outcome, Printer};

use crate::words::{OnCluster, Words};

/// Describe packages: provider, channels, APIs, images, and links.
///
/// With -o json or -o yaml, print PackageManifests (packages.operators.coreos.com/v1), as kubectl get packagemanifest
/// does on a cluster where OLM's packageserver runs.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Packages [default: all], and catalogs to read
    #[arg(value_name = "PACKAGE|REF", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    on: OnCluster,
}

const EXAMPLES: &str = "Examples:
  # Describe a package of a catalog
  {cmd} describe etcd ./catalog

  # Print the PackageManifest of a package of a CatalogSource
  {cmd} describe etcd catalogsource/olm/operatorhubio -o yaml
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { words, output, images, on } = arguments;
    let Words { packages, refs } = Words::read(words)?;
    let (images, refs) = (images.options()?, on.refs(refs));
    describe::run(&Options { refs, packages, images, output }, printer)
}
