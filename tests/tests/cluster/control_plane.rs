//! The real control plane runs pods, supports several instances, applies RBAC, and removes everything when it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use olm_tests::control_plane::{ControlPlane, Options, skipped};
use serde_json::json;

/// Returns whether the process is running. A zombie process is not.
fn runs(id: u32) -> bool {
    // The state follows the command's name, which is in parentheses and may contain any character.
    fs::read_to_string(format!("/proc/{id}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X'])))
}

/// Runs kubectl, which must succeed, and returns its output.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Creates a Deployment and returns how long it took until it was Available.
fn deploy(plane: &ControlPlane, name: &str) -> Result<Duration> {
    let start = Instant::now();
    output(&mut plane.kubectl(["create", "deployment", name, "--image=rose.example/rose"]))?;
    let deployment = format!("deployment/{name}");
    output(&mut plane.kubectl(["wait", "--for=condition=Available", "--timeout=60s", &deployment]))?;
    Ok(start.elapsed())
}

#[test]
fn two_run_in_parallel_and_leave_nothing() {
    if skipped() {
        return;
    }
    // The time to build the binaries is not part of the measurement.
    drop(ControlPlane::start_with(Options { scheduler: false, kwok: false, ..Options::default() }).unwrap());

    let start = Instant::now();
    let first = ControlPlane::start().unwrap();
    println!("start to ready: {:.2?}", start.elapsed());
    println!("deployment available: {:.2?} after the start of kubectl create", deploy(&first, "rose").unwrap());
    let version = output(&mut first.kubectl(["get", "--raw", "/version"])).unwrap();
    let version: serde_json::Value = serde_json::from_str(&version).unwrap();
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1."), "{version}");

    let start = Instant::now();
    let second = ControlPlane::start().unwrap();
    println!("start to ready, beside another: {:.2?}", start.elapsed());
    assert_ne!(first.url(), second.url());
    println!("deployment available there: {:.2?}", deploy(&second, "tulip").unwrap());
    let names = output(&mut first.kubectl(["get", "deployments", "-o", "name"])).unwrap();
    assert_eq!(names, "deployment.apps/rose\n");

    let ids = [first.process_ids(), second.process_ids()].concat();
    assert_eq!(ids.len(), 12, "five components and a watchdog each");
    assert!(ids.iter().all(|id| runs(*id)));
    let logs = [first.logs(), second.logs()];
    let start = Instant::now();
    drop((first, second));
    println!("both stopped: {:.2?}", start.elapsed());
    assert_eq!(ids.into_iter().filter(|id| runs(*id)).count(), 0);
    assert!(logs.iter().all(|logs| !logs.exists()));
}

#[test]
fn users_have_the_rights_that_rbac_grants() {
    if skipped() {
        return;
    }
    let flags = ["--audit-log-path=audit.log", "--audit-policy-file=policy.yaml"].map(str::to_owned).to_vec();
    let error = ControlPlane::start_with(Options { apiserver_flags: flags, ..Options::default() }).err().unwrap();
    let error = format!("{error:#}");
    assert!(error.contains("kube-apiserver ended with") && error.contains("policy.yaml"), "{error}");

    let plane = ControlPlane::start_with(Options { kwok: false, scheduler: false, ..Options::default() }).unwrap();
    output(&mut plane.kubectl(["create", "clusterrolebinding", "viewers", "--clusterrole=view", "--group=viewers"]))
        .unwrap();
    let can = |group| {
        let kubeconfig = plane.kubeconfig_for("ada", group).unwrap();
        let mut command = plane.kubectl(["auth", "can-i", "list", "pods"]);
        let answer = command.env("KUBECONFIG", kubeconfig).output().unwrap().stdout;
        String::from_utf8(answer).unwrap()
    };
    assert_eq!(can(None), "no\n");
    assert_eq!(can(Some("viewers")), "yes\n");
}

/// Pods with different results of kwok's stages and the real scheduler.
const PODS: &str = r"
apiVersion: v1
kind: Pod
metadata: { name: whole, finalizers: [rose.example/kept] }
spec:
  initContainers:
    - { name: first, image: rose.example/first }
    - { name: sidecar, image: rose.example/sidecar, restartPolicy: Always }
  containers: [{ name: rose, image: rose.example/rose }]
  readinessGates: [{ conditionType: rose.example/watered }]
---
apiVersion: v1
kind: Pod
metadata: { name: nowhere }
spec:
  nodeSelector: { garden: none }
  containers: [{ name: rose, image: rose.example/rose }]
---
apiVersion: batch/v1
kind: Job
metadata: { name: planting }
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{ name: rose, image: rose.example/rose }]
";

#[test]
fn pods_run_immediately_unless_they_cannot_be_scheduled() {
    if skipped() {
        return;
    }
    let plane = ControlPlane::start().unwrap();
    let pods = tempfile::NamedTempFile::new().unwrap();
    fs::write(&pods, PODS).unwrap();
    output(plane.kubectl(["apply", "-f"]).arg(pods.path())).unwrap();
    let wait = |condition: &str, object: &str| {
        output(&mut plane.kubectl(["wait", "--timeout=60s", &format!("--for={condition}"), object])).unwrap();
    };
    wait("condition=Complete", "job/planting");
    wait("condition=Ready", "pod/whole");
    let pod: serde_json::Value =
        serde_json::from_str(&output(&mut plane.kubectl(["get", "pod", "whole", "-o", "json"])).unwrap()).unwrap();
    let status = &pod["status"];
    assert_eq!(status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"], 0, "{status:#}");
    assert!(status["initContainerStatuses"][1]["state"]["running"].is_object(), "{status:#}");
    assert_eq!(status["containerStatuses"][0]["ready"], true, "{status:#}");
    let conditions = status["conditions"].as_array().unwrap();
    let gate = conditions.iter().find(|condition| condition["type"] == "rose.example/watered").unwrap();
    assert_eq!(gate["status"], "True");
    assert!(status["podIP"].is_string(), "{status:#}");

    wait("condition=PodScheduled=False", "pod/nowhere");
    assert_eq!(
        output(&mut plane.kubectl(["get", "pod/nowhere", "-o", "jsonpath={.status.phase}"])).unwrap(),
        "Pending"
    );

    output(&mut plane.kubectl(["delete", "pod/whole", "pod/nowhere", "--wait=false"])).unwrap();
    wait("delete", "pod/nowhere");
    // kwok does not delete a pod with another component's finalizer, and adds none.
    let finalizers = ["get", "pod/whole", "-o", "jsonpath={.metadata.finalizers}"];
    assert_eq!(output(&mut plane.kubectl(finalizers)).unwrap(), r#"["rose.example/kept"]"#);
}

/// A kind, an object of it, and an object that it owns.
const OWNED: &str = r"
apiVersion: v1
kind: ConfigMap
metadata:
  name: thorns
  ownerReferences: [{ apiVersion: rose.example/v1, kind: Rose, name: red, uid: UID }]
";

/// By default it reads new kinds only every 30 seconds, so that dependents of their objects would remain for that long.
#[test]
fn the_garbage_collector_knows_the_given_kinds_from_the_start() {
    if skipped() {
        return;
    }
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "roses.rose.example"},
        "spec": {
            "group": "rose.example", "names": {"kind": "Rose", "plural": "roses"}, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let plane = ControlPlane::start_with(Options { crds: vec![crd], kwok: false, ..Options::default() }).unwrap();
    let apply = |text: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, text).unwrap();
        output(plane.kubectl(["apply", "-o", "jsonpath={.metadata.uid}", "-f"]).arg(file.path())).unwrap()
    };
    let uid = apply("{apiVersion: rose.example/v1, kind: Rose, metadata: {name: red}}");
    apply(&OWNED.replace("UID", &uid));
    output(&mut plane.kubectl(["delete", "rose/red"])).unwrap();
    output(&mut plane.kubectl(["wait", "--for=delete", "--timeout=10s", "configmap/thorns"])).unwrap();
}

/// Not a test by itself: the next test runs and kills it.
#[test]
#[ignore = "runs until it is killed"]
fn killed_by_another_test() {
    let plane = ControlPlane::start().unwrap();
    println!("\nholding {} {:?}", plane.logs().display(), plane.process_ids());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn nothing_is_left_of_a_killed_test() {
    if skipped() {
        return;
    }
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "control_plane::killed_by_another_test", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let holding = lines.map_while(Result::ok).find_map(|line| Some(line.strip_prefix("holding ")?.to_owned())).unwrap();
    let (logs, ids) = holding.split_once(' ').unwrap();
    let ids: Vec<u32> = serde_json::from_str(ids).unwrap();
    assert!(ids.iter().all(|id| runs(*id)));

    holder.kill().unwrap();
    holder.wait().unwrap();
    // The watchdog holds it, too: it is closed when the watchdog has finished.
    holder.stderr.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    assert!(!Path::new(logs).exists());
    let killed = Instant::now();
    while ids.iter().any(|id| runs(*id)) {
        assert!(killed.elapsed() < Duration::from_secs(20), "still running: {ids:?}");
        std::thread::yield_now();
    }
}
