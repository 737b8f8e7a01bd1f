//! `kubectl olm operator install` without a cluster.

use std::fs;
use std::path::Path;

use super::outcome;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Runs a dry run in the quickstart's cluster, with its catalog.
fn install(arguments: &[&str]) -> (i32, String, String) {
    let start = [
        "install",
        "--from",
        "tests/quickstart",
        "--dry-run=client",
        "--catalog",
        "market=tests/quickstart/catalogs/market",
    ];
    outcome(repository(), &[&start, arguments].concat())
}

#[test]
fn what_cannot_be_selected_is_an_error_with_the_candidates() {
    for (arguments, message) in [
        (&["tea-house@9"][..], "package tea-house has no version =9.0.0; versions: 1.1.0 and 1.0.0"),
        (&["tea-hose"], "did you mean tea-house?"),
        (&["tea-house", "--channel", "stabel"], "did you mean stable?"),
        (&["tea-house", "--suggested-namespace"], "tea-house.v1.1.0 suggests no namespace"),
        (&["tea-house@x"], "invalid version range"),
        (
            &["tea-house", "--install-mode", "Own"],
            "expected OwnNamespace, SingleNamespace, MultiNamespace or AllNamespaces",
        ),
        (
            &["tea-house", "-n", "x", "--install-mode", "MultiNamespace=a"],
            "MultiNamespace watches at least two namespaces",
        ),
    ] {
        let (code, out, talk) = install(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {talk}");
        assert!(talk.contains(message), "{arguments:?}: {talk}");
    }
}

#[test]
fn the_objects_are_what_the_flags_request() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    fs::write(&config, "env: [{name: A, value: b}]\n").unwrap();
    let config = config.to_str().unwrap();
    let flags = ["tea-house@1.0.0", "-n", "shop", "--create-namespace", "--pin", "--config", config];
    let modes = ["--install-mode", "SingleNamespace=a", "--service-account", "installer", "-o", "yaml"];
    let (code, out, talk) = install(&[&flags[..], &modes].concat());
    assert_eq!(code, 0, "{talk}");
    insta::assert_snapshot!("objects_with_every_flag", out);
    fs::write(config, "enviroment: []\n").unwrap();
    let (code, _, talk) = install(&flags);
    assert_eq!(code, 2);
    assert!(talk.contains("unknown fields: enviroment") && talk.contains("config.yaml"), "{talk}");
}

#[test]
fn files_are_only_read() {
    let (code, _, talk) = outcome(repository(), &["install", "tea-house", "--from", "tests/quickstart"]);
    assert_eq!(code, 2);
    assert!(talk.contains("with --from nothing can be installed"), "{talk}");
}
