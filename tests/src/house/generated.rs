//! Files that a program writes: each is as it would be written today. `OLM_GENERATE=1 cargo test -p olm-tests generated`
//! writes them.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Finding, sources};

/// A file that a program writes.
pub struct Generated {
    /// Where, from the root of the repository.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
}

/// Those of the generated files that are not as they would be written today.
pub fn stale(files: Vec<Generated>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for Generated { file, text } in files {
        let path = sources::root().join(&file);
        if fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        if std::env::var_os("OLM_GENERATE").is_some() {
            fs::write(&path, text).with_context(|| file.display().to_string())?;
        } else {
            let what = "is not as it would be written today: OLM_GENERATE=1 cargo test -p olm-tests generated";
            findings.push(Finding::new(file, 0, what));
        }
    }
    Ok(findings)
}
