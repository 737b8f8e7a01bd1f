//! The scenarios on a real control plane with `kubectl olm run`.
//!
//! One test for each scenario that `passing.yaml` lists for any engine; `OLM_SCENARIOS=a,b` (or `all`) runs others.

use std::process::ExitCode;

use anyhow::Result;
use libtest_mimic::Arguments;
use olm_tests::control_plane;
use olm_tests::scenario::cluster::ClusterEngine;
use olm_tests::scenario::judge;

fn main() -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // A control plane uses a full core.
    arguments.test_threads.get_or_insert(2);
    let trials = if control_plane::skipped() { vec![] } else { judge::trials("cluster", false, ClusterEngine::start)? };
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}
