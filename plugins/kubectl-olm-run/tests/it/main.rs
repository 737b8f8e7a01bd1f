//! `kubectl-olm-run` as a user meets it.

use assert_cmd::Command;

fn run(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-olm-run"));
    command.env_clear().args(arguments);
    command
}

#[test]
fn the_help_page() {
    let page = run(&["--help"]).assert().success().stderr("");
    insta::assert_snapshot!(String::from_utf8_lossy(&page.get_output().stdout));
}

#[test]
fn a_usage_error_is_exit_code_2_and_says_what_was_wrong() {
    let refused = run(&["--feature-gates", "Tea=true"]).assert().code(2).stdout("");
    let words = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(words.contains("no feature is called \"Tea\"; there is OptionalManifests"), "{words}");
}
