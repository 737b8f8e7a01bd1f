//! Where the sample data is: real bundles, catalogs and recordings that are not part of the repository.

use std::path::{Path, PathBuf};

/// The root of this repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}

/// The data folder that `OLM_TEST_DATA` names (default `../shared/data`, relative to the repository); `None` when it is not there.
pub fn data() -> Option<PathBuf> {
    let folder = repository().join(std::env::var_os("OLM_TEST_DATA").unwrap_or_else(|| "../shared/data".into()));
    folder.canonicalize().ok().filter(|folder| folder.is_dir())
}

/// What a test says when it needs the data folder and there is none.
pub const NO_DATA: &str = "skipped: needs the sample data (set OLM_TEST_DATA to its folder)";

/// Ends a test early and says why on stderr.
#[macro_export]
macro_rules! skip {
    ($($why:tt)+) => {{
        eprintln!($($why)+);
        return;
    }};
}
