//! A catalog in a directory.

use std::fs;
use std::path::{Path, PathBuf};

use olm_core::catalog::{self, File, Load};

use crate::cli::{CliError, ErrorKind};

/// Reads a catalog directory.
pub fn load(directory: &Path) -> Result<Load, CliError> {
    let mut files = Vec::new();
    read(directory, directory, &mut files)?;
    Ok(catalog::load(&files))
}

fn read(root: &Path, folder: &Path, files: &mut Vec<File>) -> Result<(), CliError> {
    let fail = |path: &Path, e: std::io::Error| CliError::new(ErrorKind::Io, format!("cannot read: {e}")).at(path.display());
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).map_err(|e| fail(folder, e))?.flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            read(root, &path, files)?;
        } else {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.push(File { path: name, bytes: fs::read(&path).map_err(|e| fail(&path, e))?.into() });
        }
    }
    Ok(())
}
