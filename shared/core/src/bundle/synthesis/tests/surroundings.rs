//! What manifests expect of a cluster, and OLM does in another way: APIs of extensions, names and certificates that it generates.

use super::*;

#[test]
fn extension_apis_of_groups_that_look_native_are_reported() {
    let rbac = |group: &str| {
        format!(
            "{OPERATOR}---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: rose}}
rules: [{{apiGroups: [{group}], resources: [gateways], verbs: [get]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: rose}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rose}}
subjects: [{{kind: ServiceAccount, name: rose, namespace: garden}}]
"
        )
    };
    for group in ["gateway.networking.k8s.io", "snapshot.storage.k8s.io", "metrics.k8s.io", "policy.networking.k8s.io"]
    {
        let synthesis = synthesis_of(&rbac(group));
        assert_eq!(codes(&synthesis), ["extension-api 20"], "{group}");
        assert!(!synthesis.has_errors(), "the group counts as native");
        let gvk = format!("{{group: {group}, version: v1, kind: Gateway, resource: gateways}}");
        let declared = synthesis_with(&rbac(group), &format!("{METADATA}requiredAPIs: [{gvk}]\n"));
        assert_eq!(codes(&declared), [""; 0], "{group}");
        assert_eq!(
            declared.csv["spec"]["customresourcedefinitions"]["required"][0]["name"],
            format!("gateways.{group}")
        );
        let optional = synthesis_with(&rbac(group), &format!("{METADATA}optionalAPIs: [{{group: {group}}}]\n"));
        assert_eq!(codes(&optional), [""; 0], "{group}");
    }
    for group in ["networking.k8s.io", "storage.k8s.io", "flowcontrol.apiserver.k8s.io", "resource.k8s.io"] {
        assert_eq!(codes(&synthesis_of(&rbac(group))), [""; 0], "{group}");
    }
}

const WEBHOOKS: &str = "---
apiVersion: v1
kind: Service
metadata: {name: webhooks, namespace: garden}
spec: {selector: {app: rose}, ports: [{port: 443, targetPort: webhook}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: rose-validation}
webhooks:
- name: rose.example.com
  clientConfig: {service: {name: webhooks, namespace: garden}}
  admissionReviewVersions: [v1]
  sideEffects: None
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: rose, namespace: garden}
spec: {secretName: rose-cert, issuerRef: {name: rose}}
";

/// Returns the manifests of an operator that serves webhooks, with more fields of its container.
fn server(container: &str) -> String {
    let operator =
        OPERATOR.replace("image: example.com/rose,", &format!("image: example.com/rose, {container}")).replace(
            "      containers:",
            "      volumes: [{name: cert, secret: {secretName: rose-cert}}]\n      containers:",
        );
    format!("{operator}{WEBHOOKS}")
}

#[test]
fn operators_that_look_up_webhook_configurations_by_name_are_reported() {
    let rbac = |resource: &str, name: &str| {
        format!(
            "---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: rose}}
rules: [{{apiGroups: [admissionregistration.k8s.io], resources: [{resource}], resourceNames: [{name}], verbs: [update]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: rose}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rose}}
subjects: [{{kind: ServiceAccount, name: rose, namespace: garden}}]
"
        )
    };
    let lookups = |manifests: &str| {
        codes(&synthesis_of(manifests)).into_iter().filter(|code| code.starts_with("webhook-lookup")).count()
    };
    assert_eq!(codes(&synthesis_of(&server(""))), [""; 0]);
    assert_eq!(lookups(&server("args: [--configuration=rose-validation],")), 1);
    assert_eq!(lookups(&server("env: [{name: CONFIGURATION, value: rose-validation}],")), 1);
    assert_eq!(lookups(&server("args: [--other=rose-validation-2, --name=my-rose-validation],")), 0);
    let resource = "validatingwebhookconfigurations";
    assert_eq!(lookups(&format!("{}{}", server(""), rbac(resource, "rose-validation"))), 1);
    assert_eq!(lookups(&format!("{}{}", server(""), rbac(resource, "other"))), 0);
    assert_eq!(lookups(&format!("{}{}", server(""), rbac("mutatingwebhookconfigurations", "rose-validation"))), 0);
    // The name of other objects, too.
    let named = |container: &str| server(container).replace("rose-validation", "rose");
    assert_eq!(lookups(&named("args: [--name=rose],")), 0);
    assert_eq!(lookups(&named("args: [--webhook-configuration=rose],")), 1);
}

#[test]
fn a_certificate_that_is_shared_with_a_deployment_that_serves_nothing_is_reported() {
    let second = |volume: &str| {
        format!(
            "{}---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: thorn, namespace: garden}}
spec:
  selector: {{matchLabels: {{app: thorn}}}}
  template:
    metadata: {{labels: {{app: thorn}}}}
    spec:
      serviceAccountName: rose
      volumes: [{{name: cert, {volume}}}]
      containers: [{{name: thorn, image: example.com/thorn}}]
",
            server("")
        )
    };
    for volume in ["secret: {secretName: rose-cert}", "projected: {sources: [{secret: {name: rose-cert}}]}"] {
        let synthesis = synthesis_of(&second(volume));
        let [finding] = &synthesis.findings[..] else { panic!("{:?}", synthesis.findings) };
        assert_eq!((finding.code, finding.subject.as_str()), ("shared-certificate", "Deployment/garden/thorn"));
        assert!(finding.hint.contains("rose-service-cert"), "{finding:?}");
    }
    for volume in ["secret: {secretName: rose-service-cert}", "secret: {secretName: other}", "emptyDir: {}"] {
        assert_eq!(codes(&synthesis_of(&second(volume))), [""; 0], "{volume}");
    }
}

/// An operator that serves an API, with a volume of its own.
fn serving_operator(volume: &str, version_priority: i64) -> Synthesis {
    let operator = OPERATOR
        .replace(
            "      containers:",
            &format!(
                "      volumes: [{{name: {volume}, secret: {{secretName: own, optional: true}}}}]\n      containers:"
            ),
        )
        .replace(
            "image: example.com/rose,",
            &format!("image: example.com/rose, volumeMounts: [{{name: {volume}, mountPath: /own}}],"),
        );
    let api = format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: scents, namespace: garden}}
spec: {{selector: {{app: rose}}, ports: [{{port: 443, targetPort: webhook}}]}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1.scents.example.com}}
spec:
  group: scents.example.com
  version: v1
  groupPriorityMinimum: 2000
  versionPriority: {version_priority}
  service: {{name: scents, namespace: garden}}
"
    );
    let apis = "apis: [{group: scents.example.com, version: v1, kind: Scent, resource: scents}]\n";
    synthesis_with(&format!("{operator}{api}"), &format!("{METADATA}{apis}"))
}

#[test]
fn priorities_of_apis_are_those_of_olm() {
    assert_eq!(codes(&serving_operator("own", 15)), ["own-certificate 8"]);
    let other = serving_operator("own", 20);
    assert_eq!(codes(&other), ["own-certificate 8", "api-service-priority 30"]);
    assert_eq!(other.findings[1].message, "OLM creates APIServices with versionPriority 15");
}

#[test]
fn volumes_with_the_names_of_certificates_are_reported() {
    for (name, path) in [
        ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs"),
        ("apiservice-cert", "/apiserver.local.config/certificates"),
    ] {
        let synthesis = serving_operator(name, 15);
        assert_eq!(codes(&synthesis), ["own-certificate 8", "replaced-volume 10"]);
        let message = format!("OLM replaces volume {name} with its certificate, and mounts it at {path} only");
        assert_eq!(synthesis.findings[1].message, message);
    }
}
