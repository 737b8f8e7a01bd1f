use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::ToSpan;
use serde_json::json;

use super::*;
use crate::plan::{BlockingBundle, Certificate};

use crate::sim::certificate::issue;
use crate::testing::{
    catalog_source, csv, install_plan, labelled_namespace, namespace, operator_group, subscription, with_metadata,
    with_status, world,
};

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

/// A healthy operator with an API, an admission and a conversion webhook; a case changes it.
struct Case {
    objects: Vec<Value>,
    known: Known,
    controllers: Option<bool>,
}

impl Case {
    fn new() -> Self {
        let ready = json!({ "connectionState": { "lastObservedState": "READY" } });
        let request = json!({ "name": "rose", "channel": "stable", "source": "market", "sourceNamespace": "olm", "installPlanApproval": "Manual" });
        let resolved = json!({
            "currentCSV": "rose.v1.0.0", "installedCSV": "rose.v1.0.0", "state": "AtLatestKnown",
            "installPlanRef": { "name": "install-a", "namespace": "garden" },
            "conditions": [{ "type": "CatalogSourcesUnhealthy", "status": "False" }],
        });
        let plan = json!({ "approval": "Manual", "approved": true, "clusterServiceVersionNames": ["rose.v1.0.0"] });
        let webhook = |of_type: &str, name: &str| json!({ "type": of_type, "generateName": name, "deploymentName": "gate", "conversionCRDs": ["roses.garden.example.com"] });
        let spec = json!({
            "version": "1.0.0",
            "install": { "strategy": "deployment", "spec": { "deployments": [{ "name": "gate", "spec": {} }] } },
            "webhookdefinitions": [webhook("ValidatingAdmissionWebhook", "vrose.kb.io"), webhook("ConversionWebhook", "crose.kb.io")],
            "apiservicedefinitions": { "owned": [{ "group": "api.garden.example.com", "version": "v1", "kind": "Bed", "deploymentName": "gate" }] },
        });
        let version = with_status(csv("garden", "rose.v1.0.0", &spec), &json!({ "phase": "Succeeded" }));
        let pair = issue(&Certificate {
            hosts: ["", ".svc", ".svc.cluster.local"].map(|domain| format!("gate-service.garden{domain}")).to_vec(),
            not_before: now() - 24.hours(),
            not_after: now() + 24.hours(),
        });
        let bundle = STANDARD.encode(&pair.authority);
        let client = json!({ "caBundle": bundle, "service": { "namespace": "garden", "name": "gate-service" } });
        let labels = json!({
            "olm.owner": "rose.v1.0.0", "olm.owner.namespace": "garden", "olm.owner.kind": "ClusterServiceVersion",
            WEBHOOK: "vrose.kb.io",
        });
        let object = |api: &str, kind: &str, namespace: &str, name: &str, rest: Value| {
            let mut object = json!({ "apiVersion": api, "kind": kind, "metadata": { "name": name } });
            if !namespace.is_empty() {
                object["metadata"]["namespace"] = namespace.into();
            }
            for (key, value) in rest.as_object().unwrap() {
                object[key] = value.clone();
            }
            object
        };
        let configuration = object(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            "",
            "vrose.kb.io-x7k2p",
            json!({ "webhooks": [{ "name": "vrose.kb.io", "clientConfig": client }] }),
        );
        let objects = vec![
            namespace("garden"),
            with_status(
                operator_group("garden", "all", &json!({ "serviceAccountName": "installer" })),
                &json!({ "namespaces": [""], "serviceAccountRef": { "name": "installer", "namespace": "garden" } }),
            ),
            with_status(
                catalog_source("olm", "market", &json!({ "sourceType": "grpc", "image": "example.com/market" })),
                &ready,
            ),
            with_status(subscription("garden", "rose", &request), &resolved),
            with_status(install_plan("garden", "install-a", &plan), &json!({ "phase": "Complete" })),
            version,
            object(
                "apps/v1",
                "Deployment",
                "garden",
                "gate",
                json!({
                    "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "gate" } } },
                    "status": {
                        "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1,
                        "conditions": [{ "type": "Available", "status": "True" }],
                    },
                }),
            ),
            object("v1", "Service", "garden", "gate-service", json!({})),
            object(
                "v1",
                "Secret",
                "garden",
                "gate-service-cert",
                json!({ "data": { "olmCAKey": bundle, "tls.crt": STANDARD.encode(&pair.certificate) } }),
            ),
            with_metadata(configuration, &json!({ "labels": labels })),
            object(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "",
                "roses.garden.example.com",
                json!({ "spec": { "conversion": { "strategy": "Webhook", "webhook": { "clientConfig": client } } } }),
            ),
            object(
                "apiregistration.k8s.io/v1",
                "APIService",
                "",
                "v1.api.garden.example.com",
                json!({ "spec": { "caBundle": bundle }, "status": { "conditions": [{ "type": "Available", "status": "True" }] } }),
            ),
        ];
        Self { objects, known: Known::everything(), controllers: Some(true) }
    }

