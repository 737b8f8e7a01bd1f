//! Tests that explain plans of the scenarios before they are executed.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::api::object;
use crate::api::status::Status;
use crate::settings::Settings;
use crate::testing::files;
use crate::{catalog, yaml};

/// Returns the folder of the scenarios of the repository.
fn scenarios() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scenarios"))
}

/// Returns the cluster of a scenario before its first step: the objects of that file, and the catalogs.
fn cluster(folder: &Path, catalogs: &[&str], file: &str) -> Cluster {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut cluster = Cluster { now, ..Cluster::default() };
    for name in catalogs {
        let load = catalog::load(&files(&folder.join("catalogs"), name));
        cluster.catalogs.insert(("olm".to_owned(), (*name).to_owned()), Arc::new(load.snapshot));
    }
    let text = std::fs::read(folder.join("objects").join(file)).unwrap();
    cluster.objects = yaml::documents(&text).unwrap().into_iter().map(|d| d.value().unwrap()).collect();
    cluster
}

fn subscription(name: &str) -> Subject {
    Subject::Subscription { namespace: "garden".to_owned(), name: name.to_owned() }
}

fn explainer(cluster: Cluster) -> Explainer {
    Explainer::new(&Settings::default(), cluster)
}

/// Returns a catalog with three versions of a package, and a Subscription that starts with the first and approves manually.
fn roses() -> Cluster {
    cluster(&scenarios().join("upgrade-manual-steps"), &["main"], "01-subscribe-with-startingcsv.yaml")
}

#[test]
fn the_explanation_is_the_same_before_and_after_the_plan_is_created() {
    let explainer_before = explainer(roses());
    let to_come = explainer_before.explain(&subscription("rose")).unwrap();
    assert_eq!(to_come.verdict.result, VerdictResult::Safe, "{:?}", to_come.verdict);
    assert!(!to_come.plan.exists && !to_come.plan.approved);
    let [csv] = &to_come.csvs[..] else { panic!("{:?}", to_come.csvs) };
    assert_eq!((csv.from.as_deref(), csv.to.as_deref(), csv.change), (None, Some("1.0.0"), CsvChange::Install));
    assert_eq!((csv.phase.as_str(), csv.bystander, csv.dependency), ("Succeeded", false, false));
    assert_eq!(to_come.afterwards, [Next { csvs: vec!["rose.v1.1.0".to_owned()], needs_approval: true }]);
    assert_eq!(explainer_before.explain(&subscription("rose")).unwrap(), to_come);

    // The plan exists, at another time and with other uids.
    let objects: Vec<Value> = explainer_before.copy.settled.api().iter().map(Cow::into_owned).collect();
    let name =
        objects.iter().find(|o| object::text(o, &["kind"]) == "InstallPlan").map(object::name).unwrap().to_owned();
    let there = Cluster { objects, now: "2026-02-01T00:00:00Z".parse().unwrap(), ..roses() };
    let plan = Subject::Plan { namespace: "garden".to_owned(), name: name.clone() };
    let there = explainer(there).explain(&plan).unwrap();
    assert!(there.plan.exists && there.plan.name == name && there.plan.phase == "RequiresApproval");
    assert_eq!(there.hash, to_come.hash);
}

fn explainer_without_catalogs() -> Explainer {
    let mut bare = roses();
    bare.objects.retain(|o| !["Subscription", "CatalogSource"].contains(&object::text(o, &["kind"])));
    bare.catalogs.clear();
    explainer(bare)
}

#[test]
fn packages_and_bundles_are_simulated_without_a_subscription() {
    let mut bare = roses();
    bare.objects.retain(|o| object::text(o, &["kind"]) != "Subscription");
    let explainer = explainer(bare);
    let of = |range: &str| {
        let range = Some(Range::parse(range).unwrap());
        let (namespace, package) = ("garden".to_owned(), "rose".to_owned());
        explainer.explain(&Subject::Package { namespace, package, range })
    };
    assert_eq!(of("<2.0.0").unwrap().csvs[0].to.as_deref(), Some("1.1.0"));
    let error = of(">2.0.0").unwrap_err();
    assert_eq!(error.to_string(), "package rose in versions >2.0.0 not found; catalogs searched: olm/main");
    let (namespace, package) = ("garden".to_owned(), "rose".to_owned());
    let error =
        explainer_without_catalogs().explain(&Subject::Package { namespace, package, range: None }).unwrap_err();
    assert_eq!(error.to_string(), "package rose not found; there are no catalogs");

    let folder = "main/bundles/rose.v2.0.0";
    let files = files(&scenarios().join("upgrade-manual-steps/catalogs"), folder);
    let bundle = Box::new(crate::bundle::Bundle::read(folder, &files).unwrap().render().unwrap());
    let explanation = explainer.explain(&Subject::Bundle { namespace: "garden".to_owned(), bundle }).unwrap();
    assert_eq!((explanation.csvs[0].name.as_str(), explanation.verdict.result), ("rose.v2.0.0", VerdictResult::Safe));
    assert!(explainer.explain(&subscription("rose")).is_err());
}

