//! Completion with the real kubectl through links, and with the script in the real bash.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use olm_tests::control_plane;
use olm_tests::scenario::sim::SimEngine;
use olm_tests::sim_api::SimApi;
use serde_json::json;

use crate::{Home, captured, kubeconfig};

/// Starts a cluster with some names, and one that would execute a command if a shell expanded it.
fn cluster() -> SimApi {
    let mut engine = SimEngine::start().unwrap();
    let simulation = engine.simulation();
    let olm = "operators.coreos.com/v1alpha1";
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "apps"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "orchard"}}),
        json!({"apiVersion": olm, "kind": "InstallPlan", "metadata": {"name": "install-a", "namespace": "apps"},
               "spec": {"approval": "Manual", "approved": false, "clusterServiceVersionNames": ["tea.v1"]}}),
        json!({"apiVersion": olm, "kind": "InstallPlan", "metadata": {"name": "install-b", "namespace": "orchard"},
               "spec": {"approval": "Manual", "approved": false, "clusterServiceVersionNames": ["tea.v1"]}}),
        json!({"apiVersion": olm, "kind": "Subscription", "metadata": {"name": "tea", "namespace": "apps"},
               "spec": {"name": "tea-house", "channel": "stable", "source": "market", "sourceNamespace": "olm"}}),
        json!({"apiVersion": olm, "kind": "Subscription", "metadata": {"name": "trap", "namespace": "apps"},
               "spec": {"name": "$(touch trap)", "channel": "a;b", "source": "market", "sourceNamespace": "olm"}}),
        json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "all", "namespace": "apps"}}),
    ] {
        simulation.apply(object).unwrap();
    }
    SimApi::start(simulation.clone()).unwrap()
}

/// Returns the completions of an output, without descriptions and the directive for the shell.
fn words(answer: &str) -> Vec<String> {
    let lines = answer.lines().filter(|line| !line.starts_with(':'));
    lines.map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn kubectl_completes_through_links() {
    if control_plane::skipped() {
        return;
    }
    let kubectl = control_plane::tool("kubectl").unwrap();
    let (home, cluster) = (Home::new(), cluster());
    let made = home.command("kubectl-olm").args(["completion", "kubectl"]).output().unwrap();
    let (code, links, talk) = captured(&made);
    assert_eq!((code, talk.as_str()), (0, ""), "{links}");
    assert!(links.starts_with(&format!("{} created\n", home.path("kubectl_complete-olm").display())), "{links}");
    let again = home.command("kubectl-olm").args(["completion", "kubectl"]).output().unwrap();
    assert_eq!(captured(&again).1, links.replace(" created", " unchanged"));

    let asked = |line: &[&str]| {
        let mut command = home.command(&kubectl);
        command.arg("__complete").args(line).env("KUBECONFIG", cluster.kubeconfig());
        let (code, answer, talk) = captured(&command.output().unwrap());
        // Lines of kubectl itself; there must be no others.
        let is_kubectls =
            |line: &str| line.starts_with("[Debug] ") || line.starts_with("Completion ended with directive");
        assert!(code == 0 && talk.lines().all(is_kubectls), "{talk}");
        words(&answer)
    };
    let commands = asked(&["olm", ""]);
    assert_eq!(commands.len(), commands.iter().collect::<BTreeSet<_>>().len(), "each once: {commands:?}");
    for word in ["version", "completion", "run", "install-plan", "catalog", "operatorgroup"] {
        assert!(commands.iter().any(|command| command == word), "{word}: {commands:?}");
    }
    for (line, wanted) in [
        (&["olm", "ver"][..], &["version"][..]),
        (&["olm", "install-plan", "ap"], &["approve"]),
        (&["olm", "install-plan", "approve", "-n", "or"], &["orchard"]),
        (&["olm", "install-plan", "approve", "-n", "apps", ""], &["install-a"]),
        (&["olm", "install-plan", "explain", "--namespace=orchard", "in"], &["install-b"]),
        (&["olm", "install-plan", "explain", "--namespace=or"], &["--namespace=orchard"]),
        (&["olm", "install-plan", "wait", "-n", "apps", "--subscription", "te"], &["tea"]),
        (&["olm", "install-plan", "explain", "-n", "apps", "--package", ""], &["tea-house"]),
        (&["olm", "operatorgroup", "delete", "-n", "apps", ""], &["all"]),
        (&["olm", "run", "--install-c"], &["--install-crds"]),
        (&["olm", "catalog", "list", "-o", "w"], &["wide"]),
        (&["olm", "version", "--cli"], &["--client", "--client-certificate", "--client-key"]),
        (&["olm", "no-such-plugin", ""], &[]),
    ] {
        assert_eq!(asked(line), wanted, "{line:?}");
    }
}

#[test]
fn links_of_krew_are_completed_by_the_kubectl_olm_plugin() {
    let (home, cluster) = (Home::new(), cluster());
    // krew links kubectl-olm_run for olm-run, so that kubectl completes `kubectl olm run` by calling `kubectl olm`.
    fs::rename(home.path("kubectl-olm-run"), home.path("kubectl-olm_run")).unwrap();
    fs::rename(home.path("kubectl-olm-install_plan"), home.path("kubectl-olm_install_plan")).unwrap();
    assert!(home.command("kubectl-olm").args(["completion", "kubectl"]).output().unwrap().status.success());
    let asked = |program: &str, line: &[&str]| {
        let mut command = home.command(program);
        let (code, answer, talk) =
            captured(&command.args(line).env("KUBECONFIG", cluster.kubeconfig()).output().unwrap());
        assert_eq!((code, talk.as_str()), (0, ""));
        words(&answer)
    };
    assert_eq!(asked("kubectl_complete-olm", &["r"]), ["run"]);
    assert_eq!(asked("kubectl_complete-olm", &["run", "--aud"]), ["--audit"]);
    // And `kubectl olm-run`, as krew documents it.
    assert_eq!(asked("kubectl_complete-olm_run", &["--aud"]), ["--audit"]);
    assert_eq!(asked("kubectl_complete-olm_install_plan", &["explain", "-n", "apps", ""]), ["install-a"]);
}

#[test]
fn files_of_cargo_are_not_plugins() {
    let home = Home::new();
    // On some file systems every file is executable.
    let left = home.path("kubectl-olm-run.d");
    fs::write(&left, "kubectl-olm-run: main.rs\n").unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o755)).unwrap();
    let (_, answer, _) = captured(&home.command("kubectl-olm").args(["__complete", "ru"]).output().unwrap());
    assert_eq!(words(&answer), ["run"]);
    let (_, help, _) = captured(&home.command("kubectl-olm").arg("--help").output().unwrap());
    assert!(!help.contains("run.d"), "{help}");
}

