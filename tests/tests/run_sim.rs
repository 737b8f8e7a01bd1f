//! `kubectl olm run` as a process on a simulated cluster behind HTTP: its output, its exit codes, and the resulting objects.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use olm_core::api::crd;
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::settings::Settings;
use olm_core::sim::{ApiServer, Simulation};
use olm_tests::data::{documents, repository};
use olm_tests::plugin::binary;
use olm_tests::sim_api::SimApi;
use serde_json::{Value, json};

/// Starts a cluster with these objects, on which only Kubernetes' controllers run.
fn cluster(objects: impl IntoIterator<Item = Value>) -> SimApi {
    let now = Timestamp::now();
    let api = ApiServer::with_stock_objects(1, now).with_node("node", now);
    let mut simulation = Simulation::new(api, Settings::default(), now);
    for object in objects {
        simulation.restore(object).unwrap();
        simulation.establish();
    }
    SimApi::start(simulation).unwrap().with_kubernetes()
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// The result of a process.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

fn wait(mut command: Command) -> Ended {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: status.code(), out: text(stdout), err: text(stderr) }
}

fn run(api: &SimApi, arguments: &str) -> Ended {
    let mut command = Command::new(binary("kubectl-olm-run").unwrap());
    command.args(arguments.split_whitespace()).env("KUBECONFIG", api.kubeconfig()).current_dir(repository());
    wait(command)
}

/// Does the same on a terminal created by `script`. `out` is the terminal's content.
fn run_on_terminal(api: &SimApi, arguments: &str, seconds: u64) -> Ended {
    let line = format!("{} {arguments}", binary("kubectl-olm-run").unwrap().display());
    // Ctrl-C is sent by the terminal, as if a user pressed it.
    let mut command = Command::new("timeout");
    command.args(["--foreground", "--signal=INT", &seconds.to_string(), "script", "-qec", &line, "/dev/null"]);
    command.env("KUBECONFIG", api.kubeconfig()).current_dir(repository());
    wait(command)
}

/// Returns the commands of a section of the README, verbatim.
fn commands_of(section: &str) -> Vec<String> {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let (_, rest) = readme.split_once(&format!("\n## {section}\n")).unwrap();
    let lines = rest.lines().take_while(|line| !line.starts_with("## "));
    lines
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|l| l.starts_with("kubectl "))
        .map(str::to_owned)
        .collect()
}

/// Executes a command; of kubectl's own commands only those in the README.
fn typed(api: &SimApi, line: &str) -> Ended {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["kubectl", "olm", "run", ..] => run(api, &words[3..].join(" ")),
        ["kubectl", "apply", "-f", file] => {
            for object in documents(&repository().join(file)).unwrap() {
                api.ask(|simulation| simulation.apply(object)).unwrap();
            }
            Ended { code: Some(0), out: String::new(), err: String::new() }
        }
        ["kubectl", "delete", "namespace", name, "--wait=false"] => {
            let target =
                ObjectRef { gvk: Gvk::new("", "v1", "Namespace"), namespace: String::new(), name: name.to_owned() };
            api.ask(|simulation| simulation.delete(&target)).unwrap();
            // The namespace controller deletes its content.
            api.wait_until(|s| olm(s, "ClusterServiceVersion").iter().all(object::is_deleting)).unwrap();
            Ended { code: Some(0), out: String::new(), err: String::new() }
        }
        ["kubectl", "get", ..] | ["kubectl", "olm", "version"] => {
            Ended { code: Some(0), out: String::new(), err: String::new() }
        }
        _ => panic!("unknown command {line:?}"),
    }
}

fn olm(simulation: &Simulation, kind: &str) -> Vec<Value> {
    simulation.api().list("operators.coreos.com", kind, None).cloned().collect()
}

fn roles_of_csvs(api: &SimApi) -> usize {
    api.ask(|simulation| {
        let roles = simulation.api().list("rbac.authorization.k8s.io", "ClusterRole", None);
        roles.filter(|role| object::label(role, "olm.owner.kind") == Some("ClusterServiceVersion")).count()
    })
}

