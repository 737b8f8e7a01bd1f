//! Upstream OLM that is started while the controllers run: they pause, or end with `--once`. A Deployment of a tenant is none.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use olm_core::api::crd;
use olm_tests::control_plane::audit::Entry;
use olm_tests::control_plane::{ControlPlane, Options, skipped};
use serde_json::{Value, json};

use super::processes::{Running, ends, holder, kubectl};
use super::town::group;
use super::witness::WRITER;

fn create(plane: &ControlPlane, object: &Value) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), object.to_string()).unwrap();
    kubectl(plane, &format!("create -f {}", file.path().display()));
}

/// Returns a Deployment with name and labels of one of upstream OLM.
fn olm_operator(namespace: &str) -> Value {
    let labels = json!({ "app": "olm-operator" });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "olm-operator", "namespace": namespace, "labels": labels },
        "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "olm", "image": "example.com/olm" }] },
        } },
    })
}

/// Returns a ClusterServiceVersion whose Deployment never becomes available.
fn pending(namespace: &str) -> Value {
    let labels = json!({ "app": "rose" });
    let deployment = json!({ "name": "rose", "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": {
        "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "rose", "image": "example.com/rose" }] },
    } } });
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": "rose", "namespace": namespace },
        "spec": { "displayName": "Rose", "installModes": [{ "type": "OwnNamespace", "supported": true }],
                  "install": { "strategy": "deployment", "spec": { "deployments": [deployment] } } },
    })
}

/// Creates a namespace with an OperatorGroup.
fn garden(plane: &ControlPlane, name: &str) {
    kubectl(plane, &format!("create namespace {name}"));
    create(plane, &group(name));
}

/// Waits until controllers have processed the OperatorGroup of a namespace.
fn tended(plane: &ControlPlane, name: &str) {
    kubectl(
        plane,
        &format!("wait operatorgroup/{name} -n {name} --for=jsonpath={{.status.lastUpdated}} --timeout=60s"),
    );
}

/// Returns the response of `/readyz`.
fn readiness(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

const STARTED: &str = "upstream OLM is running: Deployment/olm/olm-operator";

#[test]
fn controllers_pause_while_upstream_olm_is_running() {
    if skipped() {
        return;
    }
    let options = Options { scheduler: false, kwok: false, audit: true, crds: crd::all(), ..Options::default() };
    let plane = ControlPlane::start_with(options).unwrap();
    let kubeconfig = plane.kubeconfig_for(&format!("{WRITER}1"), Some("system:masters")).unwrap();
    kubectl(&plane, "create namespace olm");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let health = format!("127.0.0.1:{port}");
    let running = Running::start(&kubeconfig, &["--health-address", &health]);
    running.says("read the cluster");

    // A tenant has no permissions of OLM.
    kubectl(&plane, "create namespace aaa");
    create(&plane, &olm_operator("aaa"));
    kubectl(&plane, "scale deployment olm-operator -n aaa --replicas=2");
    garden(&plane, "field");
    tended(&plane, "field");
    assert!(readiness(port).starts_with("HTTP/1.1 200 "));

    create(&plane, &olm_operator("olm"));
    let said = running.says("upstream OLM is running");
    assert!(said.contains(&format!("{STARTED}; nothing is written until it is stopped")), "{said}");
    let answer = readiness(port);
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("paused while upstream OLM is running"),
        "{answer}"
    );
    assert!(!holder(&plane).is_empty(), "nothing is released");
    garden(&plane, "park");
    let (code, said) = ends(&kubeconfig, &["--once", "--no-lease"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("OLM is already running on the cluster: Deployment/olm/olm-operator"), "{said}");

    // A pod that is started again waits, instead of failing repeatedly.
    let again = Running::start_in_pod(&kubeconfig, &["--no-lease"]);
    again.says(STARTED);

    kubectl(&plane, "scale deployment olm-operator -n olm --replicas=0");
    running.says("upstream OLM was stopped; continuing");
    again.says("upstream OLM was stopped; continuing");
    assert_eq!(again.end(), Some(0));
    tended(&plane, "park");
    assert!(readiness(port).starts_with("HTTP/1.1 200 "));
    assert_eq!(running.end(), Some(0));

    let entries = plane.audit().unwrap();
    let at = |is_it: &dyn Fn(&&Entry) -> bool| entries.iter().position(|entry| is_it(&entry)).unwrap();
    let stop = at(&|entry| entry.resource == "deployments/scale" && entry.namespace == "olm");
    let of_park = at(&|entry| entry.namespace == "park" && entry.user.starts_with(WRITER));
    assert!(stop < of_park, "{:?}", entries[of_park]);

    // With --once the command ends.
    create(&plane, &pending("park"));
    let once = Running::start(&kubeconfig, &["--once"]);
    kubectl(&plane, "wait -n park csv/rose --for=jsonpath={.status.phase}=Installing --timeout=60s");
    kubectl(&plane, "scale deployment olm-operator -n olm --replicas=1");
    once.says(&format!("error: {STARTED}: nothing more is written"));
    assert_eq!(once.exit_code(), Some(2));
}
