//! The scenario files are unchanged recordings, parsed as by Python, and compared as by the recordings' own programs.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use olm_tests::data::{self, NO_DATA, data, documents, report_skipped};
use olm_tests::scenario::compare::{What, compare};
use olm_tests::scenario::format::{Recording, Scenario};
use olm_tests::scenario::normalise::Normaliser;
use olm_tests::scenario::runner::Run;
use olm_tests::scenario::sim::SimEngine;
use olm_tests::scenario::{all, checked_in, differences, folders, judge, recording};
use olm_tests::skip;
use serde_json::{Value, json};

#[test]
fn every_scenario_is_valid_and_its_golden_equals_itself() {
    let scenarios = all().unwrap();
    assert!(scenarios.len() >= 53, "{}", scenarios.len());
    for (name, scenario) in &scenarios {
        let golden = scenario.golden().unwrap();
        let steps: Vec<_> = scenario.script.steps.iter().map(|step| &step.name).collect();
        assert_eq!(golden.steps.iter().map(|step| &step.name).collect::<Vec<_>>(), steps, "{name}");
        for step in &scenario.script.steps {
            for file in &step.apply {
                assert!(!scenario.objects(file).unwrap().is_empty(), "{name}: {file}");
            }
        }
        let report = judge::report(name, "none", &golden, &golden, &[]);
        assert!(report.is_empty(), "{name}:\n{report}");
    }
}

#[test]
fn the_lists_name_scenarios_and_engines_that_exist() {
    let scenarios = all().unwrap();
    let is_known = |name: &String| scenarios.contains_key(name) || (name.starts_with("real-") && data().is_none());
    for (engine, names) in judge::passing().unwrap() {
        assert!(["sim", "cluster"].contains(&engine.as_str()), "passing.yaml: unknown engine {engine}");
        for name in names {
            assert!(is_known(&name), "passing.yaml: unknown scenario {name}");
        }
    }
    for wanted in differences::wanted().unwrap() {
        assert!(wanted.reason.len() > 10, "differences.yaml: a reason is missing: {wanted:?}");
        let known = scenarios.keys().any(|name| wanted.scenario.matches(name));
        assert!(known || data().is_none(), "differences.yaml: unknown scenario {:?}", wanted.scenario);
    }
}

/// Recordings are never edited in this repository.
#[test]
fn copies_of_scenarios_equal_the_originals() {
    let Some(data) = data() else { skip!("{NO_DATA}") };
    for copy in folders(&checked_in()).unwrap() {
        let original = data.join("scenarios").join(copy.file_name().unwrap());
        let (ours, theirs) = (files(&copy), files(&original));
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{}", copy.display());
        for (path, content) in ours {
            assert!(theirs[&path] == content, "{} differs from {}", copy.join(&path).display(), original.display());
        }
    }
}

/// All synthetic scenarios are part of the repository; those with real bundles are not.
#[test]
fn only_synthetic_scenarios_are_copied() {
    let Some(data) = data() else { skip!("{NO_DATA}") };
    for folder in folders(&data.join("scenarios")).unwrap() {
        let scenario = Scenario::read(&folder).unwrap();
        let is_copied = checked_in().join(&scenario.name).exists();
        assert_eq!(is_copied, !scenario.needs_data(), "{}", scenario.name);
    }
}

#[test]
fn files_read_as_python_reads_them() {
    let Some((python, data)) = python_and_data() else { return };
    let script = "
import json, sys, yaml
Loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
for path in sys.stdin.read().split():
    print(json.dumps([path, [json.dumps(d, sort_keys=True) for d in yaml.load_all(open(path), Loader)]], default=str))
";
    let mut paths = Vec::new();
    for folder in folders(&data.join("scenarios")).unwrap() {
        let is_yaml = |path: &&PathBuf| path.extension().is_some_and(|e| e == "yaml");
        paths.extend(files(&folder).keys().filter(is_yaml).map(|path| folder.join(path).display().to_string()));
    }
    assert!(paths.len() > 100);
    let out = run(Command::new(python).args(["-c", script]), &paths.join("\n"));
    for line in out.lines() {
        let (path, theirs): (String, Vec<String>) = serde_json::from_str(line).unwrap();
        let theirs: Vec<Value> = theirs.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let ours = documents(Path::new(&path)).unwrap();
        assert!(ours == theirs, "{path} reads otherwise in Python");
    }
}

