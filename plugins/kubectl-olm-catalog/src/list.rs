//! `kubectl olm catalog list`.

use olm_shell::catalog::list::{self, Options};
use olm_shell::catalog::live;
use olm_shell::cli::flags::{ClusterFlags, NamespaceFlags, OutputFlags};
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::image;

use crate::words::Words;

/// List CatalogSources, or the packages, channels and versions of a catalog.
///
/// Without arguments the CatalogSources of the cluster are listed, else the packages of a catalog, or the channels of packages.
/// A word of letters, digits and dashes is a package, whose channels are listed; all else is a REF. A directory in this
/// folder is written with its slash: catalog/ or ./catalog.
///
/// Of a CatalogSource the packages are counted by reading it: <unknown> is what cannot be read from here. Its health is the
/// reason that its status gives, or the state of its connection.
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Packages whose channels to list, and catalogs to find them in
    #[arg(value_name = "PACKAGE|REF")]
    words: Vec<String>,
    /// Every version in every channel, with its edges in the wide form
    #[arg(long)]
    versions: bool,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    namespaces: NamespaceFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

const EXAMPLES: &str = "Examples:
  # What there is
  {cmd} list ./catalog

  # The channels of a package, and all that can be chosen of it
  {cmd} list etcd ./catalog
  {cmd} list etcd ./catalog --versions -o wide

  # The CatalogSources of the cluster, and the packages of one
  {cmd} list -A
  {cmd} list catalogsource/olm/operatorhubio
";

/// Lists.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { words, versions, output, namespaces, cluster } = arguments;
    if words.is_empty() {
        if versions {
            return Err(CliError::usage("no catalog is named").hint("name one, such as catalogsource/NAMESPACE/NAME"));
        }
        let images = image::Options::of_user();
        return live::list(&live::Options { cluster, namespaces, images, output: output.output }, printer);
    }
    let Words { packages, refs } = Words::read(words)?;
    let refs = refs.into_iter().map(|r| r.on(&cluster, namespaces.namespace.as_ref())).collect();
    let options = Options { refs, packages, versions, output: output.output };
    list::run(&options, printer)
}
