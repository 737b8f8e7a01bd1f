//! A scenario's catalog: assembled in one folder (`catalog.yaml` and `bundles/<name>/`, with the bundles of the data folder
//! that `bundles.txt` names), and loaded from it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use olm_core::catalog::Snapshot;
use olm_core::finding::Severity;
use olm_shell::registry;
use tempfile::TempDir;

use super::format::read;

/// Assembles the catalog in `directory` in a temporary folder. `data` is the folder of the bundles that `bundles.txt` names.
pub fn assemble(directory: &Path, data: Option<&Path>) -> Result<TempDir> {
    let out = tempfile::tempdir()?;
    copy(directory, out.path())?;
    let named = directory.join("bundles.txt");
    if !named.exists() {
        return Ok(out);
    }
    fs::remove_file(out.path().join("bundles.txt"))?;
    let data =
        data.with_context(|| format!("{} names bundles of the data folder, which does not exist", named.display()))?;
    let text = read(&named)?;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        // Named after package and version, as the folders of the data are.
        let name = line.trim_start_matches("bundles/").replace('/', ".");
        copy(&data.join(line), &out.path().join("bundles").join(name))?;
    }
    Ok(out)
}

/// Loads the catalog in a folder, all of which can be served.
pub fn load(folder: &Path) -> Result<Snapshot> {
    let loaded = registry::dir::load(folder).map_err(|error| anyhow!("{error:?}"))?;
    match loaded.findings.iter().find(|finding| finding.severity == Severity::Error) {
        Some(finding) => bail!("{finding}"),
        None => Ok(loaded.snapshot),
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