/// Compares goldens with recordings that have one modification, using both implementations.
#[test]
fn the_recordings_own_program_finds_the_same_differences() {
    let Some((python, data)) = python_and_data() else { return };
    for name in ["install-automatic", "upgrade-replaces-chain", "dependency-transitive", "operator-object"] {
        let scenario = Scenario::read(&data.join("scenarios").join(name)).unwrap();
        let golden = scenario.golden().unwrap();
        for (n, found) in mutations(&golden).into_iter().enumerate() {
            let theirs = tool_prints(python, &data, &scenario, &found);
            let ours = as_tool_prints(&golden, &found);
            assert_eq!(ours, theirs, "{name}, mutation {n}");
            assert_eq!(ours.is_empty(), n == 0, "{name}, mutation {n} makes no difference");
        }
    }
}

#[test]
fn the_recordings_own_program_finds_the_same_differences_in_a_run() {
    let Some((python, data)) = python_and_data() else { return };
    // One that passes, and two with more differences.
    for name in ["csv-simple", "csv-invalid-strategy", "install-automatic"] {
        let scenario = Scenario::read(&data.join("scenarios").join(name)).unwrap();
        let found = Run::new(SimEngine::start().unwrap(), &scenario, Some(&data)).play().unwrap();
        let theirs = tool_prints(python, &data, &scenario, &found);
        assert_eq!(as_tool_prints(&scenario.golden().unwrap(), &found), theirs, "{name}");
    }
}

/// Returns the output of the recordings' own program for a recording, without its last line.
fn tool_prints(python: &str, data: &Path, scenario: &Scenario, found: &Recording) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    recording::write(found, scenario, folder.path()).unwrap();
    let out = Command::new(python)
        .arg(data.join("scenarios/tools/compare"))
        .arg("--transitions")
        .arg(&scenario.folder)
        .arg(folder.path().join("recording.yaml"))
        .output()
        .unwrap();
    let printed = String::from_utf8(out.stdout).unwrap();
    let mut lines: Vec<_> = printed.lines().map(str::to_owned).collect();
    let last = lines.pop().unwrap_or_default();
    assert!(last.starts_with(&scenario.name), "{}", String::from_utf8_lossy(&out.stderr));
    lines
}

/// Returns the golden, and copies with one modification each.
fn mutations(golden: &Recording) -> Vec<Recording> {
    let changed = |change: &dyn Fn(&mut Recording)| {
        let mut found = golden.clone();
        change(&mut found);
        found
    };
    let csv = |step: &BTreeMap<String, Value>| {
        step.keys().find(|id| id.starts_with("ClusterServiceVersion/")).unwrap().clone()
    };
    vec![
        golden.clone(),
        changed(&|r| {
            let object = r.steps[0].objects.values_mut().find(|o| o["kind"] == "Subscription").unwrap();
            object["status"]["state"] = json!("ünexpected \u{1f339}\n");
        }),
        changed(&|r| {
            let id = csv(&r.steps[0].objects);
            r.steps[0].objects.remove(&id);
        }),
        changed(&|r| {
            let id = csv(&r.steps[0].objects);
            let object = r.steps[0].objects.get_mut(&id).unwrap();
            object["metadata"]["labels"]["new"] = json!("1.5");
            object["status"]["requirementStatus"].as_array_mut().unwrap().pop();
            object["spec"] = json!("<short>");
        }),
        changed(&|r| {
            let object = json!({"kind": "Rose", "text": "x".repeat(500)});
            r.steps.last_mut().unwrap().objects.insert("Rose/garden/<1>".to_owned(), object);
        }),
        changed(&|r| {
            r.steps[0].events.pop();
            r.steps[0].events.push(json!({"message": "\u{fc}", "object": "x"}));
        }),
        changed(&|r| {
            let states = r.steps[0].saw.values_mut().find(|states| states.len() > 1).unwrap();
            states.swap(0, 1);
        }),
    ]
}

/// Formats our differences as the recordings' own program does.
fn as_tool_prints(golden: &Recording, found: &Recording) -> Vec<String> {
    let mut lines = Vec::new();
    let mut at = None;
    // That program does not report failures of the run itself.
    for difference in compare(golden, found).into_iter().filter(|d| !matches!(d.what, What::Step(_))) {
        // That program reports each state that was not observed, and each object that differs.
        let here = (difference.step.clone(), difference.object.clone());
        if matches!(difference.what, What::TransitionMissing(_)) || at.as_ref() != Some(&here) {
            lines.push(format!("[{}] {}", here.0, here.1));
            at = Some(here);
        }
        lines.extend(format!("    {}", difference.what).split('\n').map(str::to_owned));
    }
    lines
}

