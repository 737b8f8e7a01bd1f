//! Tests of single plans of an InstallPlan, for given objects.

mod by_others;
mod concurrency;
mod edits;
mod fits;
mod optional;
mod permissions;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::api::object::{self, ObjectRef};
use crate::api::status::Status;
use crate::plan::{Action, Controller, Key, Plan, Reason, Verb};
use crate::settings::Settings;
use crate::testing;
use crate::world::{Fact, FactKey, Reader, Refusal, World};

const CREATED: &str = "2026-11-21T12:00:00Z";

fn at(second: i64) -> Timestamp {
    CREATED.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(second)
}

fn key() -> Key {
    Key::new(Controller::InstallPlan, "garden", "install-1")
}

fn step(api_version: &str, kind: &str, name: &str, manifest: &Value) -> Value {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    json!({
        "resolving": "rose.v2.0.0", "status": "Unknown",
        "resource": {
            "sourceName": "main", "sourceNamespace": "olm", "group": group, "version": version, "kind": kind, "name": name,
            "manifest": manifest.to_string(),
        },
    })
}

/// Returns a step for an object with additional fields in its manifest.
fn simple(api_version: &str, kind: &str, name: &str, rest: &Value) -> Value {
    let mut manifest = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
    for (key, value) in rest.as_object().unwrap() {
        manifest[key] = value.clone();
    }
    step(api_version, if kind == "Secret" { "BundleSecret" } else { kind }, name, &manifest)
}

fn install_plan(phase: &str, steps: &[Value]) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
        "metadata": { "name": "install-1", "namespace": "garden", "uid": "u-plan", "creationTimestamp": CREATED },
        "spec": { "approval": "Automatic", "approved": true, "clusterServiceVersionNames": ["rose.v2.0.0"], "generation": 1 },
        "status": { "phase": phase, "plan": steps, "catalogSources": ["main"] },
    })
}

fn csv() -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": "rose.v2.0.0", "namespace": "garden", "uid": "u-csv", "creationTimestamp": CREATED },
    })
}

fn csv_step() -> Value {
    simple(
        "operators.coreos.com/v1alpha1",
        "ClusterServiceVersion",
        "rose.v2.0.0",
        &json!({ "status": { "cleanup": {} } }),
    )
}

/// Returns an object that was created before the InstallPlan.
fn old(api_version: &str, kind: &str, name: &str, rest: &Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": { "name": name, "uid": format!("u-{name}"), "creationTimestamp": "2026-11-01T00:00:00Z" },
    });
    if !matches!(kind, "ClusterRole" | "ClusterRoleBinding" | "CustomResourceDefinition" | "PriorityClass") {
        object["metadata"]["namespace"] = "garden".into();
    }
    merge(&mut object, rest);
    object
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn world(objects: &[Value]) -> World {
    let mut world = World::new();
    let group = testing::with_status(
        testing::operator_group("garden", "garden", &Value::Null),
        &json!({ "namespaces": ["garden"], "lastUpdated": CREATED }),
    );
    for object in objects.iter().chain([&group]) {
        world.apply(object.clone());
    }
    world
}

fn plan(world: &World, now: Timestamp) -> Plan {
    plan_with(&Settings::default(), world, now)
}

fn plan_with(settings: &Settings, world: &World, now: Timestamp) -> Plan {
    super::plan(settings, &Reader::new(world), &key(), now)
}

fn refuse(world: &mut World, action: &Action, code: u16, reason: &str, message: &str) {
    refuse_again(world, action, 1, Status::new(code, reason, message));
}

fn refuse_again(world: &mut World, action: &Action, attempts: u32, status: Status) {
    let refusal =
        Refusal { verb: action.verb(), target: action.target(), status, attempts, since: at(0), retry_at: at(1) };
    world.learn(FactKey::Refusals(key()), Some(Fact::Refusals(vec![refusal])));
}

/// Formats actions as `verb Kind/name`, and writes of the plan's status as its phase, message and steps.
fn told(plan: &Plan) -> Vec<String> {
    let action = |a: &Action| {
        let ObjectRef { gvk, name, .. } = a.target();
        match a {
            Action::UpdateStatus(o) => {
                let status = |key| object::text(o, &["status", key]);
                let steps = object::list(o, &["status", "plan"]).iter().map(|s| object::text(s, &["status"]));
                let steps: Vec<&str> = steps.collect();
                format!("{} {} [{}]", status("phase"), status("message"), steps.join(" "))
            }
            _ => format!("{} {}/{name}", a.verb().as_str(), gvk.kind),
        }
    };
    plan.actions.iter().map(action).collect()
}

