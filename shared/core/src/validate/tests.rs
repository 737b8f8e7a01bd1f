mod metadata;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;
use crate::finding::Severity;
use crate::yaml;

const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: rose
  operators.operatorframework.io.bundle.channels.v1: stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
";

/// Returns a ClusterServiceVersion without findings.
fn csv() -> Value {
    let example = json!([{ "apiVersion": "garden.example.com/v1", "kind": "Rose", "metadata": { "name": "red" } }]);
    let mode = |mode: &str, supported: bool| json!({ "type": mode, "supported": supported });
    let container =
        json!({ "name": "manager", "image": "example.com/rose:1", "resources": { "requests": { "cpu": "10m" } } });
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": "rose.v1.1.0", "annotations": {
            "alm-examples": example.to_string(), "capabilities": "Basic Install", "categories": "Database",
        }},
        "spec": {
            "displayName": "Rose", "description": "Grows roses.", "version": "1.1.0", "minKubeVersion": "1.25.0",
            "replaces": "rose.v1.0.0", "maturity": "alpha", "provider": { "name": "Garden" },
            "icon": [{ "base64data": "PHN2Zy8+", "mediatype": "image/svg+xml" }],
            "maintainers": [{ "name": "Jane", "email": "jane@example.com" }],
            "links": [{ "name": "Home", "url": "https://example.com" }],
            "installModes": [
                mode("OwnNamespace", true), mode("SingleNamespace", true),
                mode("MultiNamespace", false), mode("AllNamespaces", true),
            ],
            "customresourcedefinitions": { "owned": [
                { "name": "roses.garden.example.com", "version": "v1", "kind": "Rose", "description": "A rose." },
            ]},
            "install": { "strategy": "deployment", "spec": {
                "deployments": [{ "name": "rose", "spec": {
                    "replicas": 1,
                    "selector": { "matchLabels": { "app": "rose" } },
                    "template": {
                        "metadata": { "labels": { "app": "rose" } },
                        "spec": { "serviceAccountName": "rose", "containers": [container] },
                    },
                }}],
                "permissions": [{ "serviceAccountName": "rose", "rules": [
                    { "apiGroups": ["garden.example.com"], "resources": ["roses"], "verbs": ["get", "list"] },
                ]}],
            }},
        },
    })
}

fn crd() -> Value {
    let size = json!({ "type": "object", "properties": { "size": { "type": "integer" } } });
    let schema = json!({ "type": "object", "properties": { "spec": size } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "roses.garden.example.com" },
        "spec": {
            "group": "garden.example.com", "scope": "Namespaced",
            "names": { "kind": "Rose", "listKind": "RoseList", "plural": "roses", "singular": "rose" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    })
}

fn object(api_version: &str, kind: &str, content: Value) -> Value {
    let mut object = content;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    if object["metadata"].is_null() {
        object["metadata"] = json!({ "name": "thorn" });
    }
    object
}

/// A bundle that a case changes.
struct Bundle {
    csv: Value,
    crd: Value,
    annotations: String,
    objects: Vec<Value>,
    files: Vec<(&'static str, &'static str)>,
    previous: Option<(Value, Value)>,
    /// The platforms of all images; `None` if they cannot be inspected.
    platforms: Option<&'static [&'static str]>,
}

impl Bundle {
    fn new() -> Self {
        let annotations = ANNOTATIONS.to_owned();
        let (csv, crd, platforms) = (csv(), crd(), Some(&["linux/amd64"][..]));
        Self { csv, crd, annotations, objects: Vec::new(), files: Vec::new(), previous: None, platforms }
    }

    fn files(&self) -> Vec<File> {
        let text = |value: &Value| yaml::to_string(value).unwrap().into_bytes();
        let mut files = Vec::new();
        if !self.annotations.is_empty() {
            files.push(File::new("b/metadata/annotations.yaml", self.annotations.clone().into_bytes()));
        }
        for (name, object) in [("csv", &self.csv), ("crd", &self.crd)] {
            if !object.is_null() {
                files.push(File::new(format!("b/manifests/{name}.yaml"), text(object)));
            }
        }
        for (n, object) in self.objects.iter().enumerate() {
            files.push(File::new(format!("b/manifests/object-{n}.yaml"), text(object)));
        }
        files.extend(self.files.iter().map(|(name, text)| File::new(format!("b/{name}"), text.as_bytes())));
        files
    }

