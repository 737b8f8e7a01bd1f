//! Says whether a run of a scenario is as it should be: as recorded, but for the wanted differences, if `passing.yaml` lists it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use libtest_mimic::{Failed, Trial};
use similar::TextDiff;

use super::compare::{Difference, What, compare, tally};
use super::differences::{self, Wanted};
use super::engine::Engine;
use super::format::{Recording, Scenario, read_yaml};
use super::runner::run_scenario;
use super::{all, checked_in, recording};
use crate::data::data;

/// Which scenarios pass, by engine: `tests/scenarios/passing.yaml`.
pub fn passing() -> Result<BTreeMap<String, BTreeSet<String>>> {
    read_yaml(&checked_in().join("passing.yaml"))
}

/// The differences of a recording from its golden, as people read them. Empty when there are none but wanted ones.
pub fn report(scenario: &str, engine: &str, golden: &Recording, found: &Recording, wanted: &[Wanted]) -> String {
    let golden = &differences::without_moments(golden, scenario, engine, wanted);
    let found = &differences::without_moments(found, scenario, engine, wanted);
    let differences = compare(golden, found);
    let (equal, total) = tally(golden, &differences);
    let (unwanted, unused) = differences::judge(scenario, engine, &differences, wanted);
    let mut out = String::new();
    let mut at = ("", "");
    for difference in &unwanted {
        if at != (&difference.step, &difference.object) {
            at = (&difference.step, &difference.object);
            let _ = writeln!(out, "{scenario} [{}] {}", difference.step, difference.object);
        }
        write_difference(&mut out, difference);
    }
    for wanted in unused {
        let file = differences::path();
        let _ = writeln!(
            out,
            "{scenario}: a difference that {} wants did not occur: [{}] {} {} ({})\n    hint: remove it, or say `sometimes: true` if it depends on timing",
            file.file_name().unwrap_or_default().to_string_lossy(),
            wanted.step,
            wanted.object,
            wanted.path,
            wanted.reason,
        );
    }
    if !out.is_empty() {
        let wanted = differences.len() - unwanted.len();
        let _ = writeln!(
            out,
            "{scenario} on {engine}: {equal} of {total} object states equal; {} differences, {wanted} of them wanted",
            differences.len()
        );
    }
    out
}

fn write_difference(out: &mut String, difference: &Difference) {
    let line = difference.what.to_string();
    let _ = writeln!(out, "    {line}");
    // What was cut off is shown line by line, where both sides are known.
    if let (What::Other(_, expected, found), true) = (&difference.what, line.contains('…')) {
        let (expected, found) = (format!("{expected:#}"), format!("{found:#}"));
        let (expected, found) = (expected.replace("\\n", "\n"), found.replace("\\n", "\n"));
        let diff = TextDiff::from_lines(&expected, &found).unified_diff().context_radius(2).to_string();
        for line in diff.lines() {
            let _ = writeln!(out, "        {line}");
        }
    }
}

/// A test for each scenario that the environment's `OLM_SCENARIOS` names (comma-separated, or `all`); by default for those that
/// `passing.yaml` lists for any engine, and, with `unlisted`, for all others as well, so that one that begins to pass is noticed.
pub fn trials<E: Engine>(
    engine: &'static str,
    unlisted: bool,
    start: impl Fn(&Scenario) -> Result<E> + Clone + Send + 'static,
) -> Result<Vec<Trial>> {
    let mut scenarios = all()?;
    let passing = passing()?;
    let listed = passing.get(engine).with_context(|| format!("passing.yaml has no list for {engine}"))?;
    let named = std::env::var("OLM_SCENARIOS").unwrap_or_default();
    let names: BTreeSet<String> = match named.as_str() {
        "" if !unlisted => passing.values().flatten().cloned().collect(),
        "" | "all" => scenarios.keys().chain(passing.values().flatten()).cloned().collect(),
        named => named.split(',').map(|name| name.trim().to_owned()).collect(),
    };
    let trials = names.into_iter().map(|name| {
        let is_listed = listed.contains(&name);
        match scenarios.remove(&name) {
            Some(scenario) if !scenario.needs_data() || data().is_some() => {
                let start = start.clone();
                Trial::test(name, move || test(engine, &scenario, is_listed, start)).with_kind(engine)
            }
            None if data().is_some() => {
                Trial::test(name, || Err(Failed::from("there is no such scenario"))).with_kind(engine)
            }
            _ => Trial::test(name, || Ok(())).with_ignored_flag(true).with_kind("skipped: needs OLM_TEST_DATA"),
        }
    });
    Ok(trials.collect())
}

fn test<E: Engine>(
    engine: &str,
    scenario: &Scenario,
    is_listed: bool,
    start: impl FnOnce(&Scenario) -> Result<E>,
) -> Result<(), Failed> {
    let result = attempt(engine, scenario, start);
    let name = &scenario.name;
    match (result, is_listed) {
        (Ok(report), true) if !report.is_empty() => Err(Failed::from(report)),
        (Err(error), true) => Err(Failed::from(format!("{name} on {engine} did not run: {error:?}"))),
        (Ok(report), false) if report.is_empty() => {
            Err(Failed::from(format!("{name} passes on {engine} now\n    hint: add it to {engine} in passing.yaml")))
        }
        _ => Ok(()),
    }
}

/// Runs the scenario and answers [`report`]. With `OLM_SCENARIO_OUT` set, writes the recording to `ENGINE/SCENARIO` in that folder,
/// and the report beside it.
fn attempt<E: Engine>(engine: &str, scenario: &Scenario, start: impl FnOnce(&Scenario) -> Result<E>) -> Result<String> {
    let mut running = start(scenario).context("cannot start")?;
    let found = run_scenario(&mut running, scenario, data().as_deref())?;
    let mut report = report(&scenario.name, engine, &scenario.golden()?, &found, &differences::wanted()?);
    if let Some(out) = std::env::var_os("OLM_SCENARIO_OUT") {
        let folder = PathBuf::from(out).join(engine).join(&scenario.name);
        std::fs::create_dir_all(&folder)?;
        recording::write(&found, scenario, &folder)?;
        std::fs::write(folder.join("report.txt"), &report)?;
        std::fs::write(folder.join("controllers.log"), running.log())?;
    }
    if found.steps.iter().any(|step| !step.faults.is_empty()) && !report.is_empty() {
        let log = running.log();
        let last: Vec<_> = log.lines().rev().take(30).collect();
        report.extend(last.into_iter().rev().map(|line| format!("    log: {line}\n")));
    }
    Ok(report)
}