fn object_of(plan: &Plan, verb: Verb, kind: &str) -> Value {
    let found = plan.actions.iter().find(|a| a.verb() == verb && a.target().gvk.kind == kind);
    match found {
        Some(Action::Create(o) | Action::Update(o)) => o.clone(),
        Some(Action::Patch { patch, .. }) => patch.clone(),
        other => panic!("{other:?} in {plan:?}"),
    }
}

const CRD: &str = "apiextensions.k8s.io/v1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn crd_spec(versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions.iter().map(|v| json!({ "name": v, "served": true, "storage": true })).collect();
    json!({ "spec": { "group": "garden.example.com", "versions": versions } })
}

fn crd_status(stored: &[&str], established: bool) -> Value {
    let status = if established { "True" } else { "False" };
    json!({ "status": { "storedVersions": stored, "conditions": [
        { "type": "NamesAccepted", "status": "True" }, { "type": "Established", "status": status },
    ] } })
}

#[test]
fn steps_wait_for_their_owner_and_a_single_write_completes_the_plan() {
    let steps = [
        csv_step(),
        simple(CRD, "CustomResourceDefinition", "roses.garden.example.com", &crd_spec(&["v1"])),
        simple("v1", "Service", "rose", &json!({ "spec": { "ports": [{ "port": 80 }] } })),
        simple(RBAC, "ClusterRole", "reader", &json!({ "rules": [] })),
    ];
    let installing = install_plan("Installing", &steps);
    let first = plan(&world(std::slice::from_ref(&installing)), at(0));
    assert_eq!(
        told(&first),
        ["create ClusterServiceVersion/rose.v2.0.0", "create CustomResourceDefinition/roses.garden.example.com"]
    );
    let made = object_of(&first, Verb::Create, "ClusterServiceVersion");
    assert_eq!(
        made["metadata"],
        json!({ "name": "rose.v2.0.0", "namespace": "garden", "labels": { "olm.managed": "true" } })
    );
    assert!(made.get("status").is_none());

    let mut crd = object_of(&first, Verb::Create, "CustomResourceDefinition");
    assert_eq!(
        crd["metadata"]["annotations"],
        json!({ "operatorframework.io/installed-alongside-29a1e560b635065c": "garden/rose.v2.0.0" })
    );
    crd["metadata"]["creationTimestamp"] = CREATED.into();
    merge(&mut crd, &crd_status(&["v1"], false));
    let second = plan(&world(&[installing.clone(), csv(), crd.clone()]), at(0));
    assert_eq!(told(&second), ["create Service/rose", "create ClusterRole/reader"]);
    assert!(matches!(second.reasons[..], [Reason::InstallPlanWaits { .. }]));
    let service = object_of(&second, Verb::Create, "Service");
    assert_eq!(service["metadata"]["ownerReferences"], json!([object::owner_reference(&csv(), false)]));

    let with_time = |mut o: Value| {
        o["metadata"]["creationTimestamp"] = CREATED.into();
        o
    };
    let made = [service, object_of(&second, Verb::Create, "ClusterRole")].map(with_time);
    let mut there = vec![installing, csv(), crd.clone()];
    there.extend(made);
    let waiting = plan(&world(&there), at(0));
    assert_eq!(told(&waiting), [""; 0]);
    merge(&mut there[2], &crd_status(&["v1"], true));
    let last = plan(&world(&there), at(0));
    assert_eq!(told(&last), ["Complete  [Created Created Created Created]"]);
    let Some(Action::UpdateStatus(done)) = last.actions.last() else { panic!() };
    assert_eq!(done["status"]["startTime"], CREATED);
    there[0] = done.clone();
    assert_eq!(plan(&world(&there), at(1)), Plan::nothing());
}

