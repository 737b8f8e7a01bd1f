//! The index of a catalog: its blobs by package, unchecked. [`super::load`] fills and checks it.

use std::collections::BTreeMap;

use super::blob::{BundleBlob, ChannelBlob, DeprecationsBlob, OtherBlob, PackageBlob, Place, Source};
use crate::finding::Finding;

/// A blob of a known schema, and where it is.
#[derive(Debug)]
pub(super) struct Located<T> {
    pub(super) place: Place,
    pub(super) source: Source,
    pub(super) blob: T,
}

/// All blobs of one package.
#[derive(Debug, Default)]
pub(super) struct PackageBlobs {
    pub(super) packages: Vec<Located<PackageBlob>>,
    pub(super) channels: Vec<Located<ChannelBlob>>,
    pub(super) bundles: Vec<Located<BundleBlob>>,
    pub(super) deprecations: Vec<Located<DeprecationsBlob>>,
    pub(super) others: Vec<Located<OtherBlob>>,
    /// Has a filter changed what the blobs in the files say?
    pub(super) is_reduced: bool,
}

/// An index of a catalog's blobs by package, before anybody asks whether they are sound. The blobs themselves stay where
/// they are.
#[derive(Debug, Default)]
pub struct CatalogIndex {
    /// PackageBlobs of no package are those of the empty name.
    pub(super) packages: BTreeMap<String, PackageBlobs>,
    pub(super) findings: Vec<Finding>,
}

impl CatalogIndex {
    /// What is wrong with the files that the catalog was read from; [`CatalogIndex::load`] tells of the packages, too.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Bundle directories among the catalog's files, as findings: opm does not know them there.
    pub fn bundle_directories(&self) -> Vec<Finding> {
        let bundles = self.packages.values().flat_map(|blobs| &blobs.bundles);
        let directories = bundles.filter(|of| of.source.span().is_none());
        let finding = |of: &Located<BundleBlob>| {
            Finding::new("bundle-directory", "opm reads no bundle directories in a catalog")
                .warning()
                .at(&of.place.file, of.place.line)
                .hint("render the bundle to a file of the catalog")
        };
        directories.map(finding).collect()
    }
}
