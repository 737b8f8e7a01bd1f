//! Operators that are published as plain manifests: their bundles are installed and upgraded in simulation, and what runs equals what
//! was given.
//!
//! Which manifests have errors, and how the installs end, is in `tests/sweep/plain.tsv`; `OLM_GENERATE=1` renews it.

use std::fmt::Write as _;
use std::fs;

use olm_core::bundle::synthesis::Format;
use olm_tests::data::{documents, repository};
use olm_tests::sweep::plain::{Project, VERSIONS};
use serde_json::Value;

use super::*;

/// Plays the installation and the upgrade of a project. Returns its line of the table, and the differences.
fn played(project: &Project) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    project.write(folder.path()).unwrap();
    let bundles = Bundles::read(folder.path()).unwrap();
    assert_eq!(bundles.left_out, Vec::<String>::new(), "{}", project.name);
    let edges = bundles.edges();
    assert_eq!(edges.len(), 1, "{}: one upgrade", project.name);
    let case = bundles.upgrade(edges[0]);
    let mut engine = SimEngine::start().unwrap();
    let mut view = View::default();
    case::serve(&mut engine, &mut view, case::ALONE, &bundles.alone(&project.name).unwrap()).unwrap();
    let outcome = case.play_in(&mut engine, &mut view).unwrap();
    let upgrade = outcome.upgrade.clone().unwrap();
    let differences = project.differences(&view, &case.namespace);
    println!("{}: {}", project.name, outcome.because.join("\n  "));
    (format!("{}\t{}", outcome.install, upgrade), differences)
}

fn line(project: &Project) -> (String, Vec<String>) {
    let errors: Vec<&str> = project.errors.iter().copied().collect();
    let format = if project.format == Format::Plain { "k8s+v1" } else { "registry+v1" };
    let (end, differences) = played(project);
    (format!("{}\t{format}\t{}\t{end}\n", project.name, errors.join(",")), differences)
}

#[test]
fn the_sample_runs_as_given() {
    let folder = repository().join("tests/plain");
    let olm_yaml: Value = documents(&folder.join("olm.yaml")).unwrap().remove(0);
    let project = Project::read(&folder.join("rose"), Some(olm_yaml)).unwrap().unwrap();
    let (line, differences) = line(&project);
    // Nothing answers for an APIService in a simulation.
    assert_eq!(line, "rose\tk8s+v1\t\tInstalling/InstallWaiting\tNotInstalled\n");
    assert_eq!(differences, Vec::<String>::new());
    assert!(project.manifests.len() > 20, "nothing is excluded");
    let synthesis = project.synthesis(VERSIONS[0]);
    let lost: Vec<_> = synthesis.account.iter().filter(|entry| entry.destinations.is_empty()).collect();
    assert_eq!(lost, Vec::<&olm_core::bundle::synthesis::AccountEntry>::new());
}

#[test]
fn published_projects_run_as_given() {
    let Some(data) = data() else { skip!("{NO_DATA}") };
    let mut folders: Vec<_> = fs::read_dir(data.join("plain")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    let found = each(&folders, |folder| match Project::read(folder, None).unwrap() {
        Some(project) => line(&project),
        None => (format!("{}\t-\t\t-\t-\n", folder.file_name().unwrap().to_string_lossy()), Vec::new()),
    });
    let mut table = String::from("# project\tformat\terrors of excluded manifests\tinstall\tupgrade\n");
    let mut all_differences = String::new();
    for (line, differences) in &found {
        table.push_str(line);
        // What failed does not run.
        for difference in differences.iter().filter(|_| line.ends_with("\tSucceeded/InstallSucceeded\n")) {
            writeln!(all_differences, "{}: {difference}", line.split('\t').next().unwrap()).unwrap();
        }
    }
    let stored = repository().join("tests/sweep/plain.tsv");
    if std::env::var_os("OLM_GENERATE").is_some() {
        fs::write(&stored, &table).unwrap();
    }
    let stored = fs::read_to_string(stored).unwrap();
    // Another data folder may have other projects.
    let unknown: Vec<&str> = table.lines().filter(|line| !stored.lines().any(|known| known == *line)).collect();
    assert_eq!(unknown, Vec::<&str>::new(), "they end otherwise than stored");
    assert_eq!(all_differences, "");
}
