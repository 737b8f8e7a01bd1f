//! Tests of the rules: each finds its defect, and nothing in a healthy cluster, during an operation, or where data is missing.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Checkup, Input, RULES, check, examined_definitions, services};
use crate::api::object;
use crate::lint::rule;
use crate::testing;
use crate::world::{GroupKind, Known, Reader, World};
use crate::yaml;

const NOW: &str = "2026-01-01T12:00:00Z";

fn world(text: &str) -> World {
    let mut world = World::new();
    for document in yaml::documents(text.as_bytes()).unwrap() {
        let mut object: Value = document.value().unwrap();
        let api_version = match object["kind"].as_str().unwrap() {
            "ClusterServiceVersion" | "Subscription" | "InstallPlan" => "operators.coreos.com/v1alpha1",
            "OLMConfig" => "operators.coreos.com/v1",
            "ClusterRole" | "ClusterRoleBinding" => "rbac.authorization.k8s.io/v1",
            "Deployment" => "apps/v1",
            "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
            "APIService" => "apiregistration.k8s.io/v1",
            "Lease" => "coordination.k8s.io/v1",
            "Rose" => "example.com/v1",
            kind if kind.ends_with("WebhookConfiguration") => "admissionregistration.k8s.io/v1",
            _ => "v1",
        };
        object["apiVersion"] = api_version.into();
        world.apply(object);
    }
    world
}

fn checked(world: &World, known: &Known) -> Checkup {
    let (patience, now) = (SignedDuration::from_mins(5), NOW.parse().unwrap());
    check(Input { world, known, unlisted: "", patience, now })
}

fn checkup(text: &str) -> Checkup {
    checked(&world(text), &Known::everything())
}

/// Formats each finding as `DR001 error APIService/v1.example.com`.
fn found(text: &str) -> Vec<String> {
    summaries(&checkup(text))
}

fn summaries(checkup: &Checkup) -> Vec<String> {
    checkup.problems.iter().map(|p| format!("{} {} {}", p.rule.code, p.severity, p.object)).collect()
}

fn command_of(text: &str) -> String {
    checkup(text).problems.first().and_then(|p| p.fix.as_ref()?.command()).unwrap_or_default()
}

/// An operator that is installed, and everything that belongs to it.
const HEALTHY: &str = "
---
kind: Subscription
metadata: {name: rose, namespace: garden}
status: {installedCSV: rose.v1, currentCSV: rose.v1}
---
kind: ClusterServiceVersion
metadata: {name: rose.v1, namespace: garden, creationTimestamp: '2026-01-01T10:00:00Z', finalizers: [operators.coreos.com/csv-cleanup]}
spec: {customresourcedefinitions: {owned: [{name: roses.example.com, kind: Rose, version: v1}]}}
status: {phase: Succeeded, lastTransitionTime: '2026-01-01T10:00:00Z'}
---
kind: CustomResourceDefinition
metadata: {name: roses.example.com, labels: {operators.coreos.com/rose.garden: ''}}
spec:
  group: example.com
  names: {kind: Rose, plural: roses}
  versions: [{name: v1, served: true, storage: true}, {name: v2, served: true}]
  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {namespace: garden, name: rose-service}}}}
---
kind: Service
metadata: {name: rose-service, namespace: garden}
---
kind: APIService
metadata: {name: v1.wild.example.com}
spec: {service: {namespace: garden, name: rose-service}}
status: {conditions: [{type: Available, status: 'True'}]}
---
kind: APIService
metadata: {name: v1.apps}
spec: {}
status: {conditions: [{type: Available, status: 'True', reason: Local}]}
---
kind: ValidatingWebhookConfiguration
metadata: {name: vrose, labels: {olm.owner: rose.v1, olm.owner.namespace: garden, olm.owner.kind: ClusterServiceVersion}}
webhooks: [{name: vrose.example.com, clientConfig: {service: {namespace: garden, name: rose-service}}}]
---
kind: ClusterRole
metadata: {name: rose, labels: {olm.owner: rose.v1, olm.owner.namespace: garden, olm.owner.kind: ClusterServiceVersion}}
---
kind: Rose
metadata: {name: red, namespace: garden, finalizers: [example.com/wilt]}
---
kind: Namespace
metadata: {name: garden}
status: {phase: Active}
---
kind: InstallPlan
metadata: {name: install-abcde, namespace: garden}
---
kind: Lease
metadata: {name: kubectl-olm-run, namespace: olm}
spec: {holderIdentity: host_1_0a, renewTime: '2026-01-01T08:00:00Z'}
";

