//! A catalog or a bundle in an image.

use std::path::PathBuf;

use olm_core::catalog::{File, Load};
use olm_core::finding::Finding;

use super::dir;
use crate::cli::{CliError, ErrorKind};
use crate::image::{self, Content, Location, Options, Wanted};

/// Pulls a catalog image and reads it. The image must be kept for as long as the catalog is used.
///
/// # Errors
/// It cannot be pulled, or is no catalog; what is wrong with single packages is among the findings.
pub async fn load(location: &Location, options: &Options) -> Result<(Load, Content), CliError> {
    let content = image::pull(location, Wanted::Catalog, options).await?;
    let root = content.root.clone();
    let loaded = tokio::task::spawn_blocking(move || dir::load(&root)).await;
    let mut load = loaded.map_err(|e| CliError::new(ErrorKind::Internal, e.to_string()))??;
    load.findings.extend(left_out(location, &content));
    Ok((load, content))
}

/// What of an image was left out, as findings.
pub(crate) fn left_out(location: &Location, content: &Content) -> impl Iterator<Item = Finding> {
    let image = location.to_string();
    content.warnings.iter().map(move |warning| Finding::new("left-out", warning.clone()).warning().at(&image, 0))
}

/// The files of a bundle image, `manifests/NAME` and `metadata/NAME`, by name.
///
/// # Errors
/// It cannot be pulled, or is no bundle.
pub async fn bundle(location: &Location, options: &Options) -> Result<Vec<File>, CliError> {
    let content = image::pull(location, Wanted::Bundle, options).await?;
    let mut files = Vec::new();
    for folder in ["manifests", "metadata"] {
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(content.root.join(folder))? {
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