    fn validate(&self, selection: Selection) -> Vec<Finding> {
        let options = Options { selection, ..Options::default() };
        validate("b", &self.files(), &options, &mut Recorded(self)).findings
    }
}

/// The previous version of a case, and the platforms of its images.
struct Recorded<'b>(&'b Bundle);

impl Surroundings for Recorded<'_> {
    fn previous(&mut self, _: &Identity) -> Option<Previous> {
        let (csv, crd) = self.0.previous.clone()?;
        let mut previous = Previous::of_objects("the catalog", "rose", "stable", vec![csv, crd])?;
        previous.siblings = Some(BTreeSet::from(["rose.v1.0.0".to_owned()]));
        Some(previous)
    }

    fn platforms(&mut self, images: &BTreeSet<&str>) -> BTreeMap<String, Result<BTreeSet<Platform>, String>> {
        let platform = |name: &&str| name.split_once('/').map(|(os, arch)| Platform::new(os, arch)).unwrap();
        let platforms = || self.0.platforms.map(|names| names.iter().map(platform).collect());
        images.iter().map(|image| ((*image).to_owned(), platforms().ok_or_else(|| "not found".to_owned()))).collect()
    }
}

fn declare(bundle: &mut Bundle, architectures: &[&str]) {
    let label = |name: &&str| (format!("operatorframework.io/arch.{name}"), json!("supported"));
    bundle.csv["metadata"]["labels"] = architectures.iter().map(label).collect::<serde_json::Map<_, _>>().into();
}

fn run_only_on(bundle: &mut Bundle, architecture: &str) {
    let expression = json!({ "key": "kubernetes.io/arch", "operator": "In", "values": [architecture] });
    deployment(bundle)["spec"]["template"]["spec"]["affinity"] = json!({ "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchExpressions": [expression] }] },
    } });
}

type Change = fn(&mut Bundle);

fn deployment(bundle: &mut Bundle) -> &mut Value {
    &mut bundle.csv["spec"]["install"]["spec"]["deployments"][0]
}

fn rules(bundle: &mut Bundle) -> &mut Value {
    &mut bundle.csv["spec"]["install"]["spec"]["permissions"][0]["rules"]
}