#[test]
fn unreadable_resources_affect_the_verdict_only_if_the_plan_changes_them() {
    let unreadable =
        |resource: &str| UnreadableResource { resource: resource.to_owned(), ..UnreadableResource::default() };
    let with = |resource: &str| {
        let cluster = Cluster { unreadable: vec![unreadable(resource)], ..roses() };
        explainer(cluster).explain(&subscription("rose")).unwrap().verdict.result
    };
    assert_eq!(with("priorityclasses.scheduling.k8s.io"), VerdictResult::Safe);
    assert_eq!(with("deployments.apps"), VerdictResult::Unknown);
}

#[test]
fn an_approved_plan_that_is_not_executed_yet_is_explained() {
    let waiting = explainer(roses());
    let mut held = waiting.copy.settled.clone();
    let plan = held.api().list("operators.coreos.com", "InstallPlan", Some("garden")).next().cloned().unwrap();
    let name = object::name(&plan).to_owned();
    let explained = waiting.explain(&subscription("rose")).unwrap();
    let approved = crate::sim::Patch::Merge(serde_json::json!({ "spec": { "approved": true } }));
    held.patch(&object::ObjectRef::from_object(&plan), approved, None).unwrap();
    let objects: Vec<Value> = held.api().iter().map(Cow::into_owned).collect();
    let explainer = explainer(Cluster { objects, ..roses() });
    for subject in [Subject::Plan { namespace: "garden".to_owned(), name: name.clone() }, subscription("rose")] {
        let explanation = explainer.explain(&subject).unwrap();
        let Plan { phase, approved, exists, .. } = &explanation.plan;
        assert_eq!((phase.as_str(), *approved, *exists), ("RequiresApproval", true, true), "{subject:?}");
        assert_eq!(
            (&explanation.objects, &explanation.hash),
            (&explained.objects, &explained.hash),
            "the effects do not depend on the approval"
        );
        let reasons: Vec<&str> = explanation.verdict.reasons.iter().map(|because| because.reason.as_str()).collect();
        assert_eq!((explanation.verdict.result, &reasons[..]), (VerdictResult::Safe, &["approved"][..]));
    }
    // A complete plan has no effects.
    let objects: Vec<Value> = explainer.copy.settled.api().iter().map(Cow::into_owned).collect();
    let plan = Subject::Plan { namespace: "garden".to_owned(), name };
    let complete = self::explainer(Cluster { objects, ..roses() }).explain(&plan).unwrap();
    assert_eq!((complete.plan.phase.as_str(), complete.verdict.reasons[0].reason.as_str()), ("Complete", "complete"));
}

#[test]
fn an_unreadable_operator_group_is_not_absent() {
    let mut bare = roses();
    bare.objects.retain(|o| object::text(o, &["kind"]) != "OperatorGroup");
    let absent = explainer(bare.clone()).explain(&subscription("rose")).unwrap();
    assert_eq!(absent.verdict.result, VerdictResult::WouldFail);
    assert!(absent.verdict.reasons[0].message.contains("has no OperatorGroup"), "{:?}", absent.verdict);
    let message = "not allowed to list operatorgroups.operators.coreos.com in namespace garden".to_owned();
    let resource = "operatorgroups.operators.coreos.com".to_owned();
    bare.unreadable = vec![UnreadableResource { resource, namespace: "garden".to_owned(), message: message.clone() }];
    let unreadable = explainer(bare).explain(&subscription("rose")).unwrap();
    assert_eq!(unreadable.verdict.result, VerdictResult::Unknown, "{:?}", unreadable.verdict);
    let messages: Vec<&String> = unreadable.verdict.reasons.iter().map(|because| &because.message).collect();
    assert_eq!(messages, [&message]);
}

