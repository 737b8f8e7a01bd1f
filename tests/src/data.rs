//! The sample data: real bundles, catalogs and recordings that are not part of the repository.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// Returns the root of this repository.
pub fn repository() -> PathBuf {
    // At run time, because the binary may have been compiled in another checkout that shares the build folder.
    let tests = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&tests).join("..")
}

/// Returns the data folder that `OLM_TEST_DATA` names (default `../shared/data`, relative to the repository), or `None` if it
/// does not exist.
pub fn data() -> Option<PathBuf> {
    let folder = repository().join(std::env::var_os("OLM_TEST_DATA").unwrap_or_else(|| "../shared/data".into()));
    folder.canonicalize().ok().filter(|folder| folder.is_dir())
}

/// Why a test is skipped that needs the data folder.
pub const NO_DATA: &str = "needs the sample data (OLM_TEST_DATA names its folder)";

/// Reports on standard error why a test is skipped. Not captured by the test harness, unlike the output of `eprintln!`.
pub fn say_skipped(why: &str) {
    // A test may have no standard error.
    drop(writeln!(std::io::stderr(), "skipped: {why}"));
}

/// Ends a test early and reports why.
#[macro_export]
macro_rules! skip {
    ($($why:tt)+) => {{
        $crate::data::say_skipped(&format!($($why)+));
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
