//! The rules of this house. What each one asks for, and why, stands in `olm_tests::house`.

#![expect(clippy::unwrap_used, reason = "a rule that cannot be checked is broken")]

mod answers;
mod documents;
mod schemas;
mod validate;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use olm_core::api::crd::generate::generate;
use olm_tests::house::sources::{self, Source};
use olm_tests::house::{Finding, citations, descriptions, generated, krew, layers, manifests, purity, words};

#[track_caller]
fn holds(findings: &[Finding]) {
    let list: Vec<_> = findings.iter().map(Finding::to_string).collect();
    assert!(list.is_empty(), "{}", list.join("\n"));
}

fn rust() -> Vec<Source> {
    let sources = sources::rust().unwrap();
    assert!(sources.iter().any(|source| source.file == Path::new("shared/core/src/lib.rs")));
    sources
}

#[test]
fn imports_go_from_plugins_to_the_shell_to_the_core() {
    holds(&layers::crates().unwrap());
}

#[test]
fn modules_know_what_is_below_them() {
    holds(&layers::core_modules(&rust()));
    holds(&layers::shell_modules(&rust()));
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    holds(&layers::circles_of_files(&rust(), &layers::WITHOUT_CIRCLES));
}

#[test]
fn the_core_touches_nothing() {
    holds(&purity::core(&rust()));
}

#[test]
fn the_core_has_no_runtime_and_no_network_in_its_dependencies() {
    let tree = crates_of(&["--package", "olm-core"]);
    for banned in ["tokio", "hyper", "reqwest", "tonic", "rustls", "mio", "getrandom", "rand"] {
        assert!(!tree.iter().any(|name| name == banned), "olm-core depends on {banned}");
    }
}

#[test]
fn there_is_one_tls_and_it_is_ring() {
    let tree = crates_of(&["--workspace"]);
    assert!(tree.iter().any(|name| name == "ring"));
    for banned in ["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys", "native-tls"] {
        assert!(!tree.iter().any(|name| name == banned), "something depends on {banned}");
    }
}

#[test]
fn versions_and_lints_are_said_once() {
    holds(&manifests::said_outside_the_root().unwrap());
}

#[test]
fn every_dependency_is_used() {
    holds(&manifests::unused(&rust()).unwrap());
}

#[test]
fn no_rust_file_is_too_long() {
    holds(&words::too_long(&rust()));
}

#[test]
fn every_module_says_its_one_job() {
    holds(&words::without_a_job(&rust()));
}

#[test]
fn nothing_is_of_one_machine_or_unfinished() {
    holds(&words::forbidden().unwrap());
}

#[test]
fn documentation_promises_what_there_is() {
    holds(&words::promises(&rust()).unwrap());
}

#[test]
fn what_is_cited_is_there() {
    holds(&citations::broken().unwrap());
}

#[test]
fn fields_of_olms_kinds_are_described() {
    holds(&descriptions::poor(Path::new("shared/core/src/api/crd/crds.json"), &generate()));
}

#[test]
fn generated_files_are_fresh() {
    let mut files = krew::manifests().unwrap();
    assert!(!files.is_empty());
    files.extend(schemas::files());
    files.extend(documents::files());
    holds(&generated::stale(files).unwrap());
}

#[test]
fn answers_are_as_their_published_schemas_say() {
    let schemas = documents::schemas();
    let mut kinds: BTreeSet<&str> = BTreeSet::new();
    let (answers, events) = (answers::answers(), answers::events());
    assert!(events.len() > 1, "the plan, and that time is up");
    for answer in answers.iter().chain(&events) {
        let kind = answer["kind"].as_str().unwrap();
        let (kind, schema) = schemas.iter().find(|(known, _)| known == kind).unwrap();
        kinds.insert(kind);
        let faults = validate::faults(schema, answer);
        assert!(faults.is_empty(), "{kind}:\n{}", faults.join("\n"));
    }
    assert_eq!(kinds.len(), schemas.len(), "every kind is answered: {kinds:?}");
    // What a schema does not name is noticed, and what it needs.
    let (_, schema) = schemas.iter().find(|(kind, _)| kind == "Version").unwrap();
    let wrong = serde_json::json!({ "apiVersion": "kubectl-olm/v1", "kind": "Version", "clientVersion": { "version": 1, "more": 1 } });
    assert_eq!(validate::faults(schema, &wrong).len(), 4);
}

#[test]
fn every_crate_is_whole_by_itself() {
    for member in manifests::members().unwrap() {
        let check = cargo().args(["check", "--quiet", "--package", &member.name]).output().unwrap();
        assert!(check.status.success(), "{}:\n{}", member.name, String::from_utf8_lossy(&check.stderr));
    }
}

/// The names of all crates that these packages are built with.
fn crates_of(packages: &[&str]) -> Vec<String> {
    let tree = cargo()
        .args(["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(packages)
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let names = String::from_utf8_lossy(&tree.stdout).into_owned();
    names.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// cargo, with the dependencies that are locked and here.
fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(sources::root()).args(["--locked", "--offline"]);
    cargo
}
