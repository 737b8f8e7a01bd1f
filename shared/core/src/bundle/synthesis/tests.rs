use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::bundle::File;

const METADATA: &str = "name: rose.v1.0.0
version: 1.0.0
minKubeVersion: 1.28.0
installModes:
- type: AllNamespaces
  supported: true
";

const OPERATOR: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: rose, namespace: garden, labels: {app: rose}}
spec:
  selector: {matchLabels: {app: rose}}
  template:
    metadata: {labels: {app: rose}}
    spec:
      serviceAccountName: rose
      containers:
      - {name: manager, image: example.com/rose, ports: [{name: webhook, containerPort: 9443}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: rose, namespace: garden}
";

fn metadata(text: &str) -> Metadata {
    Metadata::read(Some(&File::new(OLM_YAML, text.as_bytes())))
}

fn synthesis_of(manifests: &str) -> Synthesis {
    synthesis_with(manifests, METADATA)
}

fn synthesis_with(manifests: &str, olm_yaml: &str) -> Synthesis {
    let (manifests, findings) = read_manifests(&[File::new("manifests/all.yaml", manifests.as_bytes())]);
    assert_eq!(findings, []);
    synthesize(&manifests, &metadata(olm_yaml), &())
}

/// The findings as `code line`.
fn codes(synthesis: &Synthesis) -> Vec<String> {
    synthesis.findings.iter().map(|finding| format!("{} {}", finding.code, finding.line)).collect()
}

#[test]
fn a_deployment_becomes_the_install_strategy() {
    let synthesis = synthesis_of(OPERATOR);
    assert_eq!(codes(&synthesis), [""; 0]);
    let spec = &synthesis.csv["spec"]["install"]["spec"];
    assert_eq!(spec["deployments"][0]["name"], "rose");
    assert_eq!(spec["deployments"][0]["label"], json!({ "app": "rose" }));
    assert_eq!(spec["permissions"], json!([{ "serviceAccountName": "rose", "rules": [] }]));
    assert_eq!(synthesis.csv["metadata"]["annotations"]["operatorframework.io/suggested-namespace"], "garden");
    assert_eq!(synthesis.csv["metadata"]["name"], "rose.v1.0.0");
    assert_eq!(synthesis.objects, [Value::Null; 0]);
    assert!(synthesis.account.iter().all(|entry| entry.destinations.len() == 1), "{:?}", synthesis.account);
}

#[test]
fn rules_bound_to_the_account_become_permissions() {
    let rbac = "---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: rose}
rules:
- {apiGroups: [''], resources: [pods], verbs: [get]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: rose}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rose}
subjects: [{kind: ServiceAccount, name: rose, namespace: garden}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: viewer}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: [get]}]
";
    let synthesis = synthesis_of(&format!("{OPERATOR}{rbac}"));
    assert_eq!(codes(&synthesis), [""; 0]);
    let permissions = &synthesis.csv["spec"]["install"]["spec"]["clusterPermissions"];
    assert_eq!(permissions[0]["rules"].as_array().unwrap().len(), 2);
    let stay: Vec<&str> = synthesis.objects.iter().map(object::name).collect();
    assert_eq!(stay, ["viewer"], "wildcards are allowed in roles of no Deployment");
}

#[test]
fn required_apis_come_from_rules_and_their_kinds_from_olm_yaml() {
    let rbac = |annotation: &str| {
        format!(
            "{OPERATOR}---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: rose, namespace: garden}}
rules:
- {{apiGroups: [monitoring.example.com], resources: [probes, probes/status], verbs: [get]}}
- {{apiGroups: [apps, coordination.k8s.io], resources: [deployments], verbs: [get]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: rose, namespace: garden, annotations: {{{annotation}}}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: rose}}
subjects: [{{kind: ServiceAccount, name: rose, namespace: garden}}]
"
        )
    };
    assert_eq!(codes(&synthesis_of(&rbac(""))), ["unknown-kind 21"]);
    let optional = synthesis_of(&rbac("operators.operatorframework.io.bundle.dependency: optional"));
    assert_eq!(codes(&optional), [""; 0]);
    let listed = "requiredAPIs:\n- {group: monitoring.example.com, version: v1, kind: Probe}\n";
    let synthesis = synthesis_with(&rbac(""), &format!("{METADATA}{listed}"));
    assert_eq!(codes(&synthesis), [""; 0]);
    assert_eq!(
        synthesis.csv["spec"]["customresourcedefinitions"]["required"],
        json!([{ "name": "probes.monitoring.example.com", "version": "v1", "kind": "Probe" }])
    );
}

#[test]
fn wildcards_of_the_operator_are_refused() {
    let rbac = "---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: rose}
rules:
- {apiGroups: ['*'], resources: ['pods'], verbs: ['*']}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: rose}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rose}
subjects: [{kind: ServiceAccount, name: rose, namespace: garden}]
";
    assert_eq!(codes(&synthesis_of(&format!("{OPERATOR}{rbac}"))), ["wildcard-rule 21"]);
}

#[test]
fn webhooks_and_their_service_and_certificate_are_projected() {
    let webhook = "---
apiVersion: v1
kind: Service
metadata: {name: rose-webhook, namespace: garden}
spec: {selector: {app: rose}, ports: [{port: 443, targetPort: webhook}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: rose, annotations: {cert-manager.io/inject-ca-from: garden/rose}}
webhooks:
- name: check.rose.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {name: rose-webhook, namespace: garden, path: /check}}
  rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: rose, namespace: garden}
