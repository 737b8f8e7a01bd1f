//! Tests of optional steps, according to the tables of the enhancement `optional-manifest`.

use super::*;
use crate::api::object::Gvk;
use crate::plan::Question;
use crate::world::Discovery;

fn on() -> Settings {
    Settings { optional_manifests: true, ..Settings::default() }
}

fn optional(mut step: Value) -> Value {
    step["optional"] = true.into();
    step
}

fn rule() -> Value {
    simple("monitoring.coreos.com/v1", "PrometheusRule", "rule", &json!({ "spec": {} }))
}

fn installing(steps: &[Value]) -> Value {
    let csv = csv_step();
    install_plan("Installing", &[std::slice::from_ref(&csv), steps].concat())
}

/// Returns what the plan does after the creation of a step was refused that many times in a row.
fn after_refusals(settings: &Settings, step: &Value, attempts: u32, status: Status) -> (Vec<String>, Vec<String>) {
    let mut world = world(&[installing(std::slice::from_ref(step)), csv()]);
    let first = plan_with(settings, &world, at(0));
    let kind = object::text(step, &["resource", "kind"]);
    assert_eq!(told(&first), [format!("create {kind}/rule"), "Complete  [Created Created]".to_owned()]);
    let action = first.actions[0].clone();
    refuse_again(&mut world, &action, attempts, status);
    let now = plan_with(settings, &world, at(0));
    if let Some(Action::UpdateStatus(written)) = now.actions.first() {
        world.apply(written.clone());
    }
    (told(&now), told(&plan_with(settings, &world, at(61))))
}

/// Code, reason, and whether the plan continues.
const ROWS: [(u16, &str, bool); 19] = [
    (401, "Unauthorized", true),
    (403, "Forbidden", true),
    (404, "NotFound", true),
    (422, "Invalid", true),
    (406, "NotAcceptable", true),
    (415, "UnsupportedMediaType", true),
    (409, "Conflict", true),
    (410, "Gone", false),
    (500, "ServerTimeout", false),
    (504, "Timeout", false),
    (429, "TooManyRequests", false),
    (400, "BadRequest", false),
    (405, "MethodNotAllowed", false),
    (413, "RequestEntityTooLarge", false),
    (500, "InternalError", false),
    (410, "Expired", false),
    (503, "ServiceUnavailable", false),
    // A webhook may return any code without a reason; and there may be no response at all.
    (403, "", true),
    (0, "NoAnswer", false),
];

#[test]
fn steps_are_skipped_after_permanent_refusals_and_retried_after_others() {
    for (code, reason, goes_on) in ROWS {
        let row = format!("{code} {reason}");
        // A conflict is first attributed to a stale World.
        let (now, late) = after_refusals(&on(), &optional(rule()), 4, Status::new(code, reason, "no"));
        if goes_on {
            assert_eq!(now, ["Complete  [Created NotCreated]", "emit event about InstallPlan/install-1"], "{row}");
        } else {
            let retrying = "Installing retrying execution due to error: error creating unstructured object rule: no";
            assert_eq!(
                now,
                [format!("{retrying} [Created Unknown]"), "create PrometheusRule/rule".to_owned()],
                "{row}"
            );
            assert_eq!(late, ["Failed error creating unstructured object rule: no [Created Unknown]"], "{row}");
        }
    }
}

#[test]
fn steps_that_are_not_optional_and_the_gate_switched_off_change_nothing() {
    let off = Settings::default();
    for (code, reason, _) in ROWS {
        let outcome = |settings: &Settings, step: &Value| {
            let (now, late) = after_refusals(settings, step, 4, Status::new(code, reason, "no"));
            assert!(now[0].starts_with("Installing retrying execution due to error: "), "{code} {reason} {now:?}");
            (now, late)
        };
        let before = outcome(&off, &rule());
        assert_eq!(outcome(&on(), &rule()), before);
        assert_eq!(outcome(&off, &optional(rule())), before);
    }
}

