//! `kubectl olm catalog diff`.

use std::fs;
use std::path::Path;

use super::{catalog, roses, run_command};

const OLD: [&str; 4] = [
    "stable: rose.v1.2.0 replaces=rose.v1.1.0",
    "stable: rose.v1.1.0 replaces=rose.v1.0.0",
    "stable: rose.v1.0.0",
    "fast: rose.v1.2.0 skipRange=<1.2.0",
];
const NEW: [&str; 3] =
    ["stable: rose.v2.0.0 replaces=rose.v1.2.0", "stable: rose.v1.2.0", "fast: rose.v1.2.0 skipRange=<1.2.0"];

const INSTALLED: &str = "
apiVersion: v1
kind: List
items:
- {apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {name: roses, namespace: garden},
   spec: {name: rose, channel: stable, source: main, sourceNamespace: olm}, status: {installedCSV: rose.v1.1.0}}
- {apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {name: roses, namespace: park},
   spec: {name: rose, channel: stable, source: main, sourceNamespace: olm}, status: {installedCSV: rose.v1.2.0}}
";

/// Returns a folder with both catalogs and the installed objects.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("old.yaml"), roses(&OLD)).unwrap();
    fs::write(folder.path().join("new.yaml"), roses(&NEW)).unwrap();
    fs::write(folder.path().join("installed.yaml"), INSTALLED).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    run_command(catalog(&[&["diff"], arguments].concat()).current_dir(folder))
}

#[test]
fn changes_and_stranded_versions() {
    let folder = folder();
    let (code, text, talk) = run(folder.path(), &["./old.yaml", "./new.yaml"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(text, @"
    ~ package rose
      ~ channel stable
        ~ head: rose.v1.2.0 -> rose.v2.0.0
        - rose.v1.0.0
        - rose.v1.1.0
        ~ rose.v1.2.0
          - replaces: rose.v1.1.0
        + rose.v2.0.0
          + replaces: rose.v1.2.0
      - bundle rose.v1.0.0
      - bundle rose.v1.1.0
      + bundle rose.v2.0.0

    Stranded, without the update path to the head that they had:
      rose, channel stable: rose.v1.1.0, rose.v1.0.0
        because no entry in channel stable replaces or skips it
        alternative: channel fast
    ");
    assert_eq!(
        talk,
        "packages: 0 added, 0 removed, 1 changed; of versions that can be installed 2 would be stranded\n"
    );
    let (code, names, talk) = run(folder.path(), &["./old.yaml", "./new.yaml", "-o", "name"]);
    let all = "channel/rose/stable\nbundle/rose.v1.0.0\nbundle/rose.v1.1.0\nbundle/rose.v2.0.0\n";
    assert_eq!((code, names.as_str(), talk.as_str()), (1, all, ""));
    let (code, text, _) = run(folder.path(), &["./old.yaml", "./old.yaml"]);
    assert_eq!((code, text.as_str()), (0, "The catalogs are equal.\n"));
}

#[test]
fn only_installed_versions_count() {
    let folder = folder();
    let files = ["./old.yaml", "./new.yaml", "--installed-from", "installed.yaml"];
    let with = |more: &[&str]| run(folder.path(), &[&files, more].concat());
    let (code, text, talk) = with(&[]);
    assert_eq!(code, 1);
    assert!(text.contains("  rose, channel stable: rose.v1.1.0 of Subscription garden/roses\n"), "{text}");
    assert!(talk.ends_with("of the installed versions of 2 Subscriptions 1 would be stranded\n"), "{talk}");
    let (code, json, _) = with(&["-o", "json"]);
    let diff: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &diff["kind"], &diff["stranded"][0]["namespace"]), (1, &"CatalogDiff".into(), &"garden".into()));
    assert_eq!(diff["packages"][0]["channels"][0]["fields"][0]["new"][0], "rose.v2.0.0");
    assert_eq!(with(&["-n", "park"]).0, 0);
    let (code, _, talk) = with(&["--source", "olm/other"]);
    assert!(code == 0 && talk.starts_with("warning: no matching Subscriptions"), "{talk}");
    let (code, yaml, _) = with(&["--source", "main", "-o", "yaml"]);
    assert!(code == 1 && yaml.starts_with("apiVersion: kubectl-olm/v1\nkind: CatalogDiff\n"), "{yaml}");
}

#[test]
fn errors_are_exit_code_2() {
    let folder = folder();
    let broken = roses(&NEW).replace("defaultChannel: stable", "defaultChannel: slow");
    fs::write(folder.path().join("broken.yaml"), broken).unwrap();
    let (code, text, talk) = run(folder.path(), &["./old.yaml", "./broken.yaml"]);
    assert_eq!((code, text.as_str()), (2, ""));
    assert!(talk.contains("error: ./broken.yaml: package \"rose\" is invalid in the new catalog"), "{talk}");
    assert_eq!(run(folder.path(), &["./old.yaml", "./gone.yaml"]).0, 2);
    assert_eq!(run(folder.path(), &["./old.yaml", "./new.yaml", "-n", "park"]).0, 2);
    let both = ["./old.yaml", "./new.yaml", "--installed-from", "installed.yaml", "--context", "c"];
    let (code, _, talk) = run(folder.path(), &both);
    assert!(code == 2 && talk.contains("not from both"), "{talk}");
    let (code, _, talk) = run(folder.path(), &["./old.yaml", "./new.yaml", "--server", "http://127.0.0.1:1"]);
    assert!(code == 2 && talk.contains("error: no answer from the server: "), "{talk}");
}

#[test]
fn a_page_of_the_differences() {
    let folder = folder();
    let arguments = ["./old.yaml", "./new.yaml", "--installed-from", "installed.yaml", "-o", "html"];
    let (code, html, talk) = run(folder.path(), &arguments);
    assert_eq!((code, talk.as_str()), (1, ""));
    let (_, body) = html.split_once("<body>").unwrap();
    insta::assert_snapshot!(body);
}
