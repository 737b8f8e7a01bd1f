//! `kubectl olm bundle synthesize` reads the kinds behind the resources of rules from a cluster.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fs;
use std::process::{Command, Stdio};

use olm_core::api::object::{list, text};
use olm_tests::control_plane::{ControlPlane, skipped};
use olm_tests::plugin::binary;
use serde_json::{Value, json};

/// An operator that reads Samovars, which its manifests do not define.
fn manifests() -> String {
    let rule = json!({ "apiGroups": ["tea.example.com"], "resources": ["samovars"], "verbs": ["get"] });
    let labels = json!({ "app": "waiter" });
    let container = json!({ "name": "waiter", "image": "registry.example.com/waiter:v1" });
    let objects = [
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "waiter" } }),
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "waiter" }, "rules": [rule] }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "waiter" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "waiter" },
            "subjects": [{ "kind": "ServiceAccount", "name": "waiter", "namespace": "shop" }],
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "waiter" },
            "spec": {
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": { "serviceAccountName": "waiter", "containers": [container] } },
            },
        }),
    ];
    objects.map(|object| object.to_string()).join("\n---\n")
}

#[test]
fn required_apis_are_read_from_the_cluster() {
    if skipped() {
        return;
    }
    let plane = ControlPlane::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let synthesize = |flags: &[&str]| {
        let mut command = Command::new(binary("kubectl-olm-bundle").unwrap());
        let file = folder.path().join("manifests.yaml");
        fs::write(&file, manifests()).unwrap();
        let arguments = ["--package=waiter", "--version=1.0.0", "--to=csv"];
        command.current_dir(&folder).env("KUBECONFIG", plane.kubeconfig()).stdin(Stdio::null());
        let output = command.arg("synthesize").arg(file).args(arguments).args(flags).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let context = plane.kubectl(["config", "current-context"]).output().unwrap();
    let context = format!("--context={}", String::from_utf8(context.stdout).unwrap().trim());

    // The cluster of the kubeconfig is not read unless a flag names it.
    for flags in [&[][..], &[context.as_str()]] {
        let (code, out, error) = synthesize(flags);
        assert_eq!((code, required(&out)), (Some(0), vec![]), "{error}");
        let unknown = "requires the API samovars.tea.example.com, whose kind and version the bundle does not state";
        assert!(error.contains(unknown), "neither the bundle nor the cluster defines it: {error}");
    }

    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "samovars.tea.example.com" },
        "spec": {
            "group": "tea.example.com", "scope": "Namespaced",
            "names": { "plural": "samovars", "singular": "samovar", "kind": "Samovar", "listKind": "SamovarList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    });
    let file = folder.path().join("definition.json");
    fs::write(&file, definition.to_string()).unwrap();
    for arguments in [
        ["apply", "-f", file.to_str().unwrap()].as_slice(),
        &["wait", "--for=condition=Established", "crd/samovars.tea.example.com", "--timeout=60s"],
    ] {
        let output = plane.kubectl(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let (code, out, error) = synthesize(&[&context]);
    assert_eq!(code, Some(0), "{error}");
    let expected = ["samovars.tea.example.com", "Samovar", "v1"].map(str::to_owned);
    assert_eq!((required(&out), error.contains("samovars")), (vec![expected], false), "{error}");
}

/// Returns the APIs that a ClusterServiceVersion requires.
fn required(csv: &str) -> Vec<[String; 3]> {
    let csv: Value = serde_yaml::from_str(csv).unwrap();
    let required = list(&csv, &["spec", "customresourcedefinitions", "required"]).iter();
    required.map(|api| ["name", "kind", "version"].map(|field| text(api, &[field]).to_owned())).collect()
}