#[test]
fn existing_objects_are_updated() {
    let new_rule = json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"] }] });
    let old_rule = json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }] });
    let earlier = json!([{ "kind": "ClusterServiceVersion", "name": "rose.v1.0.0", "uid": "u-old" }]);
    let component = json!({ "metadata": { "labels": { "operators.coreos.com/rose.garden": "", "team": "roses" } } });
    let mut account = simple("v1", "ServiceAccount", "helper", &json!({}));
    account["resource"]["manifest"] = json!({
        "metadata": { "name": "helper", "annotations": { "new": "1" }, "ownerReferences": [
            { "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": "rose.v2.0.0", "uid": "" },
        ] },
    })
    .to_string()
    .into();
    let labels = json!({ "olm.managed": "true", "operators.coreos.com/rose.garden": "" });
    // Step, existing object, path, result.
    let rows: Vec<(Value, Value, &[&str], Value)> = vec![
        (
            simple("v1", "ConfigMap", "rose", &json!({ "data": { "c": "d" } })),
            old("v1", "ConfigMap", "rose", &json!({ "data": { "a": "b" } })),
            &["data"],
            json!({ "c": "d" }),
        ),
        (
            simple("v1", "ConfigMap", "rose", &json!({})),
            old("v1", "ConfigMap", "rose", &component),
            &["metadata", "labels"],
            labels,
        ),
        (
            simple("v1", "Secret", "rose", &json!({ "stringData": { "password": "x" } })),
            old("v1", "Secret", "rose", &json!({ "data": { "password": "eQ==" } })),
            &["data"],
            json!({ "password": "eA==" }),
        ),
        (
            simple(
                "v1",
                "Service",
                "rose",
                &json!({ "spec": { "selector": { "app": "rose" }, "ports": [{ "port": 80 }] } }),
            ),
            old(
                "v1",
                "Service",
                "rose",
                &json!({ "spec": {
                "clusterIP": "10.0.0.1", "selector": { "app": "old", "x": "y" }, "ports": [{ "port": 80, "protocol": "TCP" }],
            } }),
            ),
            &["spec"],
            json!({ "clusterIP": "10.0.0.1", "selector": { "app": "rose" }, "ports": [{ "port": 80, "protocol": "TCP" }] }),
        ),
        (
            account,
            old(
                "v1",
                "ServiceAccount",
                "helper",
                &json!({
                    "metadata": { "annotations": { "mine": "1" }, "ownerReferences": earlier }, "secrets": [{ "name": "s" }],
                }),
            ),
            &["metadata", "ownerReferences"],
            json!([
                earlier[0],
                {
                    "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": "rose.v2.0.0",
                    "uid": "u-csv",
                },
            ]),
        ),
        (
            simple(RBAC, "Role", "reader", &new_rule),
            old(RBAC, "Role", "reader", &old_rule),
            &["rules"],
            new_rule["rules"].clone(),
        ),
        (
            simple(RBAC, "ClusterRole", "reader", &new_rule),
            old(RBAC, "ClusterRole", "reader", &old_rule),
            &["metadata", "labels"],
            json!({ "olm.managed": "true", "olm.owner": "rose.v2.0.0" }),
        ),
        (
            simple("policy/v1", "PodDisruptionBudget", "pdb", &json!({ "spec": { "minAvailable": 2 } })),
            old(
                "policy/v1",
                "PodDisruptionBudget",
                "pdb",
                &json!({ "spec": { "minAvailable": 1, "maxUnavailable": 1 } }),
            ),
            &["spec"],
            json!({ "minAvailable": 2 }),
        ),
        (
            simple("scheduling.k8s.io/v1", "PriorityClass", "first", &json!({ "value": 7 })),
            old("scheduling.k8s.io/v1", "PriorityClass", "first", &json!({ "value": 7 })),
            &["metadata", "labels", "olm.owner.namespace"],
            json!("garden"),
        ),
    ];
    for (step, there, path, expected) in rows {
        let kind = there["kind"].as_str().unwrap().to_owned();
        let installing = install_plan("Installing", std::slice::from_ref(&step));
        let plan = plan(&world(&[installing, csv(), there.clone()]), at(0));
        assert_eq!(told(&plan), [format!("update {kind}/{}", object::name(&there)), "Complete  [Present]".to_owned()]);
        let updated = object_of(&plan, Verb::Update, &kind);
        assert_eq!(object::at(&updated, path), &expected, "{updated}");
        assert_eq!(object::uid(&updated), object::uid(&there));
    }
}

#[test]
fn existing_csvs_and_subscriptions_are_not_changed() {
    for (step, kind) in [
        (csv_step(), "ClusterServiceVersion"),
        (
            simple("operators.coreos.com/v1alpha1", "Subscription", "rose", &json!({ "spec": { "channel": "b" } })),
            "Subscription",
        ),
    ] {
        let name = object::text(&step, &["resource", "name"]);
        let there = old("operators.coreos.com/v1alpha1", kind, name, &json!({ "spec": { "channel": "a" } }));
        let installing = install_plan("Installing", std::slice::from_ref(&step));
        assert_eq!(told(&plan(&world(&[installing, there]), at(0))), ["Complete  [Present]"]);
    }
}

