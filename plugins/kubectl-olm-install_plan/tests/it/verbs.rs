//! `kubectl olm install-plan approve` and `wait` without a cluster.

use super::run_in;

/// Returns the errors of commands that fail before a request: they print no data and exit with code 2.
fn refused(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (code, data, talk) = run_in(folder.path(), arguments);
    assert_eq!((code, data.as_str()), (2, ""), "{arguments:?}: {talk}");
    talk
}

#[test]
fn invalid_arguments_are_refused_before_any_request() {
    let told: Vec<String> = [
        &["approve"][..],
        &["approve", "--all", "install-a"],
        &["approve", "install-a", "-l", "a=b"],
        &["approve", "install-a", "-A"],
        &["approve", "install-a", "install-b", "--explained", "sha256:0123456789abcdef"],
        &["approve", "install-a", "--explained", "yes"],
        &["approve", "--all", "--if", "rbac.escalates = false"],
        &["approve", "--all", "--if", "rback.escalates == false"],
        &["approve", "--all", "--if", "semver('2.0.0') < semver('10.0.0')"],
        &["approve", "--all", "--timeout", "5m"],
        &["wait"],
        &["wait", "install-a", "--subscription", "rose"],
        &["wait", "install-a", "--for", "deleted"],
        &["wait", "install-a"],
    ]
    .into_iter()
    .map(|arguments| format!("$ kubectl olm install-plan {}\n{}", arguments.join(" "), refused(arguments)))
    .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_server_that_does_not_respond() {
    for arguments in [&["list"][..], &["approve", "install-a"]] {
        let talk = refused(&[arguments, &["--server", "http://127.0.0.1:1"]].concat());
        assert!(talk.starts_with("error: no answer from the server: "), "{talk}");
    }
    // `wait` retries, and checks once without a timeout.
    let talk = refused(&["wait", "install-a", "--timeout", "0", "--server", "http://127.0.0.1:1"]);
    assert!(talk.contains("retrying") && talk.contains("error: no answer from the server: "), "{talk}");
}
