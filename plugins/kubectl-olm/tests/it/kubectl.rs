//! kubectl finds the plugins by its own rules.

use std::env;
use std::path::PathBuf;

use olm_tests::control_plane;

use crate::home::Home;

/// Returns the kubectl of the system, or else that of the control plane for tests.
fn kubectl() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let here = env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|file| file.is_file());
    here.or_else(|| (!control_plane::skipped()).then(|| control_plane::tool("kubectl").unwrap()))
}

fn run_kubectl(home: &Home, words: &[&str]) -> Option<assert_cmd::assert::Assert> {
    Some(home.command(kubectl()?).args(words).assert())
}

#[test]
fn kubectl_runs_kubectl_olm() {
    let Some(help) = run_kubectl(&Home::new(), &["olm", "--help"]) else { return };
    let help = String::from_utf8_lossy(&help.success().get_output().stdout).into_owned();
    assert!(help.contains("\n  kubectl olm [OPTIONS] <COMMAND>\n"), "{help}");
    let Some(version) = run_kubectl(&Home::new(), &["olm", "version", "--client"]) else { return };
    assert!(version.success().get_output().stdout.starts_with(b"Client Version: v"));
}

#[test]
fn kubectl_runs_a_plugin_by_its_name() {
    for (file, words) in [
        ("kubectl-olm-run", &["olm", "run"][..]),
        // kubectl itself finds this spelling, ...
        ("kubectl-olm-install_plan", &["olm", "install-plan"]),
        // ... and these through kubectl-olm.
        ("kubectl-olm-install-plan", &["olm", "install-plan"]),
        ("kubectl-olm_install_plan", &["olm", "install-plan"]),
        // krew's link to a plugin named olm-install-plan works, too.
        ("kubectl-olm_install_plan", &["olm-install-plan"]),
    ] {
        let home = Home::new().with(file, "echo-arguments");
        let words = [words, &["--once", "a b"]].concat();
        let Some(plugin) = run_kubectl(&home, &words) else { return };
        plugin.code(7).stdout("<--once>\n<a b>\n");
    }
}

#[test]
fn kubectl_lists_the_plugins_without_warnings() {
    let home = Home::new().with("kubectl-olm-run", "echo-arguments").with("kubectl-olm-install_plan", "echo-arguments");
    let Some(list) = run_kubectl(&home, &["plugin", "list", "--name-only"]) else { return };
    let list = list.success();
    let names = String::from_utf8_lossy(&list.get_output().stdout).into_owned();
    for name in ["kubectl-olm", "kubectl-olm-run", "kubectl-olm-install_plan"] {
        assert!(names.lines().any(|line| line == name), "{names}");
    }
}
