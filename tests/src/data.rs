//! The sample data: real bundles, catalogs and recordings that are not part of the repository.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

#[path = "../../shared/core/src/testing/data.rs"]
mod folder;

pub use self::folder::{NO_DATA, data, report_skipped, repository};

/// Ends a test early and reports why.
#[macro_export]
macro_rules! skip {
    ($($why:tt)+) => {{
        $crate::data::report_skipped(&format!($($why)+));
        return;
    }};
}

/// Returns every file below a folder, sorted by path.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Reads the documents of a YAML file.
pub fn documents(file: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let documents = serde_yaml::Deserializer::from_str(&text).map(Value::deserialize).collect::<Result<_, _>>();
    documents.with_context(|| format!("{}: not YAML", file.display()))
}
