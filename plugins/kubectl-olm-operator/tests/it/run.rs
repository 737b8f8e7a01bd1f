//! `kubectl olm operator run` before it connects to a cluster: what is not a valid bundle is refused.

use std::fs;
use std::path::Path;

use super::outcome;

const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: rose
  operators.operatorframework.io.bundle.channels.v1: stable
";

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Runs it without success, and returns stderr.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let (code, out, err) = outcome(folder, &[&["run"], arguments].concat());
    assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
    err
}

#[test]
fn what_is_not_a_valid_bundle_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("empty")).unwrap();
    let none = refused(folder, &["./empty"]);
    assert!(none.contains("this is not a bundle: it has neither manifests/ nor metadata/"), "{none}");
    assert!(none.contains("kubectl olm bundle synthesize"), "{none}");
    let stdin = refused(folder, &["-"]);
    assert!(stdin.contains("- is not a bundle"), "{stdin}");
    // Every error is reported at once.
    write(folder, "rose/metadata/annotations.yaml", ANNOTATIONS);
    write(folder, "rose/manifests/broken.yaml", "a: [");
    let csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: rose.v1.0.0}\nspec: {version: x}\n";
    write(folder, "rose/manifests/csv.yaml", csv);
    let invalid = refused(folder, &["./rose"]);
    assert!(invalid.matches("error:").count() > 1, "{invalid}");
    assert!(invalid.contains("rose/manifests/broken.yaml"), "{invalid}");
    write(folder, "text", "not an archive");
    assert!(refused(folder, &["./text"]).contains("error:"));
}

#[test]
fn manifests_of_other_kinds_and_contradicting_flags_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "olm/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rose}\n");
    let other = refused(folder, &["./rose", "--manifests", "olm"]);
    assert!(other.contains("ConfigMap rose is not used"), "{other}");
    let upgrade = refused(folder, &["./rose", "--upgrade", "--install-mode", "OwnNamespace"]);
    assert!(upgrade.contains("with --upgrade, the objects that exist are used"), "{upgrade}");
}
