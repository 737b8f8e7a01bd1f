//! `kubectl olm catalog list`.

use olm_shell::catalog::list::{self, Options};
use olm_shell::cli::flags::OutputFlags;
use olm_shell::cli::{CliError, Outcome, Printer};

use crate::words::Words;

/// List the packages of a catalog, the channels of packages, or versions.
///
/// A word of letters, digits and dashes is a package, whose channels are listed; all else is a REF. A directory in this
/// folder is written with its slash: catalog/ or ./catalog.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Packages whose channels to list, and catalogs to find them in
    #[arg(value_name = "PACKAGE|REF", required = true)]
    words: Vec<String>,
    /// Every version in every channel, with its edges in the wide form
    #[arg(long)]
    versions: bool,
    #[command(flatten)]
    output: OutputFlags,
}

const EXAMPLES: &str = "Examples:
  # What there is
  {cmd} list ./catalog

  # The channels of a package, and all that can be chosen of it
  {cmd} list etcd ./catalog
  {cmd} list etcd ./catalog --versions -o wide
";

/// Lists.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { words, versions, output } = arguments;
    let Words { packages, refs } = Words::read(words)?;
    let options = Options { refs, packages, versions, output: output.output };
    list::run(&options, printer)
}
