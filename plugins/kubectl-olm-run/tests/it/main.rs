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

#[test]
fn a_simulation_tells_the_same_story_every_time_in_lines_that_can_be_read() {
    let quickstart = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/quickstart");
    let story = || {
        let told = run(&["--simulate", quickstart]).assert().success();
        String::from_utf8_lossy(&told.get_output().stdout).into_owned()
    };
    let told = story();
    assert_eq!(told, story());
    let too_long: Vec<&str> = told.lines().filter(|line| line.chars().count() > 120).collect();
    assert!(too_long.is_empty(), "{}", too_long.join("\n"));
    for line in [
        "  created Subscription tea-house",
        "  created InstallPlan",
        "ClusterServiceVersion tea-house.v1.0.0: Succeeded",
        "  ClusterServiceVersion tea-house.v1.1.0\n",
        "  Succeeded (InstallSucceeded): install strategy completed with no errors",
        "deleted ClusterServiceVersion tea-house.v1.0.0",
    ] {
        assert!(told.contains(line), "{line} is not in:\n{told}");
    }
}
