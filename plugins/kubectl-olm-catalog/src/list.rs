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
/// Without a REF, list the CatalogSources of the cluster. With a REF, list the packages of the catalog, or the channels
/// of the named packages. An argument of only letters, digits and dashes is a name: of a package if a REF is given,
/// else of a CatalogSource. Any other argument is a REF. Write a directory with a slash: catalog/ or ./catalog.
///
/// The number of packages of a CatalogSource is read from its catalog; <unknown> means that the catalog cannot be read
/// from this machine. HEALTH is the reason in its status, or the state of its connection.
#[derive(Debug, clap::Args)]
#[allow(rustdoc::invalid_html_tags, reason = "the comments of arguments are help, not Markdown")]
#[command(before_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// CatalogSources to list; or packages whose channels to list, and catalogs to read
    #[arg(value_name = "NAME|PACKAGE|REF")]
    words: Vec<String>,
    /// List every version in every channel; -o wide adds the upgrade edges
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
  # List the packages of a catalog
  {cmd} list ./catalog

  # List the channels of a package, and all its versions
  {cmd} list etcd ./catalog
  {cmd} list etcd ./catalog --versions -o wide

  # List the CatalogSources of the cluster, and the packages of one
  {cmd} list -A
  {cmd} list operatorhubio -n olm --watch
  {cmd} list catalogsource/olm/operatorhubio
";

pub(crate) fn run(arguments: Arguments, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Arguments { words, versions, list, images, namespaces, cluster } = arguments;
    let images = images.options()?;
    if !versions && words.iter().all(|word| Ref::is_package_name(word) && !Path::new(word).exists()) {
        let hint = words.first().map(|word| {
            format!("to list a package of a catalog, also pass the catalog: kubectl olm catalog list {word} ./catalog")
        });
        let options = catalog_sources::Options { cluster, namespaces, names: words, images, list };
        return catalog_sources::list(&options, printer).map_err(|error| match hint {
            Some(hint) => error.hint(hint),
            None => error,
        });
    }
    if words.is_empty() {
        return Err(CliError::usage("no catalog is named").hint("name a catalog, such as catalogsource/NAMESPACE/NAME"));
    }
    let Words { packages, refs } = Words::read(words)?;
    let refs = refs.into_iter().map(|r| r.on(&cluster, namespaces.namespace.as_ref())).collect();
    let options = Options { refs, packages, images, versions, list };
    list::run(&options, printer)
}