/// The defects by code: objects, and the finding in them.
fn defects() -> BTreeMap<&'static str, (String, &'static str)> {
    let plans: String =
        (0..20).map(|n| format!("---\nkind: InstallPlan\nmetadata: {{name: p{n}, namespace: park}}\n")).collect();
    let copies: String = (0..1000)
        .map(|n| format!("---\nkind: ClusterServiceVersion\nmetadata: {{name: rose.v1, namespace: n{n}, labels: {{olm.copiedFrom: garden}}}}\n"))
        .collect();
    let olm = |namespace: &str| {
        format!(
            "---\nkind: Deployment\nmetadata: {{name: olm-operator, namespace: {namespace}, labels: {{app: olm-operator}}}}\nstatus: {{availableReplicas: 1}}\n"
        )
    };
    let owned = "labels: {olm.owner: ivy.v1, olm.owner.namespace: garden, olm.owner.kind: ClusterServiceVersion}";
    BTreeMap::from([
        (
            "DR001",
            (
                "---\nkind: APIService\nmetadata: {name: v1.packages.operators.coreos.com}\nspec: {service: {namespace: olm, name: packages}}\n\
                 status: {conditions: [{type: Available, status: 'False', reason: ServiceNotFound, message: no service}]}\n"
                    .to_owned(),
                "error APIService/v1.packages.operators.coreos.com",
            ),
        ),
        (
            "DR002",
            (
                "---\nkind: Namespace\nmetadata: {name: park, deletionTimestamp: '2026-01-01T11:00:00Z'}\nstatus: {phase: Terminating, conditions: \
                 [{type: NamespaceFinalizersRemaining, status: 'True', message: 'Some content: operators.coreos.com/csv-cleanup in 1'}]}\n"
                    .to_owned(),
                "error Namespace/park",
            ),
        ),
        (
            "DR003",
            (
                "---\nkind: CustomResourceDefinition\nmetadata: {name: ivies.example.com, labels: {operators.coreos.com/ivy.garden: ''}}\n\
                 spec: {group: example.com, names: {kind: Ivy}}\n"
                    .to_owned(),
                "info CustomResourceDefinition/ivies.example.com",
            ),
        ),
        (
            "DR004",
            (
                "---\nkind: MutatingWebhookConfiguration\nmetadata: {name: ivy}\n\
                 webhooks: [{name: ivy.example.com, failurePolicy: Fail, clientConfig: {service: {namespace: garden, name: ivy}}}]\n"
                    .to_owned(),
                "error MutatingWebhookConfiguration/ivy",
            ),
        ),
        (
            "DR005",
            (
                "---\nkind: CustomResourceDefinition\nmetadata: {name: ivies.example.com}\nspec: {group: example.com, names: {kind: Ivy}, versions: \
                 [{name: v1, served: true}], conversion: {strategy: Webhook, webhook: {clientConfig: {service: {namespace: garden, name: ivy}}}}}\n"
                    .to_owned(),
                "error CustomResourceDefinition/ivies.example.com",
            ),
        ),
        (
            "DR006",
            (
                "---\nkind: Rose\nmetadata: {name: white, namespace: park, deletionTimestamp: '2026-01-01T11:00:00Z', finalizers: [example.com/wilt]}\n"
                    .to_owned(),
                "warning CustomResourceDefinition/roses.example.com",
            ),
        ),
        ("DR007", (copies, "info OLMConfig/cluster")),
        ("DR008", (format!("---\nkind: ClusterRole\nmetadata: {{name: ivy, {owned}}}\n"), "warning ClusterRole/ivy")),
        ("DR009", (plans, "warning Namespace/park")),
        ("DR010", (format!("{}{}", olm("olm"), olm("operators")), "error Deployment/olm/olm-operator")),
    ])
}

#[test]
fn rules_have_codes_in_order_and_names_of_their_own() {
    for (at, one) in RULES.into_iter().enumerate() {
        assert_eq!(one.code, format!("DR{:03}", at + 1));
        assert_eq!(rule(&RULES, one.name), Some(one), "{} is the name of two rules", one.name);
        assert!(!one.summary.ends_with('.') && one.why.ends_with('.') && one.fix.ends_with('.'), "{}", one.code);
        assert!(one.explanation().contains("Example:") && one.command().starts_with("kubectl olm operator doctor"));
    }
}

