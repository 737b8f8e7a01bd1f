//! Tests of the executable `kubectl-olm-bundle`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod carried;
mod images;
mod validate;

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

/// The manifests of an operator, and its metadata.
const MANIFESTS: &str = include_str!("rose.yaml");
const METADATA: &str = include_str!("olm.yaml");

fn bundle(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-olm-bundle"));
    command.env_clear().args(arguments);
    command
}

/// Returns exit code, stdout and stderr.
fn outcome(folder: &Path, arguments: &[&str], stdin: &str) -> (i32, String, String) {
    let output = bundle(arguments).current_dir(folder).write_stdin(stdin).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Returns a folder with `deploy/rose.yaml` and `olm.yaml`.
fn input() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("deploy")).unwrap();
    fs::write(folder.path().join("deploy/rose.yaml"), MANIFESTS).unwrap();
    fs::write(folder.path().join("olm.yaml"), METADATA).unwrap();
    folder
}

#[test]
fn the_help_tree() {
    let pages = ["--help", "build --help", "synthesize --help", "unpack --help"].map(|page| {
        let output = bundle(&page.split(' ').collect::<Vec<_>>()).assert().success().stderr("");
        let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
        format!("$ kubectl olm bundle {page}\n{text}")
    });
    insta::assert_snapshot!(pages.join("\n"));
}

#[test]
fn a_cluster_service_version_and_the_account_of_its_manifests() {
    let folder = input();
    let (code, out, err) = outcome(folder.path(), &["synthesize", "deploy", "--metadata", "olm.yaml"], "");
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!("the_cluster_service_version", out);
    let proposal = ["synthesize", "-", "--package", "rose", "--version", "1.0.0", "-o", "json"];
    let (code, out, err) = outcome(folder.path(), &proposal, MANIFESTS);
    let assumed = "assumed: minKubeVersion 1.28.0, install mode AllNamespaces; metadata/olm.yaml can state others\n";
    assert_eq!((code, err.as_str()), (0, assumed));
    let csv: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(csv["metadata"]["name"], "rose.v1.0.0");
    let (code, out, err) = outcome(folder.path(), &["synthesize", "deploy", "--metadata", "olm.yaml", "--account"], "");
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!("the_account", out);
}

#[test]
fn the_upgrade_edge_of_a_version() {
    let folder = input();
    let edge = [
        "synthesize",
        "deploy",
        "--metadata",
        "olm.yaml",
        "-o",
        "json",
        "--replaces",
        "rose.v0.9.0",
        "--skips",
        "rose.v0.9.1,rose.v0.9.2",
    ];
    let (code, out, err) = outcome(folder.path(), &edge, "");
    assert_eq!((code, err.as_str()), (0, ""));
    let csv: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(csv["spec"]["replaces"], "rose.v0.9.0");
    assert_eq!(csv["spec"]["skips"], serde_json::json!(["rose.v0.9.1", "rose.v0.9.2"]));
    fs::write(folder.path().join("olm.yaml"), format!("{METADATA}replaces: rose.v0.8.0\n")).unwrap();
    let (code, _, err) = outcome(folder.path(), &edge, "");
    assert_eq!(code, 2);
    assert!(err.contains("--replaces rose.v0.9.0 contradicts replaces rose.v0.8.0 of the file"), "{err}");
}

#[test]
fn a_bundle_with_errors_is_not_written() {
    let folder = input();
    let faulty = format!("{MANIFESTS}---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: agent}}\n");
    let arguments = ["synthesize", "-", "--metadata", "olm.yaml", "--to", "registry+v1", "--output-dir", "bundle"];
    let (code, out, err) = outcome(folder.path(), &arguments, &faulty);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("-:44: DaemonSet/agent: OLM does not install objects of kind DaemonSet"), "{err}");
    assert!(!folder.path().join("bundle").exists());
    let (code, _, err) = outcome(folder.path(), &["synthesize", "deploy", "--to", "k8s+v1"], "");
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("field installModes is required") || err.contains("has no metadata/olm.yaml"), "{err}");
}

