//! `kubectl olm operator doctor`.

use std::fs;

use super::outcome;

/// What remained of a cluster where OLM and some operators were removed by hand, with a hostile name.
const TROUBLE: &str = include_str!("trouble.yaml");

fn checked(arguments: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("trouble.yaml"), TROUBLE).unwrap();
    outcome(folder.path(), &[&["doctor"], arguments].concat())
}

#[test]
fn the_trouble_of_a_cluster_in_all_formats() {
    let (code, text, talk) = checked(&["--from", "trouble.yaml"]);
    assert_eq!(code, 1, "{text}{talk}");
    assert!(!text.contains('\u{1b}'), "hostile characters are escaped");
    insta::assert_snapshot!("the_trouble_of_a_cluster", format!("{text}\n{talk}"));
    assert_eq!(checked(&["--from", "trouble.yaml", "-A"]), (code, text, talk));
    let codes = |format: &str| {
        let (code, text, _) = checked(&["--from", "trouble.yaml", "-o", format, "--fail-on", "never"]);
        assert_eq!(code, 0, "{text}");
        ["DR001", "DR002", "DR004", "DR006", "DR008"].iter().all(|code| text.contains(code))
    };
    for format in ["json", "yaml", "sarif", "junit", "github"] {
        assert!(codes(format), "{format}");
    }
}

#[test]
fn known_findings_are_omitted() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("trouble.yaml"), TROUBLE).unwrap();
    let run = |arguments: &[&str]| outcome(folder.path(), &[&["doctor", "--from", "trouble.yaml"], arguments].concat());
    let (code, _, talk) = run(&["--baseline", "known.yaml", "--create-baseline"]);
    assert_eq!((code, talk.as_str()), (0, "wrote 6 findings to known.yaml\n"));
    let (code, text, talk) = run(&["--baseline", "known.yaml"]);
    assert_eq!((code, text.as_str()), (0, ""), "{talk}");
    assert!(talk.contains("no findings, 6 in the baseline"), "{talk}");
    assert_eq!(run(&["--create-baseline"]).0, 2);
}

#[test]
fn rules_are_explained_without_a_cluster() {
    let (code, table, talk) = checked(&["--explain"]);
    assert_eq!((code, talk.as_str(), table.lines().count()), (0, "", 11), "{table}");
    insta::assert_snapshot!("an_explained_rule", checked(&["--explain", "dangling-webhook"]).1);
    let (code, _, talk) = checked(&["--explain", "DR999"]);
    assert_eq!((code, talk.lines().next()), (2, Some("error: unknown rule \"DR999\"")));
}
