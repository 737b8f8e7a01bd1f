//! `kubectl olm operatorgroup compile`.

use std::path::{Path, PathBuf};

use super::run_in;

/// Returns the catalog of the quickstart, with bundles.
fn market() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/quickstart/catalogs")
}

fn compile(arguments: &[&str]) -> (i32, String, String) {
    run_in(&market(), &[&["compile", "-n", "apps"], arguments].concat())
}

fn printed(arguments: &[&str]) -> String {
    let (code, out, err) = compile(arguments);
    assert_eq!(code, 0, "{arguments:?}: {err}");
    format!("$ kubectl olm operatorgroup compile -n apps {}\n{out}{err}", arguments.join(" "))
}

#[test]
fn groups_of_every_mode() {
    let told: Vec<String> = [
        &[][..],
        &["tea", "--target-namespaces", "east"],
        &["--install-mode", "MultiNamespace", "--target-namespaces", "west,east,apps"],
        &["--install-mode", "AllNamespaces", "-o", "json"],
        &["--target-namespaces", ""],
        &["--service-account", "installer"],
        &["--bundle", "market/bundles/samovar.v2.3.0"],
    ]
    .into_iter()
    .map(printed)
    .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn resulting_and_required_permissions() {
    let arguments = &["--package", "tea-house", "--catalog", "market=market"];
    insta::assert_snapshot!(printed(&[&arguments[..], &["--rbac"]].concat()));
    insta::assert_snapshot!(printed(&[&arguments[..], &["--service-account", "installer"]].concat()));
    let (code, _, err) = compile(&["--bundle", "market/bundles/tea-house.v1.0.0", "--rbac"]);
    assert_eq!(code, 2);
    assert!(err.contains("the operator would not be installed") && err.contains("--catalog"), "{err}");
}

#[test]
fn invalid_arguments_are_refused() {
    let told: Vec<String> = [
        &["--install-mode", "OwnNamespace", "--target-namespaces", "east"][..],
        &["--install-mode", "SingleNamespace"],
        &["--install-mode", "Everywhere"],
        &["--target-namespaces", "East"],
        &["--package", "coffee", "--catalog", "market=market"],
        &["--package", "tea-house@>>1", "--catalog", "market=market"],
        &["--bundle", "a", "--package", "b"],
        &["--rbac"],
    ]
    .into_iter()
    .map(|arguments| {
        let (code, out, err) = compile(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        format!("$ kubectl olm operatorgroup compile -n apps {}\n{err}", arguments.join(" "))
    })
    .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn unsupported_targets_are_a_negative_result() {
    let unfit = ["--bundle", "market/bundles/tea-house.v1.0.0", "--target-namespaces", "a,b"];
    let (code, out, err) = compile(&unfit);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    let told = format!("$ kubectl olm operatorgroup compile -n apps {}\n{err}", unfit.join(" "));
    let create = [&["create", "-n", "apps", "--from", "market", "--dry-run"], &unfit[..]].concat();
    let (code, out, err) = run_in(&market(), &create);
    assert_eq!(code, 1, "{err}");
    insta::assert_snapshot!(format!("{told}\n$ kubectl olm operatorgroup {}\n{out}{err}", create.join(" ")));
}

#[test]
fn without_a_kubeconfig_a_namespace_is_required() {
    let (code, _, err) = run_in(&market(), &["compile"]);
    assert_eq!(code, 2);
    assert!(err.contains("specify it with -n NAMESPACE"), "{err}");
}
