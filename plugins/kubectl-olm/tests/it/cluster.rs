//! `kubectl olm version` on a real cluster.

use olm_tests::control_plane::{ControlPlane, Options, skipped};
use serde_json::{Value, json};

use crate::home::Home;

#[test]
fn version_reports_what_the_cluster_runs() {
    if skipped() {
        return;
    }
    let plane = ControlPlane::start_with(Options { scheduler: false, kwok: false, ..Options::default() }).unwrap();
    let home = Home::new();
    let asked = |words: &[&str]| {
        let asked = home.olm(words).env("KUBECONFIG", plane.kubeconfig()).assert().success().stderr("");
        String::from_utf8(asked.get_output().stdout.clone()).unwrap()
    };
    let text = asked(&["version"]);
    assert!(text.contains("\nServer Version: v1."), "{text}");
    assert!(text.ends_with("\nOLM APIs: none (CRDs not installed)\nOLM Controllers: none\n"), "{text}");

    assert!(plane.kubectl(["create", "namespace", "olm"]).output().unwrap().status.success());
    let create = ["create", "deployment", "olm-operator", "-n", "olm", "--image", "registry.example.com/olm:v0.46.0"];
    assert!(plane.kubectl(create).output().unwrap().status.success());
    assert!(
        plane
            .kubectl(["label", "deployment/olm-operator", "-n", "olm", "app=olm-operator", "--overwrite"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let document: Value = serde_json::from_str(&asked(&["version", "-o", "json"])).unwrap();
    let controller = json!({"namespace": "olm", "name": "olm-operator", "image": "registry.example.com/olm:v0.46.0"});
    assert_eq!(document["serverVersion"]["controllers"], json!([controller]));

    // The Lease of kubectl olm run is reported until it is released.
    let lease = |holder: &str| {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "kubectl-olm-run", "namespace": "olm" },
            "spec": { "holderIdentity": holder, "acquireTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 60 },
        });
        let file = home.path("lease.json");
        std::fs::write(&file, lease.to_string()).unwrap();
        assert!(plane.kubectl(["apply", "-f", file.to_str().unwrap()]).output().unwrap().status.success());
    };
    lease("host_1_0a");
    let text = asked(&["version"]);
    let own = "kubectl olm run (Lease olm/kubectl-olm-run, held by host_1_0a)";
    let upstream = "olm/olm-operator (registry.example.com/olm:v0.46.0)";
    assert!(text.ends_with(&format!("\nOLM Controllers: {own}, {upstream}\n")), "{text}");
    // Deployments without replicas do not run.
    assert!(
        plane
            .kubectl(["scale", "deployment/olm-operator", "-n", "olm", "--replicas=0"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let text = asked(&["version"]);
    assert!(text.ends_with(&format!("\nOLM Controllers: {own}\nStopped Controllers: {upstream}\n")), "{text}");
    let document: Value = serde_json::from_str(&asked(&["version", "-o", "json"])).unwrap();
    assert_eq!(document["serverVersion"]["leases"][0]["holderIdentity"], "host_1_0a");
    lease("");
    assert!(!asked(&["version"]).contains("kubectl olm run"));

    // A user without permissions still gets the versions.
    let nobody = plane.kubeconfig_for("nobody", Some("system:authenticated")).unwrap();
    let asked = home.olm(&["version"]).env("KUBECONFIG", nobody).assert().success();
    let text = String::from_utf8_lossy(&asked.get_output().stdout).into_owned();
    assert!(text.ends_with("\nOLM Controllers: unknown (listing Deployments and Leases is forbidden)\n"), "{text}");
    home.olm(&["version", "--as", "nobody"]).env("KUBECONFIG", plane.kubeconfig()).assert().success().stdout(text);
}
