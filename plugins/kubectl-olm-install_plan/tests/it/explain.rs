//! Tests of `kubectl olm install-plan explain`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::run_in;

/// Returns the folder of the quickstart, with its cluster and catalog.
fn quickstart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/quickstart")
}

fn explain(arguments: &[&str]) -> (i32, String, String) {
    let arguments: Vec<&str> = ["explain", "--from", "."].into_iter().chain(arguments.iter().copied()).collect();
    run_in(&quickstart(), &arguments)
}

#[test]
fn a_package_with_its_dependency() {
    let (code, out, err) = explain(&["--package", "tea-house"]);
    insta::assert_snapshot!(format!("exit {code}\n{out}{err}"));
    let (_, markdown, _) = explain(&["--package", "tea-house", "-o", "markdown"]);
    insta::assert_snapshot!(markdown);
}

#[test]
fn the_document_contains_all_information() {
    let (code, out, _) = explain(&["--package", "samovar", "-o", "json"]);
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (document["apiVersion"].as_str(), document["kind"].as_str()),
        (Some("kubectl-olm/v1"), Some("InstallPlanExplanation"))
    );
    assert_eq!(document["csvs"][0]["to"], "2.3.0");
    assert!(document["hash"].as_str().unwrap().starts_with("sha256:"));
    let (same, hash, _) = explain(&["--package", "samovar", "-o", "jsonpath={.hash}"]);
    assert_eq!(code, same);
    assert!(hash.starts_with("sha256:"), "{hash}");
}

#[test]
fn an_unknown_result_is_not_negative() {
    let arguments = ["explain", "--from", "cluster.yaml", "--subscription", "tea-house"];
    let (code, out, err) = run_in(&quickstart(), &arguments);
    assert_eq!((code, err.as_str()), (2, ""));
    assert!(out.contains("the content of catalog olm/market is not known"), "{out}");
}

#[test]
fn a_bundle_is_explained() {
    let (_, out, _) = explain(&["--bundle", "catalogs/market/bundles/tea-house.v1.1.0"]);
    assert!(out.contains("install tea-house 1.1.0 (tea-house.v1.1.0)"), "{out}");
    let (code, out, _) = explain(&["--package", "tea-house@1.1.0"]);
    assert!(out.contains("Subscription tea-house gets version 1.0.0 next, which is not in the range =1.1.0"), "{out}");
    assert_eq!(code, 1);
}

#[test]
fn a_bundle_of_plain_manifests_is_explained_unless_the_feature_gate_disables_it() {
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/plain");
    let bundle = tempfile::tempdir().unwrap();
    let (manifests, metadata) = (bundle.path().join("manifests"), bundle.path().join("metadata"));
    for directory in [&manifests, &metadata] {
        fs::create_dir(directory).unwrap();
    }
    for entry in fs::read_dir(plain.join("rose")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, manifests.join(path.file_name().unwrap())).unwrap();
    }
    fs::copy(plain.join("olm.yaml"), metadata.join("olm.yaml")).unwrap();
    let annotations = "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: k8s+v1\n";
    fs::write(metadata.join("annotations.yaml"), annotations).unwrap();
    let bundle = bundle.path().to_str().unwrap();
    let (code, out, err) = explain(&["--bundle", bundle]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("the bundle does not name its package"), "{err}");
    let annotations = format!("{annotations}  operators.operatorframework.io.bundle.package.v1: rose\n");
    fs::write(metadata.join("annotations.yaml"), annotations).unwrap();

    let (_, out, err) = explain(&["--bundle", bundle]);
    assert!(out.contains("install rose 1.0.0 (rose.v1.0.0)"), "{out}{err}");
    let (code, out, err) = explain(&["--bundle", bundle, "--feature-gates", "PlainBundles=false"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("the feature gate PlainBundles disables"), "{err}");
}

#[test]
fn invalid_arguments_are_refused() {
    for (arguments, words) in [
        (&["no-such-plan"][..], "there is no InstallPlan no-such-plan"),
        (&["--subscription", "none"], "there is no Subscription none"),
        (&["--package", "coffee"], "package coffee not found; catalogs searched: olm/market"),
        (&["--package", "tea-house@>>1"], "invalid version range"),
        (&["--bundle", "./nowhere"], "nowhere"),
        (&["one", "--package", "two"], "cannot be used with"),
    ] {
        let (code, out, err) = explain(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
}
