mod losses;
mod olm_yaml;
mod surroundings;

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::api::names::guess_plural;
use crate::api::object::Gvk;
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
    synthesize(&manifests, &metadata(olm_yaml), &KnownApis::default(), Format::Plain)
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
    let administrator =
        rbac.split_once("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding").unwrap().1;
    let administrator =
        administrator.replace("kind: ClusterRole, name: rose", "kind: ClusterRole, name: cluster-admin");
    let bound =
        format!("{OPERATOR}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding{administrator}");
    assert_eq!(
        codes(&synthesis_of(&bound)),
        ["wildcard-rule 20"; 2],
        "Kubernetes' own role: at its name in the binding"
    );
    // The author of a registry+v1 bundle states the required APIs.
    let (manifests, _) = read_manifests(&[File::new("manifests/all.yaml", bound.as_bytes())]);
    let registry = synthesize(&manifests, &metadata(METADATA), &KnownApis::default(), Format::Registry);
    assert!(!registry.has_errors(), "{:?}", registry.findings);
    assert_eq!(
        registry.csv["spec"]["install"]["spec"]["clusterPermissions"][0]["rules"][0],
        json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] })
    );
}

#[test]
fn a_binding_with_other_subjects_stays_in_the_bundle_for_them() {
    let rbac = "---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: rose}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: rose}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rose}
subjects: [{kind: ServiceAccount, name: rose, namespace: garden}, {kind: Group, name: gardeners}]
";
    let synthesis = synthesis_of(&format!("{OPERATOR}{rbac}"));
    assert_eq!(codes(&synthesis), [""; 0]);
    assert_eq!(synthesis.objects.iter().map(object::kind).collect::<Vec<_>>(), ["ClusterRole", "ClusterRoleBinding"]);
    assert_eq!(synthesis.objects[1]["subjects"], json!([{ "kind": "Group", "name": "gardeners" }]));
    let permission = &synthesis.csv["spec"]["install"]["spec"]["clusterPermissions"][0];
    assert_eq!(permission["rules"][0]["resources"], json!(["pods"]));
    let binding = synthesis.account.iter().find(|entry| entry.object == "ClusterRoleBinding/rose").unwrap();
    assert_eq!(binding.destinations.len(), 2, "{binding:?}");
}

#[test]
fn an_aggregated_role_is_granted_with_the_rules_of_the_roles_that_it_selects() {
    let rbac = |label: &str| {
        format!(
            "{OPERATOR}---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: rose}}
aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{part-of: rose}}}}]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: petals, labels: {{part-of: {label}}}}}
rules: [{{apiGroups: [''], resources: [pods], verbs: [get]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: rose}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rose}}
subjects: [{{kind: ServiceAccount, name: rose, namespace: garden}}]
"
        )
    };
    let synthesis = synthesis_of(&rbac("rose"));
    assert!(!synthesis.has_errors());
    assert_eq!(codes(&synthesis), ["aggregated-role 20"]);
    let permission = &synthesis.csv["spec"]["install"]["spec"]["clusterPermissions"][0];
    assert_eq!(permission["rules"][0]["resources"], json!(["pods"]));
    assert!(synthesis_of(&rbac("tulip")).has_errors(), "it selects nothing");
}

