//! `kubectl olm catalog list`.

use olm_shell::catalog::Ref;
use olm_shell::catalog::list::{self, Options};
use olm_shell::cli::flags::OutputFlags;
use olm_shell::cli::{CliError, Outcome, Printer};

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
    let (packages, refs): (Vec<String>, Vec<String>) = words.into_iter().partition(|word| Ref::is_package_name(word));
    if refs.is_empty() {
        let hint = match packages.iter().find(|word| std::path::Path::new(word).exists()) {
            Some(word) => format!("write ./{word} for what is called so in this folder"),
            None => "name a catalog, such as ./catalog".to_owned(),
        };
        return Err(CliError::usage("no catalog to list from").hint(hint));
    }
    let refs: Result<Vec<Ref>, String> = refs.iter().map(|r| r.parse()).collect();
    let options = Options { refs: refs.map_err(CliError::usage)?, packages, versions, output: output.output };
    list::run(&options, printer)
}
