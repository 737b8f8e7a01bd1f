//! The doctor on a real API server: a healthy cluster, defects that are made for real, and users who may not read everything.

use olm_tests::control_plane::skipped;
use serde_json::{Value, json};

use super::{MARKET, Script, TIMEOUT};

/// Checks the cluster. Returns the exit code, the findings as `CODE Kind/name`, and the document.
fn checkup(script: &Script, flags: &str) -> (i32, Vec<String>, Value) {
    let (code, out, err) = script.operator(&format!("doctor --older-than 0s -o json{flags}"));
    let document: Value = serde_json::from_str(&out).unwrap_or_default();
    assert!(document.is_object(), "{out}{err}");
    let text = |finding: &Value, path: &str| finding.pointer(path).and_then(Value::as_str).unwrap().to_owned();
    let findings = document["findings"].as_array().unwrap().iter();
    let line = |finding: &Value| {
        format!("{} {}/{}", text(finding, "/code"), text(finding, "/object/kind"), text(finding, "/object/name"))
    };
    let mut lines: Vec<String> = findings.map(line).collect();
    lines.sort();
    (code, lines, document)
}

fn webhook() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": { "name": "vrose" },
        "webhooks": [{
            "name": "vrose.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": { "service": { "namespace": "olm", "name": "no-service" } },
            "rules": [{ "apiGroups": ["rose.example.com"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"] }],
        }],
    })
}

fn definition() -> Value {
    let version = |name: &str, storage: bool| {
        let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
        json!({ "name": name, "served": true, "storage": storage, "schema": schema })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "roses.rose.example.com", "labels": { "operators.coreos.com/rose.shop": "" } },
        "spec": {
            "group": "rose.example.com", "scope": "Namespaced",
            "names": { "plural": "roses", "singular": "rose", "kind": "Rose", "listKind": "RoseList" },
            "versions": [version("v1", true), version("v2", false)],
            "conversion": { "strategy": "Webhook", "webhook": {
                "clientConfig": { "service": { "namespace": "olm", "name": "no-service" } }, "conversionReviewVersions": ["v1"],
            } },
        },
    })
}

#[test]
fn a_healthy_cluster_has_no_findings_and_each_defect_is_found() {
    if skipped() {
        return;
    }
    let script = Script::new();
    let controllers = script.controllers();
    script.succeed(&format!("install tea-house {MARKET} -n shop --create-namespace --yes --timeout {TIMEOUT}"));
    let (code, findings, document) = checkup(&script, "");
    assert_eq!((code, findings), (0, vec![]), "{document:#}");
    assert_eq!(document["unchecked"], json!([]));
    assert_eq!(document["checked"]["clusterServiceVersions"], 2, "with the dependency: {document:#}");
    assert!(document["checked"]["customResourceDefinitions"].as_u64().unwrap() > 8, "{document:#}");

    // A user without any permission gets an error, and with some the rules that could not be checked.
    let (code, out, err) = script.operator("doctor --as nobody");
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("not allowed to list"), "{err}");
    script.kubectl(&[
        "create",
        "clusterrole",
        "reader",
        "--verb=get,list",
        "--resource=customresourcedefinitions,apiservices",
    ]);
    script.kubectl(&["create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=reader"]);

    // OLM was deleted by hand.
    drop(controllers);
    let deployment = |namespace: &str| {
        let labels = json!({ "app": "olm-operator" });
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "olm-operator", "namespace": namespace, "labels": labels },
            "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": {
                "metadata": { "labels": labels },
                // Controllers that do not run, and are not stopped.
                "spec": { "nodeSelector": { "tea": "nowhere" }, "containers": [{ "name": "olm", "image": "example.com/olm" }] },
            } },
        })
    };
    let plan = |n: usize| {
        let spec = json!({ "approval": "Manual", "approved": false, "clusterServiceVersionNames": [] });
        json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
                "metadata": { "name": format!("install-{n}"), "namespace": "park" }, "spec": spec })
    };
    let owner =
        json!({ "olm.owner": "rose.v1", "olm.owner.namespace": "park", "olm.owner.kind": "ClusterServiceVersion" });
    script.kubectl(&["create", "namespace", "park"]);
    script.kubectl(&["create", "namespace", "dusk"]);
    script.applies([
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": "v1.packages.operators.coreos.com" },
            "spec": { "group": "packages.operators.coreos.com", "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 15,
                      "insecureSkipTLSVerify": true, "service": { "name": "packageserver-service", "namespace": "olm" } },
        }),
        webhook(),
        definition(),
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "rose", "labels": owner } }),
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": { "name": "ivy", "namespace": "park" },
            "spec": { "name": "ivy", "channel": "stable", "source": "market", "sourceNamespace": "olm" },
            "status": { "installedCSV": "ivy.v1", "currentCSV": "ivy.v1", "lastUpdated": "2026-01-01T00:00:00Z" },
        }),
        json!({ "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": "thorn", "namespace": "dusk", "finalizers": ["example.com/prune"] } }),
        deployment("olm"),
        deployment("park"),
        json!({ "apiVersion": "v1", "kind": "List", "items": (0..20).map(plan).collect::<Vec<_>>() }),
    ]);
    script.kubectl(&["delete", "namespace", "dusk", "--wait=false"]);
    script.kubectl(&["delete", "csv", "tea-house.v1.1.0", "-n", "shop", "--wait=false"]);
    script.kubectl(&[
        "wait",
        "apiservice/v1.packages.operators.coreos.com",
        "--for=condition=Available=False",
        "--timeout=60s",
    ]);
    let expected = [
        "DR001 APIService/v1.packages.operators.coreos.com",
        "DR002 Namespace/dusk",
        "DR003 CustomResourceDefinition/roses.rose.example.com",
        "DR004 ValidatingWebhookConfiguration/vrose",
        "DR005 CustomResourceDefinition/roses.rose.example.com",
        "DR006 ClusterServiceVersion/tea-house.v1.1.0",
        "DR008 ClusterRole/rose",
        "DR008 Subscription/ivy",
        "DR009 Namespace/park",
        "DR010 Deployment/olm-operator",
    ];
    let (code, findings, document) = checkup(&script, "");
    assert_eq!((code, findings), (1, expected.map(str::to_owned).to_vec()), "{document:#}");

    // What is not readable is not reported as missing.
    let (_, findings, document) = checkup(&script, " --as reader");
    assert_eq!(findings, [expected[0]], "the condition of the APIService is readable: {document:#}");
    let unchecked = document["unchecked"].to_string();
    for code in ["DR002", "DR003", "DR004", "DR005", "DR006", "DR007", "DR008", "DR009", "DR010"] {
        assert!(unchecked.contains(code), "{code}: {unchecked}");
    }

    // The commands of the findings correct them.
    for code in ["DR001", "DR004", "DR005"] {
        let finding = document_of(&script, code);
        let command = finding["fix"]["command"].as_str().unwrap();
        let words: Vec<&str> = command.strip_prefix("kubectl ").unwrap().split(' ').collect();
        let words: Vec<&str> = words.into_iter().map(|word| word.trim_matches('\'')).collect();
        script.kubectl(&words);
    }
    let (_, findings, document) = checkup(&script, "");
    let left = findings.iter().filter(|line| ["DR001", "DR004", "DR005"].iter().any(|code| line.starts_with(code)));
    assert_eq!(left.count(), 0, "{document:#}");
}

/// Returns the finding of a rule.
fn document_of(script: &Script, code: &str) -> Value {
    let (_, _, document) = checkup(script, "");
    let findings = document["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["code"] == code).unwrap().clone()
}