    fn of(&mut self, kind: &str) -> &mut Value {
        self.objects.iter_mut().find(|object| object::kind(object) == kind).unwrap()
    }

    fn without(&mut self, kind: &str) {
        self.objects.retain(|object| object::kind(object) != kind);
    }

    fn condition(&mut self, of_type: &str, message: &str) {
        self.of("Subscription")["status"]["conditions"] =
            json!([{ "type": of_type, "status": "True", "message": message }]);
    }

    fn csv(&mut self, status: Value) {
        self.of("ClusterServiceVersion")["status"] = status;
    }

    fn failed(&mut self, reason: &str, message: &str) {
        self.csv(json!({ "phase": "Failed", "reason": reason, "message": message }));
    }

    fn lacks(&mut self, requirement: Value) {
        self.csv(json!({ "phase": "Pending", "reason": "RequirementsNotMet", "requirementStatus": [requirement] }));
    }

    /// Sets the phase of the plan, with one step that is open.
    fn plan(&mut self, phase: &str, approved: bool, message: &str) {
        self.of("Subscription")["status"]["currentCSV"] = "rose.v2.0.0".into();
        let plan = self.of("InstallPlan");
        plan["spec"]["approved"] = approved.into();
        plan["spec"]["clusterServiceVersionNames"] = json!(["rose.v2.0.0"]);
        let resource = json!({ "kind": "ClusterServiceVersion", "name": "rose.v2.0.0", "manifest": "{\"spec\":{\"replaces\":\"rose.v1.0.0\"}}" });
        let step = json!({ "resolving": "rose.v2.0.0", "status": "Unknown", "resource": resource });
        let mut status = json!({ "phase": phase, "plan": [step], "message": message });
        if phase == "Installing" && !message.is_empty() {
            status["conditions"] =
                json!([{ "type": "Installed", "status": "False", "reason": "Installing", "message": message }]);
        }
        plan["status"] = status;
    }

    fn rollout(&mut self, of_type: &str, reason: &str, message: &str) {
        self.of("Deployment")["status"] = json!({
            "replicas": 1, "updatedReplicas": 1,
            "conditions": [{ "type": of_type, "status": if of_type == "ReplicaFailure" { "True" } else { "False" }, "reason": reason, "message": message }],
        });
    }

    fn pod(&mut self, namespace: &str, labels: &Value, status: &Value) {
        self.objects.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "gate-5d8f-x7k2p", "namespace": namespace, "labels": labels }, "status": status,
        }));
    }

    /// Sets the state of the only pod of the Deployment.
    fn container(&mut self, reason: &str, message: &str) {
        self.rollout("Available", "MinimumReplicasUnavailable", "");
        let waiting = json!({ "waiting": { "reason": reason, "message": message } });
        let status = json!({ "containerStatuses": [{ "name": "manager", "ready": false, "state": waiting }] });
        self.pod("garden", &json!({ "app": "gate" }), &status);
    }

    fn diagnosis(&self, name: &str) -> Diagnosis {
        let settings = Settings::default();
        let scope = Scope { settings: &settings, known: &self.known, controllers: self.controllers, now: now() };
        diagnose(&Reader::new(&world(&self.objects)), scope, "garden", name).unwrap()
    }
}

const WEBHOOK: &str = crate::csv::WEBHOOK_NAME;

fn changed(change: impl FnOnce(&mut Case)) -> Diagnosis {
    let mut case = Case::new();
    change(&mut case);
    case.diagnosis("rose")
}

fn codes(diagnosis: &Diagnosis) -> Vec<&'static str> {
    diagnosis.problems.iter().map(|problem| problem.code.name).collect()
}

