//! The removal of operators that do not run, of those that others need, and of those whose removal was interrupted. No controllers
//! run, so that the command does everything itself. Other tools fail or lose data in these cases: they need a Succeeded
//! ClusterServiceVersion, and delete the CustomResourceDefinitions that it only requires.

use olm_tests::control_plane::skipped;
use serde_json::{Value, json};

use super::Script;

const GROUP: &str = "garden.example.com";

fn csv(namespace: &str, name: &str, owned: &[&str], required: &[&str], status: Value) -> Value {
    let crds = |plurals: &[&str]| -> Vec<Value> {
        let of = |plural: &&str| json!({ "name": format!("{plural}.{GROUP}"), "kind": "Rose", "version": "v1" });
        plurals.iter().map(of).collect()
    };
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": name, "namespace": namespace, "finalizers": ["operators.coreos.com/csv-cleanup"] },
        "spec": {
            "displayName": "Rose", "version": "1.0.0", "installModes": [{ "type": "AllNamespaces", "supported": true }],
            "customresourcedefinitions": { "owned": crds(owned), "required": crds(required) },
            "install": { "strategy": "deployment", "spec": { "deployments": [] } },
        },
        "status": status,
    })
}

fn subscription(name: &str, csv: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "name": name, "namespace": "garden" },
        "spec": { "name": "rose", "channel": "stable", "source": "market", "sourceNamespace": "olm" },
        "status": { "installedCSV": csv, "currentCSV": csv, "lastUpdated": "2026-01-01T00:00:00Z" },
    })
}

/// A definition with two versions; with `webhook`, a Service of the operator converts between them.
fn crd(plural: &str, webhook: bool) -> Value {
    let version = |name: &str, storage: bool| {
        let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
        json!({ "name": name, "served": true, "storage": storage, "schema": schema })
    };
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..plural.len() - 1]);
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") },
            "versions": [version("v1", true), version("v2", false)],
        },
    });
    if webhook {
        let service = json!({ "namespace": "garden", "name": "rose", "path": "/convert" });
        crd["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
            "clientConfig": { "service": service }, "conversionReviewVersions": ["v1"],
        } });
    }
    crd
}

fn rose(plural: &str, name: &str, finalizers: &[&str]) -> Value {
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..plural.len() - 1]);
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": { "name": name, "namespace": "garden", "finalizers": finalizers }, "spec": { "petals": 5 },
    })
}

/// What OLM creates for a ClusterServiceVersion and its group.
fn generated(csv: &str) -> Vec<Value> {
    let labels = json!({
        "olm.owner": csv, "olm.owner.namespace": "garden", "olm.owner.kind": "ClusterServiceVersion", "olm.managed": "true",
    });
    let rules = json!([{ "apiGroups": [GROUP], "resources": ["*"], "verbs": ["get"] }]);
    vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": format!("{csv}-abc"), "labels": labels }, "rules": rules,
        }),
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": { "name": "rose", "namespace": "garden", "labels": { "kubectl-olm/compiled-by": "kubectl-olm" } },
            "spec": {},
        }),
    ]
}

fn cluster(definitions: &[(&str, bool)]) -> Script {
    let script = Script::new();
    for namespace in ["garden", "park"] {
        script.kubectl(&["create", "namespace", namespace]);
    }
    script.applies(definitions.iter().map(|(plural, webhook)| crd(plural, *webhook)));
    for (plural, _) in definitions {
        let name = format!("crd/{plural}.{GROUP}");
        script.kubectl(&["wait", "--for=condition=Established", &name, "--timeout=60s"]);
    }
    script
}

/// Returns what is left in the cluster that names the operator.
fn left(script: &Script) -> Vec<String> {
    let kinds = "clusterroles,subscriptions,csv,operatorgroups,operators,apiservices,roles,deployments";
    let all = script.kubectl(&["get", kinds, "-A", "-o", "name"]);
    // Kubernetes creates an APIService for each version of a definition, and definitions may be retained.
    let is_of_definition = |line: &str| line.starts_with("apiservice") && line.ends_with(GROUP);
    let left = all.lines().filter(|line| line.contains("rose") || line.contains(GROUP));
    left.filter(|line| !is_of_definition(line)).map(str::to_owned).collect()
}

