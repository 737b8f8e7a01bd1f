//! `kubectl olm catalog list`.

use std::path::Path;

use olm_shell::catalog::list::{self, Options};
use olm_shell::catalog::{Ref, catalog_sources};
use olm_shell::cli::flags::{ClusterFlags, ImageFlags, NamespaceFlags};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::{CliError, Outcome, Printer};

use crate::words::Words;

/// List CatalogSources, or the packages, channels and versions of a catalog.
///
/// Without a REF the CatalogSources of the cluster are listed, all or those that are named; else the packages of a catalog, or the channels
/// of packages. A word of letters, digits and dashes is a name, of a package if there is a REF; all else is a REF. A directory in this
/// folder is written with its slash: catalog/ or ./catalog.
///
/// Of a CatalogSource the packages are counted by reading it: <unknown> is what cannot be read from here. Its health is the
/// reason that its status gives, or the state of its connection.
#[derive(Debug, clap::Args)]
#[allow(rustdoc::invalid_html_tags, reason = "the comments of arguments are help, not Markdown")]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// CatalogSources to list; or packages whose channels to list, and catalogs to find them in
    #[arg(value_name = "NAME|PACKAGE|REF")]
    words: Vec<String>,
    /// Every version in every channel, with its edges in the wide form
    #[arg(long)]
    versions: bool,
    #[command(flatten)]
    list: ListFlags,
    #[command(flatten)]
    images: ImageFlags,
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
  {cmd} list operatorhubio -n olm --watch
  {cmd} list catalogsource/olm/operatorhubio
";

/// Lists.
pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { words, versions, list, images, namespaces, cluster } = arguments;
    let images = images.options()?;
    if !versions && words.iter().all(|word| Ref::is_package_name(word) && !Path::new(word).exists()) {
        return catalog_sources::list(
            &catalog_sources::Options { cluster, namespaces, names: words, images, list },
            printer,
        );
    }
    if words.is_empty() {
        return Err(CliError::usage("no catalog is named").hint("name one, such as catalogsource/NAMESPACE/NAME"));
    }
    let Words { packages, refs } = Words::read(words)?;
    let refs = refs.into_iter().map(|r| r.on(&cluster, namespaces.namespace.as_ref())).collect();
    let options = Options { refs, packages, images, versions, list };
    list::run(&options, printer)
}