#[test]
fn the_commands_of_the_readme_work_verbatim() {
    let api = cluster([]);
    let mut said = String::new();
    for command in commands_of("On a real cluster") {
        if command.starts_with("kubectl delete namespace") {
            // Controllers without the folder of the catalog cause no damage.
            let Ended { code, err, .. } = run(&api, "--once");
            assert_eq!(code, Some(0), "{err}");
            assert!(err.contains("hint: pass --catalog market=DIR "), "{err}");
            let subscriptions = api.ask(|simulation| olm(simulation, "Subscription"));
            assert_eq!(subscriptions.len(), 2);
            for subscription in subscriptions {
                let text = subscription.to_string();
                assert!(text.contains("CatalogDirectory") && !text.contains("ResolutionFailed"), "{text}");
            }
        }
        let Ended { code, out, err } = typed(&api, &command);
        assert_eq!(code, Some(0), "{command}\n{out}{err}");
        if command.ends_with("--audit --once") {
            // The API server may still be about to report a change of a Deployment.
            let is_other = |line: &&str| !line.starts_with("would update status of Operator/");
            assert_eq!(out.lines().filter(is_other).collect::<Vec<_>>(), <[&str; 0]>::default(), "nothing is blocked");
        }
        said += &format!("$ {command}\n{out}{err}");
    }
    for words in ["AtLatestKnown", "tea-house.v1.1.0", "samovar.v2.3.0", "note: catalog olm/market ", "released 2 of 2"]
    {
        assert!(said.contains(words), "{words} is not among:\n{said}");
    }
    api.wait_until(|s| !s.api().list("", "Namespace", None).any(|n| object::name(n) == "old-town")).unwrap();
    assert_eq!(roles_of_csvs(&api), 0);
}

/// Starts a cluster with a catalog that is not served.
fn with_an_unavailable_catalog() -> SimApi {
    let catalog = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": { "name": "market", "namespace": "olm" },
        "spec": { "sourceType": "grpc", "address": "127.0.0.1:1" },
    });
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": "garden", "namespace": "garden" }, "spec": { "targetNamespaces": ["garden"] },
    });
    let subscription = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "name": "rose", "namespace": "garden" },
        "spec": { "name": "rose", "source": "market", "sourceNamespace": "olm" },
    });
    cluster(crd::all().into_iter().chain([namespace("olm"), namespace("garden"), catalog, group, subscription]))
}

#[test]
fn an_audit_prints_documents() {
    let api = with_an_unavailable_catalog();
    let Ended { code, out, err } = run(&api, "--audit --once -o json");
    assert_eq!(code, Some(1), "{err}");
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |r#type: &str| events.iter().filter(|event| event["type"] == r#type).collect::<Vec<_>>();
    assert!(events.iter().all(|event| event["kind"] == "AuditEvent"), "{out}");
    let actions = of("action");
    let status = actions.iter().find(|event| event["object"]["kind"] == "OperatorGroup").unwrap();
    assert_eq!((&status["verb"], &status["object"]["name"]), (&json!("update status of"), &json!("garden")), "{out}");
    let blocked = of("blocked");
    assert_eq!(blocked.len(), 1, "{out}");
    assert_eq!(blocked[0]["reason"]["reason"], "CatalogUnavailable");
    assert!(
        blocked[0]["message"].as_str().unwrap().ends_with("; until then no Subscriptions are resolved in garden"),
        "{out}"
    );
    let yaml = run(&api, "--audit --once -o yaml").out;
    assert_eq!(serde_yaml::Deserializer::from_str(&yaml).count(), events.len(), "{yaml}");
}

#[test]
fn once_ends_after_its_timeout() {
    let api = with_an_unavailable_catalog();
    let began = Instant::now();
    let Ended { code, err, .. } = run(&api, "--once --timeout 2s -v 0");
    assert_eq!(code, Some(1), "{err}");
    assert!(began.elapsed() < Duration::from_secs(15), "it took {:?}", began.elapsed());
    assert!(err.contains("error: not done after 2s"), "{err}");
    let lease = api.ask(|s| s.api().list("coordination.k8s.io", "Lease", None).next().cloned()).unwrap();
    assert_eq!(object::text(&lease, &["spec", "holderIdentity"]), "", "the Lease is free");
}

#[test]
fn an_unavailable_catalog_ends_the_run_and_each_cause_is_reported_once() {
    let api = with_an_unavailable_catalog();
    let Ended { code, out, err } = run(&api, "--once -v 0");
    assert_eq!(code, Some(1), "{err}");
    let lines: Vec<&str> = err.lines().collect();
    let [blocked, hint] = lines[..] else { panic!("each cause once, and nothing else:\n{err}") };
    assert!(blocked.starts_with("blocked: catalog olm/market cannot be read: "), "{err}");
    assert!(blocked.ends_with("; until then no Subscriptions are resolved in garden"), "{err}");
    assert!(hint.starts_with("  hint: "), "{err}");
    assert!(out.contains("subscription/rose"), "{out}");
}