/// Returns a CatalogSource whose content could not be read.
fn unread_catalog() -> Value {
    serde_json::json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": { "name": "other", "namespace": "olm", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "sourceType": "grpc", "address": "other.olm:50051" },
    })
}

#[test]
fn an_unavailable_catalog_next_to_a_bundle_is_reported() {
    let mut bare = roses();
    bare.objects.retain(|o| object::text(o, &["kind"]) != "Subscription");
    let folder = "main/bundles/rose.v2.0.0";
    let files = files(&scenarios().join("upgrade-manual-steps/catalogs"), folder);
    let bundle = Box::new(crate::bundle::Bundle::read(folder, &files).unwrap().render().unwrap());
    let subject = Subject::Bundle { namespace: "garden".to_owned(), bundle };
    let well = explainer(bare.clone()).explain(&subject).unwrap();
    assert_eq!(well.csvs[0].reasons, ["it is the requested bundle"]);
    bare.objects.push(unread_catalog());
    let explanation = explainer(bare).explain(&subject).unwrap();
    let verdict = serde_json::to_string(&explanation.verdict).unwrap();
    assert!(!verdict.contains("asked-about"), "{verdict}");
    let [because] = &explanation.verdict.reasons[..] else { panic!("{verdict}") };
    assert_eq!((because.result, because.reason.as_str()), (VerdictResult::Unknown, "catalog"), "{verdict}");
    assert!(because.message.starts_with("the content of catalog olm/other is not known"), "{verdict}");
    assert_eq!(because.hint, "pass its content as a directory: --catalog other.olm=DIR");
}

#[test]
fn the_reason_of_a_dependency_does_not_need_its_catalog() {
    let with = cluster(&scenarios().join("dependency-package-range"), &["main"], "01-subscribe.yaml");
    let settled = explainer(with.clone()).copy.settled;
    let plan = settled.api().list("operators.coreos.com", "InstallPlan", Some("garden")).next().unwrap();
    let name = object::name(plan).to_owned();
    let objects: Vec<Value> = settled.api().iter().map(Cow::into_owned).collect();
    let subject = Subject::Plan { namespace: "garden".to_owned(), name };
    let without = Cluster { objects, catalogs: BTreeMap::new(), ..with };
    let explanation = explainer(without).explain(&subject).unwrap();
    let dependency = explanation.csvs.iter().find(|csv| csv.dependency).unwrap();
    let [because] = &dependency.reasons[..] else { panic!("{dependency:?}") };
    assert!(because.contains(" requires an operator with package: "), "{because}");
}

#[test]
fn dry_run_results_are_reported_and_do_not_change_the_hash() {
    let explainer = explainer(roses());
    let (mut explanation, asks) = explainer.explain_and_ask(&subscription("rose")).unwrap();
    let (hash, of) = (explanation.hash.clone(), |write: &Write| object::ObjectRef::from_object(&write.object));
    let find = |kind: &str| asks.writes.iter().find(|w| of(w).gvk.kind == kind).unwrap();
    let (crd, deployment, csv) = (find("CustomResourceDefinition"), find("Deployment"), find("ClusterServiceVersion"));
    for write in &asks.writes {
        let metadata = object::at(&write.object, &["metadata"]);
        assert!(metadata.get("uid").is_none() && metadata.get("resourceVersion").is_none());
        assert!(write.account.is_none() && write.object.get("status").is_none());
    }
    let mut kept = csv.object.clone();
    kept["metadata"]["uid"] = "u".into();
    kept["spec"]["added"] = "by the server".into();
    let refused = |code, message: &str| Answer::Refused(Status::new(code, "Forbidden", message));
    let results = vec![
        DryRunResult { target: of(deployment), answer: refused(403, "exceeded quota: small") },
        DryRunResult { target: of(csv), answer: Answer::Accepted(kept) },
        DryRunResult { target: of(crd), answer: Answer::NotSent("because".to_owned()) },
    ];
    explanation.add_results(results, String::new(), false);
    let DryRun { sent, accepted, refused, not_sent, .. } = &explanation.dry_run;
    assert_eq!((*sent, *accepted, refused.len(), not_sent.len()), (true, 1, 1, 1));
    assert_eq!(explanation.verdict.result, VerdictResult::WouldFail);
    let because = &explanation.verdict.reasons[0];
    assert!(because.message.ends_with(": exceeded quota: small") && because.hint.contains("quota"), "{because:?}");
    let changed = |kind: &str| explanation.objects.iter().find(|o| o.gvk.kind == kind).unwrap();
    assert_eq!(changed("Deployment").change, Change::Refused);
    let after = &changed("ClusterServiceVersion").after;
    assert_eq!((&after["spec"]["added"], after["metadata"].get("uid")), (&"by the server".into(), None));
    assert_eq!(explanation.hash, hash);

    // Temporary failures make the result unknown, and the same message is reported once.
    let (mut explanation, _) = explainer.explain_and_ask(&subscription("rose")).unwrap();
    let answer = || Answer::Refused(Status::new(500, "InternalError", "failed calling webhook \"gate\""));
    let results = asks.writes.iter().map(|write| DryRunResult { target: of(write), answer: answer() }).collect();
    explanation.add_results(results, String::new(), false);
    assert_eq!((explanation.verdict.result, explanation.verdict.reasons.len()), (VerdictResult::Unknown, 1));
}

