//! The controllers are killed and restarted, and every step of a scenario must still end with the same objects: for each
//! scenario that passes on `sim`, in one run after every action (with each batch executed in reverse order), and after each
//! action in a separate run. Differences that are permitted only here are in `differences.yaml`, as `engine: crash`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use jiff::SignedDuration;
use libtest_mimic::{Arguments, Trial};
use olm_core::sim::Crashes;
use olm_tests::data::data;
use olm_tests::scenario::differences::{Wanted, wanted};
use olm_tests::scenario::format::{Recording, Scenario};
use olm_tests::scenario::runner::{Run, Went};
use olm_tests::scenario::sim::SimEngine;
use olm_tests::scenario::{all, judge};

/// The common preparation is equal for all scenarios: the controllers are killed during it only in this one.
const FROM_THE_BEGINNING: &str = "csv-simple";

/// In a run with more actions than this the controllers are killed only after some of them, evenly distributed, because each
/// kill costs as much as the rest of the run.
const MANY_ACTIONS: usize = 400;
/// The number of kills in such a run.
const KILLS_OF_MANY: usize = 10;

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
        let again = scenario.clone();
        trials.push(Trial::test(format!("{name} killed after every action"), move || Ok(after_every(&again)?)));
        trials.push(Trial::test(format!("{name} killed once after each action"), move || Ok(after_each(&scenario)?)));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn after_every(scenario: &Scenario) -> Result<()> {
    let data = data();
    let mut engine = SimEngine::start_for(scenario)?;
    engine.simulation().crash(Crashes::AfterEvery);
    engine.simulation().turn_batches();
    Expected::record(scenario)?.check(Run::new(engine, scenario, data.as_deref()))
}

/// Each run starts in the state of the undisturbed run before the action. It ends with the step if the cluster is then in the
/// same state as without the crash, because both would continue equally; otherwise it continues to the end and is compared with
/// the recording.
fn after_each(scenario: &Scenario) -> Result<()> {
    let data = data();
    let expected = Expected::record(scenario)?;
    let mut run = Run::new(SimEngine::start_for(scenario)?, scenario, data.as_deref());
    if scenario.name != FROM_THE_BEGINNING {
        while run.go_on()? == Went::On {}
    }
    let mut actions = run.engine().simulation().actions();
    let mut undisturbed = run.clone();
    undisturbed.play()?;
    let all = undisturbed.engine().simulation().actions() - actions;
    let step = if all > MANY_ACTIONS { all / KILLS_OF_MANY } else { 1 };
    loop {
        // The states of the undisturbed run before each action of a step.
        let mut forks = Vec::new();
        let went = loop {
            let before = run.clone();
            let went = run.go_on()?;
            let done = run.engine().simulation().actions();
            forks
                .extend((actions + 1..=done).filter(|n| n.is_multiple_of(step)).map(|action| (action, before.clone())));
            actions = done;
            if went != Went::On {
                break went;
            }
        };
        if went == Went::Nowhere {
            break;
        }
        for (action, mut killed) in forks {
            killed.engine().simulation().crash(Crashes::After(action));
            while killed.go_on()? == Went::On {}
            if remembers_nothing(&mut run) && remembers_nothing(&mut killed) && killed.is_where(&run)? {
                continue;
            }
            expected.check(killed).with_context(|| format!("killed after action {action}"))?;
        }
    }
    expected.check(run)
}

/// Returns whether the controllers have no state except the objects and short retries.
fn remembers_nothing(run: &mut Run<'_, SimEngine>) -> bool {
    let simulation = run.engine().simulation();
    let soon = simulation.now() + SignedDuration::from_hours(24);
    simulation.planner().wakeup().is_none_or(|at| at > soon)
}

/// The expected result of a scenario.
struct Expected<'a> {
    scenario: &'a str,
    golden: Recording,
    wanted: Vec<Wanted>,
}

impl<'a> Expected<'a> {
    fn record(scenario: &'a Scenario) -> Result<Self> {
        Ok(Self { scenario: &scenario.name, golden: scenario.golden()?, wanted: wanted()? })
    }

    /// Runs the scenario to its end. Returns an error if any step did not end as recorded.
    fn check(&self, mut run: Run<'_, SimEngine>) -> Result<()> {
        let report = judge::end_report(self.scenario, "crash", &self.golden, &run.play()?, &self.wanted);
        anyhow::ensure!(report.is_empty(), "{report}");
        Ok(())
    }
}
