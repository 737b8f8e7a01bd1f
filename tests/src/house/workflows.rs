//! Workflows of GitHub: valid, with pinned actions and the least permissions, and of commands that exist.

use std::path::{Path, PathBuf};

use anyhow::Result;
use regex::Regex;
use serde_json::Value;

use super::citations::File;
use super::{Finding, sources};

/// The folder of workflows.
const FOLDER: &str = ".github/workflows";

/// Returns the violations of every workflow.
///
/// # Errors
/// A file cannot be read.
pub fn wrong() -> Result<Vec<Finding>> {
    let all = sources::files()?;
    let mut workflows = Vec::new();
    for file in all.iter().filter(|file| file.starts_with(FOLDER)) {
        workflows.push((file.clone(), sources::text(file)?.unwrap_or_default()));
    }
    wrong_in(&workflows, &all)
}

/// Does the same for these workflows, in a repository of these files.
///
/// # Errors
/// None, unless a pattern of this module is invalid.
pub fn wrong_in(workflows: &[File], all: &[PathBuf]) -> Result<Vec<Finding>> {
    let pinned = Regex::new(r"uses: [\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")?;
    // Build output is not part of the repository.
    let path = Regex::new(r#"(?:^|[\s"'=])((?:\.ci|\.github|krew|plugins|shared|tests)/[\w./-]+)"#)?;
    let mut findings = Vec::new();
    for (file, text) in workflows {
        let mut wrong = |line: usize, what: String| findings.push(Finding::new(file, line, what));
        match serde_yaml::from_str::<Value>(text) {
            Err(error) => wrong(0, format!("is not YAML: {error}")),
            Ok(workflow) => form(&workflow).into_iter().for_each(|what| wrong(0, what)),
        }
        for (index, line) in text.lines().enumerate() {
            if line.contains("uses:") && !pinned.is_match(line) {
                wrong(index + 1, "pin the action: OWNER/NAME@COMMIT # vX.Y.Z".to_owned());
            }
            let missing = path.captures_iter(line).map(|found| found[1].to_owned());
            let missing = missing.filter(|cited| !all.iter().any(|file| file.starts_with(Path::new(cited))));
            missing.for_each(|cited| wrong(index + 1, format!("{cited} does not exist")));
        }
    }
    Ok(findings)
}

/// Returns what a workflow lacks: a trigger, jobs with steps, and permissions that only a single job extends.
fn form(workflow: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    // YAML 1.1 reads `on` as true.
    if workflow["on"].is_null() && workflow["true"].is_null() {
        findings.push("has no trigger".to_owned());
    }
    if workflow["permissions"] != serde_json::json!({ "contents": "read" }) {
        findings
            .push("write `permissions: contents: read` for the workflow, and more for a job that needs it".to_owned());
    }
    let jobs = workflow["jobs"].as_object();
    if jobs.is_none_or(serde_json::Map::is_empty) {
        findings.push("has no jobs".to_owned());
    }
    for (name, job) in jobs.into_iter().flatten() {
        if job["permissions"].is_string() {
            findings.push(format!("{name}: list the permissions"));
        }
        if !job["timeout-minutes"].is_number() || !job["runs-on"].is_string() {
            findings.push(format!("{name}: set runs-on and timeout-minutes"));
        }
        let steps = job["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
        if steps.is_empty() || steps.iter().any(|step| step["run"].is_string() == step["uses"].is_string()) {
            findings.push(format!("{name}: every step has either run or uses"));
        }
        let is_checkout =
            |step: &&Value| step["uses"].as_str().is_some_and(|uses| uses.starts_with("actions/checkout@"));
        let keeps = |step: &Value| step["with"]["persist-credentials"] != Value::Bool(false);
        if steps.iter().filter(is_checkout).any(keeps) {
            findings.push(format!("{name}: check out with persist-credentials: false"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let files = [PathBuf::from(".ci/run"), PathBuf::from("krew/build")];
        let workflow = (PathBuf::from(".github/workflows/a.yaml"), text.to_owned());
        wrong_in(&[workflow], &files).unwrap().iter().map(Finding::to_string).collect()
    }

    #[test]
    fn violations_of_workflows_are_found() {
        let good = "on: push\npermissions: {contents: read}\njobs:\n  a:\n    runs-on: x\n    timeout-minutes: 1\n    steps:\n    - \
                    run: .ci/run\n";
        assert_eq!(found(good), [""; 0]);
        for (from, to, expected) in [
            ("on: push\n", "", "has no trigger"),
            ("{contents: read}", "write-all", "write `permissions"),
            (".ci/run", ".ci/walk", ":8: .ci/walk does not exist"),
            ("run: .ci/run", "uses: actions/checkout@v6", ":8: pin the action"),
            ("run: .ci/run", "uses: actions/checkout@v6", "a: check out with persist-credentials"),
            ("run: .ci/run", "name: x", "a: every step has either run or uses"),
            ("    timeout-minutes: 1\n", "", "a: set runs-on and timeout-minutes"),
            ("jobs:", "jobs: [", "is not YAML"),
        ] {
            let findings = found(&good.replace(from, to));
            assert!(findings.iter().any(|finding| finding.contains(expected)), "{expected}: {findings:?}");
        }
    }
}
