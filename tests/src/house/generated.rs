//! Generated files must be up to date. `OLM_GENERATE=1 cargo test -p olm-tests generated` writes them.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Finding, sources};

/// A generated file.
pub struct Generated {
    /// Its path, relative to the root of the repository.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
}

/// Returns the generated files that are out of date.
pub fn stale(files: Vec<Generated>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for Generated { file, text } in files {
        let path = sources::root().join(&file);
        if fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        if std::env::var_os("OLM_GENERATE").is_some() {
            path.parent().map_or(Ok(()), fs::create_dir_all).with_context(|| file.display().to_string())?;
            fs::write(&path, text).with_context(|| file.display().to_string())?;
        } else {
            let what = "is out of date: run OLM_GENERATE=1 cargo test -p olm-tests generated";
            findings.push(Finding::new(file, 0, what));
        }
    }
    Ok(findings)
}
