//! What the front door says about a real cluster.

use olm_tests::control_plane::{ControlPlane, Options, skipped};
use serde_json::{Value, json};

use crate::home::Home;

#[test]
fn version_tells_what_the_cluster_runs() {
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
    assert!(text.ends_with("\nOLM APIs: none, its CRDs are not installed\nOLM Controllers: none\n"), "{text}");

    let create = ["create", "deployment", "olm-operator", "--image", "registry.example.com/olm:v0.46.0"];
    assert!(plane.kubectl(create).output().unwrap().status.success());
    assert!(
        plane
            .kubectl(["label", "deployment/olm-operator", "app=olm-operator", "--overwrite"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let document: Value = serde_json::from_str(&asked(&["version", "-o", "json"])).unwrap();
    let controller =
        json!({"namespace": "default", "name": "olm-operator", "image": "registry.example.com/olm:v0.46.0"});
    assert_eq!(document["serverVersion"]["controllers"], json!([controller]));

    // Somebody without rights still learns the versions.
    let nobody = plane.kubeconfig_for("nobody", Some("system:authenticated")).unwrap();
    let asked = home.olm(&["version"]).env("KUBECONFIG", nobody).assert().success();
    let text = String::from_utf8_lossy(&asked.get_output().stdout).into_owned();
    assert!(text.ends_with("\nOLM Controllers: unknown, listing Deployments is forbidden\n"), "{text}");
    home.olm(&["version", "--as", "nobody"]).env("KUBECONFIG", plane.kubeconfig()).assert().success().stdout(text);
}
