//! `kubectl olm operator describe`.

use std::fs;

use super::outcome;

/// Operators of two namespaces in several states.
const GARDEN: &str = include_str!("garden.yaml");
/// An operator that does not work, with hostile messages.
const BROKEN: &str = include_str!("broken.yaml");

fn described(arguments: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in [("garden.yaml", GARDEN), ("broken.yaml", BROKEN)] {
        fs::write(folder.path().join(file), text).unwrap();
    }
    outcome(folder.path(), &[&["describe"], arguments].concat())
}

#[test]
fn the_stages_and_the_problems_of_an_operator() {
    let (code, text, talk) = described(&["thorn", "--from", "broken.yaml"]);
    assert_eq!((code, talk.as_str()), (1, ""), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "hostile characters are escaped");
    insta::assert_snapshot!("a_broken_operator", text);
    insta::assert_snapshot!(
        "a_broken_operator_as_data",
        described(&["thorn", "--from", "broken.yaml", "-o", "yaml"]).1
    );
    let (code, text, talk) = described(&["rose", "-n", "garden", "--from", "garden.yaml"]);
    assert_eq!((code, talk.as_str()), (0, ""), "an upgrade waits for approval: {text}");
    insta::assert_snapshot!("an_upgradable_operator", text);
    insta::assert_snapshot!("all_operators", described(&["-A", "--from", "garden.yaml", "-o", "wide"]).1);
}

#[test]
fn operators_are_selected_by_their_names() {
    let names = |arguments: &[&str]| described(&[&["--from", "garden.yaml", "-o", "name"], arguments].concat());
    assert_eq!(names(&[]).1, "operator/ivy.v0.3.0 -n garden\noperator/rose -n garden\noperator/oak -n park\n");
    assert_eq!(names(&["-n", "garden", "rose.v1.0.0"]), (0, "operator/rose\n".to_owned(), String::new()));
    let (code, text, talk) = names(&["-n", "garden", "tulip", "rose"]);
    assert_eq!((code, text.as_str()), (1, "operator/rose\n"));
    assert!(talk.starts_with("error: there is no operator \"tulip\" in namespace garden\n"), "{talk}");
    let empty = "No operators found in nowhere namespace; -A lists all namespaces\n";
    assert_eq!(described(&["--from", "garden.yaml", "-n", "nowhere"]), (0, String::new(), empty.to_owned()));
    assert_eq!(described(&["--from", "garden.yaml", "--watch"]).0, 2);
}

#[test]
fn codes_are_explained_without_a_cluster() {
    let (code, table, talk) = described(&["--explain"]);
    assert_eq!((code, talk.as_str()), (0, ""));
    assert!(table.lines().count() > 50 && table.contains("OP044   image-pull "), "{table}");
    insta::assert_snapshot!("an_explanation", described(&["--explain", "image-pull"]).1);
    let (code, _, talk) = described(&["--explain", "OP999"]);
    assert_eq!((code, talk.lines().next()), (2, Some("error: unknown code \"OP999\"")));
}

#[test]
fn a_page_of_all_operators() {
    let (code, html, talk) = described(&["-A", "--from", "garden.yaml", "--from", "broken.yaml", "-o", "html"]);
    assert_eq!((code, talk.as_str()), (1, ""));
    assert!(html.contains("content=\"default-src &#39;none&#39;; style-src &#39;sha256-"), "{html}");
    let (_, body) = html.split_once("<body>").unwrap();
    insta::assert_snapshot!("a_page", body);
    let (code, _, talk) = described(&["-o", "html", "--watch"]);
    assert_eq!((code, talk.contains("hint: leave out --watch or -o html")), (2, true), "{talk}");
}
