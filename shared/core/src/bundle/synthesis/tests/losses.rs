//! What OLM creates without, what it refuses, and what the cluster must have.

use super::*;

const SERVICE: &str = "---
apiVersion: v1
kind: Service
metadata: {name: rose-webhook, namespace: garden}
spec: {selector: {app: rose}, ports: [{port: 443, targetPort: webhook}]}
";

fn configuration(rule: &str) -> String {
    format!(
        "---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: rose}}
webhooks:
- name: check.rose.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {{service: {{name: rose-webhook, namespace: garden}}}}
  rules:
  - {{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}}
  - {rule}
"
    )
}

fn codes_of(manifests: &str) -> Vec<String> {
    codes(&synthesis_of(manifests)).into_iter().filter(|code| !code.starts_with("own-certificate")).collect()
}

#[test]
fn webhook_rules_that_olm_refuses_are_errors() {
    let rule = |groups: &str, resources: &str| {
        let rule =
            format!("{{apiGroups: [{groups}], apiVersions: ['*'], operations: ['*'], resources: [{resources}]}}");
        synthesis_of(&format!("{OPERATOR}{SERVICE}{}", configuration(&rule)))
    };
    for (groups, resources) in [
        ("'*'", "pods"),
        ("operators.coreos.com", "subscriptions"),
        ("admissionregistration.k8s.io", "'*'"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ] {
        let synthesis = rule(groups, resources);
        assert!(synthesis.has_errors(), "{groups} {resources}");
        assert_eq!(codes(&synthesis)[0], "invalid-webhook 32", "{groups} {resources}");
    }
    assert!(!rule("apps", "'*'").has_errors());
}

#[test]
fn definitions_of_a_removed_api_version_are_reported() {
    let definition = "---
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: roses.example.com}
spec: {group: example.com, version: v1, scope: Namespaced, names: {kind: Rose, plural: roses}}
";
    let manifests = format!("{OPERATOR}{definition}");
    let synthesis = synthesis_of(&manifests);
    assert_eq!(codes(&synthesis), ["removed-api 17"]);
    assert!(synthesis.has_errors());
    let old = synthesis_with(&manifests, &METADATA.replace("1.28.0", "1.16.0"));
    assert_eq!(codes(&old), ["removed-api 17"]);
    assert!(!old.has_errors(), "Kubernetes 1.16 serves it");
}

#[test]
fn objects_of_other_operators_and_missing_priority_classes_are_reported() {
    let monitors = "---
apiVersion: monitoring.example.com/v1
kind: ServiceMonitor
metadata: {name: rose, namespace: garden}
---
apiVersion: monitoring.example.com/v1
kind: ServiceMonitor
metadata: {name: thorn, namespace: garden}
";
    let manifests = format!("{OPERATOR}{monitors}");
    assert_eq!(codes(&synthesis_of(&manifests)), ["foreign-kind 18"], "once for each kind");
    let api = "{group: monitoring.example.com, version: v1, kind: ServiceMonitor}";
    assert_eq!(codes(&synthesis_with(&manifests, &format!("{METADATA}requiredAPIs: [{api}]\n"))), [""; 0]);
    let pods = |class: &str| {
        OPERATOR.replace("      containers:", &format!("      priorityClassName: {class}\n      containers:"))
    };
    assert_eq!(codes(&synthesis_of(&pods("garden"))), ["missing-priority-class 10"]);
    assert_eq!(codes(&synthesis_of(&pods("system-node-critical"))), [""; 0]);
    let class = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: garden}\nvalue: 1\n";
    assert_eq!(codes(&synthesis_of(&format!("{}{class}", pods("garden")))), [""; 0]);
}

#[test]
fn fields_of_a_service_that_olm_replaces_are_reported() {
    let rule = "{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}";
    let with = |from: &str, to: &str| {
        let service = SERVICE.replace(from, to);
        assert_ne!(service, SERVICE);
        let synthesis = synthesis_of(&format!("{OPERATOR}{service}{}", configuration(rule)));
        assert!(!synthesis.has_errors());
        let found = synthesis.findings.into_iter().filter(|finding| finding.code == "service-field");
        found.map(|finding| finding.message).collect::<Vec<_>>()
    };
    let lost = |fields: &str| vec![format!("OLM creates another Service in its place, without {fields}")];
    assert_eq!(with("spec: {", "spec: {type: LoadBalancer, "), lost("spec.type"));
    assert_eq!(with("spec: {", "spec: {sessionAffinity: ClientIP, "), lost("spec.sessionAffinity"));
    assert_eq!(with("spec: {", "spec: {clusterIP: None, "), lost("spec.clusterIP"));
    assert_eq!(
        with("namespace: garden}", "namespace: garden, labels: {a: b}, annotations: {c: d}}"),
        lost("metadata.labels, metadata.annotations")
    );
    let defaults = "spec: {type: ClusterIP, sessionAffinity: None, publishNotReadyAddresses: false, externalIPs: [], ";
    assert_eq!(with("spec: {", defaults), [""; 0]);
}

#[test]
fn names_of_services_that_olm_replaces_are_reported() {
    let rule = "{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}";
    let lookups = |container: &str| {
        let operator = OPERATOR.replace("image: example.com/rose,", &format!("image: example.com/rose, {container}"));
        let codes = codes_of(&format!("{operator}{SERVICE}{}", configuration(rule)));
        codes.iter().filter(|code| code.starts_with("service-lookup")).count()
    };
    assert_eq!(lookups("args: ['--url=https://rose-webhook.garden.svc:443/check'],"), 1);
    assert_eq!(lookups("args: ['--host=rose-webhook.garden'],"), 1);
    assert_eq!(lookups("args: ['--host=rose-webhook.$(NAMESPACE).svc'],"), 1);
    assert_eq!(lookups("env: [{name: SERVICE_NAME, value: rose-webhook}],"), 1);
    assert_eq!(lookups("args: ['--service=rose-webhook'],"), 1);
    assert_eq!(lookups("args: [rose-webhook, '--domain=rose-webhook.example.com', my-rose-webhook.garden.svc],"), 0);
    // A Service that stays in the bundle has its name.
    let both = SERVICE.replace("ports: [", "ports: [{port: 8080}, ");
    let operator =
        OPERATOR.replace("image: example.com/rose,", "image: example.com/rose, args: [rose-webhook.garden],");
    assert_eq!(codes_of(&format!("{operator}{both}{}", configuration(rule))), [""; 0]);
}

#[test]
fn labels_of_configurations_and_secrets_of_accounts_are_reported() {
    let rule = "{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}";
    let labelled = configuration(rule).replace(
        "metadata: {name: rose}",
        "metadata: {name: rose, labels: {app: rose}, annotations: {note: x, cert-manager.io/inject-ca-from: garden/rose}}",
    );
    let found = codes_of(&format!("{OPERATOR}{SERVICE}{labelled}"));
    assert_eq!(found, ["annotation-not-carried 24", "label-not-carried 24"]);
    let account = OPERATOR.replace("kind: ServiceAccount\n", "kind: ServiceAccount\nsecrets: [{name: token}]\n");
    let synthesis = synthesis_of(&account);
    assert_eq!(codes(&synthesis), ["account-secrets 15"]);
    assert!(!synthesis.has_errors());
}