#[test]
fn an_existing_crd_is_patched_along_with_the_last_write() {
    let steps = [simple(CRD, "CustomResourceDefinition", "roses.garden.example.com", &crd_spec(&["v1", "v2"]))];
    let mut there = old(CRD, "CustomResourceDefinition", "roses.garden.example.com", &crd_status(&["v1"], true));
    there["metadata"]["annotations"] = json!({
        "operatorframework.io/installed-alongside-1": "garden/rose.v1.0.0",
        "operatorframework.io/installed-alongside-2": "field/rose.v1.0.0",
    });
    let mut other = csv();
    other["metadata"]["namespace"] = "field".into();
    other["metadata"]["name"] = "rose.v1.0.0".into();
    let plan = plan(&world(&[install_plan("Installing", &steps), csv(), other, there]), at(0));
    assert_eq!(told(&plan), ["patch CustomResourceDefinition/roses.garden.example.com", "Complete  [Present]"]);
    let patch = object_of(&plan, Verb::Patch, "CustomResourceDefinition");
    assert_eq!(
        patch["metadata"]["annotations"],
        json!({
            "operatorframework.io/installed-alongside-1": null,
            "operatorframework.io/installed-alongside-29a1e560b635065c": "garden/rose.v2.0.0",
        })
    );
    assert_eq!(object::list(&patch, &["spec", "versions"]).len(), 2);
}

#[test]
fn an_existing_crd_gets_the_spec_of_the_bundle() {
    let name = "roses.garden.example.com";
    let mut new = crd_spec(&["v1"]);
    merge(&mut new, &json!({ "spec": { "scope": "Namespaced", "names": { "kind": "Rose", "plural": "roses" } } }));
    let steps = [simple(CRD, "CustomResourceDefinition", name, &new)];
    let mut there = old(CRD, "CustomResourceDefinition", name, &crd_status(&["v1"], true));
    let webhook = json!({ "clientConfig": { "service": { "name": "mine" } }, "conversionReviewVersions": ["v1"] });
    merge(
        &mut there,
        &json!({
            "metadata": { "labels": { "mine": "yes" }, "annotations": { "note": "made by hand" } },
            "spec": {
                "group": "garden.example.com", "scope": "Namespaced",
                "names": { "kind": "Rose", "plural": "roses", "shortNames": ["ro"], "categories": ["all"] },
                "versions": [{ "name": "v1beta1", "served": true }, { "name": "v1", "served": true, "storage": true }],
                "conversion": { "strategy": "Webhook", "webhook": webhook },
            },
        }),
    );
    let mut world = world(&[install_plan("Installing", &steps), csv(), there.clone()]);
    let patched = |world: &World| {
        let patch = object_of(&plan(world, at(0)), Verb::Patch, "CustomResourceDefinition");
        let mut after = there.clone();
        json_patch::merge(&mut after, &patch);
        after
    };
    let after = patched(&world);
    assert_eq!(after["spec"], new["spec"], "no other fields are left");
    assert_eq!(after["metadata"]["labels"], json!({ "mine": "yes", "olm.managed": "true" }));
    assert_eq!(after["metadata"]["annotations"]["note"], "made by hand");
    // The conversion webhook of an operator is preserved.
    let mut converts = csv();
    converts["spec"]["webhookdefinitions"] = json!([{ "type": "ConversionWebhook", "conversionCRDs": [name] }]);
    world.apply(converts);
    assert_eq!(patched(&world)["spec"]["conversion"], there["spec"]["conversion"]);
}

#[test]
fn failures_are_retried_for_a_minute() {
    let steps = [simple(CRD, "CustomResourceDefinition", "roses.garden.example.com", &crd_spec(&["v2"]))];
    let there = old(CRD, "CustomResourceDefinition", "roses.garden.example.com", &crd_status(&["v1"], true));
    let mut world = world(&[install_plan("Installing", &steps), csv(), there]);
    let risk = "risk of data loss updating \"roses.garden.example.com\": new CRD removes version v1 that is listed as a stored \
                version on the existing CRD";
    let first = plan(&world, at(0));
    assert_eq!(told(&first), [format!("Installing retrying execution due to error: {risk} [Unknown]")]);
    assert_eq!(first.again, Some(at(60)));
    let Some(Action::UpdateStatus(written)) = first.actions.into_iter().next() else { panic!() };
    world.apply(written);
    assert_eq!(told(&plan(&world, at(59))), [""; 0]);
    let last = plan(&world, at(60));
    assert_eq!(told(&last), [format!("Failed {risk} [Unknown]")]);
    let Some(Action::UpdateStatus(failed)) = last.actions.into_iter().next() else { panic!() };
    assert_eq!(failed["status"]["conditions"][0]["reason"], "InstallComponentFailed");
    world.apply(failed);
    assert!(matches!(plan(&world, at(61)).reasons[..], [Reason::InstallPlanFailed { .. }]));
}

