//! The controllers are killed and started anew, and every step ends with the same objects all the same: after every single
//! action in one run of each scenario that passes on `sim`, and after each one action in runs of their own.
use std::process::ExitCode;

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Failed, Trial};
use olm_core::sim::Crashes;
use olm_tests::data::data;
use olm_tests::scenario::differences::wanted;
use olm_tests::scenario::format::Scenario;
use olm_tests::scenario::runner::run_scenario;
use olm_tests::scenario::sim::SimEngine;
use olm_tests::scenario::{all, judge};

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let passing = judge::passing()?;
    let listed = passing.get("sim").context("passing.yaml has no list for sim")?;
    let mut trials = Vec::new();
    for (name, scenario) in all()?.into_iter().filter(|(name, _)| listed.contains(name)) {
        if scenario.needs_data() && data().is_none() {
            trials.push(Trial::test(name, || Ok(())).with_ignored_flag(true).with_kind("skipped: needs OLM_TEST_DATA"));
            continue;
        }
        let each = scenario.clone();
        trials.push(Trial::test(format!("{name} after each action"), move || after_each(&each)));
        trials.push(Trial::test(format!("{name} after every action"), move || {
            ends_alike(&scenario, Crashes::AfterEvery).map(|_| ()).map_err(Failed::from)
        }));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn after_each(scenario: &Scenario) -> Result<(), Failed> {
    let begin = std::time::Instant::now();
    let actions = ends_alike(scenario, Crashes::Never)?;
    let one = begin.elapsed();
    eprintln!("TIME {} {actions} {one:?}", scenario.name);
    let mut faults = String::new();
    for after in 1..=actions {
        if let Err(e) = ends_alike(scenario, Crashes::After(after)) {
            faults += &format!("killed after action {after} of {actions}: {e:#}\n");
        }
    }
    eprintln!("TIME {} {actions} {one:?} {:?}", scenario.name, begin.elapsed());
    if faults.is_empty() { Ok(()) } else { Err(Failed::from(faults)) }
}

/// Runs the scenario and answers how many actions it took; an error when it ends otherwise than recorded.
fn ends_alike(scenario: &Scenario, crashes: Crashes) -> Result<usize> {
    let mut engine = SimEngine::crashing(crashes)?;
    let found = run_scenario(&mut engine, scenario, data().as_deref())?;
    let report = judge::end_report(&scenario.name, "sim", &scenario.golden()?, &found, &wanted()?);
    anyhow::ensure!(report.is_empty(), "{report}");
    Ok(engine.simulation().actions())
}
