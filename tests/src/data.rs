//! Where the sample data is: real bundles, catalogs and recordings that are not part of the repository.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// The root of this repository.
pub fn repository() -> PathBuf {
    // As cargo says now; what was true when this was compiled may be another checkout that shares a build folder.
    let tests = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&tests).join("..")
}

/// The data folder that `OLM_TEST_DATA` names (default `../shared/data`, relative to the repository); `None` when it is not there.
pub fn data() -> Option<PathBuf> {
    let folder = repository().join(std::env::var_os("OLM_TEST_DATA").unwrap_or_else(|| "../shared/data".into()));
    folder.canonicalize().ok().filter(|folder| folder.is_dir())
}

/// What a test says when it needs the data folder and there is none.
pub const NO_DATA: &str = "needs the sample data (OLM_TEST_DATA names its folder)";

/// Says on standard error why a test does not run. Not captured by the test harness, unlike what `eprintln!` prints.
pub fn say_skipped(why: &str) {
    // A test may lack standard error.
    drop(writeln!(std::io::stderr(), "skipped: {why}"));
}

/// Ends a test early and says why.
#[macro_export]
macro_rules! skip {
    ($($why:tt)+) => {{
        $crate::data::say_skipped(&format!($($why)+));
        return;
    }};
}

/// Every file below a folder, sorted by path.
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

/// The documents of a YAML file.
pub fn documents(file: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let documents = serde_yaml::Deserializer::from_str(&text).map(Value::deserialize).collect::<Result<_, _>>();
    documents.with_context(|| format!("{}: not YAML", file.display()))
}
