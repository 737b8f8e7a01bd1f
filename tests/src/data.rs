//! Where the tests find the sample data, which is not part of the repository.

use std::path::{Path, PathBuf};

/// The folder with the sample data: `OLM_TEST_DATA`, or `../shared/data` beside the repository; `None` (and a line on stderr
/// that names the test) when there is none, so that a clone without it passes.
pub fn folder(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("OLM_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), PathBuf::from);
    if folder.join("README.md").is_file() {
        return Some(folder);
    }
    #[expect(clippy::print_stderr, reason = "whoever runs the tests should know what was not tested")]
    {
        eprintln!("{test}: skipped, there is no sample data (set OLM_TEST_DATA)");
    }
    None
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