fn webhook(kind: &str) -> Value {
    json!({
        "type": kind, "generateName": "vrose.example.com", "deploymentName": "rose", "containerPort": 443,
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
        "rules": [{ "apiGroups": ["garden.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["roses"] }],
    })
}

fn with_webhook(bundle: &mut Bundle, change: impl FnOnce(&mut Value)) {
    let mut webhook = webhook("ValidatingAdmissionWebhook");
    change(&mut webhook);
    bundle.csv["spec"]["webhookdefinitions"] = json!([webhook]);
}

fn only_all_namespaces(bundle: &mut Bundle) {
    bundle.csv["spec"]["installModes"] = json!([{ "type": "AllNamespaces", "supported": true }]);
}

/// Sets the previous version: this one with another name and version, and this change.
fn after(bundle: &mut Bundle, change: impl FnOnce(&mut Value, &mut Value)) {
    let (mut old, mut definition) = (bundle.csv.clone(), bundle.crd.clone());
    old["metadata"]["name"] = "rose.v1.0.0".into();
    old["spec"]["version"] = "1.0.0".into();
    change(&mut old, &mut definition);
    bundle.previous = Some((old, definition));
}

/// For each rule a change of the bundle after which it reports something.
const CASES: &[(&str, Change)] = &[
    ("unreadable-file", |b| b.files.push(("manifests/x.yaml", "a: [1\nb: 2\n"))),
    ("no-manifests", |b| (b.csv, b.crd) = (Value::Null, Value::Null)),
    ("no-metadata", |b| b.annotations.clear()),
    ("no-annotations", |b| b.annotations = "dependencies: []\n".to_owned()),
    ("missing-annotation", |b| b.annotations = b.annotations.replace("package.v1: rose", "other: rose")),
    ("wrong-annotation", |b| b.annotations = b.annotations.replace("registry+v1", "helm")),
    ("invalid-dependency", |b| {
        let text = "dependencies:\n- type: olm.package\n  value: {packageName: tea, version: high}\n";
        b.files.push(("metadata/dependencies.yaml", text));
    }),
    ("no-csv", |b| b.csv = Value::Null),
    ("several-csvs", |b| b.objects.push(csv())),
    ("unexpected-file", |b| b.files.push(("manifests/sub/", ""))),
    ("later-documents", |b| {
        b.files.push(("manifests/x.yaml", "kind: Secret\napiVersion: v1\nmetadata: {name: a}\n---\na: 1\n"));
    }),
    ("no-object", |b| b.files.push(("manifests/x.yaml", "- a\n"))),
    ("unsupported-kind", |b| b.objects.push(object("apps/v1", "DaemonSet", json!({})))),
    ("unparsable-object", |b| b.crd["spec"]["versions"] = json!({ "name": "v1" })),
    ("repeated-key", |b| {
        b.files.push(("manifests/x.yaml", "apiVersion: v1\nkind: Secret\nkind: Secret\nmetadata: {name: a}\n"));
    }),
    ("invalid-name", |b| b.csv["metadata"]["name"] = "Rose.v1.1.0".into()),
    ("no-csv-annotations", |b| b.csv["metadata"]["annotations"] = Value::Null),
    ("no-examples", |b| b.csv["metadata"]["annotations"]["alm-examples"] = Value::Null),
    ("two-examples", |b| b.csv["metadata"]["annotations"]["olm.examples"] = "[]".into()),
    ("invalid-examples", |b| b.csv["metadata"]["annotations"]["alm-examples"] = "[}".into()),
    ("unparsable-crd-name", |b| b.csv["spec"]["customresourcedefinitions"]["owned"][0]["name"] = "roses".into()),
    ("example-of-others", |b| {
        let example = "[{\"apiVersion\":\"tea.example.com/v1\",\"kind\":\"Cup\"}]";
        b.csv["metadata"]["annotations"]["alm-examples"] = example.into();
    }),
    ("api-without-example", |b| b.csv["metadata"]["annotations"]["alm-examples"] = "[]".into()),
    ("no-install-modes", |b| b.csv["spec"]["installModes"] = json!([])),
    ("no-supported-mode", |b| b.csv["spec"]["installModes"] = json!([{ "type": "AllNamespaces", "supported": false }])),
    ("conversion-modes", |b| with_webhook(b, |w| w["conversionCRDs"] = json!(["roses.garden.example.com"]))),
    ("no-min-kube-version", |b| b.csv["spec"]["minKubeVersion"] = Value::Null),
    ("invalid-min-kube-version", |b| b.csv["spec"]["minKubeVersion"] = "1.25".into()),
    ("required-field", |b| b.csv["spec"]["displayName"] = Value::Null),
    ("annotation-case", |b| b.csv["metadata"]["annotations"]["olm.skiprange"] = "<1.1.0".into()),
    ("properties-annotation", |b| b.csv["metadata"]["annotations"]["olm.properties"] = "[]".into()),
    ("no-gvk", |b| b.csv["apiVersion"] = Value::Null),
    ("invalid-version", |b| b.csv["spec"]["version"] = "one".into()),
    ("duplicate-crd", |b| b.objects.push(crd())),
    ("missing-crd", |b| b.crd = Value::Null),
    ("undeclared-crd", |b| b.csv["spec"]["customresourcedefinitions"]["owned"] = json!([])),
    ("service-account", |b| b.objects.push(object("v1", "ServiceAccount", json!({ "metadata": { "name": "rose" } })))),
    ("release-name", |b| b.csv["spec"]["release"] = "2".into()),
    ("related-image", |b| b.csv["spec"]["relatedImages"] = json!([{ "name": "a", "image": "Rose:1" }])),
    ("invalid-crd", |b| b.crd["spec"]["scope"] = Value::Null),
    ("no-deployment", |b| b.csv["spec"]["install"]["spec"]["deployments"] = Value::Null),
    ("no-resource-requests", |b| deployment(b)["spec"]["template"]["spec"]["containers"][0]["resources"] = Value::Null),
    ("no-crd-description", |b| b.csv["spec"]["customresourcedefinitions"]["owned"][0]["description"] = Value::Null),
    ("channel-name", |b| b.annotations = b.annotations.replace("channels.v1: stable", "channels.v1: alpha")),
    ("creates-crds", |b| {
        let rule = json!({ "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["create"] });
        *rules(b) = json!([rule]);
    }),
    ("name-without-version", |b| b.csv["metadata"]["name"] = "rose.v1".into()),
    ("name-convention", |b| b.csv["metadata"]["name"] = "rose-1.1.0".into()),
    ("provider", |b| b.csv["spec"]["provider"]["name"] = " ".into()),
    ("maintainer", |b| b.csv["spec"]["maintainers"][0]["email"] = "jane".into()),
    ("link", |b| b.csv["spec"]["links"][0]["url"] = "example".into()),
    ("no-version", |b| b.csv["spec"]["version"] = "0.0.0".into()),
    ("icon", |b| b.csv["spec"]["icon"][0]["mediatype"] = "image/bmp".into()),
    ("no-icon", |b| b.csv["spec"]["icon"] = Value::Null),
    ("deprecated-validator", |_| {}),
    ("capabilities", |b| b.csv["metadata"]["annotations"]["capabilities"] = "Grows".into()),
    ("categories", |b| b.csv["metadata"]["annotations"]["categories"] = "Database, Roses".into()),
    ("removed-api", |b| b.objects.push(object("policy/v1beta1", "PodDisruptionBudget", json!({})))),
    ("unusable-min-kube-version", |b| b.csv["spec"]["minKubeVersion"] = "new".into()),
    ("console-annotation", |b| {
        b.csv["metadata"]["annotations"]["operators.openshift.io/infrastructure-features"] = "disconnected".into();
    }),
    ("icon-content", |b| b.csv["spec"]["icon"][0]["base64data"] = "<svg/>".into()),
    ("created-at", |b| b.csv["metadata"]["annotations"]["createdAt"] = "<date>".into()),
    ("container-image", |b| b.csv["metadata"]["annotations"]["containerImage"] = "<image>".into()),
    ("openshift-versions", |b| b.annotations += "  com.redhat.openshift.versions: 4.12+\n"),
    ("max-openshift-version", |b| b.crd["apiVersion"] = "apiextensions.k8s.io/v1beta1".into()),
    ("openshift-label", |b| b.crd["apiVersion"] = "apiextensions.k8s.io/v1beta1".into()),
    ("disruption-budget", |b| {
        b.objects.push(object("policy/v1", "PodDisruptionBudget", json!({ "spec": { "maxUnavailable": "0%" } })));
    }),
    ("global-priority", |b| {
        b.objects.push(object("scheduling.k8s.io/v1", "PriorityClass", json!({ "value": 1, "globalDefault": true })));
    }),
    ("writes-disruption-budgets", |b| {
        let rule = json!({ "apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["patch"] });
        b.objects.push(object("rbac.authorization.k8s.io/v1", "Role", json!({ "rules": [rule] })));
    }),
    ("writes-default-sccs", |b| {
        let rule = json!({
            "apiGroups": ["security.openshift.io"], "resources": ["securitycontextconstraints"],
            "resourceNames": ["privileged"], "verbs": ["update"],
        });
        b.objects.push(object("rbac.authorization.k8s.io/v1", "ClusterRole", json!({ "rules": [rule] })));
    }),
    ("same-key", |b| b.files.push(("metadata/csv.yaml", "a: 1\n"))),
    ("not-installed", |b| b.objects.push(object("monitoring.coreos.com/v1", "PodMonitor", json!({})))),
    ("refused", |b| deployment(b)["spec"]["selector"]["matchLabels"]["app"] = "tulip".into()),
    ("unknown-field", |b| b.csv["spec"]["displayname"] = "Rose".into()),
    ("strategy", |b| b.csv["spec"]["install"]["strategy"] = "helm".into()),
    ("duplicate-deployment", |b| {
        let copy = deployment(b).clone();
        b.csv["spec"]["install"]["spec"]["deployments"].as_array_mut().unwrap().push(copy);
    }),
    ("invalid-webhook", |b| with_webhook(b, |w| w["rules"][0]["apiGroups"] = json!(["*"]))),
    ("no-server", |b| with_webhook(b, |w| w["deploymentName"] = "tulip".into())),
    ("service-name", |b| {
        let long = "r".repeat(60);
        deployment(b)["name"] = long.clone().into();
        with_webhook(b, |w| w["deploymentName"] = long.into());
    }),
    ("dotted-server", |b| {
        deployment(b)["name"] = "rose.one".into();
        with_webhook(b, |w| w["deploymentName"] = "rose.one".into());
    }),
    ("certificate-volume", |b| {
        let pod = &mut deployment(b)["spec"]["template"]["spec"];
        pod["volumes"] = json!([{ "name": "cert", "emptyDir": {} }]);
        pod["containers"][0]["volumeMounts"] =
            json!([{ "name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs" }]);
        with_webhook(b, |_| {});
    }),
    ("conversion-crd", |b| {
        only_all_namespaces(b);
        with_webhook(b, |w| {
            w["type"] = "ConversionWebhook".into();
            w["conversionCRDs"] = json!(["tulips.garden.example.com"]);
        });
    }),
    ("skip-range", |b| b.csv["metadata"]["annotations"]["olm.skipRange"] = "<v1.1.0".into()),
    ("replaces-itself", |b| b.csv["spec"]["replaces"] = "rose.v1.1.0".into()),
    ("duplicate-object", |b| {
        let secret = object("v1", "Secret", json!({}));
        b.objects.extend([secret.clone(), secret]);
    }),
    ("duplicate-mode", |b| b.csv["spec"]["installModes"][0]["type"] = "AllNamespaces".into()),
    ("namespace", |b| b.objects.push(object("v1", "Secret", json!({ "metadata": { "name": "a", "namespace": "b" } })))),
    ("required-and-owned", |b| {
        let owned = b.csv["spec"]["customresourcedefinitions"]["owned"].clone();
        b.csv["spec"]["customresourcedefinitions"]["required"] = owned;
    }),
    ("unserved-api", |b| b.crd["spec"]["versions"][0]["served"] = false.into()),
    ("not-served", |b| b.crd["apiVersion"] = "apiextensions.k8s.io/v1beta1".into()),
    ("invalid-property", |b| b.files.push(("metadata/properties.yaml", "properties:\n- type: olm.gvk\n"))),
    ("wildcard", |b| rules(b)[0]["verbs"] = json!(["*"])),
    ("escalation", |b| {
        *rules(b) = json!([{ "apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"] }]);
    }),
    ("reads-secrets", |b| {
        let rule = json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] });
        b.csv["spec"]["install"]["spec"]["clusterPermissions"] =
            json!([{ "serviceAccountName": "rose", "rules": [rule] }]);
    }),
    ("unused-account", |b| b.csv["spec"]["install"]["spec"]["permissions"][0]["serviceAccountName"] = "tulip".into()),
    ("default-account", |b| {
        b.csv["spec"]["install"]["spec"]["permissions"][0]["serviceAccountName"] = "default".into();
    }),
    ("unsupported-platform", |b| declare(b, &["amd64", "arm64"])),
    ("undeclared-platform", |b| b.platforms = Some(&["linux/amd64", "linux/arm64"])),
    ("node-affinity", |b| run_only_on(b, "arm64")),
    ("uninspected-image", |b| b.platforms = None),
    ("other-package", |b| {
        b.annotations = b.annotations.replace("package.v1: rose", "package.v1: tulip");
        after(b, |_, _| {});
    }),
    ("version-not-higher", |b| after(b, |old, _| old["spec"]["version"] = "1.1.0".into())),
    ("same-name", |b| after(b, |old, _| old["metadata"]["name"] = "rose.v1.1.0".into())),
    ("not-an-update", |b| after(b, |old, _| old["metadata"]["name"] = "rose.v0.9.0".into())),
    ("install-mode-dropped", |b| {
        after(b, |_, _| {});
        b.csv["spec"]["installModes"][0]["supported"] = false.into();
    }),
    ("crd-dropped", |b| {
        after(b, |_, _| {});
        b.crd["metadata"]["name"] = "tulips.garden.example.com".into();
    }),
    ("stored-version-dropped", |b| after(b, |_, old| old["spec"]["versions"][0]["name"] = "v1beta1".into())),
    ("served-version-dropped", |b| {
        after(b, |_, _| {});
        b.crd["spec"]["versions"][0]["served"] = false.into();
    }),
    ("crd-immutable", |b| after(b, |_, old| old["spec"]["scope"] = "Cluster".into())),
    ("schema-stricter", |b| {
        after(b, |_, _| {});
        b.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"] = json!(["spec"]);
    }),
    ("field-dropped", |b| {
        after(b, |_, _| {});
        b.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!({});
    }),
    ("permission-added", |b| {
        after(b, |_, _| {});
        rules(b)[0]["verbs"] = json!(["get", "list", "delete"]);
    }),
    ("min-kube-version-raised", |b| after(b, |old, _| old["spec"]["minKubeVersion"] = "1.24.0".into())),
    ("requirement-added", |b| {
        after(b, |_, _| {});
        let cup = json!({ "name": "cups.tea.example.com", "version": "v1", "kind": "Cup", "description": "A cup." });
        b.csv["spec"]["customresourcedefinitions"]["required"] = json!([cup]);
    }),
    ("default-channel-changed", |b| {
        after(b, |_, _| {});
        b.annotations = b.annotations.replace("default.v1: stable", "default.v1: fast");
    }),
    ("replaces-unknown", |b| {
        b.csv["spec"]["replaces"] = "rose.v0.1.0".into();
        after(b, |_, _| {});
    }),
    ("schema-condition", |b| {
        after(b, |_, _| {});
        b.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
            json!([{ "rule": "true" }]);
    }),
];

/// Rules that need many or special bytes, which other tests check.
const APART: [&str; 5] =
    ["unreadable-bundle", "bundle-too-large", "bundle-almost-too-large", "unpacked-too-large", "object-too-large"];

fn names(findings: &[Finding]) -> BTreeSet<&'static str> {
    findings.iter().filter_map(|finding| rule(finding.code)).map(|rule| rule.name).collect()
}

#[test]
fn a_good_bundle_has_no_findings() {
    let mut bundle = Bundle::new();
    after(&mut bundle, |_, _| {});
    let found = bundle.validate(Selection::everything());
    assert_eq!(names(&found), BTreeSet::from(["deprecated-validator"]), "{found:#?}");
}

#[test]
fn every_rule_has_a_bundle_that_violates_it() {
    let mut wrong = Vec::new();
    for (name, change) in CASES {
        let mut bundle = Bundle::new();
        change(&mut bundle);
        let mut only = Selection::nothing();
        only.add(name).unwrap();
        let found = bundle.validate(only);
        if names(&found) != BTreeSet::from([*name]) {
            wrong.push(format!("{name}: {found:?}"));
        }
        for finding in &found {
            assert!(finding.file.starts_with('b'), "{name} has no place: {finding}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let tested: BTreeSet<&str> = CASES.iter().map(|(name, _)| *name).chain(APART).collect();
    let all: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(tested, all);
}

/// The message contains the platforms, and the place is that of the image.
#[test]
fn platforms_of_images_are_compared_with_labels_and_affinity() {
    let found = |change: &dyn Fn(&mut Bundle)| -> Vec<String> {
        let mut bundle = Bundle::new();
        change(&mut bundle);
        let found = bundle.validate(Selection::from(BTreeSet::from([Validator::MultipleArchitectures])));
        found.into_iter().map(|finding| finding.message).collect()
    };
    assert_eq!(found(&|_| {}), Vec::<String>::new());
    let both: &[&str] = &["linux/amd64", "linux/arm64"];
    let declared = |b: &mut Bundle| {
        b.platforms = Some(both);
        declare(b, &["amd64", "arm64"]);
    };
    assert_eq!(found(&declared), Vec::<String>::new());
    let [excluded] = &found(&|b| {
        declared(b);
        run_only_on(b, "amd64");
    })[..] else {
        panic!("one finding")
    };
    assert!(excluded.ends_with("excludes linux/arm64, which the labels declare and its images support"), "{excluded}");
    let [lacks] = &found(&|b| declare(b, &["amd64", "s390x"]))[..] else { panic!("one finding") };
    assert!(lacks.contains("declare linux/s390x") && lacks.ends_with("it supports linux/amd64"), "{lacks}");
    let [more] = &found(&|b| b.platforms = Some(&["linux/amd64", "windows/amd64"]))[..] else { panic!("one finding") };
    assert!(more.ends_with("operatorframework.io/os.windows: supported"), "{more}");
}

#[test]
fn findings_have_the_line_of_their_field() {
    let mut bundle = Bundle::new();
    bundle.csv["spec"]["minKubeVersion"] = "1.25".into();
    let text = String::from_utf8(bundle.files()[1].bytes.to_vec()).unwrap();
    let line = text.lines().position(|line| line.contains("minKubeVersion")).unwrap() + 1;
    let found = bundle.validate(Selection::default());
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.file.as_str(), finding.line), ("b/manifests/csv.yaml", line));
    assert_eq!(finding.subject, "ClusterServiceVersion/rose.v1.1.0");
}

#[test]
fn the_size_of_a_config_map_is_the_limit() {
    // Bytes that do not compress.
    let mut state = 1_u64;
    let mut noise = |bytes: usize| -> String {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(
                b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
                    [usize::try_from(state >> 58).unwrap()],
            )
        };
        (0..bytes).map(|_| next()).collect()
    };
    let found = |manifest: &str, metadata: &str| {
        let mut bundle = Bundle::new();
        bundle.objects.push(object("v1", "ConfigMap", json!({ "data": { "a": manifest } })));
        let mut files = bundle.files();
        files.push(File::new("b/metadata/notes.yaml", format!("a: {metadata}").into_bytes()));
        let options = Options::default();
        names(&validate("b", &files, &options, &mut ()).findings)
    };
    let (small, large) = (noise(100), noise(940_000));
    assert_eq!(found(&small, &small), BTreeSet::new());
    assert_eq!(found(&large, &small), BTreeSet::from(["bundle-almost-too-large"]));
    assert_eq!(found(&large, &noise(200_000)), BTreeSet::from(["bundle-almost-too-large", "unpacked-too-large"]));
    assert_eq!(found(&noise(1_100_000), &small), BTreeSet::from(["bundle-too-large", "object-too-large"]));
}

/// Each object has a limit, however well the bundle is compressed.
#[test]
fn the_size_of_each_object_is_limited() {
    let found = |object: Value| {
        let mut bundle = Bundle::new();
        bundle.objects.push(object);
        let found = bundle.validate(Selection::default()).into_iter();
        found.map(|finding| (finding.code, finding.subject, finding.message)).collect::<Vec<_>>()
    };
    let mib = 1 << 20;
    // Line feeds take two bytes in JSON, and one in the store.
    let map = |bytes| {
        object(
            "v1",
            "ConfigMap",
            json!({ "data": { "a": "\n".repeat(bytes / 2), "b": "b".repeat(bytes - bytes / 2) } }),
        )
    };
    assert_eq!(found(map(mib)), []);
    let secret = |bytes| object("v1", "Secret", json!({ "stringData": { "a": "a".repeat(bytes) } }));
    assert_eq!(found(secret(mib)), []);
    for (object, subject) in [(map(mib + 1), "ConfigMap/thorn"), (secret(mib + 1), "Secret/thorn")] {
        let [(code, about, message)] = &found(object)[..] else { panic!("one finding") };
        assert_eq!((*code, about.as_str()), ("BV427", subject));
        assert!(message.starts_with("the data has 1048577 bytes; "), "{message}");
    }
    let mut bundle = Bundle::new();
    bundle.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "d".repeat(3 * mib / 2).into();
    assert_eq!(names(&bundle.validate(Selection::default())), BTreeSet::from(["object-too-large"]));
}

#[test]
fn the_severity_of_removed_apis_depends_on_the_supported_versions() {
    let severity = |min: &str, kubernetes: Option<&str>| {
        let mut bundle = Bundle::new();
        bundle.csv["spec"]["minKubeVersion"] = min.into();
        bundle.objects.push(object("policy/v1beta1", "PodDisruptionBudget", json!({})));
        let mut selection = Selection::nothing();
        selection.add("removed-api").unwrap();
        let kubernetes = kubernetes.map(|version| crate::version::parse_tolerant(version).unwrap());
        let options = Options { selection, kubernetes, ..Options::default() };
        validate("b", &bundle.files(), &options, &mut ()).findings[0].severity
    };
    assert_eq!(severity("1.24.0", None), Severity::Warning);
    assert_eq!(severity("1.25.0", None), Severity::Error);
    assert_eq!(severity("1.24.0", Some("1.25")), Severity::Error);
    assert_eq!(severity("1.24.0", Some("1.24")), Severity::Warning);
}

#[test]
fn only_a_budget_of_nothing_prevents_evictions() {
    for (value, is_error) in [(json!(0), true), (json!("0%"), true), (json!(1), false), (json!("50%"), false)] {
        let mut bundle = Bundle::new();
        bundle.objects.push(object("policy/v1", "PodDisruptionBudget", json!({ "spec": { "maxUnavailable": value } })));
        let mut selection = Selection::nothing();
        selection.add("objects").unwrap();
        assert_eq!(names(&bundle.validate(selection)).contains("disruption-budget"), is_error, "{value}");
    }
}

#[test]
fn bundles_of_plain_manifests_are_validated_as_what_they_become() {
    let deployment = "apiVersion: apps/v1
kind: Deployment
metadata: {name: rose}
spec:
  selector: {matchLabels: {app: rose}}
  template:
    metadata: {labels: {app: rose}}
    spec: {containers: [{name: manager, image: 'example.com/rose:1'}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
";
    let olm_yaml = "name: rose.v1.1.0\nversion: 1.1.0\nminKubeVersion: 1.25.0\ndisplayName: Rose\ninstallModes:\n- {type: AllNamespaces, supported: true}\n";
    let mut files = Bundle::new().files();
    files.truncate(1);
    files[0] = File::new("b/metadata/annotations.yaml", ANNOTATIONS.replace("registry+v1", "k8s+v1").into_bytes());
    files.push(File::new("b/manifests/all.yaml", deployment.as_bytes()));
    files.push(File::new("b/metadata/olm.yaml", olm_yaml.as_bytes()));
    let mut selection = Selection::default();
    selection.add("good-practices").unwrap();
    let found = validate("b", &files, &Options { selection, ..Options::default() }, &mut ());
    assert_eq!(found.identity.name, "rose.v1.1.0");
    let codes: Vec<(&str, usize)> = found.findings.iter().map(|finding| (finding.code, finding.line)).collect();
    assert!(codes.contains(&("unsupported-kind", 11)), "a finding of the synthesis: {:#?}", found.findings);
    assert!(codes.contains(&("BV302", 0)), "a finding about the ClusterServiceVersion: {:#?}", found.findings);
}

#[test]
fn hostile_files_are_findings() {
    let deep = format!("a: {}", "[".repeat(100_000));
    let alias =
        "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n";
    for bytes in
        [deep.as_bytes(), b"\xff\xfe", b"a: b: c", b"{\"a\": }", alias.as_bytes(), b"null", b"---\n---\n", b"[]"]
    {
        let mut files = Bundle::new().files();
        files.push(File::new("b/manifests/x.yaml", bytes));
        files.push(File::new("b/metadata/x.yaml", bytes));
        let found =
            validate("b", &files, &Options { selection: Selection::everything(), ..Options::default() }, &mut ());
        assert_eq!(found.identity.name, "rose.v1.1.0");
        assert!(found.findings.iter().any(|finding| finding.file == "b/manifests/x.yaml"), "{:?}", &bytes[..2]);
    }
    // Fields of any wrong type do not end the validation.
    for wrong in [json!(1), json!("a"), json!([1, "a", null, {}]), json!({ "a": [1] }), Value::Null] {
        for path in ["/spec", "/metadata", "/spec/install", "/spec/install/spec", "/spec/installModes", "/spec/icon"] {
            let mut bundle = Bundle::new();
            after(&mut bundle, |_, _| {});
            *bundle.csv.pointer_mut(path).unwrap() = wrong.clone();
            let part = if path.starts_with("/spec/") { "/spec/versions" } else { path };
            for (api_version, is_previous) in [("v1", false), ("v1beta1", false), ("v1", true)] {
                let mut bundle = Bundle { previous: bundle.previous.clone(), csv: bundle.csv.clone(), ..Bundle::new() };
                bundle.crd["apiVersion"] = format!("apiextensions.k8s.io/{api_version}").into();
                *bundle.crd.pointer_mut(part).unwrap() = wrong.clone();
                if is_previous {
                    bundle.previous = Some((bundle.csv, bundle.crd));
                    (bundle.csv, bundle.crd) = (csv(), crd());
                }
                assert!(!bundle.validate(Selection::everything()).is_empty());
            }
            let bundle = Bundle { csv: bundle.csv, previous: bundle.previous, ..Bundle::new() };
            assert!(!bundle.validate(Selection::everything()).is_empty());
        }
    }
}
