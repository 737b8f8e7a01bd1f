//! Tests of the executable `kubectl-olm-install_plan`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod explain;
mod list;
mod verbs;

use std::path::Path;

use assert_cmd::Command;

fn install_plan(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-olm-install_plan"));
    command.env_clear().args(arguments);
    command
}

/// Returns exit code, stdout and stderr.
fn run_in(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = install_plan(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_help_tree() {
    let pages =
        [&["--help"][..], &["approve", "--help"], &["explain", "--help"], &["list", "--help"], &["wait", "--help"]];
    let tree: Vec<String> = pages
        .iter()
        .map(|page| {
            let said = install_plan(page).assert().success().stderr("");
            let text = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
            format!("$ kubectl olm install-plan {}\n{text}", page.join(" "))
        })
        .collect();
    insta::assert_snapshot!(tree.join("\n"));
}