spec: {secretName: rose-tls, issuerRef: {name: rose}}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: rose, namespace: garden}
spec: {selfSigned: {}}
";
    let operator = OPERATOR.replace(
        "      containers:",
        "      volumes: [{name: tls, secret: {secretName: rose-tls}}]\n      containers:",
    );
    let synthesis = synthesis_of(&format!("{operator}{webhook}"));
    assert_eq!(codes(&synthesis), [""; 0]);
    assert_eq!(synthesis.objects, [Value::Null; 0]);
    assert_eq!(
        synthesis.csv["spec"]["webhookdefinitions"],
        json!([{
            "type": "ValidatingAdmissionWebhook", "generateName": "check.rose.example.com", "deploymentName": "rose",
            "containerPort": 443, "targetPort": 9443, "webhookPath": "/check", "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "failurePolicy": "Fail",
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] }],
        }])
    );
    let deployment = &synthesis.csv["spec"]["install"]["spec"]["deployments"][0];
    assert_eq!(deployment["spec"]["template"]["spec"]["volumes"][0]["secret"]["secretName"], "rose-service-cert");
}

#[test]
fn what_olm_cannot_carry_is_reported_and_nothing_is_lost() {
    let others = "---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: garden}
---
apiVersion: v1
kind: Namespace
metadata: {name: meadow}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: meadow}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: rose, namespace: garden}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent, namespace: garden}
";
    let synthesis = synthesis_of(&format!("{OPERATOR}{others}"));
    let found: BTreeSet<&str> = synthesis.findings.iter().map(|finding| finding.code).collect();
    let expected = ["duplicate-deployment", "duplicate-object", "other-namespace", "unsupported-kind"];
    assert_eq!(found, BTreeSet::from(expected), "{:?}", synthesis.findings);
    for entry in &synthesis.account {
        let has_finding = synthesis.findings.iter().any(|finding| finding.subject == entry.object);
        assert!(has_finding || !entry.destinations.is_empty(), "{entry:?}");
    }
}

#[test]
fn an_object_with_a_warning_stays_in_the_bundle() {
    let binding = "---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: agent}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: agent, namespace: garden}]
";
    let synthesis = synthesis_of(&format!("{OPERATOR}{binding}"));
    assert_eq!(codes(&synthesis), ["fixed-namespace 21"]);
    assert_eq!(synthesis.objects.iter().map(object::name).collect::<Vec<_>>(), ["agent"]);
}

#[test]
fn the_published_example_is_understood() {
    let published = "name: packageserver-v1.14.1
maturity: alpha
version: 0.14.1
minKubeVersion: 1.11.0
keywords: ['packagemanifests', 'olm', 'packages']
maintainers:
- name: Example
email: operators@example.com
provider:
name: Example
links:
- name: Package Server
url: https://example.com
installModes:
- type: AllNamespaces
  supported: true
icon: iVBORw0KGgo=
labels:
  operated-by: packageserver
";
    let synthesis = synthesis_with(OPERATOR, published);
    assert_eq!(codes(&synthesis), ["flat-olm-yaml 9"]);
    let spec = &synthesis.csv["spec"];
    assert_eq!(synthesis.csv["metadata"]["name"], "packageserver-v1.14.1");
    assert_eq!(spec["provider"], json!({ "name": "Example" }));
    assert_eq!(spec["maintainers"], json!([{ "name": "Example", "email": "operators@example.com" }]));
    assert_eq!(spec["links"], json!([{ "name": "Package Server", "url": "https://example.com" }]));
    assert_eq!(spec["icon"], json!([{ "base64data": "iVBORw0KGgo=", "mediatype": "image/png" }]));
}

#[test]
fn every_fault_of_olm_yaml_is_reported_at_its_line() {
    let faulty = "name: Rose\nversion: 1.0\ndisplayNam: Rose\ninstallModes:\n- type: Everywhere\n";
    let codes = codes(&synthesis_with(OPERATOR, faulty));
    assert_eq!(codes, ["field-value 1", "required-field 1", "field-type 2", "field-value 5", "unknown-field 3"]);
}

/// Prints what becomes of each folder of the test data: `cargo test -p olm-core plain_projects -- --nocapture`.
#[test]
fn plain_projects_are_synthesized_or_have_findings() {
    let Some(data) = crate::testing::data() else { return };
    let folders = std::fs::read_dir(data.join("plain")).unwrap();
    let mut folders: Vec<_> = folders.map(|f| f.unwrap().path()).filter(|p| p.is_dir()).collect();
    folders.sort();
    assert!(!folders.is_empty());
    for folder in folders {
        let mut names: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).filter(|p| p.is_file()).collect();
        names.sort();
        let files: Vec<_> = names
            .iter()
            .map(|p| File::new(p.file_name().unwrap().to_str().unwrap(), std::fs::read(p).unwrap()))
            .collect();
        let (manifests, unreadable) = read_manifests(&files);
        let synthesis = synthesize(&manifests, &metadata(METADATA), &());
        println!(
            "== {}: {} objects, {} unreadable, {} findings",
            folder.file_name().unwrap().to_str().unwrap(),
            manifests.len(),
            unreadable.len(),
            synthesis.findings.len()
        );
        for finding in unreadable.iter().chain(&synthesis.findings) {
            println!("  {} {} {finding}", finding.severity, finding.code);
        }
        for entry in &synthesis.account {
            let has_finding = synthesis.findings.iter().any(|finding| finding.subject == entry.object);
            assert!(has_finding || !entry.destinations.is_empty(), "{entry:?}");
        }
    }
}