#[test]
fn operators_that_never_ran_are_removed_completely() {
    if skipped() {
        return;
    }
    let script = cluster(&[("roses", false), ("soils", false), ("ivies", false)]);
    let failed = json!({ "phase": "Failed", "reason": "InstallCheckFailed", "message": "install timeout" });
    let pending = json!({ "phase": "Pending", "reason": "RequirementsNotMet", "message": "one or more requirements" });
    let mut older = csv("garden", "rose.v1", &["roses", "ivies"], &["soils"], failed);
    let mut newer = csv("garden", "rose.v2", &["roses", "ivies"], &["soils"], pending);
    newer["spec"]["replaces"] = "rose.v1".into();
    for csv in [&mut older, &mut newer] {
        let service = json!([{ "group": "petals.example.com", "version": "v1", "kind": "Petal", "name": "petals", "deploymentName": "rose" }]);
        csv["spec"]["apiservicedefinitions"] = json!({ "owned": service });
    }
    let other = csv("park", "ivy.v1", &["ivies"], &[], json!({ "phase": "Succeeded" }));
    script.applies([older, newer, other, subscription("rose", "rose.v2")]);
    script.applies(generated("rose.v1").into_iter().chain(generated("rose.v2")));
    script.applies([json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": "v1.petals.example.com" },
        "spec": { "group": "petals.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
                  "insecureSkipTLSVerify": true, "service": { "name": "rose", "namespace": "garden" } },
    })]);
    script.applies([rose("roses", "red", &[]), rose("soils", "dry", &[])]);

    let removed: Value =
        serde_json::from_str(&script.succeed("uninstall rose -n garden --delete-crds --yes -o json")).unwrap();
    assert_eq!(removed["left"], json!([]), "{removed}");
    let retained = removed["retainedDefinitions"].as_array().unwrap();
    let reasons: Vec<&str> = retained.iter().filter_map(|crd| crd["reason"].as_str()).collect();
    assert_eq!(reasons, ["park/ivy.v1 also owns it"]);
    assert_eq!(left(&script), [""; 0]);
    assert!(!script.exists("crd", &format!("roses.{GROUP}")));
    assert!(!script.exists("apiservice", "v1.petals.example.com"));
    assert!(script.exists("crd", &format!("ivies.{GROUP}")), "two operators own it");
    assert!(script.kubectl(&["get", "soils", "-n", "garden", "-o", "name"]).contains("dry"), "it was only required");
    assert!(script.fail("uninstall rose -n garden --yes").contains("there is no operator"));
}

#[test]
fn finalizers_that_hang_are_named_and_objects_stay_readable_without_the_webhook() {
    if skipped() {
        return;
    }
    let script = cluster(&[("roses", true)]);
    let failed = json!({ "phase": "Failed", "reason": "ComponentUnhealthy", "message": "no pods" });
    script.applies([rose("roses", "red", &["garden.example.com/prune"])]);
    script.applies([csv("garden", "rose.v1", &["roses"], &[], failed), subscription("rose", "rose.v1")]);
    script.applies(generated("rose.v1"));

    let hanging = script.fail("uninstall rose -n garden --delete-operands --timeout 1s --yes");
    for words in
        ["garden/red (finalizers: garden.example.com/prune)", "the operator does not run", "kubectl patch roses"]
    {
        assert!(hanging.contains(words), "{hanging}");
    }
    assert!(script.exists("crd", &format!("roses.{GROUP}")));
    script.releases("roses.v1.garden.example.com", "red", "garden");
    script.applies([rose("roses", "white", &[])]);

    // The Subscription is deleted already; the same operator is found again. What is kept can be read in every version.
    assert_eq!(script.succeed("uninstall rose -n garden --yes"), "operator/rose uninstalled\n");
    for version in ["v1", "v2"] {
        let named = script.kubectl(&["get", &format!("roses.{version}.{GROUP}"), "-n", "garden", "-o", "name"]);
        assert!(named.contains("white"), "{version}: {named}");
    }
    let conversion =
        script.kubectl(&["get", "crd", &format!("roses.{GROUP}"), "-o", "jsonpath={.spec.conversion.strategy}"]);
    assert_eq!((conversion.as_str(), left(&script)), ("None", Vec::new()));
}

#[test]
fn a_removal_that_was_killed_is_continued_by_the_same_command() {
    if skipped() {
        return;
    }
    let script = cluster(&[("roses", true)]);
    let failed = json!({ "phase": "Failed", "reason": "ComponentUnhealthy", "message": "no pods" });
    let mut blocked = csv("garden", "rose.v1", &["roses"], &[], failed);
    blocked["metadata"]["finalizers"] = json!(["garden.example.com/audit"]);
    script.applies([rose("roses", "red", &["garden.example.com/prune"]), blocked, subscription("my-rose", "rose.v1")]);
    script.applies(generated("rose.v1"));
    let backup = script.folder.path().join("backup");
    let line = format!("uninstall my-rose -n garden --delete-operands --backup {} --yes", backup.display());

    // Killed while the custom resources are being deleted.
    let mut first = script.starts(&line);
    first.says("deleted Rose garden/red");
    first.kill();
    assert!(!script.exists("subscriptions.operators.coreos.com/my-rose", "-ngarden"));
    script.releases("roses.v1.garden.example.com", "red", "garden");

    // Killed while the ClusterServiceVersion is being deleted.
    let mut second = script.starts(&line);
    second.says("deleted ClusterServiceVersion garden/rose.v1");
    second.kill();
    script.releases("csv", "rose.v1", "garden");
    script.kubectl(&["wait", "--for=delete", "csv/rose.v1", "-n", "garden", "--timeout=60s"]);

    // Neither the Subscription nor the ClusterServiceVersion exists: the rest is still found by the name of the Subscription.
    assert!(!left(&script).is_empty());
    assert_eq!(script.succeed(&line), "operator/my-rose uninstalled\n");
    assert_eq!(left(&script), [""; 0]);
    let conversion =
        script.kubectl(&["get", "crd", &format!("roses.{GROUP}"), "-o", "jsonpath={.spec.conversion.strategy}"]);
    assert_eq!(conversion, "None");
    assert!(script.fail(&line).contains("there is no operator"));
    script.restores(&backup);
    assert!(script.kubectl(&["get", "roses", "-n", "garden", "-o", "name"]).contains("red"));
}
