//! Every list command of every plugin accepts kubectl's flags with kubectl's behaviour.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use olm_core::api::object::ObjectRef;
use olm_tests::scenario::sim::SimEngine;
use olm_tests::sim_api::SimApi;
use serde_json::{Value, json};

use crate::{Home, PROGRAMS, captured};

/// Flags that every list command must accept.
const FLAGS: [&str; 13] = [
    "-w, --watch",
    "--no-headers",
    "--sort-by <JSONPATH>",
    "--show-labels",
    "-l, --selector <QUERY>",
    "-o, --output <FORMAT>",
    "-n, --namespace <NAMESPACE>",
    "-A, --all-namespaces",
    "-q, --quiet",
    "-v, --v <LEVEL>",
    "--color <WHEN>",
    "--request-timeout <DURATION>",
    "custom-columns=TITLE:PATH",
];

/// Returns a help page as one line, regardless of its wrapping.
pub(crate) fn help(home: &Home, program: &str, words: &[&str]) -> String {
    let (code, page, _) = captured(&home.command(program).args(words).arg("--help").output().unwrap());
    assert_eq!(code, 0, "{program} {words:?}");
    page
}

/// Returns the subcommands on a help page.
pub(crate) fn sub_commands(page: &str) -> Vec<String> {
    let listed = page.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Returns the list commands: program and subcommand.
fn list_commands(home: &Home) -> Vec<&'static str> {
    let has_list = |program: &&str| sub_commands(&help(home, program, &[])).iter().any(|command| command == "list");
    PROGRAMS.into_iter().filter(|program| *program != "kubectl-olm").filter(has_list).collect()
}

#[test]
fn every_list_command_takes_kubectls_flags() {
    let home = Home::new();
    let programs = list_commands(&home);
    assert!(programs.len() >= 2, "{programs:?}");
    for program in programs {
        let page = help(&home, program, &["list"]);
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let missing: Vec<&str> = FLAGS.into_iter().filter(|flag| !words.contains(flag)).collect();
        assert!(missing.is_empty(), "{program} list lacks {missing:?}: {page}");
        let usage = page.lines().skip_while(|line| *line != "Usage:").nth(1).unwrap_or_default();
        assert!(usage.contains("]..."), "{program} list takes no names: {usage}");
    }
}

fn plan(name: &str, approved: bool) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": {"name": name, "namespace": "apps", "labels": {"is": name}},
        "spec": {"approval": "Manual", "approved": approved, "clusterServiceVersionNames": ["tea.v1"], "generation": 1},
    })
}

fn source(name: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": name, "namespace": "apps", "labels": {"is": name}},
        "spec": {"sourceType": "internal", "configMap": "none"},
    })
}

fn cluster() -> SimApi {
    let mut engine = SimEngine::start().unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "apps"}});
    for object in [namespace, plan("b2", false), plan("b10", false), plan("a", true), source("s2"), source("s10")] {
        engine.simulation().apply(object).unwrap();
    }
    SimApi::start(engine.simulation().clone()).unwrap()
}

/// Returns the output of a list command for the cluster.
fn listed(home: &Home, cluster: &SimApi, program: &str, words: &[&str]) -> (i32, String, String) {
    captured(&command(home, cluster, program, words).output().unwrap())
}

fn command(home: &Home, cluster: &SimApi, program: &str, words: &[&str]) -> Command {
    let mut command = home.command(program);
    command.args(["list", "-n", "apps"]).args(words).env("KUBECONFIG", cluster.kubeconfig());
    command
}

