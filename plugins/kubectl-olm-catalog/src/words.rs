//! Arguments that several commands share.

use std::path::{Path, PathBuf};

use olm_shell::catalog::render::Range;
use olm_shell::catalog::{InstalledFrom, Ref};
use olm_shell::cli::flags::{ClusterFlags, CredentialFlags};
use olm_shell::cli::{CliError, Printer};
use olm_shell::image;

/// Package names and catalog references, given in any order.
pub(crate) struct Words {
    pub(crate) packages: Vec<String>,
    pub(crate) refs: Vec<Ref>,
}

impl Words {
    /// Sorts the arguments: one of only letters, digits and dashes, or `package/NAME`, is a package; any other is a
    /// catalog.
    pub(crate) fn read(words: Vec<String>) -> Result<Self, CliError> {
        let (mut packages, mut refs) = (Vec::new(), Vec::new());
        for word in words {
            match word.strip_prefix("package/") {
                Some(name) if Ref::is_package_name(name) && !name.is_empty() => packages.push(name.to_owned()),
                _ if Ref::is_package_name(&word) => packages.push(word),
                _ => refs.push(word),
            }
        }
        if refs.is_empty() {
            let hint = match packages.iter().find(|word| Path::new(word).exists()) {
                Some(word) => format!("write ./{word} for the file or directory of this name"),
                None => "name a catalog, such as ./catalog or catalogsource/NAMESPACE/NAME".to_owned(),
            };
            return Err(CliError::usage("no catalog is named").hint(hint));
        }
        let refs: Result<Vec<Ref>, String> = refs.iter().map(|r| r.parse()).collect();
        Ok(Self { packages, refs: refs.map_err(CliError::usage)? })
    }
}

/// The cluster of the named CatalogSources, and the default namespace.
#[derive(Debug, clap::Args)]
pub(crate) struct OnCluster {
    /// Namespace of CatalogSources that are named without one [default: the context's namespace]
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterFlags,
}

impl OnCluster {
    /// Returns the catalogs, with CatalogSources bound to this cluster.
    pub(crate) fn refs(&self, refs: Vec<Ref>) -> Vec<Ref> {
        refs.into_iter().map(|r| r.on(&self.cluster, self.namespace.as_ref())).collect()
    }

    /// Returns the source of installed objects: the files, or the cluster if a flag selects one.
    pub(crate) fn installed_from(&self, files: Vec<PathBuf>) -> Result<InstalledFrom, CliError> {
        if files.is_empty() {
            return InstalledFrom::new(files, self.cluster.clone());
        }
        // The flags may be for the catalogs.
        Ok(InstalledFrom::Files(files))
    }

    /// Returns the options of pulls with further credentials, also of pull secrets of this cluster.
    pub(crate) fn images(
        &self,
        credentials: &CredentialFlags,
        options: image::Options,
        printer: &mut Printer,
    ) -> Result<image::Options, CliError> {
        credentials.options(options, &self.cluster, self.namespace.as_deref(), printer)
    }
}

/// Parses a range of versions.
pub(crate) fn range(text: &str) -> Result<Range, String> {
    Range::parse(text).map_err(|e| format!("{e}; write a range as '>=1.0.0 <1.2.0'"))
}