#[test]
fn a_written_bundle_keeps_what_was_changed_by_hand() {
    let folder = input();
    let csv = folder.path().join("bundle/manifests/rose.v1.0.0.clusterserviceversion.yaml");
    let write = |target: &str, more: &[&str]| {
        let arguments = ["synthesize", "deploy", "--metadata", "olm.yaml", "--to", target, "--output-dir", "bundle"];
        outcome(folder.path(), &[&arguments[..], more].concat(), "")
    };
    let set = |maturity: &str| {
        fs::write(folder.path().join("olm.yaml"), format!("{METADATA}maturity: {maturity}\n")).unwrap();
    };
    set("alpha");
    assert_eq!(write("registry+v1", &[]).0, 0);
    assert_eq!(write("registry+v1", &[]).2, "all files are up to date\n");
    let generated = fs::read_to_string(&csv).unwrap();
    fs::write(&csv, format!("# by hand\n{generated}")).unwrap();
    set("beta");
    let (code, out, err) = write("registry+v1", &["--dry-run"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("-  maturity: alpha\n+  maturity: beta\n"), "{out}");
    assert_eq!(fs::read_to_string(&csv).unwrap(), format!("# by hand\n{generated}"));
    let changed = "changed: bundle/manifests/rose.v1.0.0.clusterserviceversion.yaml\n";
    assert_eq!(write("registry+v1", &[]).2, changed);
    let merged = fs::read_to_string(&csv).unwrap();
    assert!(merged.starts_with("# by hand\n") && merged.contains("maturity: beta\n"), "{merged}");
    fs::write(&csv, merged.replace("maturity: beta", "maturity: stable")).unwrap();
    set("mature");
    let (code, out, err) = write("registry+v1", &[]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("changed by hand") && err.contains("<<<<<<<"), "{err}");
    assert!(fs::read_to_string(&csv).unwrap().contains("maturity: stable\n"));
}

#[test]
fn versions_are_added_to_a_directory_of_package_manifests() {
    let folder = input();
    for (version, channel) in [("1.1.0-rc", "stable"), ("1.1.0", "fast")] {
        fs::write(folder.path().join("olm.yaml"), METADATA.replace("1.0.0", version)).unwrap();
        let arguments = ["synthesize", "deploy", "--metadata", "olm.yaml", "--to", "packagemanifests"];
        let place = ["--output-dir", "packages", "--channels", channel];
        let (code, _, err) = outcome(folder.path(), &[&arguments[..], &place[..]].concat(), "");
        assert_eq!(code, 0, "{err}");
    }
    let package = fs::read_to_string(folder.path().join("packages/rose.package.yaml")).unwrap();
    assert_eq!(
        package,
        "channels:\n- currentCSV: rose.v1.1.0-rc\n  name: stable\n- name: fast\n  currentCSV: rose.v1.1.0\ndefaultChannel: stable\npackageName: rose\n"
    );
    for version in ["1.1.0-rc", "1.1.0"] {
        let csv = format!("packages/{version}/rose.v{version}.clusterserviceversion.yaml");
        assert!(folder.path().join(&csv).is_file(), "{csv}");
    }
}

/// A package manifest that another tool wrote keeps its comments and its channels.
#[test]
fn a_foreign_package_manifest_is_edited_in_place() {
    let folder = input();
    let file = folder.path().join("packages/rose.package.yaml");
    fs::create_dir(folder.path().join("packages")).unwrap();
    let foreign = "packageName: rose\n# for everyone\nchannels:\n- name: stable\n  currentCSV: rose.v0.9.0\n- name: old\n  currentCSV: rose.v0.1.0\n";
    fs::write(&file, foreign).unwrap();
    let arguments =
        ["synthesize", "deploy", "--metadata", "olm.yaml", "--to", "packagemanifests", "--output-dir", "packages"];
    for _ in 0..2 {
        let (code, _, err) = outcome(folder.path(), &arguments, "");
        assert_eq!(code, 0, "{err}");
        let expected = format!("{}defaultChannel: stable\n", foreign.replace("v0.9.0", "v1.0.0"));
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    }
}

#[test]
fn names_of_files_do_not_lead_out_of_the_directory() {
    let folder = input();
    let hostile = "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: x.example.com}
spec: {group: example.com, names: {kind: /../../../escaped, plural: x}, versions: [{name: v1, served: true}]}
---
apiVersion: example.com/v1
kind: /../../../escaped
metadata: {name: x}
";
    fs::write(folder.path().join("deploy/hostile.yaml"), hostile).unwrap();
    let arguments = ["synthesize", "deploy", "--metadata", "olm.yaml", "--to", "k8s+v1", "--output-dir", "a/b/c"];
    let (code, _, err) = outcome(folder.path(), &arguments, "");
    assert_eq!(code, 0, "{err}");
    let names: Vec<_> = fs::read_dir(folder.path().join("a")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["b"], "{err}");
    for (flag, value) in
        [("--package", "../x"), ("--channels", "a b"), ("--version", "1.0"), ("--default-channel", "x")]
    {
        let (code, _, err) = outcome(folder.path(), &[&arguments[..], &[flag, value]].concat(), "");
        assert_eq!(code, 2, "{flag}: {err}");
    }
}
