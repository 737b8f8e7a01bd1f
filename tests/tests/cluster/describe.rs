//! `kubectl olm operator describe` on a real API server: the controllers are those of `kubectl olm run`, the pods run on
//! nodes of kwok, which only starts pods: the test writes the status of a pod whose image cannot be pulled.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fs;
use std::process::{Command, Stdio};

use olm_core::api::object::{list, text};
use olm_tests::control_plane::{ControlPlane, skipped};
use olm_tests::data::repository;
use olm_tests::plugin::binary;
use serde_json::{Value, json};
use tempfile::TempDir;

const MARKET: &str = "--catalog=market=tests/quickstart/catalogs/market";

struct Cluster {
    plane: ControlPlane,
    folder: TempDir,
}

impl Cluster {
    fn new() -> Self {
        let cluster = Self { plane: ControlPlane::start().unwrap(), folder: tempfile::tempdir().unwrap() };
        let crds = cluster.plugin("kubectl-olm-run").arg("--install-crds").output().unwrap();
        assert!(crds.status.success(), "{}", String::from_utf8_lossy(&crds.stderr));
        for namespace in ["shop", "office"] {
            cluster.kubectl(&["create", "namespace", namespace]);
        }
        cluster
    }

    fn plugin(&self, name: &str) -> Command {
        let mut command = Command::new(binary(name).unwrap());
        command.current_dir(repository()).env("KUBECONFIG", self.plane.kubeconfig()).stdin(Stdio::null());
        command
    }

    /// Runs the controllers until nothing is left to do.
    fn run(&self) {
        let output = self.plugin("kubectl-olm-run").args([MARKET, "--once"]).output().unwrap();
        // Exit code 1: something waits for a user.
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{code:?} {}", String::from_utf8_lossy(&output.stderr));
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.plane.kubectl(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn apply(&self, object: &Value) {
        let file = self.folder.path().join("object.json");
        fs::write(&file, object.to_string()).unwrap();
        self.kubectl(&["apply", "-f", file.to_str().unwrap()]);
    }

    /// Describes an operator. Returns the exit code, the codes of the problems, and the document.
    fn describe(&self, line: &str) -> (i32, Vec<String>, Value) {
        let mut command = self.plugin("kubectl-olm-operator");
        let output = command.arg("describe").args(line.split(' ')).args(["-o", "json"]).output().unwrap();
        let code = output.status.code().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert!(document.is_object(), "{}", String::from_utf8_lossy(&output.stderr));
        let problems = list(&document, &["problems"]).iter();
        (code, problems.map(|problem| text(problem, &["name"]).to_owned()).collect(), document)
    }
}

fn group(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": { "namespace": namespace, "name": name },
        "spec": { "targetNamespaces": [namespace] },
    })
}

fn subscription(namespace: &str, name: &str, spec: Value) -> Value {
    let mut spec = spec;
    for (key, value) in [("name", "tea-house"), ("source", "market"), ("sourceNamespace", "olm"), ("channel", "stable")]
    {
        if spec[key].is_null() {
            spec[key] = value.into();
        }
    }
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "namespace": namespace, "name": name }, "spec": spec,
    })
}

/// Returns the states of a stage.
fn states<'d>(document: &'d Value, stage: &str) -> Vec<&'d str> {
    let stages = list(document, &["stages"]).iter().filter(|entry| text(entry, &["stage"]) == stage);
    stages.map(|entry| text(entry, &["state"])).collect()
}

#[test]
fn what_is_wrong_with_an_operator_is_named_by_code() {
    if skipped() {
        return;
    }
    let cluster = Cluster::new();

    // Nothing is processed as long as no controllers run.
    cluster.apply(&subscription("shop", "tea", json!({ "installPlanApproval": "Manual" })));
    let (code, problems, _) = cluster.describe("tea -n shop");
    assert_eq!(
        (code, problems),
        (1, vec!["no-controllers".to_owned(), "catalog-missing".to_owned(), "no-operator-group".to_owned()])
    );

    // An InstallPlan that is not approved.
    cluster.apply(&group("shop", "one"));
    cluster.run();
    let (code, problems, document) = cluster.describe("tea -n shop");
    assert_eq!((code, problems), (1, vec!["approval-needed".to_owned()]), "{document:#}");
    assert!(text(&document["problems"][0], &["command"]).starts_with("kubectl olm install-plan approve install-"));

    // Two OperatorGroups.
    cluster.apply(&group("shop", "other"));
    cluster.run();
    let (code, problems, _) = cluster.describe("tea -n shop");
    assert_eq!(code, 1);
    assert!(problems.contains(&"several-operator-groups".to_owned()), "{problems:?}");
    cluster.kubectl(&["delete", "operatorgroup", "other", "-n", "shop"]);

    // A catalog that does not exist.
    cluster.apply(&group("office", "one"));
    cluster.apply(&subscription("office", "tea", json!({ "source": "bazaar" })));
    cluster.run();
    let (code, problems, document) = cluster.describe("tea -n office");
    assert_eq!(code, 1);
    assert_eq!(problems.first().map(String::as_str), Some("catalog-missing"), "{document:#}");
    assert_eq!(states(&document, "Catalog"), ["Failed"]);

    // A user who may not read pods and Secrets gets a diagnosis of the rest.
    cluster.kubectl(&[
        "create",
        "clusterrole",
        "reader",
        "--verb=get,list",
        "--resource=subscriptions,clusterserviceversions",
    ]);
    cluster.kubectl(&["create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=reader"]);
    let (_, problems, document) = cluster.describe("tea -n shop --as reader");
    assert_eq!(states(&document, "OperatorGroup"), ["Unknown"], "{document:#}");
    assert!(!problems.contains(&"no-operator-group".to_owned()), "{problems:?}");

    // The installed operator, then a pod whose image cannot be pulled.
    let approve =
        cluster.plugin("kubectl-olm-install_plan").args(["approve", "--all", "-n", "shop", "--yes"]).output().unwrap();
    assert!(approve.status.success(), "{}", String::from_utf8_lossy(&approve.stderr));
    cluster.run();
    let (code, problems, document) = cluster.describe("tea -n shop");
    assert_eq!((code, problems.len()), (0, usize::from(text(&document, &["health"]) == "Upgradable")), "{document:#}");
    assert_eq!(states(&document, "Pod"), ["Ok"]);
    let stages = list(&document, &["stages"]);
    let deployment = stages.iter().find(|stage| text(stage, &["stage"]) == "Deployment").unwrap();
    let deployment = format!("deployment/{}", text(deployment, &["object", "name"]));
    let pods = cluster.kubectl(&["get", "pods", "-n", "shop", "-o", "name"]);
    let waiting = json!({ "waiting": { "reason": "ImagePullBackOff", "message": "Back-off pulling image" } });
    let status = json!({ "status": {
        "conditions": [{ "type": "Ready", "status": "False" }],
        "containerStatuses": [{ "name": "manager", "image": "a", "imageID": "", "ready": false, "restartCount": 0, "state": waiting }],
    } });
    for pod in pods.lines() {
        cluster.kubectl(&[
            "patch",
            pod,
            "-n",
            "shop",
            "--subresource=status",
            "--type=merge",
            "-p",
            &status.to_string(),
        ]);
    }
    cluster.kubectl(&["wait", &deployment, "-n", "shop", "--for=condition=Available=False", "--timeout=2m"]);
    let (code, problems, document) = cluster.describe("tea -n shop");
    assert_eq!(code, 1);
    assert!(problems.contains(&"image-pull".to_owned()), "{document:#}");
    assert_eq!(states(&document, "Pod").first(), Some(&"Failed"));
}