#[test]
fn a_healthy_cluster_has_no_findings() {
    assert_eq!(found(HEALTHY), Vec::<String>::new());
    assert_eq!(found(""), Vec::<String>::new());
}

#[test]
fn each_rule_is_found_by_its_case_and_no_other() {
    let defects = defects();
    let codes: Vec<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert_eq!(defects.keys().copied().collect::<Vec<_>>(), codes);
    for (code, (objects, expected)) in defects {
        // The Lease of the healthy cluster is the second controller of DR010.
        let text = if code == "DR010" { objects } else { format!("{HEALTHY}{objects}") };
        assert_eq!(found(&text), [format!("{code} {expected}")], "{code}");
    }
}

#[test]
fn what_is_not_known_is_unchecked_and_never_missing() {
    let kinds: BTreeSet<GroupKind> = RULES.iter().flat_map(|rule| rule.everywhere.iter().cloned()).collect();
    let mut known = Known::everything();
    for gk in &kinds {
        known.limit(gk.clone(), BTreeSet::new(), "not allowed to list it");
    }
    let all: String = defects().into_values().map(|(objects, _)| objects).collect();
    let ignorant = world(&all);
    let checkup = checked(&ignorant, &known);
    let unchecked: Vec<&str> = checkup.unchecked.iter().flat_map(|unchecked| unchecked.codes.clone()).collect();
    assert_eq!(unchecked, RULES.iter().map(|rule| rule.code).collect::<Vec<_>>());
    let found = summaries(&checkup);
    for code in ["DR003", "DR004", "DR005", "DR008"] {
        assert!(!found.iter().any(|line| line.starts_with(code)), "{found:?}");
    }
    // What is wrong with an object that was read is still reported.
    for code in ["DR001", "DR002", "DR007", "DR009", "DR010"] {
        assert!(found.iter().any(|line| line.starts_with(code)), "{code}: {found:?}");
    }
    let input = Input {
        world: &ignorant,
        known: &Known::everything(),
        unlisted: "not allowed to list roses",
        patience: SignedDuration::ZERO,
        now: NOW.parse().unwrap(),
    };
    assert_eq!(check(input).unchecked[0].codes, ["DR006"]);
}

#[test]
fn an_operation_in_progress_is_no_defect() {
    let replace = |code: &str, from: &str, to: &str| {
        let (objects, _) = defects().remove(code).unwrap();
        assert!(objects.contains(from), "{code}");
        found(&format!("{HEALTHY}{}", objects.replace(from, to)))
    };
    let now = "2026-01-01T11:58:00Z";
    let created = format!("metadata: {{creationTimestamp: '{now}', name");
    assert_eq!(replace("DR001", "reason:", &format!("lastTransitionTime: '{now}', reason:")), [""; 0]);
    for code in ["DR002", "DR006"] {
        assert_eq!(replace(code, "2026-01-01T11:00:00Z", now), [""; 0], "{code}");
    }
    for code in ["DR003", "DR004", "DR008"] {
        assert_eq!(replace(code, "metadata: {name", &created), [""; 0], "{code}");
    }
    // The ClusterServiceVersion of the permissions is about to be created.
    let (role, _) = defects().remove("DR008").unwrap();
    let subscription =
        "---\nkind: Subscription\nmetadata: {name: ivy, namespace: garden}\nstatus: {currentCSV: ivy.v1}\n";
    assert_eq!(found(&format!("{role}{subscription}")), [""; 0]);
    // The Service of a conversion webhook is created while the ClusterServiceVersion is installed.
    let installing = HEALTHY.replace(
        "phase: Succeeded, lastTransitionTime: '2026-01-01T10",
        "phase: Installing, lastTransitionTime: '2026-01-01T11:59",
    );
    let installing = installing.replace("11:59:00:00Z", "11:59:00Z");
    let without_service: Vec<String> =
        found(&installing.replace("name: rose-service, namespace: garden}", "name: other, namespace: garden}"));
    assert!(!without_service.iter().any(|line| line.starts_with("DR005")), "{without_service:?}");
}

