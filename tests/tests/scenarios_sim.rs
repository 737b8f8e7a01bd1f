//! The scenarios on the simulated engine.

use std::process::ExitCode;

use anyhow::Result;
use libtest_mimic::Arguments;
use olm_tests::scenario::judge;
use olm_tests::scenario::sim::SimEngine;

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let trials = judge::trials("sim", true, SimEngine::start_for)?;
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}