#[test]
fn optional_objects_that_the_api_server_refuses_are_skipped() {
    let optional = |gvk: Gvk| Optional { gvk, name: "rose".to_owned(), ..Optional::default() };
    let gvk = Gvk::new("policy", "v1", "PodDisruptionBudget");
    let object = Object { gvk: gvk.clone(), name: "rose".to_owned(), change: Change::Create, ..Object::default() };
    let target = object::ObjectRef { gvk: gvk.clone(), name: "rose".to_owned(), ..object::ObjectRef::default() };
    let explained = |code, gate| {
        let mut explanation = Explanation {
            objects: vec![object.clone()],
            optional: vec![optional(gvk.clone())],
            ..Explanation::default()
        };
        let answer = Answer::Refused(Status::new(code, "", "no"));
        explanation.add_results(vec![DryRunResult { target: target.clone(), answer }], String::new(), gate);
        (explanation.verdict.result, explanation.optional[0].skipped, explanation.objects[0].change)
    };
    assert_eq!(explained(422, true), (VerdictResult::Safe, true, Change::Skipped));
    assert_eq!(explained(422, false), (VerdictResult::WouldFail, false, Change::Refused));
    assert_eq!(explained(405, true), (VerdictResult::WouldFail, false, Change::Refused));
    assert_eq!(explained(503, true), (VerdictResult::Unknown, false, Change::Create));
}

#[test]
fn checks_of_custom_resources_that_are_not_in_the_copy_are_requested() {
    let garden = cluster(&scenarios().join("own/crd-existing-do-not-fit"), &["main"], "01-subscribe.yaml");
    let mut installed = explainer(garden.clone()).copy.settled;
    let plan = installed.api().list("operators.coreos.com", "InstallPlan", Some("garden")).next().cloned().unwrap();
    let approved = crate::sim::Patch::Merge(serde_json::json!({ "spec": { "approved": true } }));
    installed.patch(&object::ObjectRef::from_object(&plan), approved, None).unwrap();
    installed.settle(jiff::SignedDuration::from_mins(5));
    let mut garden = Cluster { objects: installed.api().iter().map(Cow::into_owned).collect(), ..garden };

    let (explanation, asks) = explainer(garden.clone()).explain_and_ask(&subscription("rose")).unwrap();
    assert_eq!(explanation.crds[0].existing, Some(0));
    let [question] = &asks.fits[..] else { panic!("{:?}", asks.fits) };
    assert_eq!(question.crd, explanation.crds[0].name);
    let found = |invalid, losses| SchemaCheckResult {
        at: garden.now,
        looked_at: 3,
        invalid,
        first: Vec::new(),
        losses,
        first_losses: Vec::new(),
        refusal: None,
    };
    let (invalid, losses) = (found(2, 0), found(0, 1));
    let mut loses = garden.clone();
    loses.fits.insert((question.crd.clone(), question.digest()), losses);
    garden.fits.insert((question.crd.clone(), question.digest()), invalid);
    let explained = explainer(loses).explain(&subscription("rose")).unwrap();
    assert_eq!((explained.crds[0].safe, explained.crds[0].loss_count), (false, 1), "{:?}", explained.crds[0]);
    assert_eq!(explained.verdict.result, VerdictResult::NeedsDecision, "{:?}", explained.verdict);
    let explained = explainer(garden).explain(&subscription("rose")).unwrap();
    assert_eq!((explained.crds[0].existing, explained.crds[0].invalid_count), (Some(3), 2));
    assert_eq!(explained.verdict.result, VerdictResult::WouldFail, "{:?}", explained.verdict);
    assert!(
        explained.crds[0].message.starts_with("2 of 3 existing objects do not fit"),
        "{}",
        explained.crds[0].message
    );
}