#[test]
fn fixes_are_safe_only_for_what_has_no_owner() {
    let of = |code: &str| defects().remove(code).unwrap().0;
    assert_eq!(
        command_of(&of("DR001")),
        "kubectl delete apiservice.apiregistration.k8s.io v1.packages.operators.coreos.com"
    );
    // The Service of kubectl olm run --packages exists, without pods that could be repaired.
    let own = of("DR001")
        .replace("metadata: {name", "metadata: {labels: {kubectl-olm/serves: packages}, name")
        .replace("reason: ServiceNotFound", "reason: FailedDiscoveryCheck");
    let own = format!("{own}---\nkind: Service\nmetadata: {{name: packages, namespace: olm}}\n");
    assert_eq!(command_of(&own), command_of(&of("DR001")));
    assert_eq!(command_of(&of("DR002")), "kubectl olm run --release-finalizers park");
    assert_eq!(
        command_of(&of("DR005")),
        "kubectl patch customresourcedefinition.apiextensions.k8s.io ivies.example.com --type merge -p '{\"spec\":{\"conversion\":{\"strategy\":\"None\",\"webhook\":null}}}'"
    );
    let is_safe = |text: &str| checkup(text).problems.iter().filter_map(|p| p.fix.as_ref()).all(|fix| fix.is_safe);
    assert!(is_safe(&of("DR008")));
    for code in ["DR001", "DR002", "DR003", "DR004", "DR005"] {
        assert!(!is_safe(&of(code)), "{code}");
    }
    // A hostile name is quoted.
    assert_eq!(
        command_of(&of("DR002").replace("name: park", "name: 'park; id'")),
        "kubectl olm run --release-finalizers 'park; id'"
    );
    // The same configuration, of an operator that does not exist.
    let labels =
        "labels: {olm.owner: ivy.v1, olm.owner.namespace: garden, olm.owner.kind: ClusterServiceVersion}, name: ivy";
    assert!(is_safe(&of("DR004").replacen("name: ivy", labels, 1)));
}

#[test]
fn the_fix_of_a_stuck_version_depends_on_the_controllers() {
    let text = "kind: ClusterServiceVersion\nmetadata: {name: rose.v1, namespace: garden, deletionTimestamp: '2026-01-01T11:00:00Z', \
                finalizers: [operators.coreos.com/csv-cleanup]}\n";
    let of = |others: &str| {
        let checkup = checkup(&format!("{text}{others}"));
        assert_eq!(checkup.problems.len(), 1);
        let problem = checkup.problems[0].clone();
        (problem.severity.to_string(), problem.fix.unwrap().command())
    };
    let lease = |renewed: &str| {
        format!(
            "---\nkind: Lease\nmetadata: {{name: kubectl-olm-run, namespace: olm}}\n\
             spec: {{holderIdentity: host_1_0a, leaseDurationSeconds: 60, renewTime: '{renewed}'}}\n"
        )
    };
    let release = Some("kubectl olm run --release-finalizers garden".to_owned());
    assert_eq!(of(""), ("error".to_owned(), release.clone()));
    assert_eq!(of(&lease("2026-01-01T11:59:59Z")), ("warning".to_owned(), None));
    // An idle process does not renew its Lease: it may run.
    assert_eq!(of(&lease("2026-01-01T08:00:00Z")), ("warning".to_owned(), release));
    // Other Deployments are not controllers.
    let other = "---\nkind: Deployment\nmetadata: {name: rose, namespace: garden}\nstatus: {availableReplicas: 1}\n";
    assert_eq!(of(other).0, "error");
}

#[test]
fn lost_and_unsubscribed_versions_are_orphans() {
    let (_, rest) = HEALTHY.split_once("kind: ClusterServiceVersion").unwrap();
    let (_, rest) = rest.split_once("---").unwrap();
    let (subscription, _) = HEALTHY.split_once("---\nkind: ClusterServiceVersion").unwrap();
    let lost = found(&format!("{subscription}---{rest}"));
    assert!(lost.contains(&"DR008 error Subscription/garden/rose".to_owned()), "{lost:?}");
    assert!(lost.contains(&"DR008 warning ClusterRole/rose".to_owned()), "{lost:?}");
    assert!(lost.contains(&"DR003 info CustomResourceDefinition/roses.example.com".to_owned()), "{lost:?}");
    let alone = HEALTHY.replace("installedCSV: rose.v1, currentCSV: rose.v1", "");
    assert_eq!(found(&alone), ["DR008 info ClusterServiceVersion/garden/rose.v1"]);
    // During an upgrade the old version belongs to the Subscription of the new one.
    let old =
        "---\nkind: ClusterServiceVersion\nmetadata: {name: rose.v0, namespace: garden}\nstatus: {phase: Replacing}\n";
    assert_eq!(found(&format!("{HEALTHY}{old}")), [""; 0]);
}

