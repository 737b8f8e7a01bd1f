//! Tests of the executable `kubectl-olm-operatorgroup`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod compile;
mod intersect;
mod lint;
mod managed;

use std::fs;
use std::path::Path;

use assert_cmd::Command;

fn operatorgroup(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-olm-operatorgroup"));
    command.env_clear().args(arguments);
    command
}

/// Returns exit code, stdout and stderr.
fn run_in(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = operatorgroup(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Returns a folder with the input files.
fn garden() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let new = include_str!("new.yaml");
    let files = [
        ("garden.yaml", include_str!("garden.yaml")),
        ("new.yaml", new),
        ("carol.yaml", new.split("---").next().unwrap()),
    ];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn the_help_tree() {
    let verbs = ["compile", "create", "delete", "intersect", "lint"];
    let tree: Vec<String> = std::iter::once("--help".to_owned())
        .chain(verbs.map(|verb| format!("{verb} --help")))
        .map(|page| {
            let said = operatorgroup(&page.split(' ').collect::<Vec<_>>()).assert().success().stderr("");
            let text = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
            format!("$ kubectl olm operatorgroup {page}\n{text}")
        })
        .collect();
    insta::assert_snapshot!(tree.join("\n"));
}
