//! Catalogs and bundles in images.

use std::io;
use std::path::{Path, PathBuf};

use olm_core::budget::{BUNDLE_BYTES, TENANT_IMAGE};
use olm_core::bundle::Unpacked;
use olm_core::catalog::{File, Loaded};
use olm_core::finding::Finding;

use super::share::{Share, Shares};
use super::{Error, dir};
use crate::image::{self, Content, Limits, Location, Options, Requested};

/// A pulled catalog image.
#[derive(Debug)]
pub struct CatalogImage {
    /// The catalog.
    pub loaded: Loaded,
    /// The files, which must exist as long as the catalog is used.
    pub content: Content,
    /// Its shares of the memory and disk space, if they are limited.
    pub shares: Option<Shares>,
}

/// Pulls a catalog image and reads the catalog in `catalog_dir`, by default in the folder that its label names. `shares` limit its
/// memory and disk space.
///
/// # Errors
/// The image cannot be pulled, is not a catalog, or takes more than its share. Invalid packages are reported as findings.
pub async fn load(
    location: &Location,
    catalog_dir: Option<&str>,
    options: &Options,
    mut shares: Option<Shares>,
) -> Result<CatalogImage, Error> {
    let content = pull(location, catalog_dir, options, shares.as_mut().map(|shares| &mut shares.disk)).await?;
    let root = content.root.clone();
    let (loaded, shares) = tokio::task::spawn_blocking(move || {
        let loaded = match &mut shares {
            Some(shares) => dir::load_sharing(&root, &mut shares.memory),
            None => dir::load_content(&root),
        };
        (loaded, shares)
    })
    .await?;
    let mut loaded = loaded?;
    loaded.findings.extend(left_out(location, &content));
    Ok(CatalogImage { loaded, content, shares })
}

/// Pulls a catalog image. Reserves disk space for the largest allowed image before, and gives back the rest.
async fn pull(
    location: &Location,
    catalog_dir: Option<&str>,
    options: &Options,
    disk: Option<&mut Share>,
) -> Result<Content, Error> {
    let wanted = Requested::catalog(catalog_dir);
    let Some(disk) = disk else { return Ok(image::pull(location, wanted, options).await?) };
    let limits = Limits { kept: options.limits.kept.min(TENANT_IMAGE), ..options.limits };
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    // Waits, because other images that are being pulled may have reserved the disk space.
    disk.reserve(bytes(limits.kept), limits.total).await?;
    let content = image::pull(location, wanted, &Options { limits, ..options.clone() }).await?;
    disk.give_back(bytes(limits.kept));
    disk.take(bytes(content.bytes))?;
    Ok(content)
}

/// Returns a finding for each entry of an image that was left out.
pub(crate) fn left_out(location: &Location, content: &Content) -> impl Iterator<Item = Finding> {
    let image = location.to_string();
    content.warnings.iter().map(move |warning| Finding::new("left-out", warning.clone()).warning().at(&image, 0))
}

/// Pulls a bundle image and reads the bundle in it.
///
/// # Errors
/// The image cannot be pulled, or its files cannot be read.
pub async fn unpack(location: &Location, options: &Options) -> Result<Unpacked, Error> {
    let limits = Limits { kept: options.limits.kept.min(BUNDLE_BYTES), ..options.limits };
    let content = image::pull(location, Requested::Bundle, &Options { limits, ..options.clone() }).await?;
    let read = tokio::task::spawn_blocking(move || files(&content.root).map(|files| Unpacked::of_files(&files)));
    Ok(read.await??)
}

/// Reads the files of a bundle directory, `manifests/NAME` and `metadata/NAME`, sorted by name.
///
/// # Errors
/// A folder or a file cannot be read.
pub fn files(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    for folder in ["manifests", "metadata"] {
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(root.join(folder))? {
            paths.push(entry?.path());
        }
        paths.sort();
        for path in paths.into_iter().filter(|path| path.is_file()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            files.push(File::new(format!("{folder}/{name}"), std::fs::read(&path)?));
        }
    }
    Ok(files)
}
