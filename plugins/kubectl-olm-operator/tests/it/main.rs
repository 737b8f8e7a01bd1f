//! Tests of the executable `kubectl-olm-operator`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod describe;
mod doctor;
mod install;
mod list;
mod outdated;
mod run;

use std::path::Path;

use assert_cmd::Command;

fn operator(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-olm-operator"));
    command.env_clear().args(arguments);
    command
}

/// Returns exit code, stdout and stderr.
fn outcome(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = operator(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_help_tree() {
    let pages = [
        &["--help"][..],
        &["cleanup", "--help"],
        &["describe", "--help"],
        &["doctor", "--help"],
        &["install", "--help"],
        &["list", "--help"],
        &["outdated", "--help"],
        &["rollback", "--help"],
        &["run", "--help"],
        &["uninstall", "--help"],
        &["upgrade", "--help"],
        &["wait", "--help"],
    ];
    let tree: Vec<String> = pages
        .iter()
        .map(|page| {
            let said = operator(page).assert().success().stderr("");
            let text = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
            format!("$ kubectl olm operator {}\n{text}", page.join(" "))
        })
        .collect();
    insta::assert_snapshot!(tree.join("\n"));
}
