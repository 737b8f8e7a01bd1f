//! Tests of the validation of existing custom resources when their CustomResourceDefinition changes.

use super::*;
use crate::plan::Question;
use crate::structural::{SchemaCheck, SchemaCheckResult, Violation};
use crate::testing;

const NAME: &str = "roses.garden.example.com";

fn versions(versions: &[&str]) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "required": ["spec"] } });
    let version = |v: &&str| json!({ "name": v, "served": true, "storage": false, "schema": schema });
    let versions: Vec<Value> = versions.iter().map(version).collect();
    let names = json!({ "kind": "Rose", "plural": "roses" });
    json!({ "spec": { "group": "garden.example.com", "names": names, "versions": versions } })
}

fn there() -> Value {
    let mut crd = old(CRD, "CustomResourceDefinition", NAME, &versions(&["v1", "v2"]));
    merge(&mut crd, &crd_status(&["v1"], true));
    crate::world::trim(&mut crd);
    crd
}

fn upgrade(rest: &Value) -> World {
    let mut new = versions(&["v1", "v3"]);
    merge(&mut new, rest);
    let step = simple(CRD, "CustomResourceDefinition", NAME, &new);
    world(&[install_plan("Installing", &[csv_step(), step]), csv(), there()])
}

fn question(plan: &Plan) -> SchemaCheck {
    let [Action::Ask(Question::CheckSchema(fit))] = &plan.actions[..] else { panic!("{plan:?}") };
    fit.clone()
}

fn found(at: Timestamp, invalid: u64, refusal: Option<Status>) -> SchemaCheckResult {
    let violation = |n| Violation {
        version: "v1".into(),
        name: format!("garden/rose-{n}"),
        problem: "spec: Required value".into(),
    };
    SchemaCheckResult {
        at,
        looked_at: 100,
        invalid,
        first: (0..invalid.min(2)).map(violation).collect(),
        losses: 0,
        first_losses: Vec::new(),
        refusal,
    }
}

fn learn(world: &mut World, question: &SchemaCheck, fact: SchemaCheckResult) {
    world.learn(FactKey::SchemaCheck(question.crd.clone(), question.digest()), Some(Fact::SchemaCheck(fact)));
}

#[test]
fn custom_resources_are_validated_before_the_definition_changes() {
    let mut world = upgrade(&json!({}));
    let first = plan(&world, at(0));
    let question = question(&first);
    assert!(matches!(first.reasons[..], [Reason::InstallPlanWaits { .. }]));
    // Only versions that are served before and after can be compared.
    assert_eq!(question.schemas.iter().map(|(v, _)| v.as_str()).collect::<Vec<_>>(), ["v1"]);
    assert_eq!((question.group.as_str(), question.plural.as_str()), ("garden.example.com", "roses"));
    learn(&mut world, &question, found(at(0), 0, None));
    assert_eq!(
        told(&plan(&world, at(1))),
        [&format!("patch CustomResourceDefinition/{NAME}"), "Complete  [Created Present]"]
    );
    // A result that is half a minute old has expired.
    assert_eq!(self::question(&plan(&world, at(30))), question);
}

#[test]
fn the_refusal_names_objects_and_fields_and_they_are_validated_again() {
    let mut world = upgrade(&json!({}));
    let question = question(&plan(&world, at(0)));
    learn(&mut world, &question, found(at(0), 40, None));
    let message = "error validating existing CRs against new CRD's schema for \"roses.garden.example.com\": error validating \
                   garden.example.com/v1, Kind=Rose \"garden/rose-0\": updated validation is too restrictive: spec: Required \
                   value; v1 \"garden/rose-1\": spec: Required value; and 38 more of 100";
    let refused = plan(&world, at(1));
    assert_eq!(told(&refused), [format!("Installing retrying execution due to error: {message} [Created Unknown]")]);
    assert_eq!(refused.again, Some(at(30)));
    assert!(matches!(&refused.reasons[..], [reason @ Reason::InstallPlanRetries { .. }] if reason.hint().is_some()));
    assert_eq!(self::question(&plan(&world, at(30))), question);
    learn(&mut world, &question, found(at(60), 40, None));
    let Some(Action::UpdateStatus(retrying)) = refused.actions.into_iter().next() else { panic!() };
    world.apply(retrying);
    assert_eq!(told(&plan(&world, at(61))), [format!("Failed {message} [Created Unknown]")]);
}

