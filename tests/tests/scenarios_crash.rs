//! The controllers are killed and started anew, and every step ends with the same objects all the same: after every single
//! action in one run of each of these scenarios, and after each one action in runs of their own for some.
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

/// Run once for each of their actions. The others take too long for that, or show nothing that these do not.
const EXHAUSTIVE: [&str; 2] = ["csv-simple", "install-automatic"];

/// Run once, with a restart after every action. An upgrade is not among them yet: a plan whose statuses are lost finds what it made
/// `Present`, and a hop may be over before the plan is looked at again, so that their ends differ in more than the recordings do.
const CONVERGING: [&str; 10] = [
    "copied-csvs-namespaces",
    "csv-replaces-by-hand",
    "csv-requirements-appear",
    "csv-simple",
    "install-automatic",
    "install-manual-approval",
    "installmode-all-namespaces",
    "installmode-single-namespace",
    "operatorcondition-blocks-upgrade",
    "operatorgroup-selector-matches-nothing",
];

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (name, scenario) in all()?.into_iter().filter(|(name, _)| CONVERGING.contains(&name.as_str())) {
        if scenario.needs_data() && data().is_none() {
            trials.push(Trial::test(name, || Ok(())).with_ignored_flag(true).with_kind("skipped: needs OLM_TEST_DATA"));
            continue;
        }
        if EXHAUSTIVE.contains(&name.as_str()) {
            let scenario = scenario.clone();
            trials.push(Trial::test(format!("{name} after each action"), move || after_each(&scenario)));
        }
        trials.push(Trial::test(format!("{name} after every action"), move || {
            ends_alike(&scenario, Crashes::AfterEvery).map(|_| ()).map_err(Failed::from)
        }));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn after_each(scenario: &Scenario) -> Result<(), Failed> {
    let actions = ends_alike(scenario, Crashes::Never)?;
    for after in 1..=actions {
        ends_alike(scenario, Crashes::After(after))
            .with_context(|| format!("killed after action {after} of {actions}"))?;
    }
    Ok(())
}

/// Runs the scenario and answers how many actions it took; an error when it ends otherwise than recorded.
fn ends_alike(scenario: &Scenario, crashes: Crashes) -> Result<usize> {
    let mut engine = SimEngine::crashing(crashes)?;
    let found = run_scenario(&mut engine, scenario, data().as_deref())?;
    let report = judge::end_report(&scenario.name, "sim", &scenario.golden()?, &found, &wanted()?);
    anyhow::ensure!(report.is_empty(), "{report}");
    Ok(engine.simulation().actions())
}