#[test]
fn a_lease_is_judged_only_after_a_request() {
    let lease = |by: &str, time: &str| {
        format!(
            "kind: Lease\nmetadata: {{name: kubectl-olm-run, namespace: olm, annotations: {{kubectl-olm/asked-by: '{by}'}}, \
             managedFields: [{{time: '{time}'}}]}}\nspec: {{holderIdentity: host_1_0a, renewTime: '2026-01-01T08:00:00Z'}}\n"
        )
    };
    let old = "2026-01-01T11:00:00Z";
    assert_eq!(found(&lease("host_2_0b", old)), ["DR010 warning Lease/olm/kubectl-olm-run"]);
    assert_eq!(found(&lease("", old)), [""; 0]);
    assert_eq!(found(&lease("host_2_0b", "2026-01-01T11:59:30Z")), [""; 0]);
    let upstream = "---\nkind: Deployment\nmetadata: {name: olm-operator, namespace: olm, labels: {app: olm-operator}}\nstatus: {availableReplicas: 1}\n";
    let both = found(&format!("{}{upstream}", lease("", old)));
    assert_eq!(both, ["DR010 warning Lease/olm/kubectl-olm-run"]);
}

#[test]
fn copies_cost_the_size_of_their_originals() {
    let original = |annotation: Value| {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": "rose.v1", "namespace": "garden", "annotations": annotation },
            "spec": { "description": "x".repeat(1 << 20) },
        })
    };
    let of = |count: usize, annotation: Value, config: Option<Value>| {
        let mut world = testing::world(&[original(annotation)]);
        world.apply(json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": { "name": "rose", "namespace": "garden" }, "status": { "installedCSV": "rose.v1" } }));
        for n in 0..count {
            world.apply(json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
                "metadata": { "name": "rose.v1", "namespace": format!("n{n}"), "labels": { "olm.copiedFrom": "garden" } } }));
        }
        if let Some(config) = config {
            world.apply(config);
        }
        let checkup = checked(&world, &Known::everything());
        let first =
            checkup.problems.first().map(|problem| (problem.severity.to_string(), problem.fix.clone().unwrap()));
        (checkup.copies, first)
    };
    let global = json!({ "olm.targetNamespaces": "" });
    let (copies, problem) = of(49, global.clone(), None);
    assert_eq!((copies.count, copies.bytes >> 20, problem), (49, 49, None));
    let (_, problem) = of(60, global.clone(), None);
    let (severity, fix) = problem.unwrap();
    assert_eq!((severity.as_str(), fix.is_safe), ("info", false));
    assert!(fix.manifest().unwrap().contains("disableCopiedCSVs: true"));
    assert_eq!(of(600, global.clone(), None).1.unwrap().0, "warning");
    let config = |spec| json!({ "apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": { "name": "cluster" }, "spec": spec });
    let (_, fix) = of(60, global.clone(), Some(config(json!({})))).1.unwrap();
    assert_eq!(
        fix.command().unwrap(),
        "kubectl patch olmconfig.operators.coreos.com cluster --type merge -p '{\"spec\":{\"features\":{\"disableCopiedCSVs\":true}}}'"
    );
    // Only copies of operators for all namespaces can be disabled.
    let disabled = config(json!({ "features": { "disableCopiedCSVs": true } }));
    assert_eq!(of(60, global, Some(disabled)).1.unwrap().1.command(), None);
    assert_eq!(of(60, json!({ "olm.targetNamespaces": "a,b" }), None).1.unwrap().1.command(), None);
}

#[test]
fn the_custom_resources_of_operators_are_examined() {
    let world = world(&format!(
        "{HEALTHY}---\nkind: CustomResourceDefinition\nmetadata: {{name: weeds.example.com}}\nspec: {{group: example.com}}\n---\n\
         kind: CustomResourceDefinition\nmetadata: {{name: subscriptions.operators.coreos.com, labels: {{olm.managed: 'true'}}}}\n\
         spec: {{group: operators.coreos.com}}\n"
    ));
    let names: Vec<&str> = examined_definitions(&Reader::new(&world)).into_iter().map(object::name).collect();
    assert_eq!(names, ["roses.example.com"]);
    let services: Vec<String> = services(&Reader::new(&world)).iter().map(ToString::to_string).collect();
    assert_eq!(services, ["Service/garden/rose-service"]);
}