#[test]
fn every_list_command_does_what_kubectl_does() {
    let (home, cluster) = (Home::new(), cluster());
    for (program, [small, large], resource) in [
        ("kubectl-olm-install_plan", ["b2", "b10"], "installplan"),
        ("kubectl-olm-catalog", ["s2", "s10"], "catalogsource"),
    ] {
        assert!(list_commands(&home).contains(&program));
        let out = |words: &[&str]| {
            let (code, out, talk) = listed(&home, &cluster, program, words);
            assert_eq!(code, 0, "{program} {words:?}: {talk}");
            out
        };
        let column = "custom-columns=N:.metadata.name";
        let query = format!("is in ({small},{large})");
        // kubectl's order of names compares numbers by value.
        assert_eq!(out(&["-o", column, "--sort-by", ".metadata.name", "-l", &query]), format!("N\n{small}\n{large}\n"));
        assert_eq!(out(&["-o", column, "--no-headers", small]), format!("{small}\n"));
        assert_eq!(out(&["-o", "jsonpath={.items[*].metadata.name}", large, "--sort-by={.metadata.name}"]), large);
        assert!(out(&["-o", "name", small]).starts_with(resource));
        let table = out(&["--no-headers", "--show-labels", "-q", small]);
        assert!(table.starts_with(small) && table.ends_with(&format!(" is={small}\n")), "{table}");
        assert_eq!(table.lines().count(), 1);

        let (code, out, talk) = listed(&home, &cluster, program, &["nothing", small, "-o", column, "--no-headers"]);
        assert_eq!((code, out), (1, format!("{small}\n")), "{talk}");
        assert!(talk.contains("\"nothing\" in namespace apps"), "{talk}");
        let (code, out, talk) = listed(&home, &cluster, program, &["--sort-by", ".no.such"]);
        assert_eq!((code, out.as_str()), (2, ""), "{talk}");
        assert!(talk.contains("no object has the field .no.such"), "{talk}");
    }
}

#[test]
fn changes_are_printed_as_they_happen() {
    let (home, cluster) = (Home::new(), cluster());
    for (program, name, object) in [
        ("kubectl-olm-install_plan", "new-plan", plan("new-plan", false)),
        ("kubectl-olm-catalog", "new-source", source("new-source")),
    ] {
        let words = [
            "--watch",
            "-o",
            "custom-columns=N:.metadata.name,L:.metadata.labels.changed",
            "--no-headers",
            "--sort-by",
            ".metadata.name",
        ];
        let mut watching = command(&home, &cluster, program, &words).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
        let there = if program.contains("plan") { 3 } else { 2 };
        for _ in 0..there {
            lines.next().unwrap().unwrap();
        }
        // Existing objects are printed once; creations and changes follow.
        let write = |verb: &str, object: &Value| {
            let mut api = kubectl_like(&cluster);
            api(verb, object);
        };
        write("create", &object);
        assert_eq!(lines.next().unwrap().unwrap().split_whitespace().collect::<Vec<_>>(), [name, "<none>"]);
        write("label", &object);
        assert_eq!(lines.next().unwrap().unwrap().split_whitespace().collect::<Vec<_>>(), [name, "yes"]);
        // Ctrl-C.
        let interrupt = Command::new("kill").args(["-INT", &watching.id().to_string()]).status().unwrap();
        assert!(interrupt.success());
        crate::interrupted(watching.wait().unwrap());
    }
    {
        let words = &["--watch", "--from", "."][..];
        let (code, _, talk) = listed(&home, &cluster, "kubectl-olm-install_plan", words);
        assert_eq!((code, talk.as_str()), (2, "error: a file cannot be watched\nhint: leave out --watch\n"));
    }
}

/// Returns a function that writes to the cluster as another client.
fn kubectl_like(cluster: &SimApi) -> impl FnMut(&str, &Value) {
    use kube::config::{Config, KubeConfigOptions, Kubeconfig};
    use olm_shell::cluster::api::Api;
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
    move |verb, object| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let config =
                Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await.unwrap();
            let api = Api::new(kube::Client::try_from(config).unwrap());
            if verb == "create" {
                api.create(object).await.unwrap();
                return;
            }
            let patch = json!({"metadata": {"labels": {"changed": "yes"}}});
            api.merge(&ObjectRef::from_object(object), &patch).await.unwrap();
        });
    }
}