#[test]
fn existing_optional_objects_are_updated() {
    let step = optional(rule());
    let (now, _) = after_refusals(&on(), &step, 1, Status::new(409, "AlreadyExists", "it exists"));
    // The planner reads the object in the meantime.
    assert_eq!(now[0], "create PrometheusRule/rule");
    let there = old("monitoring.coreos.com/v1", "PrometheusRule", "rule", &json!({ "spec": { "groups": [] } }));
    let world = world(&[installing(&[step]), csv(), there]);
    let plan = plan_with(&on(), &world, at(0));
    assert_eq!(told(&plan), ["update PrometheusRule/rule", "Complete  [Created Present]"]);
}

#[test]
fn a_refused_update_is_skipped_as_well() {
    let there = old("monitoring.coreos.com/v1", "PrometheusRule", "rule", &json!({ "spec": { "groups": [] } }));
    let mut world = world(&[installing(&[optional(rule())]), csv(), there]);
    let action = plan_with(&on(), &world, at(0)).actions[0].clone();
    refuse(&mut world, &action, 422, "Invalid", "no");
    assert_eq!(told(&plan_with(&on(), &world, at(0)))[0], "Complete  [Created NotCreated]");
}

#[test]
fn the_event_states_what_is_missing_and_why() {
    let mut world = world(&[installing(&[optional(rule())]), csv()]);
    let action = plan_with(&on(), &world, at(0)).actions[0].clone();
    refuse(&mut world, &action, 404, "NotFound", "the server could not find the requested resource");
    let plan = plan_with(&on(), &world, at(0));
    let Some(Action::Emit(emit)) = plan.actions.last() else { panic!("{plan:?}") };
    assert!(emit.warning);
    assert_eq!(
        emit.message,
        "the plan goes on without optional PrometheusRule \"rule\" of rose.v2.0.0: api-server resource not found installing \
         PrometheusRule rule: GroupVersionKind monitoring.coreos.com/v1, Kind=PrometheusRule not found on the cluster. This \
         API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for \
         more information."
    );
    let Some(Action::UpdateStatus(done)) = plan.actions.first() else { panic!("{plan:?}") };
    world.apply(done.clone());
    let after = plan_with(&on(), &world, at(1));
    assert_eq!(after.actions, []);
    assert!(
        matches!(&after.reasons[..], [Reason::OptionalNotCreated { objects, .. }] if *objects == ["PrometheusRule \"rule\""])
    );
    assert_eq!(super::plan(&world, at(1)), Plan::nothing());
}

#[test]
fn a_skipped_step_does_not_block_others() {
    let other = simple("policy/v1", "PodDisruptionBudget", "pdb", &json!({ "spec": {} }));
    let mut world = world(&[installing(&[optional(rule()), other]), csv()]);
    let action = plan_with(&on(), &world, at(0)).actions[0].clone();
    refuse(&mut world, &action, 404, "NotFound", "no");
    assert_eq!(
        told(&plan_with(&on(), &world, at(0))),
        [
            "create PodDisruptionBudget/pdb",
            "Complete  [Created NotCreated Created]",
            "emit event about InstallPlan/install-1"
        ]
    );
}

fn served(kinds: &[(&str, bool)]) -> Discovery {
    Discovery::new(kinds.iter().map(|(kind, namespaced)| ((*kind).to_owned(), Some(*namespaced))).collect())
}

fn discover(world: &mut World, api_version: &str, discovery: Discovery) {
    let gvk = Gvk::from_api_version(api_version, "");
    world.learn(FactKey::Discovery(gvk.group, gvk.version), Some(Fact::Discovery(discovery)));
}