#[test]
fn refusals_are_reported_and_forbidden_is_never_final() {
    let role = || simple(RBAC, "Role", "reader", &json!({ "rules": [] }));
    let link = || simple("console.openshift.io/v1", "ConsoleLink", "rose-link", &json!({}));
    let unknown = "api-server resource not found installing ConsoleLink rose-link: GroupVersionKind console.openshift.io/v1, \
                   Kind=ConsoleLink not found on the cluster. This API may have been deprecated and removed, see \
                   https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.";
    for (step, code, reason, said, told_as, is_final) in [
        (role(), 403, "Forbidden", "no", "error creating role reader: no", false),
        (role(), 500, "InternalError", "oh", "error creating role reader: oh", true),
        (link(), 404, "NotFound", "the server could not find the requested resource", unknown, true),
    ] {
        let mut world = world(&[install_plan("Installing", &[csv_step(), step]), csv()]);
        let first = plan(&world, at(0));
        let action = first.actions[0].clone();
        refuse(&mut world, &action, code, reason, said);
        let second = plan(&world, at(0));
        // The status first, then the retry, which the planner holds back.
        assert_eq!(
            told(&second)[0],
            format!("Installing retrying execution due to error: {told_as} [Created Unknown]")
        );
        assert_eq!(second.actions[1], action);
        assert_eq!(second.again.is_some(), is_final);
        let Action::UpdateStatus(written) = second.actions[0].clone() else { panic!() };
        world.apply(written);
        assert_eq!(plan(&world, at(1)).actions, std::slice::from_ref(&action));
        let late = plan(&world, at(61));
        assert_eq!(told(&late)[0].starts_with("Failed"), is_final, "{:?}", told(&late));
    }
}

#[test]
fn approval_comes_first() {
    let steps = [csv_step()];
    let mut waiting = install_plan("RequiresApproval", &steps);
    (waiting["spec"]["approval"], waiting["spec"]["approved"]) = ("Manual".into(), false.into());
    let plan_of = |p: &Value| plan(&world(std::slice::from_ref(p)), at(0));
    assert!(
        matches!(&plan_of(&waiting).reasons[..], [Reason::ApprovalNeeded { csvs, .. }] if *csvs == ["rose.v2.0.0"])
    );
    waiting["spec"]["approved"] = true.into();
    assert_eq!(told(&plan_of(&waiting)), ["Installing  [Unknown]"]);
    // It has no steps yet.
    assert_eq!(plan_of(&install_plan("", &[])), Plan::nothing());
}

#[test]
fn olm_writes_its_own_types_whatever_group_and_version_a_step_names() {
    for (said, kind, made) in [
        ("v1alpha1", "ClusterServiceVersion", "operators.coreos.com/v1alpha1"),
        ("binding.operators.coreos.com/v1alpha1", "ClusterServiceVersion", "operators.coreos.com/v1alpha1"),
        ("apiextensions.k8s.io/v1", "ClusterServiceVersion", "operators.coreos.com/v1alpha1"),
        ("authorization.openshift.io/v1", "Role", RBAC),
        ("rbac.authorization.k8s.io/v1beta1", "ClusterRole", RBAC),
        ("serving.knative.dev/v1", "Service", "v1"),
        ("vault.example.com/v1", "Secret", "v1"),
        ("policy/v1beta1", "PodDisruptionBudget", "policy/v1beta1"),
    ] {
        let is_csv = kind == "ClusterServiceVersion";
        let made_before = (!is_csv).then(csv);
        let step = simple(said, kind, if is_csv { "rose.v2.0.0" } else { "x" }, &json!({}));
        let installing = install_plan("Installing", &[step]);
        let world = world(&[Some(installing), made_before].into_iter().flatten().collect::<Vec<_>>());
        let plan = plan_with(&Settings::default(), &world, at(0));
        let object = object_of(&plan, Verb::Create, kind);
        assert_eq!(object["apiVersion"], made, "{kind} of {said}");
        // The step itself is not changed.
        let Some(Action::UpdateStatus(written)) = plan.actions.iter().find(|a| a.verb() == Verb::UpdateStatus) else {
            continue;
        };
        let resource = &written["status"]["plan"][0]["resource"];
        assert_eq!(Some(object::text(resource, &["version"])), said.rsplit('/').next(), "{kind} of {said}");
        assert!(object::text(resource, &["manifest"]).contains(said), "{kind} of {said}");
    }
}