/// Explains the plan for the first version, with additional steps and a changed ClusterServiceVersion.
fn tampered(steps: &[Value], change: impl Fn(&mut Value)) -> Explanation {
    let settled = explainer(roses()).copy.settled;
    let mut objects: Vec<Value> = settled.api().iter().map(Cow::into_owned).collect();
    let plan = objects.iter_mut().find(|o| object::text(o, &["kind"]) == "InstallPlan").unwrap();
    let name = object::name(plan).to_owned();
    let step = |manifest: &Value| {
        let gvk = object::gvk(manifest);
        serde_json::json!({ "resolving": "rose.v1.0.0", "status": "Unknown", "resource": {
            "group": gvk.group, "version": gvk.version, "name": object::name(manifest),
            "kind": if gvk.kind == "Secret" { "BundleSecret" } else { &gvk.kind },
            "sourceName": "main", "sourceNamespace": "olm", "manifest": manifest.to_string(),
        } })
    };
    let all = plan["status"]["plan"].as_array_mut().unwrap();
    for csv in all.iter_mut().filter(|s| object::text(s, &["resource", "kind"]) == "ClusterServiceVersion") {
        let mut manifest = simulated_plan::manifest(csv).unwrap();
        change(&mut manifest);
        csv["resource"]["manifest"] = manifest.to_string().into();
    }
    // Objects that the operator owns follow its ClusterServiceVersion.
    let (owned, others): (Vec<&Value>, _) =
        steps.iter().partition(|o| matches!(object::text(o, &["kind"]), "Secret" | "ConfigMap"));
    all.splice(0..0, others.into_iter().map(step));
    all.extend(owned.into_iter().map(step));
    let plan = Subject::Plan { namespace: "garden".to_owned(), name };
    explainer(Cluster { objects, ..roses() }).explain(&plan).unwrap()
}

fn role(kind: &str, name: &str, rules: &Value) -> Value {
    serde_json::json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": { "name": name }, "rules": rules })
}

fn binding(role: &str, subject: &Value) -> Value {
    serde_json::json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "more" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role }, "subjects": [subject],
    })
}

fn account(name: &str) -> Value {
    serde_json::json!({ "kind": "ServiceAccount", "name": name, "namespace": "garden" })
}

#[track_caller]
fn has_escalation(explanation: &Explanation, account: &str, escalation: Escalation) {
    let gained = &explanation.rbac.gained;
    let is_marked =
        gained.iter().any(|permission| permission.account == account && permission.escalations.contains(&escalation));
    assert!(is_marked && explanation.rbac.escalates, "{escalation:?} of {account} in {gained:#?}");
    assert!(explanation.verdict.result >= VerdictResult::NeedsDecision, "{:?}", explanation.verdict);
}

#[test]
fn a_claimed_group_exempts_from_no_escalation() {
    let everything = serde_json::json!([{ "apiGroups": ["rbac.authorization.k8s.io"], "verbs": ["*"],
        "resources": ["clusterroles", "clusterrolebindings"] }]);
    let crd = serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "xs.rbac.authorization.k8s.io",
                      "annotations": { "api-approved.kubernetes.io": "unapproved" } },
        "spec": { "group": "rbac.authorization.k8s.io", "scope": "Namespaced",
            "names": { "kind": "X", "listKind": "XList", "plural": "xs", "singular": "x" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }] },
    });
    // The steps are those that OLM derives from the permissions.
    let steps = [crd, role("ClusterRole", "of-the-csv", &everything), binding("of-the-csv", &account("default"))];
    let explanation = tampered(&steps, |csv| {
        csv["spec"]["customresourcedefinitions"]["owned"]
            .as_array_mut()
            .unwrap()
            .push(serde_json::json!({ "name": "xs.rbac.authorization.k8s.io", "version": "v1", "kind": "X" }));
        csv["spec"]["install"]["spec"]["clusterPermissions"] =
            serde_json::json!([{ "serviceAccountName": "default", "rules": everything }]);
    });
    for escalation in [Escalation::Wildcard, Escalation::Escalate, Escalation::Bind, Escalation::ClusterWide] {
        has_escalation(&explanation, "garden/default", escalation);
    }
}