#[test]
fn links_of_other_owners_are_preserved() {
    let home = Home::new();
    let elsewhere = home.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let make = || {
        captured(
            &home.command("kubectl-olm").args(["completion", "kubectl", "--dir"]).arg(&elsewhere).output().unwrap(),
        )
    };
    let (code, _, talk) = make();
    assert_eq!(code, 0);
    assert_eq!(talk, format!("warning: {} is not on PATH: kubectl does not find the links\n", elsewhere.display()));
    let link = elsewhere.join("kubectl_complete-olm-run");
    assert_eq!(fs::read_link(&link).unwrap(), home.path("kubectl-olm"));
    fs::remove_file(&link).unwrap();
    fs::write(&link, "mine").unwrap();
    let (code, _, talk) = make();
    assert_eq!(code, 2);
    assert!(
        talk.contains("kubectl_complete-olm-run: ") && talk.contains("hint: the file is not a link of kubectl-olm"),
        "{talk}"
    );
    assert_eq!(fs::read_to_string(&link).unwrap(), "mine");
}

#[test]
fn a_server_that_never_responds_is_not_waited_for() {
    let home = Home::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", silent.local_addr().unwrap());
    let config = home.path("kubeconfig");
    fs::write(&config, kubeconfig(&server)).unwrap();
    let mut command = home.command("kubectl-olm");
    command.args(["__complete", "install-plan", "approve", "-n", ""]).env("KUBECONFIG", &config);
    let began = Instant::now();
    let answer = captured(&command.output().unwrap());
    assert_eq!(answer, (0, ":4\n".to_owned(), String::new()));
    // 300 ms on an idle machine, but tests run in parallel.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// Runs bash's script as bash does, for a line with the cursor at its end that bash has split into these words.
fn in_bash(home: &Home, kubeconfig: &Path, line: &str, words: &[&str]) -> Vec<String> {
    let script = "source <(kubectl-olm completion bash) || exit 9
        COMP_LINE=$1 COMP_POINT=${#1} COMP_CWORD=$(($# - 2)) COMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'
        shift; COMP_WORDS=(\"$@\")
        $(complete -p kubectl-olm | sed -n 's/.*-F \\([^ ]*\\) .*/\\1/p')
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut command = home.command("/bin/bash");
    command.env("PATH", format!("{}:/usr/bin:/bin", home.path("").display())).env("KUBECONFIG", kubeconfig);
    let (code, answer, talk) = captured(&command.args(["-c", script, "bash", line]).args(words).output().unwrap());
    assert_eq!((code, talk.as_str()), (0, ""), "{line}");
    answer.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_with_its_script() {
    let (home, cluster) = (Home::new(), cluster());
    let kubeconfig = cluster.kubeconfig();
    for (line, split, wanted) in [
        ("kubectl-olm vers", &["kubectl-olm", "vers"][..], &["version"][..]),
        ("kubectl-olm  install-plan   app", &["kubectl-olm", "install-plan", "app"], &["approve"]),
        (
            "kubectl-olm install-plan approve -n or",
            &["kubectl-olm", "install-plan", "approve", "-n", "or"],
            &["orchard"],
        ),
        (
            "kubectl-olm install-plan approve -n apps ",
            &["kubectl-olm", "install-plan", "approve", "-n", "apps", ""],
            &["install-a"],
        ),
        // bash splits words at equals signs and colons, and replaces only the last part.
        (
            "kubectl-olm install-plan approve --dry-run=cl",
            &["kubectl-olm", "install-plan", "approve", "--dry-run", "=", "cl"],
            &["client"],
        ),
        (
            "kubectl-olm install-plan approve --dry-run=",
            &["kubectl-olm", "install-plan", "approve", "--dry-run", "="],
            &["none", "client", "server"],
        ),
        (
            "kubectl-olm install-plan explain -n=apps --subscription=t",
            &["kubectl-olm", "install-plan", "explain", "-n", "=", "apps", "--subscription", "=", "t"],
            &["tea", "trap"],
        ),
        // Names of objects are never executed.
        (
            "kubectl-olm install-plan explain -n apps --package ",
            &["kubectl-olm", "install-plan", "explain", "-n", "apps", "--package", ""],
            &["tea-house"],
        ),
        // Neither is the text typed so far.
        (
            "kubectl-olm version $(touch trap) --clu",
            &["kubectl-olm", "version", "$(touch trap)", "--clu"],
            &["--cluster"],
        ),
    ] {
        assert_eq!(in_bash(&home, &kubeconfig, line, split), wanted, "{line}");
    }
    assert!(!home.path("trap").exists());
}
