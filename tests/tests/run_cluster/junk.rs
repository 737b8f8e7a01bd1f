//! Hostile objects generated from a seed: valid ones in which any part was replaced by any value.

use olm_core::api::object::Gvk;
use serde_json::{Map, Value, json};

/// Pseudo-random numbers, equal for equal seeds.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound.max(1)
    }

    /// Returns one of these.
    pub(super) fn one_of<'t, T: ?Sized>(&mut self, all: &[&'t T]) -> &'t T {
        all[self.below(all.len())]
    }
}

/// The namespaces of the hostile tenants.
pub(super) const NAMESPACES: [&str; 6] = ["hole-1", "hole-2", "hole-3", "hole-4", "hole-5", "hole-6"];

const NAMES: [&str; 8] = ["a", "b", "c", "rose", "weed.v1.0.0", "main", "weed", "kubectl-olm-run"];

/// Keys with a meaning for OLM.
const KEYS: [&str; 24] = [
    "olm.copiedFrom",
    "olm.owner",
    "olm.owner.namespace",
    "olm.owner.kind",
    "olm.managed",
    "olm.catalogSource",
    "olm.operatorGroup",
    "olm.operatorNamespace",
    "olm.targetNamespaces",
    "olm.providedAPIs",
    "olm.deployment-spec-hash",
    "olm.webhook-description-generate-name",
    "olm.generated-by",
    "olm.skipRange",
    "olm.properties",
    "operatorframework.io/properties",
    "operatorframework.io/bundle-unpack-timeout",
    "operatorframework.io/bundle-unpack-ref",
    "operatorframework.io/suggested-namespace-template",
    "operators.coreos.com/rose.hole-1",
    "olm.operatorframework.io/exclude-global-namespace-resolution",
    "kubectl-olm/approved-content",
    "kubectl-olm/asked-by",
    "alm-examples",
];

/// Texts that parsers interpret.
const TEXTS: [&str; 30] = [
    "",
    " ",
    "\u{1b}]0;x\u{7}\u{202e}\n# Verdict Safe",
    "true",
    "-1",
    "99999999999999999999999999",
    "1.0.0-aaaaaaaaaaaaaaaaaaaaaaaa.0.0.0.0.0.0.0+b.c.d",
    ">=1.0.0 <2.0.0 || !=1.2.x || <0.0.0-0",
    "v1beta9999999999999999",
    "../../../../etc/passwd",
    "file:///etc/passwd",
    "localhost:1/a:b@sha256:0000000000000000000000000000000000000000000000000000000000000000",
    "127.0.0.1:1/rose:latest",
    "UPPER/Case:Tag@",
    "http://[::1",
    "*",
    "hole-1,hole-2,,*,hole-1",
    "[{\"type\":\"olm.constraint\",\"value\":{\"failureMessage\":\"no\",\"cel\":{\"rule\":\"properties.all(p, properties.all(q, properties.all(r, true)))\"}}}]",
    "{\"properties\":[{\"type\":\"olm.gvk\",\"value\":[]},{\"type\":7}]}",
    "{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"rose\",\"version\":\"x\"}}]}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "Rose.v1.example.com,Rose.v1.example.com,.,..,a.b",
    "(((((((((((((((((((((((((((((((a{1000}){1000}){1000}",
    "24h99999h",
    "1e400Mi",
    "2026-11-23T00:00:00Z",
    "9999-99-99T99:99:99Z",
    "hole-1/a",
    "rose.v1.0.0",
    "\u{0}",
];

/// Returns nested maps.
fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }))
}

/// Returns any value.
fn anything(random: &mut Random) -> Value {
    match random.below(16) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2 => json!([0.5, -1e308, 1e-300, 1.844e19][random.below(4)]),
        3 => json!([0_i64, -1, i64::MAX, i64::MIN, 1 << 31][random.below(5)]),
        4 => json!("x".repeat(1 << (10 + random.below(9)))),
        5 => deep(20 + random.below(130)),
        6 => Value::Array(vec![json!("x"); random.below(5000)]),
        7 => Value::Array(vec![json!({}); random.below(500)]),
        8 => (0..random.below(2000)).map(|n| (format!("k{n}"), json!("v"))).collect::<Map<_, _>>().into(),
        9 => json!({}),
        10 => json!([]),
        11 => json!(random.one_of(&NAMES)),
        _ => json!(random.one_of(&TEXTS)),
    }
}

