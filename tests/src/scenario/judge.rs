//! Decides whether a run of a scenario is as expected: as recorded, apart from the expected differences, if `passing.yaml`
//! lists it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result};
use libtest_mimic::{Failed, Trial};
use similar::TextDiff;

use super::compare::{Difference, What, compare, tally};
use super::differences::{self, Wanted};
use super::engine::Engine;
use super::format::{Recording, Scenario, read_yaml};
use super::runner::Run;
use super::{all, checked_in, recording};
use crate::data::data;

/// How many lines of the controllers' log are shown with a failure.
const LAST_WORDS: usize = 30;

/// Reads which scenarios pass, by engine: `tests/scenarios/passing.yaml`.
pub fn passing() -> Result<BTreeMap<String, BTreeSet<String>>> {
    read_yaml(&checked_in().join("passing.yaml"))
}

/// Formats the differences of a recording from its golden. Empty if there are only expected ones.
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
            "{scenario}: a difference expected by {} did not occur: [{}] {} {} ({})\n    hint: remove it, or set `sometimes: true` if it depends on timing",
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
            "{scenario} on {engine}: {equal} of {total} object states equal; {} differences, {wanted} of them expected",
            differences.len()
        );
    }
    out
}

/// Formats the differences of the final objects of a recording's steps, without events and intermediate states. These must be
/// equal regardless of how often the controllers were restarted.
pub fn end_report(scenario: &str, engine: &str, golden: &Recording, found: &Recording, wanted: &[Wanted]) -> String {
    let golden = &differences::without_moments(golden, scenario, engine, wanted);
    let found = &differences::without_moments(found, scenario, engine, wanted);
    let differences = compare(golden, found);
    let (unwanted, _) = differences::judge(scenario, engine, &differences, wanted);
    let mut out = String::new();
    for difference in unwanted.iter().filter(|d| !matches!(d.path(), "event" | "transition")) {
        let _ = writeln!(out, "{scenario} [{}] {}", difference.step, difference.object);
        write_difference(&mut out, difference);
    }
    out
}

fn write_difference(out: &mut String, difference: &Difference) {
    let line = difference.what.to_string();
    let _ = writeln!(out, "    {line}");
    // Truncated values are shown line by line if both are known.
    if let (What::Other(_, expected, found), true) = (&difference.what, line.contains('…')) {
        let (expected, found) = (format!("{expected:#}"), format!("{found:#}"));
        let (expected, found) = (expected.replace("\\n", "\n"), found.replace("\\n", "\n"));
        let diff = TextDiff::from_lines(&expected, &found).unified_diff().context_radius(2).to_string();
        for line in diff.lines() {
            let _ = writeln!(out, "        {line}");
        }
    }
}

/// Returns a test for each scenario that the environment's `OLM_SCENARIOS` names (comma-separated, or `all`); by default for
/// those that `passing.yaml` lists for any engine, and, with `unlisted`, for all others as well, to notice when one of them
/// passes. With `OLM_SCENARIO_OUT` set, writes recordings, reports and logs to `ENGINE/SCENARIO` in that folder.
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
    let is_named = !matches!(named.as_str(), "" | "all");
    let trials = names.into_iter().map(|name| {
        let is_listed = listed.contains(&name);
        match scenarios.remove(&name) {
            Some(scenario) if !scenario.needs_data() || data().is_some() => {
                let start = start.clone();
                Trial::test(name, move || test(engine, &scenario, is_listed, is_named, start)).with_kind(engine)
            }
            None if data().is_some() => Trial::test(name, || Err(Failed::from("unknown scenario"))).with_kind(engine),
            _ => Trial::test(name, || Ok(())).with_ignored_flag(true).with_kind("skipped, needs OLM_TEST_DATA"),
        }
    });
    Ok(trials.collect())
}

fn test<E: Engine>(
    engine: &str,
    scenario: &Scenario,
    is_listed: bool,
    is_named: bool,
    start: impl FnOnce(&Scenario) -> Result<E>,
) -> Result<(), Failed> {
    let name = &scenario.name;
    let out = std::env::var_os("OLM_SCENARIO_OUT").map(|out| PathBuf::from(out).join(engine).join(name));
    if let Some(out) = &out {
        fs::create_dir_all(out)?;
    }
    let result = start(scenario).and_then(|engine| attempt(engine, scenario, out.as_deref()));
    let report = result.unwrap_or_else(|error| format!("{name} on {engine} did not run: {error:#}\n"));
    if let Some(out) = &out {
        fs::write(out.join("report.txt"), &report)?;
    }
    match (is_listed, report.is_empty()) {
        (true, false) => Err(Failed::from(report)),
        (false, true) => {
            Err(Failed::from(format!("{name} passes on {engine} now\n    hint: add it to {engine} in passing.yaml")))
        }
        (false, false) if is_named => Ok(write!(io::stderr(), "not listed, as expected:\n{report}")?),
        _ => Ok(()),
    }
}

/// Runs the scenario and returns [`report`]. Writes the recording and the controllers' log to `out`.
fn attempt(engine: impl Engine, scenario: &Scenario, out: Option<&Path>) -> Result<String> {
    let data = data();
    let mut run = Run::new(engine, scenario, data.as_deref());
    let found = run.play();
    let log = run.engine().log();
    if let Some(out) = out {
        fs::write(out.join("controllers.log"), &log)?;
    }
    let lines: Vec<_> = log.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
    let last = last.iter().fold(String::new(), |text, line| text + "    log: " + line + "\n");
    let found = found.map_err(|error| error.context(format!("the end of the controllers' log:\n{last}")))?;
    if let Some(out) = out {
        recording::write(&found, scenario, out)?;
    }
    let mut report = report(&scenario.name, run.engine().name(), &scenario.golden()?, &found, &differences::wanted()?);
    if !report.is_empty() && found.steps.iter().any(|step| !step.faults.is_empty()) {
        report += &last;
    }
    Ok(report)
}
