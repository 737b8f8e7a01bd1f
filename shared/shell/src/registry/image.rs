//! A catalog or a bundle in an image.

use std::io;
use std::path::{Path, PathBuf};

use olm_core::budget::BUNDLE_BYTES;
use olm_core::bundle::Unpacked;
use olm_core::catalog::{File, Loaded};
use olm_core::finding::Finding;

use super::dir;
use crate::cli::{CliError, ErrorKind};
use crate::image::{self, Content, Limits, Location, Options, Wanted};

/// Pulls a catalog image and reads it, or what lies in `catalog_dir` of it. The image must be kept for as long as the catalog is used.
///
/// # Errors
/// It cannot be pulled, or is no catalog; what is wrong with single packages is among the findings.
pub async fn load(
    location: &Location,
    catalog_dir: Option<&str>,
    options: &Options,
) -> Result<(Loaded, Content), CliError> {
    let content = image::pull(location, Wanted::catalog(catalog_dir), options).await?;
    let root = content.root.clone();
    let loaded = tokio::task::spawn_blocking(move || dir::load_content(&root)).await;
    let mut load = loaded.map_err(|e| CliError::new(ErrorKind::Internal, e.to_string()))??;
    load.findings.extend(left_out(location, &content));
    Ok((load, content))
}

/// What of an image was left out, as findings.
pub(crate) fn left_out(location: &Location, content: &Content) -> impl Iterator<Item = Finding> {
    let image = location.to_string();
    content.warnings.iter().map(move |warning| Finding::new("left-out", warning.clone()).warning().at(&image, 0))
}

/// Pulls a bundle image and reads the bundle in it.
pub async fn unpack(location: &Location, options: &Options) -> Unpacked {
    let limits = Limits { kept: options.limits.kept.min(BUNDLE_BYTES), ..options.limits };
    let content = match image::pull(location, Wanted::Bundle, &Options { limits, ..options.clone() }).await {
        Ok(content) => content,
        Err(error) => return failed(&error),
    };
    let read = tokio::task::spawn_blocking(move || files(&content.root).map(|files| Unpacked::of_files(&files))).await;
    match read {
        Ok(Ok(unpacked)) => unpacked,
        Ok(Err(error)) => failed(&CliError::from(error)),
        Err(error) => Unpacked::Later(error.to_string()),
    }
}

/// An attempt to unpack a bundle image that ended with an error: may the same succeed later?
pub fn failed(error: &CliError) -> Unpacked {
    // The image is named by whoever tells of it.
    let told = match &error.hint {
        Some(hint) => format!("{} ({hint})", error.message),
        None => error.message.clone(),
    };
    match error.kind {
        ErrorKind::Usage | ErrorKind::Input => Unpacked::Refused(told),
        _ => Unpacked::Later(told),
    }
}

/// The files of a bundle directory, `manifests/NAME` and `metadata/NAME`, by name.
///
/// # Errors
/// They cannot be read.
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
