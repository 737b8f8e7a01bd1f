//! The index of a catalog: its blobs by package, unchecked. [`super::load`] fills and checks it.

use std::collections::BTreeMap;

use super::blob::{BundleBlob, ChannelBlob, DeprecationsBlob, OtherBlob, PackageBlob, Place, Source};
use crate::finding::Finding;

/// A blob of a known schema, and its location.
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
    /// Whether a filter changed what the blobs in the files contain.
    pub(super) is_reduced: bool,
}

/// An index of a catalog's blobs by package, before validation. The blobs themselves stay in their files.
#[derive(Debug, Default)]
pub struct CatalogIndex {
    /// The key is the package name; the empty name holds blobs that belong to no package.
    pub(super) packages: BTreeMap<String, PackageBlobs>,
    pub(super) findings: Vec<Finding>,
}

impl CatalogIndex {
    /// Findings about the files that the catalog was read from; [`CatalogIndex::load`] also returns those about packages.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns a finding for each bundle directory among the catalog's files: opm does not support them there.
    pub fn bundle_directories(&self) -> Vec<Finding> {
        let bundles = self.packages.values().flat_map(|blobs| &blobs.bundles);
        let directories = bundles.filter(|of| of.source.span().is_none());
        let finding = |of: &Located<BundleBlob>| {
            Finding::new("bundle-directory", "opm does not read bundle directories in a catalog")
                .warning()
                .at(&of.place.file, of.place.line)
                .hint("render the bundle into a file of the catalog")
        };
        directories.map(finding).collect()
    }
}