/// Returns `Stage State` of all stages.
fn states(diagnosis: &Diagnosis) -> Vec<String> {
    diagnosis.stages.iter().map(|stage| format!("{} {}", stage.stage.as_str(), stage.state.as_str())).collect()
}

#[test]
fn a_healthy_operator_has_no_problems() {
    let diagnosis = changed(|_| {});
    assert_eq!(diagnosis.problems, []);
    assert!(!diagnosis.is_blocked());
    let expected = [
        "Subscription",
        "Catalog",
        "Resolution",
        "Unpack",
        "InstallPlan",
        "OperatorGroup",
        "ClusterServiceVersion",
        "Deployment",
        "Pod",
        "APIService",
        "Webhook",
        "Webhook",
        "Certificate",
    ];
    assert_eq!(states(&diagnosis), expected.map(|stage| format!("{stage} Ok")), "{:#?}", diagnosis.stages);
}

type Change = fn(&mut Case);

/// The changes that lead to exactly this problem, among others in parentheses.
const CASES: &[(&str, Change)] = &[
    ("no-controllers", |c| {
        c.of("Subscription")["status"] = Value::Null;
        c.without("ClusterServiceVersion");
        c.controllers = Some(false);
    }),
    ("namespace-terminating", |c| {
        *c.of("Namespace") = with_status(labelled_namespace("garden", &json!({})), &json!({ "phase": "Terminating" }));
        c.of("Namespace")["metadata"]["deletionTimestamp"] = "2026-11-21T11:00:00Z".into();
    }),
    ("catalog-missing", |c| c.without("CatalogSource")),
    ("catalog-invalid", |c| c.of("CatalogSource")["spec"] = json!({ "sourceType": "grpc" })),
    ("catalog-not-ready", |c| {
        c.of("CatalogSource")["status"] = json!({ "connectionState": { "lastObservedState": "TRANSIENT_FAILURE" } });
    }),
    ("catalog-pod", |c| {
        c.of("CatalogSource")["status"] = json!({ "connectionState": { "lastObservedState": "CONNECTING" } });
        let waiting = json!({ "waiting": { "reason": "ImagePullBackOff", "message": "Back-off" } });
        c.pod(
            "olm",
            &json!({ "olm.catalogSource": "market" }),
            &json!({ "containerStatuses": [{ "name": "registry", "state": waiting }] }),
        );
    }),
    ("package-missing", |c| {
        c.condition(
            "ResolutionFailed",
            "no operators found in package roze in the catalog referenced by subscription rose",
        );
    }),
    ("channel-missing", |c| {
        c.condition(
            "ResolutionFailed",
            "no operators found in channel stabel of package rose in the catalog referenced by subscription rose",
        );
    }),
    ("version-missing", |c| {
        c.condition("ResolutionFailed", "no operators found with name rose.v9.0.0 in channel stable of package rose");
    }),
    ("dependency-missing", |c| {
        c.condition(
            "ResolutionFailed",
            "bundle rose.v1.0.0 requires an operator with package: nowhere and with version in range: >=1.0.0",
        );
    }),
    ("conflicting-operators", |c| {
        let conflict = "main/olm/fast/pot.v2.0.0 and main/olm/stable/pot.v1.0.0 originate from package pot, bundle rose.v1.0.0 requires an operator with package: pot";
        c.condition("ResolutionFailed", conflict);
    }),
    ("resolution-failed", |c| c.condition("ResolutionFailed", "failed to populate resolver cache")),
    ("bundle-image", |c| {
        let pending =
            "unpack job not completed: Unpack pod(olm/x) container(pull) is pending. Reason: ImagePullBackOff";
        c.condition("BundleUnpacking", pending);
    }),
    ("unpack-deadline", |c| {
        let failed = "bundle unpacking failed. Reason: DeadlineExceeded, and Message: Job was active longer than specified deadline";
        c.condition("BundleUnpackFailed", failed);
    }),
    ("unpack-failed", |c| c.condition("BundleUnpackFailed", "bundle unpacking failed. Reason: BackoffLimitExceeded")),
    ("approval-needed", |c| c.plan("RequiresApproval", false, "")),
    ("install-plan-missing", |c| {
        c.of("Subscription")["status"]["currentCSV"] = "rose.v2.0.0".into();
        c.without("InstallPlan");
    }),
    ("install-plan-failed", |c| c.plan("Failed", true, "no idea")),
    ("install-plan-retries", |c| c.plan("Installing", true, "retrying execution due to error: timeout")),
    ("stored-version", |c| c.plan("Failed", true, "risk of data loss updating \"roses\"")),
    ("invalid-resources", |c| {
        c.plan("Failed", true, "error validating existing CRs against new CRD's schema for \"roses\"");
    }),
    ("api-not-served", |c| c.plan("Failed", true, "api-server resource not found installing PodMonitor")),
    ("permissions-missing", |c| {
        c.lacks(json!({ "kind": "ServiceAccount", "name": "rose", "status": "PresentNotSatisfied",
            "dependents": [{ "kind": "PolicyRule", "status": "NotSatisfied", "message": "namespaced rule:{}" }] }));
    }),
    ("no-operator-group", |c| c.without("OperatorGroup")),
    ("several-operator-groups", |c| c.objects.push(operator_group("garden", "other", &json!({})))),
    ("operator-group-invalid", |c| c.of("OperatorGroup")["spec"]["targetNamespaces"] = json!([""])),
    ("service-account-missing", |c| c.of("OperatorGroup")["spec"]["serviceAccountName"] = "absent".into()),
    ("unsupported-install-mode", |c| {
        c.failed("UnsupportedOperatorGroup", "AllNamespaces InstallModeType not supported");
    }),
    ("intersecting-operator-groups", |c| {
        c.failed("InterOperatorGroupOwnerConflict", "intersecting operatorgroups provide the same APIs");
    }),
    ("required-api-missing", |c| {
        c.lacks(json!({ "kind": "CustomResourceDefinition", "name": "pots.example.com", "status": "NotPresent", "message": "CRD is not present" }));
    }),
    ("requirements-not-met", |c| {
        c.lacks(json!({ "kind": "ServiceAccount", "name": "rose", "status": "NotPresent", "message": "Service account does not exist" }));
    }),
    ("owner-conflict", |c| c.failed("OwnerConflict", "owner conflict")),
    ("not-upgradeable", |c| {
        let message = "operator is not upgradeable: The operator is not upgradeable: migration";
        c.csv(json!({ "phase": "Pending", "reason": "OperatorConditionNotUpgradeable", "message": message }));
    }),
    ("csv-failed", |c| c.failed("InstallCheckFailed", "install timeout")),
    ("object-missing", |c| c.without("ClusterServiceVersion")),
    ("progressing", |c| {
        c.csv(json!({ "phase": "Installing", "message": "installing: waiting for deployment gate to become ready" }));
    }),
    ("deployment-missing", |c| c.without("Deployment")),
    ("scaled-to-zero", |c| c.of("Deployment")["spec"]["replicas"] = 0.into()),
    ("rollout-stuck", |c| c.rollout("Progressing", "ProgressDeadlineExceeded", "timed out")),
    ("quota-exceeded", |c| {
        c.rollout("ReplicaFailure", "FailedCreate", "pods \"x\" is forbidden: exceeded quota: compute");
    }),
    ("pod-refused", |c| c.rollout("ReplicaFailure", "FailedCreate", "pods \"x\" is forbidden: violates PodSecurity")),
    ("unschedulable", |c| {
        c.rollout("Available", "MinimumReplicasUnavailable", "");
        let condition =
            json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes" });
        c.pod("garden", &json!({ "app": "gate" }), &json!({ "conditions": [condition] }));
    }),
    ("image-pull", |c| c.container("ImagePullBackOff", "Back-off pulling image \"example.com/rose:v1\"")),
    ("container-config", |c| c.container("CreateContainerConfigError", "secret \"x\" not found")),
    ("crash-loop", |c| c.container("CrashLoopBackOff", "back-off 5m0s")),
    ("not-ready", |c| c.container("", "")),
    ("api-service-unavailable", |c| {
        let condition =
            json!({ "type": "Available", "status": "False", "reason": "FailedDiscoveryCheck", "message": "no answer" });
        c.of("APIService")["status"]["conditions"] = json!([condition]);
    }),
    ("webhook-missing", |c| c.without("ValidatingWebhookConfiguration")),
    ("webhook-service-missing", |c| c.without("Service")),
    ("ca-mismatch", |c| c.of("APIService")["spec"]["caBundle"] = "YQ==".into()),
    ("certificate-invalid", |c| c.of("Secret")["data"]["tls.crt"] = "YQ==".into()),
    ("certificate-expired", |c| {
        let pair = issue(&Certificate {
            hosts: ["", ".svc", ".svc.cluster.local"].map(|domain| format!("gate-service.garden{domain}")).to_vec(),
            not_before: now() - 48.hours(),
            not_after: now() - 1.hours(),
        });
        let bundle = STANDARD.encode(&pair.authority);
        c.of("Secret")["data"] = json!({ "olmCAKey": bundle, "tls.crt": STANDARD.encode(&pair.certificate) });
        c.of("APIService")["spec"]["caBundle"] = bundle.as_str().into();
        c.of("ValidatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["caBundle"] = bundle.as_str().into();
        c.of("CustomResourceDefinition")["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] =
            bundle.as_str().into();
    }),
    ("deprecated", |c| c.condition("ChannelDeprecated", "olm.channel/stable is deprecated: use v2")),
    ("invalid-object", |c| c.failed("InvalidInstallStrategy", "no rules")),
];

/// Problems that no status states: only the controllers of this project know their reasons.
fn only_from_reasons() -> Vec<(&'static str, Reason)> {
    let text = |text: &str| text.to_owned();
    vec![
        (
            "apis-unknown",
            Reason::ApisUnknown {
                namespace: text("garden"),
                name: text("rose"),
                apis: vec![],
                assumed_served: false,
                message: text("stale"),
            },
        ),
        (
            "optional-missing",
            Reason::OptionalNotCreated { namespace: text("garden"), name: text("x"), objects: vec![] },
        ),
        ("unreadable", Reason::Unreadable { object: text("Subscription/garden/rose"), message: text("x") }),
        ("refused", Reason::refused("create", &ObjectRef::default(), "no", 3, now())),
        ("internal-error", Reason::Panicked { message: text("x") }),
    ]
}

#[test]
fn every_code_is_the_result_of_a_case() {
    let mut wrong = Vec::new();
    for (code, change) in CASES {
        let diagnosis = changed(change);
        let found = codes(&diagnosis);
        if found.first() != Some(code) {
            wrong.push(format!("{code}: {found:?}\n{:#?}", diagnosis.stages));
        }
        let is_notice = |problem: &Problem| problem.severity != Severity::Blocked;
        assert_eq!(diagnosis.is_blocked(), !diagnosis.problems.iter().all(is_notice), "{code}: {diagnosis:#?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (code, reason) in only_from_reasons() {
        assert_eq!(classify(&reason).iter().map(|(code, _)| code.name).collect::<Vec<_>>(), [code]);
    }
    let reached: BTreeSet<&str> =
        CASES.iter().map(|(code, _)| *code).chain(only_from_reasons().into_iter().map(|(code, _)| code)).collect();
    assert_eq!(reached, CODES.iter().map(|code| code.name).collect());
}

#[test]
fn messages_refine_the_code() {
    let plan = |message: &str| Reason::InstallPlanFailed {
        namespace: "garden".to_owned(),
        name: "x".to_owned(),
        message: message.to_owned(),
        blocking_bundle: BlockingBundle::default(),
    };
    let name = |reason: &Reason| classify(reason)[0].0.name;
    assert_eq!(name(&plan("roles is forbidden: User \"x\" cannot create")), "permissions-missing");
    assert_eq!(name(&plan("pods is forbidden: exceeded quota: x")), "quota-exceeded");
    let missing = vec![
        "CustomResourceDefinition a.b: CRD is not present".to_owned(),
        "ServiceAccount rose: cluster rule:{}".to_owned(),
        "APIService v1.b: ".to_owned(),
    ];
    let reason = Reason::RequirementsNotMet { namespace: "garden".to_owned(), name: "rose".to_owned(), missing };
    let found: Vec<(&str, String)> = classify(&reason).into_iter().map(|(code, text)| (code.name, text)).collect();
    let apis = "CustomResourceDefinition a.b: CRD is not present; APIService v1.b: ".to_owned();
    let account = "ServiceAccount rose: cluster rule:{}".to_owned();
    assert_eq!(found, [("required-api-missing", apis), ("permissions-missing", account)]);
}

/// What could not be read is unknown, and no problem.
#[test]
fn what_could_not_be_read_is_unknown() {
    let diagnosis = changed(|c| {
        c.objects.retain(|object| matches!(object::kind(object), "Subscription" | "ClusterServiceVersion"));
        c.known = known_of_files(&world(&c.objects));
    });
    assert_eq!(codes(&diagnosis), [""; 0], "{:#?}", diagnosis.problems);
    assert!(!diagnosis.is_blocked());
    let unknown: BTreeSet<&str> = diagnosis
        .stages
        .iter()
        .filter(|stage| stage.state == State::Unknown)
        .map(|stage| stage.stage.as_str())
        .collect();
    let expected =
        ["APIService", "Catalog", "Certificate", "Deployment", "InstallPlan", "OperatorGroup", "Pod", "Webhook"];
    assert_eq!(unknown.into_iter().collect::<Vec<_>>(), expected);
    let mut known = Known::everything();
    known.limit(kind::POD, BTreeSet::new(), "not allowed to list pods in namespace garden");
    let diagnosis = changed(|c| {
        c.rollout("Available", "MinimumReplicasUnavailable", "");
        c.known = known;
    });
    let pods = diagnosis.stages.iter().find(|stage| stage.stage == StageName::Pod).unwrap();
    assert_eq!(pods.message, "the pods of Deployment gate: not allowed to list pods in namespace garden");
}

#[test]
fn an_upgrade_that_waits_for_approval_does_not_block() {
    let diagnosis = changed(|c| c.plan("RequiresApproval", false, ""));
    assert!(!diagnosis.is_blocked());
    let [problem] = &diagnosis.problems[..] else { panic!("{diagnosis:#?}") };
    assert_eq!(
        (problem.severity_word(), problem.command.as_str()),
        ("waiting", "kubectl olm install-plan approve install-a -n garden")
    );
}

/// A ClusterServiceVersion without a Subscription has no catalog and no InstallPlan.
#[test]
fn an_operator_without_a_subscription() {
    let mut case = Case::new();
    case.without("Subscription");
    case.without("CatalogSource");
    let diagnosis = case.diagnosis("rose.v1.0.0");
    assert_eq!(codes(&diagnosis), [""; 0]);
    assert_eq!(states(&diagnosis)[..3], ["Subscription Ok", "OperatorGroup Ok", "ClusterServiceVersion Ok"]);
}

/// Pods are read only where something is wrong.
#[test]
fn needs_are_few() {
    let needs_of = |change: Change| {
        let mut case = Case::new();
        change(&mut case);
        let needs = needs(&Reader::new(&world(&case.objects)), "garden", "rose");
        let names: Vec<String> = needs.objects.iter().map(ToString::to_string).collect();
        (needs.pods.into_iter().collect::<Vec<_>>(), names, needs.webhooks)
    };
    let expected = [
        "Namespace/garden",
        "Secret/garden/gate-service-cert",
        "Service/garden/gate-service",
        "ServiceAccount/garden/installer",
        "CustomResourceDefinition/roses.garden.example.com",
        "APIService/v1.api.garden.example.com",
        "CatalogSource/olm/market",
    ];
    assert_eq!(needs_of(|_| {}), (vec![], expected.map(str::to_owned).to_vec(), true));
    assert_eq!(needs_of(|c| c.rollout("Progressing", "ProgressDeadlineExceeded", "")).0, ["garden"]);
    assert_eq!(needs_of(|c| c.of("CatalogSource")["status"] = Value::Null).0, ["olm"]);
    let expected = ["Namespace/garden", "ServiceAccount/garden/installer", "CatalogSource/olm/market"];
    assert_eq!(needs_of(|c| c.without("ClusterServiceVersion")).1, expected);
}

/// A field of a wrong type is read as empty.
#[test]
fn malformed_objects_do_no_harm() {
    for kind in
        ["Subscription", "ClusterServiceVersion", "Deployment", "InstallPlan", "CatalogSource", "Secret", "APIService"]
    {
        for field in ["spec", "status", "data"] {
            for value in [json!("x"), json!([1]), json!({ "conditions": "x", "deployments": [7], "replicas": "many" })]
            {
                let diagnosis = changed(|c| c.of(kind)[field] = value.clone());
                assert!(!diagnosis.stages.is_empty());
            }
        }
    }
}
