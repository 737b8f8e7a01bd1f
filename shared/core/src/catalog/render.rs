//! Renders the blobs of a catalog in opm's order, reading one blob at a time (olm-behaviour/opm.md#rendering).

use super::blob::{BundleBlob, Place, Source};
use super::filter::Reduced;
use super::index::{CatalogIndex, Located, PackageBlobs};
use super::meta::Meta;
use super::migrate::{self, MigrationLevel};
use crate::bundle;
use crate::finding::Finding;

impl CatalogIndex {
    /// Returns all blobs: packages by name, in each the package itself, its channels and bundles by name, others by schema,
    /// and deprecations last; at the end blobs without a package. A blob that can no longer be read is a finding.
    pub fn blobs(&self, level: MigrationLevel) -> impl Iterator<Item = Result<Meta, Finding>> {
        let of_none = self.packages.get("").into_iter();
        let packages = self.packages.iter().filter(|(name, _)| !name.is_empty()).map(|(_, blobs)| blobs);
        packages.chain(of_none).flat_map(move |blobs| blobs.blobs(level))
    }
}

impl PackageBlobs {
    fn blobs(&self, level: MigrationLevel) -> impl Iterator<Item = Result<Meta, Finding>> {
        let packages = self.packages.iter().map(|located| self.render(located));
        let mut channels: Vec<_> = self.channels.iter().collect();
        channels.sort_by(|a, b| a.blob.name.cmp(&b.blob.name));
        let mut bundles: Vec<_> = self.bundles.iter().collect();
        bundles.sort_by(|a, b| a.blob.name.cmp(&b.blob.name));
        let mut others: Vec<_> = self.others.iter().collect();
        others.sort_by(|a, b| a.blob.schema.cmp(&b.blob.schema));
        let bundles = bundles.into_iter().map(move |located| {
            located.bundle().map(|mut meta| {
                level.migrate(&mut meta.0);
                meta
            })
        });
        packages
            .chain(channels.into_iter().map(|located| self.render(located)))
            .chain(bundles)
            .chain(others.into_iter().map(|located| read(&located.place, &located.source)))
            .chain(self.deprecations.iter().map(|located| self.render(located)))
    }

    /// Returns a blob with the changes of a filter.
    fn render<T: Reduced>(&self, located: &Located<T>) -> Result<Meta, Finding> {
        let mut meta = read(&located.place, &located.source)?;
        if self.is_reduced {
            located.blob.apply(&mut meta.0);
        }
        Ok(meta)
    }
}

impl Located<BundleBlob> {
    /// Returns the whole blob, with its objects.
    pub(super) fn bundle(&self) -> Result<Meta, Finding> {
        let Source::Directory(content) = &self.source else { return read(&self.place, &self.source) };
        let content = content.read().map_err(|e| changed_since_read(&self.place, e))?;
        let images = bundle::related_images(&migrate::csv_of(&content));
        let BundleBlob { name, package, image, properties, .. } = &self.blob;
        Ok(Meta(bundle::blob(name, package, image, properties, &images, &content)))
    }
}

fn read(place: &Place, source: &Source) -> Result<Meta, Finding> {
    match source {
        Source::Blob(span) => span.value().map(Meta).map_err(|e| changed_since_read(place, e)),
        // Only bundles come from directories.
        Source::Directory(_) => Err(changed_since_read(place, "not a blob".to_owned())),
    }
}

fn changed_since_read(place: &Place, why: String) -> Finding {
    Finding::new("unreadable-file", why).at(&place.file, place.line).hint("retry when the files no longer change")
}
