//! The rules of this repository. `olm_tests::house` describes them.

#![expect(clippy::unwrap_used, reason = "a rule that cannot be checked fails")]

mod answers;
mod documents;
mod pages;
mod reference;
mod schemas;
mod validate;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use olm_core::api::crd::generate::generate;
use olm_core::packages;
use olm_tests::house::sources::{self, Source};
use olm_tests::house::{
    Finding, changelog, citations, descriptions, generated, krew, layers, manifests, purity, vocabulary, words,
    workflows,
};
use serde_json::json;

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
fn modules_import_only_from_lower_layers() {
    holds(&layers::core_modules(&rust()));
    holds(&layers::shell_modules(&rust()));
}

#[test]
fn files_do_not_import_each_other_in_a_cycle() {
    holds(&layers::circles_of_files(&rust(), &layers::WITHOUT_CIRCLES));
}

#[test]
fn the_core_has_no_side_effects() {
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
fn versions_and_lints_are_defined_once() {
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
fn every_module_documents_its_purpose() {
    holds(&words::without_a_job(&rust()));
}

#[test]
fn nothing_is_machine_specific_or_unfinished() {
    holds(&words::forbidden().unwrap());
}

#[test]
fn documented_commands_flags_and_packages_exist() {
    holds(&words::promises(&rust()).unwrap());
}

#[test]
fn citations_exist() {
    holds(&citations::broken().unwrap());
}

#[test]
fn comments_messages_and_documents_are_in_plain_english() {
    holds(&vocabulary::dialect(&rust()).unwrap());
}

#[test]
fn the_changelog_has_a_section_for_each_version() {
    holds(&changelog::wrong().unwrap());
}

#[test]
fn workflows_are_valid_and_call_existing_files() {
    holds(&workflows::wrong().unwrap());
}

#[test]
fn fields_of_olms_kinds_are_described() {
    holds(&descriptions::poor(Path::new("shared/core/src/api/crd/crds.json"), &generate()));
    let version = json!({ "name": packages::VERSION, "schema": { "openAPIV3Schema": packages::schema::generate() } });
    let package_manifest = json!({ "spec": { "names": { "kind": packages::KIND }, "versions": [version] } });
    holds(&descriptions::poor(Path::new("shared/core/src/packages/serve/schema.json"), &[package_manifest]));
}

#[test]
fn fields_of_output_are_described() {
    holds(&descriptions::poor_output(&documents::schemas()));
}

#[test]
fn generated_files_are_fresh() {
    let mut files = krew::manifests().unwrap();
    assert!(!files.is_empty());
    files.extend(schemas::files());
    files.extend(documents::files());
    files.extend(reference::files());
    files.extend(layers::tables().unwrap());
    holds(&generated::stale(files).unwrap());
}

#[test]
fn output_matches_the_published_schemas() {
    let schemas = documents::schemas();
    let mut kinds: BTreeSet<&str> = BTreeSet::new();
    let (answers, events) = (answers::answers(), answers::events());
    assert!(events.len() > 1, "the plan and the timeout");
    for answer in answers.iter().chain(&events) {
        let kind = answer["kind"].as_str().unwrap();
        let (kind, schema) = schemas.iter().find(|(known, _)| known == kind).unwrap();
        kinds.insert(kind);
        let faults = validate::faults(schema, answer);
        assert!(faults.is_empty(), "{kind}:\n{}", faults.join("\n"));
    }
    assert_eq!(kinds.len(), schemas.len(), "every kind is printed: {kinds:?}");
    // Unknown fields and missing required fields are found.
    let (_, schema) = schemas.iter().find(|(kind, _)| kind == "Version").unwrap();
    let wrong = serde_json::json!({ "apiVersion": "kubectl-olm/v1", "kind": "Version", "clientVersion": { "version": 1, "more": 1 } });
    assert_eq!(validate::faults(schema, &wrong).len(), 4);
}

/// Features that other crates of the workspace switch on hide that a crate lacks them. Plugins with the same features are checked
/// together: they compile the same dependencies, each set of which takes a minute. They include the shell as it is by itself.
#[test]
fn every_crate_compiles_by_itself() {
    let mut sets: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for member in manifests::members().unwrap() {
        let features = match member.name.as_str() {
            // Never used without the others.
            "olm-shell" | "olm-tests" => continue,
            "olm-core" => "none".to_owned(),
            _ => {
                let dependencies = member.dependencies().filter(|(table, ..)| table == "dependencies");
                let features =
                    dependencies.filter_map(|(_, name, spec)| Some(format!("{name}: {:?}", spec.get("features")?)));
                features.collect::<Vec<_>>().join(", ")
            }
        };
        sets.entry(features).or_default().push(member.name);
    }
    assert!(sets.len() > 2, "{sets:?}");
    for members in sets.values() {
        let packages = members.iter().flat_map(|name| ["--package", name]);
        let check = cargo().args(["check", "--quiet"]).args(packages).output().unwrap();
        assert!(check.status.success(), "{members:?}:\n{}", String::from_utf8_lossy(&check.stderr));
    }
}

/// Returns the names of all dependencies of these packages.
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

/// Returns a cargo command that uses only locked and downloaded dependencies.
fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(sources::root()).args(["--locked", "--offline"]);
    cargo
}
