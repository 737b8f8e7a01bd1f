//! `kubectl olm catalog validate`.

use olm_shell::catalog::Ref;
use olm_shell::catalog::validate::{self, Options};
use olm_shell::cli::findings::Format;
use olm_shell::cli::flags::ImageFlags;
use olm_shell::cli::{CliError, Outcome, Printer};

use crate::words::OnCluster;

/// Say everything that is wrong with a catalog.
///
/// All findings are told in one run, each with its file, line, object and a code that stays the same. The answer is no (exit
/// code 1) when a package is broken or a file cannot be read; what else is not as it should be is a warning.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Catalogs to check
    #[arg(value_name = "REF", required = true)]
    refs: Vec<Ref>,
    /// Answer no whenever opm would refuse the catalog, also for what only who mirrors images would notice
    #[arg(long)]
    strict: bool,
    /// Form of the findings
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    output: Format,
    #[command(flatten)]
    images: ImageFlags,
    #[command(flatten)]
    on: OnCluster,
}

const EXAMPLES: &str = "Examples:
  # What is wrong with the catalog in a directory?
  {cmd} validate ./catalog

  # Would opm take it? As annotations on a pull request
  {cmd} validate ./catalog --strict -o github
";

/// Checks.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { refs, strict, output, images, on } = arguments;
    validate::run(&Options { refs: on.refs(refs), images: images.options()?, strict, format: output }, printer)
}