#[test]
fn an_optional_api_is_not_required() {
    let rbac = "---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: rose}
rules:
- {apiGroups: [monitoring.example.com], resources: [probes], verbs: [get]}
- {apiGroups: [metrics.example.com], resources: [gauges, dials], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: rose}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rose}
subjects: [{kind: ServiceAccount, name: rose, namespace: garden}]
";
    let manifests = format!("{OPERATOR}{rbac}");
    let optional = |list: &str| codes(&synthesis_with(&manifests, &format!("{METADATA}optionalAPIs:\n{list}")));
    assert_eq!(optional("- {group: monitoring.example.com}\n"), ["unknown-kind 22"; 2]);
    let gauges = "- {group: monitoring.example.com}\n- {group: metrics.example.com, resource: gauges}\n";
    assert_eq!(optional(gauges), ["unknown-kind 22"]);
    assert_eq!(optional(&format!("{gauges}- {{group: metrics.example.com, resource: dials}}\n")), [""; 0]);
    // Known to a cluster or a catalog.
    let mut known = KnownApis::default();
    for version in ["v1alpha1", "v1", "v1beta2"] {
        known.add(Gvk::new("metrics.example.com", version, "Dial"), &guess_plural("Dial"));
    }
    let (manifests, _) = read_manifests(&[File::new("manifests/all.yaml", manifests.as_bytes())]);
    let olm_yaml = metadata(&format!("{METADATA}optionalAPIs:\n{gauges}"));
    let synthesis = synthesize(&manifests, &olm_yaml, &known, Format::Plain);
    assert_eq!(codes(&synthesis), [""; 0]);
    assert_eq!(
        synthesis.csv["spec"]["customresourcedefinitions"]["required"],
        json!([{ "name": "dials.metrics.example.com", "version": "v1", "kind": "Dial" }])
    );
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
fn two_webhooks_of_one_name_are_told_apart() {
    let webhook = |kind: &str| {
        format!(
            "---
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}
metadata: {{name: rose}}
webhooks:
- name: rose.example.com
  clientConfig: {{service: {{name: rose-webhook, namespace: garden}}}}
"
        )
    };
    let service = "---
apiVersion: v1
kind: Service
metadata: {name: rose-webhook, namespace: garden}
spec: {selector: {app: rose}, ports: [{port: 443, targetPort: webhook}]}
";
    let both = [webhook("ValidatingWebhookConfiguration"), webhook("MutatingWebhookConfiguration")].concat();
    let synthesis = synthesis_of(&format!("{OPERATOR}{service}{both}"));
    assert_eq!(codes(&synthesis), ["own-certificate 8", "renamed-webhook 26"]);
    let names: Vec<_> = list_of_names(&synthesis.csv["spec"]["webhookdefinitions"]);
    assert_eq!(names, ["rose.example.com", "validating.rose.example.com"]);
}

fn list_of_names(webhooks: &Value) -> Vec<&str> {
    webhooks.as_array().unwrap().iter().map(|webhook| webhook["generateName"].as_str().unwrap()).collect()
}

#[test]
fn versions_that_are_not_served_are_not_provided() {
    let definition = "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: roses.example.com}
spec:
  group: example.com
  names: {kind: Rose, plural: roses}
  versions: [{name: v1, served: true}, {name: v1alpha1, served: false}]
";
    let synthesis = synthesis_of(&format!("{OPERATOR}{definition}"));
    let owned = &synthesis.csv["spec"]["customresourcedefinitions"]["owned"];
    assert_eq!(owned, &json!([{ "name": "roses.example.com", "version": "v1", "kind": "Rose" }]));
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
apiVersion: apps/v1
kind: Deployment
metadata: {name: patch, namespace: garden}
spec: {replicas: 2}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent, namespace: garden}
";
    let synthesis = synthesis_of(&format!("{OPERATOR}{others}"));
    let found: BTreeSet<&str> = synthesis.findings.iter().map(|finding| finding.code).collect();
    let expected =
        ["duplicate-deployment", "duplicate-object", "invalid-deployment", "other-namespace", "unsupported-kind"];
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
fn many_warnings_hide_no_error() {
    let annotations: String = (0..1_100).map(|n| format!("    note-{n}: x\n")).collect();
    let operator = OPERATOR.replace("labels: {app: rose}}\nspec:", "labels: {app: rose}, annotations: {A}}\nspec:");
    let operator = operator.replacen(
        "metadata: {name: rose, namespace: garden, labels: {app: rose}, annotations: {A}}",
        &format!("metadata:\n  name: rose\n  namespace: garden\n  annotations:\n{annotations}"),
        1,
    );
    let lost = "---\napiVersion: example.com/v1\nkind: Foo\nmetadata: {name: foo}\n";
    let synthesis = synthesis_of(&format!("{operator}{lost}"));
    assert!(synthesis.has_errors());
    assert!(codes(&synthesis).iter().any(|code| code.starts_with("too-many-findings")));
}

#[test]
fn a_list_with_too_many_items_is_reported() {
    let items: String =
        (0..5_100).map(|n| format!("- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c{n}}}}}\n")).collect();
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{items}");
    let (_, findings) = read_manifests(&[File::new("manifests/all.yaml", list.as_bytes())]);
    assert_eq!(findings.iter().map(|finding| finding.code).collect::<Vec<_>>(), ["too-many-objects"]);
}