/// Replaces a part of the value, more often a deeper one.
fn spoil(random: &mut Random, value: &mut Value) {
    let inner = match value {
        Value::Object(fields) if !fields.is_empty() => {
            let at = random.below(fields.len());
            fields.values_mut().nth(at)
        }
        Value::Array(items) if !items.is_empty() => {
            let at = random.below(items.len());
            items.get_mut(at)
        }
        _ => None,
    };
    match inner {
        Some(inner) if random.below(5) > 0 => spoil(random, inner),
        _ => *value = anything(random),
    }
}

/// A request to the API server.
#[derive(Clone, Debug)]
pub(super) enum Harm {
    /// Creates an object; its status is written by a separate request.
    Create(Value),
    /// Merges the value into an object that may exist; into its status if `status` is set.
    Patch(Gvk, &'static str, String, String, Value, bool),
    /// Deletes an object that may exist.
    Delete(Gvk, &'static str, String, String),
}

fn alpha(kind: &str) -> Gvk {
    Gvk::new("operators.coreos.com", "v1alpha1", kind)
}

/// Returns the kinds of objects that are changed or deleted.
fn kinds() -> [(Gvk, &'static str); 12] {
    [
        (alpha("ClusterServiceVersion"), "clusterserviceversions"),
        (alpha("Subscription"), "subscriptions"),
        (alpha("InstallPlan"), "installplans"),
        (alpha("CatalogSource"), "catalogsources"),
        (Gvk::new("operators.coreos.com", "v1", "OperatorGroup"), "operatorgroups"),
        (Gvk::new("operators.coreos.com", "v2", "OperatorCondition"), "operatorconditions"),
        (Gvk::new("", "v1", "ConfigMap"), "configmaps"),
        (Gvk::new("", "v1", "Secret"), "secrets"),
        (Gvk::new("", "v1", "ServiceAccount"), "serviceaccounts"),
        (Gvk::new("apps", "v1", "Deployment"), "deployments"),
        (Gvk::new("rbac.authorization.k8s.io", "v1", "Role"), "roles"),
        (Gvk::new("rbac.authorization.k8s.io", "v1", "RoleBinding"), "rolebindings"),
    ]
}

/// Returns the next hostile request. `sick` are the addresses of broken catalogs.
pub(super) fn harm(random: &mut Random, sick: &[String]) -> Harm {
    let namespace = random.one_of(&NAMESPACES).to_owned();
    let name = random.one_of(&NAMES).to_owned();
    let kinds = kinds();
    let (gvk, plural) = kinds[random.below(kinds.len())].clone();
    match random.below(40) {
        0 => Harm::Create(definition(random)),
        1..5 => Harm::Delete(gvk, plural, namespace, name),
        5..14 => {
            let status = random.below(2) == 0;
            let mut patch = if status { status_of(random, &gvk.kind) } else { json!({ "spec": {} }) };
            if !status {
                patch["spec"] = good(random, &gvk.kind, sick).get("spec").cloned().unwrap_or_default();
                meddle(random, &mut patch);
            }
            spoil(random, &mut patch);
            Harm::Patch(gvk, plural, namespace, name, patch, status)
        }
        _ => {
            let mut object = good(random, &gvk.kind, sick);
            for _ in 0..random.below(4) {
                spoil(random, &mut object);
            }
            if !object.is_object() {
                object = json!({});
            }
            object["apiVersion"] = gvk.api_version().into();
            object["kind"] = gvk.kind.into();
            object["metadata"] = json!({ "name": name, "namespace": namespace });
            meddle(random, &mut object);
            Harm::Create(object)
        }
    }
}

/// Replaces labels, annotations, owners and finalizers.
fn meddle(random: &mut Random, object: &mut Value) {
    let mut pairs = |most: usize, texts: &[&str]| {
        let count = random.below(most);
        (0..count).map(|_| (random.one_of(&KEYS).to_owned(), json!(random.one_of(texts)))).collect::<Map<_, _>>()
    };
    let labels = pairs(4, &["true", "a", "rose.v1.0.0", "hole-1", "ClusterServiceVersion", "", "main"]);
    let annotations = pairs(4, &TEXTS);
    let mut metadata = object["metadata"].as_object().cloned().unwrap_or_default();
    metadata.insert("labels".to_owned(), labels.into());
    metadata.insert("annotations".to_owned(), annotations.into());
    if random.below(6) == 0 {
        let finalizers = ["weeds.example.com/kept", "operators.coreos.com/csv-cleanup"];
        metadata.insert("finalizers".to_owned(), json!([random.one_of(&finalizers)]));
    }
    if random.below(6) == 0 {
        let owner = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": random.one_of(&["ClusterServiceVersion", "Subscription", "CatalogSource"]),
            "name": random.one_of(&NAMES), "uid": random.one_of(&["", "00000000-0000-0000-0000-000000000000", "x"]), "controller": true,
        });
        metadata.insert("ownerReferences".to_owned(), json!([owner]));
    }
    object["metadata"] = metadata.into();
}

/// Returns a CustomResourceDefinition with a nearly invalid schema.
fn definition(random: &mut Random) -> Value {
    let plural = random.one_of(&["weeds", "thorns"]);
    let mut schema = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true, "description": random.one_of(&TEXTS), "example": deep(100 + random.below(80)),
        "properties": { "spec": { "type": "object", "properties": { "a": { "type": "string", "pattern": "(a|b)*", "default": "a" } } } },
    });
    if random.below(2) == 0 {
        spoil(random, &mut schema);
    }
    let version = |name: &str, storage: bool| json!({ "name": name, "served": true, "storage": storage, "schema": { "openAPIV3Schema": schema } });
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "kind": "Weed", "plural": plural, "singular": plural, "listKind": "WeedList" },
            "versions": [version("v1", true), version("v1alpha99999999", false)],
        },
    });
    meddle(random, &mut definition);
    definition["metadata"]["name"] = json!(format!("{plural}.example.com"));
    definition
}