#[test]
fn an_api_service_of_the_core_group_hides_no_secrets() {
    let rules = serde_json::json!([{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"] }]);
    let steps = [role("ClusterRole", "of-the-csv", &rules), binding("of-the-csv", &account("default"))];
    let explanation = tampered(&steps, |csv| {
        csv["spec"]["apiservicedefinitions"] = serde_json::json!({ "owned": [
            { "group": "", "version": "v1", "kind": "Secret", "name": "secrets", "deploymentName": "rose" },
        ] });
        csv["spec"]["install"]["spec"]["clusterPermissions"] =
            serde_json::json!([{ "serviceAccountName": "default", "rules": rules }]);
    });
    has_escalation(&explanation, "garden/default", Escalation::Secrets);
}

#[test]
fn permissions_that_a_bundle_grants_with_its_own_roles_and_bindings_are_marked() {
    // By binding an existing role, to its own account or to all users.
    let explanation = tampered(&[binding("cluster-admin", &account("default"))], |_| {});
    has_escalation(&explanation, "garden/default", Escalation::Wildcard);
    let everybody =
        serde_json::json!({ "kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io" });
    let pods = serde_json::json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    let explanation = tampered(&[role("ClusterRole", "reader", &pods), binding("reader", &everybody)], |_| {});
    has_escalation(&explanation, "Group system:authenticated", Escalation::Everyone);
    // By binding a role that does not exist yet.
    let explanation = tampered(&[binding("comes-later", &account("default"))], |_| {});
    has_escalation(&explanation, "garden/default", Escalation::UnknownRole);
    // By an aggregated role.
    let mut aggregate = role("ClusterRole", "sum", &serde_json::json!([]));
    aggregate["aggregationRule"] = serde_json::json!({ "clusterRoleSelectors": [{}] });
    let explanation = tampered(&[aggregate.clone(), binding("sum", &account("default"))], |_| {});
    has_escalation(&explanation, "garden/default", Escalation::Wildcard);
    // By changing a role that others are bound to.
    let explanation = tampered(&[aggregate], |_| {});
    has_escalation(&explanation, "ClusterRole sum", Escalation::Wildcard);
}

#[test]
fn an_operator_that_starts_to_use_an_account_gains_its_permissions() {
    let settled = explainer(roses()).copy.settled;
    let mut objects: Vec<Value> = settled.api().iter().map(Cow::into_owned).collect();
    objects.push(binding("cluster-admin", &account("default")));
    let plan = objects.iter().find(|o| object::text(o, &["kind"]) == "InstallPlan").unwrap();
    let plan = Subject::Plan { namespace: "garden".to_owned(), name: object::name(plan).to_owned() };
    let explanation = explainer(Cluster { objects, ..roses() }).explain(&plan).unwrap();
    let accounts: Vec<&str> = explanation.csvs.iter().map(|csv| csv.name.as_str()).collect();
    assert_eq!(accounts, ["rose.v1.0.0"]);
    has_escalation(&explanation, "garden/default", Escalation::Wildcard);
}

/// Returns a Secret as a bundle contains it, or as it is in the cluster.
fn seed(key: &str) -> Value {
    serde_json::json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "seed", "namespace": "garden" },
        "type": "kubernetes.io/tls", "data": { "tls.key": key, "tls.crt": "Y3J0" } })
}

#[test]
fn values_and_digests_of_secrets_are_not_shown_but_affect_the_hash() {
    let [one, other] = ["dGhvcm5z", "cGV0YWxz"].map(|key| tampered(&[seed(key)], |_| {}));
    let shown = |explanation: &Explanation| {
        let secret = explanation.objects.iter().find(|o| o.gvk.kind == "Secret").unwrap();
        (secret.change, secret.after["data"].clone())
    };
    assert_eq!(shown(&one), (Change::Create, serde_json::json!({ "tls.key": "(hidden)", "tls.crt": "(hidden)" })));
    assert_eq!(shown(&one), shown(&other));
    assert_ne!(one.hash, other.hash, "another key is another plan");
    let document = serde_json::to_string(&one).unwrap();
    assert!(
        !document.contains("dGhvcm5z") && !document.contains("thorns") && !document.contains("sha256 "),
        "{document}"
    );
}

