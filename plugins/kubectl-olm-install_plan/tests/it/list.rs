//! `kubectl olm install-plan list`.

use std::fs;

use super::said;

/// Plans of two namespaces in every phase, and what belongs to them.
const GARDEN: &str = include_str!("garden.yaml");

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("garden.yaml"), GARDEN).unwrap();
    folder
}

/// Without what changes from day to day.
fn listed(arguments: &[&str]) -> (i32, String, String) {
    let folder = folder();
    said(folder.path(), &[&["list", "--from", "garden.yaml"], arguments].concat())
}

#[test]
fn every_plan_and_what_it_waits_for() {
    let (code, table, talk) = listed(&[]);
    assert_eq!((code, talk.as_str()), (0, ""));
    insta::assert_snapshot!(table);
    insta::assert_snapshot!(listed(&["-o", "wide", "-n", "park"]).1);
    insta::assert_snapshot!(listed(&["-o", "yaml", "-n", "park"]).1);
}

#[test]
fn some_of_them() {
    let names = |arguments: &[&str]| listed(&[&["-o", "name"], arguments].concat()).1;
    assert_eq!(names(&["--pending"]), "installplan/install-next -n garden\n");
    assert_eq!(names(&["-l", "who=me"]), "installplan/install-old -n garden\n");
    assert_eq!(names(&["-n", "garden", "--pending"]), "installplan/install-next\n");
    let path = "-ojsonpath={range .items[*]}{.metadata.name}={.phase} {end}";
    assert_eq!(
        listed(&["-n", "garden", path]).1,
        "install-first=Complete install-old=RequiresApproval install-next=RequiresApproval "
    );
    let (code, table, talk) = listed(&["-n", "nowhere"]);
    assert_eq!(
        (code, table.as_str(), talk.as_str()),
        (0, "", "No InstallPlans found in nowhere namespace: -A looks in all\n")
    );
}

#[test]
fn questions_that_cannot_be_read() {
    for wrong in
        [&["-l", "a b"][..], &["-o", "xml"], &["--context", "mine"], &["--from", "./gone"], &["--catalog", "a=./gone"]]
    {
        let (code, table, talk) = listed(wrong);
        assert_eq!((code, table.as_str()), (2, ""), "{wrong:?}");
        assert!(talk.starts_with("error: "), "{wrong:?}: {talk}");
    }
}