fn deployment() -> Value {
    json!({
        "replicas": 1, "selector": { "matchLabels": { "app": "weed" } },
        "template": {
            "metadata": { "labels": { "app": "weed" }, "annotations": {} },
            "spec": { "containers": [{ "name": "weed", "image": "weed", "env": [{ "name": "A", "value": "b" }] }], "volumes": [] },
        },
    })
}

/// Returns an object that is valid apart from its metadata.
fn good(random: &mut Random, kind: &str, sick: &[String]) -> Value {
    let name = random.one_of(&NAMES).to_owned();
    let namespace = random.one_of(&NAMESPACES).to_owned();
    match kind {
        "ClusterServiceVersion" => json!({ "spec": {
            "displayName": "Weed", "version": random.one_of(&["1.0.0", "2.0.0-rc.1+b"]), "replaces": name, "skips": ["a", "b"],
            "minKubeVersion": "1.20.0",
            "installModes": (["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
                .map(|mode| json!({ "type": mode, "supported": random.below(4) > 0 }))),
            "customresourcedefinitions": {
                "owned": [{ "name": "weeds.example.com", "kind": "Weed", "version": "v1", "resources": [], "specDescriptors": [] }],
                "required": [{ "name": "weeds.example.org", "kind": "Weed", "version": "v1" }],
            },
            "apiservicedefinitions": { "owned": if random.below(8) == 0 { json!([{
                "group": "junk.example.com", "version": "v1", "kind": "Junk", "name": "junks", "deploymentName": "weed", "containerPort": 443,
            }]) } else { json!([]) } },
            "webhookdefinitions": if random.below(4) == 0 { json!([{
                "type": random.one_of(&["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", "ConversionWebhook"]),
                "generateName": "weed.example.com", "deploymentName": "weed", "containerPort": 443, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore", "webhookPath": "/weed",
                "rules": [{ "apiGroups": ["weeds.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["weeds"] }],
                "conversionCRDs": ["weeds.example.com"],
            }]) } else { json!([]) },
            "nativeAPIs": [{ "group": "apps", "version": "v1", "kind": "Deployment" }],
            "relatedImages": [{ "name": "weed", "image": "weed" }],
            "install": { "strategy": "deployment", "spec": {
                "deployments": [{ "name": random.one_of(&["weed", "a", ""]), "spec": deployment() }],
                "permissions": [{ "serviceAccountName": name, "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }] }],
                "clusterPermissions": [{ "serviceAccountName": "a", "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }] }],
            } },
        } }),
        "Subscription" => json!({ "spec": {
            "name": random.one_of(&["rose", "weed", ""]), "channel": random.one_of(&["stable", "none", ""]), "source": name,
            "sourceNamespace": random.one_of(&["olm", "hole-1", "hole-2"]), "startingCSV": random.one_of(&["", "rose.v1.0.0", "x"]),
            "installPlanApproval": random.one_of(&["Automatic", "Manual"]),
            "config": { "env": [{ "name": "A", "value": "b" }], "nodeSelector": { "a": "b" }, "tolerations": [{ "key": "a" }],
                "resources": { "limits": { "cpu": "1" } }, "selector": { "matchLabels": { "a": "b" } }, "affinity": {} },
        } }),
        "InstallPlan" => json!({ "spec": {
            "approval": "Manual", "approved": random.below(2) == 0, "generation": random.below(4), "clusterServiceVersionNames": [name],
            "source": "", "sourceNamespace": "",
        } }),
        "CatalogSource" => {
            let from = match random.below(4) {
                0 => json!({ "sourceType": "grpc", "address": sick[random.below(sick.len())] }),
                1 => {
                    json!({ "sourceType": "grpc", "image": random.one_of(&TEXTS), "secrets": [random.one_of(&NAMES)], "updateStrategy": { "registryPoll": { "interval": "1s" } } })
                }
                2 => json!({ "sourceType": random.one_of(&["internal", "configmap"]), "configMap": name }),
                _ => json!({ "sourceType": random.one_of(&TEXTS), "address": random.one_of(&TEXTS) }),
            };
            let mut spec = from;
            spec["priority"] = json!(random.below(9));
            spec["displayName"] = json!("Weeds");
            json!({ "spec": spec })
        }
        "OperatorGroup" => match random.below(4) {
            0 => json!({ "spec": { "targetNamespaces": [namespace, name, "olm", "default", "kube-system"] } }),
            1 => {
                json!({ "spec": { "selector": { "matchExpressions": [{ "key": "a", "operator": random.one_of(&["In", "Exists", "DoesNotExist"]), "values": [] }] } } })
            }
            2 => {
                json!({ "spec": { "serviceAccountName": name, "staticProvidedAPIs": true, "upgradeStrategy": "TechPreviewUnsafeFailForward" } })
            }
            _ => json!({ "spec": {} }),
        },
        "OperatorCondition" => json!({ "spec": {
            "serviceAccounts": [name], "deployments": ["weed"],
            "overrides": [{ "type": "Upgradeable", "status": "False", "reason": "Weeds", "message": "no" }],
        } }),
        "ConfigMap" => {
            let junk = match random.below(6) {
                0 => {
                    let lines =
                        (1..30).map(|n| format!("a{n}: &a{n} [*a{0},*a{0},*a{0},*a{0},*a{0},*a{0},*a{0}]\n", n - 1));
                    format!("a0: &a0 [lol,lol]\n{}", lines.collect::<String>())
                }
                1 => format!("- {}", "[".repeat(20_000)),
                2 => "\u{feff}%YAML 9.9\n--- !!python/object:os.system {}\n...\n".to_owned(),
                3 => {
                    "- {packageName: rose, channels: [{name: stable, currentCSV: rose.v1.0.0}], defaultChannel: stable}"
                        .to_owned()
                }
                4 => format!("- &x {{a: *x, <<: [*x, *x]}}\n{}", "? ".repeat(3000)),
                _ => random.one_of(&TEXTS).to_owned(),
            };
            let csv = json!([good(random, "ClusterServiceVersion", sick)]).to_string();
            let mut data = json!({ "packages": junk, "clusterServiceVersions": csv, "customResourceDefinitions": random.one_of(&TEXTS) });
            if random.below(3) == 0 {
                data["clusterServiceVersions"] = data["packages"].clone();
                data["packages"] = json!("- {packageName: rose, channels: [{name: stable, currentCSV: rose.v1.0.0}]}");
            }
            json!({ "data": data, "binaryData": { "weed": "AAECA//+/fyA" } })
        }
        "Secret" => {
            json!({ "type": random.one_of(&["Opaque", "kubernetes.io/dockerconfigjson"]), "data": { ".dockerconfigjson": "e30=" } })
        }
        "ServiceAccount" => json!({ "imagePullSecrets": [{ "name": name }] }),
        "Deployment" => json!({ "spec": deployment() }),
        "Role" => json!({ "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["get"] }] }),
        "RoleBinding" => json!({
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": "a", "namespace": namespace }],
        }),
        _ => json!({}),
    }
}

/// Returns a status with the fields of the controllers.
fn status_of(random: &mut Random, kind: &str) -> Value {
    let name = random.one_of(&NAMES).to_owned();
    match kind {
        "InstallPlan" => {
            let manifest = match random.below(5) {
                0 => random.one_of(&TEXTS).to_owned(),
                1 => "[".repeat(100_000),
                2 => json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": deep(100) }).to_string(),
                3 => json!({ "kind": "ConfigMap", "name": name, "namespace": "hole-1", "catalogSourceName": "a", "catalogSourceNamespace": "hole-1" }).to_string(),
                _ => good(random, "Deployment", &[String::new()]).to_string(),
            };
            let step = json!({
                "resolving": name, "status": random.one_of(&["Unknown", "NotPresent", "Created", "WaitingForApi"]),
                "resource": {
                    "group": random.one_of(&["", "apps", "operators.coreos.com", "apiextensions.k8s.io"]), "version": "v1", "kind": random.one_of(&["ConfigMap", "Deployment", "CustomResourceDefinition", "ClusterServiceVersion", "Secret"]),
                    "name": name, "manifest": manifest, "sourceName": "a", "sourceNamespace": "hole-1",
                },
            });
            json!({ "status": {
                "phase": random.one_of(&["Planning", "Installing", "RequiresApproval", "Complete", "Failed"]), "catalogSources": ["a"],
                "plan": vec![step; random.below(4)],
                "bundleLookups": [{ "path": random.one_of(&TEXTS), "identifier": name, "replaces": "", "catalogSourceRef": { "name": "a", "namespace": "hole-1" }, "properties": random.one_of(&TEXTS) }],
            } })
        }
        "Subscription" => json!({ "status": {
            "lastUpdated": "2026-11-23T00:00:00Z", "currentCSV": name, "installedCSV": random.one_of(&NAMES), "state": random.one_of(&TEXTS),
            "installplan": { "name": name, "apiVersion": "a", "kind": "InstallPlan", "uuid": "" }, "installPlanGeneration": random.below(9),
            "installPlanRef": { "name": name, "namespace": "hole-2", "uid": "x" },
        } }),
        "ClusterServiceVersion" => json!({ "status": {
            "phase": random.one_of(&["Succeeded", "Pending", "Installing", "Replacing", "Deleting", "Failed", "Unknown"]),
            "reason": random.one_of(&TEXTS), "message": random.one_of(&TEXTS), "lastUpdateTime": "2026-11-23T00:00:00Z",
            "requirementStatus": [{ "group": "a", "version": "b", "kind": "c", "name": name, "status": "Present", "message": "" }],
            "certsRotateAt": "2000-01-01T00:00:00Z",
        } }),
        "CatalogSource" => json!({ "status": {
            "connectionState": { "address": random.one_of(&TEXTS), "lastConnect": "2026-11-23T00:00:00Z", "lastObservedState": "READY" },
            "configMapReference": { "name": name, "namespace": "hole-1", "uid": "x", "resourceVersion": "1" },
        } }),
        "OperatorGroup" => {
            json!({ "status": { "namespaces": ["", "olm", name, "hole-1"], "lastUpdated": "2026-11-23T00:00:00Z",
            "serviceAccountRef": { "name": name, "namespace": "kube-system" } } })
        }
        _ => {
            json!({ "status": { "conditions": [{ "type": "Upgradeable", "status": "False", "reason": "A", "message": "", "lastTransitionTime": "2026-11-23T00:00:00Z" }] } })
        }
    }
}