#[test]
fn a_definition_with_a_conversion_webhook_is_changed_nevertheless() {
    let mut world = upgrade(&json!({ "spec": { "conversion": { "strategy": "Webhook" } } }));
    let question = question(&plan(&world, at(0)));
    learn(&mut world, &question, found(at(0), 1, None));
    let plan = plan(&world, at(1));
    let event = "emit event about InstallPlan/install-1";
    assert_eq!(told(&plan), [&format!("patch CustomResourceDefinition/{NAME}"), "Complete  [Created Present]", event]);
    let Some(Action::Emit(emit)) = plan.actions.last() else { panic!() };
    assert_eq!((emit.warning, emit.reason.as_str()), (true, "CRDValidation"));
}

#[test]
fn unreadable_custom_resources_are_an_error_and_forbidden_is_never_final() {
    for (code, reason, is_final) in [(403, "Forbidden", false), (500, "InternalError", true)] {
        let mut world = upgrade(&json!({}));
        let question = question(&plan(&world, at(0)));
        learn(&mut world, &question, found(at(0), 0, Some(Status::new(code, reason, "no"))));
        let refused = plan(&world, at(1));
        let retrying =
            "Installing retrying execution due to error: error validating existing CRs against new CRD's schema for";
        assert_eq!(told(&refused), [format!("{retrying} {NAME:?}: no [Created Unknown]")]);
        let Some(Action::UpdateStatus(retrying)) = refused.actions.into_iter().next() else { panic!() };
        world.apply(retrying);
        learn(&mut world, &question, found(at(61), 0, Some(Status::new(code, reason, "no"))));
        assert_eq!(told(&plan(&world, at(62))).iter().any(|t| t.starts_with("Failed")), is_final);
    }
}

#[test]
fn a_failing_bundle_is_named_with_those_that_it_blocks() {
    let mut other = csv_step();
    other["resolving"] = "pot.v1.0.0".into();
    other["status"] = "Created".into();
    let mut done = csv_step();
    done["status"] = "Created".into();
    let role = simple(RBAC, "Role", "reader", &json!({ "rules": [] }));
    let subscription = testing::with_status(
        testing::subscription("garden", "rose", &Value::Null),
        &json!({ "currentCSV": "rose.v2.0.0" }),
    );
    let mut world = world(&[install_plan("Installing", &[done, other, role]), csv(), subscription]);
    let create = plan(&world, at(0)).actions[0].clone();
    refuse(&mut world, &create, 500, "InternalError", "oh");
    let culprit = " (bundle rose.v2.0.0 of Subscription rose, which also blocks pot.v1.0.0)";
    let retrying = plan(&world, at(0));
    let told = retrying.reasons[0].to_string();
    assert!(told.ends_with(&format!("{culprit} (1×, next at 2026-11-21T12:00:01Z)")), "{told}");
    let Some(Action::UpdateStatus(written)) = retrying.actions.into_iter().next() else { panic!() };
    world.apply(written);
    let failed = plan(&world, at(61));
    let Some(Action::UpdateStatus(written)) = failed.actions.into_iter().next() else { panic!() };
    assert_eq!(object::text(&written, &["status", "message"]), "error creating role reader: oh");
    world.apply(written);
    let [reason] = &plan(&world, at(62)).reasons[..] else { panic!() };
    assert!(reason.to_string().ends_with(culprit), "{reason}");
    assert!(reason.hint().is_some_and(|hint| hint.contains("delete subscription rose")), "{reason:?}");
}
