//! The folder of test data. The tests of olm-core, olm-shell and olm-tests include this file, so that all find the same folder and report
//! skipped tests alike.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Returns the root of this repository.
pub fn repository() -> PathBuf {
    // The value at run time: the one at compile time may be another checkout that shares a build folder.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let package = Path::new(&package);
    package.ancestors().find(|folder| folder.join("Cargo.lock").is_file()).unwrap_or(package).to_owned()
}

/// Returns the data folder that `OLM_TEST_DATA` names (default `../shared/data`, relative to the repository); `None` if it does
/// not exist.
pub fn data() -> Option<PathBuf> {
    let folder = repository().join(std::env::var_os("OLM_TEST_DATA").unwrap_or_else(|| "../shared/data".into()));
    folder.canonicalize().ok().filter(|folder| folder.is_dir())
}

/// Why a test is skipped that needs the data folder if there is none.
pub const NO_DATA: &str = "needs the sample data (OLM_TEST_DATA names its folder)";

/// Reports on standard error why a test is skipped. Unlike the output of `eprintln!`, the test harness does not capture it.
pub fn report_skipped(why: &str) {
    // Standard error may be closed.
    drop(writeln!(std::io::stderr(), "skipped: {why}"));
}