#[test]
fn the_scope_of_an_optional_object_is_discovered() {
    let schema = optional(simple("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "rose", &json!({})));
    let mut world = world(&[installing(&[schema]), csv()]);
    let plan = plan_with(&on(), &world, at(0));
    let (group, version) = ("flowcontrol.apiserver.k8s.io".to_owned(), "v1".to_owned());
    assert_eq!(plan.actions, [Action::Ask(Question::Discover { group, version })]);
    let mut end = |discovery: Discovery| {
        discover(&mut world, "flowcontrol.apiserver.k8s.io/v1", discovery);
        plan_with(&on(), &world, at(0))
    };
    let waits = told(&end(Discovery::failed("busy")));
    let unknown = "cannot find out whether objects of this kind are in namespaces: FlowSchema (flowcontrol.apiserver.k8s.io/v1): busy";
    assert_eq!(waits, [format!("Installing retrying execution due to error: {unknown} [Created Unknown]")]);
    let made = object_of(&end(served(&[("FlowSchema", false)])), Verb::Create, "FlowSchema");
    assert_eq!((object::namespace(&made), object::label(&made, "olm.owner")), ("", Some("rose.v2.0.0")));
    assert!(made["metadata"].get("ownerReferences").is_none());
    let made = object_of(&end(served(&[("FlowSchema", true)])), Verb::Create, "FlowSchema");
    assert_eq!((object::namespace(&made), object::label(&made, "olm.owner")), ("garden", None));
}

#[test]
fn any_kind_may_be_optional_except_those_of_olm() {
    let monitor = simple("monitoring.coreos.com/v1", "PodMonitor", "monitor", &json!({}));
    let there = |steps: &[Value]| {
        let mut world = world(&[installing(steps), csv()]);
        for (api_version, kind) in [
            ("monitoring.coreos.com/v1", "PodMonitor"),
            ("serving.knative.dev/v1", "Service"),
            ("apps.open-cluster-management.io/v1", "Subscription"),
        ] {
            discover(&mut world, api_version, served(&[(kind, true)]));
        }
        world
    };
    let made = plan_with(&on(), &there(&[optional(monitor.clone())]), at(0));
    let made = object_of(&made, Verb::Create, "PodMonitor");
    assert_eq!(object::namespace(&made), "garden");
    assert_eq!(made["metadata"]["ownerReferences"], json!([object::owner_reference(&csv(), false)]));
    for (settings, step) in [(on(), monitor.clone()), (Settings::default(), optional(monitor))] {
        let refused = plan_with(&settings, &there(&[step]), at(0));
        let invalid = "retrying execution due to error: the InstallPlan contains invalid data";
        assert_eq!(told(&refused), [format!("Installing {invalid} [Created UnsupportedResource]")]);
    }
    // A kind of another group with the name of one of OLM's kinds may be optional.
    for (api_version, kind) in
        [("serving.knative.dev/v1", "Service"), ("apps.open-cluster-management.io/v1", "Subscription")]
    {
        let plan = plan_with(&on(), &there(&[optional(simple(api_version, kind, "other", &json!({})))]), at(0));
        let made = object_of(&plan, Verb::Create, kind);
        assert_eq!((made["apiVersion"].as_str(), object::namespace(&made)), (Some(api_version), "garden"));
        assert_eq!(object::annotation(&made, "olm.generated-by"), None);
        assert_eq!(made["metadata"]["ownerReferences"], json!([object::owner_reference(&csv(), false)]));
    }
    // A plan cannot skip a Role.
    let role = optional(simple(RBAC, "Role", "reader", &json!({ "rules": [] })));
    let mut world = there(&[role]);
    let action = plan_with(&on(), &world, at(0)).actions[0].clone();
    refuse(&mut world, &action, 422, "Invalid", "no");
    assert!(told(&plan_with(&on(), &world, at(0)))[0].starts_with("Installing retrying"));
}

fn definition(scope: &str, established: Option<i64>) -> Value {
    let mut crd = old(CRD, "CustomResourceDefinition", "links.garden.example.com", &crd_spec(&["v1"]));
    merge(&mut crd, &json!({ "spec": { "scope": scope, "names": { "kind": "Link", "plural": "links" } } }));
    if let Some(second) = established {
        merge(&mut crd, &crd_status(&["v1"], true));
        crd["status"]["conditions"][1]["lastTransitionTime"] = object::time(at(second)).into();
    }
    crd
}

fn link() -> Value {
    optional(simple("garden.example.com/v1", "Link", "link", &json!({})))
}

#[test]
fn the_scope_of_a_kind_is_read_from_its_definition() {
    let made = |scope: &str| {
        let plan = plan_with(&on(), &world(&[installing(&[link()]), csv(), definition(scope, Some(0))]), at(0));
        object_of(&plan, Verb::Create, "Link")
    };
    assert_eq!(object::namespace(&made("Namespaced")), "garden");
    let cluster = made("Cluster");
    assert_eq!((object::namespace(&cluster), object::label(&cluster, "olm.owner")), ("", Some("rose.v2.0.0")));
    assert!(cluster["metadata"].get("ownerReferences").is_none());
}

#[test]
fn optional_steps_wait_for_apis_of_the_same_plan() {
    let crd = simple(CRD, "CustomResourceDefinition", "links.garden.example.com", &crd_spec(&["v1"]));
    let steps = installing(&[crd, link()]);
    let first = plan_with(&on(), &world(&[steps.clone(), csv()]), at(0));
    assert_eq!(told(&first), ["create CustomResourceDefinition/links.garden.example.com"]);
    let mut served = definition("Namespaced", Some(0));
    served["metadata"]["annotations"] =
        object_of(&first, Verb::Create, "CustomResourceDefinition")["metadata"]["annotations"].clone();
    served["metadata"]["creationTimestamp"] = CREATED.into();
    let mut world = world(&[steps, csv(), served]);
    let second = plan_with(&on(), &world, at(1));
    assert_eq!(told(&second), ["create Link/link", "Complete  [Created Created Created]"]);
    // An established API may be served only a moment later.
    let missing = || Status::new(404, "NotFound", "the server could not find the requested resource");
    refuse_again(&mut world, &second.actions[0], 3, missing());
    assert_eq!(told(&plan_with(&on(), &world, at(1))), told(&second));
    refuse_again(&mut world, &second.actions[0], 4, missing());
    assert_eq!(told(&plan_with(&on(), &world, at(1)))[0], "Complete  [Created Created NotCreated]");
}

#[test]
fn skipped_steps_are_retried_once_when_their_api_appears_if_enabled() {
    let retry = Settings { retry_optional: true, ..on() };
    let mut complete = installing(&[link()]);
    complete["status"]["phase"] = "Complete".into();
    complete["status"]["plan"][0]["status"] = "Created".into();
    complete["status"]["plan"][1]["status"] = "NotCreated".into();
    complete["status"]["conditions"] =
        json!([{ "type": "Installed", "status": "True", "lastUpdateTime": object::time(at(10)) }]);
    // Not served; served before; served since then.
    for (definitions, tried) in [
        (vec![], false),
        (vec![definition("Namespaced", Some(9))], false),
        (vec![definition("Namespaced", Some(11))], true),
    ] {
        let objects = [vec![complete.clone(), csv()], definitions].concat();
        assert_eq!(plan_with(&on(), &world(&objects), at(20)).actions, []);
        let mut world = world(&objects);
        let plan = plan_with(&retry, &world, at(20));
        if !tried {
            assert_eq!(plan.actions, []);
            continue;
        }
        assert_eq!(told(&plan), ["create Link/link", "Complete  [Created Created]"]);
        let Some(Action::UpdateStatus(written)) = plan.actions.last() else { panic!() };
        assert_eq!(written["status"]["conditions"][0]["lastUpdateTime"], object::time(at(20)));
        refuse(&mut world, &plan.actions[0], 403, "Forbidden", "no");
        let refused = plan_with(&retry, &world, at(20));
        assert_eq!(told(&refused), ["Complete  [Created NotCreated]", "emit event about InstallPlan/install-1"]);
        let Some(Action::UpdateStatus(written)) = refused.actions.first() else { panic!() };
        world.apply(written.clone());
        assert_eq!(plan_with(&retry, &world, at(30)).actions, []);
    }
}