#[test]
fn the_hash_covers_ca_bundles_except_those_that_olm_generates() {
    let map = |bundle: &str| serde_json::json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "trust" }, "data": { "caBundle": bundle } });
    let [one, other] = ["QQ==", "Qg=="].map(|bundle| tampered(&[map(bundle)], |_| {}));
    let after =
        |explanation: &Explanation| explanation.objects.iter().find(|o| o.name == "trust").unwrap().after.clone();
    assert_eq!(after(&one)["data"]["caBundle"], "QQ==");
    assert_ne!(one.hash, other.hash);
}

/// Returns the marks of an object, and checks that the verdict reports them.
#[track_caller]
fn marked(explanation: &Explanation, kind: &str) -> Vec<Escalation> {
    let object = explanation.objects.iter().find(|o| o.gvk.kind == kind && !o.escalations.is_empty());
    let object = object.unwrap_or_else(|| panic!("no {kind} is marked: {:#?}", explanation.objects));
    assert!(explanation.verdict.result >= VerdictResult::NeedsDecision, "{:?}", explanation.verdict);
    for escalation in &object.escalations {
        let is_told =
            |because: &VerdictReason| because.reason == "escalation" && because.message.contains(escalation.words());
        assert!(explanation.verdict.reasons.iter().any(is_told), "{:?}", explanation.verdict);
    }
    object.escalations.clone()
}

#[test]
fn privileged_pods_are_marked() {
    let with = |field: &str, value: Value| {
        tampered(&[], |csv| {
            let pod = &mut csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"];
            pod[field] = value.clone();
        })
    };
    for (field, value, mark) in [
        ("hostNetwork", true.into(), Escalation::HostNamespaces),
        ("volumes", serde_json::json!([{ "name": "a", "hostPath": { "path": "/" } }]), Escalation::HostPath),
        (
            "initContainers",
            serde_json::json!([{ "name": "a", "image": "a", "securityContext": { "privileged": true } }]),
            Escalation::Privileged,
        ),
    ] {
        let explanation = with(field, value);
        assert_eq!(marked(&explanation, "ClusterServiceVersion"), [mark]);
        assert_eq!(marked(&explanation, "Deployment"), [mark]);
    }
    let plain = tampered(&[], |_| {});
    assert!(
        plain.objects.iter().all(|object| object.escalations.is_empty()) && plain.verdict.result == VerdictResult::Safe
    );
}

#[test]
fn tokens_of_service_accounts_in_a_bundle_are_marked() {
    let token = serde_json::json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": { "name": "seed", "annotations": { "kubernetes.io/service-account.name": "default" } } });
    assert_eq!(marked(&tampered(&[token], |_| {}), "Secret"), [Escalation::Tokens]);
}

#[test]
fn permissions_that_a_bundle_grants_to_other_accounts_are_marked() {
    let system = serde_json::json!({ "kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system" });
    let explanation = tampered(&[binding("cluster-admin", &system)], |_| {});
    has_escalation(&explanation, "kube-system/coredns", Escalation::Wildcard);
    let mut here = binding("cluster-admin", &account("default"));
    here["kind"] = "RoleBinding".into();
    has_escalation(&tampered(&[here], |_| {}), "garden/default", Escalation::Wildcard);
}

#[test]
fn a_role_with_many_rules_for_many_accounts_is_marked_without_listing_its_rules() {
    let rules: Vec<Value> = (0..1_000)
        .map(|n| serde_json::json!({ "apiGroups": ["garden"], "resources": [format!("r{n}")], "verbs": ["get"] }))
        .collect();
    let mut many = binding("vast", &account("default"));
    many["subjects"] = (0..1_000).map(|n| account(&format!("a{n}"))).collect();
    let explanation = tampered(&[role("ClusterRole", "vast", &rules.into()), many], |_| {});
    has_escalation(&explanation, "garden/a7", Escalation::UnknownRole);
    assert!(explanation.rbac.gained.len() < 2_000, "{}", explanation.rbac.gained.len());
}