#[test]
fn values_of_wrong_types_do_not_panic() {
    let definition = "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: roses.example.com
  annotations: {operators.operatorframework.io.bundle.descriptors: '[spec.size]'}
spec: {group: example.com, names: {kind: Rose, plural: roses}, versions: [{name: v1, served: true}]}
";
    drop(synthesis_of(&format!("{OPERATOR}{definition}")));
    let synthesis = synthesis_with(OPERATOR, &format!("{METADATA}maintainers: [bob]\nemail: x@example.com\n"));
    assert!(codes(&synthesis).contains(&"field-type 7".to_owned()), "{:?}", codes(&synthesis));
}

/// A role of another namespace, an invalid reference, or an incomplete subject grants nothing.
#[test]
fn only_what_the_api_server_would_grant_is_granted() {
    let role = |namespace: &str, verb: &str| {
        format!(
            "---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: r, namespace: {namespace}}}
rules: [{{apiGroups: [''], resources: [secrets], verbs: [{verb}]}}]
"
        )
    };
    let binding = |kind: &str, role: &str, subject: &str| {
        format!(
            "---
apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}
metadata: {{name: b, namespace: garden}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role}, name: r}}
subjects: [{{kind: ServiceAccount, name: rose{subject}}}]
"
        )
    };
    let home = ", namespace: garden";
    let roles = [role("admin", "delete"), role("garden", "get")].concat();
    let granted = synthesis_of(&format!("{OPERATOR}{roles}{}", binding("RoleBinding", "Role", home)));
    let permissions = &granted.csv["spec"]["install"]["spec"]["permissions"];
    assert_eq!(permissions[0]["rules"][0]["verbs"], json!(["get"]));
    for (kind, role, subject) in [
        ("ClusterRoleBinding", "Role", home),
        ("ClusterRoleBinding", "Foo", home),
        ("ClusterRoleBinding", "ClusterRole", ""),
        ("RoleBinding", "Foo", home),
    ] {
        let synthesis = synthesis_of(&format!("{OPERATOR}{roles}{}", binding(kind, role, subject)));
        assert!(codes(&synthesis).iter().any(|code| code.starts_with("invalid-binding")), "{kind} {role}");
    }
    // Without a namespace of the Deployment, the namespaces of the permissions state which one it is, if they agree.
    let operator = OPERATOR.replace(", namespace: garden", "");
    let synthesis = synthesis_of(&format!("{operator}{roles}{}", binding("RoleBinding", "Role", home)));
    assert!(codes(&synthesis).iter().any(|code| code.starts_with("ambiguous-namespace")));
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
        let synthesis = synthesize(&manifests, &metadata(METADATA), &KnownApis::default(), Format::Registry);
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

#[test]
fn annotations_that_state_nothing_are_reported() {
    const PREFIX: &str = "operators.operatorframework.io.bundle.";
    let with = |annotation: &str| {
        let annotated = format!("labels: {{app: rose}}, annotations: {{{PREFIX}{annotation}}}}}");
        codes(&synthesis_of(&OPERATOR.replacen("labels: {app: rose}}", &annotated, 1)))
    };
    assert_eq!(with("provider: Example"), [""; 0]);
    assert_eq!(with("keywords: 'garden, rose'"), [""; 0]);
    for (annotation, code) in [
        ("links: '{bad'", "field-type 3"),
        ("provider: '{name: A, url: [}'", "field-type 3"),
        ("links: a", "field-type 3"),
        ("bogus: a", "unknown-annotation 3"),
        ("displayname: a", "unknown-annotation 3"),
    ] {
        assert_eq!(with(annotation), [code], "{annotation}");
    }
}

#[test]
fn numbers_that_json_does_not_have_are_errors() {
    for number in [".inf", "-.inf", ".nan"] {
        let manifest = OPERATOR.replacen("spec:\n", &format!("spec:\n  replicas: {number}\n"), 1);
        let (_, findings) = read_manifests(&[File::new("manifests/all.yaml", manifest.as_bytes())]);
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert!(messages.iter().any(|message| message.contains("infinity and NaN")), "{number}: {messages:?}");
    }
}
