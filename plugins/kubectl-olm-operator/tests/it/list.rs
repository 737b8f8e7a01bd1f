//! `kubectl olm operator list`.

use std::fs;

use super::outcome;

/// Operators of two namespaces in several states.
const GARDEN: &str = include_str!("garden.yaml");

fn listed(arguments: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("garden.yaml"), GARDEN).unwrap();
    outcome(folder.path(), &[&["list", "--from", "garden.yaml"], arguments].concat())
}

#[test]
fn every_operator_with_one_cause_and_one_command() {
    let (code, table, talk) = listed(&[]);
    assert_eq!((code, talk.as_str()), (0, ""));
    insta::assert_snapshot!("the_table", table);
    insta::assert_snapshot!("the_wide_table", listed(&["-n", "garden", "-o", "wide"]).1);
    insta::assert_snapshot!("the_document", listed(&["-n", "garden", "-o", "yaml"]).1);
}

#[test]
fn selected_operators() {
    let names = |arguments: &[&str]| listed(&[&["-o", "name"], arguments].concat()).1;
    assert_eq!(names(&["--blocked"]), "operator/oak -n park\n");
    assert_eq!(names(&["-n", "garden", "-l", "team=roses"]), "operator/rose\n");
    let (code, table, talk) = listed(&["-n", "garden", "rose", "tulip"]);
    assert_eq!(code, 1);
    assert!(table.contains("rose") && !table.contains("ivy"), "{table}");
    assert!(talk.starts_with("error: there is no operator \"tulip\" in namespace garden\n"), "{talk}");
    let empty = "No operators found in nowhere namespace; -A lists all namespaces\n";
    assert_eq!(listed(&["-n", "nowhere"]), (0, String::new(), empty.to_owned()));
    let (code, _, talk) = listed(&["--watch"]);
    assert_eq!(code, 2, "{talk}");
}
