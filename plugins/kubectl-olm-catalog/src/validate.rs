//! `kubectl olm catalog validate`.

use olm_shell::catalog::Ref;
use olm_shell::catalog::validate::{self, Options};
use olm_shell::cli::findings::Format;
use olm_shell::cli::flags::ImageFlags;
use olm_shell::cli::{CliError, Outcome, Printer};

use crate::words::OnCluster;

/// Check a catalog for errors.
///
/// All findings are printed in one run, each with its file, line, object and a stable code. The exit code is 1 if a
/// package is invalid or a file cannot be read. All other findings are warnings.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Catalogs to check
    #[arg(value_name = "REF", required = true)]
    refs: Vec<Ref>,
    /// Fail whenever opm would reject the catalog, also for findings that only matter for mirroring images
    #[arg(long)]
    strict: bool,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    output: Format,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    on: OnCluster,
}

const EXAMPLES: &str = "Examples:
  # Check the catalog in a directory
  {cmd} validate ./catalog

  # Check whether opm would accept the catalog, as annotations on a pull request
  {cmd} validate ./catalog --strict -o github
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { refs, strict, output, images, on } = arguments;
    validate::run(&Options { refs: on.refs(refs), images: images.options()?, strict, format: output }, printer)
}
