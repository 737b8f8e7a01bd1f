//! Commands of plugins.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::home::Home;

#[test]
fn arguments_and_exit_code_are_passed_unchanged() {
    let home = Home::new().with("kubectl-olm-brew", "echo-arguments");
    home.olm(&["brew", "--help", "", "a b", "--", "-n=x"])
        .assert()
        .code(7)
        .stdout("<--help>\n<>\n<a b>\n<-->\n<-n=x>\n")
        .stderr("");
}

#[test]
fn every_spelling_of_a_plugin_is_found() {
    for file in ["kubectl-olm-install_plan", "kubectl-olm-install-plan", "kubectl-olm_install_plan"] {
        let home = Home::new().with(file, "echo-arguments");
        home.olm(&["install-plan", "list"]).assert().code(7).stdout("<list>\n");
        home.olm(&["help", "install-plan"]).assert().code(7).stdout("<--help>\n");
    }
}

#[test]
fn a_plugin_in_the_same_folder_takes_precedence_over_path() {
    let elsewhere = Home::new().with("kubectl-olm-brew", "wait-for-input").with("kubectl-olm-pour", "echo-arguments");
    let home = Home::new().with("kubectl-olm-brew", "echo-arguments");
    let path = elsewhere.path("");
    home.olm(&["brew"]).env("PATH", &path).assert().code(7);
    home.olm(&["pour"]).env("PATH", &path).assert().code(7);
}

#[test]
fn signals_reach_the_plugin() {
    let home = Home::new().with("kubectl-olm-brew", "wait-for-input");
    let mut plugin = Command::new(home.path("kubectl-olm"))
        .arg("brew")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(plugin.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    assert!(Command::new("kill").arg(plugin.id().to_string()).status().unwrap().success());
    assert_eq!(plugin.wait().unwrap().signal(), Some(15));
}

#[test]
fn an_unknown_command_is_exit_code_2_with_a_suggestion() {
    let home = Home::new().with("kubectl-olm-brew", "echo-arguments");
    let refused = |words: &[&str]| {
        let refused = home.olm(words).assert().code(2).stdout("");
        String::from_utf8_lossy(&refused.get_output().stderr).into_owned()
    };
    assert_eq!(refused(&["rnu"]), "error: unknown command \"rnu\"\nhint: did you mean \"run\"?\n");
    assert_eq!(refused(&["vresion"]), "error: unknown command \"vresion\"\nhint: did you mean \"version\"?\n");
    assert_eq!(refused(&["brw"]), "error: unknown command \"brw\"\nhint: did you mean \"brew\"?\n");
    assert_eq!(refused(&["xyzzy"]), "error: unknown command \"xyzzy\"\nhint: kubectl olm --help lists the commands\n");
    assert_eq!(
        refused(&["run"]),
        "error: the plugin \"run\" is not installed\nhint: put kubectl-olm-run beside kubectl-olm or on PATH\n"
    );
    assert!(refused(&["../kubectl-olm-brew"]).starts_with("error: unknown command"));
    assert!(refused(&["--no-such-flag"]).contains("--no-such-flag"));
}
