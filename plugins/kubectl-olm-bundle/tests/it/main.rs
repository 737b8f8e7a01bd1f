//! Tests of the executable `kubectl-olm-bundle`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

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
    let pages = ["--help", "synthesize --help"].map(|page| {
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
    assert_eq!((code, err.as_str()), (0, ""));
    let csv: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(csv["metadata"]["name"], "rose.v1.0.0");
    let (code, out, err) = outcome(folder.path(), &["synthesize", "deploy", "--metadata", "olm.yaml", "--account"], "");
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!("the_account", out);
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
fn a_written_bundle_is_updated_unless_it_was_changed_by_hand() {
    let folder = input();
    let csv = folder.path().join("bundle/manifests/rose.v1.0.0.clusterserviceversion.yaml");
    let write = |target: &str| {
        let arguments = ["synthesize", "deploy", "--metadata", "olm.yaml", "--to", target, "--output-dir", "bundle"];
        outcome(folder.path(), &arguments, "")
    };
    assert_eq!(write("registry+v1").0, 0);
    let first = fs::read(&csv).unwrap();
    assert_eq!(write("registry+v1").2, "0 files written to bundle\n");
    fs::write(folder.path().join("olm.yaml"), format!("{METADATA}maturity: alpha\n")).unwrap();
    assert_eq!(write("registry+v1").2, "1 files written to bundle\n");
    assert_ne!(fs::read(&csv).unwrap(), first);
    fs::write(&csv, [first.as_slice(), b"# by hand\n"].concat()).unwrap();
    let (code, out, err) = write("registry+v1");
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("changed by hand") && err.contains("rose.v1.0.0.clusterserviceversion.yaml"), "{err}");
    assert!(fs::read_to_string(&csv).unwrap().ends_with("# by hand\n"));
}