/// Compares both normalisers on real CSVs, on objects that OLM derives from them, and on difficult texts.
#[test]
fn the_recordings_own_program_normalises_the_same() {
    let Some((python, data)) = python_and_data() else { return };
    let script = "
import importlib.machinery, importlib.util, json, sys
loader = importlib.machinery.SourceFileLoader('record', sys.argv[1])
spec = importlib.util.spec_from_loader('record', loader)
sys.dont_write_bytecode = True
record = importlib.util.module_from_spec(spec)
loader.exec_module(record)
run = json.load(sys.stdin)
n = record.Normaliser(run['uids'], {tuple(k): names for k, names in run['generated']})
print(json.dumps([n.object(o) for o in run['objects']]))
";
    let uid = "11111111-2222-3333-4444-555555555555";
    let uids: BTreeMap<_, _> = [(uid.to_owned(), "InstallPlan/garden/install-abcde".to_owned())].into();
    let names = vec!["install-abcde".to_owned(), "install-fghij".to_owned()];
    let key = ("InstallPlan".to_owned(), "garden".to_owned(), "install-".to_owned());
    let mut objects = real_objects(&data);
    let count = objects.len();
    assert!(count > 50, "{count}");
    let hard = format!(
        "ü\u{1f339}\u{7f}\u{1} {uid} install-fghij 2026-01-02T03:04:05.6Z 10.1.2.3:4 \"\\ ReplicaSet \"a-b-5d8f7c9b4\""
    );
    for kind in ["ClusterServiceVersion", "Subscription", "ConfigMap"] {
        objects.push(json!({
            "kind": kind, "apiVersion": "v1", "metadata": {"name": hard, "uid": uid, "generation": 1},
            "spec": {"text": hard.repeat(40), "list": [1.0, 1e20, 1.5e-7, 0.1, 12_345_678_901_234_567_u64, null, true], "more": hard.repeat(12)},
        }));
    }
    let manifests = objects[..count]
        .iter()
        .map(|o| json!({"resolving": "x", "resource": {"kind": o["kind"], "name": hard, "manifest": o.to_string()}}));
    let plan = json!({"kind": "InstallPlan", "metadata": {"name": "install-abcde"}, "spec": {}, "status": {"plan": manifests.collect::<Vec<_>>()}});
    objects.push(plan);

    let generated = vec![(key.clone(), names.clone())];
    let input = json!({"uids": uids, "generated": generated, "objects": objects});
    let tool = data.join("scenarios/tools/record");
    let out = run(Command::new(python).args(["-B", "-c", script]).arg(tool), &input.to_string());
    let theirs: Vec<Value> = serde_json::from_str(&out).unwrap();
    let normaliser = Normaliser::new(&uids, &[(key, names)].into(), &BTreeMap::new()).unwrap();
    for (object, theirs) in objects.iter().zip(theirs) {
        assert_eq!(normaliser.object(object), theirs);
    }
}

/// Returns the CSVs, CRDs, RBAC and Services of the sample bundles.
fn real_objects(data: &Path) -> Vec<Value> {
    let packages = ["bundles/etcd", "bundles/prometheus", "bundles/strimzi-kafka-operator", "bundles/camel-k"];
    let files = packages.iter().flat_map(|package| data::files(&data.join(package)));
    let objects =
        files.filter(|path| path.parent().unwrap().ends_with("manifests")).flat_map(|p| documents(&p).unwrap());
    // Current API servers never return v1beta1 CRDs without `versions`.
    objects.filter(|o| o["kind"] != "CustomResourceDefinition" || o["spec"]["versions"].is_array()).collect()
}

/// Returns the content of every file below a folder, by relative path.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let relative = |path: &Path| path.strip_prefix(folder).unwrap().to_owned();
    data::files(folder).iter().map(|path| (relative(path), fs::read(path).unwrap())).collect()
}

/// Returns the data folder, and a Python that can read YAML; reports a skipped test if there is none.
fn python_and_data() -> Option<(&'static str, PathBuf)> {
    let Some(data) = data() else {
        report_skipped(NO_DATA);
        return None;
    };
    let has_yaml = Command::new("python3").args(["-c", "import yaml"]).stderr(Stdio::null()).status();
    if !has_yaml.is_ok_and(|status| status.success()) {
        report_skipped("needs python3 with PyYAML");
        return None;
    }
    Some(("python3", data))
}

fn run(command: &mut Command, input: &str) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap()
}
