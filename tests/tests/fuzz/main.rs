//! Runs all targets on the inputs in tests/fuzz/corpus and tests/fuzz/regressions.

#![expect(clippy::unwrap_used, reason = "a test fails if something is missing")]

mod forgery;
mod twins;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use olm_tests::fuzz::{TARGETS, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// Returns the inputs of a target in a folder, by name.
fn inputs(folder: &str, target: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root().join(folder).join(target)) else { return Vec::new() };
    let mut inputs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    inputs
}

/// Returns every input for which a target fails.
fn broken(folder: &str, target: &str) -> Vec<String> {
    let holds = |input: &PathBuf| {
        let bytes = fs::read(input).unwrap();
        catch_unwind(AssertUnwindSafe(|| run(target, &bytes))).is_ok()
    };
    let broken = inputs(folder, target).into_iter().filter(|input| !holds(input));
    broken.map(|input| input.display().to_string()).collect()
}

fn every(folder: &str) {
    let broken: Vec<String> = TARGETS.iter().flat_map(|(target, _)| broken(folder, target)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn regressions_hold() {
    every("regressions");
}

#[test]
fn the_corpus_holds() {
    for (target, _) in TARGETS {
        assert!(!inputs("corpus", target).is_empty(), "tests/fuzz/corpus/{target} is empty");
    }
    every("corpus");
}

/// Every input belongs to a target, and every target is one of cargo-fuzz.
#[test]
fn every_target_can_be_run() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    for (target, _) in TARGETS {
        assert!(manifest.contains(&format!("[[bin]]\nname = \"{target}\"\n")), "Cargo.toml has no {target}");
        let source = fs::read_to_string(root().join(format!("fuzz_targets/{target}.rs"))).unwrap();
        assert!(source.contains(&format!("run(\"{target}\", bytes)")), "{source}");
    }
    for folder in ["corpus", "regressions"] {
        for entry in fs::read_dir(root().join(folder)).into_iter().flatten() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(TARGETS.iter().any(|(target, _)| *target == name), "unknown target {name}");
        }
    }
}

/// The collected inputs of a fuzzing run do not belong into the repository.
#[test]
fn inputs_are_small() {
    let files = ["corpus", "regressions"].iter().flat_map(|folder| TARGETS.iter().flat_map(|(t, _)| inputs(folder, t)));
    let bytes: u64 = files.map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!(bytes < 300_000, "{bytes} bytes");
}
