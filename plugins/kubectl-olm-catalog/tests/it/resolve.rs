//! `kubectl olm catalog resolve`.

use std::fs;
use std::path::Path;

use super::{catalog, roses, run_command};

const GARDEN: [&str; 4] = [
    "stable: rose.v2.0.0 replaces=rose.v1.1.0",
    "stable: rose.v1.1.0 replaces=rose.v1.0.0",
    "stable: rose.v1.0.0",
    "fast: rose.v2.0.0 skipRange=<2.0.0",
];

const THERE: &str = "
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: all, namespace: garden}
status: {namespaces: ['']}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: mine, namespace: garden}
spec: {name: rose, channel: stable, source: market, sourceNamespace: market}
status: {installedCSV: rose.v1.0.0, currentCSV: rose.v1.0.0}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: rose.v1.0.0, namespace: garden}
spec: {version: 1.0.0}
";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("main")).unwrap();
    fs::write(folder.path().join("main/catalog.yaml"), roses(&GARDEN)).unwrap();
    fs::write(folder.path().join("there.yaml"), THERE).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    run_command(catalog(&[&["resolve"], arguments].concat()).current_dir(folder))
}

#[test]
fn a_package_from_a_catalog() {
    let folder = folder();
    let (code, text, talk) = run(folder.path(), &["rose", "--catalog", "./main"]);
    assert_eq!((code, talk.as_str()), (0, ""));
    assert!(text.starts_with("rose.v2.0.0 (channel stable of olm/main)\n  because "), "{text}");
    let (code, text, _) = run(folder.path(), &["rose@<2.0.0", "--catalog", "mine/market=./main", "-o", "json"]);
    let resolution: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &resolution["bundles"][0]["name"]), (0, &"rose.v1.1.0".into()));
    assert_eq!(
        (&resolution["bundles"][0]["catalog"], &resolution["bundles"][0]["catalogNamespace"]),
        (&"market".into(), &"mine".into())
    );
    // A catalog can also be a file or standard input.
    let (code, text, _) = run(folder.path(), &["rose", "--catalog", "./main/catalog.yaml", "-o", "name"]);
    assert_eq!((code, text.as_str()), (0, "bundle/rose.v2.0.0\n"));
    let stdin = run_command(catalog(&["resolve", "rose", "--catalog", "-"]).write_stdin(roses(&GARDEN)));
    assert!(stdin.0 == 0 && stdin.1.contains("of olm/catalog)"), "{}", stdin.1);
}

#[test]
fn a_failed_resolution_has_suggestions() {
    let folder = folder();
    let (code, text, _) = run(folder.path(), &["rose@>=3.0.0", "--catalog", "./main"]);
    assert_eq!(code, 1);
    assert!(text.starts_with("There is no resolution.\nThese contradict each other:\n"), "{text}");
}

#[test]
fn installed_operators_are_upgraded() {
    let folder = folder();
    let with =
        |more: &[&str]| run(folder.path(), &[&["--catalog", "./main", "--installed", "there.yaml"], more].concat());
    let (code, text, talk) = with(&[]);
    assert_eq!(code, 0);
    assert_eq!(talk, "using ./main as CatalogSource market/market, which the Subscriptions name\n");
    assert!(text.starts_with("rose.v1.1.0 (channel stable of market/market), replaces rose.v1.0.0\n"), "{text}");
    let (code, text, _) = with(&["--what-if", "channel:mine=fast", "-o", "name"]);
    assert_eq!((code, text.as_str()), (0, "bundle/rose.v2.0.0\n"));
    let (code, text, _) = with(&["-n", "park", "rose", "-o", "name"]);
    assert_eq!((code, text.as_str()), (0, "bundle/rose.v2.0.0\n"), "another namespace");
    let named = ["--catalog", "main=./main", "--installed", "there.yaml"];
    let (code, text, _) = run(folder.path(), &named);
    assert_eq!(code, 1);
    assert!(text.contains("market"), "{text}");
}

#[test]
fn invalid_arguments_are_refused() {
    let folder = folder();
    for wrong in [
        &["rose"][..],
        &["--catalog", "./main"],
        &["rose@one", "--catalog", "./main"],
        &["rose", "--catalog", "./gone"],
        &["rose", "--catalog", "./main", "--catalog", "./main"],
        &["rose", "--catalog", "./main", "--what-if", "burn:all"],
        &["rose", "--catalog", "./main", "--server", "http://127.0.0.1:1"],
    ] {
        let (code, text, talk) = run(folder.path(), wrong);
        assert_eq!((code, text.as_str()), (2, ""), "{wrong:?}");
        assert!(talk.starts_with("error: "), "{wrong:?}: {talk}");
    }
}
