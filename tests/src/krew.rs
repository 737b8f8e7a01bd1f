//! The real krew for tests, built by Go from `tests/krew`.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;

use crate::control_plane::binaries;

/// Returns whether tests that need krew are skipped: `OLM_TEST_KREW=skip`. Reports so on standard error.
pub fn skipped() -> bool {
    let skip = std::env::var_os("OLM_TEST_KREW").is_some_and(|value| value == "skip");
    if skip {
        // Not captured by the test harness, unlike the output of `eprintln!`. A test may have no standard error.
        drop(writeln!(io::stderr(), "skipped: needs krew, and OLM_TEST_KREW=skip"));
    }
    skip
}

/// Returns the path of `krew` or `validate-krew-manifest`, and builds it if necessary.
///
/// # Errors
/// It cannot be built.
pub fn tool(name: &str) -> Result<PathBuf> {
    binaries::krew(name)
}