#[test]
fn on_a_terminal_progress_is_printed_as_in_a_simulation() {
    let quickstart = documents(&repository().join("tests/quickstart/cluster.yaml")).unwrap();
    let api = cluster(crd::all().into_iter().chain(quickstart));
    let Ended { code, out, .. } =
        run_on_terminal(&api, "--once --catalog market=tests/quickstart/catalogs/market", 100);
    assert_eq!(code, Some(0), "{out}");
    for words in [
        "  Resolution (namespace old-town)\r\n",
        "created InstallPlan old-town/install-",
        "Subscription old-town/tea-house: AtLatestKnown tea-house.v1.1.0\r\n",
        "Deployment old-town/tea-house-operator: available",
        "\r\nNAMESPACE   OBJECT ",
    ] {
        assert!(out.contains(words), "{words:?} is not in:\n{out}");
    }
    for noise in ["INFO", "WARN", "blocked", "\u{1b}"] {
        assert!(!out.contains(noise), "{noise:?} is in:\n{out}");
    }
}

#[test]
fn ctrl_c_exits_with_130() {
    let api = cluster(crd::all().into_iter().chain([namespace("olm")]));
    let mut command = Command::new(binary("kubectl-olm-run").unwrap());
    command.env("KUBECONFIG", api.kubeconfig()).stdin(Stdio::null()).stderr(Stdio::piped());
    let process = command.spawn().unwrap();
    api.wait_until(|s| s.api().list("coordination.k8s.io", "Lease", None).next().is_some()).unwrap();
    let id = process.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(process.wait_with_output().unwrap().status.code(), Some(130));
    let lease = api.ask(|s| s.api().list("coordination.k8s.io", "Lease", None).next().cloned()).unwrap();
    assert_eq!(object::text(&lease, &["spec", "holderIdentity"]), "", "the Lease is free");
}

/// Creates a ClusterServiceVersion that is being deleted, with a ClusterRole of its own.
fn deleted(api: &SimApi) {
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": "rose", "namespace": "garden", "finalizers": ["operators.coreos.com/csv-cleanup"] },
        "spec": { "displayName": "Rose", "install": { "strategy": "deployment", "spec": { "deployments": [] } } },
    });
    let labels =
        json!({ "olm.owner": "rose", "olm.owner.namespace": "garden", "olm.owner.kind": "ClusterServiceVersion" });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "rose", "labels": labels }, "rules": [],
    });
    let target = ObjectRef::from_object(&csv);
    api.ask(|simulation| {
        simulation.apply(csv).unwrap();
        simulation.apply(role).unwrap();
        simulation.delete(&target).unwrap();
    });
}

#[test]
fn deletions_are_finished_only_without_running_controllers() {
    let api = cluster(crd::all().into_iter().chain(["olm", "garden"].map(namespace)));
    let ended = run(&api, "--release-finalizers");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.err, "no ClusterServiceVersion is being deleted: nothing to release\n");

    deleted(&api);
    let ended = run(&api, "--release-finalizers gadren");
    assert!(ended.code == Some(2) && ended.err.contains("namespace gadren does not exist"), "{ended:?}");
    let ended = run(&api, "--release-finalizers olm");
    assert!(ended.code == Some(0) && ended.err.contains(" in olm: "), "{ended:?}");
    let ended = run(&api, "--release-finalizers");
    assert!(ended.code == Some(2) && ended.err.contains("--yes"), "no terminal for a prompt: {ended:?}");
    let ended = run(&api, "--release-finalizers --dry-run");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for words in ["would delete ClusterRole/rose", "would remove the finalizer of ClusterServiceVersion/garden/rose"] {
        assert!(ended.out.contains(words), "{ended:?}");
    }
    assert_eq!(roles_of_csvs(&api), 1, "nothing was done");

    let controllers = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "olm-operator", "namespace": "olm", "labels": { "app": "olm-operator" } },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": "olm-operator" } },
            "template": {
                "metadata": { "labels": { "app": "olm-operator" } },
                "spec": { "containers": [{ "name": "olm", "image": "olm" }] },
            },
        },
    });
    let target = ObjectRef::from_object(&controllers);
    api.ask(|simulation| simulation.apply(controllers)).unwrap();
    let ended = run(&api, "--release-finalizers --yes");
    assert!(ended.code == Some(2) && ended.err.contains("OLM is already running on the cluster"), "{ended:?}");
    api.ask(|simulation| simulation.delete(&target)).unwrap();

    // The other CRDs may already be deleted when OLM is uninstalled.
    for crd in ["subscriptions", "installplans"] {
        let gvk = Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let target = ObjectRef { gvk, namespace: String::new(), name: format!("{crd}.operators.coreos.com") };
        api.ask(|simulation| simulation.delete(&target)).unwrap();
    }
    let ended = run(&api, "--release-finalizers --yes --timeout 60s");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("released 1 of 1"), "{ended:?}");
    assert_eq!((roles_of_csvs(&api), api.ask(|s| olm(s, "ClusterServiceVersion").len())), (0, 0));
}
